"""RuleTaker: balance, form and size of its questions."""

from xlgrid.synthetic.miniatures.ruletaker import Options, examples, row


def rows(n=20, **options):
    chosen = Options(n=n, **options)
    return [row(example, "en", chosen) for example in examples(chosen, (n, 0, 0))]


def test_labels_are_balanced_and_config_names_the_depth():
    table = rows(n=60, max_depth=2)
    assert sum(row["label"] == "entailment" for row in table) == 30
    assert {row["config"] for row in table} == {"depth-2"}
    assert {row["depth"] for row in table} == {0, 1, 2}
