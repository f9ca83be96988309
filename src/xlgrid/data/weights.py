"""Check that an encoder's weights have the names and shapes that its config.json describes, and are finite."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from xlgrid.base.errors import Damaged, first_sentence
from xlgrid.data.checkpoints import WEIGHTS, check_index, config_of, weight_files
from xlgrid.heads.families import FAMILIES, MODULES

# A checkpoint may lack weights whose names contain one of these parts.
_MAY_MISS = {"pooler", "position_ids", "token_type_ids", "inv_freq"} | MODULES
# The beginning of the names of weights that were saved from torch's DataParallel.
_WRAPPER = "module."


def missing_of_encoder(missing: Iterable[str]) -> list[str]:
    """The missing weights, sorted, without weights that a valid checkpoint of an encoder may lack.

    Args:
        missing: the names of missing weights, as transformers reports them. The pooler, which masked-language models
            lack, and positions, which transformers computes, may be missing. The modules of languages are checked
            elsewhere.
    """
    return sorted(name for name in missing if _MAY_MISS.isdisjoint(name.split(".")))


def unlike(where: str, missing: Sequence[str], stored: Iterable[str]) -> str:
    """The error message for weights of another encoder than config.json describes.

    Args:
        where: the folder.
        missing: the names of the weights that are missing.
        stored: the names of the weights in the files.
    """
    names = f"{', '.join(missing[:3])}{f' and {len(missing) - 3} more' if missing[3:] else ''}"
    example = next(iter(stored), "")
    wrapped = (
        f" The names in the file begin with {_WRAPPER!r}, as torch's DataParallel saves them: save the weights of "
        "`model.module`."
        if example.startswith(_WRAPPER)
        else ""
    )
    return (
        f"the weights of {where} lack {names}, which the encoder in config.json has, and which would be random "
        "numbers: take the config.json and the weights that were saved together"
        f"{f' (the file has, for example, {example})' if example else ''}.{wrapped}"
    )


def check_names(folder: Path, where: Path | None = None) -> None:
    """Check by names and shapes that weights in safetensors belong to the encoder that config.json describes.

    For a type outside `FAMILIES`, only the configuration is checked, since transformers may rename old weights of the
    type in a way of its own. `xlgrid.models.load` finds missing weights of every type.

    Args:
        folder: the folder with config.json and the weights, in one file or several.
        where: the folder that the error names; None means `folder`.

    Raises:
        ValueError: config.json describes no encoder, or a weight is missing or has another shape.
    """
    import torch
    from safetensors import safe_open
    from transformers import CONFIG_MAPPING, AutoModel

    config = config_of(folder)
    try:
        with torch.device("meta"):
            # The padding id may belong to another tokenizer; it is corrected later.
            model = AutoModel.from_config(CONFIG_MAPPING[config["model_type"]].from_dict({**config, "pad_token_id": 0}))
    except Exception as error:  # Transformers raises errors of many types.
        raise Damaged(
            f"{where or folder}/config.json describes no encoder ({first_sentence(error)}): take the config.json that "
            "was saved with the weights"
        ) from error
    if config["model_type"] not in FAMILIES:
        return
    stored: dict[str, list[int]] = {}
    files = weight_files(folder)
    for file in files:
        with safe_open(file, framework="numpy") as opened:
            stored |= {name: opened.get_slice(name).get_shape() for name in opened.keys()}  # noqa: SIM118
    check_index(folder, files, stored)
    # Old checkpoints of BERT use TensorFlow's names, gamma and beta.
    shapes = {
        re.sub(r"gamma$", "weight", re.sub(r"beta$", "bias", name.removeprefix(f"{model.base_model_prefix}."))): shape
        for name, shape in stored.items()
    }
    wanted = {name: [*parameter.shape] for name, parameter in model.named_parameters()}
    if missing := missing_of_encoder(name for name in wanted if name not in shapes):
        raise Damaged(unlike(str(where or folder), missing, sorted(stored)))
    for name in missing_of_encoder(wanted):
        if shapes[name] != wanted[name]:
            raise Damaged(
                f"the weights of {where or folder} do not fit config.json: {name} has the shape {shapes[name]}, and "
                f"config.json asks for {wanted[name]}: take the config.json that was saved with the weights"
            )


def check_numbers(folder: Path, where: Path) -> None:
    """Check that all weights of an encoder in one file of safetensors are finite numbers.

    Args:
        where: the folder that the error names.

    Raises:
        ValueError: a weight is infinite or NaN.
    """
    import torch
    from safetensors import safe_open

    with safe_open(folder / WEIGHTS, framework="pt") as weights:
        for name in weights.keys():  # noqa: SIM118
            finite = torch.isfinite(weights.get_tensor(name).float())
            if not bool(finite.all()):
                raise Damaged(
                    f"the weights of {where} are damaged: {int((~finite).sum()):,} of the {finite.numel():,} numbers "
                    f"in {name} are infinite or NaN: copy or download the weights again, or take an earlier checkpoint "
                    "of their training"
                )
