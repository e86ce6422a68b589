"""Seeds to stories: each kind of film, what is asked about it, and what is true."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from ...core.ids import rng
from .script import Script, Thing, Told

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


def needle(seed: int, seconds: float, level: float, depth: float) -> Told:
    """A card with a code is shown for `level` seconds at a depth of the film: which code was it?"""
    draw = rng(seed, "needle")
    name, code = draw.choice(NAMES), str(draw.randrange(1000, 10000))
    start = depth * max(0.0, seconds - level)
    place = (draw.uniform(0.3, 0.7), draw.uniform(0.2, 0.8))
    card = Thing("card", start, start + level, place, text=f"The code of {name} is {code}.")
    tags: dict[str, str | int | float] = {"length": seconds, "depth": depth, "level": level}
    script = Script(seconds, (card,), seed=seed)
    return Told(script, f"What is the code of {name}?", (code,), tags=tags, seen=(start, start + level))


def order(seed: int, seconds: float, level: float, depth: float) -> Told:
    """Words come one after another, `level` of them: in which order?"""
    draw = rng(seed, "order")
    words = draw.sample(WORDS, int(level))
    each = seconds / len(words)
    things = [Thing("card", (place + 0.1) * each, (place + 0.9) * each, text=word) for place, word in enumerate(words)]
    right = ", ".join(words)
    wrong = _others(draw, right, lambda: ", ".join(draw.sample(words, len(words))))
    question = "In which order are the words shown?"
    return Told(Script(seconds, tuple(things), seed=seed), question, (right,), _mixed(draw, right, wrong))


def count(seed: int, seconds: float, level: float, depth: float) -> Told:
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
    return Told(Script(seconds, tuple(things), seed=seed), question, (str(red),), tags={"level": red})


def direction(seed: int, seconds: float, level: float, depth: float) -> Told:
    """A disc crosses the picture within `level` seconds: which way?"""
    draw = rng(seed, "direction")
    way = draw.choice(list(WAYS))
    start = draw.uniform(0, max(0.0, seconds - level))
    place, goal = WAYS[way]
    disc = Thing("disc", start, start + level, place, goal, COLOURS[draw.choice(list(COLOURS))])
    script = Script(seconds, (disc,), seed=seed, fps=24)
    seen = (start, start + level)
    return Told(
        script, "Which way does the disc move?", (way,), _mixed(draw, way, _without(WAYS, way)), {"level": level}, seen
    )


def speed(seed: int, seconds: float, level: float, depth: float) -> Told:
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
    return Told(
        Script(seconds, tuple(things), seed=seed), question, (right,), _mixed(draw, right, [wrong]), {"level": level}
    )


def permanence(seed: int, seconds: float, level: float, depth: float) -> Told:
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
    return Told(script, question, (f"the {right} box",), options, {"level": swaps})


def change(seed: int, seconds: float, level: float, depth: float) -> Told:
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
    return Told(script, "Which shape changes its colour?", (right,), _mixed(draw, right, wrong), {"level": level})


KINDS: dict[str, Callable[[int, float, float, float], Told]] = {
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
