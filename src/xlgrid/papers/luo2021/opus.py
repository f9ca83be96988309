"""The key `corpora` of an entry of `downloads`: parallel sentences of OPUS (Tiedemann 2012).

VECO learns from these sentences (Luo et al. 2021, appendix A).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Self

from pydantic import Field, model_validator

from xlgrid.data.downloads.entries import Download, address, filled, none_of, regex
from xlgrid.data.origins.origin import SPLITS
from xlgrid.languages.sources import Target

# The end of the path of bitext. One job makes the files of all splits.
SPLIT_FILES = "/{split}.jsonl"


class Bitext(Download):
    """The sentences of a pair of languages, from the archives of all corpora that have this pair:

        "opus/{pair}/{split}.jsonl":
          url: "https://object.pouta.csc.fi/OPUS-{corpus}/moses/{pair}.txt.zip"
          corpora: {Europarl/v8: [de, en, fr], Bianet/v1: [en, tr]}

    The columns are `first` and `second`. `dev` and `test` each get 1,000 pairs of sentences, or a tenth of the
    different pairs if there are fewer than 10,000; `train` gets the others. A pair with a sentence that is empty or not
    in UTF-8 is left out.
    """

    rules: ClassVar[tuple[str, ...]] = ("join_bitext",)

    corpora: dict[str, list[str]] = Field(
        min_length=1,
        description="corpus and version on OPUS: the languages of the corpus by their codes on OPUS, if the corpus has "
        "all of their pairs; otherwise, its pairs (de-en). The code `zh_cn` is used for the language zh, too. In "
        "`url`, `{corpus}` is the corpus, and `{pair}` is the pair with the codes and in the order of OPUS",
    )

    @model_validator(mode="after")
    def _has_no_member(self) -> Self:
        if self.member:
            raise ValueError("archives of `corpora` have a file for each language: leave out `member`")
        return self

    @property
    def rule(self) -> str:
        return self.rules[0]

    @property
    def has_archives(self) -> bool:
        return True

    def problems(self, path: str) -> Iterator[str]:
        yield from super().problems(path)
        if not path.endswith(SPLIT_FILES) or super().names(path) not in (["pair", "split"], ["language", "split"]):
            yield f"bitext of `corpora` has a path such as 'opus/{{pair}}{SPLIT_FILES}', got {path!r}"
        for corpus in self.corpora:
            if not re.fullmatch(r"[^/\s]+/[^/\s]+", corpus):
                yield f"a corpus has a name and a version on OPUS, such as Europarl/v8, got {corpus!r}"

    def names(self, path: str) -> list[str]:
        return ["corpus", "pair"]

    def urls(self, values: Mapping[str, str]) -> list[str]:
        pairs = ((corpus, pair) for corpus in self.corpora for pair in self._pairs(corpus, pair_of(values)))
        return [filled(str(self.url), {"corpus": corpus, "pair": pair}) for corpus, pair in pairs]

    def lacking(self, path: str, values: Mapping[str, str]) -> str | None:
        if self.urls(values):
            return None
        return f"none of the `corpora` of {path} has {pair_of(values)}: add one that has it, or leave out the pair"

    def outputs(self, path: str, others: Iterable[str]) -> str:
        """A regular expression for the folders of a path.

        One job writes all splits of a folder, and must not overwrite a split that another entry describes.
        """
        folders = [other.rpartition("/")[0] for other in others if _has_split(other)]
        return none_of(map(regex, folders), r"(?:/[^/]+\.jsonl)?") + regex(path.removesuffix(SPLIT_FILES))

    def archives(self) -> str:
        """A regular expression for the archives, in which a corpus is a name and a version: `Europarl/v8`."""
        return regex(address(str(self.url)).replace("{corpus}", "{corpus}/{version}"))

    def _pairs(self, corpus: str, pair: str) -> Iterator[str]:
        """The names on OPUS of a pair in a corpus, such as `en-zh_cn`."""
        members, codes = self.corpora[corpus], Target(pair).languages
        if len(codes) < 2:
            return
        first, second = codes
        yield from (
            member for member in members if "-" in member and {*map(_language, member.split("-"))} == {first, second}
        )
        for one in (member for member in members if _language(member) == first):
            for other in (member for member in members if _language(member) == second):
                yield "-".join(sorted((one, other)))


def pair_of(values: Mapping[str, str]) -> str:
    """The pair of languages of bitext, from the names in braces in its path and their values."""
    return values.get("pair") or values["language"]


def _language(code: str) -> str:
    """The language of a code on OPUS: `zh_cn` -> `zh`."""
    return code.partition("_")[0]


def _has_split(path: str) -> bool:
    """Whether a path of `downloads` matches a file that the rule writes, such as `{split}.jsonl` or `dev.jsonl`."""
    name = regex(path.rpartition("/")[2])
    return any(re.fullmatch(name, f"{split}.jsonl") for split in SPLITS)
