"""Commands about a study say how to name it, and name the nearest study if there is none of that name."""

import pytest
from typer.testing import CliRunner

from xlgrid.cli.app import app


@pytest.mark.parametrize("command", ["status", "cost"])
def test_a_study_that_does_not_exist_is_told_in_a_line(command: str) -> None:
    result = CliRunner().invoke(app, [command, "demmo"])
    assert result.exit_code == 1
    assert result.output.startswith(
        "error: no study file studies/demmo.yaml: unknown study 'demmo', did you mean 'demo'"
    )
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["status", "cost"])
def test_the_help_says_how_to_name_a_study(command: str) -> None:
    output = CliRunner().invoke(app, [command, "--help"]).output
    assert "STUDY" in output and "name" in output
