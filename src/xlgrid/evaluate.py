"""One cell: a run's model on a target's tokens; and the model loading and prediction that training shares.

Starting a process is most of a small cell's time, so nothing here imports pandas, datasets, seqeval, or, for the
encoders of `FAMILIES`, the Auto classes of transformers.
"""

import base64
import json
import os
import platform
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from xlgrid import batches, metrics, spans
from xlgrid.files import write_text
from xlgrid.grid import Cell, Run, data_of, first_stage, snapshot_of, started_from
from xlgrid.methods.method import is_head

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.methods import Method
    from xlgrid.recipe import Recipe

# Model types whose classes are named after one stem; others go through the slower Auto classes.
FAMILIES = {"bert": "Bert", "xlm-roberta": "XLMRoberta", "roberta": "Roberta", "distilbert": "DistilBert"}
DELTA = "delta.safetensors"
HEADS = {
    "sequence": "SequenceClassification",
    "token": "TokenClassification",
    "span": "QuestionAnswering",
    "choice": "MultipleChoice",
    "mlm": "MaskedLM",
}


def model_class(kind: str | None, head: str) -> Any:
    """The class of transformers for an encoder of a model type with a head out of `HEADS`."""
    import transformers

    return getattr(transformers, f"{FAMILIES.get(kind or '', 'AutoModel')}For{HEADS[head]}")


def head_settings(head: str, labels: int) -> dict[str, int]:
    """What a configuration says of a head; that of `choice` gives one score to each input, however many there are."""
    if head == "span":
        # Of a start and of an end.
        return {"num_labels": 2}
    return {"num_labels": labels} if head in ("sequence", "token") else {}


class Headed(Protocol):
    """What tokens say of the head that their model has: a key of `HEADS`, and its labels."""

    @property
    def head(self) -> str: ...

    @property
    def names(self) -> tuple[str, ...]: ...


