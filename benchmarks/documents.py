"""Pages: how fast they are drawn and degraded, what a long document costs in memory, how often a prefix cache would hit.

Run: python benchmarks/documents.py [render|perturb|memory|prefix|engines]   (no argument: all but engines)
"""

from __future__ import annotations

import asyncio
import io
import itertools
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from snellen.core.clock import SystemClock
from snellen.core.ids import rng
from snellen.core.jobs import Item, Job
from snellen.core.protocols import Capability, EncodedImages, ImagePolicy
from snellen.core.tasks import Prompt, RunHeader, Task
from snellen.core.types import Form, Params, Prediction, Request, Sample
from snellen.core.types import Image as ImageReference
from snellen.data.images.encode import ImageDoor
from snellen.engine.limits import Policy
from snellen.engine.loop import Engine
from snellen.infer.generate import GENERATE
from snellen.kits.pages.document import DOCUMENT
from snellen.kits.pages.font_files import default_font, font_file
from snellen.kits.pages.layout import lay_out
from snellen.kits.pages.page_style import style_of
from snellen.kits.pages.perturb import FAMILIES, SEVERITIES, apply
from snellen.kits.pages.plant import chronicle
from snellen.kits.pages.publish import publish
from snellen.kits.pages.render import page_font, png_bytes, render_pages
from snellen.kits.pages.texts import Document
from snellen.prompt.build import Prompter
from snellen.store.writer import RunWriter

PAGES, ROUNDS = 12, 3
DENSE = style_of("dense", {"font": default_font(), "size_pt": 8, "leading_pt": 9.5})
"""About 10,000 characters on A4 at 96 dpi."""
DOCUMENTS, QUESTIONS, CACHED_DOCUMENTS = 122, 5, 8


def bar(name: str, figure: float, limit: float, unit: str, *, least: bool) -> bool:
    passed = figure >= limit if least else figure <= limit
    print(f"{'PASS' if passed else 'FAIL'}  {name}: {figure:.2f} {unit} (bar {'≥' if least else '≤'} {limit:g})")
    return passed


def cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def render() -> bool:
    """The same lines drawn by Pillow one by one and saved by it, against our glyph stamping with layout and PNG included."""
    text = chronicle(rng(1, "bench"), 12 * 14_000).replace("\n", " ")
    pages = list(itertools.islice(lay_out(text, DENSE, page_font(DENSE)), PAGES))
    characters = sum(page[-1].end - page[0].start for page in pages) / PAGES
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        ratios, ours_all, theirs_all = [], [], []
        for _ in range(ROUNDS):
            theirs = cpu(lambda: _pillow_pages(pages, text, target))
            ours = cpu(lambda: _our_pages(text, target))
            ratios.append(theirs / ours)
            ours_all.append(1000 * ours / PAGES)
            theirs_all.append(1000 * theirs / PAGES)
    theirs, ours = statistics.median(theirs_all), statistics.median(ours_all)
    print(f"      {characters:,.0f} characters a page: Pillow {theirs:.1f} ms, ours {ours:.1f} ms CPU a page")
    return bar(
        "dense A4 page at 96 dpi, PNG written, against Pillow line by line",
        statistics.median(ratios),
        5,
        "×",
        least=True,
    )


def _pillow_pages(pages: Iterable[list], text: str, target: Path) -> None:
    font = ImageFont.truetype(str(font_file(DENSE.font)), DENSE.pixels(DENSE.size_pt))
    for number, lines in enumerate(pages):
        image = Image.new("RGB", DENSE.page_px, "white")
        draw = ImageDraw.Draw(image)
        for line in lines:
            draw.text((line.x, line.y), text[line.start : line.end], fill="black", font=font)
        image.save(target / f"pillow_{number}.png")


def _our_pages(text: str, target: Path) -> None:
    for page in itertools.islice(render_pages(text, DENSE, page_font(DENSE)), PAGES):
        (target / f"ours_{page.number}.png").write_bytes(png_bytes(page.pixels, DENSE.dpi))


def engines() -> bool:
    """What else was weighed: reportlab writes a PDF, pypdfium2 rasters it."""
    import pypdfium2
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.pdfgen.canvas import Canvas

    text = chronicle(rng(1, "bench"), 12 * 14_000).replace("\n", " ")
    pages = list(itertools.islice(lay_out(text, DENSE, page_font(DENSE)), PAGES))
    pdfmetrics.registerFont(TTFont("body", str(font_file(DENSE.font))))

    def write() -> bytes:
        out = io.BytesIO()
        canvas = Canvas(out, pagesize=(DENSE.width_pt, DENSE.height_pt))
        for lines in pages:
            canvas.setFont("body", DENSE.size_pt)
            for line in lines:
                canvas.drawString(
                    line.x * 0.75, DENSE.height_pt - line.y * 0.75 - DENSE.size_pt, text[line.start : line.end]
                )
            canvas.showPage()
        canvas.save()
        return out.getvalue()

    def raster() -> None:
        pdf = pypdfium2.PdfDocument(write())
        for page in pdf:
            png_bytes(page.render(scale=DENSE.dpi / 72, grayscale=True).to_numpy().squeeze())
        pdf.close()

    print(f"      reportlab + pypdfium2 + our PNG: {1000 * cpu(raster) / PAGES:.1f} ms CPU a page")
    return True


