"""Encoders and vocabularies from the Hub or from disk, as ordinary transformers folders.

A vocabulary is a folder with tokenizer.json, tokenizer_config.json, and origin.json, which states its origin. An encoder is a
folder with config.json, model.safetensors, the files of its vocabulary, and encoder.json, which states its origin.
`xlgrid.data.vocabulary` and `xlgrid.training.pretraining` make such folders from scratch.
"""

import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from xlgrid.base.errors import Damaged
from xlgrid.base.names import unknown
from xlgrid.data import checkpoints
from xlgrid.data import lock as locks
from xlgrid.heads.families import EMBEDDINGS, FAMILIES

# The files that are copied from a repository or folder. The weights in the formats of other libraries are not.
_MODEL = ["config.json", "model*.safetensors"]
_TOKENIZER = ["tokenizer*", "vocab*", "merges.txt"]
_TOKENIZER += ["sentencepiece*", "special_tokens_map.json", "added_tokens.json", "*.model"]
# Transformers takes the class of many tokenizers from the type of their model.
_VOCABULARY = [*_TOKENIZER, "config.json"]

# Files of tokenizers that transformers can write as tokenizer.json; it reads the first ones by the package sentencepiece.
SENTENCEPIECE = "*.model"
OLDER = (SENTENCEPIECE, "vocab.txt", "vocab.json")

# The token that fills the ends of a batch, in the families of XLM-R and of BERT.
PADDING = ("<pad>", "[PAD]")


def encoder_files(folder: str | Path) -> list[str]:
    """The files of an encoder in a folder, without its vocabulary: those that it has, and those that every encoder must have."""
    pickled = checkpoints.is_pickled(Path(folder))
    return _files(folder, _MODEL, ("config.json", checkpoints.PICKLED if pickled else "model.safetensors"))


def vocabulary_files(folder: str | Path) -> list[str]:
    """The files of a vocabulary in a folder: those that it has, and tokenizer.json, which every vocabulary must have."""
    return _files(folder, _VOCABULARY, ("tokenizer.json",))


def _files(folder: str | Path, patterns: Sequence[str], required: Sequence[str]) -> list[str]:
    present = [file.name for file in _matching(Path(folder), patterns)] if Path(folder).is_dir() else []
    return [str(Path(folder) / name) for name in dict.fromkeys([*required, *present])]


def _matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    return [
        file
        for file in sorted(folder.iterdir())
        if file.is_file() and any(fnmatch(file.name, pattern) for pattern in patterns)
    ]


def fetch_encoder(
    hub: str,
    revision: str,
    vocabulary: str | Path,
    folder: str | Path,
    lock: str | Path,
    modules: Mapping[str, str] | None = None,
    layers: int | None = None,
) -> None:
    """Fetch an encoder's config and weights from the Hub at the locked commit; add its vocabulary and encoder.json.

    Weights that are there in PyTorch's own format only are converted.

    Args:
        modules, layers: as for `copy_encoder`.

    Raises:
        ValueError: the Hub cannot be reached, does not know it, or has no weights; or `copy_encoder`.
    """
    downloaded, provenance = _fetched("encoder", hub, revision, _MODEL, lock)
    if not list(downloaded.glob("model*.safetensors")):
        downloaded, _ = _fetched("encoder", hub, revision, [*_MODEL, checkpoints.PICKLED], lock)
    _copy_encoder(downloaded, Path(vocabulary), folder, provenance, modules or {}, layers)


def copy_encoder(
    path: str | Path,
    vocabulary: str | Path,
    folder: str | Path,
    modules: Mapping[str, str] | None = None,
    layers: int | None = None,
) -> None:
    """Copy an encoder's config and weights from a local folder; add its vocabulary and encoder.json.

    Args:
        vocabulary: the folder of the encoder's vocabulary.
        modules: of an encoder with modules for languages: the code of a language -> the name of its module, which is renamed.
        layers: the number of layers to keep, the first ones; None for all.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: it is no encoder, or a damaged one, or has no embedding for some token of its vocabulary, no such module, or
            fewer layers.
    """
    _check_folder(Path(path), "encoder")
    _copy_encoder(Path(path), Path(vocabulary), folder, {"source": "local", "path": str(path)}, modules or {}, layers)


