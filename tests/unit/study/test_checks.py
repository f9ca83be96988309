"""Names are known to the other parts of a study."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from study_fixture import QA, TEXT, write

from xlgrid.architectures import PRETRAINING
from xlgrid.plan.load import load_study
from xlgrid.study.checks import problems
from xlgrid.study.schema import Study
from xlgrid.tasks import mlm


def test_a_task_can_be_trained_on_another_of_the_same_head(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA.replace("kind: copa,", "kind: copa, trained_on: siqa,")))
    assert [study.entry("copa", split)[0] for split in ("train", "dev", "test")] == ["siqa", "siqa", "copa"]
    assert study.entry("xquad", "train") == ("xquad", study.tasks["xquad"])


SHARED = TEXT.replace(
    "  mini: {scratch: {kind: bert, languages: [en]}}\n",
    "  mini: {tokenizer: both, scratch: {kind: bert, languages: [en]}}\n"
    "  other: {tokenizer: both, scratch: {kind: bert, languages: [fr]}}\n"
    "  third: {scratch: {kind: bert, languages: [fr]}}\n"
    "tokenizers:\n  both: {languages: [en, fr], size: 500}\n",
)


def test_encoders_share_a_tokenizer_of_the_study_or_of_another_encoder(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, SHARED))
    assert [study.tokenizer_of(name) for name in study.encoders] == ["both", "both", "third"]
    assert {*study.all_tokenizers} == {"both", "third"} and study.all_tokenizers["both"].size == 500
    theirs = load_study(write(tmp_path, SHARED.replace("other: {tokenizer: both", "other: {tokenizer: third")))
    assert theirs.tokenizer_of("other") == "third" and theirs.all_tokenizers["third"].languages == ("fr",)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("other: {tokenizer: both", "other: {tokenizer: bath", 5, "unknown tokenizer 'bath', did you mean 'both'"),
        ("  both: {", "  third: {languages: [en]}\n  both: {", 8, "encoder third has a tokenizer of its own"),
        (
            "[en, fr], size",
            "[en, sw], size",
            8,
            "unknown language (the study's `languages` must list it first) 'sw'",
        ),
        (
            "{kind: bert, languages: [fr]}}",
            "{kind: xlmr, languages: [fr]}}",
            5,
            "is of kind xlmr, but its tokenizer both of",
        ),
        ("size: 500}", "size: 500, max_length: 40}", 10, "too long for tokenizer both, which takes 40"),
        ("{languages: [en, fr], size: 500}", "{path: x, size: 500}", 8, "is for a tokenizer with `languages`"),
        (
            "languages: [en]}}",
            "languages: [en], vocab: 90}}",
            4,
            "scratch.vocab is the size",
        ),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_named(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in SHARED
    with pytest.raises(ValueError) as error:
        load_study(write(tmp_path, SHARED.replace(old, new, 1)))
    assert f"s.yaml:{line}: " in str(error.value) and message in str(error.value)


def test_the_tokenizers_that_the_documentation_shows_are_those_of_a_study(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "text.md").read_text()
    [example] = re.findall(r"^```yaml\n(tokenizers:.*?)^```$", page, re.MULTILINE | re.DOTALL)
    parts = yaml.safe_load(example)
    keys = yaml.safe_load(TEXT) | {"languages": ["en", "fr", "de"]}
    keys["encoders"] |= parts.pop("encoders")
    keys["tasks"]["mlm"] = {"kind": "mlm", "tokenizer": "mine"}
    study = load_study(write(tmp_path, yaml.safe_dump(keys | parts)))
    assert study.tokenizer_of("large-xlmr") == "small" and study.all_tokenizers["small"].rows == 100_000


def test_rows_that_a_task_is_tested_on_are_held_out_by_all_tasks_on_text(tmp_path: Path) -> None:
    tested = TEXT.replace(
        "tasks:\n", "tasks:\n  tested: {kind: perplexity}\n  more: {kind: mlm, options: {dev_rows: 2}}\n"
    )
    with pytest.raises(
        ValueError, match=r"s\.yaml:6: .*test rows of tested are training rows of task more, .*10000 in .* 2 in"
    ):
        load_study(write(tmp_path, tested))
    alike = tested.replace("dev_rows: 2", "dev_rows: 10000")
    assert load_study(write(tmp_path, alike)).tasks["more"].options == {"dev_rows": 10000}
    fewer = tested.replace("{kind: perplexity}", "{kind: perplexity, options: {dev_rows: 2}}")
    assert PRETRAINING in load_study(write(tmp_path, fewer)).tasks
    few, many = ([*map(mlm.HoldOut(dev_rows).split_of, range(1000))] for dev_rows in (2, 10_000))
    assert [(row, many[row]) for row in range(1000) if few[row] == "test"] == [(25, "test"), (75, "test")]
    untested = tested.replace("  tested: {kind: perplexity}\n", "")
    assert load_study(write(tmp_path, untested)).tasks["more"].options == {"dev_rows": 2}


def pretrained() -> dict[str, Any]:
    """The encoders and the task of docs/how-to/pretraining.md in a study."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "pretraining.md").read_text()
    [example] = re.findall(r"^```yaml\n(encoders:.*?)^```$", page, re.MULTILINE | re.DOTALL)
    parts = yaml.safe_load(example)
    keys = yaml.safe_load(TEXT) | {"languages": ["en", "fr", "ru"]}
    keys["encoders"] |= parts["encoders"]
    for task in keys["tasks"].values():
        task["max_length"] = 64
    keys["tasks"] |= parts["tasks"]
    keys["grids"]["main"]["encoder"] = ["mine", "mine-early"]
    return keys


