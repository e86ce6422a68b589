"""OmniDocBench's own rule (opendatalab/OmniDocBench 147cd5a, version 1.6.0, `quick_match`): one page.

Faults are kept: the first table of a reply is not in the reading order, invented pieces cost nothing, a refusal is
matched to something. The original's time limits are not: where it falls back to another matching after 300 s, this
goes on, and gives the same number on any machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rapidfuzz.distance import Levenshtein

from .omnidoc_formulas import formula_pool, match_formulas
from .omnidoc_match import IGNORED, Gold, Pair, by_place, edit, edits, match
from .omnidoc_reading import FORMULA, INLINE_FORMULA, LATEX_TABLE, RESCUED, TABLE, TEXT, Piece, read_page
from .omnidoc_text import (
    INLINE,
    inline_as_characters,
    latex_as_text,
    normal_cell,
    normal_formula,
    normal_table,
    normal_text,
    parsed_html,
    without_delimiters,
)
from .pairing import assign
from .teds import TableTooLarge, Teds, teds

# How OmniDocBench 1.6 writes the cells of a table that no gold table asks for, before it takes them for text.

_FORMULA = re.compile(r"\\\[.*?\\\]|\\\(.*?\\\)|\$\$.*?\$\$|\$.*?\$", re.DOTALL)
_FONTS = re.compile(r"\\(?:math(?:bf|rm|normal|it|bb|cal|scr|frak|sf|tt)|textbf|textit)")
_PLAIN = {"\\t": "", "\\n": "", "\t": "", "\n": "", "/t": "", "/n": "", " ": ""}
_SIGNS = {"✓": "✔", "√": "✔", "-": "—", "∼": "～", "Ø": "∅"}
_GREEK = {
    "\\checkmark": "✔",
    "\\pm": "±",
    "\\alpha": "α",
    "\\beta": "β",
    "\\gama": "γ",
    "\\gamma": "γ",
    "\\mu": "μ",
    "\\lambda": "λ",
    "\\theta": "θ",
    "\\eta": "η",
    "\\pi": "π",
    "\\rho": "ρ",
    "\\sigma": "σ",
    "\\omega": "ω",
    "\\delta": "δ",
    "∼": "～",
    "-": "—",
    "Ø": "∅",
}


def cell_text(text: str) -> str:
    """Return a cell without blanks, its formulas in characters and some signs unified."""
    parts, end = [], 0
    for found in _FORMULA.finditer(text):
        parts += [_plain(text[end : found.start()]), _formula(found[0])]
        end = found.end()
    return "".join([*parts, _plain(text[end:])])


def _plain(text: str) -> str:
    for old, new in (_PLAIN | _SIGNS).items():
        text = text.replace(old, new)
    return re.sub(r"_{4,}", "____", text)


def _formula(latex: str) -> str:
    latex = latex.strip()
    latex = latex[2:] if latex.startswith(("\\(", "\\[")) else latex
    latex = latex[:-2] if latex.endswith(("\\)", "\\]")) else latex
    latex = _FONTS.sub("", latex.strip("$"))
    for old, new in _GREEK.items():
        latex = latex.replace(old, new)
    return latex_as_text(latex).replace(" ", "").replace("\xa0", "")


_ORDER_OF_KINDS = (
    *("text_block", "title", "code_txt", "code_txt_caption", "reference", "equation_caption", "figure_caption"),
    *("figure_footnote", "table_caption", "table_footnote", "code_algorithm", "code_algorithm_caption", "header"),
    *("footer", "page_footnote", "page_number", FORMULA),
)


class TablePair(NamedTuple):
    """A gold table and what the reply has for it, both normalised."""

    gold: str
    reply: str
    gold_norm: str
    reply_norm: str
    order: float | None
    position: float | None
    value: Teds
    problem: str = ""
    """Why it counts 0 although the reply has it."""


@dataclass(frozen=True)
class OmniPage:
    """What OmniDocBench measures of one page; a part that the gold page has not is None."""

    texts: list[Pair]
    formulas: list[Pair]
    tables: list[TablePair]
    order: tuple[list[float], list[float]]

    def parts(self) -> dict[str, float]:
        """Return the page's values: edit distances (0 is best) and TEDS (1 is best), of what the page has."""
        found: dict[str, float | None] = {
            "text_edit": _page_edit([(pair.gold_norm or pair.gold_text, _said(pair)) for pair in self.texts]),
            "formula_edit": _page_edit([(pair.gold_norm or pair.gold_text, _said(pair)) for pair in self.formulas]),
            "table_edit": _page_edit([(one.gold_norm or one.gold, one.reply_norm or one.reply) for one in self.tables]),
            "order_edit": edit(*self.order) if any(self.order) else None,
        }
        if self.tables:
            found["table_teds"] = sum(one.value.teds for one in self.tables) / len(self.tables)
            found["table_teds_s"] = sum(one.value.structure for one in self.tables) / len(self.tables)
        return {name: value for name, value in found.items() if value is not None}


