"""What a command will need, ahead of time: for processes that run one command after another, each in a fork of theirs."""

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path

# What all models and tokenisers rest on, a thousand modules each, `transformers` imports only with the first of them.
_MODELS = (
    "xlgrid.training.recipe",
    "xlgrid.methods",
    "torch",
    "transformers.modeling_utils",
    "pyarrow.compute",
    "safetensors.torch",
)
# What the commands import when they run.
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
    "mini-encoder": ("xlgrid.training.mini", "xlgrid.models.load", "pandas", *_MODELS),
    "train": ("xlgrid.training.loop", *_MODELS),
    "evaluate": ("xlgrid.evaluation.cell", *_MODELS),
    "attention": ("xlgrid.evaluation.attention", "tokenizers", *_MODELS),
    "exhibit": ("xlgrid.study.schema", "xlgrid.exhibits.plots", "xlgrid.exhibits.sheet"),
}


def warm_up(arguments: Sequence[str]) -> None:
    """Import the libraries of a command, and load the encoder of an evaluation, unless it is that of the last evaluation.

    Touches no GPU and starts no thread, which would not survive a fork.

    Args:
        arguments: the command line of `xlgrid`, without the name of the program.
    """
    command = arguments[0] if arguments else ""
    for library in LIBRARIES.get(command, ()):
        import_module(library)
    if command == "evaluate":
        import torch

        from xlgrid.data import batches
        from xlgrid.evaluation import trained

        options = dict(pairwise(arguments))
        encoder, tokens = Path(options["--encoder"]), options["--tokens"]
        threads = torch.get_num_threads()
        # With more, OpenMP would start them.
        torch.set_num_threads(1)
        try:
            trained.preload(encoder.parent if encoder.suffix else encoder, batches.read(tokens))
        finally:
            torch.set_num_threads(threads)