def test_the_pre_training_that_the_documentation_shows_is_that_of_a_study(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, yaml.safe_dump(pretrained())))
    recipe = study.pretraining("mine")
    assert recipe.source == "en+fr+ru+en-fr+en-ru" and recipe.task == "pretraining" and recipe.scratch
    assert (recipe.training.steps, recipe.training.checkpoints, recipe.training.tlm) == (20000, (5000, 10000), 0.25)
    assert study.tokenizer_of("mine-early") == "mine" and "mine-early" not in study.all_tokenizers


def test_a_study_has_the_tokens_for_its_pre_training_without_a_word(tmp_path: Path) -> None:
    keys = pretrained()
    del keys["tasks"]["pretraining"]
    task = load_study(write(tmp_path, yaml.safe_dump(keys))).tasks["pretraining"]
    assert (task.kind, task.max_length, task.options) == ("mlm", 512, {"lines": "segments"})


def test_an_encoder_of_shorter_inputs_needs_a_task_of_its_length(tmp_path: Path) -> None:
    """If the study had shorter tokens for it, without a word, the tokens of every other encoder would change, too."""
    keys = pretrained()
    del keys["tasks"]["pretraining"]
    keys["encoders"]["short"] = {"scratch": {"languages": ["en"], "max_length": 100}}
    with pytest.raises(ValueError, match=r"encoders\.short\.scratch: .* 512 tokens, .* takes 100"):
        load_study(write(tmp_path, yaml.safe_dump(keys)))
    keys["tasks"]["pretraining"] = {"kind": "mlm", "max_length": 100}
    load_study(write(tmp_path, yaml.safe_dump(keys)))


def test_the_task_of_a_pre_training_fits_its_encoder_and_its_tokenizer(tmp_path: Path) -> None:
    keys = pretrained()
    keys["encoders"]["mine"]["scratch"]["max_length"] = 64
    with pytest.raises(ValueError, match="128 tokens, too long for encoder mine"):
        load_study(write(tmp_path, yaml.safe_dump(keys)))
    keys = pretrained() | {"tokenizers": {"short": {"kind": "xlmr", "languages": ["en"], "max_length": 64}}}
    keys["encoders"]["mine"]["tokenizer"] = "short"
    with pytest.raises(ValueError, match="128 tokens, too long for tokenizer short"):
        load_study(write(tmp_path, yaml.safe_dump(keys)))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"of": "mime", "step": 5000}, "did you mean 'mine'"),
        ({"of": "mine", "step": 6000}, "the pre-training of mine keeps the steps 5000, 10000, not 6000"),
        ({"scratch": {"languages": ["en"], "task": "pretrainin"}}, "did you mean 'pretraining'"),
        ({"scratch": {"languages": ["en"], "bitext": [["en", "fr"]]}}, "unknown language of this encoder 'fr'"),
        ({"scratch": {"languages": ["en"], "nsp": True}}, "scratch.nsp: .* task pretraining has `lines: joined`"),
        ({"scratch": {"languages": ["en"], "begin": "mime"}}, r"scratch\.begin: .*did you mean 'mine'"),
        ({"scratch": {"languages": ["en"], "begin": "other"}}, "unknown encoder that is there before 'other'"),
        ({"scratch": {"languages": ["en"], "begin": "mine"}}, "has the tokenizer mine, .*: add `tokenizer: mine`"),
    ],
)
def test_a_mistake_in_an_encoder_from_scratch_is_named(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    keys = pretrained()
    keys["encoders"]["other"] = entry
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, yaml.safe_dump(keys)))


