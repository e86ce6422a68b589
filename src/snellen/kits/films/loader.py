"""Seeds -> drawn films as Samples: one kind of story, a grid of lengths, levels and depths."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import PIL
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
from msgspec import Struct

from ...core.config import convert
from ...core.errors import ConfigError, EnvironmentProblem, MissingExtra, not_among
from ...core.folders import cache_folder
from ...core.ids import content_hash, derive_seed, rng
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Form, Sample, Video
from ...data.video.recompress import OPTIONS


class Thing(Struct, frozen=True, omit_defaults=True):
    """Something seen from one second to another, moving straight from one place to another (shares of the picture)."""

    what: str
    """disc, square, triangle, star, cross, card (a text on white) or veil (all of the picture)."""
    start: float
    end: float
    place: tuple[float, float] = (0.5, 0.5)
    goal: tuple[float, float] | None = None
    """Where it is at its end; None: it stays."""
    colour: str = "#d62728"
    size: float = 0.12
    """Half its width, as a share of the height."""
    text: str = ""

    def at(self, second: float) -> tuple[float, float]:
        """Return where it is at a moment."""
        if self.goal is None or self.end <= self.start:
            return self.place
        share = min(1.0, max(0.0, (second - self.start) / (self.end - self.start)))
        (x0, y0), (x1, y1) = self.place, self.goal
        return x0 + (x1 - x0) * share, y0 + (y1 - y0) * share


class Script(Struct, frozen=True, omit_defaults=True):
    """A whole film."""

    seconds: float
    things: tuple[Thing, ...]
    fps: int = 12
    width: int = 480
    height: int = 270
    seed: int = 0
    scenery: bool = True
    """Whether shapes drift through the background."""

    @property
    def frames(self) -> int:
        """Return how many frames it has."""
        return max(1, round(self.seconds * self.fps))


class FilmQuestion(Struct, frozen=True):
    """A film and the question about it."""

    script: Script
    question: str
    answers: tuple[str, ...]
    options: tuple[str, ...] = ()
    tags: dict[str, str | int | float] = {}
    seen: tuple[float, float] | None = None
    """When what answers the question is shown."""


NAMES = (
    "Amber",
    "Basil",
    "Cedar",
    "Dahlia",
    "Ember",
    "Fern",
    "Garnet",
    "Hazel",
    "Indigo",
    "Juniper",
    "Laurel",
    "Maple",
)
WORDS = ("APPLE", "RIVER", "STONE", "CLOUD", "TIGER", "PIANO", "LEMON", "HOUSE", "GLASS", "HONEY")
COLOURS = {"red": "#d62728", "blue": "#1f3fd6", "green": "#1a8f3c", "yellow": "#e8c100", "purple": "#7a2fa0"}
SHAPES = ("disc", "square", "triangle", "star", "cross")
WAYS = {
    "from left to right": ((0.1, 0.5), (0.9, 0.5)),
    "from right to left": ((0.9, 0.5), (0.1, 0.5)),
    "from top to bottom": ((0.5, 0.15), (0.5, 0.85)),
    "from bottom to top": ((0.5, 0.85), (0.5, 0.15)),
}
BOXES = {"left": 0.25, "middle": 0.5, "right": 0.75}
BOX_COLOUR = "#6b4a2b"
LOWEST = 0.82
"""Where things stand that stand on the ground."""


def needle(seed: int, seconds: float, level: float, depth: float) -> FilmQuestion:
    """A card with a code is shown for `level` seconds at a depth of the film: which code was it?"""
    draw = rng(seed, "needle")
    name, code = draw.choice(NAMES), str(draw.randrange(1000, 10000))
    start = depth * max(0.0, seconds - level)
    place = (draw.uniform(0.3, 0.7), draw.uniform(0.2, 0.8))
    card = Thing("card", start, start + level, place, text=f"The code of {name} is {code}.")
    tags: dict[str, str | int | float] = {"length": seconds, "depth": depth, "level": level}
    script = Script(seconds, (card,), seed=seed)
    return FilmQuestion(script, f"What is the code of {name}?", (code,), tags=tags, seen=(start, start + level))


def order(seed: int, seconds: float, level: float, depth: float) -> FilmQuestion:
    """Words come one after another, `level` of them: in which order?"""
    draw = rng(seed, "order")
    words = draw.sample(WORDS, int(level))
    each = seconds / len(words)
    things = [Thing("card", (place + 0.1) * each, (place + 0.9) * each, text=word) for place, word in enumerate(words)]
    right = ", ".join(words)
    wrong = _others(draw, right, lambda: ", ".join(draw.sample(words, len(words))))
    question = "In which order are the words shown?"
    script, options = Script(seconds, tuple(things), seed=seed), _mixed(draw, right, wrong)
    return FilmQuestion(script, question, (right,), options, tags={"length": seconds, "level": level})


def count(seed: int, seconds: float, level: float, depth: float) -> FilmQuestion:
    """A red disc appears `level` times, blue ones between: how often the red one?"""
    draw = rng(seed, "count")
    red, others = int(level), draw.randrange(1, 4)
    colours = ["red"] * red + ["blue"] * others
    draw.shuffle(colours)
    each = seconds / len(colours)
    things = [
        Thing("disc", (n + 0.2) * each, (n + 0.8) * each, (draw.uniform(0.2, 0.8), 0.5), colour=COLOURS[colour])
        for n, colour in enumerate(colours)
    ]
    question = "How many times does a red disc appear?"
    return FilmQuestion(Script(seconds, tuple(things), seed=seed), question, (str(red),), tags={"level": red})


def direction(seed: int, seconds: float, level: float, depth: float) -> FilmQuestion:
    """A disc crosses the picture within `level` seconds: which way?"""
    draw = rng(seed, "direction")
    way = draw.choice(list(WAYS))
    start = draw.uniform(0, max(0.0, seconds - level))
    place, goal = WAYS[way]
    disc = Thing("disc", start, start + level, place, goal, COLOURS[draw.choice(list(COLOURS))])
    script = Script(seconds, (disc,), seed=seed, fps=24)
    seen = (start, start + level)
    return FilmQuestion(
        script, "Which way does the disc move?", (way,), _mixed(draw, way, _without(WAYS, way)), {"level": level}, seen
    )


def speed(seed: int, seconds: float, level: float, depth: float) -> FilmQuestion:
    """Two discs run side by side, one `level` times as fast: which is faster?"""
    draw = rng(seed, "speed")
    names = draw.sample(list(COLOURS), 2)
    reach = 0.8
    things = [
        Thing("disc", 0, seconds, (0.1, 0.3), (0.1 + reach, 0.3), COLOURS[names[0]], 0.1),
        Thing("disc", 0, seconds, (0.1, 0.7), (0.1 + reach / level, 0.7), COLOURS[names[1]], 0.1),
    ]
    if draw.random() < 0.5:
        things = [
            Thing(t.what, t.start, t.end, (t.place[0], 1 - t.place[1]), _flipped(t), t.colour, t.size) for t in things
        ]
    right, wrong = f"the {names[0]} disc", f"the {names[1]} disc"
    question = "Which disc moves faster?"
    return FilmQuestion(
        Script(seconds, tuple(things), seed=seed), question, (right,), _mixed(draw, right, [wrong]), {"level": level}
    )


def permanence(seed: int, seconds: float, level: float, depth: float) -> FilmQuestion:
    """A ball goes under one of three boxes, which then change places `level` times: where is it at the end?"""
    draw = rng(seed, "permanence")
    swaps, places = int(level), list(BOXES.values())
    ball = draw.randrange(3)
    shown = seconds / (swaps + 2)
    things = [Thing("disc", 0, shown, (places[ball], 0.45), (places[ball], LOWEST), COLOURS["red"], 0.07)]
    order_of = [0, 1, 2]  # which box stands at each place
    things += [_box(0, shown, place, place) for place in places]
    for step in range(swaps):
        first, second = draw.sample(range(3), 2)
        start = shown * (step + 1)
        things += _swap(start, start + shown, places[first], places[second])
        things += [_box(start, start + shown, places[n], places[n]) for n in range(3) if n not in (first, second)]
        order_of[first], order_of[second] = order_of[second], order_of[first]
    things += [_box(shown * (swaps + 1), seconds + 1, place, place) for place in places]
    right = list(BOXES)[order_of.index(ball)]
    question = "A ball goes under one of three boxes. Under which box is it at the end?"
    options = tuple(f"the {name} box" for name in BOXES)
    script = Script(seconds, tuple(things), seed=seed, scenery=False)
    return FilmQuestion(script, question, (f"the {right} box",), options, {"level": swaps})


def change(seed: int, seconds: float, level: float, depth: float) -> FilmQuestion:
    """Shapes are seen, the picture goes grey for `level` seconds, and one has another colour: which?"""
    draw = rng(seed, "change")
    shapes = draw.sample(SHAPES, 4)
    colours = [draw.choice(list(COLOURS)) for _ in shapes]
    odd = draw.randrange(4)
    gone = (seconds - level) / 2
    things = []
    for place, (shape, colour) in enumerate(zip(shapes, colours, strict=True)):
        x = (place + 0.5) / 4
        other = draw.choice([name for name in COLOURS if name != colour]) if place == odd else colour
        things += [
            Thing(shape, 0, gone, (x, 0.5), colour=COLOURS[colour]),
            Thing(shape, gone + level, seconds + 1, (x, 0.5), colour=COLOURS[other]),
        ]
    things.append(Thing("veil", gone, gone + level, colour="#808080"))
    right = f"the {shapes[odd]}"
    wrong = [f"the {shape}" for shape in shapes if f"the {shape}" != right]
    script = Script(seconds, tuple(things), seed=seed, scenery=False)
    return FilmQuestion(
        script, "Which shape changes its colour?", (right,), _mixed(draw, right, wrong), {"level": level}
    )


KINDS: dict[str, Callable[[int, float, float, float], FilmQuestion]] = {
    "needle": needle,
    "order": order,
    "count": count,
    "direction": direction,
    "speed": speed,
    "permanence": permanence,
    "change": change,
}


def _box(start: float, end: float, here: float, there: float) -> Thing:
    return Thing("square", start, end, (here, LOWEST), (there, LOWEST), BOX_COLOUR, 0.13)


def _swap(start: float, end: float, here: float, there: float) -> list[Thing]:
    """Return two boxes that change places; one is lifted over the other, so that nobody can mistake them."""
    middle, top = (start + end) / 2, ((here + there) / 2, LOWEST - 0.36)
    return [
        _box(start, end, there, here),
        Thing("square", start, middle, (here, LOWEST), top, BOX_COLOUR, 0.13),
        Thing("square", middle, end, top, (there, LOWEST), BOX_COLOUR, 0.13),
    ]


def _flipped(thing: Thing) -> tuple[float, float]:
    goal = thing.goal or thing.place
    return goal[0], 1 - goal[1]


def _without(names: Iterable[str], one: str) -> list[str]:
    return [name for name in names if name != one]


def _others(draw: random.Random, right: str, make: Callable[[], str]) -> list[str]:
    """Return three different wrong orders; two words have only one."""
    found: list[str] = []
    for _ in range(200):
        candidate = make()
        if candidate != right and candidate not in found:
            found.append(candidate)
        if len(found) == 3:
            break
    return found


def _mixed(draw: random.Random, right: str, wrong: list[str]) -> tuple[str, ...]:
    options = [right, *wrong]
    draw.shuffle(options)
    return tuple(options)


SCENERY = 6
INK = "#111111"


def _tip(number: int) -> tuple[float, float]:
    reach, turn = (1.1, 0.45)[number % 2], number * math.pi / 5
    return reach * math.sin(turn), -reach * math.cos(turn)


POINTS = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "triangle": [(0.0, -1.0), (1.0, 0.9), (-1.0, 0.9)],
    "star": [_tip(n) for n in range(10)],
    "cross": [
        *((-0.35, -1.0), (0.35, -1.0), (0.35, -0.35), (1.0, -0.35), (1.0, 0.35), (0.35, 0.35)),
        *((0.35, 1.0), (-0.35, 1.0), (-0.35, 0.35), (-1.0, 0.35), (-1.0, -0.35), (-0.35, -0.35)),
    ],
}  # fmt: skip


def paint(script: Script, second: float) -> PIL.Image.Image:
    """Return what is seen at a moment."""
    picture = PIL.Image.new("RGB", (script.width, script.height), _shade(script, second))
    pen = PIL.ImageDraw.Draw(picture)
    if script.scenery:
        _draw_scenery(pen, script, second)
    for thing in script.things:
        if thing.start <= second + 1e-9 and second < thing.end - 1e-9:
            _draw(pen, script, thing, second)
    return picture


def _shade(script: Script, second: float) -> tuple[int, int, int]:
    """Return the colour of the background: a slow walk through pale ones."""
    turn = rng(script.seed, "shade").uniform(0, 2 * math.pi) + second / 7
    return tuple(round(205 + 25 * math.sin(turn + part)) for part in (0.0, 2.1, 4.2))  # type: ignore[return-value]


@lru_cache(maxsize=64)
def _wanderers(seed: int) -> tuple[tuple[float, ...], ...]:
    draw = rng(seed, "scenery")
    return tuple(tuple(draw.random() for _ in range(6)) for _ in range(SCENERY))


def _draw_scenery(pen: PIL.ImageDraw.ImageDraw, script: Script, second: float) -> None:
    """Draw shapes that drift and mean nothing, in greys: no question is about them."""
    for x, y, speed_x, speed_y, size, grey in _wanderers(script.seed):
        place = ((x + (speed_x - 0.5) * second / 8) % 1.0, (y + (speed_y - 0.5) * second / 8) % 1.0)
        level = round(150 + 50 * grey)
        colour = f"#{level:02x}{level:02x}{level:02x}"
        _shape(pen, script, Thing("square", 0, 1, place, colour=colour, size=0.04 + 0.08 * size), second)


def _draw(pen: PIL.ImageDraw.ImageDraw, script: Script, thing: Thing, second: float) -> None:
    if thing.what == "veil":
        pen.rectangle((0, 0, script.width, script.height), fill=thing.colour)
    elif thing.what == "card":
        _card(pen, script, thing)
    else:
        _shape(pen, script, thing, second)


def _shape(pen: PIL.ImageDraw.ImageDraw, script: Script, thing: Thing, second: float) -> None:
    place = thing.at(second)
    x, y, reach = place[0] * script.width, place[1] * script.height, thing.size * script.height
    if thing.what == "disc":
        pen.ellipse((x - reach, y - reach, x + reach, y + reach), fill=thing.colour)
    else:
        pen.polygon([(x + a * reach, y + b * reach) for a, b in POINTS[thing.what]], fill=thing.colour)


def _card(pen: PIL.ImageDraw.ImageDraw, script: Script, thing: Thing) -> None:
    font = _font(round(script.height * 0.095))
    left, top, right, bottom = pen.textbbox((0, 0), thing.text, font=font)
    width, height = right - left, bottom - top
    x = min(max(thing.place[0] * script.width - width / 2, 12), script.width - width - 12)
    y = min(max(thing.place[1] * script.height - height / 2, 12), script.height - height - 12)
    pen.rectangle((x - 10, y - 8, x + width + 10, y + height + 8), fill="white")
    pen.text((x - left, y - top), thing.text, fill=INK, font=font)


@lru_cache(maxsize=8)
def _font(size: int) -> PIL.ImageFont.FreeTypeFont | PIL.ImageFont.ImageFont:
    return PIL.ImageFont.load_default(size)


CODEC = {**OPTIONS, "crf": "18"}


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


LONGEST_S = 3600.0


class FilmSource(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the loader (`-p dataset.lengths=[8,32]`)."""

    loader: str
    kind: str = "needle"
    films: int = 2
    """Films of each cell of the grid."""
    lengths: tuple[float, ...] = (8.0, 16.0, 32.0)
    """In seconds."""
    levels: tuple[float, ...] = (2.0,)
    """What makes it hard: how long a card is shown, how many events there are, how much faster one is."""
    depths: tuple[float, ...] = (0.5,)
    """Where in the film the needle is, from 0 to 1."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield films round by round over the whole grid, so that `--limit` cuts evenly."""
    source = convert(task.dataset, FilmSource, f"task {task.name!r}, dataset")
    check_source(source)
    folder = (context.workdir or cache_folder() / "generated") / "films"
    for number in range(source.films):
        for length, level, depth in product(source.lengths, source.levels, source.depths):
            name = f"{source.kind}-{length:g}s-{level:g}-{depth:g}-{number:03d}"
            film = KINDS[source.kind](derive_seed(context.seed, "film", name), length, level, depth)
            path = write_film(film.script, folder, name)
            yield sample_of(task, name, film, str(path))