def _said(pair: Pair) -> str:
    return pair.reply_norm or pair.reply_text


def _page_edit(pairs: Sequence[tuple[str, str]]) -> float | None:
    longer = sum(max(map(len, pair)) for pair in pairs)
    return sum(Levenshtein.distance(*pair) for pair in pairs) / longer if longer else None


def gold_blocks(blocks: Sequence[Mapping[str, Any]]) -> list[Gold]:
    """Return blocks of a page as they are given (`category`, `text`, `order`, `ignore`), without the ignored ones."""
    return [
        Gold(str(block["category"]), str(block.get("text") or ""), block.get("order"))
        for block in blocks
        if not block.get("ignore")
    ]


def score_page(gold: Sequence[Gold], reply: str) -> OmniPage:
    """Return what OmniDocBench measures of one page. Raises TableTooLarge where a table is beyond comparing."""
    pieces = read_page(reply)
    blocks = _by_order([block for kind in _ORDER_OF_KINDS for block in gold if block.category == kind])
    tables = _by_order([block for block in gold if block.category == "table"])
    table_pieces = [piece for piece in pieces if piece.kind in (TABLE, LATEX_TABLE)]
    table_pairs, extra = _match_tables(tables, table_pieces)
    mixed = [piece for piece in pieces if piece.kind not in (TABLE, LATEX_TABLE, RESCUED)]
    mixed = [*(p for p in mixed if p.kind == mixed[0].kind), *(p for p in mixed if p.kind != mixed[0].kind), *extra]
    pairs = [_across(pair) for pair in match(blocks, mixed)]
    pairs = _respanned(pairs, mixed)
    texts = [pair for pair in pairs if pair.category not in IGNORED and pair.category != FORMULA]
    formulas = match_formulas(
        [block for block in blocks if block.category == FORMULA],
        formula_pool(pieces),
        [pair for pair in pairs if pair.category == FORMULA],
    )
    return OmniPage(texts, formulas, table_pairs, _reading_order([*texts, *formulas], table_pairs))


def _by_order(blocks: list[Gold]) -> list[Gold]:
    return sorted(blocks, key=lambda block: block.order or 0)


def _reading_order(pairs: Sequence[Pair], tables: Sequence[TablePair]) -> tuple[list[float], list[float]]:
    placed = [(pair.orders, pair.position) for pair in pairs]
    placed += [((one.order,), one.position) for one in tables]
    gold = sorted(order for orders, _ in placed for order in orders if order)
    found = sorted(((place, orders) for orders, place in placed if place is not None), key=lambda pair: pair[0])
    return gold, [order for _, orders in found for order in orders if order]


def _match_tables(tables: list[Gold], pieces: list[Piece]) -> tuple[list[TablePair], list[Piece]]:
    """Return the gold tables with their pieces, and the tables that are left as texts, a row each."""
    if not tables:
        return [], []
    wanted = [(table, norm) for table in tables if table.content and (norm := normal_table(table.content))]
    found = [(piece.content, norm) for piece in pieces if piece.content and (norm := normal_table(piece.content))]
    chosen = dict(assign(edits([norm for _, norm in wanted], [norm for _, norm in found])))
    pairs = []
    for row, (table, norm) in enumerate(wanted):
        column = chosen.get(row)
        text, reply = found[column] if column is not None else ("", "")
        # the first table of a reply has index 0, which the original takes for "none" when it looks up its place
        pairs.append(_table_pair(table, norm, text, reply, pieces[column].start if column else None))
    left = [index for index in range(len(found)) if index not in chosen.values()]
    return pairs, [row for index in left for row in _rows_as_texts(pieces[index])]


def _table_pair(table: Gold, norm: str, text: str, reply: str, position: float | None) -> TablePair:
    problem, value = "", Teds(0.0, 0.0)
    try:
        value = teds(reply or text, norm)
    except TableTooLarge:
        raise
    except ValueError as error:  # the original counts 0 for a table that its own code cannot read
        problem = str(error)
    return TablePair(table.content, text, norm, reply, table.order, position, value, problem)


def _rows_as_texts(piece: Piece) -> list[Piece]:
    rows = []
    for row in parsed_html(normal_table(piece.content)).find_all("tr"):
        cells = (normal_cell(cell_text(cell.get_text(" ", strip=True))) for cell in row.find_all("td"))
        rows.append(" ".join(cell for cell in cells if cell))
    return [
        replace(
            piece, kind=TEXT, name="table_to_text", content=text, start=piece.start + place, end=piece.start + place
        )
        for place, text in enumerate(filter(None, rows))
    ]


