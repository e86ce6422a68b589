"""A video to what is shown of it: its frames as pictures, or itself, with stamps and subtitles; and a record."""

from __future__ import annotations

import html
import json
import math
import os
import re
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import DataError
from ...core.ids import derive_seed
from ...core.types import Frame, Image, Showing, Video
from .frame_rules import choose_frames, disturb, kbps_of, read_rule
from .reel import TOLERANCE, Reel, part_of

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


PICTURES = {".png", ".jpg", ".jpeg", ".webp", ".bmp"}
UNITS = 1_000_000
"""Timestamps are counted in millionths of a second."""


def list_frames(folder: str) -> list[Path]:
    """Return the pictures of a folder, by the numbers in their names: 2 comes before 10."""
    found = [file for file in Path(folder).iterdir() if file.suffix.lower() in PICTURES]
    if not found:
        raise DataError(f"video {folder!r} is a folder without pictures ({', '.join(sorted(PICTURES))})")
    return sorted(found, key=lambda file: (_natural(file.name), file.name))


def folder_reel(files: list[Path], fps: float) -> Reel:
    """Return when each picture is shown."""
    if not 0 < fps <= 1000:
        raise DataError(f"video {str(files[0].parent)!r}: fps {fps:g} is not between 0 and 1000")
    pts = tuple(round(place / fps * UNITS) for place in range(len(files)))
    keys = tuple(range(len(files)))
    return Reel(pts, (1, UNITS), fps, 0, 0, keys, last=1 / fps, codec="pictures", container="folder")


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


KEPT_REELS = 64
MIMES = {"mp4": "video/mp4", "matroska": "video/webm", "avi": "video/x-msvideo", "mpegts": "video/mp2t"}
FILE, JOINED, FRAMES = "file", "joined", "frames"
"""How a video goes out: as its own file, as frames that belong together, as pictures."""


class Unfolded(NamedTuple):
    """The texts and pictures that stand for a video, in order, and what is recorded of it."""

    pieces: list[str | Image]
    record: dict[str, Any]


