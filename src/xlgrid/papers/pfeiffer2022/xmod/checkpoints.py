"""Rename the modules in checkpoints of X-MOD to the codes of a study, and check that they exist with the right
sizes."""

from collections.abc import Mapping
from pathlib import Path

from xlgrid.base.files import whole
from xlgrid.base.names import unknown
from xlgrid.data.checkpoints import WEIGHTS, config_of, write_config
from xlgrid.heads.families import FAMILIES, module_of

# The name of the dictionary of modules in a layer.
DICTIONARY = FAMILIES["xmod"].modules


def rename_modules(folder: Path, names: Mapping[str, str]) -> None:
    """Rename the modules for languages in an encoder's folder, in place.

    Args:
        names: the code of a language in the study -> the name of its module.

    Raises:
        ValueError: the encoder lacks a module, or a module already has one of the codes as its name.
    """
    from safetensors.torch import load_file, save_file

    config = config_of(folder)
    for code, name in names.items():
        if name not in config["languages"]:
            raise ValueError(f"modules.{code}: {unknown('module of the encoder', name, config['languages'])}")
    code_of = {name: code for code, name in names.items()}
    languages = [code_of.get(name, name) for name in config["languages"]]
    if doubles := sorted({code for code in languages if languages.count(code) > 1}):
        raise ValueError(f"`modules` gives {doubles[0]} to a module, but another module has this name: leave it out")

    def renamed(name: str) -> str:
        parts = name.split(".")
        if module := module_of(name):
            parts[parts.index(DICTIONARY) + 1] = code_of.get(module, module)
        return ".".join(parts)

    tensors = {renamed(name): tensor for name, tensor in load_file(folder / WEIGHTS).items()}
    # The tensors are memory-mapped from the file, which must not be overwritten while they are read.
    with whole(folder / WEIGHTS) as aside:
        save_file(tensors, aside, {"format": "pt"})
    write_config(folder, config | {"languages": languages})


def check_modules(folder: Path) -> None:
    """Check that an X-MOD has a module of the right size for each of its languages in each layer.

    Raises:
        ValueError: a module is missing or has another size.
    """
    from safetensors import safe_open

    config = config_of(folder)
    hidden = config["hidden_size"]
    inner = hidden // config["adapter_reduction_factor"]
    sizes = {
        "dense1.weight": [inner, hidden],
        "dense2.weight": [hidden, inner],
        "dense1.bias": [inner],
        "dense2.bias": [hidden],
    }
    with safe_open(folder / WEIGHTS, framework="numpy") as weights:
        stored = {name.removeprefix("roberta."): name for name in weights.keys()}  # noqa: SIM118
        for layer in range(config["num_hidden_layers"]):
            for language in config["languages"]:
                for part, size in sizes.items():
                    name = f"encoder.layer.{layer}.output.{DICTIONARY}.{language}.{part}"
                    got = weights.get_slice(stored[name]).get_shape() if name in stored else None
                    if got != size:
                        raise ValueError(
                            f"the module of {language} does not fit the encoder: {name} "
                            f"{f'has shape {got}' if got else 'is missing'}, but config.json has {size}: correct "
                            "`languages` or `adapter_reduction_factor` there, or use another checkpoint"
                        )
