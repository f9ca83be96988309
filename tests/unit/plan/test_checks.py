"""Mistakes that only cells and runs show are told with their line: text that there is not, steps that no training reaches."""

from itertools import islice, product
from pathlib import Path

import pytest
from study_fixture import SPOKEN, TEXT, write
from transformers import BertConfig, BertModel

from xlgrid.plan.checks import inherited_problems
from xlgrid.plan.load import load_plan, load_study

pytestmark = pytest.mark.usefixtures("queries")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "seed: [1], checkpoints: [50, 100]",
            "seed: [1], checkpoints: [50, 60]",
            "s.yaml:17: .*query in en keeps 50, 100, not 60",
        ),
        ("seed: [1], checkpoints: [50, 100]", "seed: [1], checkpoints: [50, 50]", "s.yaml:17: .*twice"),
        ("source: fr}, set: {checkpoints: [50, 100]}", "source: fr}, set: {}", "query in fr keeps none, not 50, 100"),
        (
            "source: en}, set: {checkpoints: [50, 100]}",
            "source: en}, set: {checkpoints: [50, 200]}",
            "s.yaml:15: .*query/en/.* step 200",
        ),
        (
            "method: query}}",
            "method: query, source: en}}",
            "grids.main.checkpoints: cells of method own are not evaluated",
        ),
        (
            "method: query}}",
            "method: query, at: source}}",
            "grids.main.checkpoints: cells of method own are not evaluated",
        ),
        (
            "mini: {scratch: {kind: bert, languages: [en]}}",
            "mini: {path: results/s/encoders/mini/}",
            "s.yaml:4: encoders.mini.path: results/s/encoders/mini/ ",
        ),
        ("{n: 100}}", "{n: 100}, start: ner}", "s.yaml:6: tasks.rt.start: .* head token.* head sequence"),
    ],
)
def test_checkpoints_and_stages_that_cannot_be_are_told_with_their_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert SPOKEN.count(old) == 1
    load_study(write(tmp_path, SPOKEN))
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, SPOKEN.replace(old, new)))


def test_mlm_runs_need_text(tmp_path: Path) -> None:
    text = SPOKEN.replace("languages: [en, fr]", "languages: [en, fr, sus]", 1).replace(
        "options: {n: 100}", "data: {local: x}"
    )
    text += "new_languages: {sus: {name: Susu, family: Mande, script: Latn}}\n"
    text = text.replace(", checkpoints: [50, 100]}\n", "}\n")
    with pytest.raises(
        ValueError,
        match=r"text: runs of method query train on text, but there is no text in sus, .* name a file",
    ):
        load_study(write(tmp_path, text))
    load_study(write(tmp_path, text + "text: {files: {sus: sus.txt}}\n"))


def test_runs_that_draw_parts_without_end_have_steps(tmp_path: Path) -> None:
    """The steps may be set by another entry than the one that sets `alpha`."""
    drawn = SPOKEN.replace("source: en}, set: {", "source: en}, set: {alpha: 0.7, ")
    load_study(write(tmp_path, drawn))
    with pytest.raises(ValueError, match=r"s\.yaml:15: .*in results.*mlm.*, `alpha` .* set `steps`"):
        load_study(write(tmp_path, drawn.replace("set: {steps: 100}", "set: {epochs: 3}")))


def test_an_average_is_of_evaluations_that_there_are(tmp_path: Path) -> None:
    averaged = SPOKEN.replace("- {set: {steps: 100}}", "- {set: {steps: 100, keep: average, averaged: 10}}")
    load_study(write(tmp_path, averaged))
    with pytest.raises(
        ValueError, match=r"s\.yaml:13: .*in results.*, `keep: average` takes .* last 11 .* lower `averaged`"
    ):
        load_study(write(tmp_path, averaged.replace("averaged: 10", "averaged: 11")))


@pytest.mark.parametrize(
    ("when", "targets", "message"),
    [
        ("task: rt", "[en, gr]", r"s\.yaml:\d+: .*dev_targets: .*'gr'"),
        ("task: rt", "[en, fr, romance]", r"`dev_targets` has a target twice among en, fr, fr"),
        ("task: rt", "[en-fr, qa1]", "language or group"),
        ("task: rt", "5", r"s\.yaml:\d+: training.3.set.dev_targets: .*, got 5"),
        ("task: rt", "{en: fr}", r"training.3.set.dev_targets: .*, got {'en': 'fr'}"),
        ("task: mlm", "[en]", "is an MLM run, which is evaluated on the text that it trains on"),
        ("task: ner", "[en, fr]", "ner has no dev data in fr"),
        ("task: rt, method: own", "romance", "cells of fr have weights of another MLM run"),
    ],
)
def test_dev_targets_of_a_run_have_data_and_the_weights_of_the_run(
    tmp_path: Path, when: str, targets: str, message: str
) -> None:
    text = SPOKEN.replace(
        "ner: {kind: wikiann, data: {local: x}}", "ner: {kind: wikiann, data: {local: x, languages: [en]}}"
    )
    text += "  full: {task: [rt, ner], encoder: [mini], method: [full-ft], source: [en], target: [en], seed: [1]}\n"
    text = text.replace("methods:\n", "methods:\n  full-ft: {}\n") + "groups: {romance: [fr]}\n"
    entry = f"  - {{when: {{{when}}}, set: {{dev_targets: {targets}}}}}\ngrids:\n"
    load_study(write(tmp_path, text))
    load_study(
        write(
            tmp_path,
            text.replace(
                "grids:\n", entry.replace(when, "method: full-ft, task: rt").replace(targets, "[en, romance]")
            ),
        )
    )
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, text.replace("grids:\n", entry)))


