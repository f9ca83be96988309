"""The names of sources and targets: what stands before and after the @."""


def data_of(name: str) -> str:
    """The source or target without what follows @: what its data are of, and what exhibits show.

    A source en@qu trains on en for cells of qu alone (`Start.at`); a target qu@1000 is qu as of step 1000 of its run on
    text (`Grid.snapshots`).
    """
    return name.partition("@")[0]


def snapshot_of(target: str) -> int | None:
    """The step of its run on text that a target is spoken as of; None: the end.

    Raises:
        ValueError: what follows @ is no number.
    """
    code, _, step = target.partition("@")
    if step and not step.isdecimal():
        raise ValueError(f"target {target!r}: after @ comes a step of its run on text, as in {code}@1000")
    return int(step) if step else None