SIZES = {"hidden": 128, "layers": 4, "heads": 4, "intermediate": 256, "max_length": 512}


@pytest.mark.parametrize(
    ("published", "sizes", "message"),
    [
        (None, {"hidden": 64}, "mine has hidden_size 128, and this one 64: give both the same `hidden`"),
        (None, {"layers": 2}, "mine has num_hidden_layers 4, and this one 2: give both the same `layers`"),
        (None, {"heads": 2}, "mine has num_attention_heads 4, and this one 2: give both the same `heads`"),
        (
            None,
            {"intermediate": 8},
            "mine has intermediate_size 256, and this one 8: give both the same `intermediate`",
        ),
        (
            None,
            {"max_length": 600},
            "mine has max_position_embeddings 514, and this one 602: give both the same `max_length`",
        ),
        ("facebook/xmod-base", {}, "mine is of type xmod, and this one of type xlm-roberta: name an encoder"),
        ("FacebookAI/xlm-roberta-base", {}, "mine has hidden_size 768, and this one 128: give both the same `hidden`"),
        ("FacebookAI/xlm-roberta-base", {"hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072}, None),
        ("me/of-unknown-sizes", {}, None),
    ],
)
def test_an_encoder_begins_with_one_of_its_type_and_its_known_sizes(
    published: str | None, sizes: dict[str, Any], message: str | None
) -> None:
    keys = pretrained()
    keys["encoders"]["mine"]["scratch"] |= SIZES
    if published:
        keys["encoders"]["mine"] = {"hub": published}
    scratch = {"kind": "xlmr", "languages": ["en"], "task": "pretraining", "begin": "mine"} | SIZES | sizes
    keys["encoders"]["other"] = {"tokenizer": "mine", "scratch": scratch}
    about = [problem for problem in problems(Study(**keys)) if problem.startswith("encoders.other.scratch.begin")]
    assert about == [] if message is None else about[0].startswith(f"encoders.other.scratch.begin: {message}")


@pytest.mark.parametrize(("kept", "fits"), [(4, True), (3, False)])
def test_an_encoder_begins_with_the_layers_that_another_keeps(kept: int, fits: bool) -> None:
    keys = pretrained()
    keys["encoders"]["mine"] = {"hub": "FacebookAI/xlm-roberta-base", "layers": kept}
    scratch = {
        "kind": "xlmr",
        "languages": ["en"],
        "task": "pretraining",
        "begin": "mine",
        "shape": "base",
        "layers": 4,
    }
    keys["encoders"]["other"] = {"tokenizer": "mine", "scratch": scratch}
    assert fits != any("encoders.other.scratch.begin" in problem for problem in problems(Study(**keys)))


@pytest.mark.parametrize("begin", ["other", "other-early"])
def test_encoders_do_not_begin_with_each_other(tmp_path: Path, begin: str) -> None:
    keys = pretrained()
    of_both = {"kind": "xlmr", "languages": ["en"], "task": "pretraining", "objective": "mlm+tlm", "adjacent": "next"}
    keys["encoders"]["mine"]["scratch"] |= SIZES
    of_both |= SIZES
    keys["encoders"]["other"] = {
        "tokenizer": "mine",
        "scratch": of_both | {"begin": "mine"},
        "training": {"checkpoints": [9]},
    }
    keys["encoders"]["other-early"] = {"of": "other", "step": 9}
    load_study(write(tmp_path, yaml.safe_dump(keys)))
    keys["encoders"]["mine"]["scratch"]["begin"] = begin
    with pytest.raises(
        ValueError, match=r"mine\.scratch\.begin: mine begins with other(-early begins with other)? begins with mine:"
    ):
        load_study(write(tmp_path, yaml.safe_dump(keys)))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            {"inputs": ["first"]},
            r"scratch\.bitext_task: unknown task of kind `mlm` with `data` and two `inputs` 'opus'",
        ),
        ({"data": {"hub": "a/b", "names": {"en-ru": "en-ru"}}}, r"scratch\.bitext: opus has no train data in en-fr"),
        ({"max_length": 999}, r"task opus has inputs of up to 999 tokens, too long for encoder other"),
    ],
)
def test_the_task_of_bitext_has_pairs_of_texts(tmp_path: Path, task: dict[str, Any], message: str) -> None:
    keys = pretrained()
    scratch = {"kind": "xlmr", "languages": ["en", "fr"], "bitext": [["en", "fr"]], "bitext_task": "opus"}
    keys["encoders"]["other"] = {"scratch": scratch}
    data = {"hub": "Helsinki-NLP/opus-100", "names": {"en-fr": "en-fr"}}
    opus = {"kind": "mlm", "inputs": ["first", "second"], "data": data, "max_length": 128}
    keys["tasks"]["opus"] = opus
    load_study(write(tmp_path, yaml.safe_dump(keys)))
    keys["tasks"]["opus"] = opus | task
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, yaml.safe_dump(keys)))


