"""The file with the runs of a group, and the files of one run from it."""

import io
import json
import os
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from xlgrid.base.errors import Damaged
from xlgrid.base.files import whole
from xlgrid.models import deltas
from xlgrid.training.grouping import name_of
from xlgrid.training.recipe import Recipe
from xlgrid.training.signals import Stopped, signals
from xlgrid.training.state import say
from xlgrid.training.together.group import Files, Group, Member
from xlgrid.training.together.stack import share

# The file that takes the place of the results of a run that failed.
FAILED = "failed.txt"
# The files of a run. run.json comes last, because a run with this file is complete.
RESULTS = (deltas.DELTA, "curve.jsonl", "run.json")


def train_group(recipes: Sequence[Recipe], encoder: Path, files: Sequence[Files], output: Path) -> None:
    """Train several runs together, and write one file with the results of all of them, a tar.

    The state of an interrupted training is beside it, in a folder of the same name.

    Raises:
        FileNotFoundError: an input is missing.
        ValueError: the runs cannot train together, or for a reason of `xlgrid.training.loop.train`.
        FloatingPointError: the loss of every run became infinite or not a number.
        SystemExit: the process received a signal. The state is saved, and the same call continues from it.
    """
    folder = output.with_suffix("")
    members: list[Member] = []
    for recipe, each in zip(recipes, files, strict=True):
        members.append(Member(recipe, encoder, each, folder / name_of(recipe)))
        # The frozen weights of each model are freed before the next one is loaded.
        share([members[0].model, members[-1].model])
    group = Group(members, folder)
    with signals() as stop:
        try:
            group.go(stop)
        except Stopped:
            group.save()
            say("stopped; the same command continues there")
            raise SystemExit(os.EX_TEMPFAIL) from None
        if len(group.failed) == len(members):
            raise FloatingPointError(f"all {len(members)} runs failed; the first: {group.failed[0]}")
        for number, member in enumerate(members):
            if number in group.failed:
                (member.folder / FAILED).write_text(group.failed[number], encoding="utf-8")
            else:
                member.at_once = group.width
                member.finish()
        _pack(folder, members, output)
        shutil.rmtree(folder)


def _pack(folder: Path, members: Sequence[Member], output: Path) -> None:
    """Write the results of all runs to one file, whose bytes depend on nothing else."""
    with whole(output) as aside, tarfile.open(aside, "w") as tar:
        for path in (member.folder / name for member in members for name in (*RESULTS, FAILED)):
            if path.exists():
                entry = tarfile.TarInfo(str(path.relative_to(folder)))
                entry.size = path.stat().st_size
                with path.open("rb") as contents:
                    tar.addfile(entry, contents)


def take(group: Path, recipe: Recipe, folder: Path) -> None:
    """Write the files of a run that trained with others, from the file of the group.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is damaged, or has no run of this recipe.
        FloatingPointError: the run failed in the group.
    """
    name = name_of(recipe)
    try:
        with tarfile.open(group) as tar:
            found = {entry.name: (tar.extractfile(entry) or io.BytesIO()).read() for entry in tar.getmembers()}
    except tarfile.TarError as error:
        raise Damaged(f"{group} is damaged ({error}): delete it and run the study again", group) from error
    if reason := found.get(f"{name}/{FAILED}"):
        raise FloatingPointError(f"in the training together with others, {reason.decode()}")
    files = {file: found.get(f"{name}/{file}") for file in RESULTS}
    if not all(files.values()):
        raise Damaged(f"{group} has no run {name}: delete it and run the study again", group)
    record = files["run.json"] or b"{}"
    if json.loads(record)["digest"] != recipe.digest():
        raise Damaged(f"{group} has a run {name} of another recipe: delete it and run the study again", group)
    for file, contents in files.items():
        with whole(folder / file) as aside:
            aside.write_bytes(contents or b"")
