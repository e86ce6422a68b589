"""Runs made up for tests, benchmarks and screenshots: written through the real writer, scored by the real scorers."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import PIL.Image
import PIL.ImageDraw

from snellen.core.builtins import default_registry
from snellen.core.ids import content_hash, rng, sha256_hex
from snellen.core.registry import Registry
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import (
    Failure,
    FailureKind,
    Form,
    Image,
    Params,
    Prediction,
    Request,
    Sample,
    Timing,
    TrialKey,
    Turn,
    Usage,
)  # fmt: skip
from snellen.report.files import write_records, write_results
from snellen.report.pages.report_page import render_report
from snellen.scoring.run import score_run
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

COLOURS = ("red", "green", "blue", "orange")
SHAPES = ("circle", "square", "triangle", "bar")
REPLIES = (
    "{mark}",
    "The answer is ({mark}).",
    "Looking at the picture, I see a {text} shape in the middle.\n\nAnswer: {mark}",
    "**{mark}. {text}**",
    "It could be several things, but the outline is clearly visible. The correct answer is {mark}.",
)
UNREADABLE = ("I am not sure what this shows.", "Either A or B.")

POLITE_PLUGIN = """
from snellen.core.types import Score


def polite(sample, request, prediction, options):
    return [Score(prediction.key, "politeness", float("please" in (prediction.text or "")))]


def register(registry):
    registry.add("scorer", "polite", polite)
"""
"""A plug-in with a scorer that no registry has by itself."""


def draw_picture(path: Path, number: int) -> Image:
    """Draw one coloured shape on a page of grey lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_drawn(number))
    return Image(str(path), "image/png", 320, 220, sha256=sha256_hex(path.read_bytes()))


@lru_cache(maxsize=64)
def _drawn(number: int) -> bytes:
    picture = PIL.Image.new("RGB", (320, 220), "#f7f5f0")
    pen = PIL.ImageDraw.Draw(picture)
    for line in range(14):
        pen.line((12, 12 + line * 15, 308 - (line * 37 + number * 13) % 120, 12 + line * 15), "#d8d4c8", 3)
    colour, shape = COLOURS[number % 4], SHAPES[(number // 4) % 4]
    box = (100, 50, 220, 170)
    if shape == "circle":
        pen.ellipse(box, colour)
    elif shape == "triangle":
        pen.polygon([(160, 50), (220, 170), (100, 170)], colour)
    else:
        pen.rectangle(box if shape == "square" else (60, 95, 260, 125), colour)
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def make_task(name: str = "shapes", *, variants: tuple[str, ...] = ("base",), repeats: int = 1) -> Task:
    """Return a choice task."""
    return Task(
        name,
        {"loader": "table"},
        Form.CHOICE,
        repeats=repeats,
        variants=variants,
        scorers=("choice",),
        title="Colours of shapes",
    )


def make_samples(folder: Path, count: int, *, pictures: int = 24) -> list[Sample]:
    """Return samples with options and tags; pictures are shared so that thousands cost little."""
    drawn = [draw_picture(folder / "images" / f"{i}.png", i) for i in range(min(pictures, count))]
    samples = []
    for i in range(count):
        images = (drawn[i % len(drawn)], *((drawn[(i + 1) % len(drawn)],) if i % 5 == 0 else ())) if drawn else ()
        tags: dict[str, Any] = {"shape": SHAPES[(i // 4) % 4], "page": i % 3}
        samples.append(
            Sample(
                f"shape-{i:05d}",
                "shapes",
                Form.CHOICE,
                f"Which colour has shape number {i}?",
                images,
                COLOURS,
                (COLOURS[i % 4],),
                group=f"doc-{i // 4}",
                tags=tags,
            )
        )
    return samples


def make_header(task: Task, model: str, planned: int) -> RunHeader:
    """Return a header as a plan would."""
    config = {"model": {"name": model}, "seed": 0, "limit": None, "tasks": {task.name: {"repeats": task.repeats}}}
    return RunHeader(
        content_hash(config),
        config,
        {"snellen": "0.1.0", "python": "3.11"},
        "2026-01-02T03:04:05+00:00",
        f"snellen run {task.name} --model {model}",
        model,
        [task],
        {task.name: planned},
    )


def answer(sample: Sample, key: TrialKey, skill: float, model: str) -> Prediction:
    """Return a made-up reply: right as often as the model's skill says, now and then unreadable or failed."""
    draw = rng(model, key.sample, key.variant, key.repeat)
    start = draw.random() * 100
    timing = Timing(start, start + 0.2 + draw.expovariate(2.0))
    if draw.random() < 0.015:
        return Prediction(
            key, failure=Failure(FailureKind.TIMEOUT, "no answer within 600 s", attempts=6), timing=timing
        )
    hard = rng("hard", key.sample).random() * 0.5 + (0.25 if "perturb" in key.variant else 0.0)
    right = draw.random() < skill - hard + 0.25
    text = (
        sample.answers[0]
        if right
        else draw.choice([option for option in sample.options if option != sample.answers[0]])
    )
    mark = "ABCD"[sample.options.index(text)]
    reply = draw.choice(UNREADABLE) if draw.random() < 0.03 else draw.choice(REPLIES).format(mark=mark, text=text)
    return Prediction(key, text=reply, usage=Usage(420, len(reply) // 4 + 1), timing=timing, finish="stop")


def ask(sample: Sample, key: TrialKey) -> Request:
    """Return the request of a trial."""
    options = "\n".join(f"{mark}. {text}" for mark, text in zip("ABCD", sample.options, strict=True))
    turns = (Turn("system", "Answer with the letter."), Turn("user", f"{sample.question}\n{options}", sample.images))
    return Request(key, turns, Params(temperature=0.7), marks=tuple("ABCD"), shown=sample.options)


def trials(task: Task, samples: list[Sample]) -> Iterator[tuple[int, Sample, TrialKey]]:
    """Yield every trial of a task."""
    for position, sample in enumerate(samples):
        for variant in task.variants:
            for repeat in range(task.repeats):
                yield position, sample, TrialKey(task.name, sample.id, variant, repeat)


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread of its own: a browser test has a loop running already."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def make_run(
    folder: Path,
    *,
    model: str = "openai/small",
    skill: float = 0.7,
    count: int = 60,
    task: Task | None = None,
    stop_after: int | None = None,
    score: bool = True,
    pictures: int = 24,
) -> Path:
    """Write a run of `count` samples; `stop_after` leaves it half-written."""
    task = task or make_task()
    samples = make_samples(folder, count, pictures=pictures)
    every = list(trials(task, samples))
    run_apart(_write(folder, make_header(task, model, len(every)), every[:stop_after], skill, model))
    if score:
        write_results(folder, scored(folder))
        with RunReader(folder) as run:
            write_records(run)
    return folder


def scored(folder: Path, registry: Registry | None = None, **how: Any) -> dict[str, Any]:
    """Score a run and return its results."""
    with RunReader(folder) as run:
        return score_run(run, registry or default_registry(), **how)


def page_of(folder: Path, **how: Any) -> str:
    """Return the page of a run as its report.html has it."""
    with RunReader(folder) as run:
        return render_report(run, **how)


async def _write(
    folder: Path, header: RunHeader, chosen: list[tuple[int, Sample, TrialKey]], skill: float, model: str
) -> None:
    writer = RunWriter(folder, header)
    try:
        for start in range(0, len(chosen), 500):
            puts = [
                writer.put(position, sample, ask(sample, key), answer(sample, key, skill, model), "0" * 16)
                for position, sample, key in chosen[start : start + 500]
            ]
            await asyncio.gather(*puts)
    finally:
        writer.close()