def sample_of(task: Task, name: str, film: FilmQuestion, path: str) -> Sample:
    """Return the question about one film."""
    form = Form.CHOICE if film.options else Form.NUMBER if task.form is Form.NUMBER else Form.OPEN
    meta = {"needle_seconds": list(film.seen)} if film.seen else {}
    return Sample(
        name,
        task.name,
        form,
        film.question,
        options=film.options,
        answers=film.answers,
        group=name,
        tags=dict(film.tags),
        meta=meta,
        videos=(Video(path),),
    )


def check_source(source: FilmSource) -> None:
    """Refuse what cannot be drawn."""
    if source.kind not in KINDS:
        raise ConfigError(f"dataset.kind {not_among(source.kind, KINDS, ' is unknown')}")
    limits = {
        "dataset.films must be at least 1": source.films >= 1,
        "dataset.lengths, levels and depths need at least one value": source.lengths
        and source.levels
        and source.depths,
        f"dataset.lengths lie above 0 and at most at {LONGEST_S:g} s": all(0 < x <= LONGEST_S for x in source.lengths),
        "dataset.levels lie above 0": all(level > 0 for level in source.levels),
        "dataset.depths lie between 0 and 1": all(0 <= depth <= 1 for depth in source.depths),
    }
    broken = [rule for rule, kept in limits.items() if not kept]
    if broken:
        raise ConfigError(broken[0])
    _check_levels(source)


def _check_levels(source: FilmSource) -> None:
    """Refuse levels that this kind of story cannot have."""
    levels, shortest = source.levels, min(source.lengths)
    seconds = f"{source.kind} takes seconds below the shortest film, {shortest:g}"
    rules = {
        ("needle", "direction", "change"): (seconds, max(levels) < shortest),
        ("order", "count", "permanence"): (
            f"{source.kind} takes whole numbers",
            not any(level % 1 for level in levels),
        ),
        ("order",): ("order takes 3 to 10 words", min(levels) >= 3 and max(levels) <= 10),
        ("speed",): ("speed takes ratios above 1", min(levels) > 1),
    }
    for kinds, (rule, kept) in rules.items():
        if source.kind in kinds and not kept:
            raise ConfigError(f"dataset.levels: {rule}")
