"""Mistakes about the method for encoder-decoders are told before any job."""

import re
from pathlib import Path

import pytest
from study_fixture import TEXT, write

from xlgrid.plan.load import load_study

PLAIN = (
    TEXT.replace("languages: [en, fr]", "languages: [en, fr, qa1, qb1]")
    .replace("source: [en], target: [mono, en-X]", "source: [en], target: [en, fr, en-fr], languages: [en, fr]")
    .replace("  rt: {kind", "  mt: {kind: translation, options: {n: 100}}\n  rt: {kind")
    .replace(
        "groups:\n",
        "  mt: {task: [mt], encoder: [mini], method: [full-ft, bitfit], source: [qa1-qb1], target: [qa1-qb1], seed: [1]}\ngroups:\n",
    )
)
TRANSLATED = PLAIN.replace(
    "  bitfit: {}\n", "  bitfit: {}\n  last: {base: seq2seq, options: {decoder: last-1}}\n"
).replace("[full-ft, bitfit], source: [qa1", "[full-ft, last], source: [qa1")


def test_translations_are_of_pairs_and_by_methods_for_encoder_decoders(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, TRANSLATED))
    assert study.metrics["mt"] == ("bleu",)
    assert study.recipe("mt", "mini", "last", "qa1-qb1", 1).options == {"decoder": "last-1"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "method: [full-ft, bitfit]",
            "method: [full-ft, last]",
            r"grids\.main\.method: last is for encoder-decoders, but task rt",
        ),
        ("decoder: last-1", "decoder: last", r"methods\.last\.options\.decoder: must be full, first-N or last-N"),
        (
            "decoder: last-1",
            "decoder: last-9",
            r"grids\.mt: method last, encoder mini: option decoder: last-9 needs 9 layers, but the encoder has",
        ),
    ],
)
def test_a_mistake_about_encoder_decoders_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TRANSLATED
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, TRANSLATED.replace(old, new)))


@pytest.mark.usefixtures("queries")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "bitfit: {}",
            "bitfit: {base: queries}",
            r"grids\.mt: method bitfit, encoder mini: the method is for encoders, .* is an encoder-decoder: use full-ft",
        ),
        ("[qa1-qb1], target", "[en-qb1], target", r"grids\.mt: task mt cannot be generated in en"),
        ("n: 100}}\n  rt", "bleu_tokenizer: 13b}}\n  rt", "unknown tokenizer of sacrebleu '13b', did you mean '13a'"),
        (
            "n: 100}}\n  rt",
            "bleu_tokenizer: {qa1: char}}}\n  rt",
            r"tasks\.mt\.options\.bleu_tokenizer: unknown language that the task generates 'qa1'",
        ),
    ],
)
def test_a_mistake_about_translations_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PLAIN
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, PLAIN.replace(old, new)))


@pytest.mark.usefixtures("queries")
def test_a_method_for_encoders_is_refused_before_anything_is_known_of_the_encoder(tmp_path: Path) -> None:
    elsewhere = PLAIN.replace("bitfit: {}", "bitfit: {base: queries}")
    own = re.sub(r"^  mini: .*$", "  mini: {hub: somebody/encoder}", elsewhere, flags=re.MULTILINE)
    assert own != elsewhere
    with pytest.raises(ValueError, match=r"grids\.mt: method bitfit, encoder mini: the method is for encoders"):
        load_study(write(tmp_path, own))


def test_an_encoder_decoder_begins_with_no_mlm_run(tmp_path: Path) -> None:
    started = TRANSLATED.replace("  mt: {kind", "  mlm: {kind: mlm}\n  mt: {kind").replace(
        "decoder: last-1}}", "decoder: last-1}, start: {task: mlm, method: full-ft, source: qa1}}"
    )
    with pytest.raises(ValueError, match=r"grids\.mt\.method: runs of last begin with an MLM run, .*leave out `start`"):
        load_study(write(tmp_path, started))
