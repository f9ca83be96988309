"""Dependency trees: the check of a tree, and the maximum spanning tree (Chu and Liu 1965; Edmonds 1967).

Words are numbered from 1, and the root is 0. The heads of a sentence are a list with the head of each word.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Numbers = NDArray[np.intp]


def problem_of(heads: Sequence[int]) -> str | None:
    """Why heads are no tree of Universal Dependencies, as a clause; None if they are."""
    for word, head in enumerate(heads, start=1):
        if not 0 <= head <= len(heads):
            return f"the head of word {word} is {head}, and the sentence has the words 1 to {len(heads)}"
    if (roots := list(heads).count(0)) != 1:
        return f"{roots} words have the head 0, which is the root, expected one word"
    if cycle := _cycle(np.array([0, *heads])):
        return f"the words {', '.join(map(str, cycle))} are one another's heads in a circle"
    return None


def best_tree(scores: Floats) -> list[int]:
    """The heads of the tree with the highest sum of scores, among the trees in which one word has the head 0.

    The scores of arcs from the root are lowered by more than the sums of two trees can differ, so that the best tree
    has one such arc (Stanojević and Cohen 2021, section 4).

    Args:
        scores: [words, words + 1], the score of each head, the root first, for each word. A word is not its own head.

    Raises:
        ValueError: a score is not a finite number.
    """
    words = len(scores)
    arcs = np.full((words + 1, words + 1), -np.inf)
    arcs[1:] = scores
    np.fill_diagonal(arcs, -np.inf)
    heads = arcs.argmax(1)
    heads[0] = 0
    allowed = ~np.eye(words, words + 1, k=1, dtype=bool)
    if not np.isfinite(arcs[1:][allowed]).all():
        raise ValueError("the score of an arc is not a finite number: the parser has diverged, train it again")
    if (heads[1:] == 0).sum() != 1 or _cycle(heads):
        arcs[1:, 0] -= (words + 1) * (np.ptp(arcs[1:][allowed]) + 1)
        heads = _spanning(arcs)
    return [int(head) for head in heads[1:]]


def _spanning(arcs: Floats) -> Numbers:
    """The heads of the maximum spanning tree with the root 0: [nodes]. While the best heads have a cycle, the cycle is
    contracted to one node, the last one of a smaller graph; then the cycles are opened, from the last one to the first.

    Args:
        arcs: [nodes, nodes], the score of each head for each node.
    """
    contracted = []
    while True:
        heads = arcs.argmax(1)
        heads[0] = 0
        cycle = np.array(_cycle(heads), np.intp)
        if not len(cycle):
            break
        others = np.setdiff1d(np.arange(len(arcs)), cycle)
        leaving = arcs[np.ix_(others, cycle)]
        # An arc into the cycle takes the place of the arc of the cycle that ends in the same node.
        entering = arcs[np.ix_(cycle, others)] - arcs[cycle, heads[cycle]][:, None]
        contracted.append((heads, cycle, others, leaving.argmax(1), entering.argmax(0)))
        smaller = np.full((len(others) + 1, len(others) + 1), -np.inf)
        smaller[:-1, :-1] = arcs[np.ix_(others, others)]
        smaller[:-1, -1], smaller[-1, :-1] = leaving.max(1), entering.max(0)
        arcs = smaller
    for whole, cycle, others, exits, entries in reversed(contracted):
        whole[others] = np.where(heads[:-1] == len(others), cycle[exits], np.append(others, 0)[heads[:-1]])
        whole[cycle[entries[heads[-1]]]] = others[heads[-1]]
        heads = whole
        heads[0] = 0
    return heads


def _cycle(heads: Numbers) -> list[int]:
    """The nodes of one cycle, from its lowest node, in which each node is followed by its head; [] without a cycle.

    Args:
        heads: [nodes], where node 0 is its own head.
    """
    above = heads
    for _ in range(len(heads).bit_length()):
        above = above[above]
    if not above.any():
        return []
    cycle = [int(above.max())]
    while (head := int(heads[cycle[-1]])) != cycle[0]:
        cycle.append(head)
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]
