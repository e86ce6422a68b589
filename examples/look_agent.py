"""An agent that looks again: the embedded reader, which sees every picture at 896 pixels, with a zoom of a known power.

python examples/look_agent.py runs/rows                                   # draws rows of letters on large pages
snellen run runs/rows/rows.jsonl --plugin examples/look_agent.py --model looker/4 \\
    --tools zoom --tool-arms base,plain,grey -o runs/looker               # `make demo-look`

looker/K asks for a region of 1/K of each side about the place that the question names, and reads what comes back;
where nothing is written there it reads the first picture, as it would have without tools. So rows can be K times
smaller for it than for the reader alone: that is the truth which figures of looking are held against.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from msgspec.structs import replace

from snellen.core.errors import UsageError
from snellen.core.types import Turn
from snellen.model.ocr.reader_model import Reader, create

SEEN = 896
"""The longest side of whatever the agent sees."""
PAGE = 3584
LETTERS = "CDHKNRSVXZ"
PLACE = re.compile(r"at ([\d.]+), ([\d.]+) of 1000")


class Looker:
    """The reader behind a lens that shows 896 pixels, and a zoom by K."""

    def __init__(self, name: str, power: float, reader: Reader) -> None:
        self.name, self.power, self._reader = name, power, reader
        self.capabilities, self.image_policy, self.cacheable = reader.capabilities, reader.image_policy, False

    async def predict(self, request, images):
        """Call the zoom where it is offered, then read."""
        turns = request.messages
        offered = any(turn.role == "system" and "<tools>" in turn.text for turn in turns)
        question = next(turn.text for turn in turns if PLACE.search(turn.text))
        if offered and not any(turn.role == "assistant" for turn in turns):
            answered = await self._read(request, [], images)
            arguments = {"picture": 1, "box": self._box(question)}
            call = json.dumps({"name": "zoom", "arguments": arguments})
            return replace(answered, text=f"<tool_call>{call}</tool_call>")
        pictures = [image for turn in turns for image in turn.images]
        for picture in reversed(pictures):
            found = await self._read(request, [picture], images)
            letters = re.sub(r"[^A-Z]", "", (found.text or "").upper())
            if letters:
                return replace(found, text=letters)
        return replace(found, text="nothing")

    async def _read(self, request, pictures, images):
        """Let the reader read some pictures, each made small enough for the lens."""
        lensed = tuple(replace(one, edits=(*one.edits, f"fit:{SEEN}")) for one in pictures)
        return await self._reader.predict(replace(request, messages=(Turn("user", "Transcribe it.", lensed),)), images)

    def _box(self, question: str) -> list[float]:
        half = 500.0 / self.power
        middle = [float(part) for part in PLACE.search(question).groups()]
        low = [min(max(0.0, one - half), 1000.0 - 2 * half) for one in middle]
        return [round(value, 1) for value in (*low, low[0] + 2 * half, low[1] + 2 * half)]

    async def check(self):
        """The reader must be there."""
        await self._reader.check()

    def identity(self):
        """What changes its answers: the reader and the power."""
        return {**self._reader.identity(), "model": self.name, "power": self.power, "seen": SEEN}

    async def close(self):
        """End the reader's threads."""
        await self._reader.close()


def create_looker(name, options):
    """Return `looker/K`, the reader with a zoom by K."""
    try:
        power = float(name)
    except ValueError:
        power = 0.0
    if not 1.0 <= power <= 64.0:
        raise UsageError(f"looker/{name}: name a power from 1 to 64, as looker/4")
    return Looker(f"looker/{name}", power, create("", options))


def register(registry):
    """Add the provider `looker`."""
    registry.add("model", "looker", create_looker)


def draw_rows(folder: Path, heights: list[float], rows: int, seed: int = 1) -> Path:
    """Draw so many rows of five letters of each height on pages of 3,584 pixels; return the file of questions."""
    from PIL import Image

    from snellen.data.loaders.eyechart import Chart, Line, draw

    (folder / "pages").mkdir(parents=True, exist_ok=True)
    lines = []
    for height in heights:
        for number in range(rows):
            chance = random.Random(f"{seed} {height} {number}")
            text = "".join(chance.sample(LETTERS, 5))
            size = (max(32, round(9 * height)), max(22, round(3 * height)))  # a drawn row keeps a margin
            row = draw(Chart((Line(text, height),), width=size[0], height=size[1]))
            left, top = (chance.randrange(PAGE // 10, PAGE - PAGE // 10 - side) for side in size)
            page = Image.new("L", (PAGE, PAGE), 255)
            page.paste(row, (left, top))
            name = f"h{height:g}-{number:02d}"
            page.save(folder / "pages" / f"{name}.png", compress_level=1)
            place = ", ".join(
                f"{1000 * (at + side / 2) / PAGE:.1f}" for at, side in zip((left, top), size, strict=True)
            )
            question = f"Which five letters stand at {place} of 1000? Write them without spaces."
            box = [left, top, left + size[0], top + size[1]]
            line = {"id": name, "question": question, "image": f"pages/{name}.png", "answer": text, "form": "open"}
            lines.append(json.dumps({**line, "box": box, "height": height}))
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "rows.jsonl"


if __name__ == "__main__":
    draw_rows(Path(sys.argv[1]), [10, 16, 24, 32, 48, 64], int((sys.argv[2:] or ["6"])[0]))
