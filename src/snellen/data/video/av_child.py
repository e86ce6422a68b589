"""The one place where video files are opened: a process of its own that answers requests with facts and frames.

It runs apart (`decoder.py` starts and, if need be, ends it), so it imports nothing of ours. A request is a line of
JSON; the answer is a line of JSON with the number of bytes that follow.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import stat
import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MOST_MEMORY_BYTES = 4 * 2**30
MOST_PIXELS = 80_000_000
MOST_PACKETS = 20_000_000
OPEN_FILES = 4
SIGNATURES = (
    (4, b"ftyp", "mp4"), (4, b"moov", "mp4"), (4, b"mdat", "mp4"), (4, b"wide", "mp4"), (4, b"free", "mp4"),
    (0, b"\x1aE\xdf\xa3", "matroska"), (8, b"AVI ", "avi"), (0, b"GIF8", "gif"), (0, b"FLV", "flv"),
)  # fmt: skip
"""What a file must begin with: only these demuxers are ever tried, none of which opens another file."""
TS_PACKET, TS_SYNC = 188, 0x47
CODECS = {
    *("h264", "hevc", "vp8", "libvpx", "vp9", "libvpx-vp9", "av1", "libdav1d", "libaom-av1", "mpeg4", "mpeg2video"),
    *("mpeg1video", "mjpeg", "gif", "png", "ffv1", "theora", "prores", "rawvideo", "h263", "flv", "msmpeg4v3", "vvc"),
}
HIDDEN_PACKETS = {"vp8", "libvpx"}
"""Codecs whose files have packets that show nothing: their frames are counted by decoding."""
SIGNATURE_SIDE = 32


class VideoError(ValueError):
    """What is wrong with a video, as the end of a sentence that begins with its name."""


class Index(NamedTuple):
    """The frames of a file: their timestamps in order, which are keys, and how long the last is shown."""

    pts: list[int]
    keys: list[int]
    last: int


class Gathered:
    """Timestamps as they come, in whatever order."""

    def __init__(self) -> None:
        self._lasting: dict[int, int] = {}
        self._keys: set[int] = set()

    def add(self, pts: int, duration: int | None, *, key: bool) -> None:
        """Take in one frame; a timestamp that comes twice counts once."""
        self._lasting[pts] = duration or 0
        if key:
            self._keys.add(pts)

    def index(self) -> Index:
        """Return what was gathered, in order."""
        ordered = sorted(self._lasting)
        return Index(ordered, sorted(self._keys) or ordered[:1], self._lasting[ordered[-1]] if ordered else 0)


def sniff(path: str) -> str:
    """Return the name of the demuxer by the first bytes of a regular file; anything else is refused."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise VideoError("is not a regular file")
        head = os.read(handle, TS_PACKET + 1)
    finally:
        os.close(handle)
    if not head:
        raise VideoError("is empty (0 bytes)")
    for place, sign, name in SIGNATURES:
        if head[place : place + len(sign)] == sign:
            return name
    if head[0] == TS_SYNC and head[-1] == TS_SYNC and len(head) > TS_PACKET:
        return "mpegts"
    known = ", ".join(sorted({name for _, _, name in SIGNATURES} | {"mpegts"}))
    raise VideoError(f"is not a video of a known kind; accepted: {known}")


