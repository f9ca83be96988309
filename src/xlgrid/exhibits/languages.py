"""A table of languages and the groups of the study to which they belong. It needs no results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from xlgrid.base.names import among
from xlgrid.exhibits.exhibit import Exhibit, Rendering

if TYPE_CHECKING:
    import pandas as pd

    from xlgrid.plan.plan import Plan
    from xlgrid.study.schema import Study

FACTS = ("code", "name", "family", "script")


class Languages(Exhibit):
    """A table with a row for each language: its name, family and script, and a mark for each of its groups.

    A column may have several groups with different marks: `columns: {"60": {pre-train: langs60, add: added}}`. The rows
    are the languages of the groups, or the languages of `only`, in the order of the study. Families and scripts come
    from xlgrid's table of languages or from the study; unknown ones are blank.
    """

    kind: Literal["languages"] = "languages"
    columns: dict[str, dict[str, str]] = Field(min_length=1, description="column -> mark -> group of the study")
    only: tuple[str, ...] = Field(
        (), description="groups whose languages are the rows; absent: all groups of the columns"
    )

    @property
    def groups_shown(self) -> tuple[str, ...]:
        """The groups that the columns name, and the groups of `only`."""
        of_columns = [group for marks in self.columns.values() for group in marks.values()]
        return tuple(dict.fromkeys([*of_columns, *self.only]))

    def settings(self, study: "Study") -> list[str]:
        return [*super().settings(study), json.dumps(self._facts_of_rows(study))]

    def problems(self, study: "Study", axes: Mapping[str, Sequence[object]]) -> Iterator[str]:
        yield from among("only", "group", self.only, study.groups)
        for name, marks in self.columns.items():
            if name in FACTS:
                yield f"columns.{name}: this is the name of another column: choose another name"
            yield from among(f"columns.{name}", "group", marks.values(), study.groups)
        known = study.languages_used
        for group in self.groups_shown:
            for member in study.groups.get(group, ()):
                if member not in known:
                    yield f"columns: group {group} has {member}, which is not a language: name a group of languages"
        for name, marks in self.columns.items():
            marked: dict[str, str] = {}
            for group in marks.values():
                for code in study.groups.get(group, ()):
                    if (other := marked.setdefault(code, group)) != group:
                        yield (
                            f"columns.{name}: {code} is in both {other} and {group}, but can have only one mark: leave "
                            "it out of one group"
                        )

    def rendering(self, plan: "Plan") -> Rendering:
        import pandas as pd

        from xlgrid.exhibits.drawing.sheet import PRINTED, Sheet

        table = self.table(plan.study)
        columns = [*FACTS[1:], *self.columns]
        lines = [
            {"language": row["code"], "column": column} | dict.fromkeys(PRINTED, "") | {"text": row[column]}
            for row in table.to_dict("records")
            for column in columns
        ]
        entries = pd.DataFrame(lines).assign(state="complete")
        counts = ", ".join(f"{name} {sum(map(bool, table[name]))}" for name in self.columns)
        notes = (
            f"Names, families and scripts (ISO 15924) are those of xlgrid's table of languages. Languages: {counts}."
        )
        if not table[["family", "script"]].all(axis=None):
            notes += " Families and scripts that are not known are blank."
        sheet = Sheet(self.title, self.caption, notes, ("language",), [(name,) for name in columns], entries)
        return Rendering(sheet, table)

    def table(self, study: "Study") -> "pd.DataFrame":
        """A row per language, with `code`, `name`, `family`, `script`, and a mark or "" in each of `columns`."""
        import pandas as pd

        rows = []
        for facts in self._facts_of_rows(study):
            marks = {
                column: next((mark for mark, group in marks.items() if facts["code"] in study.groups[group]), "")
                for column, marks in self.columns.items()
            }
            rows.append(facts | marks)
        return pd.DataFrame(rows, columns=[*FACTS, *self.columns])

    def _facts_of_rows(self, study: "Study") -> list[dict[str, str]]:
        codes = {code for group in self.only or self.groups_shown for code in study.groups[group]}
        languages = [language for code, language in study.languages_used.items() if code in codes]
        return [{fact: getattr(language, fact) or "" for fact in FACTS} for language in languages]
