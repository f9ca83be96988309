"""Fetch or copy encoders and tokenizers, from the Hub or from disk, into folders in the format of transformers.

A tokenizer is a folder with tokenizer.json, tokenizer_config.json, and origin.json, which states its origin. An encoder
is a folder with config.json, model.safetensors, the files of its tokenizer, and encoder.json, which states its origin.
`xlgrid.data.tokenizer` and `xlgrid.training.pretraining` create such folders from scratch.
"""

import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from xlgrid.base.errors import Damaged, check_is_whole_file, first_sentence, is_result, whole_again
from xlgrid.data import checkpoints, weights
from xlgrid.data import lock as locks
from xlgrid.heads.families import BERT, FAMILIES
from xlgrid.heads.probe import type_advice, type_problem

# The files that are copied from a repository or folder. Weights in formats of other libraries are not copied.
_MODEL = [
    "config.json",
    checkpoints.WEIGHTS,
    *(name for name in checkpoints.LAYOUTS if name.endswith(checkpoints.INDEX)),
]
_TOKENIZER_FILES = ["tokenizer*", "vocab*", "merges.txt"]
_TOKENIZER_FILES += ["sentencepiece*", "special_tokens_map.json", "added_tokens.json", "*.model"]
# Transformers chooses the class of many tokenizers by the type of their model.
_TOKENIZER_FOLDER = [*_TOKENIZER_FILES, "config.json"]

# Files of older tokenizers, which transformers can convert to tokenizer.json. For the first pattern, it needs the
# package sentencepiece.
SENTENCEPIECE = "*.model"
OLDER = (SENTENCEPIECE, "vocab.txt", "vocab.json")

# The padding tokens of XLM-R and of BERT.
PADDING = ("<pad>", "[PAD]")


def encoder_files(folder: str | Path, coming: Collection[str] = ()) -> list[str]:
    """The files of an encoder in a folder, without its tokenizer: the existing files, and the required files.

    Args:
        coming: the names of files that will be in the folder later. They show the format of the weights.
    """
    try:
        names = [file.name for file in checkpoints.weight_files(Path(folder))]
    except Damaged:  # Copying reports the damage.
        names = []
    if not names:
        announced = (name for name in checkpoints.LAYOUTS if str(Path(folder) / name) in coming)
        names = [next(announced, checkpoints.WEIGHTS)]
    return _files(folder, _MODEL, ("config.json", *names))


def tokenizer_files(folder: str | Path) -> list[str]:
    """The files of a tokenizer in a folder: the existing files, and tokenizer.json, which is required."""
    return _files(folder, _TOKENIZER_FOLDER, ("tokenizer.json",))


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
    tokenizer: str | Path,
    folder: str | Path,
    lock: str | Path,
    modules: Mapping[str, str] | None = None,
    layers: int | None = None,
) -> None:
    """Fetch an encoder's config and weights from the Hub at the locked commit; add its tokenizer and encoder.json.

    Weights in several files are joined, and weights in PyTorch's pickle format are converted if there are no
    safetensors.

    Args:
        modules, layers: see `copy_encoder`.

    Raises:
        ValueError: the Hub cannot be reached, does not know the encoder, or has no weights for it; or `copy_encoder`
            raises an error.
    """
    downloaded, provenance = _fetched("encoder", hub, revision, _MODEL, lock)
    files = checkpoints.weight_files(downloaded)
    if not files or checkpoints.are_pickled(files):
        downloaded, _ = _fetched("encoder", hub, revision, [*_MODEL, checkpoints.PICKLED], lock)
        files = checkpoints.weight_files(downloaded)
    if shards := [file.name for file in files if not file.is_file()]:
        downloaded, _ = _fetched("encoder", hub, revision, [*_MODEL, *shards], lock)
    if not files:
        known = locks.ask("model", hub, provenance["commit"]).siblings or ()
        names = [file.rfilename for file in known]
        raise ValueError(checkpoints.weights_problem(f"{hub} at {revision}", names) or f"{hub} has no weights")
    copy_encoder(downloaded, tokenizer, folder, modules, layers, provenance)


