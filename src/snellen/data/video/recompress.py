"""A film written anew at so many kilobits a second, frame for frame: runs in the process that opens videos.

It imports nothing of ours: `av_child.py` loads it by its place and hands it an open film.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

ENCODER = "libx264"
OPTIONS = {"preset": "veryfast", "threads": "1", "x264-params": "asm=SSE2Fast"}
"""One thread, and routines that give what plain C gives (with those for AVX-512 bytes depend on what memory held): the
same film and rate give the same bytes on any machine with the same encoder."""
BITS = 1000


def recompress(film: Any, target: str, kbps: int) -> dict[str, Any]:
    """Write all frames of a film at a bitrate; return how many there are and what the rate became.

    What cannot be done is returned as `problem`, the end of a sentence that begins with the film's name.
    """
    import av

    if ENCODER not in av.codecs_available:
        return {"problem": f"cannot be compressed: this PyAV was built without {ENCODER}"}
    with av.open(target, "w", format="mp4") as out:
        stream: Any = None
        for picture, pts in _pictures(film):
            if picture is None:
                return {"problem": f"is damaged at {float(pts * film.stream.time_base):.3f} s"}
            stream = stream or _add_stream(out, picture, film, kbps)
            picture.pts, picture.time_base = pts - film.index.pts[0], film.stream.time_base
            out.mux(stream.encode(picture))
        out.mux(stream.encode())
    return _measured(target, film)


def _pictures(film: Any) -> Iterator[tuple[Any, int]]:
    """Yield every frame as the encoder takes it, once a timestamp; None for one that was not decoded whole."""
    left = set(film.index.pts)
    for frame in film.every_frame():
        if frame.pts in left:
            left.remove(frame.pts)
            yield (None if frame.is_corrupt else _plain(frame)), frame.pts


def _plain(frame: Any) -> Any:
    """Return a frame upright and in planes; odd sizes keep all their colour, as half of them would be no whole one."""
    angle = round(frame.rotation) % 360
    if angle:
        frame = type(frame).from_image(frame.to_image().rotate(angle, expand=True))
    even = frame.width % 2 == 0 and frame.height % 2 == 0
    return frame.reformat(format="yuv420p" if even else "yuv444p")


def _add_stream(out: Any, picture: Any, film: Any, kbps: int) -> Any:
    rate = film.stream.average_rate or Fraction(25)
    bounds = {"maxrate": str(kbps * BITS), "bufsize": str(kbps * BITS)}
    stream = out.add_stream(ENCODER, rate=rate, options={**OPTIONS, **bounds})
    stream.width, stream.height, stream.pix_fmt = picture.width, picture.height, picture.format.name
    stream.codec_context.time_base = film.stream.time_base
    stream.bit_rate = kbps * BITS
    return stream


def _measured(target: str, film: Any) -> dict[str, Any]:
    """Return what was written, read back: frames and rate."""
    import av

    with av.open(target, format="mp4") as written:
        sizes = [packet.size for packet in written.demux(video=0) if packet.size]
    pts = film.index.pts
    if len(sizes) != len(pts):
        return {"problem": f"cannot be compressed: of {len(pts)} frames {len(sizes)} came back"}
    seconds = float((pts[-1] - pts[0] + film.lasting()) * film.stream.time_base)
    return {"frames": len(sizes), "kbps": round(sum(sizes) * 8 / BITS / seconds, 1)}