def perturb() -> bool:
    page = next(iter(render_pages(chronicle(rng(2, "bench"), 14_000).replace("\n", " "), DENSE))).image()
    own = [name for name in FAMILIES if not name.startswith("imagenet_c.")]
    costs = {
        name: max(1000 * cpu(lambda s=severity, n=name: apply(page, n, s, 7)) for severity in SEVERITIES)
        for name in FAMILIES
    }
    slowest = max(costs, key=lambda name: costs[name])
    first = bar(
        f"median of {len(own)} perturbation families at their slowest severity",
        statistics.median(costs[name] for name in own),
        60,
        "ms CPU",
        least=False,
    )
    second = bar(f"slowest of all {len(costs)} ({slowest})", costs[slowest], 400, "ms CPU", least=False)
    return first and second


def memory() -> bool:
    """A 1,000-page document rendered in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "render-1000", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    pages, megabytes, seconds = done.stdout.split()
    print(f"      {pages} pages in {float(seconds):.1f} s")
    return bar("1,000-page document, peak memory", float(megabytes), 400, "MB", least=False) and int(pages) >= 1000


def render_1000(folder: str) -> None:
    started = time.perf_counter()
    style = style_of("seed", {"font": default_font()})
    text = chronicle(rng(3, "bench"), 6_900_000)
    manifest = publish([Document("long", text, {})], Path(folder), style)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(len(manifest.documents["long"].pages), peak, time.perf_counter() - started)


class CachingModel:
    """Answers at once and counts how many image tokens an LRU prefix cache of a few documents would have held."""

    name = "simulated/prefix-cache"
    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = True

    def __init__(self) -> None:
        self._held: OrderedDict[str, None] = OrderedDict()
        self.hit = self.asked = 0

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        key, tokens = request.messages[-1].images[0].ref, len(request.messages[-1].images)
        self.asked += tokens
        if key in self._held:
            self.hit += tokens
        await asyncio.sleep(0)
        self._held[key] = None
        self._held.move_to_end(key)
        while len(self._held) > CACHED_DOCUMENTS:
            self._held.popitem(last=False)
        return Prediction(request.key, text="x")

    async def check(self) -> None: ...

    def identity(self) -> dict[str, str]:
        return {"model": self.name}

    async def close(self) -> None: ...


def prefix() -> bool:
    ordered = asyncio.run(_hits(DOCUMENT.plan, shuffle=False))
    shuffled = asyncio.run(_hits(GENERATE.plan, shuffle=True))
    print(f"      in random order, one request after another: {100 * shuffled:.1f} %")
    return bar(
        f"{DOCUMENTS} documents × {QUESTIONS} questions, image tokens found in a cache of {CACHED_DOCUMENTS}",
        100 * ordered,
        78,
        "%",
        least=True,
    )


async def _hits(plan: Callable[..., Iterator[Job]], *, shuffle: bool) -> float:
    picture = io.BytesIO()
    Image.new("L", (2, 2)).save(picture, "PNG")
    model = CachingModel()
    with tempfile.TemporaryDirectory() as folder:
        samples = list(_questions(Path(folder), picture.getvalue()))
        if shuffle:
            random.Random(0).shuffle(samples)
        task = Task("prefix", {"loader": "none"}, Form.OPEN, params=Params())
        writer = RunWriter(Path(folder) / "run", RunHeader("bench", {}, {}, "", tasks=[task]))
        engine = Engine(model, writer, Policy(max_workers=1 if shuffle else 128), SystemClock(), door=ImageDoor())
        items = [Item(position, sample) for position, sample in enumerate(samples)]
        await engine.run(plan(task, items, Prompter(task, Prompt(template="{question}"), 0)))
        writer.close()
    return model.hit / model.asked


def _questions(folder: Path, picture: bytes) -> Iterator[Sample]:
    for number in range(DOCUMENTS):
        pages = tuple(
            ImageReference(str(folder / f"d{number}_page_{page:03d}.png"), page=page)
            for page in range(1, 4 + number % 5)
        )
        for page in pages:
            Path(page.ref).write_bytes(picture)
        for question in range(QUESTIONS):
            yield Sample(
                f"d{number}#{question}", "prefix", Form.OPEN, f"question {question}", pages, group=f"d{number}"
            )


PARTS: dict[str, Callable[[], bool]] = {"render": render, "perturb": perturb, "memory": memory, "prefix": prefix}


def main() -> int:
    if sys.argv[1:2] == ["render-1000"]:
        render_1000(sys.argv[2])
        return 0
    chosen = sys.argv[1:] or list(PARTS)
    passed = [(PARTS | {"engines": engines})[name]() for name in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
