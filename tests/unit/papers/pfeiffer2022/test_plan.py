"""Mistakes that only the cells and runs of a study with an X-MOD show."""

from pathlib import Path

import pytest
from study_fixture import SPOKEN, write

from xlgrid.plan.load import load_study

pytestmark = pytest.mark.usefixtures("queries")


def test_dev_targets_have_a_module(tmp_path: Path) -> None:
    text = SPOKEN.replace("kind: bert, languages: [en]", "kind: xlmr, architecture: xmod, languages: [en]")
    text = text[: text.index("  main: ")].replace("methods:\n", "methods:\n  xmod: {}\n")
    text += "  main: {task: [rt], encoder: [mini], method: [xmod], source: [en], target: [en], seed: [1]}\n"
    text = text.replace("  - {when: {task: mlm, source: fr}, set: {checkpoints: [50, 100]}}\n", "")
    text = text.replace(
        "  - {when: {task: mlm, source: en}, set: {checkpoints: [50, 100]}}\n", "  - {set: {dev_targets: [en]}}\n"
    )
    load_study(write(tmp_path, text))
    with pytest.raises(ValueError, match="cannot be evaluated on fr: encoder mini has no module of it"):
        load_study(write(tmp_path, text.replace("dev_targets: [en]", "dev_targets: [en, fr]")))
    added = text.replace("  xmod: {}\n", "  xmod: {start: {task: mlm, method: add, pairs: [fr]}}\n  add: *add\n")
    added = added.replace("*add", "{base: xmod, options: {tune: language}}")
    added = added.replace("source: [en], target: [en]", "source: [fr], target: [fr]")
    added = added.replace("{set: {dev_targets: [en]}}", "{when: {method: xmod}, set: {dev_targets: [fr]}}")
    load_study(write(tmp_path, added))
    with pytest.raises(ValueError, match="cannot be evaluated on de: encoder mini has no module of it"):
        load_study(
            write(
                tmp_path,
                added.replace("dev_targets: [fr]", "dev_targets: [fr, de]").replace("[en, fr]", "[en, fr, de]"),
            )
        )


def test_embeddings_are_drawn_at_random_in_a_tokenizer_of_the_text_only(tmp_path: Path) -> None:
    text = SPOKEN[: SPOKEN.index("training:")].replace("mini: ", "base: ").replace("kind: bert,", "kind: xlmr,")
    text = text.replace(
        "{base: queries, options: {tune: query}}", "{base: xmod, options: {tune: language, overlap: random}}"
    )
    text = text.replace("{base: queries, start: {", "{base: xmod, start: {")
    text += "tokenizers: {new: {kind: xlmr, languages: [fr]}, base: {kind: xlmr, languages: [en]}}\ngrids:\n"
    text = text.replace("languages: [en]}}\ntasks", "languages: [en]}, tokenizer: base}\ntasks").replace(
        "  base: {s", "  e: {s"
    )
    text += "  main: {task: [rt], encoder: [e], method: [own], source: [fr], target: [fr], seed: [1]}\n"
    load_study(write(tmp_path, text.replace("{kind: mlm}", "{kind: mlm, tokenizer: new}")))
    for task in ("{kind: mlm}", "{kind: mlm, tokenizer: base}"):
        with pytest.raises(ValueError, match=r"methods.query.options: .*`overlap: random` does nothing: leave it out"):
            load_study(write(tmp_path, text.replace("{kind: mlm}", task)))
