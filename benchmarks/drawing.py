"""Pictures that must be drawn again, in processes that can be ended beside threads that cannot: wall and CPU, in turn.

    python benchmarks/drawing.py

800 x 1000 JPEGs brought to 512 px, 32 asked for at once, as a run does; each way measured in turn, three times, the best
counts. CPU is that of this process and of its children.
"""

from __future__ import annotations

import asyncio
import io
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import PIL.Image

from snellen.core.protocols import ImagePolicy
from snellen.core.types import Image
from snellen.data.images import encode

COUNT, AT_ONCE, ROUNDS = 200, 32, 3
POLICY = ImagePolicy(max_side=512)


def write_pictures(folder: Path) -> list[Image]:
    """Write noise that looks like photographs to a decoder."""
    draw, images = np.random.default_rng(0), []
    for number in range(COUNT):
        small = PIL.Image.fromarray(draw.integers(0, 255, (100, 80, 3), np.uint8))
        out = io.BytesIO()
        small.resize((800, 1000)).save(out, "JPEG", quality=90)
        path = folder / f"{number}.jpg"
        path.write_bytes(out.getvalue())
        images.append(Image(str(path)))
    return images


def spent() -> float:
    """Return the CPU seconds of this process and of the children that ended."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


async def encode_all(images: list[Image]) -> None:
    """Encode all of them through one door."""
    door, places = encode.ImageDoor(), asyncio.Semaphore(AT_ONCE)

    async def one(image: Image) -> None:
        async with places:
            await door.encode(image, POLICY)

    try:
        await asyncio.gather(*map(one, images))
    finally:
        door.close()


def measure(images: list[Image], *, apart: bool) -> tuple[float, float]:
    """Return wall and CPU seconds of one pass."""
    encode.APART = apart
    wall, cpu = time.perf_counter(), spent()
    asyncio.run(encode_all(images))
    return time.perf_counter() - wall, spent() - cpu


def main() -> None:
    """Print both ways and their ratio."""
    with tempfile.TemporaryDirectory() as name:
        images = write_pictures(Path(name))
        found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for apart in (False, True):
                found[apart].append(measure(images, apart=apart))
    best = {apart: tuple(min(column) for column in zip(*rows, strict=True)) for apart, rows in found.items()}
    for apart, words in ((False, "threads"), (True, "processes")):
        wall, cpu = best[apart]
        print(f"{words:10} {COUNT / wall:6.0f} pictures/s, {1000 * cpu / COUNT:5.2f} ms CPU a picture")
    wall, cpu = (best[True][place] / best[False][place] for place in (0, 1))
    print(f"processes / threads: wall {wall:.2f}, CPU {cpu:.2f}")


if __name__ == "__main__":
    main()