def load_model(encoder: str | Path, tokens: Headed, dropout: float | None = None) -> "PreTrainedModel":
    """The encoder in `encoder`, in fp32, with a fresh head for the labels of `tokens`, from torch's generator as it is;
    for text, with its own language-modelling head.

    Raises:
        FileNotFoundError: the folder lacks a file.
        ValueError: a file is damaged.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import transformers

    folder = Path(encoder)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder / name} does not exist: make or fetch the encoder again")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = written.get("model_type")
        maker = model_class(kind, tokens.head)
        rates = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")
        changes: dict[str, Any] = {"dtype": torch.float32, **head_settings(tokens.head, len(tokens.names))}
        if dropout is not None:
            changes |= {
                rate: dropout for rate in rates if rate in written or (kind != "distilbert" and "_prob" in rate)
            }
            changes["classifier_dropout"] = dropout
        return maker.from_pretrained(folder, local_files_only=True, **changes)
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{folder} is damaged or is no encoder ({error}): delete it and make or fetch it again"
        ) from error
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        weights = folder / "model.safetensors"
        raise ValueError(f"{weights} is damaged ({error}): delete it and make or fetch the encoder again") from error


def head_of_lm(model: "PreTrainedModel", encoder: str | Path) -> None:
    """Give XLM-R's classifier the dense layer of the encoder's language-modelling head.

    Raises:
        ValueError: the encoder has none, or the model's classifier no such layer.
    """
    import torch
    from safetensors import safe_open

    dense = getattr(getattr(model, "classifier", None), "dense", None)
    weights = Path(encoder) / "model.safetensors"
    with safe_open(weights, framework="pt") as stored:
        names = [f"lm_head.dense.{name}" for name in ("weight", "bias")]
        if dense is None or not set(names) <= set(stored.keys()):
            raise ValueError(
                f"`head: lm-head` is for XLM-R with its language-modelling head, which {weights} or the task's classifier "
                "has not: set `head: fresh` for this encoder"
            )
        with torch.no_grad():
            for name, parameter in zip(names, (dense.weight, dense.bias), strict=True):
                parameter.copy_(stored.get_tensor(name))


# At most one model that is ready for the next evaluation, by what it was loaded from.
_ready: dict[tuple[Any, ...], "PreTrainedModel"] = {}


def preload(encoder: str | Path, tokens: batches.Tokens) -> None:
    """Have the model of `load_model` ready for the next evaluation in this process, or one in each of its forks."""
    identity = _identity(encoder, tokens)
    if identity not in _ready:
        _ready.clear()
        _ready[identity] = load_model(encoder, tokens)


def _identity(encoder: str | Path, tokens: batches.Tokens) -> tuple[Any, ...]:
    weights = Path(encoder) / "model.safetensors"
    written = weights.stat().st_mtime_ns if weights.is_file() else None
    return str(encoder), written, tokens.head, tokens.names


def kept(model: "PreTrainedModel", method: "Method") -> dict[str, "torch.nn.Parameter"]:
    """The parameters that a run's `delta.safetensors` holds: those that train, and the head.

    What a language model's output shares with its encoder has its name there, under which a classifier has it, too.
    """
    found = [(name, p) for name, p in model.named_parameters() if method.trains(name) or is_head(name)]
    own = {id(p): f"{model.base_model_prefix}.{name}" for name, p in model.base_model.named_parameters()}
    return {own.get(id(p), name): p for name, p in found}


def has_segments(model: "PreTrainedModel") -> bool:
    """Whether the encoder tells a first segment from a second."""
    return getattr(model.config, "type_vocab_size", 1) > 1


def scores(
    model: "PreTrainedModel", inputs: dict[str, "torch.Tensor"], labels: "torch.Tensor"
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """Logits and labels, flat, with a row of logits for each label: over its classes, over the choices, or over the tokens
    of a window, where it starts (first half of the rows) and where it ends; so that the mean of their cross entropies is the
    loss. Of a language model only where there are labels: elsewhere, nearly everywhere, logits over the whole vocabulary
    would cost more than the encoder does."""
    import torch

    if (head := language_head(model)) is None:
        found = model(**inputs)
        if "start_logits" in found:
            padding = inputs["attention_mask"].repeat(2, 1) == 0
            logits = torch.cat([found.start_logits, found.end_logits]).masked_fill(padding, -float("inf"))
            return logits, labels.T.flatten()
        return found.logits.flatten(0, -2), labels.flatten()
    due = labels != -100
    return head(model.base_model(**inputs).last_hidden_state[due]), labels[due]


def language_head(model: "PreTrainedModel") -> "torch.nn.Module | None":
    """What makes logits over the vocabulary of a language model's states; None if it is none."""
    return getattr(model, "cls", None) or getattr(model, "lm_head", None)


def outcomes_on(
    model: "PreTrainedModel",
    method: "Method",
    tokens: batches.Tokens,
    budget: int,
    bf16: bool = False,
    segments: bool = True,
    check: Callable[[], None] = lambda: None,
) -> list[metrics.Outcome]:
    """Outcome of each example of `tokens`, in their order, not of each of its windows; `budget` in tokens per batch, halved
    where memory runs out.

    `check` is called before every batch and may raise to stop early.

    Raises:
        ValueError: memory runs out on a single example.
    """
    import torch

    metric = metrics.metric_of(tokens.head, tokens.names)
    if tokens.vocabulary:
        # The same masks each time.
        torch.manual_seed(0)
    segments, device = segments and has_segments(model), model.device
    outcomes: list[metrics.Outcome] = [0] * len(tokens)
    answers = [spans.NOTHING] * len(tokens)
    was_training = model.training
    model.eval()
    try:
        rest = batches.cut(tokens.lengths, np.argsort(tokens.lengths, kind="stable"), budget)
        while rest:
            check()
            chosen = rest[0]
            problem = None
            try:
                inputs = batches.collate(tokens, chosen, segments, device)
                labels = inputs.pop("labels")
                with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                    inputs |= extras(method, tokens, chosen, device, training=False)
                    logits = scores(model, inputs, labels)[0]
                    best = logits.argmax(-1)
                    missing = len(best) < labels.numel()
                    predicted = labels.masked_scatter(labels != -100, best) if missing else best.view_as(labels)
            except torch.OutOfMemoryError as error:
                problem = str(error)
            if problem is not None:
                budget = halved(budget, tokens.lengths, [chosen], problem)
                print(f"out of memory in evaluation: goes on with {budget} tokens at once", file=sys.stderr, flush=True)
                rest = batches.cut(tokens.lengths, np.concatenate(rest), budget)
                continue
            rest = rest[1:]
            if tokens.spans:
                for number, answer in zip(chosen.tolist(), _answers(tokens, chosen, logits), strict=True):
                    answers[number] = answer
                continue
            if tokens.head in ("sequence", "choice"):
                for number, right in zip(chosen.tolist(), (predicted == labels).int().tolist(), strict=True):
                    outcomes[number] = right
                continue
            for number, ours, gold in zip(chosen.tolist(), predicted, labels, strict=True):
                due = gold != -100
                outcomes[number] = metrics.outcome(metric, tokens.names, ours[due].tolist(), gold[due].tolist())
    finally:
        model.train(was_training)
    return spans.outcomes(tokens.spans, answers) if tokens.spans else outcomes


