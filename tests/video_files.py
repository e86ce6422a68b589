"""Videos written for tests: every frame shows its own number, as text and as stripes that survive compression."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import PIL.Image
import PIL.ImageDraw

BITS = 12
CELL = 16


def draw_number(number: int, size: tuple[int, int] = (192, 96)) -> PIL.Image.Image:
    """Return a picture of a number: a row of black and white cells (its bits), and the digits below."""
    picture = PIL.Image.new("RGB", size, (96, 96, 96))
    pen = PIL.ImageDraw.Draw(picture)
    for bit in range(BITS):
        colour = (255, 255, 255) if number >> bit & 1 else (0, 0, 0)
        pen.rectangle((bit * CELL, 0, bit * CELL + CELL - 1, CELL - 1), fill=colour)
    pen.text((60, 40), str(number), fill=(255, 255, 0))
    return picture


def read_number(picture: PIL.Image.Image) -> int:
    """Return the number that a picture shows; its size may have changed."""
    cell = picture.width / BITS
    grey = np.asarray(picture.convert("L")).astype(int)
    row = grey[int(cell / 2)]
    return sum(int(row[int((bit + 0.5) * cell)] > 128) << bit for bit in range(BITS))


def read_numbers(data: bytes) -> int:
    """Return the number that a picture file shows."""
    return read_number(PIL.Image.open(io.BytesIO(data)))


def write_video(
    path: Path,
    frames: int = 60,
    *,
    fps: int = 30,
    codec: str = "libx264",
    times: Sequence[float] | None = None,
    rotation: int = 0,
    gop: int = 12,
    draw: Callable[[int], PIL.Image.Image] = draw_number,
    audio: bool = False,
    options: dict[str, str] | None = None,
) -> Path:
    """Write a video whose n-th frame is the picture of n, shown at n / fps or at the given times."""
    units = Fraction(1, 1000) if times is not None else Fraction(1, fps)
    with _own_priority(), av.open(str(path), "w", options=options or {}) as container:
        stream = container.add_stream(codec, rate=fps)
        first = draw(0)
        stream.width, stream.height = first.size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.gop_size = gop
        stream.codec_context.time_base = units
        if rotation:
            stream.set_display_rotation(rotation)
        sound = container.add_stream("aac", rate=16000, layout="mono") if audio else None
        for number in range(frames):
            frame = av.VideoFrame.from_image(draw(number))
            frame.time_base = units
            frame.pts = round(times[number] * 1000) if times is not None else number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        if sound is not None:
            _write_silence(container, sound, frames / fps)
    return path


@contextmanager
def _own_priority() -> Iterator[None]:
    """Leave with the priority of before: SVT-AV1, started by root, makes its whole process a real-time one, and that starves all others."""
    policy, priority = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, priority)


def _write_silence(container: av.container.OutputContainer, sound: av.AudioStream, seconds: float) -> None:
    for start in range(0, int(seconds * 16000), 1024):
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.int16), "s16", "mono")
        frame.sample_rate, frame.pts, frame.time_base = 16000, start, Fraction(1, 16000)
        container.mux(sound.encode(frame))
    container.mux(sound.encode())


def write_folder(folder: Path, frames: Iterable[int]) -> Path:
    """Write a folder of frames."""
    folder.mkdir(parents=True)
    for number in frames:
        draw_number(number).save(folder / f"frame_{number}.png")
    return folder
