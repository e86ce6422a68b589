"""Where in a reply the row stands that was asked for: on a line of its own, within a sentence, or nowhere."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence

from ..scoring.scorers.chart_rows import NUMBER, REMARK, UNSEEN, line_glyphs

LISTED = re.compile(r"\s*(\d{1,2})\s*[.:)、]\s*\W*([^\W_]|\?)\W*")
"""`3. K`"""
PIECE = re.compile(r"[^\W_]+|\?+")
STRANGE = 0.4
"""Writing with this share of glyphs from outside the alphabet is talk, not a reading."""
ONE_WORD = 8
"""One word of small letters may be a row of this length; a shorter one (`None`) rather says that there is none."""
MANY_LETTERS = 20
HALF_ROW = 0.5
"""What is found in a sentence must have this share of the row's length to be meant for it."""


def written_row(reply: str, glyphs: int, alphabet: str) -> str:
    """Return the row that a reply writes down; nothing for talk, and the whole of a reply that is not talk.

    The last line of the right length counts, then what a sentence holds of that length, then the longest it holds. Two
    rows in one sentence are no answer.
    """
    lines = [line for line in reply.splitlines() if line_glyphs(line)]
    listed = _listed(lines, glyphs)
    if listed:
        return listed
    plain = [line for line in lines if not _is_talk(line, glyphs, alphabet)]
    fitting = [line for line in plain if len(line_glyphs(line)) == glyphs]
    if fitting:
        return fitting[-1]
    found = list(filter(None, (_rows_in(line, glyphs, alphabet) for line in lines)))
    exact = list(filter(None, ({row for row in rows if len(row) == glyphs} for rows in found)))
    if exact:
        return exact[-1].pop() if len(exact[-1]) == 1 else ""
    if plain != lines:
        return _without_exact(plain, found)
    broken = "".join(map(line_glyphs, lines))
    return broken if len(broken) == glyphs else reply  # a row that was broken over lines


def _listed(lines: Sequence[str], glyphs: int) -> str:
    """Return the row of a numbered list of single glyphs, one a line; nothing for anything else."""
    items = [LISTED.fullmatch(line) for line in lines]
    told = "".join(item[2] for item in items if item and int(item[1]) <= glyphs)
    return told if len(told) == glyphs == len([item for item in items if item]) else ""


def _without_exact(plain: Sequence[str], found: Sequence[Sequence[str]]) -> str:
    """Return what is nearest to a row in a reply that talks and has none of the right length; it may be nothing."""
    if plain:
        return plain[-1]
    return max(found[-1], key=len) if found else ""


def is_strange(text: str, alphabet: str) -> bool:
    """Tell whether too many glyphs are none of the alphabet for a reading of it."""
    own = text.replace(UNSEEN, "")
    return sum(char not in alphabet for char in own) > STRANGE * len(own)


def _pieces(line: str) -> list[str]:
    """Return the words of a line, without the number a row is given and without remarks."""
    return PIECE.findall(NUMBER.sub(" ", unicodedata.normalize("NFKC", REMARK.sub(" ", line))))


def _is_talk(line: str, glyphs: int, alphabet: str) -> bool:
    """Tell whether a line has words of a language: one that is as long as the row, where they are most of it."""
    pieces = _pieces(line)
    row = "".join(pieces).upper()
    words = sum(len(piece) for piece in pieces if _is_word(piece) and not _is_spelt(piece, alphabet))
    if len(row) != glyphs:
        return words > 0
    if len(pieces) == 1 and glyphs >= ONE_WORD:
        return is_strange(row, alphabet)
    return words > HALF_ROW * glyphs


def _is_word(piece: str) -> bool:
    """Tell whether a piece is written as words are; `KNoBS` is what a reader of shapes makes of capitals."""
    return len(piece) > 1 and any(map(str.islower, piece)) and not any(map(str.isupper, piece[1:]))


def _is_spelt(piece: str, alphabet: str) -> bool:
    """Tell whether a piece may be glyphs in small letters; an alphabet of nearly all letters spells every word."""
    return len(alphabet) < MANY_LETTERS and all(char in alphabet for char in piece.upper())


def _rows_in(line: str, glyphs: int, alphabet: str) -> list[str]:
    """Return what may be the row in a line: pieces of its glyphs that are no words, or neighbours of them together."""
    pieces = _pieces(line)
    rows = [row.upper() for run in _runs(pieces, alphabet) for row in ("".join(run), *run)]
    if max(map(len, rows), default=0) < glyphs:  # `C, then D, and H`
        rows.append("".join(piece for piece in pieces if len(piece) == 1 and (piece in alphabet or piece == UNSEEN)))
    return [row for row in rows if len(row) >= HALF_ROW * glyphs and not is_strange(row, alphabet)]


def _runs(pieces: Sequence[str], alphabet: str) -> Iterator[list[str]]:
    """Yield neighbouring pieces that are no words and hold glyphs of the alphabet; counts in between are none."""
    for words, group in itertools.groupby(pieces, _is_word):
        run = list(group)
        singles = all(len(piece) == 1 for piece in run)
        own = [piece for piece in run if singles or not (len(piece) <= 2 and piece.isdigit())]
        own = [piece for piece in own if any(char in alphabet or char == UNSEEN for char in piece.upper())]
        if own and not words:
            yield own
