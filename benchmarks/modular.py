"""Time and memory of a training step of X-MOD, with 13 and with 60 languages, against XLM-R and transformers' X-MOD.

    python benchmarks/modular.py [--languages 13 60] [--hidden 768] [--layers 12] [--tokenizer 250002] [--length 128]
        [--batch 16] [--steps 5] [--threads 1]

A model of that shape with random weights predicts masked tokens of inputs in one language; a step is forward, backward,
clipping and AdamW; on the GPU where there is one, in bf16. SHARED has as many parameters in a layer as an input passes in
X-MOD. The fastest step counts; one thread of a CPU is timed by what it computes, whatever else runs beside. Each model has a
process of its own. Memory is that of the weights, and of what training adds to them: gradients and the state of AdamW.
"""

import argparse
import multiprocessing
from typing import Any, NamedTuple

import numpy as np
import torch
from steps import seconds
from transformers import XmodForMaskedLM

from xlgrid.architectures.scratch import architecture_of
from xlgrid.base.arrays import Segments
from xlgrid.base.device import default_device
from xlgrid.heads import HEADS
from xlgrid.heads.language_modelling.mlm import MASKED
from xlgrid.models import by_language
from xlgrid.training.optimiser import clip, new_optimiser
from xlgrid.training.recipe import Training


class Measured(NamedTuple):
    """Seconds of a step; bytes of the weights, of their gradients, and of the optimiser's state."""

    seconds: float
    weights: int
    gradients: int
    state: int


def codes(number: int) -> tuple[str, ...]:
    return tuple(f"l{at}" for at in range(number))


def models(languages: list[int]) -> dict[str, tuple[str, int]]:
    """Name -> the architecture of a model and the number of its languages; the first is what others are compared with."""
    named = {"XLM-R": ("plain", 1), "SHARED": ("shared", 1)}
    for number in languages:
        named |= {
            f"X-MOD, {number} languages": ("xmod", number),
            f"transformers, {number} languages": ("transformers", number),
        }
    return named


def measure(architecture: str, number: int, arguments: argparse.Namespace) -> Measured:
    torch.set_num_threads(arguments.threads)
    device = default_device()
    described = {
        "architecture": "xmod" if architecture == "transformers" else architecture,
        "languages": codes(number),
        "shape": "base",
        "hidden": arguments.hidden,
        "layers": arguments.layers,
        "heads": arguments.hidden // 64,
        "intermediate": 4 * arguments.hidden,
    }
    scratch = architecture_of(described if architecture != "plain" else {"kind": "xlmr", **described})
    model: Any = scratch.new_model(arguments.tokenizer)
    if architecture == "transformers":
        model = XmodForMaskedLM(model.config)
    model.to(device).train()
    weights = dict(model.named_parameters())
    optimiser = new_optimiser(weights, Training(weight_decay=0.01))
    torch.manual_seed(1)
    ids = torch.randint(5, arguments.tokenizer, (arguments.batch, arguments.length), device=device)
    labels = ids.masked_fill(torch.rand(ids.shape, device=device) > MASKED, -100)
    batch: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    language = np.full((arguments.batch, 2), number - 1, np.int16)
    segments = Segments(np.full(arguments.batch, arguments.length), codes(number), language, arguments.length)
    if architecture == "transformers":
        batch["lang_ids"] = torch.from_numpy(language[:, 0].astype(np.int64)).to(device)
    else:
        batch |= by_language.arguments(model, segments)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = HEADS["mlm"].loss(model, batch)
        (loss / HEADS["mlm"].terms(batch)).backward()
        clip(weights, 1.0)
        optimiser.step()

    best = min([seconds(step, device) for _ in range(arguments.steps + 1)][1:])
    state = [tensor for entries in optimiser.state.values() for tensor in entries.values() if torch.is_tensor(tensor)]
    gradients = [p.grad for p in weights.values() if p.grad is not None]
    return Measured(
        best, *(sum(t.numel() * t.element_size() for t in tensors) for tensors in (weights.values(), gradients, state))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", type=int, nargs="+", default=[13, 60])
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tokenizer", type=int, default=250_002)
    parser.add_argument("--length", type=int, default=128, help="tokens of an input")
    parser.add_argument("--batch", type=int, default=16, help="inputs of a step")
    parser.add_argument("--steps", type=int, default=5, help="beside a first one that does not count")
    parser.add_argument("--threads", type=int, default=1, help="of a CPU")
    arguments = parser.parse_args()
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, threads: {arguments.threads}"
    print(f"{where}; hidden {arguments.hidden}, {arguments.batch} inputs of {arguments.length} tokens")
    plain: Measured | None = None
    for name, kind in models(arguments.languages).items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            measured = pool.apply(measure, (*kind, arguments))
        plain = plain or measured
        print(
            f"{name:26} {1000 * measured.seconds:9.1f} ms {measured.seconds / plain.seconds:5.2f}x  "
            f"weights {measured.weights / 2**20:7.1f} MiB  gradients {measured.gradients / 2**20:7.1f} MiB  "
            f"AdamW {measured.state / 2**20:7.1f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
