"""The subtitles that a model was shown as a WebVTT track, which a player puts over the film."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHORTEST_S = 0.001
"""Browsers drop a cue that ends when it begins."""
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def subtitle_spans(record: Mapping[str, Any]) -> list[tuple[float, float, str]]:
    """Return what was stored of the subtitles of a video: start, end and text of each that was shown to the model."""
    return [(float(start), float(end), str(text)) for start, end, text in record.get("subtitles") or []]


def caption_track(record: Mapping[str, Any]) -> str:
    """Return the track of a video; nothing in its texts is taken for markup, for times or for the next cue."""
    cues = [
        f"{clock_stamp(start)} --> {clock_stamp(max(end, start + SHORTEST_S))}\n{_words(text)}\n"
        for start, end, text in subtitle_spans(record)
    ]
    return "\n".join(["WEBVTT\n", *cues])


def clock_stamp(second: float) -> str:
    """Return a moment as WebVTT writes it: 01:02:03.456."""
    whole = round(max(0.0, second) * 1000)
    return f"{whole // 3_600_000:02d}:{whole // 60_000 % 60:02d}:{whole // 1000 % 60:02d}.{whole % 1000:03d}"


def _words(text: str) -> str:
    return " ".join(text.split()).translate(_ESCAPES)
