"""Places as said and as drawn, on canvases of several shapes, to the frame of coordinates they were said in.

Every frame is a map from numbers to pixels. One is as likely as the errors are small that it leaves: Laplacian, with a
few wild answers; a number that is fitted costs half a logarithm of the count of coordinates. All answerers at once:
arrays are (answerer, answer, axis).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ..core.frames import CORNER, MIDDLE, Frame, resized
from .intervals import Floats

EDGES = (1.0, 100.0, 1000.0, 1024.0)
GRID = 28
GRID_AREAS = np.geomspace(150_000, 2_200_000, 240)
"""Limits that are tried of a picture brought onto a grid."""
WILD = 0.05
"""The share of answers that may be anywhere."""
WIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Widths of the errors that are tried, against the one that half of them tells."""
LEAST_PX = 0.75
"""Errors narrower than this are rounding."""
ANY_EDGE, ONE_SCALE, TWO_SCALES = "0-N", "one scale a canvas", "two scales a canvas"
LOG_TWO = math.log(2.0)
ODD = math.log(10.0)
"""A rule with fitted numbers is ten times less likely before than one without: else 1001 is named for 1000. Scales that
follow no rule are ten times less likely again."""
POSSIBLE = 0.02
"""Frames at least this probable are said beside the best one."""
ALIKE_PX = 3.0
"""Frames that place nearly all answers within this are the same on these canvases, whatever their probability."""
NEARLY_ALL = 0.95


class Answers(NamedTuple):
    """What was said of what: numbers as written, the true places in px, and the canvas of each answer."""

    said: Floats
    true: Floats
    size: Floats
    """(answer, 2): width and height."""


class Fitted(NamedTuple):
    """One frame fitted to every answerer."""

    name: str
    """The rule, without the numbers that were fitted."""
    cost: Floats
    """Minus the log likelihood, and what its free numbers cost."""
    placed: Floats
    """Where the answers lie in px, under this frame."""
    frames: list[Frame | None]
    """The frame of each answerer with its fitted numbers; None where no rule for other canvases follows."""


def fit_frames(answers: Answers) -> list[Fitted]:
    """Return every frame fitted to all answerers."""
    fitted: list[Fitted] = []
    for y_first, y_up in product((False, True), repeat=2):
        turned = _turned(answers, y_first, y_up)
        fitted += [_judge(turned, rule, y_first, y_up) for rule in _rules(turned)]
    return fitted


def probabilities(fitted: list[Fitted]) -> Floats:
    """Return how probable each frame is, (frame, answerer); what speaks against it before is in its cost."""
    costs = np.array([one.cost for one in fitted])
    odds = np.exp(costs.min(axis=0) - costs)
    return np.asarray(odds / odds.sum(axis=0))


class Rival(NamedTuple):
    """A frame that cannot be told from the best one: how probable it is, and how far apart both place the answers."""

    number: int
    probability: float
    apart_px: float


class FrameEstimate(NamedTuple):
    """The frame of one answerer: the best one, and those that its answers do not exclude."""

    number: int
    probability: float
    """Of the best one and of all that place the answers alike."""
    rivals: list[Rival]


def tell_frame(fitted: list[Fitted], chances: Floats, answerer: int) -> FrameEstimate:
    """Return the best frame of one answerer and the rivals it cannot be told from, the most probable first."""
    own = chances[:, answerer]
    best = int(own.argmax())
    placed = fitted[best].placed[answerer]
    rivals: list[Rival] = []
    for number, one in enumerate(fitted):
        if number == best:
            continue
        apart = float(np.quantile(np.abs(one.placed[answerer] - placed).max(axis=1), NEARLY_ALL))
        if own[number] > POSSIBLE or apart < ALIKE_PX:
            rivals.append(Rival(number, float(own[number]), apart))
    alike = sum(rival.probability for rival in rivals if rival.apart_px < ALIKE_PX)
    rivals.sort(key=lambda rival: -rival.probability)
    return FrameEstimate(best, min(1.0, float(own[best]) + alike), rivals)