class Opened:
    """An open file, its index, and where decoding stands: frames that follow one another need no new seek."""

    def __init__(self, path: str) -> None:
        import av

        self.kind = sniff(path)
        # Only files, and only this demuxer: a playlist could name other files, or the network.
        self.container = av.open(f"file:{path}", format=self.kind, options={"protocol_whitelist": "file"})
        shown = [s for s in self.container.streams.video if "attached_pic" not in str(s.disposition).lower()]
        if not shown:
            raise VideoError("has no video stream")
        self.stream: Any = shown[0]
        self.codec = str(self.stream.codec_context.name)
        if self.codec not in CODECS:
            raise VideoError(f"has codec {self.codec!r}; accepted: {', '.join(sorted(CODECS))}")
        size = self.stream.codec_context.width, self.stream.codec_context.height
        if size[0] * size[1] > MOST_PIXELS:
            raise VideoError(f"has {size[0]}×{size[1]} pixels; the limit is {MOST_PIXELS // 10**6} million")
        self.stream.thread_type = "AUTO"
        self.index = self._make_index()
        if not self.index.pts:
            raise VideoError("has no frame")
        self._frames: Iterator[Any] = iter(())
        self._at: int | None = None

    def _make_index(self) -> Index:
        if self.codec in HIDDEN_PACKETS:
            return self._index_by_decoding()
        gathered, end_seconds = Gathered(), 0.0
        for count, packet in enumerate(self.container.demux()):
            if count > MOST_PACKETS:
                raise VideoError(f"has more than {MOST_PACKETS} packets")
            if packet.is_corrupt:
                raise VideoError(f"is cut off or damaged at {self._seconds(packet.dts):.3f} s")
            end_seconds = max(end_seconds, _end_of(packet))
            if not packet.size or packet.stream_index != self.stream.index or packet.is_discard:
                continue
            if packet.pts is None:
                return self._index_by_decoding()
            gathered.add(packet.pts, packet.duration, key=packet.is_keyframe)
        self._check_whole(end_seconds)
        return gathered.index()

    def _index_by_decoding(self) -> Index:
        """Return the index of a file that does not say when its frames are shown."""
        self.container.seek(0)
        gathered = Gathered()
        for frame in self.container.decode(self.stream):
            if frame.pts is not None:
                gathered.add(frame.pts, frame.duration, key=bool(frame.key_frame))
        return gathered.index()

    def _check_whole(self, end_seconds: float) -> None:
        """Refuse a file whose packets end well before its header says."""
        import av

        told = (self.container.duration or 0) / av.time_base
        if self.container.start_time is not None and self.container.start_time > 0:
            told += self.container.start_time / av.time_base
        if told - end_seconds > max(0.5, told * 0.02):
            raise VideoError(f"is cut off: its header says {told:.3f} s, its frames end at {end_seconds:.3f} s")

    def _seconds(self, time: int | None) -> float:
        return float((time or 0) * self.stream.time_base)

    def frame(self, pts: int) -> Any:
        """Return the frame of a timestamp, decoded from the key before it or from where decoding stands."""
        keys = self.index.keys
        place = bisect_right(keys, pts) - 1
        key = keys[max(place, 0)] if keys else self.index.pts[0]
        if self._at is not None and self._at < pts and key <= self._at:
            return self._forward(pts)
        for earlier in [*reversed(keys[: place + 1]), None]:  # a seek may land too late: then from the key before
            self._seek(earlier)
            first = next(self._frames, None)
            if first is not None and first.pts is not None and first.pts <= pts:
                self._at = first.pts
                return self._sound(first) if first.pts == pts else self._forward(pts)
        raise VideoError(f"has no frame that can be decoded at {self._seconds(pts):.3f} s")

    def _seek(self, key: int | None) -> None:
        """Stand before a key frame, or before the first of all."""
        if key is None:
            self.container.seek(0, backward=True)
        else:
            self.container.seek(key, stream=self.stream, backward=True)
        self._frames, self._at = self.container.decode(self.stream), None

    def _forward(self, pts: int) -> Any:
        for frame in self._frames:
            if frame.pts is None:
                continue
            self._at = frame.pts
            if frame.pts == pts:
                return self._sound(frame)
            if frame.pts > pts:
                break
        self._at = None
        raise VideoError(f"has no frame that can be decoded at {self._seconds(pts):.3f} s")

    def _sound(self, frame: Any) -> Any:
        """Return a frame that was decoded whole: what a decoder patched up is not what the video shows."""
        if frame.is_corrupt:
            raise VideoError(f"is damaged at {self._seconds(frame.pts):.3f} s")
        return frame

    def facts(self, *, scenes: bool) -> dict[str, Any]:
        """Return what is known before frames are chosen; measured differences only where they are wanted."""
        first = self.frame(self.index.pts[0])
        picture = upright(first)
        places = {pts: place for place, pts in enumerate(self.index.pts)}
        units = self.stream.time_base
        rate = float(self.stream.average_rate or 0) or _rate(self.index, float(units))
        return {
            "pts": self.index.pts,
            "units": [units.numerator, units.denominator],
            "fps": rate,
            "width": picture.width,
            "height": picture.height,
            "keys": [places[key] for key in self.index.keys],
            "last": self.lasting() * float(units),
            "codec": self.codec,
            "container": self.kind,
            "rotation": int(first.rotation),
            "scenes": self._differences() if scenes else [],
        }

    def _differences(self) -> list[float]:
        """Return how much each frame differs from the one before: mean absolute grey difference of a small copy."""
        found, before = {}, None
        for frame in self.every_frame():
            small = frame.reformat(SIGNATURE_SIDE, SIGNATURE_SIDE, "gray8").to_ndarray().astype("int16")
            found[frame.pts] = 0.0 if before is None else float(abs(small - before).mean()) / 255
            before = small
        return [found.get(pts, 0.0) for pts in self.index.pts]

    def every_frame(self) -> Iterator[Any]:
        """Yield the frames in the order shown, from the very first: a seek to it may land on a later key."""
        self._seek(None)
        known = set(self.index.pts)
        yield from (frame for frame in self._frames if frame.pts in known)
        self._at = None

    def lasting(self) -> int:
        """Return how long the last frame is shown, in units of the stream."""
        units = float(self.stream.time_base)
        rate = float(self.stream.average_rate or 0) or _rate(self.index, units)
        return self.index.last or round(1 / (rate * units))