def copy_encoder(
    path: str | Path,
    tokenizer: str | Path,
    folder: str | Path,
    modules: Mapping[str, str] | None = None,
    layers: int | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Copy an encoder's config and weights from a local folder; add its tokenizer and encoder.json.

    Args:
        tokenizer: the folder of the encoder's tokenizer.
        modules: for an encoder with modules for languages: the code of a language -> the name of its module. The module
            is renamed to the code.
        layers: keep only this many layers, the first ones; None keeps all.
        provenance: the origin for encoder.json; None states the folder.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: the folder has no encoder, or the encoder is damaged, has no embedding for a token of its tokenizer,
            lacks a module, has fewer than `layers` layers, or counts positions by another padding id.
    """
    _check_folder(Path(path), "encoder")
    about = dict(provenance or {"source": "local", "path": str(path)})
    source, tokenizer = Path(path), Path(tokenizer)
    check_encoder(source)
    with whole_folder(folder) as aside:
        for name in ("config.json", checkpoints.WEIGHTS):
            if (source / name).is_file():
                shutil.copy(source / name, aside / name)
        if not (aside / checkpoints.WEIGHTS).is_file():
            checkpoints.join_weights(source, aside / checkpoints.WEIGHTS)
            weights.check_names(aside, source)
        weights.check_numbers(aside, source)
        if (padding := check_fits(tokenizer, aside, source)) is not None:
            before = checkpoints.config_of(aside).get("pad_token_id")
            checkpoints.change_padding(aside, padding)
            about |= {"pad_token_id": {"origin": before, "tokenizer": padding}}
            print(f"{source}: {repadded(before, padding)}", file=sys.stderr)
        kind = checkpoints.config_of(aside)["model_type"]
        FAMILIES.get(kind, BERT).name_modules(aside, modules or {})
        if modules:
            about |= {"modules": dict(modules)}
        if layers:
            checkpoints.keep_layers(aside, layers)
            about |= {"layers": layers}
        add_tokenizer(tokenizer, aside)
        write_json(aside / "encoder.json", about)


def fetch_tokenizer(hub: str, revision: str, folder: str | Path, lock: str | Path) -> None:
    """Fetch the files of a tokenizer from the Hub at the locked commit; add origin.json.

    Raises:
        ValueError: the Hub cannot be reached, does not know the tokenizer, or has no tokenizer.json for it.
    """
    downloaded, provenance = _fetched("tokenizer", hub, revision, _TOKENIZER_FOLDER, lock)
    copy_tokenizer(downloaded, folder, provenance)


def copy_tokenizer(path: str | Path, folder: str | Path, provenance: Mapping[str, Any] | None = None) -> None:
    """Copy the files of a tokenizer from a local folder; add origin.json.

    Args:
        provenance: the origin for origin.json; None states the folder.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: the folder has no tokenizer.json, or the file is damaged.
    """
    _check_folder(Path(path), "tokenizer")
    token_ids(path)
    with whole_folder(folder) as aside:
        # For transformers, an empty mapping has the same meaning as no file.
        write_json(aside / "tokenizer_config.json", {})
        for file in _matching(Path(path), _TOKENIZER_FOLDER):
            shutil.copy(file, aside / file.name)
        write_json(aside / "origin.json", dict(provenance or {"source": "local", "path": str(path)}))


def add_tokenizer(tokenizer: str | Path, folder: Path) -> None:
    """Copy the files of a tokenizer into the folder of an encoder."""
    for file in _matching(Path(tokenizer), _TOKENIZER_FILES):
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
    except Exception as error:  # The Hub and the network raise errors of many types. The message names the repository.
        raise ValueError(f"cannot fetch the {what} {hub} at {commit[:7]}: {locks.said(error, 'model', hub)}") from error
    return downloaded, {"source": "hub", "hub": hub, "revision": revision, "commit": commit}


def check_encoder(folder: str | Path) -> None:
    """Check that the config and weights of an encoder exist and are not cut short. Pickled weights are not opened.

    Raises:
        FileNotFoundError: the folder is missing.
        ValueError: one of the files is missing or damaged, or config.json describes no encoder that transformers knows.
    """
    from safetensors import SafetensorError, safe_open

    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no encoder {folder}: make or fetch it first")
    again, made = _remedy(folder)
    if not (folder / "config.json").is_file():
        raise Damaged(
            f"{folder} has no config.json: an encoder is a folder of config.json, model.safetensors and "
            f"tokenizer.json; {again}",
            *made,
        )
    check_is_whole_file(folder / "config.json")
    _check_config(folder)
    files = checkpoints.weight_files(folder)
    for file in filter(Path.is_file, files):
        check_is_whole_file(file)
    if not files:
        names = [file.name for file in folder.iterdir()]
        raise Damaged(checkpoints.weights_problem(str(folder), names) or again, *made)
    if missing := [file.name for file in files if not file.is_file()]:
        raise Damaged(
            f"{folder} has no {missing[0]}, one of the {len(files)} files with its "
            f"weights{f' ({len(missing)} are missing)' if missing[1:] else ''}: copy or download "
            f"{'them' if missing[1:] else 'it'} again",
            *made,
        )
    for file in files:
        if checkpoints.are_pickled([file]):
            continue
        try:
            with safe_open(file, framework="numpy") as opened:
                opened.keys()
        except (SafetensorError, OSError) as error:
            raise Damaged(
                f"{file} is damaged, perhaps cut short at {file.stat().st_size:,} bytes ({error}): {again}", *made
            ) from error
    if not checkpoints.are_pickled(files):
        weights.check_names(folder)


def _remedy(folder: Path) -> tuple[str, list[Path]]:
    """The advice for a damaged encoder, and the paths to delete before the encoder is made again. Folders of the user
    are never deleted."""
    return whole_again(folder), [folder] if is_result(folder) else []


def _check_config(folder: Path) -> None:
    """Raise Damaged if an encoder's config.json is damaged, or if its model type does not belong to an encoder."""
    again, made = _remedy(folder)
    try:
        config = checkpoints.config_of(folder)
        kind = config.get("model_type")
    except (ValueError, AttributeError) as error:
        raise Damaged(f"{folder}/config.json is damaged ({error}): {again}", *made) from error
    problem = type_problem(config) if kind else f"has no `model_type`: {type_advice(config)}"
    if problem:
        raise Damaged(f"{folder}/config.json {problem}", *made)


def token_ids(folder: str | Path) -> dict[str, int]:
    """Token -> id, from the tokenizer.json in a folder.

    Raises:
        ValueError: the file is missing or damaged.
    """
    from tokenizers import Tokenizer

    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        names = [file.name for file in Path(folder).iterdir()] if Path(folder).is_dir() else []
        raise Damaged(without_tokenizer(str(folder), names), folder)
    check_is_whole_file(path)
    try:
        ids: dict[str, int] = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    except Exception as error:  # The tokenizers library raises bare Exceptions.
        raise Damaged(f"{path} is damaged ({error}): copy or fetch the tokenizer again", folder) from error
    return ids


def older_tokenizer(names: Iterable[str]) -> str | None:
    """The first of some file names from which transformers can make a tokenizer.json; None if no file is suitable."""
    return next((name for pattern in OLDER for name in sorted(names) if fnmatch(name, pattern)), None)


def without_tokenizer(place: str, names: Collection[str]) -> str:
    """The error message for a folder or repository without tokenizer.json.

    Args:
        place: the path of the folder, or the name of the repository, for the message.
        names: the names of the files there.
    """
    older = older_tokenizer(names)
    if older is None:
        return f"{place} has no tokenizer.json: save, make or fetch it"
    needed = " and the packages sentencepiece and protobuf" if fnmatch(older, SENTENCEPIECE) else ""
    return (
        f"{place} has no tokenizer.json, but {older}, from which transformers makes one: "
        f"`AutoTokenizer.from_pretrained(...).save_pretrained(...)` with transformers{needed}; then name the folder "
        "where it is saved as the `path` of a tokenizer, and the tokenizer in the entry of the encoder"
    )


def check_fits(tokenizer: Path, encoder: Path, origin: Path | None = None) -> int | None:
    """Check that an encoder has an embedding for every token of a tokenizer, and can use the tokenizer's padding.

    If config.json has another padding id, the encoder can still use the tokenizer's, unless it counts positions by it.

    Args:
        encoder: a folder with weights as safetensors.
        origin: the folder from which the encoder is copied, for errors.

    Returns:
        The padding id of the tokenizer if config.json has another one; otherwise None.

    Raises:
        ValueError: config.json or the tokenizer is damaged; the tokenizer has token ids without an
            embedding, or another padding than the encoder's positions.
    """
    from transformers import CONFIG_MAPPING

    ids = token_ids(tokenizer)
    name_of_padding = _padding(tokenizer, ids)
    # Transformers adds the special tokens that tokenizer_config.json names and tokenizer.json lacks.
    for special in (*([name_of_padding] if name_of_padding else []), *_special_tokens(tokenizer)):
        ids.setdefault(special, max(ids.values(), default=-1) + 1)
    own = ids[name_of_padding] if name_of_padding else None
    token, number = max(ids.items(), key=lambda entry: entry[1], default=("", -1))
    problem = f"the tokenizer {tokenizer} does not fit the encoder {origin or encoder}"
    embeddings = checkpoints.embedding_count(encoder)
    config = checkpoints.config_of(encoder)
    if embeddings is not None and number >= embeddings:
        raise ValueError(
            f"{problem}: the token {token!r} has the id {number:,}, but there are {embeddings:,} embeddings; use the "
            "tokenizer.json that was published with model.safetensors"
        )
    try:
        # If config.json lacks the id, the default of the model type is used.
        padding = CONFIG_MAPPING[config["model_type"]].from_dict(config).pad_token_id
    except Exception as error:  # Transformers raises errors of many types.
        raise Damaged(
            f"{origin or encoder}/config.json describes no encoder ({first_sentence(error)}): correct it"
        ) from error
    if own is None or padding == own:
        return None
    if checkpoints.counts_padding(config, own):
        raise ValueError(
            f"{problem}: its padding has the id {own}, and the padding of the encoder has the id {padding}, by which "
            f"an encoder of type {config['model_type']} counts positions; use the tokenizer.json that was published "
            "with model.safetensors, or correct `pad_token_id` in config.json"
        )
    return own


def _padding(tokenizer: Path, ids: Collection[str]) -> str | None:
    """The padding token: the token that the tokenizer's files name, or else a token with one of the usual names."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        try:
            token = json.loads((tokenizer / name).read_text(encoding="utf-8"))["pad_token"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        token = token.get("content") if isinstance(token, dict) else token
        if isinstance(token, str):
            return token
    return next((name for name in PADDING if name in ids), None)


def _special_tokens(tokenizer: Path) -> list[str]:
    """The special tokens in the files of a tokenizer other than tokenizer.json."""
    named: list[Any] = []
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        try:
            written = json.loads((tokenizer / file).read_text(encoding="utf-8"))
            for key, value in written.items():
                if key.endswith(("_token", "special_tokens", "added_tokens_decoder")):
                    named += value.values() if isinstance(value, dict) and "content" not in value else [value]
        except (OSError, ValueError, AttributeError):
            continue
    # Lists of tokens are one level deeper.
    flat = [token for entry in named for token in (entry if isinstance(entry, list) else [entry])]
    tokens = [token.get("content") if isinstance(token, dict) else token for token in flat]
    return [*dict.fromkeys(token for token in tokens if isinstance(token, str))]


def repadded(before: int | None, padding: int) -> str:
    """A remark for the log that the copy of an encoder has the padding of its tokenizer."""
    return (
        f"config.json has the `pad_token_id` {before}, and the tokenizer pads with {padding}: the copy has {padding}, "
        "which changes no output before training, because positions do not depend on padding"
    )


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """Yield a temporary folder next to `folder`. If the block succeeds, its files replace the files in `folder`.

    config.json and then the weights are moved last, because an encoder counts as complete once it has weights.
    """
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
    """Write JSON in the layout of transformers."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
