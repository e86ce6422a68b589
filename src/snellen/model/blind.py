"""Baselines that never look: they answer from the options alone and show how much of a benchmark leaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.errors import UsageError, did_you_mean
from ..core.ids import rng
from ..core.protocols import Capability, EncodedImages, ImagePolicy
from ..core.types import Prediction, Request, Timing
from .options import ModelOptions

Choose = Callable[[Request, Sequence[str]], int]


def choose_shortest(request: Request, shown: Sequence[str]) -> int:
    """Choose the option with the fewest characters, the first of equals."""
    return min(range(len(shown)), key=lambda index: len(shown[index]))


def choose_longest(request: Request, shown: Sequence[str]) -> int:
    """Choose the option with the most characters, the first of equals."""
    return max(range(len(shown)), key=lambda index: (len(shown[index]), -index))


def choose_first(request: Request, shown: Sequence[str]) -> int:
    """Choose the option shown first."""
    return 0


def choose_majority(request: Request, shown: Sequence[str]) -> int:
    """Choose the option that shares most words with the others: distractors are often built around the answer."""
    bags = [Counter(option.casefold().split()) for option in shown]

    def _agreement(index: int) -> tuple[int, int]:
        others = (bag for other, bag in enumerate(bags) if other != index)
        return sum((bags[index] & bag).total() for bag in others), -index

    return max(range(len(shown)), key=_agreement)


def choose_no_period(request: Request, shown: Sequence[str]) -> int:
    """Choose the first option that does not end in a full stop, as answers written by people often do not."""
    return next((index for index, option in enumerate(shown) if not option.rstrip().endswith((".", "。"))), 0)


def choose_random(request: Request, shown: Sequence[str]) -> int:
    """Choose by a draw that depends on the trial alone."""
    key = request.key
    return rng("blind", key.task, key.sample, key.variant, key.repeat).randrange(len(shown))


CHOOSERS: dict[str, Choose] = {
    "shortest": choose_shortest,
    "longest": choose_longest,
    "first": choose_first,
    "majority": choose_majority,
    "no-period": choose_no_period,
    "random": choose_random,
}


def create(name: str, options: ModelOptions) -> Blind:
    """Return the model `blind/NAME`."""
    if name not in CHOOSERS:
        near, known = did_you_mean(name, CHOOSERS), ", ".join(CHOOSERS)
        raise UsageError(f"no blind baseline {name!r}{near}; write blind/NAME with one of: {known}")
    options.allow_arguments(f"blind/{name}")
    return Blind(name, options)


class Blind:
    """Answers with the mark of the option its rule chooses; "yes", or nothing, where there are no options."""

    capabilities = frozenset({Capability.GENERATE, Capability.LIKELIHOOD, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = False
    """Its answers depend on the trial, not on the text alone, and cost nothing."""

    def __init__(self, rule: str, options: ModelOptions) -> None:
        self.name = f"blind/{rule}"
        self._choose = CHOOSERS[rule]
        self._clock = options.clock

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Answer without looking at any picture."""
        now = self._clock.monotonic()
        timing = Timing(now, now)
        if request.choices:
            chosen = self._choose(request, request.choices)
            values = tuple(0.0 if index == chosen else -1.0 for index in range(len(request.choices)))
            return Prediction(request.key, loglikelihoods=values, timing=timing)
        return Prediction(request.key, text=self._text(request), timing=timing, finish="stop")

    def _text(self, request: Request) -> str:
        if request.shown:
            return request.marks[self._choose(request, request.shown)]
        if "yes or no" in request.messages[-1].text.casefold():
            return ("yes", "no")[self._choose(request, ("yes", "no"))]
        return ""

    async def check(self) -> None:
        """Nothing can be missing."""

    def identity(self) -> Mapping[str, Any]:
        """Return the name: it says all."""
        return {"model": self.name, "version": 1}

    async def close(self) -> None:
        """Nothing is held."""
