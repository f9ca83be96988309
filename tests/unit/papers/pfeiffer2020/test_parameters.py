"""Parameters that methods add: as worked out by hand, and beside a paper's."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import AutoConfig, XLMRobertaForTokenClassification

from xlgrid.data.published import HUB
from xlgrid.methods import make
from xlgrid.papers.pfeiffer2020.parameters import Parameters, added
from xlgrid.plan.plan import Plan
from xlgrid.products.exhibits import Exhibit
from xlgrid.study.encoders import FolderEncoder, HubEncoder
from xlgrid.study.schema import Study

HIDDEN, LAYERS, TOKENIZER, INTERMEDIATE, POSITIONS = 8, 2, 100, 16, 512
PAPER = "exhibit,model,method,added_params_millions,percent_of_model\nt,theirs,qcross,0.5,3.25\n"


def study(**published: object) -> Study:
    exhibit = {"kind": "parameters", "title": "Added", "encoders": ["tiny"], "methods": ["query", "bitfit"]}
    shape = {"hidden": HIDDEN, "layers": LAYERS, "heads": 2, "vocab": TOKENIZER, "intermediate": INTERMEDIATE}
    return Study(
        name="s",
        title="s",
        languages=["en"],
        encoders={"tiny": {"scratch": {"kind": "bert", "languages": ["en"], **shape}}},
        tasks={"rt": {"kind": "ruletaker"}},
        methods={"bitfit": {}, "query": {"base": "qcross"}},
        grids={
            "g": {"task": ["rt"], "encoder": ["tiny"], "method": ["bitfit", "query"]}
            | {"source": ["en"], "target": ["en"], "seed": [1]}
        },
        exhibits={"added": exhibit | ({"published": published} if published else {})},
    )


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paper = tmp_path / "reference" / "p" / "table.csv"
    paper.parent.mkdir(parents=True)
    paper.write_text(PAPER, encoding="utf-8")


def render(example_study: Study) -> None:
    example_study.exhibit("added").render("added", Plan(example_study), "out")


def rendered(example_study: Study) -> pd.DataFrame:
    render(example_study)
    return pd.read_csv("out/added.csv").set_index("method")


def test_matrices_and_everything_else_are_counted_apart() -> None:
    """A second query, weight and bias, in each layer; nothing of a method that trains what is there."""
    table = rendered(study())
    assert table.loc["query", ["weights", "parameters"]].to_list() == [
        LAYERS * HIDDEN**2,
        LAYERS * (HIDDEN**2 + HIDDEN),
    ]
    assert table.loc["bitfit", ["weights", "parameters"]].to_list() == [0, 0]


def test_shares_are_of_the_encoder_with_its_embeddings_and_without_a_head() -> None:
    embeddings = (TOKENIZER + POSITIONS + 2) * HIDDEN + 2 * HIDDEN
    layer = 4 * (HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * INTERMEDIATE + (INTERMEDIATE + 1) * HIDDEN + 4 * HIDDEN
    whole = embeddings + LAYERS * layer
    row = rendered(study()).loc["query"]
    assert row["encoder_parameters"] == whole
    assert row["weights_percent"] == pytest.approx(100 * LAYERS * HIDDEN**2 / whole)


def test_published_numbers_stand_beside_ours_by_the_paper_s_names() -> None:
    names = {"encoder": {"tiny": "theirs"}, "method": {"query": "qcross"}}
    table = rendered(study(file="p/table", names=names))
    assert table.loc["query", ["published_millions", "published_percent"]].to_list() == [0.5, 3.25]
    assert table.loc["bitfit", "published_millions"] != table.loc["bitfit", "published_millions"], "the paper has none"
    text = Path("out/added.md").read_text(encoding="utf-8")
    assert "paper (M)" in text and "3.25" in text and "reference/p/table.csv" in text


@pytest.mark.parametrize(
    ("names", "paper", "message"),
    [
        ({}, PAPER, "no number for any entry of the exhibit"),
        ({}, "model,method\n", "has no column added_params_millions, percent_of_model: it must have model, method"),
        ({}, PAPER.replace("0.5", "half"), "'half', but expected a number"),
    ],
)
def test_published_numbers_that_do_not_fit_are_refused(names: dict[str, object], paper: str, message: str) -> None:
    Path("reference/p/table.csv").write_text(paper, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        rendered(study(file="p/table", names=names))


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(FileNotFoundError, match=r"no published numbers in reference/p/tabel\.csv"):
        rendered(study(file="p/tabel"))


def test_files_are_those_of_a_table_and_what_it_reads_is_known_to_the_rules() -> None:
    of_file = study(file="p/table")
    exhibit = of_file.exhibit("added")
    render(study(file="p/table", names={"encoder": {"tiny": "theirs"}, "method": {"query": "qcross"}}))
    assert {path.suffix for path in Path("out").iterdir()} == set(exhibit.suffixes)
    assert exhibit.files(of_file) == ["reference/p/table.csv"]
    assert not exhibit.is_compared
    assert exhibit.is_table


def test_xlm_r_large_has_its_real_size() -> None:
    """559,890,432 with the pooler, which it has no use for here."""
    from transformers import AutoConfig

    config = AutoConfig.for_model(**HUB["FacebookAI/xlm-roberta-large"])
    assert added(config, "bitfit", {}) == (0, 0, 559_890_432 - 1024 * 1025)


def test_settings_of_an_encoder_are_what_its_study_states() -> None:
    """With defaults, a key that encoders get in a later version would make the exhibits of finished studies again."""
    *_, encoder = study().exhibit("added").settings(study())
    assert set(json.loads(encoder)) == {"scratch"}


def shape_of(encoder: str) -> Any:
    config = AutoConfig.for_model(**HUB[encoder])
    with torch.device("meta"):
        return XLMRobertaForTokenClassification(config)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 8_257_536),
        ({"invertible": False}, 7_962_624),
        ({"invertible": False, "language": False}, 884_736),
    ],
)
def test_weights_are_as_many_as_in_table_5(options: dict[str, Any], expected: int) -> None:
    """Of XLM-R base; biases are not counted there. The largest is printed as 8.25M, cut off."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    before = {id(p) for p in model.parameters()}
    with torch.device("meta"):
        make("madx", options).install(model)
    added = [(name, p) for name, p in model.named_parameters() if id(p) not in before]
    assert sum(p.numel() for name, p in added if name.endswith(".weight")) == expected