def _answers(tokens: batches.Tokens, chosen: batches.Ints, logits: "torch.Tensor") -> Iterator[spans.Answer]:
    """The best answer of each of the windows `chosen`, from the logits of their starts, then those of their ends."""
    assert tokens.spans
    starts, ends = logits.float().cpu().numpy().reshape(2, len(chosen), -1)
    for at, window in enumerate(chosen.tolist()):
        here = slice(tokens.offsets[window], tokens.offsets[window + 1])
        size = int(tokens.sizes[window])
        first, last = tokens.spans.first[here], tokens.spans.last[here]
        yield spans.best(starts[at, :size], ends[at, :size], first, last, tokens.spans.texts[window].as_py())


def extras(
    method: "Method", tokens: batches.Tokens, chosen: batches.Ints, device: "torch.device", training: bool
) -> dict[str, Any]:
    """What the method's model gets besides the batch of the examples `chosen`."""
    inputs, length = tokens.inputs(chosen), int(tokens.longest[chosen].max())
    return method.arrange(tokens.contexts[inputs], tokens.switched[inputs], length, device, training)


def halved(limit: int, lengths: batches.Ints, parts: Sequence[batches.Ints], problem: str) -> int:
    """The limit in tokens to cut at next where `parts`, cut at `limit`, ran out of memory; cached memory is freed.

    To be called outside of the `except` block, since the exception's traceback holds tensors.

    Args:
        lengths: tokens of every example.
        problem: what torch said.

    Raises:
        ValueError: every part is a single example already.
    """
    import torch

    if all(len(part) == 1 for part in parts):
        raise ValueError(
            f"out of memory one example at a time, the longest of {max(int(lengths[part[0]]) for part in parts)} tokens: "
            "lower the task's `max_length`, use a smaller encoder or a larger GPU, or see what else runs on this one; "
            f"torch says: {problem}"
        )
    torch.cuda.empty_cache()
    return min(limit, max(len(part) * int(lengths[part].max()) for part in parts)) // 2


def circumstances(device: "torch.device") -> dict[str, Any]:
    """What a result depends on besides its recipe: versions, device, threads."""
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    packages = ("torch", "transformers", "safetensors", "numpy", "pyarrow")
    return {
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "device": f"{device.type} ({name})",
        "threads": torch.get_num_threads(),
    }


