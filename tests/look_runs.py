"""Runs with tools made up for tests and screenshots: simulated agents, stored turn by turn through the real writer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import PIL.Image
import PIL.ImageDraw

from look_agents import ask
from made_runs import COLOURS, make_header, make_task, run_apart
from snellen.core.builtins import default_registry
from snellen.core.ids import sha256_hex
from snellen.core.jobs import Item, Step
from snellen.core.looks import BASE, DETAIL, LOOK, LOOK_ARMS, NOTHING, PLAIN, Look, LookEnd, variant_of_arm
from snellen.core.types import (
    Form,
    Image,
    ImageSent,
    Prediction,
    Request,
    Sample,
    Timing,
    ToolCall,
    TrialKey,
    Turn,
    Usage,
    to_json,
)
from snellen.report.pages.finish import finish_run
from snellen.store.writer import RunWriter

WIDTH, HEIGHT = 960, 640
MARK = 28
"""The side of the square that is asked about."""
CROP = (160, 120)


class Made(NamedTuple):
    """One question of such a run: its sample, and the region that the agent asks for."""

    sample: Sample
    region: tuple[int, int, int, int]


def draw_scene(path: Path, draw: np.random.Generator, colour: str) -> tuple[int, int]:
    """Draw a page of grey bars with one small coloured square; return its left upper corner."""
    picture = PIL.Image.new("RGB", (WIDTH, HEIGHT), "#f4f1ea")
    pen = PIL.ImageDraw.Draw(picture)
    for _ in range(60):
        x, y = int(draw.integers(0, WIDTH - 60)), int(draw.integers(0, HEIGHT - 20))
        pen.rectangle((x, y, x + int(draw.integers(20, 200)), y + 6), "#d5cfc2")
    x, y = int(draw.integers(100, WIDTH - 100)), int(draw.integers(80, HEIGHT - 80))
    pen.rectangle((x, y, x + MARK, y + MARK), colour)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return x, y


def make_questions(folder: Path, count: int, found: Sequence[bool]) -> list[Made]:
    """Return questions about small squares; where `found` says so the agent looks at the square, else beside it."""
    draw, made = np.random.default_rng(7), []
    for number in range(count):
        colour = COLOURS[number % 4]
        path = folder / "images" / f"{number}.png"
        x, y = draw_scene(path, draw, colour)
        image = Image(str(path), "image/png", WIDTH, HEIGHT, sha256=sha256_hex(path.read_bytes()))
        box = [x, y, x + MARK, y + MARK]
        at = (x + MARK // 2, y + MARK // 2) if found[number] else ((x + WIDTH // 2) % (WIDTH - 200) + 100, HEIGHT // 2)
        left, top = (max(0, min(s - c, m - c // 2)) for m, c, s in zip(at, CROP, (WIDTH, HEIGHT), strict=True))
        sample = Sample(
            f"square-{number:04d}", "squares", Form.CHOICE, "Which colour has the small square?",
            (image,), COLOURS, (colour,), meta={"box": box}, tags={"half": "left" if x < WIDTH / 2 else "right"},
        )  # fmt: skip
        made.append(Made(sample, (left, top, left + CROP[0], top + CROP[1])))
    return made


def _shown(arm: str, made: Made) -> Image:
    """Return what an arm shows instead of the crop."""
    image, (left, top, right, bottom) = made.sample.images[0], made.region
    box = f"{left / WIDTH},{top / HEIGHT},{right / WIDTH},{bottom / HEIGHT}"
    edits = {"whole": (), "elsewhere": ("crop:0,0,0.16,0.18",), "grey": (f"crop:{box}", "blank:")}
    return Image(image.ref, "image/png", *CROP, edits=edits.get(arm, (f"crop:{box}",)))


def _mark(sample: Sample, right: bool, number: int) -> str:
    place = sample.options.index(sample.answers[0])
    return f"Answer: {'ABCD'[place if right else (place + 1 + number % 3) % 4]}"


def _end(seconds: float, *, called: bool, bad: int, tokens: tuple[int, int]) -> dict[str, object]:
    classes = {"frame": bad} if bad else {}
    end = LookEnd("answered", 2 if called else 1, int(called) + bad, int(called), classes, "", seconds, tokens=tokens)
    return {DETAIL: msgspec.to_builtins(end)}


def _turns(made: Made, key: TrialKey, arm: str, right: bool, called: bool, number: int) -> Iterator[tuple]:
    """Yield the turns of one trial: its step, what was asked, what came, and the trial's reply with the last."""
    sample = made.sample
    image = sample.images[0]
    first = Turn("user", f"{sample.question}\nA red, B green, C blue, D orange.", sample.images)
    sent = ImageSent(image.sha256 or "", "image/png", WIDTH, HEIGHT, 4000)
    asked = Request(key, (first,), marks=tuple("ABCD"), shown=sample.options)
    text, took = _mark(sample, right, number), Timing(0.0, 0.5)
    if arm == PLAIN or not called:
        detail = {} if arm == PLAIN else _end(0.5, called=False, bad=0, tokens=(700, 20))
        reply = Prediction(key, text=text, usage=Usage(600, 20), timing=took, images=(sent,), detail=detail)
        yield Step(0, (), lambda _: reply), asked, reply, reply
        return
    bad = int(number % 5 == 0)
    call = ToolCall("c1", "zoom", to_json({"picture": 1, "box": list(made.region)}).decode())
    wrong = (ToolCall("c2", "zoom", '{"picture": 1, "box": [0, 0, 4000, 4000]}'),) if bad else ()
    words = "The square is small: I look closer."
    before = Prediction(key, text=words, usage=Usage(700, 40), timing=took, calls=(call, *wrong), images=(sent,))
    yield Step(0, (), lambda _: None), asked, before, None
    told = "Picture 2: a part of 1."
    look = Look(0, "zoom", "c1", 1, "", made.region, 2, (640, 480), 4.0, _shown(arm, made), told)
    if arm == NOTHING:
        look = Look(0, "zoom", "c1", 1, "", made.region, told=told)
    looks = [look, *([Look(0, "zoom", "c2", 1, "frame", told="outside the picture")] if bad else [])]
    again = (first, Turn("assistant", words, calls=(call,)), Turn("tool", look.told, answers="c1"))
    crops = (look.image,) if look.image else ()
    then = Request(key, (*again, Turn("user", "", crops)), marks=tuple("ABCD"), shown=sample.options)
    pictures = (sent,)  # what was sent of a crop is not kept here: it is drawn anew
    detail = _end(1.1, called=True, bad=bad, tokens=(1700, 60))
    last = Prediction(key, text=text, usage=Usage(1000, 20), timing=took, images=pictures)
    final = Prediction(key, text=text, usage=Usage(1000, 20), timing=took, images=pictures, detail=detail)
    yield Step(1, looks, lambda _: final), then, last, final


