"""Time and memory of structured self-attention against the plain encoder's, by length of the input.

    python benchmarks/attention.py [--lengths 64 128 256 512] [--tokens 2048] [--layers 2] [--hidden 768]

Layers of BERT-base's size with random weights, `tokens` tokens at a time in inputs of two languages, all weights
training; on the GPU where there is one, in bf16, with the most memory that a step takes. The methods take turns, and
the fastest of each one's rounds counts. `strict` is a cross query whose masks are strict in training too.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from transformers import BertConfig, BertModel

from xlgrid.base.arrays import Segments
from xlgrid.methods import Method, make

METHODS: dict[str, Method] = {
    "plain": make("full-ft", {}),
    "dropout": make("structured-dropout", {}),
    "cross query": make("qcross", {}),
    "strict": make("qcross", {"p_mask": 1}),
}


def model_of(method: str, arguments: argparse.Namespace, device: torch.device) -> BertModel:
    sizes = {
        "hidden_size": arguments.hidden,
        "num_hidden_layers": arguments.layers,
        "intermediate_size": 4 * arguments.hidden,
    }
    config = BertConfig(
        **sizes, num_attention_heads=arguments.hidden // 64, hidden_dropout_prob=0, attention_probs_dropout_prob=0
    )
    model = BertModel(config, add_pooling_layer=False)
    METHODS[method].install(model)
    return model.to(device)


def timed(work: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(length: int, arguments: argparse.Namespace, device: torch.device) -> None:
    number = max(1, arguments.tokens // length)
    ids = torch.randint(1000, (number, length), device=device)
    # Questions after their contexts are a quarter of the input.
    languages = np.tile(np.array([0, 1], np.int16), (number, 1))
    segments = Segments(np.full(number, length * 3 // 4), ("en", "fr"), languages, length)
    models = {name: model_of(name, arguments, device) for name in METHODS}

    def step(name: str, training: bool) -> None:
        model = models[name].train(training)
        extra = METHODS[name].arrange(segments, device, training)
        with torch.set_grad_enabled(training), torch.autocast(device.type, torch.bfloat16, device.type == "cuda"):
            states = model(input_ids=ids, attention_mask=torch.ones_like(ids), **extra).last_hidden_state
        if training:
            states.float().square().mean().backward()
            model.zero_grad(set_to_none=True)

    for training in (True, False):
        seconds = {name: float("inf") for name in METHODS}
        memory = dict.fromkeys(METHODS, 0)
        for turn in range(arguments.rounds + 1):
            for name in METHODS:
                if device.type == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                duration = timed(partial(step, name, training), device)
                seconds[name] = min(seconds[name], duration if turn else float("inf"))
                if device.type == "cuda":
                    memory[name] = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        for name in METHODS:
            line = f"{length:6} {'training' if training else 'evaluation':10} {name:12} {1000 * seconds[name]:9.1f} ms"
            line += f" {seconds[name] / seconds['plain']:6.2f}x"
            print(line + (f" {memory[name] / 2**20:8.0f} MiB" if device.type == "cuda" else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="*", default=[64, 128, 256, 512])
    parser.add_argument("--tokens", type=int, default=2048, help="at a time (default: 2048)")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{name}, {arguments.layers} layers of {arguments.hidden}, {arguments.tokens} tokens at a time")
    for length in arguments.lengths:
        measure(length, arguments, device)


if __name__ == "__main__":
    main()
