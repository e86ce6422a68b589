"""A chart -> what is asked about it: the rows' lengths, the alphabet, and `?` for what cannot be seen."""

from __future__ import annotations

from .eyechart_draw import Chart
from .eyechart_text import ALPHABETS

NAMES = {
    "letters": ("capital letters", "letter"),
    "digits": ("digits", "digit"),
    "words": ("English words in capital letters", "letter"),
    "cjk": ("Chinese characters", "character"),
}
"""Script -> what its rows hold, and one glyph of it."""


def chart_question(chart: Chart) -> str:
    """Return the question for the whole chart: numbered rows of stated length, so that every glyph has its place."""
    change = "fainter" if chart.lines[0].contrast != chart.lines[-1].contrast else "smaller"
    many, one = NAMES[chart.script]
    lengths = ", ".join(str(_glyphs(line.text)) for line in chart.lines)
    return (
        f"This is an eye chart with {len(chart.lines)} rows of {many} that get {change} from top to bottom"
        f"{_alphabet(chart)}. From top to bottom the rows hold {lengths} {one}s{_spaces(chart)}. "
        f'Read it: write every row on a line of its own after its number, as in "1: …", with exactly as many '
        f"{one}s as it holds: your best guess for each {one}, or ? for a {one} you cannot see at all."
    )


def line_question(chart: Chart, number: int, *, transcribe: bool) -> str:
    """Return the question for one line; with options to choose from, its text alone is asked for."""
    question = f"What does line {number} of this eye chart say, counted from the top?"
    if not transcribe:
        return question
    count, one = _glyphs(chart.lines[number - 1].text), NAMES[chart.script][1]
    noun = f"{count} {one}{'s' if count != 1 else ''}"
    return (
        f"{question} It holds {noun}{_spaces(chart)}{_alphabet(chart)}. "
        f"Write exactly {noun}: your best guess for each, or ? for one you cannot see at all."
    )


def _glyphs(text: str) -> int:
    return len(text.replace(" ", ""))


def _alphabet(chart: Chart) -> str:
    """Name the alphabet where it is not a matter of course."""
    return f", all from {' '.join(ALPHABETS[chart.script])}" if chart.script in ("letters", "cjk") else ""


def _spaces(chart: Chart) -> str:
    return ", spaces not counted" if chart.script == "words" else ""
