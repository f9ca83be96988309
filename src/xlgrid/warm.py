"""What a command will need, ahead of time: for processes that run one command after another, each in a fork of theirs."""

from collections.abc import Sequence
from importlib import import_module

_MODELS = ("xlgrid.recipe", "xlgrid.methods", "torch", "transformers", "pyarrow.compute", "safetensors.torch")
# What the commands import when they run.
LIBRARIES = {
    "meanings": ("xlgrid.data", "pandas", "pyarrow.parquet"),
    "data": ("xlgrid.data", "pandas", "pyarrow.parquet"),
    "text": ("xlgrid.text", "pandas", "pyarrow.parquet"),
    "tokenize": ("xlgrid.tokens", "transformers", "pandas", "pyarrow.parquet"),
    "mini-encoder": ("xlgrid.mini", "xlgrid.evaluate", "pandas", *_MODELS),
    "train": ("xlgrid.train", *_MODELS),
    "evaluate": ("xlgrid.evaluate", *_MODELS),
    "exhibit": ("xlgrid.render", "xlgrid.plots", "xlgrid.tables"),
}


def warm_up(arguments: Sequence[str]) -> None:
    """Import the libraries of a command; load the encoder of a run or cell, if it is not the last one again.

    Touches no GPU and starts no thread, which would not survive a fork.
    """
    command = arguments[0] if arguments else ""
    for library in LIBRARIES.get(command, ()):
        import_module(library)
    if command == "evaluate":
        from xlgrid.grid import Cell, parse

        cell = parse(arguments[1])
        assert isinstance(cell, Cell)
        _load(cell.encoder_folder, cell.tokens)
    elif command == "train":
        found = dict(
            word.removeprefix("--").split("=", 1) for word in arguments if word.startswith("--") and "=" in word
        )
        encoder = arguments[arguments.index("--encoder") + 1]
        _load(encoder, found["train"])


def _load(encoder: str, tokens: str) -> None:
    import torch

    from xlgrid import batches, evaluate

    threads = torch.get_num_threads()
    # With more, OpenMP would start them.
    torch.set_num_threads(1)
    try:
        evaluate.preload(encoder, batches.read(tokens))
    finally:
        torch.set_num_threads(threads)