def _is_formula(category: str) -> bool:
    return category in (FORMULA, INLINE_FORMULA)


def _as_text(category: str, text: str) -> str:
    return inline_as_characters(without_delimiters(text) if _is_formula(category) else text)


def _across(pair: Pair) -> Pair:
    """Return a pair of a text and a formula as two texts."""
    if not pair.reply_category or _is_formula(pair.category) == _is_formula(pair.reply_category):
        return pair
    gold, reply = _as_text(pair.category, pair.gold_text), _as_text(pair.reply_category, pair.reply_text)
    norms = normal_text(gold), normal_text(reply)
    return replace(pair, gold_text=gold, reply_text=reply, gold_norm=norms[0], reply_norm=norms[1], edit=edit(*norms))


def _respanned(pairs: list[Pair], mixed: list[Piece]) -> list[Pair]:
    """Return the pairs; titles and long texts that match badly get a better stretch of free pieces nearby."""
    pool = [piece for piece in by_place(mixed) if piece.kind in (TEXT, FORMULA)]
    owned = [_owned(pair, pool) for pair in pairs]
    better = []
    for place, pair in enumerate(pairs):
        if not _is_bad(pair):
            continue
        blocked = {index for other, indices in enumerate(owned) if other != place for index in indices}
        stretch = _best_stretch(pair, pool, owned[place], blocked)
        if stretch is not None:
            better.append((pair.edit - stretch.edit, place, stretch))
    used: set[int] = set()
    done = list(pairs)
    for _, place, stretch in sorted(better, key=lambda one: -one[0]):
        indices = set(range(stretch.start, stretch.end + 1))
        if not indices & used:
            used |= indices
            done[place] = stretch.applied(done[place], pool)
    return done


def _owned(pair: Pair, pool: list[Piece]) -> list[int]:
    known = sorted({index for index in pair.reply if index < len(pool)})
    if known or pair.position is None:
        return known
    return [index for index, piece in enumerate(pool) if piece.start <= pair.position <= piece.end]


def _has_formula(text: str) -> bool:
    if re.search(r"\$[^$]+\$|\\\([^)]*\\\)", text):
        return True
    if any(command in text for command in (r"\frac", r"\sum", r"\int", r"\sqrt", r"\left", r"\right")):
        return True
    return ("^" in text or "_" in text) and ("$" in text or "\\" in text)


def _is_bad(pair: Pair) -> bool:
    if pair.category not in ("title", "text_block") or pair.edit <= 0.45:
        return False
    return pair.category == "title" or _has_formula(pair.gold_text) or len(pair.gold_norm) >= 80


class _Stretch(NamedTuple):
    edit: float
    start: int
    end: int
    norm: str
    away: int

    def applied(self, pair: Pair, pool: list[Piece]) -> Pair:
        pieces = pool[self.start : self.end + 1]
        return replace(
            pair,
            reply=tuple(range(self.start, self.end + 1)),
            reply_text="".join(piece.content for piece in pieces),
            position=pieces[0].start,
            reply_category="text_block",
            reply_norm=self.norm,
            edit=self.edit,
        )

    def beats(self, other: _Stretch | None) -> bool:
        if other is None or self.edit + 1e-12 < other.edit:
            return True
        if self.edit > other.edit + 1e-12:
            return False
        sizes = self.end - self.start, other.end - other.start
        return sizes[0] < sizes[1] or (sizes[0] == sizes[1] and self.away < other.away)


def _best_stretch(pair: Pair, pool: list[Piece], owned: list[int], blocked: set[int]) -> _Stretch | None:
    formula = _has_formula(pair.gold_text)
    wanted = normal_text(_with_normal_formulas(pair.gold_text) if formula else _as_text(pair.category, pair.gold_text))
    if not wanted:
        return None
    low, high = (max(0, owned[0] - 8), min(len(pool) - 1, owned[-1] + 8)) if owned else (0, len(pool) - 1)
    kinds = (TEXT, FORMULA) if formula else (TEXT,)
    best: _Stretch | None = None
    for start in range(low, high + 1):
        rendered = ""
        for end in range(start, min(high + 1, start + (8 if formula else 4))):
            if pool[end].kind not in kinds or end in blocked:
                break
            rendered += _as_text(pool[end].kind, pool[end].content)
            norm = normal_text(rendered)
            away = abs(start - owned[0]) if owned else 0
            if norm and (new := _Stretch(edit(wanted, norm), start, end, norm, away)).beats(best):
                best = new
    if best is None or best.edit >= pair.edit - 0.2 or best.edit > (0.45 if formula else 0.35):
        return None
    return best


def _with_normal_formulas(text: str) -> str:
    return INLINE.sub(lambda found: normal_formula(found[1] if found[1] is not None else found[2]).strip(), text)
