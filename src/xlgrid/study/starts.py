"""The `start` of a method: the MLM runs with whose weights its runs begin. The keys of an entry tell which MLM runs there are."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from xlgrid.base.names import among, unknown
from xlgrid.base.settings import Seed, Strict
from xlgrid.base.unions import by_key
from xlgrid.languages.sources import Source, Target
from xlgrid.study.languages import LANGUAGE
from xlgrid.training.recipe import Start

if TYPE_CHECKING:
    from xlgrid.study.schema import Study


class StartEntry(Strict):
    """MLM runs with whose weights other runs begin. Each subclass tells which languages or pairs have MLM runs."""

    task: str = Field(description="the task of the MLM run, of kind `mlm`")
    method: str = Field(description="the method of the MLM run")
    seed: Seed = Field(1, description="the seed of the MLM run")

    @property
    def parts(self) -> tuple[Target, ...]:
        """The languages and pairs that the entry names."""
        return ()

    @property
    def is_aimed(self) -> bool:
        """Whether there is a run for each target, source@target, which begins with the MLM run of the target."""
        return False

    @property
    def follows_targets(self) -> bool:
        """Whether a cell takes language-specific parameters from an MLM run of its target."""
        return False

    def of_source(self, source: Source) -> Source | None:
        """The source of the MLM run with which runs on `source` begin; None if no part of `source` has an MLM run.

        Raises:
            ValueError: several parts of `source` have MLM runs.
        """
        raise NotImplementedError

    def of_target(self, target: Target, source: Source) -> Source | None:
        """The source of the MLM run whose language-specific parameters a run on `source` uses on `target`, or None."""
        raise NotImplementedError

    def of_run(self, source: Source) -> Source | None:
        """The source of the MLM run with which a run on `source` begins; None if there is no such MLM run.

        Raises:
            ValueError: there are several.
        """
        return self.of_source(source.data)

    def of_cell(self, source: Source, target: Target) -> Source | None:
        """The source of the MLM run whose language-specific parameters a cell uses; None if there is no such MLM run."""
        return self.of_target(target, source.data) if self.follows_targets else self.of_run(source)

    def for_run(self, source: Source) -> Start | None:
        """The start in the recipe of a run on `source`; it does not change with other languages of the entry."""
        text = self.of_run(source)
        return Start(task=self.task, method=self.method, source=text, seed=self.seed) if text else None

    def problems(self, study: "Study", place: str) -> Iterator[str]:
        """Names that the study lacks, each as `place: what is wrong`."""
        texts = [name for name, entry in study.tasks.items() if not entry.task.head.has_cells]
        if self.task not in texts:
            yield (
                f"{place}.task: {unknown('task of kind `mlm`', self.task, texts)}: add `{self.task}: "
                "{kind: mlm}` to `tasks`, or name another"
            )
        yield from among(f"{place}.method", "method", [self.method], study.methods)
        yield from among(place, LANGUAGE, [code for part in self.parts for code in part.languages], study.languages)


class OwnStart(StartEntry):
    """Without `source` and `pairs`, each language has an MLM run."""

    at: Literal["both", "source", "target"] = Field(
        "both",
        description="both: a run begins with the MLM run of its source, and a cell takes language-specific parameters, "
        "such as language adapters, from the MLM run of its target; source: a cell keeps the parameters of "
        "the run; target: there is a run for each target, source@target, which begins with the MLM run of the "
        "target",
    )

    @property
    def is_aimed(self) -> bool:
        return self.at == "target"

    @property
    def follows_targets(self) -> bool:
        return self.at == "both"

    def of_source(self, source: Source) -> Source | None:
        return _only(source, source.parts)

    def of_target(self, target: Target, source: Source) -> Source | None:
        return Source(target)

    def of_run(self, source: Source) -> Source | None:
        if self.is_aimed:
            return Source(source.for_target) if source.for_target else None
        return super().of_run(source)

    def for_run(self, source: Source) -> Start | None:
        return Start(task=self.task, method=self.method, at=self.at, seed=self.seed)


class SharedStart(StartEntry):
    """All runs begin with the same MLM run."""

    source: Source = Field(description="the source of the MLM run with which all runs begin")

    @property
    def parts(self) -> tuple[Target, ...]:
        return self.source.parts

    def of_source(self, source: Source) -> Source | None:
        return self.source

    def of_target(self, target: Target, source: Source) -> Source | None:
        return self.source


class PairsStart(StartEntry):
    """Some languages or pairs have an MLM run each. `reverse` and `missing` decide a question that Foroutan et al. 2023
    (section 4.2) leave open.
    """

    pairs: tuple[Source, ...] = Field(min_length=1, description="the languages or pairs with MLM runs, one for each")
    at: Literal["both", "source"] = Field(
        "both",
        description="both: a run begins with the MLM run of its source, and a cell takes language-specific parameters "
        "from the MLM run of its target; source: a cell keeps the parameters of the run",
    )
    reverse: Literal["same", "none"] = Field(
        "same", description="same: a target fr-en takes the MLM run of en-fr; none: fr-en has no MLM run"
    )
    missing: Literal["source", "none"] = Field(
        "source",
        description="source: a target without an MLM run keeps the parameters of the run's source; none: it gets no "
        "language-specific parameters, which only some methods allow",
    )

    @property
    def parts(self) -> tuple[Target, ...]:
        return tuple(map(Target, self.pairs))

    @property
    def follows_targets(self) -> bool:
        return self.at == "both"

    def of_source(self, source: Source) -> Source | None:
        return _only(source, [part for part in source.parts if part in self.pairs])

    def of_target(self, target: Target, source: Source) -> Source | None:
        if target in self.pairs:
            return Source(target)
        if self.reverse == "same" and target.reverse in self.pairs:
            return Source(target.reverse)
        return self.of_source(source) if self.missing == "source" else None


def _only(source: Source, parts: Any) -> Source | None:
    """The part of a source that has an MLM run.

    Raises:
        ValueError: several parts have one.
    """
    if len(parts) > 1:
        raise ValueError(
            f"source {source} has several MLM runs, {' and '.join(parts)}, but a run can begin with only "
            "one: name a source with one of them"
        )
    return Source(parts[0]) if parts else None


# Key -> the class of the starts whose entries have this key.
MEMBERS: dict[str, type[StartEntry]] = {"source": SharedStart, "pairs": PairsStart}
AnyStart = Annotated[SharedStart | PairsStart | OwnStart, by_key("a start", MEMBERS, OwnStart)]
