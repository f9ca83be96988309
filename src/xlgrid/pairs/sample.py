"""How diverse the languages of a study are, as far as facts show that xlgrid has."""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from math import exp, log

from xlgrid.languages import Language
from xlgrid.pairs.built_in import great_circle


def effective(groups: Iterable[str]) -> float:
    """The effective number of groups: exp of Shannon's entropy of their shares (Hill 1973, order 1).

    It is the number of groups if all are equally large, and 1 if there is one; 0 for no members.
    """
    sizes = Counter(groups)
    total = sizes.total()
    return exp(-sum(size / total * log(size / total) for size in sizes.values())) if total else 0.0


def described(languages: Iterable[Language]) -> str:
    """Sentences about a sample of languages: families, scripts, and two numbers of diversity with their sources."""
    sample = list(languages)
    families, scripts = ([fact for each in sample if (fact := getattr(each, name))] for name in ("family", "script"))
    apart = [distance for pair in combinations(sample, 2) if (distance := great_circle(*pair)) is not None]
    lacking, pairs = len(sample) - len(families), len(sample) * (len(sample) - 1) // 2
    unknown = f", and the family of {lacking} language{'s' * (lacking > 1)} is not known" if lacking else ""
    said = [
        f"Languages: {len(sample)}.",
        f"Families: {len(set(families))}{unknown}.",
        f"Scripts: {len(set(scripts))}.",
        f"Effective number of families (exp of Shannon's entropy; Hill 1973): {effective(families):.1f}.",
    ]
    if apart:
        share = f", over {len(apart)} of {pairs} pairs" * (len(apart) < pairs)
        said.append(f"Mean great-circle distance of two languages{share}: {sum(apart) / len(apart):,.0f} km.")
    said.append(
        "Families are those of the table above, which may be branches of larger families. These numbers are about "
        "descent and place: they are no typological diversity, as Samardžić et al. (2024) measure it against a sample "
        "of reference."
    )
    return " ".join(said)