def default_device() -> "torch.device":
    """The GPU where there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def evaluate(run: str | Path, encoder: str | Path, tokens: str | Path, target: str, out: str | Path) -> None:
    """Evaluate the run in folder `run` on `tokens` of `target`, a language as of a step of its run on text if so named
    (qu@1000); write the cell's JSON to `out`.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or the checkpoint does not fit the encoder or the tokens.
    """
    began = time.monotonic()
    import torch

    from xlgrid.methods import make
    from xlgrid.recipe import Recipe

    record = read_run(run)
    recipe = Recipe.model_validate(record["recipe"])
    data = batches.read(tokens, data_of(target))
    # A choice is scored alone, whatever it is called.
    if data.head != "choice" and list(data.names) != record["labels"]:
        raise ValueError(
            f"{tokens} has the labels {', '.join(data.names)}, but {run} was trained on {', '.join(record['labels'])}: "
            "tokenize again, then rerun training"
        )
    if not len(data):
        raise ValueError(f"{tokens} has no examples: look at its data, then tokenize again")
    method = make(recipe.base, recipe.options)
    model = speaking(run, encoder, data, target)
    device = default_device()
    model.to(device)  # type: ignore[arg-type]
    budget = recipe.training.micro_batch_tokens or recipe.training.batch_tokens
    # For methods whose evaluation has something random.
    torch.manual_seed(recipe.seed)
    bf16 = recipe.training.precision == "bf16" and device.type == "cuda"
    found = outcomes_on(model, method, data, budget, bf16, recipe.training.segments)
    measured = metrics.metrics_of(data.head, data.names)
    step = snapshot_of(target)
    # As it is called in a path: qu, or qu@1000.
    spoken = {
        one.source if step is None else f"{one.source}@{step}": Path(one.folder) for one in start_runs(recipe, target)
    }
    cell = {
        "study": recipe.study,
        "task": recipe.task,
        "encoder": recipe.encoder,
        "method": recipe.method,
        "source": recipe.source,
        "target": target,
        "seed": recipe.seed,
        "scores": {metric: metrics.score(metric, found) for metric in measured},
        "metric": {"name": measured[0], "implementation": metrics.IMPLEMENTATIONS[measured[0]]},
        "n": len(found),
        "run": str(run),
        "digest": record["digest"],
        "stack": list(method.stack(recipe.task, next(iter(spoken), None))),
        "speaks": [str(folder if step is None else snapshot_path(folder, step)) for folder in spoken.values()],
        **circumstances(device),
        "seconds": round(time.monotonic() - began, 3),
        "outcomes": pack(found),
    }
    write_text(out, json.dumps(cell, ensure_ascii=False, indent=1) + "\n")


def speaking(run: str | Path, encoder: str | Path, data: batches.Tokens, target: str) -> "PreTrainedModel":
    """The model of a run, turned to a target, for tokens like `data`.

    Raises:
        FileNotFoundError, ValueError: as `evaluate`.
    """
    import torch

    from xlgrid.methods import make
    from xlgrid.recipe import Recipe

    record = read_run(run)
    recipe = Recipe.model_validate(record["recipe"])
    method = make(recipe.base, recipe.options)
    # Its head is random, and the run's comes in its place.
    model = _ready.pop(_identity(encoder, data), None) or load_model(encoder, data)
    # What neither the run nor its text has trained is the same for each of its cells.
    torch.manual_seed(recipe.seed)
    method.install(model)
    begun, spoken, step = start_folders(recipe), start_folders(recipe, target), snapshot_of(target)
    own = spoken != begun or step is not None
    load_start(begun, model, method, lambda name: not (own and method.swaps(name)))
    # It has all that a first task's run had trained.
    load_delta(Path(run) / DELTA, model, method, record["digest"])
    if own:
        load_start(spoken, model, method, method.swaps, step)
    return model


def pack(outcomes: Iterable[metrics.Outcome]) -> str:
    """Outcomes as text for a cell; `xlgrid.records.outcomes` reads them."""
    return base64.b64encode(zlib.compress(json.dumps(list(outcomes), separators=(",", ":")).encode(), 9)).decode()


def read_run(run: str | Path) -> dict[str, Any]:
    """The `run.json` of a run's folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged.
    """
    path = Path(run) / "run.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not {"recipe", "digest", "labels"} <= record.keys():
            raise ValueError("entries are missing")
        return record
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: rerun training") from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): delete it and rerun training") from error


def start_runs(recipe: "Recipe", target: str | None = None) -> list[Run]:
    """The run on text that a recipe's run begins with, or that its cells of `target` speak through; none or one."""
    of = recipe.study, recipe.task, recipe.encoder, recipe.method, recipe.source
    return started_from(recipe.start, Run(*of, recipe.seed) if target is None else Cell(*of, target, recipe.seed))


def start_folders(recipe: "Recipe", target: str | None = None) -> list[Path]:
    """The folders of `start_runs`."""
    return [Path(run.folder) for run in start_runs(recipe, target)]


