"""Write the page of the types of encoders, and what works with each: `python docs/encoder_types.py` writes reference/encoders.md.

The page has what xlgrid says of a tiny model of each type of the installed transformers. `tests/unit/models/test_fit.py` trains these models, and checks
that they work where the page says so.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import transformers

from xlgrid.heads.probe import type_problem

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "encoders.md"
sys.path.insert(0, str(ROOT / "tests" / "unit" / "models"))

from types_fixture import METHODS, TRAINED, problem, tiny, types  # noqa: E402

INTRODUCTION = """# Types of encoders

An encoder is of a type, `model_type` in its `config.json`. This page lists the types of transformers {version} that have a class for the head of a task, and
what works with each. A study that combines what does not work is refused when it is read, with a sentence that says what to do instead. Where the
`config.json` is not there before the encoder is fetched, the job that copies the encoder, or the first run, refuses it in the same way.

`python docs/encoder_types.py` writes this page. xlgrid knows the types of [this table](../how-to/encoder.md#encoders-of-other-families). Of any other type, it makes a model with two layers and
random weights, and looks at what the model computes. `pytest -m thorough tests/unit/models/test_fit.py` trains a tiny model of each type with each head and each method.

An *encoder* is a model of text that transformers can train on masked tokens. It is no encoder-decoder, and its states do not change with
the padding after an input, because a score would then depend on which examples are computed together. Every encoder has the states that tasks of retrieval read.
"""
HEADS = """
## Encoders

A type has a head if transformers has a class for it, which computes the same with and without padding. The methods are full fine-tuning, BitFit, structured attention dropout and Q_cross (here with
`tune: full-ft`), MAD-X, and X-MOD, with the options that are not named at their defaults.
"""
REFUSED = """
## Types that are no encoders

A study with an encoder of one of these types is refused.
"""
# The reason, and words of the sentence with which a type is refused.
REASONS = {
    "Encoder-decoders": "an encoder-decoder",
    "Without a class for masked tokens, such as models that predict the next token": "no encoder that predicts masked tokens",
    "Models of more than text": "more than text",
    "Models that read other things than tokens": "and no tokens",
    "States that change with the padding": "change with the padding",
    "Models that do not compute, or do not train on, inputs of any length": "does not compute tokens alone",
}


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def of_encoders(kinds: Sequence[str]) -> Iterator[str]:
    """The table of heads and methods."""
    yield row(["Type", *(f"`{head}`" for head in TRAINED), *(f"`{base}`" for base in METHODS)])
    yield row(["---"] * (1 + len(TRAINED) + len(METHODS)))
    for kind in kinds:
        works = [problem(kind, head, "full-ft", {}) is None for head in TRAINED]
        head = next(head for head, does in zip(TRAINED, works, strict=True) if does)
        works += [problem(kind, head, base, options) is None for base, options in METHODS.values()]
        yield row([f"`{kind}`", *("yes" if does else "–" for does in works)])


def page() -> str:
    """The contents of the page."""
    refusals = {kind: type_problem(tiny(kind)) for kind in types(*TRAINED)}
    lines = [INTRODUCTION.format(version=transformers.__version__), HEADS]
    lines += of_encoders([kind for kind, refusal in refusals.items() if refusal is None])
    lines += [REFUSED, row(["Why", "Types"]), row(["---", "---"])]
    left = {kind: refusal for kind, refusal in refusals.items() if refusal}
    for reason, words in REASONS.items():
        kinds = [kind for kind, refusal in left.items() if words in refusal]
        lines.append(row([reason, ", ".join(f"`{kind}`" for kind in kinds)]))
        left = {kind: refusal for kind, refusal in left.items() if kind not in kinds}
    if left:
        raise ValueError(f"no reason in REASONS for {left}")
    lines += [
        "",
        "`mbart` is for the heads `sequence` and `seq2seq`: [encoder-decoders](../how-to/encoder-decoder.md). Types that transformers does not have, whose",
        "repositories bring Python code of their own (`auto_map` in `config.json`), are refused by name, because xlgrid runs no code of repositories.",
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
