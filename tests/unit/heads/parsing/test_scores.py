"""Attachment scores, held against a second implementation that reads CoNLL-U as conll18_ud_eval.py describes it."""

import random

import pytest

from xlgrid.heads import HEADS
from xlgrid.heads.parsing import scores
from xlgrid.synthetic.miniatures.udparse import LABELS

SUBTYPES = ("nmod:poss", "nsubj:pass", "aux:pass", "obl:arg", "flat:name", "case:gen")
NAMES = (*LABELS, *SUBTYPES)
METRICS = {metric.name: metric for metric in HEADS["parse"].metrics(NAMES)}
CONTENT = "acl advcl advmod amod appos ccomp compound conj csubj dep discourse dislocated expl fixed flat goeswith iobj"
CONTENT += " list nmod nsubj nummod obj obl orphan parataxis reparandum root vocative xcomp"


def numbers(relations: list[str]) -> list[int]:
    return [NAMES.index(relation) for relation in relations]


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


def of_relation(name: str, gold: str, system: str) -> float:
    """The F1 of the arcs with a relation, in percent."""
    sides = [{(at, *word) for at, word in enumerate(words(text)) if word[2] == name} for text in (gold, system)]
    total = sum(map(len, sides))
    return 200 * len(sides[0] & sides[1]) / total if total else 0.0


def official(gold: str, system: str) -> dict[str, float]:
    """UAS, LAS and CLAS in percent of two files with the same words: F1, each from its own counts."""
    pairs = list(zip(words(gold), words(system), strict=True))

    def f1(same: list[bool], of_gold: list[bool], of_system: list[bool]) -> float:
        precision, recall = sum(same) / max(1, sum(of_system)), sum(same) / max(1, sum(of_gold))
        return 100 * 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    every = [True] * len(pairs)
    right = [first == second for first, second in pairs]
    content = CONTENT.split()
    is_gold, is_system = ([word[2] in content for word in column] for column in zip(*pairs, strict=True))
    return {
        "uas": f1([first[:2] == second[:2] for first, second in pairs], every, every),
        "las": f1(right, every, every),
        "clas": f1([same and is_content for same, is_content in zip(right, is_gold, strict=True)], is_gold, is_system),
    }


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
    for name in ("uas", "las", "clas"):
        assert found[name].score(outcomes) == pytest.approx(expected[name], rel=1e-12, abs=1e-12)
    for name in LABELS:
        assert found[f"las:{name}"].score(outcomes) == pytest.approx(of_relation(name, gold, system), abs=1e-12)


def score(name: str, *outcome: list[int]) -> float:
    return METRICS[name].score([[*outcome]])


def test_relations_without_their_subtype_are_equal() -> None:
    outcome = [2, 0], numbers(["nsubj:pass", "root"]), [2, 0], numbers(["nsubj", "root"])
    assert score("las", *outcome) == score("clas", *outcome) == score("las:nsubj", *outcome) == 100


def test_words_that_are_not_predicted_are_wrong() -> None:
    """Also for CLAS, which counts the content words of the data, whether they are predicted or not."""
    outcome = [2, 0, 2, 2], numbers(["nsubj", "root", "obj", "punct"]), [2, 0], numbers(["nsubj", "root"])
    assert [score(name, *outcome) for name in ("uas", "las", "clas", "las:obj")] == [50, 50, 80, 0]


def test_the_relations_of_ud_are_of_content_words_or_others() -> None:
    assert not scores.CONTENT & scores.OTHERS
    assert {*CONTENT.split()} == scores.CONTENT
    assert {*LABELS} == scores.CONTENT | scores.OTHERS


def test_without_content_words_there_is_no_score_to_miss() -> None:
    assert score("clas", [0], numbers(["punct"]), [0], numbers(["punct"])) == 0