def _end_of(packet: Any) -> float:
    time = packet.pts if packet.pts is not None else packet.dts
    if time is None or packet.time_base is None:
        return 0.0
    return float((time + (packet.duration or 0)) * packet.time_base)


def _rate(index: Index, unit: float) -> float:
    spans = len(index.pts) - 1
    return spans / ((index.pts[-1] - index.pts[0]) * unit) if spans else 1.0


def upright(frame: Any) -> Any:
    """Return the pixels of a frame as a player shows them."""
    picture, angle = frame.to_image(), round(frame.rotation) % 360
    if angle % 90:
        raise VideoError(f"is rotated by {angle}°: only quarter turns can be shown")
    return picture.rotate(angle, expand=True) if angle else picture


def write_frame(frame: Any, side: int, encoding: str) -> bytes:
    """Return a frame as a picture file."""
    picture = upright(frame)
    if side and max(picture.size) > side:
        share = side / max(picture.size)
        size = max(1, round(picture.width * share)), max(1, round(picture.height * share))
        picture = picture.resize(size, 1)  # LANCZOS
    out = io.BytesIO()
    kind, _, quality = encoding.partition(":")
    if kind == "png":
        picture.save(out, "PNG", compress_level=1)
    else:
        picture.save(out, "JPEG", quality=int(quality or 92))
    return out.getvalue()


class Desk:
    """Answers requests; the files asked for last stay open."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, int, int], Opened] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> bytes:
        """Return the facts of a video as JSON, one frame as a picture, or what became of it when compressed."""
        opened = self._opened(request["path"])
        if request["what"] == "facts":
            return json.dumps(opened.facts(scenes=request["scenes"])).encode()
        if request["what"] == "squeeze":
            made = _recompress(opened, request["target"], request["kbps"])
            if "problem" in made:
                raise VideoError(made["problem"])
            return json.dumps(made).encode()
        pts = opened.index.pts[request["place"]] if "place" in request else request["pts"]
        return write_frame(opened.frame(pts), request["side"], request["encoding"])

    def _opened(self, path: str) -> Opened:
        status = os.stat(path)  # noqa: PTH116 - this process stays small
        key = (path, status.st_size, status.st_mtime_ns)
        if key in self._open:
            self._open.move_to_end(key)
        else:
            while len(self._open) >= OPEN_FILES:
                self._open.popitem(last=False)[1].container.close()
            self._open[key] = Opened(path)
        return self._open[key]

    def forget(self) -> None:
        """Close all files: after an error nobody knows where decoding stands."""
        while self._open:
            self._open.popitem()[1].container.close()


def _recompress(opened: Opened, target: str, kbps: int) -> dict[str, Any]:
    """Compress an open film by the module beside this one, which an isolated process cannot import by name."""
    beside = importlib.util.spec_from_file_location("recompress", Path(__file__).with_name("recompress.py"))
    if beside is None or beside.loader is None:
        raise VideoError("cannot be compressed: recompress.py is not where av_child.py is")
    module = importlib.util.module_from_spec(beside)
    beside.loader.exec_module(module)
    made: dict[str, Any] = module.recompress(opened, target, kbps)
    return made


def serve() -> None:
    """Answer the requests of the standard input until there are no more."""
    import av  # whose log stays off: its callback waits for the interpreter and can hold up decoding threads for ever

    _bound_memory()
    desk, target = Desk(), sys.stdout.buffer
    for line in sys.stdin.buffer:
        try:
            body, head = desk.answer(json.loads(line)), {}
        except VideoError as error:
            body, head = b"", {"error": str(error)}
        except FileNotFoundError:
            body, head = b"", {"error": "does not exist"}
        except (av.error.FFmpegError, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            body, head = b"", {"error": f"is damaged or cut off: {reason}"}
        except MemoryError:
            body, head = b"", {"error": f"needs more than {MOST_MEMORY_BYTES >> 30} GB to decode"}
        if head:
            desk.forget()
        target.write(json.dumps({**head, "size": len(body)}).encode() + b"\n" + body)
        target.flush()


def _bound_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))


if __name__ == "__main__":
    serve()
