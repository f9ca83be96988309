"""What pre-training takes, against numbers worked out by hand."""

from pathlib import Path

import pytest

from xlgrid.plan.estimate import Assumed, Estimate
from xlgrid.plan.load import load_plan
from xlgrid.plan.pretraining import Pretraining

# XLM-R base: twelve layers of four projections, two layers in between, two norms; embeddings, of words and positions.
LAYERS = 12 * (4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768)
WORDS = 250_002 * 768
HEAD = 768 * 768 + 768 + 2 * 768 + 250_002
STUDY = """\
title: Tiny
languages: [en, fr]
text: {data: {local: "{language}.txt.xz"}, documents: true}
vocabularies: {large: {kind: xlmr, size: 250002, languages: [en]}}
encoders:
  base:
    vocabulary: large
    scratch: {kind: xlmr, languages: [en, fr], hidden: 768, layers: 12, heads: 12, intermediate: 3072}
    training: {steps: 125000, batch_size: 2048, snapshots: [50000, 100000], evaluations: 2}
tasks:
  pretraining: {kind: mlm, max_length: 512, tokens: 900, options: {documents: pack, dev_rows: 1000}}
  nli: {kind: ruletaker}
methods: {full-ft: {}}
grids: {g: {task: [nli], encoder: [base], method: [full-ft], source: [en], target: [en], seed: [1]}}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pretraining(study: str = STUDY) -> Pretraining:
    Path("tiny.yaml").write_text(study)
    return Estimate(load_plan("tiny.yaml"), Assumed()).pretrainings["base"]


def test_hours_of_the_shape_of_xlmr_base() -> None:
    """On an A100 at 78 TFLOP/s, 1,000 updates of 2,048 x 512 tokens take 2.8 hours. X-MOD, whose modules are 8 % of the layers,
    takes 2.9."""
    cost = pretraining()
    assert (cost.updates, cost.update_tokens) == (125_000, 2048 * 512)
    # Six for each parameter that a token passes; 15 % of the tokens pass the output embeddings. Attention: 4 forward, 8 back.
    work = 6 * (LAYERS + 0.15 * WORDS) + 12 * 12 * 768 * 512
    hours = 125_000 * (2048 * 512 * work / 78e12 + 0.025) / 3600
    # The dev sets: 1,000 rows of 900 tokens in two languages, twice.
    dev = 2 * 2 * 1_000 * 900
    assert cost.hours == pytest.approx(hours + dev * work / 3 / 78e12 / 3600, rel=1e-4)
    assert cost.hours / 125 == pytest.approx(2.77, abs=0.01)
    assert cost.read_tokens == pytest.approx(131e9, rel=0.01)


def test_disk_is_that_of_the_weights() -> None:
    cost = pretraining()
    weights = LAYERS + WORDS + (514 + 1) * 768 + 2 * 768 + HEAD
    assert cost.weights == weights
    assert cost.stored_gigabytes == pytest.approx(3 * 4 * weights / 1e9), "two snapshots"
    # Weights, two moments, the best weights; twice while one file replaces the other.
    assert cost.state_gigabytes == pytest.approx(2 * 4 * 4 * weights / 1e9)
    assert (cost.text_gigabytes, cost.tokens_gigabytes) == (None, None), "nothing says how large the texts are"


def test_text_of_a_stated_size_is_packed() -> None:
    stated = STUDY.replace("tokens: 900", "tokens: 900, examples: {train: 10000000, dev: 1000, test: 1000}")
    cost = pretraining(stated)
    inputs = 2 * 17_578_125
    assert (cost.inputs, cost.tokens) == (inputs, 2 * 9_000_000_000)
    assert cost.text_gigabytes == pytest.approx(2 * 9 * 4.5)
    assert cost.tokens_gigabytes == pytest.approx((4 * 18e9 + 8 * inputs) / 1e9)
    assert cost.hours == pretraining().hours, "the steps decide"


def test_pairs_are_tokens_and_no_text_of_their_own() -> None:
    stated = STUDY.replace("tokens: 900", "tokens: 900, examples: {train: 10000000, dev: 1000, test: 1000}")
    alone = pretraining(stated)
    with_pair = pretraining(
        stated.replace("languages: [en, fr], hidden", "languages: [en, fr], bitext: [[en, fr]], hidden")
    )
    assert with_pair.text_gigabytes == alone.text_gigabytes
    assert with_pair.tokens == 3 / 2 * (alone.tokens or 0)


CROSS = 12 * (4 * (768 * 768 + 768) + 2 * 768)


def veco(**more: str) -> Pretraining:
    """The encoder with cross-attention, on the texts and their bitext, of which half of the rows are."""
    settings = "".join(f", {key}: {value}" for key, value in more.items())
    described = f"{{kind: xlmr, architecture: veco, languages: [en, fr], bitext: [[en, fr]]{settings}, hidden"
    study = STUDY.replace("{kind: xlmr, languages: [en, fr], hidden", described).replace(
        "evaluations: 2", "evaluations: 1"
    )
    return pretraining(study.replace("encoders:\n", "encoders:\n  xlmr: {vocabulary: large, path: x}\n"))


@pytest.mark.parametrize(
    ("settings", "first", "second"),
    [
        ({}, 1.5, 1),
        ({"objective": "ca-mlm"}, 1, 1),
        ({"adjacent": "next"}, 2.0, 1.5),
    ],
)
def test_cross_attention_takes_a_second_pass_and_tlm_one_of_bitext(
    settings: dict[str, str], first: float, second: float
) -> None:
    """The first stream reads x and y, and bitext once more for TLM; `next` reads two rows of a text instead of one."""
    cost = veco(**settings)
    passed, attention = LAYERS + 0.15 * WORDS, 12 * 12 * 768 * 512
    work = first * (6 * passed + attention) + second * (6 * (passed + CROSS) + 2 * attention)
    hours = 125_000 * (2048 * 512 * work / 78e12 + 0.025) / 3600
    assert cost.hours == pytest.approx(hours, rel=5e-3), "and the dev sets"
    assert cost.weights == LAYERS + CROSS + WORDS + (514 + 1) * 768 + 2 * 768 + HEAD


def test_the_first_stage_has_no_gradients_of_what_is_frozen() -> None:
    cost = veco(objective="ca-mlm", begin="xlmr", trains="cross-attention")
    passed, attention = LAYERS + 0.15 * WORDS, 12 * 12 * 768 * 512
    work = 2 * passed + attention / 3 + 4 * passed + 6 * CROSS + 2 * attention
    assert cost.hours == pytest.approx(125_000 * (2048 * 512 * work / 78e12 + 0.025) / 3600, rel=5e-3)


def test_an_encoder_that_another_begins_with_is_pre_trained_for_it() -> None:
    study = STUDY.replace(
        "{kind: xlmr, languages: [en, fr], hidden", "{kind: xlmr, begin: first, languages: [en, fr], hidden"
    )
    first = "  first: {vocabulary: large, scratch: {kind: xlmr, languages: [en], hidden: 768, layers: 12, heads: 12, intermediate: 3072}}\n"
    Path("tiny.yaml").write_text(study.replace("encoders:\n", f"encoders:\n{first}"))
    assert [*Estimate(load_plan("tiny.yaml"), Assumed()).pretrainings] == ["base", "first"]


@pytest.mark.parametrize(("noise", "predicted"), [("", 1.0), (", denoising: {predict: masked}", 0.5 + 0.5 * 0.35)])
def test_a_token_passes_the_encoder_and_the_decoder_of_an_mbart(noise: str, predicted: float) -> None:
    described = f"{{kind: xlmr, architecture: mbart, languages: [en, fr], bitext: [[en, fr]]{noise}, hidden"
    study = STUDY.replace("{kind: xlmr, languages: [en, fr], hidden", described).replace(
        "evaluations: 2", "evaluations: 1"
    )
    cost = pretraining(study)
    # A layer of the decoder has a cross-attention with a norm; both sides have a norm at their ends.
    passed, words = 2 * LAYERS + CROSS + 2 * 2 * 768, WORDS + 2 * 768
    work = 6 * (passed + predicted * words) + 3 * 12 * 12 * 768 * 512
    assert cost.hours == pytest.approx(125_000 * (2048 * 512 * work / 78e12 + 0.025) / 3600, rel=5e-3), (
        "and the dev sets"
    )
    # Positions and a norm of the embeddings on each side; 512 positions and two that mBART leaves out.
    assert cost.weights == passed + words + 2 * (514 * 768 + 2 * 768)


def test_a_head_costs_the_way_forward_through_the_encoder() -> None:
    head = (
        "  e5: {path: x, vocabulary: large, sizes_of: FacebookAI/xlm-roberta-base}\n"
        "  e5-mlm: {of: e5, lm_head: {languages: [en, fr]}, training: {steps: 1000, batch_size: 64, evaluations: 2}}\n"
    )
    Path("tiny.yaml").write_text(STUDY.replace("encoders:\n", f"encoders:\n{head}").replace("[base]", "[e5-mlm]"))
    costs = Estimate(load_plan("tiny.yaml"), Assumed()).pretrainings
    assert [*costs] == ["e5-mlm"]
    # Two for each parameter that a token passes, and two more back through the output embeddings; attention: 4 forward.
    forward = 2 * (LAYERS + 0.15 * WORDS) + 4 * 12 * 768 * 512
    hours = 1000 * (64 * 512 * (forward + 2 * 0.15 * WORDS) / 78e12 + 0.025) / 3600
    dev = 2 * 2 * 1_000 * 900
    # Batches of evaluation have 4,096 tokens, and wait for a third of a step's 25 milliseconds.
    waits = dev / 4096 * 0.025 / 3 / 3600
    assert costs["e5-mlm"].hours == pytest.approx(hours + dev * forward / 78e12 / 3600 + waits, rel=1e-3)
    assert costs["e5-mlm"].trained == HEAD
    assert costs["e5-mlm"].state_gigabytes == pytest.approx(2 * 4 * 4 * HEAD / 1e9)


def test_a_head_whose_encoder_trains_costs_what_a_pretraining_costs() -> None:
    head = (
        "  e5: {path: x, vocabulary: large, sizes_of: FacebookAI/xlm-roberta-base}\n"
        "  e5-mlm: {of: e5, lm_head: {languages: [en, fr], trains: all}, training: {steps: 1000, batch_size: 64, evaluations: 1}}\n"
    )
    Path("tiny.yaml").write_text(STUDY.replace("encoders:\n", f"encoders:\n{head}").replace("[base]", "[e5-mlm]"))
    cost = Estimate(load_plan("tiny.yaml"), Assumed()).pretrainings["e5-mlm"]
    of_token = 6 * (LAYERS + 0.15 * WORDS) + 12 * 12 * 768 * 512
    training = 1000 * (64 * 512 * of_token / 78e12 + 0.025) / 3600
    dev = 2 * 1_000 * 900
    evaluation = dev * (2 * (LAYERS + 0.15 * WORDS) + 4 * 12 * 768 * 512) / 78e12 / 3600 + dev / 4096 * 0.025 / 3 / 3600
    assert cost.hours == pytest.approx(training + evaluation, rel=1e-3)
    assert cost.trained == cost.weights
