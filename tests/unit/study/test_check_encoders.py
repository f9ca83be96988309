"""Languages of a study, and modules of its encoders."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from xlgrid.study import check_encoders
from xlgrid.study.checks import problems
from xlgrid.study.encoders import EncoderWithHead
from xlgrid.study.schema import Study


def study(method: dict[str, Any] | None = None, encoder: dict[str, Any] | None = None, **grid: Any) -> Study:
    scratch = {"kind": "xlmr", "architecture": "xmod", "languages": ["en", "fr"]}
    axes = {"task": ["ner"], "encoder": ["e"], "method": ["m"], "source": ["en"], "target": ["en", "fr"], "seed": [1]}
    start = {"task": "text", "method": "add", "pairs": ["de"], "missing": "none"}
    return Study(
        name="s",
        title="s",
        languages=["en", "fr", "de"],
        vocabularies={"added-de": {"kind": "xlmr", "languages": ["de"]}},
        encoders={"e": encoder or {"scratch": scratch}},
        tasks={"ner": {"kind": "ruletaker"}, "text": {"kind": "mlm", "vocabulary": "added-{language}"}},
        methods={
            "m": method or {"base": "xmod", "start": start},
            "add": {"base": "xmod", "options": {"tune": "language"}},
        },
        grids={"g": axes | grid},
    )


def test_languages_with_a_module_and_added_ones_are_no_problem() -> None:
    assert problems(study(target=["en", "fr", "de"])) == []
    assert problems(study(source=["de"], target=["en", "de"])) == []


@pytest.mark.parametrize("method", [{"base": "xmod"}, {"base": "full-ft"}])
@pytest.mark.parametrize("axis", ["source", "target"])
def test_a_language_without_a_module_is_named(method: dict[str, Any], axis: str) -> None:
    [problem] = problems(study(method, **{axis: ["de"]}))
    assert problem.startswith(
        "grids.g: encoder e has modules of en, fr, but none of de: leave de out, or name it in `pairs`"
    )


def test_a_pretrained_language_is_not_added_once_more() -> None:
    start = {"task": "text", "method": "add", "pairs": ["fr"], "missing": "none"}
    [problem] = problems(study({"base": "xmod", "start": start}))
    assert "method m would add fr to it once more" in problem


def test_pairs_are_refused() -> None:
    [problem] = problems(study(target=["en-fr"]))
    assert "each for inputs in one language: leave out en-fr" in problem


def test_shared_and_a_checkpoint_without_a_mapping_have_no_languages_that_could_lack() -> None:
    shared = {"scratch": {"kind": "xlmr", "architecture": "shared", "languages": ["en"]}}
    for encoder in (shared, {"hub": "facebook/xmod-base"}):
        described = study({"base": "xmod"}, encoder, target=["de"])
        assert described.encoders["e"].modules_of(described) is None
        assert [*check_encoders.grids(described)] == []


def test_a_mapping_says_which_modules_are_used() -> None:
    published = {"hub": "facebook/xmod-base", "vocabulary": "added-de", "modules": {"en": "en_XX"}}
    described = study(encoder=published)
    assert described.encoders["e"].modules_of(described) == ["en"]
    [problem] = problems(described)
    assert "has modules of en, but none of fr" in problem
    [problem] = problems(study(encoder=published | {"modules": {"xx": "xx_XX"}}))
    assert problem.startswith("encoders.e.modules: unknown language")


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ({"hub": "a/b", "modules": {"en": "en_XX", "fr": "en_XX"}}, "en and fr have the same module en_XX"),
        ({"scratch": {"kind": "bert", "architecture": "xmod", "languages": ["en"]}}, "scratch.kind"),
        (
            {"scratch": {"kind": "xlmr", "architecture": "xmod", "languages": ["en", "en"]}},
            "each language and each pair once",
        ),
        (
            {"scratch": {"kind": "xlmr", "absent": "zero", "languages": ["en"]}},
            "'absent' is for architecture .* leave it out",
        ),
        (
            {"scratch": {"kind": "xlmr", "architecture": "xmod", "languages": ["en", "fr"], "bitext": [["en", "fr"]]}},
            "leave out `bitext`",
        ),
        (
            {"scratch": {"kind": "xlmr", "architecture": "xmod", "languages": ["en"], "reduction": 200}},
            "smaller than reduction",
        ),
    ],
)
def test_what_does_not_go_together_is_an_error_of_the_schema(encoder: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        study(encoder=encoder)


def test_the_studies_of_the_pages_about_architectures_are_valid() -> None:
    pages = Path(__file__).parents[3] / "docs" / "how-to"
    text = "".join(
        (pages / f"{name}.md").read_text() for name in ("language-modules", "cross-attention", "encoder-decoder")
    )
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    keys: dict[str, Any] = {"name": "s", "title": "s"}
    keys["tasks"] = {"xnli": {"kind": "xnli", "data": {"local": "x"}}, "pretraining": {"kind": "mlm"}}
    for block in blocks:
        for section, entries in block.items():
            keys[section] = keys.get(section, {}) | entries
    codes = {code for entry in keys["encoders"].values() for code in entry.get("scratch", {}).get("languages", ())}
    keys["languages"] = sorted(codes | {"bg", "de"})
    keys["text"] = {"files": {code: f"{code}.txt" for code in keys["languages"]}}
    described = Study.model_validate(keys)
    assert problems(described) == []
    assert set(keys["grids"]["nli"]["method"]) < set(described.methods)
    stages = {name: described.pretraining(name).scratch for name in ("veco-stage-1", "veco", "xlm")}
    assert [scratch.begins_with for scratch in stages.values() if scratch] == [
        "xlmr-large",
        "veco-stage-1",
        "xlmr-large",
    ]
    embeddings = "roberta.embeddings.word_embeddings.weight"
    assert [scratch.trains_weight(embeddings) for scratch in stages.values() if scratch] == [False, True, True]


@pytest.mark.parametrize(
    ("hub", "base", "problem"),
    [
        (
            "jhu-clsp/mmBERT-base",
            "bitfit",
            "method m, encoder e: method bitfit trains biases, and the encoder, of type modernbert",
        ),
        (
            "EuroBERT/EuroBERT-210m",
            "qcross",
            "with `tune: bitfit` the method trains biases, and the encoder, of type eurobert",
        ),
        ("microsoft/mdeberta-v3-base", "structured-dropout", "which an encoder of type deberta-v2 does not use"),
        ("facebook/xmod-base", "madx", "adapters are for encoders without modules for languages, got one of type xmod"),
    ],
)
def test_a_method_that_is_not_for_the_family_of_an_encoder_is_refused(hub: str, base: str, problem: str) -> None:
    described = study({"base": base}, {"hub": hub}, target=["en"])
    [message] = check_encoders.families(described)
    assert message.startswith("grids.g: ") and problem in message
    assert [*check_encoders.families(study({"base": "full-ft"}, {"hub": hub}))] == []
    assert [*check_encoders.families(study({"base": base}, {"hub": "FacebookAI/xlm-roberta-base"}))] == []


def test_the_family_of_an_encoder_in_a_folder_is_that_of_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "modernbert", "norm_bias": true}')
    assert [*check_encoders.families(study({"base": "bitfit"}, {"path": str(tmp_path)}))] == []
    (tmp_path / "config.json").write_text('{"model_type": "modernbert"}')
    assert len([*check_encoders.families(study({"base": "bitfit"}, {"path": str(tmp_path)}))]) == 1
    (tmp_path / "config.json").write_text("{")
    assert [*check_encoders.families(study({"base": "bitfit"}, {"path": str(tmp_path)}))] == []


def test_an_encoder_with_another_head_is_of_the_family_of_the_encoder_that_it_is_of() -> None:
    described = study({"base": "bitfit"}, {"hub": "jhu-clsp/mmBERT-base"})
    described.grids["g"] = described.grids["g"].model_copy(update={"encoder": ["headed"]})
    described.encoders["headed"] = EncoderWithHead.model_validate({"of": "e", "lm_head": {"languages": ["en"]}})
    [problem] = check_encoders.families(described)
    assert "encoder headed: method bitfit trains biases, and the encoder, of type modernbert" in problem


def test_adapters_behind_a_norm_that_the_layers_of_an_encoder_lack_are_refused() -> None:
    method = {"base": "madx", "options": {"pre_norm": "norm", "language": False, "invertible": False}}
    [problem] = check_encoders.families(study(method, {"hub": "FacebookAI/xlm-roberta-base"}))
    assert (
        "option pre_norm is for encoders whose layers have LayerNorms before their blocks, got xlm-roberta" in problem
    )
    assert [*check_encoders.families(study(method, {"hub": "jhu-clsp/mmBERT-base"}))] == []


SIZE = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.mark.parametrize(
    ("config", "base", "problem"),
    [
        ({"model_type": "nomic_bert"}, "madx", "grids.g: method m, encoder e: adapters are for encoders of the types"),
        (
            {"model_type": "big_bird"},
            "structured-dropout",
            "structured attention is for encoders of the types bert",
        ),
        (
            {"model_type": "xlm", "emb_dim": 16, "n_heads": 2},
            "xmod",
            "does not know the name of those of an encoder of type xlm",
        ),
        (
            {"model_type": "ultrabert", "head_dim": 8},
            "bitfit",
            "method bitfit trains biases, and the encoder, of type ultrabert",
        ),
        (
            {"model_type": "bart", "d_model": 16},
            "full-ft",
            "/config.json has the model_type bart",
        ),
        (
            {"model_type": "new", "auto_map": {}},
            "full-ft",
            "/config.json has the unknown model_type 'new'",
        ),
        ({"model_type": "mpnet"}, "full-ft", None),
        ({"model_type": "electra", "embedding_size": 8}, "madx", None),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_the_files_of_a_type_that_is_not_listed_tell_what_fits(
    config: dict[str, Any], base: str, problem: str | None, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZE | config))
    options = {"language": False, "invertible": True} if base == "madx" else {}
    described = study(
        {"base": base, "options": options}, {"path": str(tmp_path), "vocabulary": "added-de"}, target=["en"]
    )
    messages = [*check_encoders.families(described)]
    assert [problem in message for message in messages] == [True] if problem else messages == []


def test_a_head_that_a_type_lacks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZE | {"model_type": "nomic_bert"}))
    encoder = {"path": str(tmp_path), "vocabulary": "added-de"}
    described = study({"base": "full-ft"}, encoder, target=["en"])
    described.tasks["ner"] = type(described.tasks["ner"])(kind="xquad")
    [message] = check_encoders.families(described)
    assert message.startswith("grids.g: task ner, encoder e: transformers has no class QuestionAnswering")


def test_a_fetched_encoder_of_the_hub_tells_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    described = study({"base": "madx"}, {"hub": "some/encoder"}, target=["en"])
    assert [*check_encoders.families(described)] == [], "nothing is known before it is fetched"
    folder = tmp_path / "results/s/encoders/e"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SIZE | {"model_type": "nomic_bert"}))
    (folder / "encoder.json").write_text(json.dumps({"hub": "some/encoder"}))
    [message] = check_encoders.families(described)
    assert "got nomic_bert" in message
    (folder / "encoder.json").write_text(json.dumps({"hub": "an/other"}))
    assert [*check_encoders.families(described)] == [], "the folder has an encoder that the study names no more"
