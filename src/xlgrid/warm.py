"""Imports the libraries of a command before a process forks to run the command.

The workers of the submitit executor run each command in a fork, or evaluations one after another in the same fork
(`xlgrid.cli.serve`).
"""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module

from xlgrid.base import provenance

# `transformers` imports about a thousand modules with the first model, and as many again with the first tokenizer.
MODELS = (
    "xlgrid.training.recipe",
    "xlgrid.methods",
    "torch",
    "transformers.modeling_utils",
    "pyarrow.compute",
    "safetensors.torch",
)
# With this variable, torch asks the driver which GPUs there are, and does not initialise CUDA, which no fork could then use.
_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
_EXHIBITS = ("xlgrid.plan.load", "xlgrid.exhibits.drawing.plots", "xlgrid.exhibits.drawing.sheet", "seaborn")
# Command -> the libraries that it imports when it runs.
LIBRARIES = {
    "meanings": ("xlgrid.data.sources", "pandas", "pyarrow.parquet"),
    "data": ("xlgrid.data.sources", "pandas", "pyarrow.parquet"),
    "text": ("xlgrid.data.text", "pandas", "pyarrow.parquet"),
    "tokenize": (
        "xlgrid.data.tokenize",
        "transformers.models.auto.tokenization_auto",
        "pandas",
        "pyarrow.dataset",
        "pyarrow.parquet",
    ),
    "tokenizer": ("xlgrid.data.tokenizer", "pyarrow.parquet", "tokenizers"),
    "checkpoint-encoder": ("xlgrid.training.pretraining", *MODELS),
    "pretrain": ("xlgrid.training.pretraining", *MODELS),
    "train": ("xlgrid.training.loop", *MODELS),
    "merge": ("xlgrid.merging.merge", *MODELS),
    "evaluate": ("xlgrid.evaluation.cell", *MODELS),
    "exhibit": _EXHIBITS,
    "claims": ("xlgrid.exhibits.claims", "scipy.optimize", *_EXHIBITS),
}


def warm_up(arguments: Sequence[str], further: Mapping[str, Sequence[str]] = {}) -> None:
    """Import the libraries of a command.

    The function uses no GPU and starts no thread, because neither survives a fork.

    Args:
        arguments: the command line of `xlgrid`, without the name of the program.
        further: command -> libraries, for commands that papers add.
    """
    command = arguments[0] if arguments else ""
    libraries = {**LIBRARIES, **further}.get(command, ())
    before = os.environ.get(_NVML)
    os.environ[_NVML] = "1"
    try:
        for library in libraries:
            import_module(library)
    finally:
        # A fork asks CUDA, which also tells whether torch can use the GPU.
        del os.environ[_NVML]
        os.environ.update({} if before is None else {_NVML: before})
    if MODELS[0] in libraries:
        # The result is cached, so that the forks do not call git.
        provenance.commit()
