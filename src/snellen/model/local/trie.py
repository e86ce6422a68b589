"""Candidate continuations to one tree of tokens: what they share is computed once, and their ends are never fed at all.

The logits at a node give the log-probabilities of all its children, so only nodes with children are fed to the model,
and a candidate of one token needs nothing beyond the prompt itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

ROOT = -1
"""The last token of the prompt; its logits come with the prompt."""


@dataclass(frozen=True, slots=True)
class Trie:
    """Nodes to feed, parents before children, and the steps (node, next token) of each candidate."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    """1 for a node right after the prompt."""
    steps: list[list[tuple[int, int]]] = field(default_factory=list)


def build_trie(candidates: Sequence[Sequence[int]]) -> Trie:
    """Merge candidates (token ids, none empty) by their longest common prefixes."""
    trie = Trie()
    children: dict[tuple[int, int], int] = {}
    for candidate in candidates:
        node, steps = ROOT, []
        for place, token in enumerate(candidate):
            steps.append((node, token))
            if place == len(candidate) - 1:
                break
            node = _child(trie, children, node, token)
        trie.steps.append(steps)
    return trie


def _child(trie: Trie, children: dict[tuple[int, int], int], parent: int, token: int) -> int:
    """Return the node of `token` after `parent`, adding it if it is new."""
    if (parent, token) not in children:
        children[parent, token] = len(trie.tokens)
        trie.tokens.append(token)
        trie.parents.append(parent)
        trie.depths.append(1 if parent == ROOT else trie.depths[parent] + 1)
    return children[parent, token]


def split_candidates(candidates: Sequence[Sequence[int]], max_nodes: int) -> list[list[int]]:
    """Cut the candidates (their indices, like beside like) into groups of at most `max_nodes` fed tokens each."""
    order = sorted(range(len(candidates)), key=lambda index: (tuple(candidates[index]), index))
    groups: list[list[int]] = []
    room = 0
    for index in order:
        cost = len(candidates[index]) - 1
        if not groups or cost > room:
            groups.append([])
            room = max_nodes
        groups[-1].append(index)
        room -= cost
    return groups
