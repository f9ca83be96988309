"""Attention of the last layer on one example in two targets, and how far the two differ over many examples.

Foroutan et al. (2023, appendix E, figures 4 and 5) compare the two by eye. The number here is of two targets that share
the context and differ in the question, whose tokens have no counterparts. So a row of attention weights of a context
token (special tokens included) is taken as a distribution over the tokens of the context and, as one more outcome, the
question as a whole. Of each such row in each head, the *divergence* is the Jensen-Shannon divergence between the targets
in bits: 0 if they are the same, 1 if they have nothing in common. Rows of the question are not compared.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xlgrid.base.arrays import Ints
from xlgrid.base.clock import Clock
from xlgrid.base.device import default_device
from xlgrid.base.errors import Damaged
from xlgrid.base.files import write_text
from xlgrid.data import batches
from xlgrid.evaluation import trained
from xlgrid.heads import ALL_HEADS
from xlgrid.heads.tokens import Tokens
from xlgrid.languages.sources import Target
from xlgrid.models import prediction
from xlgrid.models.load import has_segments

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.methods import Method

# Examples that are averaged over: the first of the test set.
SAMPLES = 500
# Tokens at once, padding included.
BUDGET = 4096
# The rows of attention over which the divergence is averaged: all of the context's, or only the first token's ([CLS]).
ROWS = ("context", "first")


def compare(
    run: str | Path,
    encoder: str | Path,
    tokenizer: str | Path,
    tokens: Mapping[str, str | Path],
    out: str | Path,
    mlm_runs: Mapping[str, Path] | None = None,
    study: str | None = None,
) -> None:
    """Compare the attention of a run on two targets, and write a JSON that `read` reads.

    The weights are computed without dropout, with the masks of evaluation, in full precision. The shortest example is kept
    to be drawn.

    Args:
        run: the folder of the run.
        encoder: the folder of its encoder.
        tokenizer: the folder of the tokenizer of the tokens.
        tokens: the tokens file of each target; row by row they have the same examples.
        out: the file to write.
        mlm_runs: the folder of each target's MLM run, of targets that have one.
        study: the study of the comparison; None for that of the run.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, the checkpoint does not fit, or the targets have no context in common.
    """
    clock = Clock()
    import torch
    from tokenizers import Tokenizer

    finished = trained.read(run)
    recipe, method, device = finished.recipe, finished.method, default_device()
    data = {Target(target): batches.read(path, target) for target, path in tokens.items()}
    mlm_runs = mlm_runs or {}
    first, second = data.values()
    chosen, left_out = same_contexts(first, second)
    models = {
        target: trained.model_of(finished, encoder, parallel, mlm_runs.get(target), target.step).to(device).eval()
        for target, parallel in data.items()
    }
    # Some methods draw masks of attention in evaluation too.
    torch.manual_seed(recipe.seed)
    longest = np.maximum(first.lengths, second.lengths)
    shortest = int(chosen[np.argmin(longest[chosen])])
    divergences, drawn = [], {}
    for batch in batches.cut(longest, chosen[np.argsort(longest[chosen], kind="stable")], BUDGET):
        weights = [
            last_layer(models[target], method, target_tokens, batch, recipe.training.segments)
            for target, target_tokens in data.items()
        ]
        for at, row in enumerate(batch.tolist()):
            context = int(first.contexts[row])
            divergences.append(divergence(*(outcomes(of_target[at], context) for of_target in weights)))
            if row == shortest:
                drawn = dict(zip(data, (of_target[at] for of_target in weights), strict=True))
    # Examples × heads, one for each of `ROWS`.
    means = torch.stack([rows.mean(-1) for rows in divergences]), torch.stack([rows[:, 0] for rows in divergences])
    loaded = Tokenizer.from_file(str(Path(tokenizer) / "tokenizer.json"))
    record = {
        **finished.identity,
        **({"study": study} if study else {}),
        "targets": list(data),
        "seed": recipe.seed,
        "divergence": {name: float(mean.mean()) for name, mean in zip(ROWS, means, strict=True)},
        "by_head": {name: mean.mean(0).tolist() for name, mean in zip(ROWS, means, strict=True)},
        "n": len(divergences),
        "left_out": left_out,
        "row": shortest,
        "drawn": [_drawn(data[target], shortest, weights, loaded) for target, weights in drawn.items()],
        "run": str(run),
        "digest": finished.record["digest"],
        "speaks": [[str(mlm_runs[target])] if target in mlm_runs else [] for target in data],
        **prediction.circumstances(device),
        **clock.read(),
    }
    write_text(out, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def same_contexts(first: Tokens, second: Tokens) -> tuple[Ints, int]:
    """The first `SAMPLES` rows whose contexts have the same tokens in both, and how many before were left out.

    A context differs where a long input was cut, to make room for a longer question.

    Raises:
        ValueError: the two are not the same examples, have no context in common, or several inputs an example.
    """
    if any(tokens.inputs_per_row > 1 or tokens.examples < len(tokens) for tokens in (first, second)):
        raise ValueError(
            "attention is compared on tasks with one input per example, but here (with the head "
            f"{first.head!r}) an example can have several: select another task, or raise its `max_length`"
        )
    if len(first) != len(second):
        raise ValueError(
            f"the targets have {len(first)} and {len(second)} examples: attention is compared on the same examples, "
            "row by row; use parallel data"
        )
    chosen: list[int] = []
    for row in range(len(first)):
        context, other_context = (
            tokens.values[tokens.offsets[row] :][: tokens.contexts[row]] for tokens in (first, second)
        )
        if np.array_equal(context, other_context):
            chosen.append(row)
        if len(chosen) == SAMPLES:
            break
    if not chosen:
        raise ValueError(
            f"of {len(first)} examples none has the same context in both targets: name two pairs with one context "
            "language, such as en-fr and en-ar, of a task with two segments"
        )
    return np.array(chosen), chosen[-1] + 1 - len(chosen) if len(chosen) == SAMPLES else len(first) - len(chosen)


def last_layer(
    model: "PreTrainedModel", method: "Method", tokens: Tokens, chosen: Ints, segments: bool
) -> "torch.Tensor":
    """Attention weights of the last layer on the examples `chosen`: B × H × L × L."""
    import torch

    from xlgrid.papers.foroutan2023 import structured

    layer, device = structured.layers(model)[-1], model.device
    seen: list[Any] = []
    hook = layer.register_forward_pre_hook(
        lambda layer, arguments, options: seen.extend(
            [(*arguments, *options.values())[0], options.get("position_embeddings")]
        ),
        with_kwargs=True,
    )
    inputs = ALL_HEADS.find(tokens.head).collate(tokens, chosen, segments and has_segments(model), device)
    inputs.pop("labels")
    try:
        with torch.inference_mode():
            extra = prediction.extras(model, method, tokens, chosen, training=False)
            model(**inputs, **extra)
            hidden, rotary = seen
            return structured.weights(layer, hidden, inputs["attention_mask"].bool(), extra.get("layout"), rotary)
    finally:
        hook.remove()


def outcomes(weights: "torch.Tensor", context: int) -> "torch.Tensor":
    """The rows of the `context` first tokens over these and the rest as a whole: H × L × L -> H × C × (C + 1)."""
    import torch

    rows = weights[:, :context].double()
    return torch.cat([rows[..., :context], rows[..., context:].sum(-1, keepdim=True)], -1)


def divergence(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    """Jensen-Shannon divergence in bits between distributions along the last axis, from 0 to 1 (Lin 1991)."""
    import torch

    middle = (first + second) / 2
    whole = torch.zeros_like(middle[..., 0])
    for weights in (first, second):
        # Where a weight is 0, so is its term.
        whole += torch.special.xlogy(weights, weights / middle.clamp(min=torch.finfo(middle.dtype).tiny)).sum(-1) / 2
    return (whole / np.log(2)).clamp(0, 1)


def _drawn(tokens: Tokens, row: int, weights: "torch.Tensor", tokenizer: Any) -> dict[str, Any]:
    length = int(tokens.lengths[row])
    values = weights[:, :length, :length].cpu().numpy().astype("<f2")
    ids = tokens.values[tokens.offsets[row] : tokens.offsets[row + 1]].tolist()
    return {
        "tokens": [str(tokenizer.id_to_token(number)) for number in ids],
        "context": int(tokens.contexts[row]),
        "weights": base64.b64encode(zlib.compress(values.tobytes(), 9)).decode(),
    }


def read(path: str | Path) -> dict[str, Any]:
    """The comparison that `compare` wrote to `path`; `weights` of each example in `drawn` are H × L × L.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is truncated, or something else.
    """
    path = Path(path)
    try:
        contrast: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if lacks := sorted({"targets", "divergence", "by_head", "n", "left_out", "drawn"} - contrast.keys()):
            raise ValueError(f"it lacks {', '.join(lacks)}")
        for example in contrast["drawn"]:
            example["weights"] = _unpacked(example["weights"], len(example["tokens"]))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: run the study to make it") from error
    except (ValueError, binascii.Error, zlib.error) as error:
        raise Damaged(f"{path} is truncated or is not of attention ({error}): delete it and run again", path) from error
    return contrast


def _unpacked(text: str, length: int) -> NDArray[np.float32]:
    values = np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), "<f2").astype(np.float32)
    return values.reshape(-1, length, length)
