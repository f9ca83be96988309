"""The weights that a run stores, and how a model loads the weights of a run and of the MLM runs with which it began."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlgrid.base.errors import Damaged
from xlgrid.heads.families import EMBEDDINGS, is_pretrained_module
from xlgrid.languages.sources import Source
from xlgrid.methods.method import is_head
from xlgrid.models import by_language
from xlgrid.models.load import resize_embeddings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.heads import Head
    from xlgrid.methods import Method

DELTA = "delta.safetensors"


def named_parameters(model: "PreTrainedModel") -> dict[str, "torch.nn.Parameter"]:
    """The parameters of a model by name. A parameter that the head and the encoder share has its name in the
    encoder."""
    in_encoder = {id(p): f"{model.base_model_prefix}.{name}" for name, p in model.base_model.named_parameters()}
    return {in_encoder.get(id(p), name): p for name, p in model.named_parameters()}


def trains(method: "Method", name: str) -> bool:
    """Whether a run of `method` trains a parameter. No run trains the pre-trained modules of languages, since other
    runs and cells load them from the encoder (Pfeiffer et al. 2022, section 3)."""
    return method.trains(name) and not is_pretrained_module(name)


def kept(
    model: "PreTrainedModel", method: "Method", head: "Head", embeddings: bool = False
) -> dict[str, "torch.nn.Parameter"]:
    """The parameters in a run's `delta.safetensors`: the trained parameters, the head, and those that the model has
    drawn at random because the encoder lacks them (its attribute `drawn`, if it has one).

    A run without cells (`Head.has_cells`) stores parameters of the encoder only.

    Args:
        embeddings: whether the word embeddings are trained even if the method freezes them.
    """
    if head.has_cells:
        parameters = named_parameters(model)
    else:
        parameters = {f"{model.base_model_prefix}.{name}": p for name, p in model.base_model.named_parameters()}
    drawn = getattr(model, "drawn", ())
    return {
        name: p
        for name, p in parameters.items()
        if trains(method, name) or is_head(name) or name in drawn or (embeddings and name.endswith(EMBEDDINGS))
    }


def checkpoint_path(folder: Path, step: int) -> Path:
    """The file of a run's weights after a step of its training (`Training.checkpoints`)."""
    return folder / f"step{step}.safetensors"


def read_run(run: str | Path) -> dict[str, Any]:
    """The `run.json` of a run's folder.

    Raises:
        FileNotFoundError: the folder has no `run.json`.
        ValueError: `run.json` is damaged.
    """
    path = Path(run) / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not {"recipe", "digest", "labels"} <= record.keys():
            raise ValueError("entries are missing")
        return record
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: check the path, or rerun training") from error
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error}): delete it and rerun training", path) from error


def start_of(run: str | Path, record: Mapping[str, Any]) -> Path | None:
    """The folder of the MLM run with which a run began; None if it began with none.

    Raises:
        ValueError: the record has no such entry.
    """
    if "start" not in record:
        path = Path(run, "run.json")
        raise Damaged(f"{path} does not say with which MLM run the run began: delete it and rerun training", path)
    return Path(record["start"]) if record["start"] else None


