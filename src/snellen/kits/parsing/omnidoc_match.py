"""How OmniDocBench 1.6 finds which piece of a reply stands for which block of the gold page (`quick_match`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rapidfuzz.distance import Levenshtein

from .omnidoc_lines import formula_lines
from .omnidoc_reading import FORMULA, INLINE_FORMULA, TEXT, Piece, moved
from .omnidoc_text import normal_formula, normal_text, without_delimiters
from .pairing import assign

IGNORED = (
    *("figure_caption", "figure_footnote", "table_caption", "table_footnote", "code_algorithm"),
    *("code_algorithm_caption", "header", "footer", "page_footnote", "page_number", "equation_caption"),
)
"""Blocks that are matched but not scored."""
MOST_MERGED = 160


@dataclass(frozen=True)
class Gold:
    """A block of a gold page."""

    category: str
    content: str
    order: float | None = None

    @property
    def norm(self) -> str:
        """Return what it is compared by."""
        return normal_formula(self.content) if self.category == FORMULA else normal_text(self.content)


@dataclass(frozen=True)
class Pair:
    """Blocks of the gold page and the pieces of the reply that stand for them; without pieces: missed."""

    gold: tuple[int, ...]
    reply: tuple[int, ...]
    gold_text: str
    reply_text: str
    gold_norm: str
    reply_norm: str
    category: str
    reply_category: str
    orders: tuple[float | None, ...]
    position: float | None
    """Where the reply has it; None: nowhere."""
    edit: float


def edit(first: Sequence[object], second: Sequence[object]) -> float:
    """Return the edit distance by the longer of two sequences; 0 for two empty ones."""
    most = max(len(first), len(second))
    return Levenshtein.distance(first, second) / most if most else 0.0


def edits(first: Sequence[str], second: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the distance of each of one list from each of the other."""
    return np.array([[edit(a, b) for b in second] for a in first], dtype=float).reshape(len(first), len(second))


def split_gold(blocks: Iterable[Gold]) -> list[Gold]:
    """Return the blocks, formulas of several lines cut into their lines."""
    done: list[Gold] = []
    for block in blocks:
        lines = formula_lines(block.content) if block.category == FORMULA else []
        done += [
            replace(block, content=f"\\[{line.content}\\]", order=float(block.order or 0) + number / 1000.0)
            for number, line in enumerate(lines, start=1)
        ] or [block]
    return done


