"""Commands that show results begin with a study."""

import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app


@pytest.mark.parametrize(
    "arguments", [["exhibit", "demmo", "x", "--output=x"], ["claims", "demmo", "--output=x"], ["partial", "demmo"]]
)
def test_a_study_that_does_not_exist_is_told_in_a_line(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.output.startswith(
        "error: no study file studies/demmo.yaml: unknown study 'demmo', did you mean 'demo'"
    )
    assert "Traceback" not in result.output


def test_an_exhibit_that_does_not_exist_is_told_with_its_neighbours() -> None:
    result = CliRunner().invoke(app, ["exhibit", "demo", "ner-full-f", "--output=x"])
    assert result.exit_code == 1 and "did you mean 'ner-full-ft'" in result.output
