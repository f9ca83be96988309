"""Compare the attention of the last layer on two targets: the matrices of one example, and the divergence over many.

Foroutan et al. (2023, appendix E, figures 4 and 5) compare the matrices by eye. The divergence compares two targets
with the same context and different questions, whose tokens do not correspond. Therefore, the attention weights of a
context token (special tokens included) are treated as a distribution over the tokens of the context and, as one further
outcome, the question as a whole. The *divergence* of such a row in a head is the Jensen-Shannon divergence between the
targets in bits: 0 if the distributions are the same, 1 if they have no outcome in common. Rows of the question are not
compared.
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
from xlgrid.heads.transfer import on_device
from xlgrid.languages.sources import Target
from xlgrid.models import prediction
from xlgrid.models.load import has_segments

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from xlgrid.methods import Method

# The number of examples over which the divergence is averaged: the first ones of the test set.
SAMPLES = 500
# The number of tokens in a batch, padding included.
BUDGET = 4096
# The rows of attention over which the divergence is averaged: all rows of the context, or only that of the first token
# ([CLS]).
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

    The weights are computed without dropout, with the masks of evaluation, in full precision. The file also has the
    weights of the shortest example, which figures show.

    Args:
        run: the folder of the run.
        encoder: the folder of its encoder.
        tokenizer: the folder of the tokenizer of the tokens.
        tokens: the tokens file of each target; the files have the same examples row by row.
        out: the file to write.
        mlm_runs: target -> the folder of its MLM run, for targets with an MLM run.
        study: the study of the comparison; None for the study of the run.

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
    # Some methods also draw random attention masks in evaluation.
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
    # The divergences, [examples, heads], for each of `ROWS`.
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
    """The first `SAMPLES` rows whose contexts have the same tokens in both targets, and the number of skipped rows.

    Contexts differ if a long input was cut to make room for a longer question.

    Raises:
        ValueError: the targets have different examples, no context in common, or several inputs per example.
    """
    if any(tokens.inputs_per_row > 1 or tokens.examples < len(tokens) for tokens in (first, second)):
        raise ValueError(
            f"attention is compared on tasks with one input per example, but an example can have several with the head "
            f"{first.head!r}: select another task, or raise its `max_length`"
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
            f"none of {len(first)} examples has the same context in both targets: name two pairs with the same context "
            "language, such as en-fr and en-ar, of a task with two segments"
        )
    return np.array(chosen), chosen[-1] + 1 - len(chosen) if len(chosen) == SAMPLES else len(first) - len(chosen)


def last_layer(
    model: "PreTrainedModel", method: "Method", tokens: Tokens, chosen: Ints, segments: bool
) -> "torch.Tensor":
    """The attention weights of the last layer on the examples `chosen`: [B, H, L, L]."""
    import torch

    from xlgrid.papers.foroutan2023 import structured

    layer = structured.layers(model)[-1]
    seen: list[Any] = []
    hook = layer.register_forward_pre_hook(
        lambda layer, arguments, options: seen.extend(
            [(*arguments, *options.values())[0], options.get("position_embeddings")]
        ),
        with_kwargs=True,
    )
    batch = ALL_HEADS.find(tokens.head).collate(tokens, chosen, segments and has_segments(model))
    inputs = on_device(batch, model.device)
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
    """The rows of the first `context` tokens over these tokens and the rest as a whole: [H, L, L] -> [H, C, C + 1]."""
    import torch

    rows = weights[:, :context].double()
    return torch.cat([rows[..., :context], rows[..., context:].sum(-1, keepdim=True)], -1)


def divergence(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    """The Jensen-Shannon divergence in bits between distributions along the last axis, from 0 to 1 (Lin 1991)."""
    import torch

    middle = (first + second) / 2
    whole = torch.zeros_like(middle[..., 0])
    for weights in (first, second):
        # If a weight is 0, its term is 0.
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
    """The comparison that `compare` wrote to a file. The `weights` of each example in `drawn` are [H, L, L].

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is truncated, or is not a comparison.
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
        raise Damaged(
            f"{path} is truncated or is not a comparison of attention ({error}): delete it and run again", path
        ) from error
    return contrast


def _unpacked(text: str, length: int) -> NDArray[np.float32]:
    values = np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), "<f2").astype(np.float32)
    return values.reshape(-1, length, length)
