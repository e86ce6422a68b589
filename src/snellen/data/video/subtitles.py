"""Subtitles, SRT or WebVTT, to texts with the seconds they are shown."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...core.errors import DataError
from .reel import TOLERANCE

MOST_BYTES = 8 * 2**20
LAST_CUE_S = 86_400.0
"""A cue without an end is shown until the video ends: no video is longer than a day."""
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
    cues = parse_json_cues(text, path) if path.lower().endswith(".json") else parse_cues(text)
    if not cues and text.strip() not in ("", "WEBVTT"):
        raise DataError(f"subtitles {path!r} have no cue: they must be SRT, WebVTT, or a JSON list")
    return cues


def parse_cues(text: str) -> list[Cue]:
    """Return the cues in order of time. Blocks without times (notes, styles, a header) say nothing."""
    blocks = re.split(r"\n\s*\n", text.replace("\r\n", "\n").replace("\r", "\n"))
    found = [cue for cue in map(_cue, blocks) if cue is not None and cue.text]
    return sorted(found, key=lambda cue: (cue.start, cue.end))


def parse_json_cues(text: str, path: str) -> list[Cue]:
    """Return the cues of a JSON list of `{start, end, line}` or `{timestamp: [start, end], text}`, in order of time."""
    try:
        rows = json.loads(text)
        found = [_json_cue(row) for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"subtitles {path!r} are no list of start, end and line (or timestamp and text)") from None
    return sorted((cue for cue in found if cue.text), key=lambda cue: (cue.start, cue.end))


def _json_cue(row: dict[str, Any]) -> Cue:
    start, end = row["timestamp"] if "timestamp" in row else (row["start"], row["end"])
    said = row["text"] if "text" in row else row["line"]
    begin = _json_second(start)
    return Cue(begin, begin + LAST_CUE_S if end is None else _json_second(end), " ".join(str(said).split()))


def _json_second(value: float | str) -> float:
    if isinstance(value, int | float):
        return float(value)
    hours, minutes, seconds = value.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


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
