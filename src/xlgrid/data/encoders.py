"""Encoders from the Hub or from disk, as ordinary transformers folders; `xlgrid.training.mini` makes tiny ones from scratch.

An encoder is a folder with config.json, model.safetensors, tokenizer.json, tokenizer_config.json, and encoder.json, which
states its origin.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from xlgrid.base.errors import Damaged
from xlgrid.data import lock as locks

# The files that are copied from a repository or folder. The weights in the formats of other libraries are not.
_FILES = ["config.json", "model*.safetensors", "tokenizer*", "vocab*", "merges.txt"]
_FILES += ["sentencepiece*", "special_tokens_map.json", "added_tokens.json", "*.model"]

# The name's end of the tensor with one row per token, in the families of BERT.
EMBEDDINGS = "embeddings.word_embeddings.weight"


# Without any of these a folder is no encoder.
_REQUIRED = ("config.json", "model.safetensors", "tokenizer.json")


def encoder_files(folder: str | Path) -> list[str]:
    """The files of an encoder in a folder: those that it has, and those that every encoder must have."""
    present = sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []
    names = [file.name for file in present if file.is_file() and _is_taken(file.name)]
    return [str(Path(folder) / name) for name in dict.fromkeys([*_REQUIRED, *names])]


def _is_taken(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in _FILES)


def fetch_encoder(hub: str, revision: str, folder: str | Path, lock: str | Path) -> None:
    """Fetch an encoder's config, tokenizer and safetensors from the Hub at the locked commit; add encoder.json.

    Raises:
        ValueError: the Hub cannot be reached, does not know it, or has no weights as safetensors.
    """
    from huggingface_hub import snapshot_download

    commit = locks.commit(lock, "model", hub, revision)
    try:
        downloaded = Path(snapshot_download(hub, revision=commit, allow_patterns=_FILES, ignore_patterns=["*/*"]))
    except Exception as error:  # whatever the Hub or the network raise: name what was being fetched
        raise ValueError(f"cannot fetch the encoder {hub} at {commit[:7]}: {type(error).__name__}: {error}") from error
    _copy(downloaded, folder, {"source": "hub", "hub": hub, "revision": revision, "commit": commit})


def copy_encoder(path: str | Path, folder: str | Path) -> None:
    """Copy an encoder's config, tokenizer and safetensors from a local folder; add encoder.json.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: it is no encoder, or a damaged one.
    """
    path = Path(path)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}: check the path of the encoder")
    _copy(path, folder, {"source": "local", "path": str(path)})


def check_encoder(folder: str | Path) -> None:
    """Check that a folder has an encoder whose files are whole.

    Raises:
        FileNotFoundError: the folder is missing.
        ValueError: one of its files is missing, or config.json or the file of weights is damaged.
    """
    from safetensors import SafetensorError, safe_open

    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no encoder {folder}: make or fetch it first")
    for name in _REQUIRED:
        if not (folder / name).is_file():
            several = ", its weights are in several files" if list(folder.glob("model-*.safetensors")) else ""
            raise Damaged(
                f"{folder} has no {name}{several}: an encoder is a folder of config.json, model.safetensors and "
                "tokenizer.json; save it so, or make or fetch it again",
                folder,
            )
    try:
        json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise Damaged(
            f"{folder}/config.json is damaged ({error}): delete the folder and make it again", folder
        ) from error
    weights = folder / "model.safetensors"
    try:
        with safe_open(weights, framework="numpy") as opened:
            opened.keys()
    except (SafetensorError, OSError) as error:
        raise Damaged(
            f"{weights} is damaged, perhaps cut short at {weights.stat().st_size:,} bytes ({error}): "
            f"delete {folder} and make or fetch it again",
            folder,
        ) from error


def check_vocabulary(folder: Path) -> None:
    """Check that an encoder has an embedding for every token of its tokenizer.

    Raises:
        ValueError: the tokenizer is damaged, or has token ids without an embedding.
    """
    from safetensors import safe_open
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    try:
        vocabulary = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    except Exception as error:  # The tokenizers library raises bare Exceptions.
        raise Damaged(f"{path} is damaged ({error}): copy or fetch the encoder again", folder) from error
    with safe_open(folder / "model.safetensors", framework="numpy") as weights:
        sizes = [weights.get_slice(name).get_shape()[0] for name in weights.keys() if name.endswith(EMBEDDINGS)]  # noqa: SIM118
    token, number = max(vocabulary.items(), key=lambda entry: entry[1], default=("", -1))
    if sizes and number >= sizes[0]:
        raise ValueError(
            f"the tokenizer of {folder} does not fit its weights: the token {token!r} has the id {number:,}, but there are "
            f"{sizes[0]:,} embeddings; take tokenizer.json from where model.safetensors is from"
        )


def _copy(source: Path, folder: str | Path, provenance: dict[str, Any]) -> None:
    check_encoder(source)
    check_vocabulary(source)
    with whole_folder(folder) as aside:
        for file in sorted(source.iterdir()):
            if file.is_file() and _is_taken(file.name):
                shutil.copy(file, aside / file.name)
        write_json(aside / "encoder.json", provenance)


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`. If the block succeeds, its files replace those in `folder`, config.json last."""
    folder = Path(folder)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        yield aside
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if not (aside / old.name).exists():
                old.unlink()
        for file in sorted(aside.iterdir(), key=lambda file: file.name == "config.json"):
            with file.open("rb") as written:
                os.fsync(written.fileno())
            file.replace(folder / file.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write JSON as transformers does."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
