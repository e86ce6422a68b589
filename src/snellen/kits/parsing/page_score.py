"""Our own measure of a page: what of it a reply has read, what it has invented, in which order.

Everything on a page has a mass: characters of texts, tokens of formulas, characters and cells of tables. A pair of
blocks has `alike x (mass of both)` in common; `content` is what all pairs have in common by the mass of both pages, so
that what is missed and what is invented cost alike. `page` is 100 x content, of which a tenth depends on the order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from .blocks import Block, Cell, Kind, PageReading
from .pairing import LEAST, Match, assign, pair_blocks
from .teds import MOST_WORK, Costs, Node, postorder, text_distances, tree_distance

ORDER_SHARE = 0.1
INDEPENDENT = frozenset(
    {
        *(
            "figure_caption",
            "figure_footnote",
            "table_caption",
            "table_footnote",
            "equation_caption",
            "header",
            "footer",
        ),
        *("code_txt_caption", "code_algorithm_caption", "page_number", "page_footnote", "abandon", "figure"),
    }
)
"""Gold blocks that may stand anywhere in the reading order."""


class TableMatch(NamedTuple):
    """A gold table and the table of the reply that stands for it."""

    gold: int
    reply: int
    teds: float
    structure: float
    cells: float
    """F1 of cells at the same row and column with the same text."""
    exact: bool
    """False: so large that cells were compared in a row instead of as trees."""


@dataclass(frozen=True)
class PageScore:
    """What our rule measures of a page. A part that neither page has is None."""

    gold: tuple[Block, ...]
    reply: PageReading
    matches: list[Match]
    tables: list[TableMatch]

    @property
    def page(self) -> float:
        """Return the whole, 0 to 100."""
        order = self.order
        return 100 * self.content * (1 - ORDER_SHARE + ORDER_SHARE * (1.0 if order is None else order))

    @property
    def content(self) -> float:
        """Return what both pages have in common by the mass of both."""
        return self._common(Kind) / self._mass(Kind) if self._mass(Kind) else 0.0

    def _mass(self, kinds: Iterable[Kind], of: str = "both") -> float:
        wanted = set(kinds)
        gold = sum(block.mass for block in self.gold if block.kind in wanted)
        reply = sum(block.mass for block in self.reply.blocks if block.kind in wanted)
        reply += self.reply.unread if Kind.TEXT in wanted else 0
        return {"both": gold + reply, "gold": gold, "reply": reply}[of]

    def _common(self, kinds: Iterable[Kind]) -> float:
        wanted = set(kinds)
        common = math.fsum(
            match.alike * self._pair_mass(match) for match in self.matches if self.gold[match.gold[0]].kind in wanted
        )
        if Kind.TABLE in wanted:
            common += math.fsum(
                one.teds * (self.gold[one.gold].mass + self.reply.blocks[one.reply].mass) for one in self.tables
            )
        return common

    def _pair_mass(self, match: Match) -> int:
        return sum(self.gold[n].mass for n in match.gold) + sum(self.reply.blocks[n].mass for n in match.reply)

    def part(self, kind: Kind) -> float | None:
        """Return what both pages have in common of one kind of blocks; None if the gold page has none."""
        if not self._mass([kind], "gold"):
            return None
        return self._common([kind]) / self._mass([kind])

    @property
    def order(self) -> float | None:
        """Return the share of pairs of matched blocks that stand in the gold order; None with fewer than two."""
        placed = [
            (gold, place)
            for match in self.matches
            for place, gold in zip(_spread(match), match.gold, strict=True)
            if self.gold[gold].category not in INDEPENDENT
        ]
        placed += [(one.gold, float(one.reply)) for one in self.tables]
        places = [place for _, place in sorted(placed)]
        return in_order(places)

    @property
    def missed(self) -> list[int]:
        """Return the gold blocks that nothing stands for."""
        found = {n for match in self.matches for n in match.gold} | {one.gold for one in self.tables}
        return [n for n in range(len(self.gold)) if n not in found]

    @property
    def invented(self) -> list[int]:
        """Return the blocks of the reply that stand for nothing."""
        used = {n for match in self.matches for n in match.reply} | {one.reply for one in self.tables}
        return [n for n in range(len(self.reply.blocks)) if n not in used]

    @property
    def headings(self) -> float | None:
        """Return F1 of the headings: matched blocks that are headings of the same level; None without gold ones."""
        wanted = sum(block.level > 0 or block.category == "title" for block in self.gold)
        given = sum(block.level > 0 for block in self.reply.blocks)
        right = sum(
            self.reply.blocks[match.reply[0]].level > 0
            and self.gold[match.gold[0]].level in (0, self.reply.blocks[match.reply[0]].level)
            for match in self.matches
            if self.gold[match.gold[0]].level > 0 or self.gold[match.gold[0]].category == "title"
        )
        return 2 * right / (wanted + given) if wanted else None

    def characters(self) -> tuple[float | None, float | None]:
        """Return precision and recall: what is in common by the mass of the reply, and by that of the gold page."""
        common = self._common(Kind) / 2
        sides = [self._mass(Kind, of) for of in ("reply", "gold")]
        found = [min(1.0, common / side) if side else None for side in sides]
        return found[0], found[1]

    def words(self) -> tuple[float | None, float | None]:
        """Return precision and recall of the words of texts, wherever they stand."""
        bags = [Counter(_words(blocks)) for blocks in (self.reply.blocks, self.gold)]
        right = sum((bags[0] & bags[1]).values())
        found = [right / total if (total := sum(bag.values())) else None for bag in bags]
        return found[0], found[1]

    def letters(self) -> float | None:
        """Return 1 - edit distance of the letters and digits of matched texts, as others measure it."""
        pairs = []
        for match in self.matches:
            if self.gold[match.gold[0]].kind is Kind.TEXT:
                sides = ([self.gold[n].text for n in match.gold], [self.reply.blocks[n].text for n in match.reply])
                pairs.append([re.sub(r"[\W_]", "", "".join(texts)) for texts in sides])
        missed = sum(
            len(re.sub(r"[\W_]", "", self.gold[n].text)) for n in self.missed if self.gold[n].kind is Kind.TEXT
        )
        longest = sum(max(map(len, pair)) for pair in pairs) + missed
        return 1 - (sum(Levenshtein.distance(*pair) for pair in pairs) + missed) / longest if longest else None


def _words(blocks: Iterable[Block]) -> list[str]:
    return [word for block in blocks if block.kind is Kind.TEXT for word in re.findall(r"\w+", block.text)]


def _spread(match: Match) -> list[float]:
    """Return where each gold block of a match stands in the reply: those of one stretch one after another."""
    first, last = match.reply[0], match.reply[-1]
    return [first + (last - first + 1) * n / (len(match.gold) + 1) for n in range(len(match.gold))]


def in_order(places: Sequence[float]) -> float | None:
    """Return the share of pairs that ascend ((1 + Kendall's tau) / 2); None with fewer than two places."""
    if len(places) < 2:
        return None
    line = np.asarray(places)
    ascending = sum(int((line[n + 1 :] > line[n]).sum()) for n in range(len(line) - 1))
    return ascending / (len(line) * (len(line) - 1) / 2)


def score_page(gold: tuple[Block, ...], reply: PageReading) -> PageScore:
    """Measure one page. The gold page must have something to read."""
    return PageScore(gold, reply, pair_blocks(gold, reply.blocks), pair_tables(gold, reply.blocks))


def pair_tables(gold: Sequence[Block], reply: Sequence[Block]) -> list[TableMatch]:
    """Return the tables that stand for each other: half of their text and of their tree in common."""
    places = [[n for n, block in enumerate(side) if block.kind is Kind.TABLE] for side in (gold, reply)]
    if not places[0] or not places[1]:
        return []
    gains = np.zeros((len(places[0]), len(places[1])))
    for row, one in enumerate(places[0]):
        for column, other in enumerate(places[1]):
            texts = gold[one].text[:20_000], reply[other].text[:20_000]
            same = texts[0] == texts[1]
            alike = 1.0 if same else Levenshtein.normalized_similarity(*texts, score_cutoff=LEAST)
            nearness = 1 - abs(row / len(places[0]) - column / len(places[1]))
            gains[row, column] = alike * (gold[one].mass + reply[other].mass) + 1e-6 * nearness if alike else 0.0
    done = []
    for row, column in assign(-gains):
        if gains[row, column] > 0:
            found = compare_tables(places[0][row], places[1][column], gold, reply)
            done += [found] if found.teds >= LEAST else []
    return sorted(done)


def compare_tables(one: int, other: int, gold: Sequence[Block], reply: Sequence[Block]) -> TableMatch:
    """Return how alike two tables are: as trees, as structures, and cell by cell."""
    sides = gold[one].rows, reply[other].rows
    cells = _cell_f1(*sides)
    counts = [1 + len(rows) + sum(map(len, rows)) for rows in sides]
    if counts[0] * counts[1] > MOST_WORK:
        rows = [[cell for row in side for cell in row] for side in sides]
        shapes = [[cell[1:] for cell in side] for side in rows]
        alike = [1 - Levenshtein.distance(*pair) / max(map(len, pair)) for pair in (rows, shapes)]
        return TableMatch(one, other, alike[0], alike[1], cells, False)
    trees = [postorder(_tree(rows)) for rows in sides]
    bare, full = _renaming(*([node.label for node in nodes] for nodes, _ in trees))
    shape = trees[0][1], trees[1][1]
    most = max(counts) - 1 or 1
    values = [max(0.0, 1 - tree_distance(costs, *shape) / most) for costs in (full, bare)]
    return TableMatch(one, other, values[0], values[1], cells, True)


def _tree(rows: Sequence[Sequence[Cell]]) -> Node:
    return Node("table", [Node("row", [Node(cell) for cell in row]) for row in rows])


def _renaming(first: list[str | Cell], second: list[str | Cell]) -> tuple[Costs, Costs]:
    """Return the cost of renaming each node into each other: by structure alone, and with the texts of cells."""
    sides = (first, second)
    shapes: list[list[object]] = [[node[1:] if isinstance(node, Cell) else node for node in side] for side in sides]
    numbers = {shape: number for number, shape in enumerate(dict.fromkeys([*shapes[0], *shapes[1]]))}
    kinds = [np.array([numbers[shape] for shape in side]) for side in shapes]
    bare = (kinds[0][:, None] != kinds[1][None, :]).astype(float)
    texts = [[node.text if isinstance(node, Cell) else "" for node in side] for side in sides]
    return bare, np.where(bare == 0, text_distances(*texts), 1.0)


def expanded(rows: Sequence[Sequence[Cell]]) -> dict[tuple[int, int], str]:
    """Return the text at each row and column, spans filled."""
    grid: dict[tuple[int, int], str] = {}
    for row, cells in enumerate(rows):
        column = 0
        for cell in cells:
            while (row, column) in grid:
                column += 1
            spots = ((row + down, column + right) for down in range(cell.rows) for right in range(cell.columns))
            grid.update((spot, cell.text) for spot in spots)
            column += cell.columns
            if len(grid) > 200_000:
                return grid
    return grid


def _cell_f1(gold: Sequence[Sequence[Cell]], reply: Sequence[Sequence[Cell]]) -> float:
    wanted, found = expanded(gold), expanded(reply)
    right = sum(found.get(spot) == text for spot, text in wanted.items())
    return 2 * right / (len(wanted) + len(found)) if wanted or found else 1.0
