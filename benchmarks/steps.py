"""Steps of training per second, and TFLOP/s, of the methods of a study on one of its encoders, with random weights.

    python benchmarks/steps.py [--study foroutan2023] [--encoder mbert] [--methods full-ft bitfit ...]
        [--length 140] [--batch 32] [--steps 3] [--threads 1]

All inputs are in two languages and as long as each other; methods whose runs are on text predict masked tokens. A step is
forward, backward, clipping and AdamW, on the GPU where there is one, in bf16; a batch evaluated goes forward only. The
fastest step counts. One thread of a CPU is timed by what it computes, whatever else runs beside. TFLOP/s are by
the count of `xlgrid cost`.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from xlgrid.base.arrays import Segments
from xlgrid.base.device import default_device
from xlgrid.methods import Method, make
from xlgrid.models.load import model_class
from xlgrid.papers.foroutan2023.methods import Structured
from xlgrid.plan.estimate import Estimate
from xlgrid.plan.load import load_plan
from xlgrid.products.train import Run
from xlgrid.study.schema import Study


class Work:
    """A run's model and a batch for it."""

    def __init__(self, study: Study, run: Run, length: int, batch: int, device: torch.device) -> None:
        recipe = study.recipe(*run[1:])
        config = study.encoders[run.encoder].configuration(f"results/{study.name}/encoders/{run.encoder}")
        kind = study.tasks[run.task].task
        self.head = kind.head
        for name, value in self.head.settings(len(kind.labels)).items():
            setattr(config, name, value)
        self.method: Method = make(recipe.base, recipe.options)
        self.model: PreTrainedModel = model_class(config.model_type, self.head)(config)
        self.method.install(self.model)
        self.model.to(device)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(self.method.trains(name))
        self.weights = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(self.weights, lr=1e-5, fused=True)
        pairs = np.tile(np.array([0, 1], np.int16), (batch, 1))
        self.segments = Segments(np.full(batch, length * 3 // 4), ("en", "fr"), pairs, length)
        ids = torch.randint(1000, config.vocab_size, (batch, length), device=device)
        self.inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if masked := self.head.output_share:
            self.labels = ids.masked_fill(torch.rand(ids.shape, device=device) >= masked, -100)
        else:
            self.labels = torch.randint(len(kind.labels), (batch,), device=device)
        self.length, self.device, self.bf16 = length, device, device.type == "cuda"

    def forward(self, training: bool) -> tuple[torch.Tensor, torch.Tensor]:
        self.model.train(training)
        structured = isinstance(self.method, Structured)
        extra = self.method.arrange(self.segments, self.device, training) if structured else {}
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16), torch.set_grad_enabled(training):
            return self.head.scores(self.model, self.inputs | extra | {"labels": self.labels})

    def step(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        logits, due = self.forward(training=True)
        cross_entropy(logits.float(), due).backward()
        float(torch.nn.utils.clip_grad_norm_(self.weights, 1.0))
        self.optimiser.step()


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of some work: those that one thread of a CPU computes, or else those of a clock, until a GPU has ended."""
    clock = time.process_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = clock()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="foroutan2023")
    parser.add_argument("--encoder", default="mbert")
    parser.add_argument("--methods", nargs="*", help="names in the study (default: all)")
    parser.add_argument("--length", type=int, default=140, help="tokens of an input")
    parser.add_argument("--batch", type=int, default=32, help="inputs of a step")
    parser.add_argument("--steps", type=int, default=3, help="beside a first one that does not count")
    parser.add_argument("--threads", type=int, default=1, help="of a CPU")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = default_device()
    plan = load_plan(arguments.study)
    study, estimate = plan.study, Estimate(plan)
    one_of = {run.method: run for run in plan.runs if run.encoder == arguments.encoder}
    where = torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, threads: {arguments.threads}"
    print(f"{where}; {arguments.encoder}, {arguments.batch} inputs of {arguments.length} tokens")
    tokens = arguments.batch * arguments.length
    # One model at a time: a fully trained one takes 3 GB with its gradients and AdamW's moments.
    for name in arguments.methods or one_of:
        work, counted = (
            Work(study, one_of[name], arguments.length, arguments.batch, device),
            estimate.count(one_of[name]),
        )
        kinds: dict[str, tuple[Callable[[], object], float]] = {"training": (work.step, counted.training)}
        kinds["evaluation"] = partial(work.forward, training=False), counted.evaluation
        for kind, (act, operations) in kinds.items():
            best = min([seconds(act, device) for _ in range(arguments.steps + 1)][1:])
            line = f"{name:27} {kind:10} {1 / best:8.3f} steps/s {tokens / best:10,.0f} tokens/s"
            print(f"{line} {operations * tokens / best / 1e12:8.3f} TFLOP/s", flush=True)
        del work, kinds, act


if __name__ == "__main__":
    main()
