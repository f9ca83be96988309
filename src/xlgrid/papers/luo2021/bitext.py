"""Parallel sentences from OPUS archives in Moses format.

An archive has a file for each language of a pair. Line i of one file is the translation of line i of the other file.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from heapq import heappush, heappushpop
from itertools import zip_longest
from pathlib import Path
from typing import IO

from xlgrid.base.files import whole
from xlgrid.data.downloads.archives import opened, reading, shown
from xlgrid.languages.sources import Target

# The dev set and the test set each have at most this many pairs of sentences, and at most one in `SHARE` of the
# different pairs.
HELD_OUT = 1000
SHARE = 10
_MARK = b"\xef\xbb\xbf"
Pair = tuple[str, str]


def join_bitext(archives: Sequence[str | Path], pair: str, folder: str | Path) -> None:
    """Write `train.jsonl`, `dev.jsonl` and `test.jsonl`. The columns `first` and `second` have the sentences in the
    first and second language of the pair.

    The name of an archive is its pair on OPUS, such as `en-zh_cn.txt.zip`, in either order. A pair of sentences is left
    out, and counted on stderr, if one of its sentences is empty or not in UTF-8. The dev and test sets are sampled from
    the distinct pairs of all archives, so a pair that occurs often is as likely as a pair that occurs once. Pairs in
    the dev or test set are left out of the training set, which keeps other repetitions. Both directions, en-zh and
    zh-en, have the same sets. Memory does not grow with the archives.

    Args:
        archives: the zip files.
        pair: two languages (en-zh).

    Raises:
        Damaged: an archive is damaged.
        ValueError: the files of an archive are not parallel, an archive has no file in one of the languages, or there
            are too few different pairs.
    """
    codes = Target(pair).languages
    out, files = Path(folder), [Path(archive) for archive in archives]
    left_out: Counter[str] = Counter()
    drawn = _drawn(_all(files, codes, left_out), SHARE * HELD_OUT)
    size = len(drawn) // SHARE
    if not size:
        raise ValueError(
            f"{', '.join(map(str, files))} have {len(drawn)} different pairs of sentences in {pair}: at least {SHARE} "
            "are needed; add further `corpora` in `downloads`"
        )
    held_out = {"dev": drawn[:size], "test": drawn[size : 2 * size]}
    apart = {each for rows in held_out.values() for each in rows}
    kept = repeated = 0
    with ExitStack() as stack:
        asides = {split: stack.enter_context(whole(out / f"{split}.jsonl")) for split in ("train", *held_out)}
        for split, rows in held_out.items():
            with asides[split].open("w", encoding="utf-8") as file:
                file.writelines(_line(row) for row in rows)
        with asides["train"].open("w", encoding="utf-8") as file:
            for row in _all(files, codes, Counter()):
                if row in apart:
                    repeated += 1
                else:
                    file.write(_line(row))
                    kept += 1
    reasons = "".join(f", {count:,} left out because {reason}" for reason, count in sorted(left_out.items()))
    print(
        f"{pair}: {kept:,} pairs to train on, {size:,} in each of dev and test{reasons}, "
        f"{repeated - 2 * size:,} that repeat these",
        file=sys.stderr,
    )


def _drawn(rows: Iterator[Pair], most: int) -> list[Pair]:
    """At most `most` different rows in random order, sampled in one pass.

    The rows with the smallest hashes are taken, so that the result does not depend on how often a row occurs.
    """
    drawn: dict[int, Pair] = {}
    # Python's heap removes the smallest number. The numbers are negative hashes, so that the row with the largest hash
    # is removed.
    heap: list[int] = []
    for row in rows:
        # The sentences are sorted so that both directions of a pair of languages have the same hash.
        place = int.from_bytes(blake2b("\n".join(sorted(row)).encode(), digest_size=8).digest())
        if place in drawn:
            continue
        if len(heap) < most:
            heappush(heap, -place)
        elif place < -heap[0]:
            del drawn[-heappushpop(heap, -place)]
        else:
            continue
        drawn[place] = row
    return [drawn[place] for place in sorted(drawn)]


def _all(files: Sequence[Path], codes: Sequence[str], left_out: Counter[str]) -> Iterator[Pair]:
    for file in files:
        yield from _pairs(file, codes, left_out)


def _pairs(archive: Path, codes: Sequence[str], left_out: Counter[str]) -> Iterator[Pair]:
    """The pairs of sentences of an archive, in the order of `codes`."""
    in_name = archive.name.partition(".")[0].split("-")
    with opened(archive) as members, ExitStack() as stack:
        sides: list[IO[bytes]] = []
        names = []
        for code in codes:
            wanted = [f".{each}" for each in in_name if each.partition("_")[0] == code]
            found = [name for name in members if name.endswith(tuple(wanted)) and wanted]
            if len(found) != 1:
                problem = f"several files in {code}: " if found else f"no file in {code}; it has: "
                raise ValueError(f"{archive} has {problem}{shown(found or members)}. Correct `corpora` in `downloads`")
            names += found
            sides.append(stack.enter_context(members[found[0]]()))
        lines = [0, 0]
        for both in _read(sides, archive):
            lines = [number + (line is not None) for number, line in zip(lines, both, strict=True)]
            texts = [
                line if line is None else _text(line, is_first=number == 1)
                for line, number in zip(both, lines, strict=True)
            ]
            if None in both:
                continue
            if None in texts:
                left_out["one side is not in UTF-8"] += 1
            elif "" in texts:
                left_out["one side is empty"] += 1
            else:
                yield str(texts[0]), str(texts[1])
        if lines[0] != lines[1]:
            raise ValueError(
                f"{archive} is not parallel: {names[0]} has {lines[0]:,} lines, and {names[1]} has {lines[1]:,}: "
                "leave out this corpus in `corpora` of `downloads`"
            )


def _read(sides: Sequence[IO[bytes]], archive: Path) -> Iterator[tuple[bytes | None, ...]]:
    with reading(archive):
        # In binary mode, only a line feed ends a line. Sentences may contain other line separators of Unicode.
        yield from zip_longest(*sides)


def _text(line: bytes, is_first: bool) -> str | None:
    try:
        return (line.removeprefix(_MARK) if is_first else line).decode("utf-8").strip()
    except UnicodeDecodeError:
        return None


def _line(row: Pair) -> str:
    return json.dumps({"first": row[0], "second": row[1]}, ensure_ascii=False) + "\n"
