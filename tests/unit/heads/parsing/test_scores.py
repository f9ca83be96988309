"""Attachment scores, held against a second implementation that reads CoNLL-U as conll18_ud_eval.py describes it."""

import random
from operator import eq

import pytest

from xlgrid.heads import HEADS
from xlgrid.synthetic.miniatures.udparse import LABELS

SUBTYPES = ("nmod:poss", "nsubj:pass", "aux:pass", "obl:arg", "flat:name", "case:gen")
NAMES = (*LABELS, *SUBTYPES)
METRICS = {metric.name: metric for metric in HEADS["parse"].metrics(NAMES)}


def numbers(relations: list[str]) -> list[int]:
    """The numbers of relations in outcomes, which are without subtypes."""
    return [NAMES.index(relation.split(":")[0]) for relation in relations]


def conllu(heads: list[int], relations: list[str]) -> str:
    """A sentence with a multiword token before its first word and an empty node at its end."""
    lines = ["# text = w w", "1-2\tww\t_\t_\t_\t_\t_\t_\t_\t_"]
    for number, (head, relation) in enumerate(zip(heads, relations, strict=True), start=1):
        lines.append(f"{number}\tw\t_\tX\t_\t_\t{head}\t{relation}\t_\t_")
    return "\n".join([*lines, f"{len(heads)}.1\tw\t_\t_\t_\t_\t_\t_\t1:dep\t_", "", ""])


def words(text: str) -> list[tuple[int, str, str]]:
    """The number of the sentence and its head's, and the relation, of each syntactic word."""
    found = []
    for number, sentence in enumerate(text.split("\n\n")):
        for line in sentence.splitlines():
            columns = line.split("\t")
            if not line.startswith("#") and columns[0].isdecimal():
                found.append((number, columns[6], columns[7].split(":")[0]))
    return found


def official(gold: str, system: str) -> dict[str, float]:
    """UAS and LAS in percent of two files with the same words."""
    pairs = list(zip(words(gold), words(system), strict=True))
    attached, right = sum(first[:2] == second[:2] for first, second in pairs), sum(map(eq, *zip(*pairs, strict=True)))
    return {"uas": 100 * attached / len(pairs), "las": 100 * right / len(pairs)}


def tree(draw: random.Random, words: int) -> list[int]:
    order = draw.sample(range(1, words + 1), words)
    heads = {word: draw.choice(order[:at]) if at else 0 for at, word in enumerate(order)}
    return [heads[word] for word in range(1, words + 1)]


@pytest.mark.parametrize("seed", range(20))
def test_scores_are_those_of_a_second_implementation(seed: int) -> None:
    draw = random.Random(seed)
    gold, system, outcomes = "", "", []
    for _ in range(draw.randint(1, 30)):
        words = draw.randint(1, 12)
        heads, relations = tree(draw, words), draw.choices(NAMES, k=words)
        guesses = tree(draw, words) if draw.random() < 0.5 else heads
        names = [name if draw.random() < 0.6 else draw.choice(NAMES) for name in relations]
        gold, system = gold + conllu(heads, relations), system + conllu(guesses, names)
        outcomes.append([heads, numbers(relations), guesses, numbers(names)])
    expected, found = official(gold, system), METRICS
    for name in ("uas", "las"):
        assert found[name].score(outcomes) == pytest.approx(expected[name], rel=1e-12, abs=1e-12)


def score(name: str, *outcome: list[int]) -> float:
    return METRICS[name].score([[*outcome]])


def test_words_that_are_not_predicted_are_wrong() -> None:
    outcome = [2, 0, 2, 2], numbers(["nsubj", "root", "obj", "punct"]), [2, 0], numbers(["nsubj", "root"])
    assert [score(name, *outcome) for name in ("uas", "las")] == [50, 50]
