"""A page style: named presets and overrides into one record of points and pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from ...core.config import convert
from ...core.errors import UsageError, not_among

NEWLINES = ("keep", "space", "paragraph", "mark")
ALIGNMENTS = ("left", "right", "centre", "justify")
CROPS = ("none", "last", "all")


class PageStyle(Struct, frozen=True, forbid_unknown_fields=True):
    """How a page looks. Lengths are points (1/72 inch); `dpi` turns them into pixels."""

    width_pt: float = 595.0
    height_pt: float = 842.0
    dpi: float = 96.0
    font: str = "DejaVu Sans"
    size_pt: float = 11.0
    leading_pt: float = 12.0
    margin_pt: float = 10.0
    columns: int = 1
    gutter_pt: float = 12.0
    ink: str = "#000000"
    paper: str = "#ffffff"
    align: str = "left"
    newlines: str = "keep"
    """`keep` every newline, `space` joins lines, `paragraph` keeps only empty lines, `mark` shows a red ⏎ and joins."""
    crop: str = "none"
    """`last` cuts the last page below its text, `all` every page to the text."""
    tab_width: int = 4
    letter_spacing_px: int = 0

    def __post_init__(self) -> None:
        for name, known in (("newlines", NEWLINES), ("align", ALIGNMENTS), ("crop", CROPS)):
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} {not_among(value, known)}")
        if min(self.width_pt, self.height_pt, self.dpi, self.size_pt, self.leading_pt) <= 0 or self.columns < 1:
            raise ValueError("page size, dpi, font size and leading must be above 0, and columns at least 1")

    @property
    def page_px(self) -> tuple[int, int]:
        """Width and height of a whole page in pixels."""
        return round(self.width_pt * self.dpi / 72), round(self.height_pt * self.dpi / 72)

    def pixels(self, points: float) -> float:
        """Turn points into pixels at this style's dpi."""
        return points * self.dpi / 72


PRESETS: Mapping[str, PageStyle] = {
    "seed": PageStyle(newlines="space"),
    "glyph": PageStyle(dpi=72, size_pt=9, leading_pt=10, crop="last"),
    "dense": PageStyle(size_pt=7, leading_pt=8, newlines="space"),
}

_SEVERITIES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "dpi_render": tuple({"dpi": dpi} for dpi in (68.0, 60.0, 54.0, 50.0, 46.0)),
    "dense_text": tuple({"size_pt": size, "leading_pt": size + 1} for size in (9.0, 8.0, 7.0, 6.0, 5.0)),
    "typography": (
        {"font": "DejaVu Serif"},
        {"font": "DejaVu Sans Mono"},
        {"font": "DejaVu Sans Condensed", "align": "justify"},
        {"font": "DejaVu Serif Italic", "columns": 2},
        {"font": "DejaVu Sans ExtraLight", "columns": 3, "letter_spacing_px": -1},
    ),
}
"""Degradations that need the text again: the number of visual tokens changes with them."""


def render_families() -> tuple[str, ...]:
    """Return the names of the families that re-render instead of touching pixels."""
    return tuple(_SEVERITIES)


def style_of(preset: str = "seed", overrides: Mapping[str, Any] | None = None) -> PageStyle:
    """Return a preset with some fields replaced; a wrong name or value is a UsageError."""
    if preset not in PRESETS:
        raise UsageError(f"unknown page preset {not_among(preset, PRESETS)}")
    fields = structs.asdict(PRESETS[preset]) | dict(overrides or {})
    return convert(fields, PageStyle, f"page style {preset!r}")


def degrade_style(style: PageStyle, family: str, severity: int) -> PageStyle:
    """Return the style of a re-rendered degradation, severity 1–5 (0 is the style itself)."""
    if family not in _SEVERITIES:
        raise UsageError(f"unknown render family {not_among(family, _SEVERITIES)}")
    if severity == 0:
        return style
    steps = _SEVERITIES[family]
    if not 1 <= severity <= len(steps):
        raise UsageError(f"{family}: severity {severity} is not in 0-{len(steps)}")
    return structs.replace(style, **steps[severity - 1])