class Rule(NamedTuple):
    """A rule with its fitted numbers, for all answerers."""

    name: str
    free: int
    """How many of its numbers were fitted."""
    scales: Floats
    """(answerer, answer, 2): px a number."""
    shift: Floats
    """(answer, 2): px from the corner that numbers are counted from to the corner of the picture."""
    frames: list[Frame | None]


def _turned(answers: Answers, y_first: bool, y_up: bool) -> Answers:
    """Return answers as if they had been given with x first and y from above."""
    said = answers.said[..., ::-1] if y_first else answers.said
    true = answers.true
    if y_up:
        true = np.stack([true[..., 0], answers.size[:, 1] - true[..., 1]], axis=-1)
    return Answers(said, true, answers.size)


def _rules(answers: Answers) -> Iterator[Rule]:
    yield from _of_edges(answers)
    yield from _of_pixels(answers)
    yield from _padded(answers)
    yield from _within_limits(answers)
    yield from _on_grids(answers)


def _of_edges(answers: Answers) -> Iterator[Rule]:
    count = answers.said.shape[0]
    none = np.zeros_like(answers.size)
    for edge in EDGES:
        scales = np.broadcast_to(answers.size / edge, answers.said.shape)
        yield Rule(f"0-{edge:g}", 0, scales, none, [Frame(edge=edge)] * count)
    edges = _whole(1.0 / _slope(answers.said * answers.size, answers.true))
    yield Rule(ANY_EDGE, 1, answers.size / edges[:, None, None], none, [Frame(edge=float(edge)) for edge in edges])


def _of_pixels(answers: Answers) -> Iterator[Rule]:
    count = answers.said.shape[0]
    none = np.zeros_like(answers.size)
    yield Rule("pixels", 0, np.ones_like(answers.said), none, [Frame()] * count)
    groups = _canvases(answers.size)
    for name, axes in ((ONE_SCALE, [slice(0, 2)]), (TWO_SCALES, [slice(0, 1), slice(1, 2)])):
        scales = np.ones_like(answers.said)
        for group, axis in product(groups, axes):
            scales[:, group, axis] = _slope(answers.said[:, group, axis], answers.true[:, group, axis])[:, None, None]
        yield Rule(name, len(groups) * len(axes), scales, none, [None] * count)


def _padded(answers: Answers) -> Iterator[Rule]:
    longer = answers.size.max(axis=1, keepdims=True)
    for place in (CORNER, MIDDLE):
        shift = (longer - answers.size) / 2.0 if place == MIDDLE else np.zeros_like(answers.size)
        edges = _whole(1.0 / _slope(answers.said * longer, answers.true + shift))
        scales = np.broadcast_to(longer / edges[:, None, None], answers.said.shape)
        yield Rule(f"0-N padded {place}", 1, scales, shift, [Frame(edge=float(one), padded=place) for one in edges])


def _within_limits(answers: Answers) -> Iterator[Rule]:
    """Yield pictures brought within a longest side or an area: each may be over the limit from some canvas on.

    A limit below all canvases is none of these: then nothing tells it from a padded square.
    """
    none = np.zeros_like(answers.size)
    for name in ("side", "area"):
        reach = answers.size.max(axis=1) if name == "side" else np.sqrt(answers.size.prod(axis=1))
        for least in sorted(set(reach.tolist()))[1:]:
            over = reach >= least
            limit = 1.0 / _slope(answers.said[:, over] * reach[over, None], answers.true[:, over])
            below = reach[~over].max()
            limit = np.clip(limit, below, least)
            scales = np.where(over[:, None], reach[:, None] / limit[:, None, None], 1.0)
            scales = np.broadcast_to(scales, answers.said.shape)
            frames = [_limited(name, float(one)) for one in limit]
            yield Rule(name, 1, scales, none, frames)


def _limited(name: str, limit: float) -> Frame | None:
    return Frame(side=round(limit)) if name == "side" else Frame(area=round(limit**2))


