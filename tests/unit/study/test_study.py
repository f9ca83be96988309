"""A study file is read strictly, and an error says what, where and what was meant."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from xlgrid.plan.grid import cells
from xlgrid.plan.load import load_study
from xlgrid.study.schema import ImportedAdapters, TaskEntry

TEXT = """\
title: a study
languages: [en, fr]
encoders:
  mini: {mini: {kind: bert, languages: [en]}}
tasks:
  rt: {kind: ruletaker, options: {n: 100}}
methods:
  full-ft: {}
  bitfit: {}
training:
  - set: {lr: 1.0e-3}
  - {when: {method: bitfit}, set: {lr: 2.0e-3}}
grids:
  main: {task: [rt], encoder: [mini], method: [full-ft, bitfit], source: [en], target: [mono, en-X], seed: [1]}
groups:
  romance: [fr]
exhibits:
  heat: {kind: heatmap, title: t, method: full-ft, select: {task: rt}}
  table: {kind: table, title: t, rows: [method], columns: group, groups: [mono, romance, en-X]}
  curve: {kind: curve, title: t, x: step, lines: method}
"""

CURVE = "{kind: curve, title: t, x: step, lines: method}"


def write(folder: Path, text: str, name: str = "s.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("languages:", "langauges:", 2, "languages"),
        (CURVE, "{kind: masks, title: t, methods: [bitfit]}", 20, "unknown method with masks 'bitfit'"),
        (CURVE, "{kind: masks, title: t, methods: []}", 20, "at least 1 item"),
        (CURVE, "{kind: attention, title: t, targets: [en, fr]}", 20, "one context, got contexts in en and fr"),
        (CURVE, "{kind: attention, title: t, targets: [en, en]}", 20, "needs two targets, got 'en' twice"),
        (CURVE, "{kind: attention, title: t, targets: [en, en-ft]}", 20, "did you mean 'en-fr'"),
        (CURVE, "{kind: attention, title: t, targets: [en, en-fr], select: {metric: x}}", 20, "metric"),
        (CURVE, "{kind: parameters, title: t, encoders: [minni], methods: [bitfit]}", 20, "did you mean 'mini'"),
        (CURVE, "{kind: parameters, title: t, encoders: [mini], methods: [bitfut]}", 20, "did you mean 'bitfit'"),
        (CURVE, "{kind: best, title: t, select: {task: rtt}}", 20, "did you mean 'rt'"),
        ("select: {task: rt}", "blocks: [romnce]", 18, "unknown group of the study 'romnce', did you mean 'romance'"),
        ("{method: bitfit}", "{base: bitfut}", 12, "unknown base 'bitfut', did you mean 'bitfit'"),
        ("seed: [1]", "sead: [1]", 14, "seed"),
        ("kind: ruletaker, options", "kind: ruletaker, optoins", 6, "options"),
        ("languages: [en, fr]", "languages: [en, frr]", 2, "fr"),
        ("method: [full-ft, bitfit]", "method: [full-ft, bitfut]", 14, "bitfit"),
        ("{lr: 2.0e-3}", "{learning: 2.0e-3}", 12, "lr"),
        ("source: [en]", "source: [de]", 14, "en"),
        ("source: [en]", "source: [en-fr-en]", 14, "neither a language nor a pair"),
        ("seed: [1]", "seed: [-1]", 14, "greater than or equal to 0"),
        ("seed: [1]", "seed: [10000000000000000000000]", 14, "less than 4294967296"),
        ("seed: [1]", "seed: []", 14, "at least 1 item"),
        ("seed: [1]", "seed: [1], languages: [en, frr]", 14, "did you mean 'fr'"),
        ("target: [mono, en-X]", "target: ['family:Romanc']", 14, "did you mean 'Romance'"),
        ("mini: {kind: bert, languages: [en]}", "mini: {kind: bert, languages: [enn]}", 4, "did you mean 'en'"),
        ("languages: [en]}}", "languages: [en], bitext: [[en, fr]]}}", 4, "unknown language of this encoder 'fr'"),
        ("languages: [en]}}", "languages: [en], max_length: 40}}", 6, "too long for encoder mini"),
        ("options: {n: 100}", "options: {n: 100, max_dept: 1}", 6, "did you mean 'max_depth'"),
        ("options: {n: 100}", "options: {max_depth: 5, rules: [0, 0]}", 6, "takes at least 5 rules"),
        ("kind: ruletaker", "kind: ruletakr", 6, "did you mean 'ruletaker'"),
        ("full-ft: {}", "full-ft: {options: {rank: 3}}", 8, "unknown option"),
        ("{lr: 2.0e-3}", "{lr: fast}", 12, "lr"),
        ("{lr: 2.0e-3}", "{curriculum: [{max_dept: 1, share: 0.1}]}", 12, "did you mean 'max_depth'"),
        ("{method: bitfit}, set", "{source: enn}, set", 12, "did you mean 'en'"),
        ("{method: bitfit}, set", "{source: romnce}, set", 12, "did you mean 'romance'"),
        (
            "{method: bitfit}, set",
            "{source: romance}, set",
            12,
            "no run is for a source of 'romance', which has fr: leave it out",
        ),
        ("romance: [fr]", "romance: [frr]", 16, "did you mean 'fr'"),
        ("romance: [fr]", "en: [fr]", 16, "a language of this study has this name"),
        ("select: {task: rt}", "select: {task: rtt}", 18, "did you mean 'rt'"),
        ("[full-ft, bitfit]", "[full-ft]", 12, "no grid uses method 'bitfit', which the study defines"),
        ("method: full-ft, select", "method: full-tf, select", 18, "did you mean 'full-ft'"),
        ("title: t, rows", "titel: t, rows", 19, "did you mean 'title'"),
        ("columns: group", "columns: [taks, group]", 19, "unknown axis 'taks', did you mean 'task'?"),
        ("columns: group", "columns: [method, group]", 19, "rows and columns name 'method' twice"),
        ("groups: [mono, romance, en-X]", "groups: [mono, romnce]", 19, "did you mean 'romance'"),
        ("groups: [mono, romance, en-X]", "groups: [enn-X]", 19, "did you mean 'en-X'"),
        ("languages: [en, fr]", "languages: [en, fr, cdo]", 14, "task rt cannot be generated in cdo"),
        ("options: {n: 100}", "data: {local: x, labels: {0: entailmnt}}", 6, "did you mean 'entailment'"),
        ("kind: ruletaker, options: {n: 100}", "kind: udpos, data: {local: x}", 14, "has no pairs such as en-fr"),
        ("tasks:", "text: {data: {local: x}}\ntasks:", 5, "`data` and `column` go together"),
        ("x: step", "x: stepp", 20, "did you mean 'step'"),
    ],
)
def test_a_misspelling_names_the_line_and_the_neighbour(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in TEXT
    path = write(tmp_path, TEXT.replace(old, new, 1))
    with pytest.raises(ValueError) as error:
        load_study(path)
    assert f"s.yaml:{line}:" in str(error.value)
    assert said in str(error.value)


def test_dials_of_a_task_and_of_the_text_must_agree(tmp_path: Path) -> None:
    text = (
        TEXT.replace("[en, fr]", "[en, fr, qa1]", 1)
        .replace("seed: [1]", "seed: [1], languages: [en, fr]")
        .replace("tasks:", "tasks:\n  ner: {kind: wikiann, options: {overlap: 0.5}}")
    )
    with pytest.raises(
        ValueError, match=r"s\.yaml:6: tasks\.ner: its languages have overlap 0\.5, those of the text 0\.8"
    ):
        load_study(write(tmp_path, text))
    load_study(write(tmp_path, "text: {dials: {overlap: 0.5}}\n" + text))


def test_a_text_of_ones_own_is_in_a_language_of_the_study(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"s\.yaml:1: text\.files: unknown language 'frr', did you mean 'fr'"):
        load_study(write(tmp_path, "text: {files: {frr: my.txt}}\n" + TEXT))
    load_study(write(tmp_path, "text: {files: {fr: my.txt}}\n" + TEXT))


def test_fetched_text_needs_no_lexicon(tmp_path: Path) -> None:
    text = TEXT.replace("[en, fr]", "[en, fr, sw]", 1).replace("languages: [en]", "languages: [sw]")
    text = text.replace("seed: [1]", "seed: [1], languages: [en, fr]")
    with pytest.raises(ValueError, match="there is no text in sw"):
        load_study(write(tmp_path, text))
    load_study(write(tmp_path, "text: {data: {local: x}, column: premise}\n" + text))


def test_groups_by_family_and_script(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, TEXT))
    assert study.expand("family:Romance", study.grids["main"]) == ("fr",)
    assert study.expand("script:Latn", study.grids["main"]) == ("en", "fr")
    assert study.belongs("family:Romance", "en", "fr") and not study.belongs("family:Romance", "en", "en-fr")


def test_a_probe_of_data_that_are_not_generated_is_refused() -> None:
    data = {"local": "lot/{language}/{split}.jsonl"}
    TaskEntry.model_validate({"kind": "lot", "data": data, "options": {"probe": "none"}})
    with pytest.raises(ValidationError, match="the probe context-only is made of generated statements only"):
        TaskEntry.model_validate({"kind": "lot", "data": data, "options": {"probe": "context-only"}})


def test_a_study_s_name_must_do_for_a_path(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'my study' cannot be a name"):
        load_study(write(tmp_path, TEXT, "my study.yaml"))


def test_later_training_entries_win(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, TEXT))
    assert study.recipe("rt", "mini", "full-ft", "en", 1).training.lr == 1e-3
    assert study.recipe("rt", "mini", "bitfit", "en", 1).training.lr == 2e-3


def test_training_settings_for_a_base_are_those_of_every_method_of_it(tmp_path: Path) -> None:
    text = TEXT.replace("{method: bitfit}", "{base: bitfit}").replace(
        "  bitfit: {}", "  bitfit: {}\n  mine: {base: bitfit}"
    )
    study = load_study(write(tmp_path, text.replace("[full-ft, bitfit]", "[full-ft, bitfit, mine]")))
    rates = {method: study.recipe("rt", "mini", method, "en", 1).training.lr for method in study.methods}
    assert rates == {"full-ft": 1e-3, "bitfit": 2e-3, "mine": 2e-3}


def test_training_settings_for_a_group_are_those_of_its_members(tmp_path: Path) -> None:
    text = TEXT.replace("{method: bitfit}, set", "{source: [romance, en-X]}, set")
    study = load_study(write(tmp_path, text.replace("source: [en]", "source: [mono, en-X]")))
    rates = {source: study.recipe("rt", "mini", "bitfit", source, 1).training.lr for source in ("en", "fr", "en-fr")}
    assert rates == {"en": 1e-3, "fr": 2e-3, "en-fr": 2e-3}


def test_a_language_that_joins_a_group_gets_its_training_settings(tmp_path: Path) -> None:
    text = TEXT.replace("{method: bitfit}, set", "{source: romance}, set")
    write(tmp_path, text.replace("source: [en]", "source: [mono]"))
    wider = "extends: s\nlanguages: [en, fr, it]\ngroups: {romance: [fr, it]}\n"
    study = load_study(write(tmp_path, wider, "wider.yaml"))
    assert study.recipe("rt", "mini", "bitfit", "it", 1).training.lr == 2e-3


def test_a_study_extends_another_with_smaller_axes(tmp_path: Path) -> None:
    write(tmp_path, TEXT)
    small = write(tmp_path, "extends: s\ngrids:\n  main: {method: [bitfit]}\n", "small.yaml")
    study = load_study(small)
    assert study.name == "small"
    assert study.grids["main"].method == ["bitfit"]
    assert study.grids["main"].target == ["mono", "en-X"]


def test_an_error_in_the_parent_names_the_parent(tmp_path: Path) -> None:
    write(tmp_path, TEXT.replace("kind: ruletaker, options", "kind: ruletaker, optoins"))
    with pytest.raises(ValueError, match=r"s\.yaml:6:"):
        load_study(write(tmp_path, "extends: s\n", "small.yaml"))


def test_studies_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "extends: b\n", "a.yaml")
    with pytest.raises(ValueError, match="circle"):
        load_study(write(tmp_path, "extends: a\n", "b.yaml"))


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stands twice"):
        load_study(write(tmp_path, TEXT + "title: again\n"))


def test_an_unknown_study_names_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path, TEXT, "demo.yaml")
    with pytest.raises(FileNotFoundError, match="demo"):
        load_study(tmp_path / "dmo.yaml")


STARTED = TEXT.replace(
    "methods:\n",
    "  mlm: {kind: mlm}\nmethods:\n  query: {base: qcross, options: {tune: query}}\n  pair: {base: qcross, start: {task: mlm, method: query, pairs: [en-fr]}}\n",
).replace("method: [full-ft, bitfit], source: [en]", "method: [full-ft, bitfit, pair], source: [en+en-fr]")


def test_settings_of_text_runs_are_training_settings_like_any(tmp_path: Path) -> None:
    entry = "training:\n  - {when: {task: mlm, method: query, source: en-fr}, set: {steps: 7}}\n"
    study = load_study(write(tmp_path, STARTED.replace("training:\n", entry)))
    assert study.recipe("mlm", "mini", "query", "en-fr", 1).training.steps == 7
    assert study.recipe("rt", "mini", "pair", "en+en-fr", 1).training.steps is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("method: query, pairs", "method: qurey, pairs", "methods.pair.start.method: .*did you mean 'query'"),
        ("pairs: [en-fr]}", "pairs: [en-it]}", "methods.pair.start: .*'it'"),
        ("pairs: [en-fr]}", "pairs: [en-fr], source: en-fr}", "give one, or neither"),
        ("method: query, pairs: [en-fr]}", "method: query}", "grids.main.source: method pair: .* en and en-fr"),
        ("pairs: [en-fr]}", "at: target}", "grids.main: .* method pair begin with .*: leave out en.en-fr, en-fr"),
        ("{n: 100}}", "{n: 100}, start: rtt}", "tasks.rt.start: unknown task 'rtt', did you mean 'rt'"),
        ("{n: 100}}", "{n: 100}, start: rt}", "tasks.rt.start: .* in a circle: rt -> rt"),
        ("bitfit, pair]", "bitfit, query]", "grids.main.method: query, with `tune: query`, is for runs on text"),
        ("seed: [1]}", "seed: [1], snapshots: [5]}", "grids.main.snapshots: cells of method full-ft do not speak"),
        ("full-ft: {}", "full-ft: {imported: {path: 'x/{language}'}}", "methods.full-ft.imported: .*base: madx"),
        ("full-ft: {}", "full-ft: {imported: {path: 'x/{lang}'}}", "methods.full-ft.imported: .*'lang' in braces"),
        ("full-ft: {}", "full-ft: {imported: {path: x, hub: y/z}}", "exactly one"),
        ("full-ft: {}", "full-ft: {imported: {path: x}}", "'x' is the same for every language"),
        ("task: mlm,", "task: rt,", "methods.pair.start.task: unknown task of kind `mlm` 'rt' .there are: mlm."),
        ("  mlm: {kind: mlm}\n", "", "add `mlm: {kind: mlm}` to `tasks`"),
        ("{kind: mlm}", "{kind: mlm, start: rt}", "takes the texts of the study, .* leave out `start`"),
        ("task: [rt]", "task: [rt, mlm]", "grids.main.task: mlm is of kind mlm, whose runs are on text"),
        ("bitfit: {}", "bitfit: {start: {task: mlm, method: bitfit}}", "in a circle, bitfit -> bitfit"),
    ],
)
def test_a_start_that_cannot_be_is_told_before_any_job(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in STARTED
    with pytest.raises(ValueError, match=said):
        load_study(write(tmp_path, STARTED.replace(old, new)))


def test_attention_is_of_runs_that_have_both_targets(tmp_path: Path) -> None:
    other = (
        "  other: {task: [rt], encoder: [mini], method: [bitfit], source: [en-fr], target: [fr-en, en-fr], seed: [1]}\n"
    )
    exhibit = "{kind: attention, title: t, targets: [en, en-fr], select: {source: en-fr}}"
    text = TEXT.replace("groups:\n", f"{other}groups:\n").replace(CURVE, exhibit)
    with pytest.raises(ValueError, match=r"s.yaml:21: exhibits.curve.select: no run .* has both targets, en and en-fr"):
        load_study(write(tmp_path, text))


SPOKEN = """\
title: a study
languages: [en, fr]
encoders:
  mini: {mini: {kind: bert, languages: [en]}}
