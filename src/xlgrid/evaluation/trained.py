"""Load a model for evaluation: a run with the language-specific parameters of a target, or an encoder without
training."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.device import default_device
from xlgrid.evaluation.kept import Keeper
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.methods import Method, make
from xlgrid.models import by_language, deltas, fit, load, precision, prediction
from xlgrid.training.recipe import Recipe, Training

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Keeps the encoder for the next evaluation, in a process that evaluates several cells.
_keeper: Keeper | None = None


class TrainedRun(NamedTuple):
    """A finished run.

    Attributes:
        folder: the folder of the run.
        record: its `run.json`.
        recipe: the recipe in the record.
        method: the method of the recipe.
    """

    folder: Path
    record: Mapping[str, Any]
    recipe: Recipe
    method: Method

    @property
    def identity(self) -> dict[str, Any]:
        """The study, task, encoder, method, source and seed of the run."""
        return self.recipe.model_dump(include={"study", "task", "encoder", "method", "source", "seed"})

    def check_cell(self, cell: Mapping[str, Any]) -> None:
        """Raise ValueError if a cell is not an evaluation of this run. The cell may be in another study than the
        run."""
        own = self.identity | {"study": cell.get("study")}
        for axis, value in cell.items():
            if axis in own and value != own[axis]:
                raise ValueError(
                    f"the cell has {axis} {value}, and {self.folder} is a run of {axis} {own[axis]}: name another run or cell"
                )


def read(folder: str | Path) -> TrainedRun:
    """The run in a folder.

    Raises:
        FileNotFoundError: there is no `run.json`.
        ValueError: `run.json` is damaged.
    """
    record = deltas.read_run(folder)
    recipe = Recipe.model_validate(record["recipe"])
    return TrainedRun(Path(folder), record, recipe, make(recipe.base, recipe.options))


def model_of(
    run: TrainedRun, encoder: str | Path, tokens: Tokens, mlm_run: Path | None = None, step: int | None = None
) -> "PreTrainedModel":
    """The model of a run with the language-specific parameters of a target (`Method.is_language_specific`).

    Args:
        encoder: the folder of the run's encoder.
        tokens: the tokens of the target, or tokens with the same head and labels.
        mlm_run: the folder of the target's MLM run, from which the language-specific parameters are loaded. If the run
            itself began with this MLM run, the run's own values are used. With None, the parameters stay as the method
            installs them.
        step: load the checkpoint of the MLM run after this step; None loads its final weights.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or does not fit the encoder, or an input is too long for it.
    """
    method, start = run.method, deltas.start_of(run.folder, run.record) if run.recipe.start else None
    # The run's head replaces the random one.
    model = _take(encoder, tokens)
    # The run's training has checked that the head and the method are for the encoder.
    method.install(model)
    exchanged = _resolved(mlm_run) != _resolved(start) or step is not None
    if start:
        deltas.load_mlm_run(start, model, method, lambda name: not (exchanged and method.is_language_specific(name)))
    # If the run began with a run of another task, it also stores everything that the earlier run trained.
    deltas.load_delta(run.folder / deltas.DELTA, model, method, ALL_HEADS.find(tokens.head), run.record["digest"])
    if mlm_run and exchanged:
        deltas.load_mlm_run(mlm_run, model, method, method.is_language_specific, step)
    return model


def placed(model: "PreTrainedModel", settings: Training) -> tuple[int, bool, bool]:
    """Move a model to the device of evaluations.

    Returns:
        The arguments `budget`, `bf16` and `token_types` of `prediction.predictions_on`, which depend on a run's
        settings.
    """
    device = default_device()
    prediction.place(model, device, *([_keeper.place] if _keeper else []))
    budget = settings.micro_batch_tokens or settings.batch_tokens
    return budget, precision.uses_bf16(device, settings.precision), settings.segments


def stack(
    model: "PreTrainedModel", method: Method, tokens: Tokens, task: str, language: str | None = None
) -> list[str]:
    """The parts of a model that are active in a cell in addition to the encoder's shared weights.

    Each part is written as `kind:name`. The parts are in the order of computation, from the embeddings up.

    Args:
        language: the source of the target's MLM run; None if there is no such run.

    Raises:
        ValueError: the encoder has no module of a language of the tokens.
    """
    return [*method.stack(task, language), *by_language.parts(model, tokens.languages)]


def bare_model(encoder: str | Path, tokens: Tokens) -> "PreTrainedModel":
    """An encoder with the head that was pre-trained with it.

    Args:
        encoder: the folder of the encoder.
        tokens: the tokens of the target.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, the encoder has no such head or cannot have it, or an input is too long for it.
    """
    head = ALL_HEADS.find(tokens.head)
    if not head.is_pretrained:
        raise ValueError(
            f"no encoder is stored with the head {tokens.head}, so its weights would be random: evaluate a run, or "
            "tokens of a task that needs no training"
        )
    model = _take(encoder, tokens)
    fit.check_head(model, head)
    return model


def keep() -> None:
    """Keep the encoder of each evaluation in this process for the next one, from now on."""
    global _keeper
    _keeper = _keeper or Keeper()


def is_first() -> bool:
    """Whether this process has evaluated nothing else. Otherwise it may run out of memory because of earlier evaluations."""
    return _keeper is None or _keeper.models <= 1


def fact(name: str, file: str | Path, about: str, find: Callable[[], Any]) -> Any:
    """What `find` returns. A process that keeps its encoder keeps this, too.

    Args:
        name: says what is found.
        file, about: that from which it follows: a file, and the settings with which it is read.
    """
    if _keeper is None or not Path(file).is_file():
        return find()
    state = Path(file).stat()
    return _keeper.fact((name, str(Path(file).absolute()), state.st_ino, state.st_mtime_ns, about), find)


def _take(encoder: str | Path, tokens: Tokens) -> "PreTrainedModel":
    """The model of an encoder with the head of some tokens. It has a position for every token.

    Raises:
        ValueError: an input is too long.
    """
    if _keeper:
        model = _keeper.model(_identity(encoder, tokens), lambda: _load(encoder, tokens))
    else:
        model = _load(encoder, tokens)
    load.check_positions(model, tokens)
    return model


def _load(encoder: str | Path, tokens: Tokens) -> "PreTrainedModel":
    return load.load_model(encoder, ALL_HEADS.find(tokens.head).of(tokens.options), len(tokens.label_names))


def _identity(encoder: str | Path, tokens: Tokens) -> tuple[Any, ...]:
    weights = Path(encoder) / "model.safetensors"
    written = weights.stat().st_mtime_ns if weights.is_file() else None
    return str(encoder), written, tokens.head, tokens.label_names, repr(tokens.options)


def _resolved(folder: Path | None) -> Path | None:
    return folder and folder.resolve()