def load_mlm_run(
    folder: Path,
    model: "PreTrainedModel",
    method: "Method",
    wanted: Callable[[str], bool] = lambda name: True,
    step: int | None = None,
) -> None:
    """Load the weights of an MLM run into a model with `method` installed. If that run itself began with another MLM
    run, the weights of the earlier run are loaded first.

    An MLM run with a tokenizer of its own has word embeddings for that tokenizer. If the method counts embeddings among
    the parameters of a language, they are loaded only if `wanted` selects them; otherwise they are always loaded. The
    embeddings of the model are resized to fit.

    Args:
        folder: the folder of the MLM run.
        wanted: returns whether to load the parameter with this name.
        step: load the checkpoint of this step of the training; None loads the final weights.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the checkpoint is missing, or a file is damaged, does not fit the model, or is from another training
            than the `run.json` in the same folder.
    """
    record = read_run(folder)
    if before := start_of(folder, record):
        load_mlm_run(before, model, method, wanted)
    path = folder / DELTA if step is None else checkpoint_path(folder, step)
    if step and not path.exists():
        steps = sorted(int(file.stem[4:]) for file in folder.glob("step*.safetensors") if file.stem[4:].isdecimal())
        raise Damaged(
            f"{path} does not exist (there are checkpoints of the steps: {', '.join(map(str, steps)) or 'none'}): check "
            f"`checkpoints` of the training of this MLM run, delete {folder} and run the study again, which trains it anew",
            folder,
        )
    layers, has_tokenizer = model.config.num_hidden_layers, bool(record.get("tokenizer"))

    def has_place(name: str) -> bool:
        return name.startswith(f"{model.base_model_prefix}.") and not method.leaves_out(name, layers)

    def is_loaded(name: str) -> bool:
        always = has_tokenizer and name.endswith(EMBEDDINGS) and not method.is_language_specific(name)
        return has_place(name) and (wanted(name) or always)

    trained, shapes, digest = read_delta(path, is_loaded)
    if digest != record["digest"]:
        raise Damaged(
            f"{path} is of recipe {digest}, the run.json beside it of {record['digest']}: delete {folder} and run the study "
            "again, which trains it anew",
            folder,
        )
    for name in trained if has_tokenizer else ():
        if name.endswith(EMBEDDINGS):
            resize_embeddings(model, shapes[name][0])
    parameters = named_parameters(model)
    # Tensors are checked even if they are not wanted, to detect a run of another encoder. The embeddings of another
    # tokenizer are checked only if they are loaded, because the model is resized for them only then.
    unfit = {name for name in shapes if has_tokenizer and name.endswith(EMBEDDINGS)} - trained.keys()
    placed = {name: shape for name, shape in shapes.items() if has_place(name) and name not in unfit}
    wrong = [n for n, shape in placed.items() if n not in parameters or tuple(parameters[n].shape) != shape]
    if wrong or not placed:
        raise ValueError(
            f"{path} does not fit the encoder: of its {len(shapes)} tensors, "
            + (f"{wrong[0]!r} has no place of its shape there" if wrong else "none is of an encoder")
            + ": check the options of the two methods, or delete the folder and run the study again"
        )
    _replace(parameters, trained)
    by_language.give(model, trained, Source(record["recipe"]["source"]).languages)


def load_delta(path: Path, model: "PreTrainedModel", method: "Method", head: "Head", digest: str) -> None:
    """Load the tensors of a `delta.safetensors` into a model with `method` installed.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is truncated or belongs to another recipe, or its tensors are not the ones that `kept`
            selects.
    """
    expected = kept(model, method, head)
    delta, _, of = read_delta(path)
    if of != digest:
        raise Damaged(
            f"{path} belongs to recipe {of}, the run.json beside it to {digest}: delete both and rerun training",
            path,
            path.with_name("run.json"),
        )
    wrong = [
        name
        for name in sorted(expected.keys() | delta.keys())
        if name not in expected or name not in delta or expected[name].shape != delta[name].shape
    ]
    if wrong:
        raise ValueError(
            f"{path} does not fit the encoder: {len(wrong)} tensors are missing, unknown or of another shape, "
            f"first {wrong[0]!r}; check that this is the encoder the run was trained from, or rerun training"
        )
    _replace(expected, delta)


def _replace(parameters: Mapping[str, "torch.nn.Parameter"], tensors: Mapping[str, "torch.Tensor"]) -> None:
    """Give parameters new values. Their old memory stays as it is, because other models may share it."""
    for name, tensor in tensors.items():
        parameters[name].data = tensor.to(parameters[name], copy=True)


def read_delta(
    path: Path, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, "torch.Tensor"], dict[str, tuple[int, ...]], str | None]:
    """Read a `delta.safetensors` or a checkpoint.

    Returns:
        The wanted tensors, the shapes of all tensors in the file, and the digest of the recipe that trained them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is truncated.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stored:
            shapes = {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
            tensors = {name: stored.get_tensor(name) for name in filter(wanted, shapes)}
            return tensors, shapes, (stored.metadata() or {}).get("digest")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: check the path, or rerun training") from error
    except (SafetensorError, OSError) as error:
        raise Damaged(f"{path} is truncated or damaged ({error}): delete it and rerun training", path) from error
