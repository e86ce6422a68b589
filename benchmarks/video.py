"""Frames of a ten-minute 720p video: our door against a bare PyAV loop, its memory, and 128 workers on few videos.

    python benchmarks/video.py            all of it; writes the video to the temporary folder once (a minute)
    python benchmarks/video.py --seconds 60

The ratio is of processor time, which other programs disturb less, best of `--rounds`; the start of a decoder is paid once
a run and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from snellen.core.errors import DataError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image, Showing, Video
from snellen.data.images.encode import ImageDoor
from snellen.data.video.decoder import VideoDecoder, decoder_of, decoders
from snellen.data.video.unfold import FRAMES, REELS, Reels, unfold

FRAMES_SHOWN = 32
MOST_RATIO, MOST_MB = 1.5, 200
SIZE = (1280, 720)
FPS = 30


def write_long_video(path: Path, seconds: int) -> None:
    """Write a film of something that moves before a still scene, a key frame every 250 frames as encoders do."""
    rng = np.random.default_rng(1)
    small = rng.integers(60, 200, (SIZE[1] // 8, SIZE[0] // 8, 3), np.uint8)
    scene = np.kron(small, np.ones((8, 8, 1), np.uint8))
    thing = rng.integers(0, 255, (160, 160, 3), np.uint8)
    draft = path.with_suffix(f".{os.getpid()}.part")
    with av.open(str(draft), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "crf": "28"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for number in range(seconds * FPS):
            picture = scene.copy()
            top, left = 3 * number % (SIZE[1] - 160), 5 * number % (SIZE[0] - 160)
            picture[top : top + 160, left : left + 160] = thing
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    draft.replace(path)


def bare_loop(path: Path, indices: list[int]) -> int:
    """Seek and decode with PyAV alone, each frame made an RGB picture; return how many."""
    found = 0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        unit = stream.time_base
        for index in indices:
            wanted = round(index / FPS / unit)
            container.seek(wanted, stream=stream, backward=True)
            for frame in container.decode(stream):
                if frame.pts is not None and frame.pts >= wanted:
                    frame.to_image()
                    found += 1
                    break
    return found


async def through_the_door(video: Video) -> int:
    """Unfold a video and encode its frames as a request's are; return how many."""
    door = ImageDoor()
    images = [piece for piece in unfold(video, FRAMES).pieces if isinstance(piece, Image)]
    for image in images:
        await door.encode(image, ImagePolicy())
    door.close()
    return len(images)


def cpu_s() -> float:
    """Return the processor time of this process, its threads and the processes it has ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def best_of(rounds: int, work: Callable[[], int]) -> tuple[float, float]:
    """Return the least processor time and the shortest time of some rounds, in seconds."""
    spent, took = [], []
    for _ in range(rounds):
        begun, started = cpu_s(), time.perf_counter()
        if work() != FRAMES_SHOWN:
            raise SystemExit("fewer frames than asked for")
        took.append(time.perf_counter() - started)
        spent.append(cpu_s() - begun)
    return min(spent), min(took)


def from_nothing(video: Video | None) -> int:
    """Start a decoder with no facts known and no file open, show a video (or nothing), and end it."""
    REELS.__dict__.update(Reels().__dict__)
    with contextlib.suppress(DataError):
        decoder_of(video.ref if video else "").facts("/nowhere")
    found = asyncio.run(through_the_door(video)) if video else FRAMES_SHOWN
    for decoder in decoders():
        decoder.close()
    return found


def peak_mb(path: Path) -> float:
    """Return the most memory a decoder process takes for the frames, in megabytes."""
    code = (
        "import sys, resource; sys.path.insert(0, sys.argv[1]); import av_child as c; o = c.Opened(sys.argv[2]);"
        f"n = len(o.index.pts); [c.write_frame(o.frame(o.index.pts[(2*i+1)*n//{2 * FRAMES_SHOWN}]), 0, 'jpeg:92') for i in range({FRAMES_SHOWN})];"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    import snellen.data.video as room

    folder = str(Path(str(room.__file__)).parent)
    done = subprocess.run([sys.executable, "-c", code, folder, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


async def many_workers(paths: list[Path], workers: int) -> tuple[float, int]:
    """Let workers ask for the frames of few videos at once; return seconds, and frames asked for."""
    door, show = ImageDoor(), Showing(frames="uniform:8")

    async def ask(number: int) -> int:
        video = Video(str(paths[number % len(paths)]), showing=show)
        pieces = (await asyncio.to_thread(unfold, video, FRAMES)).pieces
        images = [piece for piece in pieces if isinstance(piece, Image)]
        for image in images:
            await door.encode(image, ImagePolicy())
        return len(images)

    started = time.perf_counter()
    counts = await asyncio.gather(*(ask(number) for number in range(workers)))
    door.close()
    return time.perf_counter() - started, sum(counts)


def main() -> int:
    """Measure, print, and say whether the bars are kept."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    path = Path(tempfile.gettempdir()) / f"snellen-video-{told.seconds}.mp4"
    if not path.is_file():
        write_long_video(path, told.seconds)
    frames = told.seconds * FPS
    indices = [(2 * place + 1) * frames // (2 * FRAMES_SHOWN) for place in range(FRAMES_SHOWN)]
    video = Video(str(path), showing=Showing(frames=f"uniform:{FRAMES_SHOWN}"))
    bare, bare_took = best_of(told.rounds, lambda: bare_loop(path, indices))
    start, start_took = best_of(told.rounds, lambda: from_nothing(None))  # paid once a run, not once a video
    ours, took = best_of(told.rounds, lambda: from_nothing(video))
    ours, took = ours - start, took - start_took
    index = VideoDecoder()
    started = time.perf_counter()
    index.facts(str(path))
    print(f"{path.stat().st_size / 1e6:.0f} MB, {told.seconds} s at 720p; index {time.perf_counter() - started:.2f} s")
    index.close()
    ratio, memory = ours / bare, peak_mb(path)
    print(f"{FRAMES_SHOWN} uniform frames with index and JPEG: {ours:.2f} CPU-s ({took:.2f} s),", end=" ")
    print(f"bare loop {bare:.2f} ({bare_took:.2f} s), ratio {ratio:.2f} (bar {MOST_RATIO})")
    print(f"memory of the decoder {memory:.0f} MB (bar {MOST_MB})")
    from_nothing(None)
    alone, asked_once = asyncio.run(many_workers([path], 1))
    together, asked = asyncio.run(many_workers([path], 128))
    print(f"128 workers on one video: {asked} frames in {together:.2f} s, one worker {asked_once} in {alone:.2f} s")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory of this process {own:.0f} MB")
    return int(ratio > MOST_RATIO or memory > MOST_MB)


if __name__ == "__main__":
    raise SystemExit(main())