tasks:
  rt: {kind: ruletaker, options: {n: 100}}
  ner: {kind: wikiann, data: {local: x}}
  mlm: {kind: mlm}
methods:
  query: {base: qcross, options: {tune: query}}
  own: {base: qcross, start: {task: mlm, method: query}}
training:
  - {set: {steps: 100}}
  - {when: {task: mlm, source: fr}, set: {snapshots: [50, 100]}}
  - {when: {task: mlm, source: en}, set: {snapshots: [50, 100]}}
grids:
  main: {task: [rt], encoder: [mini], method: [own], source: [en], target: [mono], seed: [1], snapshots: [50, 100]}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "seed: [1], snapshots: [50, 100]",
            "seed: [1], snapshots: [50, 60]",
            "s.yaml:17: .*query in en keeps 50, 100, not 60",
        ),
        ("seed: [1], snapshots: [50, 100]", "seed: [1], snapshots: [50, 50]", "s.yaml:17: .*a step stands twice"),
        ("source: fr}, set: {snapshots: [50, 100]}", "source: fr}, set: {}", "query in fr keeps none, not 50, 100"),
        (
            "source: en}, set: {snapshots: [50, 100]}",
            "source: en}, set: {snapshots: [50, 200]}",
            "s.yaml:15: .*step 200, .* 100 steps",
        ),
        ("method: query}}", "method: query, source: en}}", "grids.main.snapshots: cells of method own do not speak"),
        ("method: query}}", "method: query, at: source}}", "grids.main.snapshots: cells of method own do not speak"),
        ("{n: 100}}", "{n: 100}, start: ner}", "s.yaml:6: tasks.rt.start: .* its head is token, and sequence here"),
    ],
)
def test_snapshots_and_stages_that_cannot_be_are_told_with_their_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert SPOKEN.count(old) == 1
    load_study(write(tmp_path, SPOKEN))
    with pytest.raises(ValueError, match=said):
        load_study(write(tmp_path, SPOKEN.replace(old, new)))


