"""A script to a video file: the same bytes for the same script, written once."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import PIL

from ...core.errors import EnvironmentProblem, MissingExtra
from ...core.ids import content_hash
from .paint import paint
from .script import Script

CODEC = {"crf": "18", "preset": "veryfast", "threads": "1"}


def write_film(script: Script, folder: Path, name: str) -> Path:
    """Return the film of a script, drawn unless it is there already; its name holds the hash of the script."""
    path = folder / f"{name}-{content_hash([script, PIL.__version__], 12)}.mp4"
    if not path.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}.part")
            _encode(script, draft)
            draft.replace(path)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {path}: {error.strerror or error}") from None
    return path.resolve()


def _encode(script: Script, path: Path) -> None:
    try:
        import av
    except ImportError:
        raise MissingExtra("video", "drawing films") from None
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=script.fps, options=CODEC)
        stream.width, stream.height, stream.pix_fmt = script.width, script.height, "yuv420p"
        stream.codec_context.gop_size = max(1, 2 * script.fps)
        for number in range(script.frames):
            frame = av.VideoFrame.from_ndarray(np.asarray(paint(script, number / script.fps)), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, script.fps)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
