"""Simulated agents that look again: they use a known share of their crops, so the truth of every figure is known.

An agent calls a tool for some questions; its crop holds what is asked for in some of these. A crop that it uses is
answered well if it holds it; one from elsewhere misleads it. Whatever it does not use leaves its answer as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snellen.core.types import Estimate
from snellen.kits.looks.second_look import Replies, chance_flips, reliance, split_worth
from snellen.stats.paired import paired_difference

CALLS, AIM, SEES, MISLED = 0.8, 0.8, 0.95, 0.3
"""How often a tool is called, a crop holds it, such a crop is read, and what of an answer a wrong crop leaves."""
KNOWN = (2.0, 1.5)
"""Beta law of a question's chance to be right without looking."""
ARMS = ("plain", "base", "grey", "none", "elsewhere", "whole", "gold")
EFFECTS = {
    "worth": ("plain", "base"),
    "picture_effect": ("grey", "base"),
    "misled": ("elsewhere", "none"),
    "zoom_effect": ("whole", "base"),
}
"""Name -> (from, to)."""
Outcomes = NDArray[np.float64]


class Asked(NamedTuple):
    """What an agent answered: arm -> question x repeat, and which questions it called a tool for."""

    right: Mapping[str, Outcomes]
    called: NDArray[np.bool_]


def ask(draw: np.random.Generator, use: float, questions: int, repeats: int = 1, *, greedy: bool = False) -> Asked:
    """Ask one agent in every arm. `greedy`: the same prompt is always answered alike."""
    known = draw.beta(*KNOWN, questions)
    called = draw.random(questions) < CALLS
    used = called & (draw.random(questions) < use)
    found = used & (draw.random(questions) < AIM)
    chances = dict.fromkeys(ARMS, known) | {
        "base": np.where(found, SEES, known),
        "elsewhere": np.where(used, MISLED * known, known),
        "gold": np.where(used, SEES, known),
    }
    luck = draw.random((questions, 1)) if greedy else None
    right = {}
    for arm, chance in chances.items():
        drawn = draw.random((questions, repeats)) if luck is None else np.repeat(luck, repeats, axis=1)
        right[arm] = (drawn < chance[:, None]).astype(np.float64)
    for arm in () if greedy else ARMS[2:]:  # no call: the arms are settled as copies of the true one
        right[arm][~called] = right["base"][~called]
    return Asked(right, called)


def truths(use: float) -> dict[str, float]:
    """Return what the figures are over all questions there could be."""
    a, b = KNOWN
    mean, square = a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))
    seen = CALLS * use * AIM
    gain = seen * (SEES - mean)
    return {
        "worth": gain,
        "picture_effect": gain,
        "zoom_effect": gain,
        "misled": CALLS * use * (1.0 - MISLED) * mean,
        "reliance": AIM,
        "repaired": seen * (SEES - (1.0 + SEES) * mean + square),
        "spoilt": -seen * (SEES * mean - square),
    }


def figures(asked: Asked) -> dict[str, Estimate]:
    """Return the figures of one agent, as the product makes them."""
    means = {arm: values.mean(axis=1) for arm, values in asked.right.items()}
    found = {name: paired_difference(means[one], means[other]) for name, (one, other) in EFFECTS.items()}
    found["reliance"] = reliance(means["base"], means["grey"], means["gold"])
    plain = asked.right["plain"]
    if plain.shape[1] > 1:
        questions = np.repeat(np.arange(plain.shape[0]), plain.shape[1])
        flips = chance_flips(plain.ravel(), questions, plain.shape[0])
        called = asked.called.astype(np.float64)
        split = split_worth(means["plain"], Replies(means["base"], means["base"] * called, called), flips)
        found |= {name: part.beyond for name in ("repaired", "spoilt") if (part := getattr(split, name)).beyond}
    return found


class Tried(NamedTuple):
    """What many agents of one use gave for one figure."""

    name: str
    covered: float
    called_an_effect: float
    told: int
    """Agents for which the figure was not absent."""
    half_width: float
    bias: float


def try_agents(use: float, agents: int, questions: int, repeats: int = 1, *, greedy: bool = False) -> Iterator[Tried]:
    """Yield, figure by figure, how often intervals of many agents hold the truth, and how often 0 lies outside."""
    draw = np.random.default_rng([round(100 * use), questions, repeats, int(greedy)])
    every = [figures(ask(draw, use, questions, repeats, greedy=greedy)) for _ in range(agents)]
    for name, truth in truths(use).items():
        if greedy and name in ("repaired", "spoilt"):
            continue  # truths are those of replies drawn apart
        own = [one[name] for one in every if name in one and one[name].value is not None]
        bounds = np.array([one.ci95 for one in own if one.ci95 is not None]).reshape(-1, 2)
        if own:
            low, high = bounds.T
            yield Tried(
                name,
                float(np.sum((low - 1e-9 <= truth) & (truth <= high + 1e-9)) / len(own)),
                float(np.mean((low > 1e-9) | (high < -1e-9))),
                len(own),
                float(np.mean(high - low) / 2),
                float(np.mean([one.value or 0.0 for one in own])) - truth,
            )
