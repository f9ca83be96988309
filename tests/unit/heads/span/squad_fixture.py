"""Makes squad.json: answers drawn by chance, and what `transformers` 4, whose successor has no metrics, gives them.

    python -m venv elsewhere && elsewhere/bin/pip install torch==2.13.0 transformers==4.57.6
    elsewhere/bin/python tests/unit/heads/span/squad_fixture.py

Each is [predicted, gold answers, F1, exact match]. Gold answers without a word, which SQuAD v1.1 has not, are left out: here
the functions follow v2.0, where they are questions without an answer.
"""

import json
import random
from pathlib import Path

from transformers.data.metrics.squad_metrics import compute_exact, compute_f1, get_tokens

PIECES = (
    *(
        "the",
        "The",
        "a",
        "An",
        "theatre",
        "cat",
        "Cats",
        "U.S.",
        "x-y",
        "3,5",
        "1990s",
        "'s",
        "(b)",
        "«Анна»",
        "Кот",
        "哈哈",
    ),
    *(
        "İ",
        "ß",
        "ΣΑΣ",
        "naïve",
        "ไทย",
        "…",
        "—",
        "!",
        "a.m.",
        "an-other",
        "\u00a0",
        "\u200d",
        "\t",
        "\n",
        "_the_",
        "the'a",
    ),
)


def answer(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES) + rng.choice(("", " ", " ", "  ")) for _ in range(rng.randint(0, 6)))


def main() -> None:
    rng = random.Random("squad")
    cases = []
    while len(cases) < 200:
        gold = [text for text in (answer(rng) for _ in range(rng.randint(1, 3))) if get_tokens(text)]
        # Some that share words with a gold answer, or are one but for what is dropped.
        words = rng.choice(gold).split() if gold else []
        near = " ".join([*rng.sample(words, rng.randint(0, len(words))), rng.choice(PIECES)])
        predicted = rng.choice((answer(rng), near, f"The {' '.join(words)}!"))
        if gold:
            best = [max(score(text, predicted) for text in gold) for score in (compute_f1, compute_exact)]
            cases.append([predicted, gold, *map(float, best)])
    lines = ",\n".join(json.dumps(case) for case in cases)
    (Path(__file__).parent / "squad.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
