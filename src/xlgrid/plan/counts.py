"""The parameters of the models of a study, kept between commands.

The counts are those of `xlgrid.models.parameters`, which needs torch and transformers. Importing these takes seconds, but
the counts of a model never change. Each is kept in a file below `~/.cache/xlgrid/counts`, whose name is a digest of all on
which the counts depend, in a folder for each version of the code. The folder may be deleted at any time.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.base.files import write_text
from xlgrid.heads import Head
from xlgrid.models.parameters import Count, count

if TYPE_CHECKING:
    from xlgrid.architectures.architecture import Architecture
    from xlgrid.plan.plan import Plan

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "xlgrid", "counts")


class Sizes(NamedTuple):
    """The sizes of an encoder, by their names in config.json."""

    num_hidden_layers: int
    hidden_size: int
    vocab_size: int


def counted(
    plan: "Plan",
    encoder: str,
    head: Head,
    labels: int,
    base: str,
    options: Mapping[str, Any],
    *,
    entries: int | None = None,
    embeddings: bool = False,
    pretraining: bool = False,
    scratch: "Architecture | None" = None,
) -> tuple[Count, Sizes]:
    """The parameters of a model, and the sizes of its encoder.

    Args:
        encoder: the name of the encoder in the study.
        head, labels, base, options, embeddings, pretraining: see `xlgrid.models.parameters.count`.
        entries: the number of entries of the tokenizer, if it is not the encoder's.
        scratch: the architecture of the encoder, if the modules count that only its pre-training has.

    Raises:
        ValueError: the size of the encoder is not known, or the method cannot be used with it.
    """
    entry = plan.study.encoders[encoder]
    model = [entry.basis(plan, encoder), head.name, vars(head), labels, base, dict(options)]
    stated = json.dumps([*model, entries, embeddings, pretraining, scratch], default=lambda part: part.model_dump())
    path = FOLDER / _code() / f"{hashlib.sha256(stated.encode()).hexdigest()}.json"
    with suppress(OSError, ValueError, TypeError):
        kept, sizes = json.loads(path.read_text(encoding="utf-8"))
        return Count(*kept), Sizes(*sizes)
    config = entry.planned_configuration(plan, encoder)
    config.vocab_size = entries or config.vocab_size
    extend = scratch.install if scratch else None
    found = count(config, head, labels, base, options, embeddings, pretraining, extend)
    sizes = Sizes(*(getattr(config, name) for name in Sizes._fields))
    if not path.parent.exists():
        # The counts of other versions of the code are not needed any more.
        shutil.rmtree(FOLDER, ignore_errors=True)
    with suppress(OSError):
        write_text(path, json.dumps([found, sizes]))
    return found, sizes


@cache
def _code() -> str:
    """The digest of the code of xlgrid, of all packages that add parts to it, and of the version of transformers."""
    digest = hashlib.sha256(metadata.version("transformers").encode())
    declared = (point for each in metadata.distributions() for point in each.entry_points)
    points = [point for point in declared if point.group.startswith("xlgrid.")]
    for name in sorted({"xlgrid", *(point.module.partition(".")[0] for point in points)}):
        spec = util.find_spec(name)
        places = [*map(Path, spec.submodule_search_locations or [spec.origin or ""])] if spec else []
        for file in sorted(file for place in places for file in (place.rglob("*.py") if place.is_dir() else [place])):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