def make_look_run(
    folder: Path,
    *,
    use: float = 1.0,
    count: int = 40,
    repeats: int = 1,
    arms: Sequence[str] = LOOK_ARMS,
    seed: int = 1,
    model: str = "openai/looks",
    plainly: bool = False,
) -> Path:
    """Write, score and report a run of an agent that uses a known share of its crops.

    `plainly`: as a run without tools, its arm `plain` being all there is.
    """
    asked = ask(np.random.default_rng(seed), use, count, repeats)
    found = np.random.default_rng(seed + 1).random(count) < 0.8
    questions = make_questions(folder, count, found.tolist())
    names = {arm: "base" if plainly else variant_of_arm("base", arm) for arm in arms}
    task = make_task("squares", variants=tuple(names.values()), repeats=repeats)
    task = msgspec.structs.replace(task, infer=LOOK if set(names) - {PLAIN} else task.infer)
    header = make_header(task, model, count * repeats * len(arms))

    async def write() -> None:
        writer = RunWriter(folder, header)
        try:
            waiting = []
            for (place, made), arm, repeat in product(enumerate(questions), arms, range(repeats)):
                key = TrialKey("squares", made.sample.id, names[arm], repeat)
                right, called = bool(asked.right[arm][place, repeat]), bool(asked.called[place])
                turns = _turns(made, key, arm, right, called, place)
                waiting.append(_put(writer, Item(place, made.sample), turns, arm))
            await asyncio.gather(*waiting)
        finally:
            writer.close()

    run_apart(write())
    finish_run(folder, default_registry())
    return folder


async def _put(writer: RunWriter, item: Item, turns: Iterator[tuple], arm: str) -> None:
    for step, request, reply, final in turns:
        if arm == PLAIN:
            await writer.put(item.position, item.sample, request, reply, "0" * 16)
        elif final is not None or arm == BASE:  # the first turn is shared
            await writer.put_turn(item, step, (request, reply, f"d{step.number}"), final, "0" * 16)