def _on_grids(answers: Answers) -> Iterator[Rule]:
    """Yield pictures brought onto a grid: with no limit of their area, and with the one that fits best."""
    groups = _canvases(answers.size)
    sizes = [(int(answers.size[group][0, 0]), int(answers.size[group][0, 1])) for group in groups]
    none = np.zeros_like(answers.size)
    free = tuple(resized(size, grid=GRID) for size in sizes)
    known = {tuple(resized(size, grid=GRID, area=int(area)) for size in sizes): int(area) for area in GRID_AREAS}
    limited = {grids: area for grids, area in known.items() if grids != free}
    scales = np.broadcast_to(_grid_scales(answers.size, groups, free), answers.said.shape)
    count = answers.said.shape[0]
    yield Rule("grid", 0, scales, none, [Frame(grid=GRID)] * count)
    tried = [_grid_scales(answers.size, groups, grids) for grids in limited]
    costs = np.array([np.abs(answers.said * one - answers.true).clip(max=200.0).sum(axis=(1, 2)) for one in tried])
    best = costs.argmin(axis=0)
    areas = list(limited.values())
    frames: list[Frame | None] = [Frame(grid=GRID, area=areas[one]) for one in best]
    yield Rule("grid within an area", 1, np.array(tried)[best], none, frames)


def _grid_scales(size: Floats, groups: list[Floats], grids: tuple[tuple[float, float], ...]) -> Floats:
    scales = np.ones_like(size)
    for group, grid in zip(groups, grids, strict=True):
        scales[group] = size[group] / np.array(grid)
    return scales


def _canvases(size: Floats) -> list[Floats]:
    """Return which answers are of each canvas."""
    return [np.all(size == one, axis=1) for one in np.unique(size, axis=0)]


def _whole(edges: Floats) -> Floats:
    """Return fitted edges as whole numbers: nobody counts to 1000.3."""
    return np.asarray(np.maximum(1.0, np.round(np.nan_to_num(edges, nan=1.0, posinf=1e9))))


def _slope(said: Floats, true: Floats) -> Floats:
    """Return the factor of each answerer that leaves the least sum of absolute errors: a weighted median of ratios."""
    x, y = said.reshape(said.shape[0], -1), true.reshape(true.shape[0], -1)
    weight = np.abs(x)
    ratio = np.divide(y, x, out=np.zeros_like(y), where=weight > 1e-9)
    order = np.argsort(ratio, axis=1)
    ratio, weight = np.take_along_axis(ratio, order, 1), np.take_along_axis(weight, order, 1)
    reached = np.cumsum(weight, axis=1) >= 0.5 * weight.sum(axis=1, keepdims=True)
    found = np.take_along_axis(ratio, reached.argmax(axis=1)[:, None], 1)[:, 0]
    return np.asarray(np.maximum(found, 1e-9))


def _judge(turned: Answers, rule: Rule, y_first: bool, y_up: bool) -> Fitted:
    placed = turned.said * rule.scales - rule.shift
    off = placed - turned.true
    errors = np.abs(
        off - np.median(off, axis=1, keepdims=True)
    )  # who is always off alike is in this frame all the same
    cost = _minus_log_likelihood(errors, turned.size) + 0.5 * rule.free * math.log(errors[0].size)
    cost = cost + ODD * ((rule.free > 0) + (rule.name in (ONE_SCALE, TWO_SCALES)))
    if y_up:
        placed = np.stack([placed[..., 0], turned.size[:, 1] - placed[..., 1]], axis=-1)
    words = [rule.name, *(["y first"] if y_first else []), *(["from below"] if y_up else [])]
    own = [None if one is None else replace(one, y_first=y_first, y_up=y_up) for one in rule.frames]
    return Fitted(", ".join(words), cost, placed, own)


def _minus_log_likelihood(errors: Floats, size: Floats) -> Floats:
    """Return what errors cost at the best width: of each answer, both axes are Laplacian, or it is wild."""
    middle = np.maximum(LEAST_PX, np.median(errors, axis=(1, 2)) / LOG_TWO)
    anywhere = np.log(WILD) - np.log(size.prod(axis=1))
    best = np.full(errors.shape[0], np.inf)
    for factor in WIDTHS:
        width = np.maximum(LEAST_PX, factor * middle)[:, None]
        meant = math.log(1.0 - WILD) - errors.sum(axis=2) / width - 2.0 * np.log(2.0 * width)
        best = np.minimum(best, -np.logaddexp(meant, anywhere).sum(axis=1))
    return best