def first_folders(recipe: "Recipe") -> list[Path]:
    """The folder of the first task's run that a recipe's run begins with; none or one."""
    made = Run(recipe.study, recipe.task, recipe.encoder, recipe.method, recipe.source, recipe.seed)
    return [Path(run.folder) for run in first_stage(recipe.first, made)]


def snapshot_path(folder: Path, step: int) -> Path:
    """The weights of a run as of a step of its training (`Training.snapshots`)."""
    return folder / f"step{step}.safetensors"


def load_start(
    folders: Iterable[Path],
    model: "PreTrainedModel",
    method: "Method",
    wanted: Callable[[str], bool] = lambda name: True,
    step: int | None = None,
) -> None:
    """Put what runs on text have trained into a model with `method` installed, but for their language-modelling head.

    Args:
        wanted: whether to take the parameter of a name.
        step: as of which of their snapshots; None: what they ended with.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: it is damaged, does not fit, or is a snapshot of another training than the run's last.
    """
    import torch

    parameters, layers = dict(model.named_parameters()), model.config.num_hidden_layers

    def has_place(name: str) -> bool:
        return name.startswith(f"{model.base_model_prefix}.") and not method.leaves_out(name, layers)

    for folder in folders:
        path = folder / DELTA if step is None else snapshot_path(folder, step)
        if step and not path.exists():
            there = sorted(int(one.stem[4:]) for one in folder.glob("step*.safetensors") if one.stem[4:].isdecimal())
            raise FileNotFoundError(
                f"{path} does not exist (there are snapshots of the steps: {', '.join(map(str, there)) or 'none'}): check "
                f"`snapshots` of the training of this run on text, delete {folder} and run the study again, which trains it anew"
            )
        trained, shapes, digest = _stored(path, lambda name: has_place(name) and wanted(name))
        if step and digest != (beside := read_run(folder)["digest"]):
            raise ValueError(
                f"{path} is of recipe {digest}, the run.json beside it of {beside}: delete {folder} and run the study again, "
                "which trains it anew"
            )
        # Of all, whether wanted or not: a run of another encoder should not go unnoticed.
        its = {name: shape for name, shape in shapes.items() if has_place(name)}
        wrong = [n for n, shape in its.items() if n not in parameters or tuple(parameters[n].shape) != shape]
        if wrong or not its:
            raise ValueError(
                f"{path} does not fit the encoder: of its {len(shapes)} tensors, "
                + (f"{wrong[0]!r} has no place of its shape there" if wrong else "none is of an encoder")
                + ": check the options of the two methods, or delete the folder and run the study again"
            )
        with torch.no_grad():
            for name, tensor in trained.items():
                parameters[name].copy_(tensor)


def load_first(folders: Iterable[Path], model: "PreTrainedModel", method: "Method") -> None:
    """Put all that a first task's run has trained, its head too, into an installed model.

    Raises:
        FileNotFoundError, ValueError: as `load_delta`.
    """
    for folder in folders:
        load_delta(folder / DELTA, model, method, read_run(folder)["digest"])


def _stored(
    path: Path, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, "torch.Tensor"], dict[str, tuple[int, ...]], str | None]:
    """The tensors that are wanted of a `delta.safetensors` or snapshot, the shapes of all that are in it, and the digest of
    the recipe that it is of."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stored:
            shapes = {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}  # noqa: SIM118
            tensors = {name: stored.get_tensor(name) for name in filter(wanted, shapes)}
            return tensors, shapes, (stored.metadata() or {}).get("digest")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: rerun training") from error
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is truncated or damaged ({error}): delete it and rerun training") from error


def load_delta(path: Path, model: "PreTrainedModel", method: "Method", digest: str) -> None:
    """Put the tensors of a `delta.safetensors` into an installed model.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is truncated, belongs to another recipe, or its tensors are not those that the method keeps.
    """
    import torch

    expected = kept(model, method)
    delta, _, of = _stored(path)
    if of != digest:
        raise ValueError(
            f"{path} belongs to recipe {of}, the run.json beside it to {digest}: delete both and rerun training"
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
    with torch.no_grad():
        for name, tensor in delta.items():
            expected[name].copy_(tensor)