def split_pieces(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces, formulas of several lines cut into their lines."""
    done: list[Piece] = []
    for piece in pieces:
        lines = formula_lines(piece.content) if piece.kind == FORMULA else []
        done += [
            moved(piece, piece.start + line.start, piece.start + line.end, f"\\[{line.content.strip()}\\]")
            for line in lines
        ] or [piece]
    return done


def by_place(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces by where they begin, inline formulas after all others."""
    return sorted(pieces, key=lambda piece: (piece.name == INLINE_FORMULA, piece.start))


def piece_norm(piece: Piece) -> str:
    """Return what a piece is compared by."""
    if piece.kind == TEXT:
        return normal_text(piece.content)
    return normal_formula(piece.content) if piece.kind == FORMULA else piece.content


@dataclass(frozen=True)
class _Side:
    """The texts of one side that are not empty when normalised, and the items they are said to belong to.

    The items are not thinned out with the texts, so that after an empty one places are those of the neighbour: a
    fault of the original that its reading order depends on.
    """

    texts: list[str]
    norms: list[str]

    def picked(self, indices: Sequence[int]) -> _Side:
        return _Side([self.texts[index] for index in indices], [self.norms[index] for index in indices])


def _side(texts: list[str], norms: list[str]) -> _Side:
    kept = [(text, norm) for text, norm in zip(texts, norms, strict=True) if text and norm]
    return _Side([text for text, _ in kept], [norm for _, norm in kept])


def match(gold: Sequence[Gold], reply: Sequence[Piece], cut_reply: bool = True) -> list[Pair]:
    """Return the blocks of a gold page with the pieces of the reply that stand for them."""
    blocks = split_gold(gold)
    pieces = by_place(reply)
    pieces = split_pieces(pieces) if cut_reply else pieces
    wanted = _side([block.content for block in blocks], [block.norm for block in blocks])
    found = _side([piece.content for piece in pieces], [piece_norm(piece) for piece in pieces])
    names = [block.category for block in blocks if block.content and block.norm]
    maker = _PairMaker(blocks, pieces, wanted, found, names)
    if not wanted.norms or not found.norms:
        return [maker.missed(index) for index in range(len(wanted.norms))]
    if len(wanted.norms) == len(found.norms) == 1:
        return [maker.pair((0,), (0,), edit(wanted.norms[0], found.norms[0]))]
    beside = [index for index, name in enumerate(names) if name in IGNORED]
    pairs_beside, taken = _match_ignored(maker, beside)
    inner = [index for index, name in enumerate(names) if name not in IGNORED]
    left = [index for index in range(len(found.norms)) if index not in taken]
    return _match_scored(maker, inner, left) + pairs_beside


@dataclass(frozen=True)
class _PairMaker:
    """Makes pairs of indices into the two sides."""

    blocks: list[Gold]
    pieces: list[Piece]
    wanted: _Side
    found: _Side
    names: list[str]

    def missed(self, index: int) -> Pair:
        return self.pair((index,), (), 1.0)

    def pair(self, gold: tuple[int, ...], reply: tuple[int, ...], distance: float) -> Pair:
        names = [self.names[index] for index in gold]
        scored = [name for name in names if name not in IGNORED] or names
        category = Counter(scored).most_common(1)[0][0]
        reply_category = self.pieces[reply[0]].category if reply else ""
        return Pair(
            gold,
            reply,
            _written([self.wanted.texts[index] for index in gold], category == FORMULA),
            _written([self.found.texts[index] for index in reply], "equation" in reply_category),
            "".join(self.wanted.norms[index] for index in gold),
            "".join(self.found.norms[index] for index in reply),
            category,
            reply_category,
            tuple(self.blocks[index].order for index in gold),
            self.pieces[reply[0]].start if reply else None,
            distance,
        )


def _written(texts: list[str], formula: bool) -> str:
    return as_array(texts) if formula and len(texts) > 1 else "".join(texts)


def as_array(formulas: Iterable[str]) -> str:
    """Return formulas as the rows of one."""
    rows = " \\\\ ".join("{" + without_delimiters(formula) + "}" for formula in formulas)
    return "\\begin{array}{l} " + rows + " \\end{array}"


def _match_ignored(maker: _PairMaker, beside: list[int]) -> tuple[list[Pair], set[int]]:
    if not beside:
        return [], set()
    norms = [maker.wanted.norms[index] for index in beside]
    near = np.argwhere(edits(norms, maker.found.norms) < 0.25)
    taken = [int(column) for _, column in near]
    chosen: dict[int, tuple[tuple[int, ...], float]] = {
        int(row): ((place,), 0.0) for place, (row, _) in enumerate(near)
    }
    entries = _entries(norms, [maker.found.norms[index] for index in taken], chosen, {})
    pairs = [_global(maker, entry, beside, taken) for entry in entries]
    return pairs, set(taken)


@dataclass(frozen=True)
class _Entry:
    gold: tuple[int, ...]
    reply: tuple[int, ...]
    edit: float


def _global(maker: _PairMaker, entry: _Entry, gold: list[int], reply: list[int]) -> Pair:
    return maker.pair(
        tuple(gold[index] for index in entry.gold), tuple(reply[index] for index in entry.reply), entry.edit
    )


def _match_scored(maker: _PairMaker, gold: list[int], reply: list[int]) -> list[Pair]:
    wanted = [maker.wanted.norms[index] for index in gold]
    found = [maker.found.norms[index] for index in reply]
    merged = _merged_pieces(edits(wanted, found), wanted, found)
    joined = [" ".join(found[index] for index in indices) for indices in merged]
    costs = edits(wanted, joined)
    chosen: dict[int, tuple[tuple[int, ...], float]] = {}
    unmatched = list(range(len(wanted)))
    for row, column in assign(costs):
        if costs[row, column] <= 0.7:
            chosen[row] = merged[column], float(costs[row, column])
            unmatched.remove(row)
    formulas = {index for index in unmatched if maker.names[gold[index]] == FORMULA}
    within = _found_within([index for index in unmatched if index not in formulas], wanted, found)
    return [_global(maker, entry, gold, reply) for entry in _entries(wanted, found, chosen, within)]


def _found_within(unmatched: list[int], wanted: list[str], found: list[str]) -> dict[int, list[int]]:
    """Return, by piece, the blocks without one that stand within it."""
    inside = {
        place: [index for index in unmatched if least_within(text, wanted[index], 0.4) < 0.4]
        for place, text in enumerate(found)
    }
    return {place: indices for place, indices in inside.items() if indices}


def least_within(text: str, part: str, enough: float) -> float:
    """Return the least distance of a part from any stretch of a text as long as it, by its length.

    1 where the text is shorter; what is above `enough` may come back as anything above it.
    """
    size = len(part)
    if not size or len(text) < size:
        return 1.0
    best = int(enough * size) + 1
    for start in range(len(text) - size + 1):
        best = min(best, Levenshtein.distance(text[start : start + size], part, score_cutoff=best))
        if not best:
            break
    return best / size


def _entries(
    wanted: list[str], found: list[str], chosen: dict[int, tuple[tuple[int, ...], float]], within: dict[int, list[int]]
) -> list[_Entry]:
    """Return an entry for each block: chosen, found within a piece, else with the least unlike piece that is left."""
    joined: dict[tuple[int, ...], list[int]] = {}
    placed: set[int] = set()
    for index, (pieces, _) in chosen.items():
        joined.setdefault(pieces, []).append(index)
        placed.add(index)
    for piece, indices in within.items():
        fresh = [index for index in indices if index not in placed]
        joined.setdefault((piece,), []).extend(fresh)
        placed.update(fresh)
    pairs = [
        (index, pieces, _joint_edit(sorted(set(indices)), pieces, wanted, found))
        for pieces, indices in joined.items()
        for index in sorted(set(indices))
    ]
    free_gold = set(range(len(wanted))) - placed
    free_reply = set(range(len(found))) - {piece for pieces in joined for piece in pieces}
    if free_gold and free_reply:
        rows, columns = list(free_gold), list(free_reply)
        costs = edits([wanted[index] for index in rows], [found[index] for index in columns])
        pairs += [(rows[row], (columns[column],), 1.0) for row, column in assign(costs)]
    grouped: dict[tuple[int, ...], tuple[list[int], float]] = {}
    for index, pieces, distance in pairs:
        grouped.setdefault(pieces, ([], distance))[0].append(index)
    done = {index for indices, _ in grouped.values() for index in indices}
    entries = [_Entry(tuple(indices), pieces, distance) for pieces, (indices, distance) in grouped.items()]
    return entries + [_Entry((index,), (), 1.0) for index in range(len(wanted)) if index not in done]


def _joint_edit(indices: list[int], pieces: tuple[int, ...], wanted: list[str], found: list[str]) -> float:
    if len(indices) > 1:
        return edit("".join(wanted[index] for index in indices), found[pieces[0]])
    return edit(wanted[indices[0]], " ".join(found[piece] for piece in pieces)) if indices else 1.0


def _merged_pieces(
    costs: np.ndarray[tuple[int, int], np.dtype[np.float64]], wanted: list[str], found: list[str]
) -> list[tuple[int, ...]]:
    """Return the pieces in groups: neighbours that together are more like a block than any alone are one group."""
    near = costs < 0.25
    gold_left = np.flatnonzero(~near.any(axis=1)) if near.size else range(len(wanted))
    taken = set(np.flatnonzero(near.any(axis=0)).tolist()) if near.size else set()
    free = [index for index in range(len(found)) if index not in taken]
    best: list[tuple[tuple[int, ...], float]] = []
    for row in gold_left:
        options = [_grown(wanted[row], found, start, taken) for start in free]
        if options:
            best.append(min(options, key=lambda option: option[1]))
    groups = {group[0]: group for group in _compatible(best)}
    done: list[tuple[int, ...]] = []
    index = 0
    while index < len(found):
        done.append(groups.get(index, (index,)))
        index += len(done[-1])
    return done


def _grown(wanted: str, found: list[str], start: int, taken: set[int]) -> tuple[tuple[int, ...], float]:
    size = 1
    while size < MOST_MERGED and start + size < len(found) and start + size not in taken:
        merged, more = _is_better_merged(wanted, found[start : start + size + 1])
        if not merged:
            break
        size += 1
        if not more:
            break
    group = tuple(range(start, start + size))
    return group, edit(wanted, " ".join(found[index] for index in group))


def _is_better_merged(wanted: str, pieces: list[str]) -> tuple[bool, bool]:
    """Return whether the last piece belongs to those before it, and whether more may follow."""
    before, merged = " ".join(pieces[:-1]), " ".join(pieces)
    if edit(wanted, merged) > edit(wanted, before):
        return False, False
    if any(len(piece) > len(wanted) or least_within(wanted, piece, 0.6) > 0.6 for piece in pieces[:-1]):
        return False, False
    if len(pieces[-1]) > len(wanted):
        return False, False
    return least_within(wanted, pieces[-1], 0.6) < 0.6, len(merged) <= len(wanted)


def _compatible(options: list[tuple[tuple[int, ...], float]]) -> list[tuple[int, ...]]:
    """Return groups that do not overlap: of those that do, the path of least mean cost."""
    if not options:
        return []
    ordered = sorted(options, key=lambda option: option[0][0])
    clusters = [[ordered[0]]]
    for option in ordered[1:]:
        if any(set(option[0]) & set(other[0]) for other in clusters[-1]):
            clusters[-1].append(option)
        else:
            clusters.append([option])
    return [group for cluster in clusters for group in _best_path(cluster)]


def _best_path(cluster: list[tuple[tuple[int, ...], float]]) -> list[tuple[int, ...]]:
    if len(cluster) == 1:
        return [cluster[0][0]]
    paths = [[cluster[0]]]
    for option in cluster[1:]:
        alone = True
        for path in paths:
            overlapping, same = _clash(path, option)
            if not overlapping:
                path.append(option)
            alone = alone and overlapping and not same
        if alone:
            paths.append([option])
    best = min(paths, key=lambda path: sum(cost for _, cost in path) / len(path))
    return [group for group, _ in best]


def _clash(path: list[tuple[tuple[int, ...], float]], option: tuple[tuple[int, ...], float]) -> tuple[bool, bool]:
    """Return whether an option overlaps a path, and whether the path has the same group; the cheaper one stays."""
    overlapping = same = False
    for group, cost in list(path):
        if group == option[0]:
            overlapping = same = True
            if cost > option[1]:
                path.remove((group, cost))
                path.append(option)
        elif set(group) & set(option[0]):
            overlapping = True
    return overlapping, same
