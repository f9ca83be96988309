"""The sizes that theories and premises share: what does not go together is refused before anything is generated."""

import pytest

from xlgrid.synthetic import premises, theories

SCHEMAS = {"theories": theories.Options, "premises": premises.Options}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n": 0}, "n\n"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": 6}, "max_depth"),
        ({"facts": (3, 2)}, r"facts must be .* <= minimum <= maximum, got \(3, 2\)"),
        ({"rules": (5, 4)}, r"rules must be .* 0 <= minimum <= maximum, got \(5, 4\)"),
        ({"relational": 1.5}, "relational"),
        ({"max_depth": 5, "rules": (1, 4)}, r"max_depth 5 needs at least 5 rules, but rules is \(1, 4\)"),
        ({"entities": 2}, "animals need at least 3 of them, got animals 10 and entities 2"),
        ({"entities": 1, "relational": 0}, "persons need at least 2 of them, got persons 8 and entities 1"),
        ({"persons": 1}, "persons need at least 2 of them, got persons 1"),
        ({"animals": 2}, "animals need at least 3 of them, got animals 2"),
        ({"relations": 0}, "at least 1 relation, got relations 0"),
        ({"max_depth": 3, "rules": (3, 3), "attributes": 4}, "max_depth 3 needs at least 5 attributes, got 4"),
        (
            {"max_depth": 3, "rules": (3, 3), "attributes": 3, "relations": 1, "relational": 1},
            "at least 5 attributes and relations together, got 4",
        ),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(schema, fields, message):
    with pytest.raises(ValueError, match=message):
        schema(**fields)


def test_the_words_are_the_first_of_each_kind():
    words = premises.Options(persons=2, attributes=3).words
    assert (words.persons, words.attributes) == (("anne", "bob"), ("big", "kind", "young"))
