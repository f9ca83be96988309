"""What the summary is made from, and the settings of reports."""

from xlgrid.plan.plan import Plan
from xlgrid.products.report import Claims, Summary


def test_a_summary_needs_the_cells_that_no_exhibit_shows(plan: Plan) -> None:
    inputs = Summary("tiny").inputs(plan)
    assert {str(path).split("/")[4] for path in inputs["cells"]} == {"mine"} and len(inputs["cells"]) == 3
    assert inputs["exhibits"] == ["results/tiny/exhibits/scores.csv"]


def test_a_study_without_claims_says_where_they_would_be(plan: Plan) -> None:
    assert not Claims("tiny").is_in(plan)
    assert "`claims`" in str(Claims("tiny").problem(plan))


def test_a_change_of_the_title_makes_the_summary_again(plan: Plan) -> None:
    renamed = plan.study.model_copy(update={"title": "Another"})
    assert Summary("tiny").settings(renamed) != Summary("tiny").settings(plan.study)
