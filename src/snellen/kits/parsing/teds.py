"""Two HTML tables in, their TEDS out: the similarity of their trees (PubTabNet, Zhong et al. 2020).

`(1 - edit distance / nodes of the larger tree)`. A cell is compared by the characters in it and the tags between them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

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


MOST_WORK = 6_000_000
"""Pairs of nodes (2,449 x 2,449) above which trees are not compared: some seconds, some hundred megabytes."""


class TableTooLarge(ValueError):
    """Two tables have so many cells that their trees are not compared."""


class Label(NamedTuple):
    """What one node is compared by; only cells have spans and content."""

    tag: str
    colspan: int | None = None
    rowspan: int | None = None
    content: tuple[str, ...] = ()


class Teds(NamedTuple):
    """The similarity of two tables with what stands in their cells, and of their structure alone."""

    teds: float
    structure: float


def teds(reply: str, gold: str) -> Teds:
    """Return both similarities of two whole HTML documents, of the first `body/table` of each.

    Raises ValueError where a span is not a number, and TableTooLarge: nothing is guessed.
    """
    if not reply or not gold:
        return Teds(0.0, 0.0)
    roots = [_first_table(document) for document in (reply, gold)]
    if roots[0] is None or roots[1] is None:
        return Teds(0.0, 0.0)
    most = max(len(root.xpath(".//*")) for root in roots if root is not None)
    if not most:
        return Teds(1.0, 1.0)
    first, second = (postorder(_tree(root)) for root in roots)
    if len(first[0]) * len(second[0]) > MOST_WORK:
        raise TableTooLarge(f"tables of {len(first[0])} and {len(second[0])} nodes: too many to compare")
    bare, full = _renaming([node.label for node in first[0]], [node.label for node in second[0]])
    shapes = first[1], second[1]
    return Teds(1.0 - tree_distance(full, *shapes) / most, 1.0 - tree_distance(bare, *shapes) / most)


def _first_table(document: str) -> Any:
    from lxml import html
    from lxml.etree import ParserError

    parser = html.HTMLParser(remove_comments=True, encoding="utf-8", huge_tree=False)
    try:
        root = html.fromstring(document.encode("utf-8", "replace"), parser=parser)
    except ParserError:  # nothing but blanks
        return None
    return next(iter(root.xpath("body/table")), None)


def _tree(element: Any) -> Node:
    if element.tag == "td":
        columns, rows = (int(element.attrib.get(name, "1")) for name in ("colspan", "rowspan"))
        return Node(Label("td", columns, rows, tuple(_content(element))))
    return Node(Label(str(element.tag)), [_tree(child) for child in element])


def _content(cell: Any) -> list[str]:
    """Return the characters of a cell with the tags between them, each tag one token."""
    tokens: list[str] = []

    def add(element: Any) -> None:
        tokens.append(f"<{element.tag}>")
        tokens.extend(element.text or "")
        for child in element:
            add(child)
        if element.tag != "unk":
            tokens.append(f"</{element.tag}>")
        if element.tag != "td":
            tokens.extend(element.tail or "")

    add(cell)
    return tokens[1:-1]


Costs = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def _renaming(first: list[Label], second: list[Label]) -> tuple[Costs, Costs]:
    """Return the cost of renaming each node into each other: by structure alone, and with what cells hold."""
    shapes = {shape: number for number, shape in enumerate({label[:3] for label in (*first, *second)})}
    kinds = [np.array([shapes[label[:3]] for label in labels]) for labels in (first, second)]
    bare = (kinds[0][:, None] != kinds[1][None, :]).astype(float)
    codes: dict[str, str] = {}
    texts = [[_as_text(label.content, codes) for label in labels] for labels in (first, second)]
    return bare, np.where(bare == 0, text_distances(*texts), 1.0)


def text_distances(first: list[str], second: list[str]) -> Costs:
    """Return the edit distance of each text from each other by the longer one; each pair is compared once."""
    unique = [list(dict.fromkeys(texts)) for texts in (first, second)]
    known = process.cdist(*unique, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    places = [{text: place for place, text in enumerate(texts)} for texts in unique]
    rows, columns = ([place[text] for text in texts] for place, texts in zip(places, (first, second), strict=True))
    return np.asarray(known, dtype=np.float64)[np.ix_(rows, columns)]


def _as_text(content: tuple[str, ...], codes: dict[str, str]) -> str:
    """Return the tokens of a cell as one text: a tag is one character that no text has."""
    return "".join(
        token if len(token) == 1 else codes.setdefault(token, chr(0x10FFFF - len(codes))) for token in content
    )
