"""Two HTML tables in, their TEDS out: the similarity of their trees (PubTabNet, Zhong et al. 2020).

`(1 - edit distance / nodes of the larger tree)`. A cell is compared by the characters in it and the tags between them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from .tree_distance import Node, postorder, tree_distance

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