def test_no_weights_are_added_to_a_last_layer_that_is_left_out() -> None:
    """Of XLM-R base: language and task adapters in 11 layers, and the invertible one."""
    count = added(AutoConfig.for_model(**HUB["FacebookAI/xlm-roberta-base"]), "madx", {"leave_out_last": True})
    assert count.weights == 11 * 2 * 768 * (384 + 48) + 2 * 2 * 384 * 192


def test_a_published_language_adapter_is_as_large_as_ours() -> None:
    """29,551,104 bytes of floats: the 29.6 MB of those of mBERT on the Hub."""
    model = shape_of("FacebookAI/xlm-roberta-base")
    with torch.device("meta"):
        make("madx", {"tune": "language"}).install(model)
    names = [name for name, _ in model.named_parameters() if make("madx", {"tune": "language"}).trains(name)]
    assert sum(dict(model.named_parameters())[name].numel() for name in names) == 7_387_776


def test_a_count_reads_the_encoders_whose_sizes_are_not_known_without_them() -> None:
    base, mine = HubEncoder(hub="FacebookAI/xlm-roberta-base"), FolderEncoder(path="encoder")
    sizes = Parameters(title="Sizes", encoders=("tiny", "mine", "base"), methods=("bitfit",))
    changes = {"encoders": study().encoders | {"base": base, "mine": mine}, "exhibits": {"sizes": sizes}}
    files = [f"results/s/encoders/{name}/model.safetensors" for name in ("tiny", "mine")]
    assert Exhibit("s", "sizes").inputs(Plan(study().model_copy(update=changes)))["encoders"] == files
