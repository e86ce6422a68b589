"""Discs on canvases of several shapes to the frame in which a model gives coordinates, and how far off it then is.

Some trials show the canvas and an enlarged part of it: they tell which of the two pictures an answer speaks of.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.frames import Frame, read_frame
from ..extract.places import read_place
from ..stats.coordinate_frames import ALIKE_PX, Answers, Fitted, FrameEstimate, fit_frames, probabilities, tell_frame
from ..stats.intervals import Floats
from .board import Board
from .exam_trials import Outcome, generator
from .fixed import FixedCourse, fixed_head
from .plate import Bench, Card, Reading, Stimulus, credit
from .procedure import FLOOR, MEASURED, OPEN

CANVASES = ((1344, 1008), (1920, 1080), (700, 1400), (480, 360))
"""Wide, wider, tall, and one below any limit: no two rules of a resize are the same on all of them."""
PLACES = 8
"""Targets on each canvas, in cells of equal size."""
RADIUS, MARGIN = 8.0, 12.0
COLOURS = ((220.0, 30.0, 30.0), (30.0, 90.0, 220.0), (20.0, 140.0, 40.0), (150.0, 30.0, 170.0))
PART, ENLARGED = 3, 2
"""A part has a third of the canvas's sides, and is shown twice as large."""
NEAR = 0.05
"""So near, of the sides, an answer is called right in the counts; the fit tells the rest."""
COMMON = tuple(map(read_frame, ("0-1", "0-100", "0-1000", "sent-pixels", "0-1000 y-first", "sent-pixels y-first")))
LEAST_ANSWERS, LEAST_PARTS = 12, 4
"""Fewer answers than this tell no frame, and fewer on parts not which picture is meant."""
SURE = 0.8
"""So probable must a frame be, or one picture of two, before it is named."""
WHOLE, THE_PART = "the whole picture", "the part"