def test_no_dev_targets_replace_those_of_an_earlier_entry(tmp_path: Path) -> None:
    entries = "  - {set: {dev_targets: [en]}}\n  - {when: {task: rt}, set: {dev_targets: null}}\ngrids:\n"
    study = load_study(write(tmp_path, TEXT.replace("grids:\n", entries)))
    assert study.recipe("rt", "mini", "full-ft", "en", 1).training.dev_targets == ()


@pytest.mark.parametrize(("codes", "fits"), [(40, True), (127, False)])
def test_the_source_of_a_run_is_the_name_of_a_folder(tmp_path: Path, codes: int, fits: bool) -> None:
    """Forty languages with a code of two letters are a mix whose name a folder can have; 127 with one of four letters are not."""
    size = 2 if fits else 4
    names = ["".join(letters) for letters in islice(product("abcdefgh", repeat=size), codes)]
    declared = ", ".join(f"x{name}: {{name: {name}, family: F, script: Latn}}" for name in names)
    text = TEXT.replace("languages: [en, fr]", f"languages: [en, fr, {', '.join('x' + n for n in names)}]")
    text = text.replace("encoders:\n", f"new_languages: {{{declared}}}\nencoders:\n", 1)
    text = text.replace(
        "rt: {kind: ruletaker, options: {n: 100}}", "rt: {kind: ruletaker, data: {local: x}, mix: whole}"
    )
    text = text.replace("source: [en]", "source: ['mix:mono']").replace("[mono, en-X]", "[en]")
    path = write(tmp_path, text[: text.index("exhibits:")])
    if fits:
        assert [*{*map(len, (run.source for run in load_plan(path).runs))}] == [5 + 40 * 4]
    else:
        with pytest.raises(
            ValueError, match=r"the source en\+fr\+xaaaa.* has 767 characters, .* which can have 255: mix fewer"
        ):
            load_plan(path)


HEADLESS = """\
title: a study
languages: [en, fr]
encoders:
  e5: {path: e5}
  e5-mlm: {of: e5, lm_head: {languages: [en]}}
tasks:
  rt: {kind: ruletaker, options: {n: 100}}
  text: {kind: mlm}
  speech: {kind: perplexity, max_length: 64}
methods:
  adapter: {base: queries, options: {tune: query}}
  own: {base: queries, start: {task: text, method: adapter}}
  as-is: {}
  full-ft: {}
grids:
  main: {task: [rt], encoder: [e5-mlm], method: [own, full-ft], source: [en], target: [mono], seed: [1]}
"""


@pytest.fixture
def headless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8)
    BertModel(config).save_pretrained("e5")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "user"),
    [
        ("encoder: [e5-mlm]", "encoder: [e5]", "run results/s/runs/text/e5/adapter/fr/seed1"),
        (
            "grids:\n",
            "grids:\n  bare: {task: [speech], encoder: [e5], method: [as-is], source: [none], target: [en], seed: [1]}\n",
            "grid bare",
        ),
    ],
)
def test_an_encoder_without_a_head_is_none_for_predicting_tokens(headless: Path, old: str, new: str, user: str) -> None:
    load_study(write(headless, HEADLESS))
    with pytest.raises(ValueError) as refused:
        load_study(write(headless, HEADLESS.replace(old, new)))
    message = str(refused.value)
    assert f"encoders.e5: {user} predicts tokens, and e5 has no language-modelling head" in message
    assert "model.safetensors lacks cls.predictions.*" in message
    assert "`encoders: {e5-mlm: {of: e5, lm_head: {languages: [en, fr]}}}`" in message


def test_an_encoder_without_a_head_is_fine_for_tasks_and_for_imported_runs(headless: Path) -> None:
    load_study(
        write(
            headless, HEADLESS.replace("encoder: [e5-mlm], method: [own, full-ft]", "encoder: [e5], method: [full-ft]")
        )
    )
    imported = "{base: queries, options: {tune: query}, read: {folder: x}}"
    read = HEADLESS.replace("{base: queries, options: {tune: query}}", imported).replace(
        "encoder: [e5-mlm]", "encoder: [e5]"
    )
    load_study(write(headless, read))


