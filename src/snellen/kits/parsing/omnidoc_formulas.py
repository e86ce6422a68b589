"""How OmniDocBench 1.6 decides which formula of a reply stands for which of the gold page: it tries many ways.

Each way cuts and merges formulas differently; the one with the least sum of edit distances is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from .omnidoc_lines import with_braced_cases
from .omnidoc_match import Gold, Pair, as_array, edit, match, piece_norm, split_gold, split_pieces
from .omnidoc_reading import FORMULA, INLINE_FORMULA, RESCUED, Piece
from .omnidoc_text import without_delimiters
from .pairing import assign

_RESCUES = frozenset({"text_formula", "image_formula", "formula_rescue", "table_formula_rescue"})
_SAME = 1e-12
_MOST_WAYS, _MOST_LINES = 128, 8


def formula_pool(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the formulas of a reply, those rescued from texts too, each once."""
    pool = [piece for piece in pieces if piece.kind == FORMULA]
    pool += [
        replace(piece, kind=FORMULA, name=piece.name or "formula_rescue") for piece in pieces if piece.kind == RESCUED
    ]
    return list(dict.fromkeys(pool))


def match_formulas(gold: Sequence[Gold], pool: Sequence[Piece], current: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of the best way to match; `current` are those of the matching with the texts."""
    sourced = [replace(piece, source=_key(piece)) for piece in pool]
    whole = _Prepared.of(gold, sourced)
    ways = [_Way([_named(pair) for pair in current], whole.pieces)]
    ways += _ways(gold, sourced, whole)
    braced = [replace(piece, content=with_braced_cases(piece.content)) for piece in sourced]
    changed = sum(new.content != old.content for new, old in zip(braced, sourced, strict=True))
    if changed:
        ways += [way._replace(braced=changed) for way in _ways(gold, braced, _Prepared.of(gold, braced))]
    complete = [way for way in ways if _is_complete(way.rows, len(whole.gold_texts))]
    best: _Way | None = None
    for way in complete:
        if best is None or _is_better(way.key(len(sourced)), best.key(len(sourced))):
            best = way
    return best.rows if best else []


def _key(piece: Piece) -> tuple[int, int, str, str, str]:
    return piece.start, piece.end, piece.content, piece.name, piece.kind


def _category(piece: Piece) -> str:
    return FORMULA if piece.category in _RESCUES else piece.category


def _named(pair: Pair) -> Pair:
    return replace(pair, reply_category=FORMULA) if pair.reply_category in _RESCUES else pair


class _Way(NamedTuple):
    """One way to match, and the pieces that its rows are said to refer to."""

    rows: list[Pair]
    pieces: list[Piece]
    braced: int = 0

    def key(self, pool: int) -> tuple[float, ...]:
        """Return what ways are compared by, the least first."""
        apart = longer = 0
        for row in self.rows:
            if row.reply:
                longer += max(len(row.gold_norm), len(row.reply_norm))
                apart += Levenshtein.distance(row.gold_norm, row.reply_norm)
        total = sum(row.edit for row in self.rows)
        used = {self.pieces[index].source for row in self.rows for index in row.reply if index < len(self.pieces)}
        count = len(self.rows)
        return (
            total,
            (apart / longer if longer else 0.0) if count else float("inf"),
            max(0, pool - len(used)),
            total / count if count else float("inf"),
            -self.braced,
            sum(not row.reply for row in self.rows),
        )


def _is_better(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    for one, other in zip(first, second, strict=True):
        if one + _SAME < other:
            return True
        if one > other + _SAME:
            return False
    return False


def _is_complete(rows: list[Pair], wanted: int) -> bool:
    if wanted and len(rows) != wanted:
        return False
    alone = all(len(row.gold) == 1 and row.reply_category in ("", FORMULA, INLINE_FORMULA) for row in rows)
    return not wanted or (alone and len({row.gold[0] for row in rows}) == wanted)


@dataclass(frozen=True)
class _Prepared:
    """Formulas of both sides in their order, and the texts of those that are not empty when normalised."""

    gold: list[Gold]
    pieces: list[Piece]
    gold_texts: list[tuple[str, str]]
    reply_texts: list[tuple[str, str]]

    @classmethod
    def of(cls, gold: Sequence[Gold], pool: Sequence[Piece], cut: bool = False) -> _Prepared:
        blocks = split_gold(gold)
        pieces = sorted(pool, key=lambda piece: (piece.start, _category(piece) == INLINE_FORMULA, piece.end))
        pieces = split_pieces(pieces) if cut else pieces
        wanted = [(block.content, block.norm) for block in blocks]
        found = [(piece.content, piece_norm(piece)) for piece in pieces]
        return cls(blocks, pieces, [pair for pair in wanted if all(pair)], [pair for pair in found if all(pair)])

    def row(self, index: int, chosen: Sequence[int]) -> Pair:
        """Return the pair of a block and the pieces chosen for it."""
        text, norm = self.gold_texts[index]
        norms = " ".join(self.reply_texts[place][1] for place in chosen).strip()
        texts = [self.reply_texts[place][0] for place in chosen]
        name = "" if not chosen else FORMULA if len(chosen) > 1 else _category(self.pieces[chosen[0]])
        return Pair(
            (index,),
            tuple(chosen),
            text,
            _merged(texts) if len(texts) > 1 else "".join(texts),
            norm,
            norms,
            self.gold[index].category,
            name,
            (self.gold[index].order,),
            self.pieces[chosen[0]].start if chosen else None,
            edit(norm, norms) if chosen else 1.0,
        )


def _merged(texts: Sequence[str]) -> str:
    bare = [text for text in texts if without_delimiters(text)]
    return as_array(bare) if len(bare) > 1 else without_delimiters("".join(bare))


def _ways(gold: Sequence[Gold], pool: list[Piece], whole: _Prepared) -> Iterator[_Way]:
    yield _Way([_named(pair) for pair in match(gold, pool, cut_reply=False)], whole.pieces)
    yield _Way(_by_assignment(whole), whole.pieces)
    for gaps in (False, True):
        yield _Way(_by_order(whole, gaps), whole.pieces)
    for pieces in _partitions(whole.pieces):
        parts = _Prepared.of(gold, pieces)
        yield _Way(_by_assignment(parts), parts.pieces)
    cut = _Prepared.of(gold, pool, cut=True)
    if len(cut.pieces) > len(whole.pieces):
        for gaps in (False, True):
            yield _Way(_by_order(cut, gaps), cut.pieces)


def _by_assignment(formulas: _Prepared) -> list[Pair]:
    rows, columns = len(formulas.gold_texts), len(formulas.reply_texts)
    costs = np.ones((rows + columns, rows + columns))
    costs[rows:, columns:] = 0.0
    for row, (_, wanted) in enumerate(formulas.gold_texts):
        for column, (_, found) in enumerate(formulas.reply_texts):
            costs[row, column] = edit(wanted, found)
    chosen = dict(assign(costs))
    return [formulas.row(row, [chosen[row]] if chosen[row] < columns else []) for row in range(rows)]


def _partitions(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces with formulas of several lines cut in every way; nothing if there are too many."""
    options: list[list[list[Piece]]] = []
    ways = 1
    for piece in pieces:
        lines = split_pieces([piece])
        if not 1 < len(lines) <= _MOST_LINES:
            options.append([[piece]])
            continue
        options.append([[_joined(part) for part in cut] for cut in _cuts(lines)])
        ways *= len(options[-1])
        if ways > _MOST_WAYS:
            return
    if ways > 1:
        for choice in itertools.product(*options):
            yield [piece for part in choice for piece in part]


def _cuts(lines: list[Piece]) -> Iterator[list[list[Piece]]]:
    for mask in range(1 << (len(lines) - 1)):
        cuts = [0, *(n + 1 for n in range(len(lines) - 1) if mask & (1 << n)), len(lines)]
        yield [lines[start:end] for start, end in itertools.pairwise(cuts)]


def _joined(lines: list[Piece]) -> Piece:
    if len(lines) == 1:
        return lines[0]
    content = f"\\[{_merged([line.content for line in lines])}\\]"
    return replace(lines[0], content=content, end=lines[-1].end, name=FORMULA)


class _State(NamedTuple):
    cost: float
    apart: int
    longer: int
    inline: int

    def beats(self, other: _State | None) -> bool:
        if other is None or self.cost + _SAME < other.cost:
            return True
        if self.cost > other.cost + _SAME:
            return False
        if self.longer > 0 and other.longer > 0:
            mine, theirs = self.apart * other.longer, other.apart * self.longer
            if mine != theirs:
                return mine < theirs
        elif self.longer > 0 or other.longer > 0:
            return self.longer > 0
        return self.inline < other.inline


def _by_order(formulas: _Prepared, gaps: bool) -> list[Pair]:
    """Return the cheapest matching that keeps the order; neighbours of a reply may be merged."""
    rows, columns = len(formulas.gold_texts), len(formulas.reply_texts)
    if not rows or not columns:
        return []
    runs = [_runs(formulas, start, gaps) for start in range(columns)]
    best: dict[tuple[int, int], _State] = {(0, 0): _State(0.0, 0, 0, 0)}
    came: dict[tuple[int, int], tuple[tuple[int, int], tuple[int, ...] | None]] = {}

    def reach(place: tuple[int, int], state: _State, before: tuple[int, int], run: tuple[int, ...] | None) -> None:
        if state.beats(best.get(place)):
            best[place] = state
            came[place] = before, run

    for row, column in itertools.product(range(rows + 1), range(columns + 1)):
        state = best[row, column]
        skipped = state._replace(cost=state.cost + 1.0)
        if column < columns:
            reach((row, column + 1), skipped, (row, column), None)
        if row == rows:
            continue
        reach((row + 1, column), skipped, (row, column), ())
        for run, norm, inline in runs[column] if column < columns else ():
            wanted = formulas.gold_texts[row][1]
            apart, longer = Levenshtein.distance(wanted, norm), max(len(wanted), len(norm))
            new = _State(state.cost + apart / longer, state.apart + apart, state.longer + longer, state.inline + inline)
            reach((row + 1, run[-1] + 1), new, (row, column), run)
    chosen: list[Sequence[int]] = []
    place = (rows, columns)
    while place != (0, 0):
        place, used = came[place]
        if used is not None:
            chosen.append(used)
    return [formulas.row(row, used) for row, used in enumerate(reversed(chosen))]


def _runs(formulas: _Prepared, start: int, gaps: bool) -> list[tuple[tuple[int, ...], str, int]]:
    """Return the runs of pieces from one on that may stand for one formula."""
    rows, columns = len(formulas.gold_texts), len(formulas.reply_texts)
    apart = abs(rows - columns)
    most = min(columns, 10 if rows <= 1 or apart < 2 else 12)
    skips = 0
    if gaps:
        skips = 2 if apart >= 3 else int(apart >= 1 or columns >= 4)
    end = min(columns, start + (min(columns, most + 2) if gaps else most))
    found = []
    for run in _sequences(start, end, most, skips):
        if len(run) > 1 and not _may_merge([formulas.pieces[index] for index in run], run):
            continue
        norm = " ".join(formulas.reply_texts[index][1] for index in run).strip()
        inline = len(run) == 1 and _category(formulas.pieces[start]) == INLINE_FORMULA
        found.append((run, norm, int(inline)))
    return found


def _sequences(start: int, end: int, most: int, skips: int) -> Iterator[tuple[int, ...]]:
    waiting: list[tuple[tuple[int, ...], int]] = [((start,), skips)]
    while waiting:
        run, left = waiting.pop()
        yield run
        if len(run) < most:
            last = run[-1]
            nexts = range(last + 1, min(end, last + 2 + left))
            waiting += [((*run, index), left - (index - last - 1)) for index in reversed(nexts)]


def _may_merge(pieces: list[Piece], run: tuple[int, ...]) -> bool:
    if len({piece.source for piece in pieces}) == 1:
        return True
    return run[-1] - run[0] + 1 == len(run) and all(_category(piece) == FORMULA for piece in pieces)
