"""Time and memory of a training step, and size of a run, of adapters against all weights, on a task and on text.

    python benchmarks/adapters.py [--encoder FacebookAI/xlm-roberta-base] [--layers 12] [--length 128] [--batch 16]
        [--steps 5] [--threads 1]

An encoder of that shape with random weights labels tokens, or predicts masked ones. A step is forward, backward, clipping
and AdamW; on the GPU where there is one, in bf16. The fastest step counts; one thread of a CPU is timed by what it
computes, whatever else runs beside. Each method has a process of its own: memory is the most that it had, the encoder's
weights included, and on a CPU without what it had before. A run's size is that of the tensors that it stores.
"""

import argparse
import multiprocessing
import resource
from typing import Any, NamedTuple

import torch
from safetensors.torch import save
from steps import seconds
from transformers import AutoConfig

from xlgrid.base.device import default_device
from xlgrid.data.published import HUB
from xlgrid.heads import HEADS
from xlgrid.heads.language_modelling.mlm import MASKED
from xlgrid.methods import make
from xlgrid.models import deltas
from xlgrid.models.load import model_class

# What is trained, its head, and the method; each head's first is what the others are compared with.
METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "task, all weights": ("token", "full-ft", {}),
    "task, adapters alone": ("token", "madx", {"language": False, "invertible": False}),
    "task, adapters on a language's": ("token", "madx", {}),
    "text, all weights": ("mlm", "full-ft", {}),
    "text, language adapters": ("mlm", "madx", {"tune": "language", "invertible": False}),
    "text, and invertible ones": ("mlm", "madx", {"tune": "language"}),
}


class Measured(NamedTuple):
    """Seconds of a step; bytes of memory, of what a run stores and of the encoder."""

    seconds: float
    memory: int
    stored: int
    encoder: int


def resident() -> int:
    """The most bytes of memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(name: str, arguments: argparse.Namespace) -> Measured:
    head, base, options = METHODS[name]
    torch.set_num_threads(arguments.threads)
    device = default_device()
    config = AutoConfig.for_model(**HUB[arguments.encoder], num_labels=7)
    config.num_hidden_layers = arguments.layers or config.num_hidden_layers
    before = resident()
    model, method = model_class(config.model_type, HEADS[head])(config), make(base, options)
    encoder = sum(p.numel() * p.element_size() for p in model.parameters())
    method.install(model)
    model.to(device).train()
    for key, parameter in model.named_parameters():
        parameter.requires_grad_(method.trains(key))
    weights = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=1e-4, fused=True)
    torch.manual_seed(1)
    ids = torch.randint(5, config.vocab_size, (arguments.batch, arguments.length), device=device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    labels = ids % 7 if head == "token" else ids.masked_fill(torch.rand(ids.shape, device=device) > MASKED, -100)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = HEADS[head].loss(model, inputs | {"labels": labels})
        (loss / HEADS[head].terms({"labels": labels})).backward()
        float(torch.nn.utils.clip_grad_norm_(weights, 1.0))
        optimiser.step()

    best = min([seconds(step, device) for _ in range(arguments.steps + 1)][1:])
    memory = torch.cuda.max_memory_allocated() if device.type == "cuda" else resident() - before
    stored = save({key: p.detach().cpu().contiguous() for key, p in deltas.kept(model, method, HEADS[head]).items()})
    return Measured(best, memory, len(stored), encoder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="FacebookAI/xlm-roberta-base", choices=[*HUB])
    parser.add_argument("--layers", type=int, help="instead of the encoder's")
    parser.add_argument("--length", type=int, default=128, help="tokens of an input")
    parser.add_argument("--batch", type=int, default=16, help="inputs of a step")
    parser.add_argument("--steps", type=int, default=5, help="beside a first one that does not count")
    parser.add_argument("--threads", type=int, default=1, help="of a CPU")
    arguments = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    where = torch.cuda.get_device_name() if on_gpu else f"CPU, threads: {arguments.threads}"
    print(f"{where}; {arguments.encoder}, {arguments.batch} inputs of {arguments.length} tokens")
    compared: dict[str, Measured] = {}
    for name, (head, _, _) in METHODS.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            measured = pool.apply(measure, (name, arguments))
        other = compared.setdefault(head, measured)
        print(
            f"{name:31} {1000 * measured.seconds:9.1f} ms {measured.seconds / other.seconds:5.2f}x "
            f"{measured.memory / 2**20:8.0f} MiB {measured.memory / other.memory:5.2f}x "
            f"run {measured.stored / 1e6:8.1f} MB {100 * measured.stored / measured.encoder:6.2f} % of the encoder",
            flush=True,
        )


if __name__ == "__main__":
    main()