def test_an_encoder_without_a_head_is_fine_to_begin_with(headless: Path) -> None:
    """All weights train there, so that a new head is drawn once."""
    other = "encoders:\n  other: {tokenizer: e5, scratch: {begin: e5, languages: [en], hidden: 8, layers: 2, heads: 2, intermediate: 8}}\n"
    load_study(write(headless, HEADLESS.replace("encoders:\n", other)))


def test_a_fetched_encoder_is_looked_at_too(headless: Path) -> None:
    study = HEADLESS.replace("{path: e5}", "{hub: a/b}").replace("encoder: [e5-mlm]", "encoder: [e5]")
    load_study(write(headless, study))
    Path("results/s/encoders").mkdir(parents=True)
    Path("e5").rename("results/s/encoders/e5")
    with pytest.raises(ValueError, match="and results/s/encoders/e5 has no language-modelling head"):
        load_study(write(headless, study))


def test_an_encoder_has_the_layers_that_it_should_keep(headless: Path) -> None:
    load_study(write(headless, HEADLESS.replace("{path: e5}", "{path: e5, layers: 2}")))
    with pytest.raises(ValueError, match=r"encoders\.e5\.layers: .* the first 3 layers, but the encoder has 2"):
        load_study(write(headless, HEADLESS.replace("{path: e5}", "{path: e5, layers: 3}")))


@pytest.mark.parametrize("place", ["encoders.e5.path", "tokenizers.v.path"])
def test_a_tokenizer_of_an_older_kind_is_refused_when_the_study_is_read(headless: Path, place: str) -> None:
    """Snakemake would say that it misses tokenizer.json, and not how to make it."""
    Path("e5", "spm.model").touch()
    study = HEADLESS
    if place.startswith("tokenizers"):
        Path("v").mkdir()
        Path("e5", "spm.model").rename("v/spm.model")
        study = study.replace("{path: e5}", "{path: e5, tokenizer: v}") + "tokenizers: {v: {path: v}}\n"
    with pytest.raises(ValueError, match=r"has no tokenizer\.json, but spm\.model, .* sentencepiece") as refused:
        load_study(write(headless, study))
    assert place in str(refused.value)
    for folder in ("e5", "v"):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "tokenizer.json").touch()
    load_study(write(headless, study))


WITH_CLAIM = """\
title: methods compared
languages: [en, fr]
encoders: {mini: {scratch: {kind: bert, languages: [en, fr]}}}
tasks: {d0: {kind: ruletaker, options: {n: 100, max_depth: 0}}}
methods: {full-ft: {}, bitfit: {}}
grids:
  all: {task: [d0], encoder: [mini], method: [full-ft], source: [en, fr], target: [mono], seed: [1, 2]}
  few: {task: [d0], encoder: [mini], method: [bitfit], source: [en], target: [mono], seed: [1, 2]}
claims: {better: {says: s, select: {source: en}, compare: [{method: bitfit}, {method: full-ft}], expect: greater}}
exhibits: {bitfit: {kind: table, title: BitFit, select: {method: bitfit, source: en}, rows: [source], columns: target}}
"""


@pytest.mark.parametrize(
    ("own", "refused"),
    [
        ("", None),
        (
            "claims: {mine: {says: s, select: {method: bitfit, source: en}, against: 50, expect: greater}}\n",
            "claims.mine",
        ),
        (
            "exhibits: {mine: {kind: table, title: t, select: {method: bitfit, source: en}, rows: [source], columns: target}}\n",
            "exhibits.mine",
        ),
    ],
)
def test_a_study_with_fewer_cells_keeps_what_it_inherits_and_its_own_needs_cells(
    tmp_path: Path, own: str, refused: str | None
) -> None:
    (tmp_path / "whole.yaml").write_text(WITH_CLAIM)
    (tmp_path / "part.yaml").write_text(f"extends: whole\ntitle: a part\ngrids: {{few: {{source: [fr]}}}}\n{own}")
    if refused is None:
        assert len(load_plan(tmp_path / "part.yaml").cells) == 12
    else:
        with pytest.raises(ValueError, match=rf"part.yaml:4: {refused}\b"):
            load_plan(tmp_path / "part.yaml")


def test_inherited_claims_without_cells_are_named_because_the_report_needs_them(tmp_path: Path) -> None:
    (tmp_path / "whole.yaml").write_text(WITH_CLAIM)
    part = tmp_path / "part.yaml"
    part.write_text("extends: whole\ntitle: a part\ngrids: {few: {source: [fr]}}\n")
    assert inherited_problems(load_plan(part)) == [
        "claims.better: no cell is planned for en bitfit: select others, or leave the claim out "
        "(`claims: {better: null}` leaves out the inherited claim)"
    ]
    assert not inherited_problems(load_plan(tmp_path / "whole.yaml"))
    part.write_text(part.read_text() + "claims: {better: null}\n")
    assert not inherited_problems(load_plan(part))
