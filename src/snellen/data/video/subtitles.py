"""Subtitles, SRT or WebVTT, to texts with the seconds they are shown."""

from __future__ import annotations

import html
import re
from pathlib import Path

from msgspec import Struct

from ...core.errors import DataError
from .reel import TOLERANCE

MOST_BYTES = 8 * 2**20
TIMES = re.compile(r"\s*(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})\s*-->\s*(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})")
MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
"""Italics, voices and positions: how a text looks, not what it says."""


class Cue(Struct, frozen=True, gc=False):
    """A text and when it is shown, in seconds."""

    start: float
    end: float
    text: str


def read_subtitles(path: str) -> list[Cue]:
    """Read a file of subtitles; one without a single cue is refused."""
    try:
        file = Path(path)
        if file.stat().st_size > MOST_BYTES:
            raise DataError(f"subtitles {path!r} have more than {MOST_BYTES >> 20} MB")
        text = file.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "they are not UTF-8"
        raise DataError(f"subtitles {path!r} cannot be read: {reason}") from None
    cues = parse_cues(text)
    if not cues and text.strip() not in ("", "WEBVTT"):
        raise DataError(f"subtitles {path!r} have no cue: they must be SRT or WebVTT")
    return cues


def parse_cues(text: str) -> list[Cue]:
    """Return the cues in order of time. Blocks without times (notes, styles, a header) say nothing."""
    blocks = re.split(r"\n\s*\n", text.replace("\r\n", "\n").replace("\r", "\n"))
    found = [cue for cue in map(_cue, blocks) if cue is not None and cue.text]
    return sorted(found, key=lambda cue: (cue.start, cue.end))


def _cue(block: str) -> Cue | None:
    lines = block.strip("\n").split("\n")
    for place, line in enumerate(lines[:2]):
        match = TIMES.match(line)
        if match is not None:
            words = " ".join(" ".join(lines[place + 1 :]).split())
            text = " ".join(html.unescape(MARKUP.sub("", words)).split())
            return Cue(_at(match.groups()[:4]), _at(match.groups()[4:]), text)
    return None


def _at(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, rest = parts
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0) + int((rest or "0").ljust(3, "0")) / 1000


def cues_at(cues: list[Cue], second: float) -> list[Cue]:
    """Return the cues shown at a moment."""
    return [cue for cue in cues if cue.start <= second + TOLERANCE and second < cue.end]


def cues_between(cues: list[Cue], start: float, end: float) -> list[Cue]:
    """Return the cues that begin in a span of time, its end left out."""
    return [cue for cue in cues if start <= cue.start < end]