class Reels:
    """What is known of videos, each looked at once while it stays the same file and among the last asked for."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Any, ...], Reel] = OrderedDict()
        self._asking: dict[tuple[Any, ...], Lock] = {}
        self._lock = Lock()

    def of_file(self, path: str, *, scenes: bool) -> Reel:
        """Return what is known of a video file."""
        from .decoder import decoder_of

        try:
            status = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            raise DataError(f"video {path!r} does not exist") from None
        key = (path, status.st_size, status.st_mtime_ns, scenes)
        with self._lock:
            asking = self._asking.setdefault(key, Lock())
        with asking:  # many questions about one video look at it once
            reel = self._known.get(key) or decoder_of(path).facts(path, scenes=scenes)
            self._keep(key, reel)
        return reel

    def _keep(self, key: tuple[Any, ...], reel: Reel) -> None:
        with self._lock:
            self._asking.pop(key, None)
            self._known[key] = reel
            self._known.move_to_end(key)
            while len(self._known) > KEPT_REELS:
                self._known.popitem(last=False)


REELS = Reels()


def unfold(video: Video, route: str, *, rough: bool = False) -> Unfolded:
    """Return what is shown of a video; raise DataError where it cannot be read, or shows nothing.

    `rough`: for an estimate; what takes long and changes neither number nor size of frames is left out.
    """
    try:
        return _as_file(video) if route == FILE else _as_frames(video, joined=route == JOINED, rough=rough)
    except DataError as error:
        name = repr(video.ref)
        raise DataError(str(error) if name in str(error) else f"video {name}: {error}") from None


class Film(NamedTuple):
    """A video with what is known of it: the frames of the part that is meant, by their place in it."""

    video: Video
    reel: Reel
    """The part that is meant."""
    whole: Reel
    files: list[Path]
    """Of a folder of frames: its pictures."""

    def second(self, index: int) -> float:
        """Return when a frame is shown, counted from the first frame of the file."""
        return self.reel.seconds[index] + self.whole.seconds[self.reel.first]

    def has(self, image: Image) -> bool:
        """Tell whether a picture is one of its frames."""
        return image.ref == self.video.ref or image.ref in map(str, self.files)

    def frame(self, index: int, *, joined: bool = False) -> Image:
        """Return the reference of a frame as it is shown; each draws its own chance, the same in every run."""
        number = index + self.reel.first
        return _frame(self.video, number, self.reel.pts[index], self.second(index), self.files, joined=joined)


def open_film(video: Video) -> Film:
    """Return a video with what is known of it; opens files, each once while it stays the same."""
    whole, files = _reel(video)
    return Film(video, part_of(whole, video.start, video.end), whole, files)


def _as_frames(video: Video, *, joined: bool, rough: bool) -> Unfolded:
    show, film = video.showing, open_film(video)
    chosen = choose_frames(show.frames, sized(film.reel, show.side))
    if show.tempo:
        chosen = disturb(show.tempo, chosen, len(film.reel.pts), video.seed)
    times = [film.second(index) for index in chosen]
    frames = [film.frame(index, joined=joined) for index in chosen]
    cues = read_subtitles(video.subtitles) if show.subtitles != "none" and video.subtitles else []
    record = _record(video, film.whole, JOINED if joined else FRAMES)
    record |= _disturbance(video, rough=rough)
    record["indices"] = [index + film.reel.first for index in chosen]
    record["seconds"] = [round(second, 6) for second in times]
    if show.tempo.startswith("shuffle:"):
        times = sorted(times)  # a stamp tells the place in the film that is shown: true ones would tell the order
    return Unfolded(_between(frames, times, cues, show, record), record)


def _disturbance(video: Video, *, rough: bool) -> dict[str, Any]:
    """Return what is recorded of a disturbance: its name, and the bitrate that was reached."""
    from .squeezed import squeeze

    tempo = video.showing.tempo
    if not tempo:
        return {}
    kbps = kbps_of(tempo)
    return {"tempo": tempo} | ({"bitrate": squeeze(video.ref, kbps).record()} if kbps and not rough else {})


def sized(reel: Reel, side: int) -> Reel:
    """Return the film with the size its frames are shown in."""
    longest = max(reel.width, reel.height)
    if not side or longest <= side:
        return reel
    share = side / longest
    return replace(reel, width=max(1, round(reel.width * share)), height=max(1, round(reel.height * share)))


def _reel(video: Video) -> tuple[Reel, list[Path]]:
    if not Path(video.ref).is_dir():
        return REELS.of_file(video.ref, scenes=read_rule(video.showing.frames).name == "scenes"), []
    if kbps_of(video.showing.tempo):
        raise DataError(f"tempo={video.showing.tempo} needs a video file, this is a folder of frames")
    if video.fps is None:
        raise DataError("a folder of frames needs its frames a second: add a column `fps`")
    if read_rule(video.showing.frames).name in ("scenes", "tokens"):
        raise DataError(f"policy {video.showing.frames!r} needs a video file, this is a folder of frames")
    files = list_frames(video.ref)
    return folder_reel(files, video.fps), files


def _frame(video: Video, index: int, pts: int, second: float, files: list[Path], *, joined: bool) -> Image:
    show, edits = video.showing, video.edits
    if edits:
        seed = derive_seed(video.seed, index) % 2**32
        edits = tuple(edit.replace("{seed}", str(seed)) for edit in edits)
    if files:
        fitted = (f"fit:{show.side}", *edits) if show.side else edits
        still = Frame(pts, index, round(second, 6), still=True, joined=joined)
        return Image(str(files[index]), edits=fitted, frame=still)
    frame = Frame(pts, index, round(second, 6), show.side, show.encoding, joined=joined, kbps=kbps_of(show.tempo))
    return Image(video.ref, edits=edits, frame=frame)


def _between(
    frames: list[Image], times: list[float], cues: list[Cue], show: Showing, record: dict[str, Any]
) -> list[str | Image]:
    """Return the frames with their stamps, and the subtitles before them or between them."""
    before = {"all": cues, "sampled": _said_at(cues, times)}.get(show.subtitles, [])
    after = _said_after(cues, times) if show.subtitles == "interleaved" else [[] for _ in times]
    pieces: list[str | Image] = [_subtitle_block(before)] if before else []
    for number, (image, heard) in enumerate(zip(frames, after, strict=True), 1):
        stamp = write_stamp(show.stamp, times[number - 1], number)
        pieces += [stamp, image, _said(heard)]  # a text that says nothing goes when the message is put together
    if show.subtitles != "none":
        said = [*before, *(cue for heard in after for cue in heard)]
        record["subtitles"] = [[cue.start, cue.end, cue.text] for cue in said]
    return pieces


def _said_after(cues: list[Cue], times: list[float]) -> list[list[Cue]]:
    """Return, for each frame, what begins to be said between it and the next; before the first counts with it."""
    starts, ends = [0.0, *times[1:]], [*times[1:], math.inf]
    return [cues_between(cues, start, end) for start, end in zip(starts, ends, strict=True)]


def _said(cues: list[Cue]) -> str:
    return "\n" + " ".join(cue.text for cue in cues) + "\n" if cues else ""


def _said_at(cues: list[Cue], times: list[float]) -> list[Cue]:
    return list(dict.fromkeys(cue for second in times for cue in cues_at(cues, second)))


def _subtitle_block(cues: list[Cue]) -> str:
    return "This video's subtitles are listed below:\n" + "\n".join(cue.text for cue in cues) + "\n"


def write_stamp(template: str, second: float, number: int) -> str:
    """Return the text before a frame."""
    minutes, rest = divmod(second, 60)
    hours, minutes = divmod(int(minutes), 60)
    clock = f"{hours:02}:{minutes:02}:{rest:04.1f}"
    return template.replace("{seconds}", f"{second:.1f}").replace("{clock}", clock).replace("{number}", str(number))


def _as_file(video: Video) -> Unfolded:
    """Return the file itself: which frames are seen is then the server's choice, and recorded as such."""
    _check_whole(video)
    reel = REELS.of_file(video.ref, scenes=False)
    record = _record(video, reel, FILE)
    image = Image(video.ref, MIMES.get(reel.container, "video/mp4"), reel.width, reel.height)
    pieces: list[str | Image] = [image]
    if video.showing.subtitles != "none" and video.subtitles:
        cues = read_subtitles(video.subtitles)
        record["subtitles"] = [[cue.start, cue.end, cue.text] for cue in cues]
        pieces = [image, _subtitle_block(cues)] if cues else pieces
    return Unfolded(pieces, record)


def _check_whole(video: Video) -> None:
    """Refuse to send as a file what a file does not say."""
    if Path(video.ref).is_dir():
        raise DataError("a folder of frames cannot be sent as a file: use route frames")
    if video.edits or video.showing.tempo or video.start is not None or video.end is not None:
        raise DataError("a part of a video, or a disturbed one, cannot be sent as its file: use route frames")
    if video.showing.subtitles == "sampled":
        raise DataError("which frames a server samples is not known: use subtitles=all, or route frames")


def _record(video: Video, reel: Reel, route: str) -> dict[str, Any]:
    """Return what is stored of a video beside its frames: enough to draw it on a line of time."""
    return {
        "video": video.ref,
        "route": route,
        "policy": "of the server" if route == FILE else video.showing.frames,
        "frames": len(reel.pts),
        "fps": round(reel.fps, 6),
        "duration": round(reel.duration, 6),
        "size": [reel.width, reel.height],
        "codec": reel.codec,
        "rotation": reel.rotation,
    }
