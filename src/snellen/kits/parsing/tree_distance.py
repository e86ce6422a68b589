"""Two ordered trees and what renaming a node costs, in; the least cost of editing one into the other, out.

Zhang and Shasha (1989). The inner loops run over all subtrees of one shape at once, so that a table of 60 x 10 cells
needs some thousand array operations instead of millions of steps. The value is exact.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass
class Node:
    """A node of an ordered tree; `label` is whatever the renaming cost is made of."""

    label: Any
    children: list[Node] = field(default_factory=list)


def postorder(root: Node) -> tuple[list[Node], list[int]]:
    """Return the nodes, children before parents, and for each the index of its leftmost leaf; without recursion."""
    nodes: list[Node] = []
    leftmost: list[int] = []
    stack: list[tuple[Node, int, int]] = [(root, 0, 0)]
    while stack:
        node, child, first = stack.pop()
        if child == 0:
            first = len(nodes)
        if child < len(node.children):
            stack.append((node, child + 1, first))
            stack.append((node.children[child], 0, 0))
        else:
            nodes.append(node)
            leftmost.append(first)
    return nodes, leftmost


def tree_distance(renaming: Matrix, left_first: list[int], left_second: list[int]) -> float:
    """Return the edit distance of two trees given by their leftmost leaves; deleting and inserting a node cost 1.

    `renaming[i, j]` is what it costs to make node i of the first tree node j of the second, in postorder.
    """
    known = np.zeros_like(renaming)
    second = _groups(left_second)
    for root in _roots(left_first):
        for shape, roots in second:
            _fill(known, renaming, left_first, root, (shape, roots))
    return float(known[-1, -1])


def _roots(leftmost: list[int]) -> list[int]:
    return sorted({first: index for index, first in enumerate(leftmost)}.values())


def _groups(leftmost: list[int]) -> list[tuple[tuple[int, ...], NDArray[np.int_]]]:
    """Return the subtrees that are looked at, those of one shape together, small before large."""
    found: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for root in _roots(leftmost):
        first = leftmost[root]
        found[tuple(leftmost[index] - first for index in range(first, root + 1))].append(root)
    return [(shape, np.array(found[shape])) for shape in sorted(found, key=len)]


def _fill(
    known: Matrix, renaming: Matrix, left_first: list[int], root: int, group: tuple[tuple[int, ...], NDArray[np.int_]]
) -> None:
    """Fill `known` for one subtree of the first tree against all of one shape of the second."""
    shape, roots = group
    start, width = left_first[root], len(shape)
    columns = (roots - (width - 1))[:, None] + np.arange(width)[None, :]
    lefts = np.array(shape)
    on_path = lefts == 0
    steps = np.arange(1, width + 1, dtype=float)
    forest = np.empty((root - start + 2, len(roots), width + 1))
    forest[0] = np.arange(width + 1)
    for node in range(start, root + 1):
        row = node - start + 1
        above = forest[row - 1]
        forest[row, :, 0] = row
        here = above[:, 1:] + 1
        jump = forest[left_first[node] - start][:, lefts] + known[node][columns]
        if left_first[node] == start:
            renamed = above[:, :-1] + renaming[node][columns]
            jump = np.where(on_path[None, :], renamed, jump)
        here = np.minimum(here, jump)
        chain = np.concatenate([forest[row, :, :1], here - steps], axis=1)
        best = np.minimum.accumulate(chain, axis=1)[:, 1:] + steps
        forest[row, :, 1:] = best
        if left_first[node] == start:
            known[node][columns[:, on_path]] = best[:, on_path]