def test_the_next_row_of_a_text_goes_on_with_it(tmp_path: Path) -> None:
    keys = pretrained()
    scratch = {"languages": ["en"], "objective": "mlm+tlm", "adjacent": "next"}
    keys["encoders"]["other"] = {"scratch": scratch}
    load_study(write(tmp_path, yaml.safe_dump(keys)))
    del keys["tasks"]["pretraining"]["options"]
    with pytest.raises(ValueError, match=r"other\.scratch\.adjacent: .* has `documents: cut`: set .*pack"):
        load_study(write(tmp_path, yaml.safe_dump(keys)))


def test_a_bitext_of_texts_with_customs_is_refused(tmp_path: Path) -> None:
    keys = pretrained()
    keys["grids"]["main"]["languages"] = list(keys["languages"])
    keys["languages"] += ["qa1", "qb1"]
    keys["encoders"]["other"] = {"scratch": {"languages": ["qa1", "qb1"], "bitext": [["qa1", "qb1"]]}}
    load_study(write(tmp_path, yaml.safe_dump(keys)))
    keys["text"] = {"customs": {"facts": 9}}
    with pytest.raises(ValueError, match=r"other\.scratch\.bitext: texts with customs are not parallel"):
        load_study(write(tmp_path, yaml.safe_dump(keys)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("languages: [en, fr]\n", "languages: [en, fr, en]\n", r"s\.yaml:2: languages\.2: en is in the list twice"),
        ("romance: [fr]", "romance: [fr, en-fr, fr]", r"groups\.romance\.2: fr is in the group twice"),
    ],
)
def test_a_language_stands_in_a_list_once(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, TEXT.replace(old, new, 1)))


def test_a_label_names_something_of_the_study(tmp_path: Path) -> None:
    known = load_study(
        write(tmp_path, QA + "labels: {copa: COPA, accuracy: Accuracy, method: Approach, same-family: Near}\n")
    )
    assert known.labels["copa"] == "COPA"
    with pytest.raises(ValueError, match=r"labels: unknown name 'copas', did you mean 'copa'"):
        load_study(write(tmp_path, QA + "labels: {copas: COPA}\n"))


def test_two_names_of_an_axis_have_different_labels(tmp_path: Path) -> None:
    known = load_study(write(tmp_path, QA))
    first, second, *_ = map(str, known.order["target"])
    with pytest.raises(ValueError, match="labels: Here would stand for 2 names of target"):
        load_study(write(tmp_path, f"{QA}labels: {{{first}: Here, {second}: Here}}\n"))


def test_metrics_are_printed_as_papers_write_them_unless_they_have_labels(tmp_path: Path) -> None:
    printed = load_study(write(tmp_path, QA + "labels: {squad-em: exact match}\n")).printed
    assert (printed["squad-f1"], printed["squad-em"]) == ("SQuAD-F1", "exact match")


def test_a_language_with_the_code_of_a_metric_keeps_it(tmp_path: Path) -> None:
    languages = "new_languages: {las: {name: Lama, family: Gur, script: Latn}}\nlanguages: [las, "
    tree = "  tree: {kind: udparse, data: {local: x}}\n"
    study = TEXT.replace("languages: [", languages, 1).replace("tasks:\n", "tasks:\n" + tree, 1)
    study = study.replace("options: {n: 100}", "data: {local: x}")
    printed = load_study(write(tmp_path, study)).printed
    assert printed["uas"] == "UAS" and "las" not in printed