class Locating:
    """One disc whose centre is to be told, in a frame that the card's `options.frame` asks for, or in the model's."""

    def __init__(self, card: Card) -> None:
        self.card = card
        told = card.options.get("frame")
        self.asked = read_frame(told) if told else None
        self.parts = int(card.options.get("parts", 0))
        self.places = len(CANVASES) * PLACES + self.parts

    def chance(self, level: float) -> float:
        """Nothing is right by chance."""
        return 0.0

    def draw(self, level: float, answer: str, draw: random.Random, bench: Bench) -> Stimulus:
        """Draw a disc in the cell of the canvas that `answer` numbers; the last numbers show a part beside it."""
        place = int(answer or 0) % self.places
        alone = place < len(CANVASES) * PLACES
        size = CANVASES[place // PLACES] if alone else CANVASES[0]
        spot, colour = _spot(place % PLACES, size, draw), draw.choice(COLOURS)
        pictures = [_disc(size, spot, RADIUS, colour, self.card.pad_bytes)]
        detail: dict[str, Any] = {"x": round(spot[0], 2), "y": round(spot[1], 2), "width": size[0], "height": size[1]}
        if not alone:
            left, top, width, height = _part_about(spot, size, draw)
            inside = ((spot[0] - left) * ENLARGED, (spot[1] - top) * ENLARGED)
            shown = (width * ENLARGED, height * ENLARGED)
            pictures.append(_disc(shown, inside, RADIUS * ENLARGED, colour, self.card.pad_bytes))
            detail["part"] = [*inside, *shown]
        truth = ", ".join(f"{value:.0f}" for value in COMMON[2].write(_share(spot, size), size))
        return Stimulus(tuple(pictures), truth, 1.0, detail)

    def blank(self, draw: random.Random, bench: Bench) -> Stimulus | None:
        """Without the disc there is nothing to point at."""
        return None

    def ask(self, stimulus: Stimulus, wording: int, draw: random.Random) -> str:
        """Ask for the place; of a canvas and a part of it, for that in the first."""
        extra = "The second picture is an enlarged part of the first. Answer for the first picture. "
        return (extra if len(stimulus.pictures) > 1 else "") + self.card.wordings[wording]

    def read(self, reply: str, truth: str, detail: Mapping[str, Any]) -> Reading:
        """Read two numbers; right is what lies near the disc in the frame asked for, or in any that is common."""
        found = read_place(reply)
        if not found.values or found.refused:
            return credit(1, 0.0)
        said = found.values if len(found.values) == 2 else _middle(found.values)
        size, spot = (int(detail["width"]), int(detail["height"])), (detail["x"], detail["y"])
        frames = COMMON if self.asked is None else (self.asked,)
        near = any(math.dist(frame.place(said, size, anywhere=True), _share(spot, size)) < NEAR for frame in frames)
        return Reading(float(near), 1, 0.0, f"{said[0]:g}, {said[1]:g}", {"said": list(said)})


def _middle(box: Sequence[float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2.0, (box[1] + box[3]) / 2.0


def _share(spot: Sequence[float], size: tuple[int, int]) -> tuple[float, float]:
    return spot[0] / size[0], spot[1] / size[1]


def _spot(cell: int, size: tuple[int, int], draw: random.Random) -> tuple[float, float]:
    """Return a place in one of eight cells, four along the longer side."""
    across, down = (4, 2) if size[0] >= size[1] else (2, 4)
    column, row = cell % across, cell // across
    x = MARGIN + (column + draw.random()) / across * (size[0] - 2 * MARGIN)
    return x, MARGIN + (row + draw.random()) / down * (size[1] - 2 * MARGIN)


def _part_about(spot: tuple[float, float], size: tuple[int, int], draw: random.Random) -> tuple[int, int, int, int]:
    """Return left, top, width and height of a part that holds the whole disc, anywhere in it."""
    corner = []
    for place, side in zip(spot, size, strict=True):
        part = side // PART
        low, high = max(0.0, place + MARGIN - part), min(float(side - part), place - MARGIN)
        corner.append(round(low + draw.random() * (high - low)))
    return corner[0], corner[1], size[0] // PART, size[1] // PART


def _disc(
    size: tuple[int, int],
    spot: tuple[float, float],
    radius: float,
    colour: tuple[float, float, float],
    pad_bytes: int,
) -> bytes:
    board = Board(*size)
    board.disc(spot, radius, colour)
    return board.png(pad_bytes)


def coordinates_result(course: FixedCourse) -> dict[str, Any]:
    """Return the frame of coordinates, what it cannot be told from, and the errors in it."""
    result = fixed_head(course)
    said = [o for o in course.outcomes if o.reading is not None and "said" in o.reading.detail]
    told = [outcome for outcome in said if "part" not in outcome.detail]
    if len(told) < LEAST_ANSWERS:
        word = FLOOR if course.outcomes else OPEN
        return result | {"verdict": word, "reason": course.reason or f"{len(told)} replies hold coordinates"}
    answers = answers_of(told)
    fitted = fit_frames(answers)
    found = tell_frame(fitted, probabilities(fitted), 0)
    errors = _errors(fitted[found.number].placed[0], answers.true[0])
    blind = float(np.median(_errors(answers.size / 2.0, answers.true[0])))
    if np.median(errors) > 0.5 * blind:
        why = f"answers are {np.median(errors):.0f} px off; always saying the middle gives {blind:.0f}"
        return result | {"verdict": FLOOR, "reason": why}
    figures = _frame_figures(fitted, found) | _error_figures(fitted[found.number].placed[0], answers, course)
    undecided = _undecided(fitted, found, float(np.median(errors)))
    figures |= {"verdict": OPEN, "card": None, "reason": undecided} if undecided else {}
    test = course.test
    assert isinstance(test, Locating)  # noqa: S101 - the course of no other test comes here
    frame = fitted[found.number].frames[0]
    figures |= {"as_asked_px": _as_asked(test.asked, answers)} if test.asked else _counted_in(frame, said)
    return result | figures | {"parts": _parts(said, frame)} | _points(answers)


def _undecided(fitted: list[Fitted], found: FrameEstimate, median_px: float) -> str:
    """Return why no frame is named: another one is about as probable, and places the answers elsewhere."""
    far = max(ALIKE_PX, 2.0 * median_px)
    serious = [one for one in found.rivals if one.probability > 1.0 - SURE and one.apart_px > far]
    if found.probability >= SURE or not serious:
        return ""
    return f"not told from {_words(fitted[serious[0].number])}, {serious[0].apart_px:.0f} px apart"


def answers_of(told: Sequence[Outcome]) -> Answers:
    """Return outcomes with coordinates as arrays of one answerer."""
    said = [o.reading.detail["said"] for o in told if o.reading is not None]
    true = [[o.detail["x"], o.detail["y"]] for o in told]
    size = [[o.detail["width"], o.detail["height"]] for o in told]
    return Answers(np.array([said], float), np.array([true], float), np.array(size, float))


def _errors(placed: Floats, true: Floats) -> Floats:
    return np.asarray(np.hypot(*(placed - true).T))


def _frame_figures(fitted: list[Fitted], found: FrameEstimate) -> dict[str, Any]:
    frame = fitted[found.number].frames[0]
    rivals = [
        {
            "frame": _words(fitted[one.number]),
            "probability": round(one.probability, 4),
            "apart_px": round(one.apart_px, 1),
        }
        for one in found.rivals
    ]
    return {
        "verdict": MEASURED,
        "frame": _words(fitted[found.number]),
        "in_words": _in_words(fitted, found),
        "card": None if frame is None else frame.name,
        "frame_probability": round(found.probability, 4),
        "not_told_apart": rivals,
    }


def _in_words(fitted: list[Fitted], found: FrameEstimate) -> str:
    """Return the frame for people, and another one that its answers do not exclude."""
    best = fitted[found.number]
    words = best.name if best.frames[0] is None else frame_words(best.frames[0])
    other = next((one for one in found.rivals if one.apart_px >= ALIKE_PX), None)
    return f"{words} (or in {_words(fitted[other.number])}, up to {other.apart_px:.0f} px apart)" if other else words


def frame_words(frame: Frame) -> str:
    """Return a frame for people."""
    limits = {"grid": "onto a grid of {} px", "side": "within a side of {:,} px", "area": "within an area of {:,} px"}
    told = [words.format(limit) for name, words in limits.items() if (limit := getattr(frame, name)) is not None]
    resized = f" after it was brought {' and '.join(told)}" if told else ""
    scale = f"pixels of the picture{resized}" if frame.edge is None else f"0 to {frame.edge:g} of width and height"
    square = f", of a square around it ({frame.padded})" if frame.padded else ""
    return f"{scale}{square}{', y first' if frame.y_first else ''}{', y from below' if frame.y_up else ''}"


def _words(one: Fitted) -> str:
    """Return a frame as it is spelt; one without a rule for other canvases, as it is called."""
    frame = one.frames[0]
    return one.name if frame is None else frame.name


def _error_figures(placed: Floats, answers: Answers, course: FixedCourse) -> dict[str, Any]:
    off = placed - answers.true[0]
    errors = np.hypot(*off.T)
    draw = generator(course.seed, course.name, "bootstrap")
    picks = draw.integers(0, errors.size, (500, errors.size))
    bounds = np.quantile(np.median(errors[picks], axis=1), (0.025, 0.975))
    far = float(np.quantile(errors, 0.95))
    return {
        "value": round(float(np.median(errors)), 2),
        "ci95": [round(float(end), 2) for end in bounds],
        "q95_px": round(far, 2),
        "least_target_px": math.ceil(2.0 * far),
        "offset_px": [round(float(part), 2) for part in np.median(off, axis=0)],
    }


def _as_asked(frame: Frame, answers: Answers) -> float:
    """Return the median error when answers are taken in the frame that was asked for."""
    placed = [
        frame.place(said, (int(size[0]), int(size[1])), anywhere=True)
        for said, size in zip(answers.said[0].tolist(), answers.size.tolist(), strict=True)
    ]
    return round(float(np.median(_errors(np.array(placed) * answers.size, answers.true[0]))), 2)


def _counted_in(frame: Frame | None, said: Sequence[Outcome]) -> dict[str, int]:
    """Return the counts of answers in the frame that was found: while they came, nobody knew it."""
    if frame is None:
        return {}
    right = 0
    for outcome in said:
        detail, numbers = outcome.detail, outcome.reading.detail["said"] if outcome.reading else []
        size, spot = (int(detail["width"]), int(detail["height"])), (detail["x"], detail["y"])
        right += math.dist(frame.place(numbers, size, anywhere=True), _share(spot, size)) < NEAR
    return {"right": right, "wrong": len(said) - right}


def _points(answers: Answers) -> dict[str, Any]:
    rows = np.hstack([answers.said[0], answers.true[0], answers.size]).tolist()
    return {"canvases": [list(size) for size in CANVASES], "points": rows}


def _parts(said: Sequence[Outcome], frame: Frame | None) -> dict[str, Any] | None:
    """Return which picture answers speak of where a part is shown beside the whole; None where that cannot be told.

    Laplacian errors in shares of each picture: the likelier picture leaves the smaller ones.
    """
    shown = [outcome for outcome in said if "part" in outcome.detail]
    if frame is None or len(shown) < LEAST_PARTS:
        return None
    off: list[tuple[float, float]] = []
    for outcome in shown:
        detail, numbers = outcome.detail, outcome.reading.detail["said"] if outcome.reading else []
        size, (x, y, *part) = (int(detail["width"]), int(detail["height"])), detail["part"]
        inner = (int(part[0]), int(part[1]))
        whole = math.dist(frame.place(numbers, size, anywhere=True), _share((detail["x"], detail["y"]), size))
        off.append((whole, math.dist(frame.place(numbers, inner, anywhere=True), _share((x, y), inner))))
    nearer = sum(one < other for one, other in off)
    width = np.maximum(0.01, np.median(np.array(off), axis=0))
    log_odds = float(2.0 * len(off) * (math.log(width[1]) - math.log(width[0])))
    chance = 1.0 / (1.0 + math.exp(-max(-500.0, min(500.0, log_odds))))
    speaks = WHOLE if chance > SURE else THE_PART if chance < 1.0 - SURE else None
    return {"trials": len(off), "nearer_in_whole": nearer, "whole_probability": round(chance, 4), "speaks_of": speaks}
