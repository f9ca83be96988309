"""Looks at data on the Hub or in local files: which languages, splits and columns they have, and some of their rows."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xlgrid.data import formats
from xlgrid.data import lock as locks
from xlgrid.data.sources import origin_of
from xlgrid.starters.codes import check_found, languages_of, layout, splits_of
from xlgrid.tasks import task

if TYPE_CHECKING:
    import pyarrow as pa

# At most this many rows of a split on the Hub are read; of local files, all.
ROWS = 5000
# The types of files on the Hub that xlgrid reads itself.
_OWN = (".csv", ".tsv", *formats.WORDS)


class Place(NamedTuple):
    """Where data are, and how they call languages and splits.

    Attributes:
        source: what messages call the data.
        data: the keys of `data` in a study, without `names` and `splits`.
        names: language -> the names of its data, the best one first.
        splits: split of a study -> its name.
        present: the names of a language and of a split that go together.
        why: a sentence on what was found.
        counts: the names of a language and of a split -> the number of rows that the card states.
    """

    source: str
    data: dict[str, Any]
    names: dict[str, list[str]]
    splits: dict[str, str]
    present: set[tuple[str, str]]
    why: str
    counts: dict[tuple[str, str], int]

    def has(self, language: str, split: str) -> bool:
        """Whether a language has a split."""
        pairs = {(name, self.splits.get(split)) for name in (self.names[language][0], "")}
        return not self.present.isdisjoint(pairs)

    def stated(self, language: str, split: str) -> int | None:
        """The number of rows that the card states; None if it states none."""
        configuration = self.data.get("name", "default") if "languages" in self.data else self.names[language][0]
        return self.counts.get((configuration, self.splits[split]))

    def entry(self) -> dict[str, Any]:
        """The keys of `data` in a study. `names` has only languages that the data call otherwise."""
        entry = dict(self.data)
        others = {code: names[0] for code, names in self.names.items() if names[0] != code}
        stems = {name.replace(code, "{language}", 1) for code, (name, *_) in self.names.items()}
        if entry.get("name") == "{language}" and len(stems) == 1 and "{language}" in (stem := stems.pop()):
            # `PAN-X.{language}` needs no names.
            entry["name"], others = stem, {}
        if others:
            # Without `name`, the data would have the languages in `names` only.
            entry |= {"name": "{language}"} if len(others) < len(self.names) else {}
            entry["names"] = others
        elif "local" in entry:
            entry["local"] = entry["local"].replace("{name}", "{language}")
        defaults = {"dev": "validation"} if "hub" in entry else {}
        if splits := {split: name for split, name in self.splits.items() if name != defaults.get(split, split)}:
            entry["splits"] = splits
        return entry


def on_hub(name: str, wanted: Sequence[str] | None) -> Place:
    """A data set on the Hub.

    Raises:
        ValueError: the Hub does not answer, does not have the data set, or has no files of it that xlgrid reads.
    """
    try:
        answer = locks.ask("dataset", name, "main", locks.PATIENCE)
    except locks.Unreachable as error:
        advice = "run this where there is a network, or name files with --data"
        raise ValueError(f"--task {name}: the Hub does not answer ({error}): {advice}") from None
    except ValueError as error:
        raise ValueError(f"--task {name}: {error}") from None
    if getattr(answer, "gated", False) and not locks.admits("dataset", name):
        raise ValueError(f"--task {name} is {locks.closed('dataset', name)}")
    files = [sibling.rfilename for sibling in answer.siblings or ()]
    if f"{name.rpartition('/')[2]}.py" not in files:
        return _of_configurations(name, files, answer, wanted)
    try:
        copy = locks.ask("dataset", name, locks.PARQUET_BRANCH, locks.PATIENCE).siblings or ()
    except ValueError:  # There is no copy.
        copy = ()
    # `datasets`, which reads other types, reads nothing beside a script.
    own = [file for file in files if formats.type_of(file) in _OWN]
    for branch, every, why in (
        (
            {"revision": locks.PARQUET_BRANCH},
            [each.rfilename for each in copy],
            "the Hub keeps its data in parquet files on a branch",
        ),
        ({}, own, "the files beside it are read"),
    ):
        pattern, present = layout(every, wanted)
        if pattern:
            data = {"hub": name, **branch, "files": pattern}
            return _place(name, data, present, wanted, f"The main branch is a script, which is not run; {why}", answer)
    advice = "download the data, and name them with --data"
    raise ValueError(f"--task {name} is a script, which is not run, without files of data beside it: {advice}")


def in_files(pattern: str, wanted: Sequence[str] | None) -> Place:
    """Local files, by the pattern of their paths.

    Raises:
        ValueError: there are no such files, or the pattern has no place for the split.
    """
    if "{split}" not in pattern:
        raise ValueError(
            f"--data {pattern}: {{split}} is missing, which stands for train, dev and test: "
            "write a path such as names/{language}/{split}.conll"
        )
    general = pattern.removeprefix("./").replace("{language}", "{name}")
    # What stands in place of a brace stands there each time.
    expression = re.escape(general)
    for brace in ("name", "split"):
        mark = re.escape(f"{{{brace}}}")
        expression = expression.replace(mark, f"(?P<{brace}>[^/]+?)", 1).replace(mark, f"(?P={brace})")
    top = Path(general.partition("{")[0] + "x").parent
    paths = (str(path).removeprefix("./") for path in sorted(top.rglob("*")))
    matches = [match.groupdict() for path in paths if (match := re.fullmatch(expression, path))]
    if not matches:
        raise ValueError(f"--data {pattern}: no file below {top} has such a path: correct the pattern")
    present = {(match.get("name", ""), match["split"]) for match in matches}
    return _place(pattern, {"local": pattern.replace("{language}", "{name}")}, present, wanted, "")


def _of_configurations(name: str, files: Sequence[str], answer: Any, wanted: Sequence[str] | None) -> Place:
    """The place of a data set that declares configurations, or whose files are named by language."""
    from datasets import get_dataset_config_names, get_dataset_split_names

    try:
        known = get_dataset_config_names(name, revision=answer.sha)
        names, (pattern, present) = languages_of(known, wanted), layout(files, wanted)
        if len(every := languages_of(known, None)) > 1:
            check_found(name, wanted or (), names, every)
        elif not names and "{name}" in pattern:
            why = "No configuration is named by language; the files are"
            return _place(name, {"hub": name, "files": pattern}, present, wanted, why, answer)
        first = next(iter(names.values()), known)[0]
        splits = get_dataset_split_names(name, first, revision=answer.sha)
    except Exception as error:  # whatever the Hub, the network or a file format raise
        raise ValueError(f"--task {name}: {locks.said(error, 'dataset', name)}") from error
    chosen = "{language}" if names else first
    stated = {*_counts(answer)}
    if not names or {config for config, _ in stated} < {*known}:
        stated = {(config, split) for config in (known if names else [""]) for split in splits}
    data = {"hub": name} | ({"name": chosen} if chosen != "default" else {})
    why = f"Its configurations are {', '.join(known[:8])}{', ...' * (len(known) > 8)}"
    return _place(name, data, stated, wanted, why, answer)


def _counts(answer: Any) -> dict[tuple[str, str], int]:
    """The numbers of rows that the card of a data set states, by the names of configuration and split."""
    listed = (getattr(answer, "card_data", None) or {}).get("dataset_info") or []
    infos = [info for info in (listed if isinstance(listed, list) else [listed]) if isinstance(info, dict)]
    splits = [(info.get("config_name", "default"), split) for info in infos for split in info.get("splits") or ()]
    return {(config, split["name"]): split["num_examples"] for config, split in splits if "num_examples" in split}


def _place(
    source: str,
    data: dict[str, Any],
    present: set[tuple[str, str]],
    wanted: Sequence[str] | None,
    why: str,
    answer: Any = None,
) -> Place:
    """The place of data with some names of languages and splits.

    Raises:
        ValueError: a wanted language is not there, or nothing says in which language the data are.
    """
    named = sorted({name for name, _ in present if name})
    names, splits = languages_of(named, wanted), splits_of(split for _, split in present)
    if names or "{name}" in str(data):
        check_found(source, wanted or (), names, languages_of(named, None))
    else:
        stated = getattr(getattr(answer, "card_data", None), "language", None) or []
        codes = wanted or [*languages_of([stated] if isinstance(stated, str) else stated, None)]
        if len(codes) == 1:
            data, names = data | {"languages": codes}, {code: [code] for code in codes}
    if not names:
        raise ValueError(
            f"{source}: nothing says in which language the data are: name one language with --languages, or "
            "put {language} into the path of --data"
        )
    return Place(source, data, names, splits, present, why, _counts(answer))


def rows(place: Place, head: str, language: str, split: str) -> "pa.Table":
    """The rows of a split: all of those in files, and at most `ROWS` of those on the Hub.

    Args:
        head: the head that reads files of words.

    Raises:
        OSError, ValueError: the data cannot be read.
    """
    import pyarrow as pa
    from datasets import load_dataset

    origin: Any = origin_of(place.entry())
    kind, paths = formats.type_of(origin.pattern or ""), map(Path, origin.paths(language, split))
    # Between the sentences of tsv files of words there are empty lines.
    has_words = kind in (*formats.WORDS, formats.LINES) or (
        kind == ".tsv" and any("" in map(str.strip, path.read_text("utf-8").splitlines()) for path in paths)
    )
    columns = {"inputs": ["tokens"], "target": "deprel" if head == "parse" else "tags", "labels": ["O", "X"]}
    described = task(head if has_words else "sequence", columns)
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder, "lock.yaml")
        if origin.repository is None or origin.is_file(described):
            table: pa.Table = origin.read(described, language, split, lock)[0]
            return table
        name, commit = origin.named(split), locks.commit(lock, "dataset", origin.hub, origin.revision)
    try:
        stream = load_dataset(**origin.arguments(language, split), revision=commit, split=name, streaming=True)
        taken = [*stream.take(ROWS)]
        return pa.Table.from_pylist(taken, schema=stream.features and stream.features.arrow_schema)
    except Exception as error:  # whatever the Hub, the network or a file format raise
        where = f"{origin.hub} ({origin.configuration(language) or 'default'}, {name})"
        raise ValueError(f"cannot read {where}: {locks.said(error, 'dataset', origin.hub)}") from error