def fetch_vocabulary(hub: str, revision: str, folder: str | Path, lock: str | Path) -> None:
    """Fetch the files of a tokenizer from the Hub at the locked commit; add origin.json.

    Raises:
        ValueError: the Hub cannot be reached, does not know it, or has no tokenizer.json.
    """
    downloaded, provenance = _fetched("vocabulary", hub, revision, _VOCABULARY, lock)
    _copy_vocabulary(downloaded, folder, provenance)


def copy_vocabulary(path: str | Path, folder: str | Path) -> None:
    """Copy the files of a tokenizer from a local folder; add origin.json.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: it has no tokenizer.json, or a damaged one.
    """
    _check_folder(Path(path), "vocabulary")
    _copy_vocabulary(Path(path), folder, {"source": "local", "path": str(path)})


def copy_tokenizer(vocabulary: str | Path, folder: Path) -> None:
    """Copy the files of a vocabulary's tokenizer into the folder of an encoder."""
    for file in _matching(Path(vocabulary), _TOKENIZER):
        shutil.copy(file, folder / file.name)


def _check_folder(path: Path, what: str) -> None:
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}: check the path of the {what}")


def _fetched(what: str, hub: str, revision: str, patterns: list[str], lock: str | Path) -> tuple[Path, dict[str, Any]]:
    """The folder with the files of a repository at the locked commit, and a statement of their origin."""
    from huggingface_hub import snapshot_download

    commit = locks.commit(lock, "model", hub, revision)
    try:
        downloaded = Path(snapshot_download(hub, revision=commit, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except Exception as error:  # whatever the Hub or the network raise: name what was being fetched
        raise ValueError(f"cannot fetch the {what} {hub} at {commit[:7]}: {type(error).__name__}: {error}") from error
    return downloaded, {"source": "hub", "hub": hub, "revision": revision, "commit": commit}


def check_encoder(folder: str | Path) -> None:
    """Check that the config and weights of an encoder are there and whole.

    Raises:
        FileNotFoundError: the folder is missing.
        ValueError: one of the files is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open
    from transformers import CONFIG_MAPPING

    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no encoder {folder}: make or fetch it first")
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            several = ", its weights are in several files" if list(folder.glob("model-*.safetensors")) else ""
            raise Damaged(
                f"{folder} has no {name}{several}: an encoder is a folder of config.json, model.safetensors and "
                "tokenizer.json; save it so, or make or fetch it again",
                folder,
            )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = config.get("model_type")
    except (ValueError, AttributeError) as error:
        raise Damaged(
            f"{folder}/config.json is damaged ({error}): delete the folder and make it again", folder
        ) from error
    if kind not in CONFIG_MAPPING:
        problem = f"has the {unknown('model_type', kind, FAMILIES)}" if kind else "has no `model_type`"
        raise Damaged(
            f"{folder}/config.json {problem}: take the config.json that was saved with the weights, or a version of transformers that knows "
            "the type",
            folder,
        )
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


def token_ids(folder: str | Path) -> dict[str, int]:
    """Token -> id, of the tokenizer.json in a folder.

    Raises:
        ValueError: the file is missing or damaged.
    """
    from tokenizers import Tokenizer

    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        names = [file.name for file in Path(folder).iterdir()] if Path(folder).is_dir() else []
        raise Damaged(without_tokenizer(str(folder), names), folder)
    try:
        ids: dict[str, int] = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    except Exception as error:  # The tokenizers library raises bare Exceptions.
        raise Damaged(f"{path} is damaged ({error}): copy or fetch the vocabulary again", folder) from error
    return ids


def older_tokenizer(names: Iterable[str]) -> str | None:
    """The file, among those with these names, from which transformers makes a tokenizer.json; None if there is none."""
    return next((name for pattern in OLDER for name in sorted(names) if fnmatch(name, pattern)), None)


def without_tokenizer(place: str, names: Collection[str]) -> str:
    """The problem of a folder or repository without tokenizer.json, and the way out.

    Args:
        place: where the folder is, or which repository it is.
        names: those of its files.
    """
    older = older_tokenizer(names)
    if older is None:
        return f"{place} has no tokenizer.json, of which a vocabulary consists: save, make or fetch it"
    needed = " and the packages sentencepiece and protobuf" if fnmatch(older, SENTENCEPIECE) else ""
    return (
        f"{place} has no tokenizer.json, of which a vocabulary consists, but {older}, from which transformers makes one: "
        f"`AutoTokenizer.from_pretrained(...).save_pretrained(...)` with transformers{needed}; then name the folder where it is saved as the "
        "`path` of a vocabulary, and the vocabulary in the entry of the encoder"
    )


def check_vocabulary(vocabulary: Path, encoder: Path, origin: Path | None = None) -> None:
    """Check that an encoder has an embedding for every token of a vocabulary, and the same id of padding.

    Args:
        origin: the folder from which the encoder is copied, for errors.

    Raises:
        ValueError: the vocabulary is damaged, or has token ids without an embedding, or another padding.
    """
    from safetensors import safe_open

    ids = token_ids(vocabulary)
    token, number = max(ids.items(), key=lambda entry: entry[1], default=("", -1))
    padding = json.loads((encoder / "config.json").read_text(encoding="utf-8")).get("pad_token_id")
    own = next((ids[name] for name in PADDING if name in ids), None)
    if None not in (padding, own) and padding != own:
        raise ValueError(
            f"the vocabulary {vocabulary} does not fit the encoder {origin or encoder}: its padding has the id {own}, and that of the "
            f"encoder {padding}; take tokenizer.json from where model.safetensors is from, or name that vocabulary"
        )
    with safe_open(encoder / "model.safetensors", framework="numpy") as weights:
        sizes = [weights.get_slice(name).get_shape()[0] for name in weights.keys() if name.endswith(EMBEDDINGS)]  # noqa: SIM118
    if sizes and number >= sizes[0]:
        raise ValueError(
            f"the vocabulary {vocabulary} does not fit the encoder {origin or encoder}: the token {token!r} has the id {number:,}, but "
            f"there are {sizes[0]:,} embeddings; take tokenizer.json from where model.safetensors is from"
        )


def _copy_encoder(
    source: Path,
    vocabulary: Path,
    folder: str | Path,
    provenance: dict[str, Any],
    modules: Mapping[str, str],
    layers: int | None,
) -> None:
    pickled = checkpoints.is_pickled(source)
    if not pickled:
        check_encoder(source)
    with whole_folder(folder) as aside:
        for file in _matching(source, _MODEL):
            shutil.copy(file, aside / file.name)
        if pickled:
            checkpoints.convert(source / checkpoints.PICKLED, aside / checkpoints.WEIGHTS)
            check_encoder(aside)
        check_vocabulary(vocabulary, aside, source)
        if modules:
            checkpoints.rename_modules(aside, modules)
            provenance = provenance | {"modules": dict(modules)}
        if layers:
            checkpoints.keep_layers(aside, layers)
            provenance = provenance | {"layers": layers}
        checkpoints.check_modules(aside)
        copy_tokenizer(vocabulary, aside)
        write_json(aside / "encoder.json", provenance)


def _copy_vocabulary(source: Path, folder: str | Path, provenance: dict[str, Any]) -> None:
    token_ids(source)
    with whole_folder(folder) as aside:
        # An empty file is the same to transformers as none.
        write_json(aside / "tokenizer_config.json", {})
        for file in _matching(source, _VOCABULARY):
            shutil.copy(file, aside / file.name)
        write_json(aside / "origin.json", provenance)


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`. If the block succeeds, its files replace those in `folder`, of an encoder
    config.json and then the weights last, because an encoder that has weights is complete."""
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
        for file in sorted(
            aside.iterdir(), key=lambda file: (file.name == "model.safetensors", file.name == "config.json")
        ):
            with file.open("rb") as written:
                os.fsync(written.fileno())
            file.replace(folder / file.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write JSON as transformers does."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