def test_weights_are_read_under_the_names_that_others_gave() -> None:
    given = ImportedAdapters(hub="Hub/{encoder}-{language}-wiki", names={"xlmr": "xlm-roberta-base", "zhyue": "zh_yue"})
    assert given.place("zhyue", "xlmr") == "Hub/xlm-roberta-base-zh_yue-wiki"
    assert given.place("qu", "bert") == "Hub/bert-qu-wiki"


QA = """\
title: a study
languages: [qa1, qb1]
encoders:
  mini: {mini: {kind: bert, languages: [qa1]}}
tasks:
  xquad: {kind: xquad, max_length: 128}
  copa: {kind: copa, max_length: 128}
  siqa: {kind: siqa, max_length: 128}
methods: {full-ft: {}}
grids:
  main: {task: [xquad, copa], encoder: [mini], method: [full-ft], source: [qa1], target: [mono], seed: [1]}
exhibits:
  table: {kind: table, title: t, rows: [task], columns: target, select: {method: full-ft}}
claims:
  one: {says: s, against: 50, expect: greater, select: {task: xquad}}
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("select: {method: full-ft}", "select: {metric: squad-me}", "did you mean 'squad-em'"),
        ("expect: greater,", "expect: greater, metric: accuracy,", "unknown metric of its tasks 'accuracy'"),
        ("kind: copa,", "kind: copa, trained_on: xquad,", "unknown task with this head 'xquad'"),
        ("kind: copa,", "kind: copa, trained_on: copa,", "unknown task with this head 'copa'"),
        (
            "kind: xquad,",
            "kind: xquad, data: {local: x.csv, dev: {local: y.csv, languages: [qb1]}},",
            "grids.main: xquad has no dev data in qa1: y.csv, where they come from, has qb1 only",
        ),
        ("source: [qa1]", "source: [qa1-qb1]", "task copa has no pairs such as qa1-qb1"),
    ],
)
def test_questions_and_choices_are_checked_before_any_job(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in QA
    with pytest.raises(ValueError) as error:
        load_study(write(tmp_path, QA.replace(old, new, 1)))
    assert said in str(error.value)


def test_a_task_can_be_trained_on_another_of_the_same_head(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA.replace("kind: copa,", "kind: copa, trained_on: siqa,")))
    assert [study.entry("copa", split)[0] for split in ("train", "dev", "test")] == ["siqa", "siqa", "copa"]
    assert study.entry("xquad", "train") == ("xquad", study.tasks["xquad"])


def test_metrics_follow_from_the_tasks_and_a_table_shows_the_main_ones(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, QA.replace("rows: [task]", "rows: [task, metric]")))
    assert study.metrics == {"xquad": ("squad-f1", "squad-em"), "copa": ("accuracy",), "siqa": ("accuracy",)}
    assert study.exhibits["table"].names_metric
    assert not load_study(write(tmp_path, QA)).exhibits["table"].names_metric


def test_a_table_shows_both_metrics_where_it_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, axes in (("main", "rows: [task]"), ("both", "rows: [task, metric]")):
        study = load_study(write(tmp_path, QA.replace("rows: [task]", axes)))
        study.exhibit("table").render("table", study, cells(study), name)
        lines = Path(name, "table.csv").read_text().splitlines()
        # Two targets each.
        assert len(lines) - 1 == 2 * (2 if name == "main" else 3)
        assert "Metric: squad-f1, " in Path(name, "table.md").read_text()
