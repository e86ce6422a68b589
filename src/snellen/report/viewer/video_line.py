"""The videos of a trial: a player, and a line of time with the frames that were shown, the needle, the subtitles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import DataError
from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...data.images.whole_video import is_whole_video
from ...data.video.av_child import VideoError, sniff
from ..pages.gallery import Shown
from .run_library import OpenRun
from .shell import EXPORTED, trial_address
from .stage import PICTURES, pictures_of

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


PLAYED = {"mp4": "video/mp4", "matroska": "video/webm"}
"""What browsers play; other kinds are shown as their frames alone."""
TICKS = 512
WIDTH, LINE_Y, HEIGHT = 560.0, 26.0, 60.0


def videos_of(run: OpenRun, shown: Shown) -> Iterator[Html]:
    """Yield a figure for every video of a trial."""
    places = [n for n, image in enumerate(pictures_of(shown)) if image.frame is not None or is_whole_video(image)]
    for number, record in enumerate(records_of(shown)):
        count = len(record.get("seconds") or [None])
        player = _player(run, shown, number, record)
        line = time_line(record, _needle(shown), places[:count])
        words = tag("figcaption", describe_video(record), class_="muted small")
        yield tag("figure", player, line, words, *_subtitles(record), class_="film")
        places = places[count:]


def records_of(shown: Shown) -> list[Mapping[str, Any]]:
    """Return what was stored of the videos of a trial."""
    records = shown.prediction.detail.get("videos")
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def playable(record: Mapping[str, Any]) -> tuple[Path, str] | None:
    """Return the file of a video and its kind, if it is there and begins as one that browsers play."""
    path = Path(str(record.get("video", "")))
    try:
        kind = PLAYED.get(sniff(str(path)))
    except (OSError, ValueError, VideoError, DataError):
        return None
    return (path, kind) if kind else None


def describe_video(record: Mapping[str, Any]) -> str:
    """Say in a line what was shown of a video."""
    name = Path(str(record.get("video", ""))).name
    length = f"{record.get('frames', '?')} frames, {record.get('duration', 0):g} s, {record.get('fps', 0):g} fps"
    if "seconds" not in record:
        return f"{name}: {length}; sent as its file, the frames are the server's choice"
    return f"{name}: {length}; {len(record['seconds'])} shown by {record.get('policy', '?')}{_disturbed(record)}"


def _disturbed(record: Mapping[str, Any]) -> str:
    tempo, rate = record.get("tempo"), record.get("bitrate")
    if not isinstance(rate, dict):
        return f", disturbed by {tempo}" if tempo else ""
    return f", compressed to {rate.get('asked_kbps')} kbit/s (it became {rate.get('kbps')})"


def time_line(record: Mapping[str, Any], needle: Sequence[float] | None, pictures: Sequence[int] = ()) -> Html:
    """Return a drawing of a video's time: a tick a shown frame, a band where the needle is, marks for subtitles.

    `pictures` are the places of its frames among all pictures of the trial: a tick leads to its own, if that is shown.
    """
    duration = float(record.get("duration") or 0) or 1.0

    def x(second: float) -> float:
        return round(10 + (WIDTH - 20) * min(1.0, max(0.0, second / duration)), 2)

    parts: list[Child] = [tag("line", x1=x(0), x2=x(duration), y1=LINE_Y, y2=LINE_Y, class_="axis")]
    if needle:
        band = {"x": x(needle[0]), "width": max(2.0, x(needle[1]) - x(needle[0]))}
        words = tag("title", f"The answer is shown from {needle[0]:.2f} s to {needle[1]:.2f} s")
        parts.append(tag("rect", words, y=LINE_Y - 16, height=32, class_="needle", **band))
    for start, end, text in subtitle_spans(record):
        said = tag("title", f"{start:.1f} s: {shorten(text, 120)}")
        parts.append(
            tag("rect", said, x=x(start), y=LINE_Y + 10, width=max(1.0, x(end) - x(start)), height=5, class_="said")
        )
    for place, second in enumerate((record.get("seconds") or [])[:TICKS]):
        tick = tag("line", x1=x(second), x2=x(second), y1=LINE_Y - 11, y2=LINE_Y + 7, class_="tick")
        words = tag("title", f"Frame {record['indices'][place]} at {second:.3f} s")
        at = pictures[place] if place < len(pictures) else PICTURES
        leads = {"href": f"#picture-{at}"} if at < PICTURES else {}
        parts.append(tag("a", words, tick, data_second=round(second, 3), **leads))
    ends = ((0.0, "0 s", "start"), (duration, f"{duration:g} s", "end"))
    parts += [tag("text", text, x=x(at), y=HEIGHT - 4, font_size=13, text_anchor=anchor) for at, text, anchor in ends]
    label = f"{describe_video(record)}. Ticks are the frames shown."
    return tag("svg", *parts, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", class_="timeline", role="img", aria_label=label)


def _player(run: OpenRun, shown: Shown, number: int, record: Mapping[str, Any]) -> Html | None:
    if EXPORTED.get() or playable(record) is None:
        return None
    source, words = (trial_address(run, shown.prediction.key, kind, n=number) for kind in ("video", "captions"))
    label = describe_video(record)
    told = tag("track", src=words, kind="captions", srclang="und", label="as the model was shown them", default=True)
    track = [told] if subtitle_spans(record) else []
    return tag("video", *track, src=source, controls=True, preload="metadata", muted=True, aria_label=label)


def _needle(shown: Shown) -> Sequence[float] | None:
    span = shown.sample.meta.get("needle_seconds")
    return span if isinstance(span, list) and len(span) == 2 else None


def _subtitles(record: Mapping[str, Any]) -> Iterator[Html]:
    spans = subtitle_spans(record)
    if spans:
        lines = [tag("li", f"{start:.1f} s: {shorten(text, 300)}") for start, _, text in spans[:200]]
        yield tag("details", tag("summary", f"{plural(len(spans), 'subtitle')} shown"), tag("ol", *lines))
