"""`xlgrid cost` prints what a study takes, without options for every study of this project."""

import csv
import json
import re
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plan_fixture import COSTED as STUDY
from shipped import STUDIES
from typer.testing import CliRunner

from xlgrid.cli import app
from xlgrid.data.vocabulary import VocabularyEntry, make_vocabulary
from xlgrid.plan.estimate import TFLOPS, WHOLE, Assumed
from xlgrid.report import cost

FROM_FILES = "tasks:\n  nli: {kind: xnli, data: {local: 'nli/{language}/{split}.jsonl'}}\n"
ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "papers"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("studies").mkdir()
    Path("studies/tiny.yaml").write_text(STUDY)


def run(*options: str) -> Any:
    return CliRunner().invoke(app, ["cost", "studies/tiny.yaml", *options])


def test_the_command_prints_exhibits_methods_and_what_they_rest_on() -> None:
    result = run("--tflops", "50", "--csv", "cost.csv")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line.split() for line in result.output.splitlines() if line.split()}
    assert lines["full"][1:6] == ["4", "0", "12", "176", "4,000"]
    assert lines["whole"][2:5] == ["12", "3", "27"]
    assert [line for line in result.output.splitlines() if line.split()[1:3] == ["query", "mlm"]]
    assert "50 TFLOP/s in training, 50 in evaluation, and 25 ms a step, assumed" in result.output
    with Path("cost.csv").open() as file:
        rows = {row["exhibit"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["full", "biases", "pairs", "masks", "look", "pre-training of tiny", WHOLE]
    assert (rows["pairs"]["text_runs"], rows["pairs"]["steps"]) == ("2", "244")


def test_a_pretraining_has_a_row_of_time_text_and_disk() -> None:
    """1,500 steps of 32 inputs, 60 tokens each; of 1,000 texts, 960 are for training."""
    lines = run("--gpus", "8").output.splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("pre-training of ") and "updates" in line)
    assert "days on 8 GPUs" in lines[head] and "days on 1 GPU " in run().output
    row = lines[head + 2].split()
    assert row[:5] == ["tiny", "1,500", "1,920", "0.0029", f"{960 * 60 * 4.5 / 1e9:.2g}"]
    assert row[7] == f"{960 * (60 * 4 + 8) / 1e9:.2g}"
    assert any("4.5 bytes of text a token" in line for line in lines)


def test_the_results_of_another_study_are_not_counted_and_the_command_says_so() -> None:
    Path("studies/more.yaml").write_text("extends: tiny\ngrids: {one: {seed: [1, 2, 3]}}\n")
    result = CliRunner().invoke(app, ["cost", "studies/more.yaml"])
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line.split() for line in result.output.splitlines() if line.split()}
    assert lines["whole"][2:5] == ["4", "0", "12"]
    note = "Not counted, because another study makes them: 27 of 39 cells and 11 of 15 runs are those of tiny."
    assert note in result.output
    assert "Not counted" not in run().output


def test_a_task_that_the_study_describes_goes_by_its_name() -> None:
    """Two tasks of one head are two rows, with the study's sizes and tokens."""
    described = (
        "{kind: sequence, inputs: [first, second], target: label, labels: [a, b%s], data: {hub: x/y}, tokens: %d, "
    )
    described += "max_length: 64, examples: {train: 70, dev: 10, test: 20}}"
    tasks = f"tasks:\n  one: {described % ('', 40)}\n  two: {described % (', c', 50)}\n"
    Path("studies/tiny.yaml").write_text(
        STUDY.replace("tasks:\n", tasks).replace("task: [rt]", "task: [rt, one, two]", 1)
    )
    result = run()
    assert result.exit_code == 0, result.output
    assert "one 40, two 50" in result.output
    # Models of equal size share a row.
    assert "ruletaker, one" in result.output and "sequence" not in result.output


@pytest.mark.parametrize("fetched", ["{data: {hub: a/b}, column: c}", "{files: {en: my.txt}}"])
def test_data_of_unknown_size_have_to_be_told(fetched: str) -> None:
    text = STUDY.replace("tasks:\n", FROM_FILES).replace("task: [rt]", "task: [rt, nli]", 1)
    Path("studies/tiny.yaml").write_text(text.replace("text: {sentences: 1000}", f"text: {fetched}"))
    result = run()
    assert result.exit_code == 1
    assert "call this with --examples mlm=TRAIN,DEV,TEST --examples nli=TRAIN,DEV,TEST" in result.output
    assert run("--examples", "mlm=96,2,2", "--examples", "xnli=70,10,20").exit_code == 0


def test_of_one_text_of_one_s_own_only_that_has_to_be_told() -> None:
    Path("studies/tiny.yaml").write_text(STUDY.replace("text: {sentences: 1000}", "text: {files: {de: my.txt}}"))
    result = run()
    assert result.exit_code == 1
    assert result.output.split("call this with ")[1].split() == ["--examples", "mlm:en-de=TRAIN,DEV,TEST"]
    assert run("--examples", "mlm:en-de=96,2,2").exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--examples", "rt=1,000,2"], "positive whole numbers"),
        (["--examples", "rt=5"], "takes 3 numbers, TRAIN,DEV,TEST, got 1"),
        (["--examples", "ruletakr=1,1,1"], "did you mean 'ruletaker'"),
        (["--examples", "rt:fe=1,1,1"], "did you mean 'fr'"),
        (["--tokens", "rt=1,2"], "expected TASK=NUMBER"),
        (["--tflops", "0"], "positive number"),
        (["--measured", "none.json"], "there is no none.json"),
    ],
)
def test_what_cannot_be_read_is_told(options: list[str], message: str) -> None:
    result = run(*options)
    assert result.exit_code == 1
    assert message in result.output


@cache
def printed(study: str) -> str:
    """The output of the first command of docs/papers/cost-STUDY.md."""
    block = re.search(r"^```sh\n(.*?)^```", (DOCS / f"cost-{study}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert block
    with chdir(ROOT):
        result = CliRunner().invoke(app, block[1].split()[1:])
    assert result.exit_code == 0, result.output
    return result.output


# The studies whose costs, without options, docs/papers/ shows.
SHOWN = ["foroutan2023", "pfeiffer2020", "pfeiffer2022", "pfeiffer2022-released", "luo2021", "luo2021-released"]


@pytest.mark.thorough
@pytest.mark.parametrize("study", SHOWN)
def test_the_documentation_of_a_paper_has_what_the_command_prints(study: str) -> None:
    documented = set((DOCS / f"cost-{study}.md").read_text().splitlines())
    rows = [line.rstrip() for line in printed(study).splitlines() if not line.startswith(("Tokens", "Examples"))]
    assert [row for row in rows if row not in documented] == [], (
        f"run the command of cost-{study}.md and paste its tables"
    )


def test_the_default_of_the_command_is_that_of_the_module() -> None:
    assert cost.assumptions([], []) == Assumed()
    assert f"{TFLOPS:g} TFLOP/s in training" in run().output


def test_small_costs_are_in_units_that_show_them() -> None:
    """Here nothing takes a minute, and nothing stores a megabyte in a thousand."""
    lines = run().output.splitlines()
    assert "sec training" in lines[0] and "GPU-seconds" in lines[0] and "MB stored" in lines[0]
    whole = next(line for line in lines if line.startswith("whole study")).split()
    assert float(whole[-2].replace(",", "")) > 1
    assert not [line for line in lines if line.split()[-1:] == ["0"]], "MFLOP/token"


def test_sizes_that_the_study_says_need_no_option() -> None:
    text = STUDY.replace("tasks:\n", FROM_FILES).replace("task: [rt]", "task: [rt, nli]", 1)
    path = Path("studies/tiny.yaml")
    path.write_text(text.replace("jsonl'}}", "jsonl'}, examples: {train: 70, dev: 10, test: 20}}"))
    assert run().exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "study",
    [
        pytest.param(name, marks=[] if name.endswith("-mini") else pytest.mark.thorough)
        for name in sorted({path.stem for path in STUDIES.values()} - {*SHOWN})
    ],
)
def test_every_other_study_has_its_cost_without_options(study: str) -> None:
    result = CliRunner().invoke(app, ["cost", str(STUDIES[study])])
    assert result.exit_code == 0, result.output


def test_local_data_have_a_row_for_each_language_and_vocabulary() -> None:
    """Words of letters that the vocabulary has one by one are cut to letters."""
    texts = [*["anne is big"] * 5, "a b c d e g i n s"]
    pq.write_table(pa.table({"id": range(len(texts)), "text": texts}), "text.parquet")
    entry = VocabularyEntry(kind="bert", languages=("en",), size=40)
    make_vocabulary(entry, ["text.parquet"], "results/tiny/vocabularies/tiny")
    grid = "{task: [nli], encoder: [tiny], method: [full-ft], source: [en], target: [en, de], seed: [1]}"
    text = STUDY
    for old, new in (("tasks:\n", FROM_FILES), ("grids:\n", f"grids:\n  nli: {grid}\n")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    Path("studies/tiny.yaml").write_text(text)
    for code, words in (("en", "anne is big"), ("de", "begann dies")):
        Path(f"nli/{code}").mkdir(parents=True)
        for split, rows in (("train", 5), ("dev", 2), ("test", 3)):
            line = json.dumps({"premise": words, "hypothesis": words, "label": "neutral"}) + "\n"
            Path(f"nli/{code}/{split}.jsonl").write_text(line * rows)
    result = run()
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines() if line.startswith("nli ")]
    english, german = lines
    assert english[:6] == ["nli", "en", "tiny", "5", "2", "3"] and german[:6] == ["nli", "de", "tiny", "5", "2", "3"]
    assert english[6:] == ["9.0", "1.00", "0.0"] and float(german[7]) > 2
    assert "tokens and pieces of the first 300 rows" in result.output
