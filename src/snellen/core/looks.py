"""Looking again: what a model was shown by tools during a trial, how its trial ended, and the arms of it.

The interface of everything that reads such runs:

- A trial with tools is a row of `predictions` as any other: its request is that of the last turn (the whole talk), its
  text the final reply. `end_of(prediction)` says how it ended; None for a trial without tools.
- `RunReader.turns(key)` gives its turns in order, each with the request that was sent, the reply, and the `Look`s that
  this request showed for the first time: what the calls of the turn before came to. Turn 0 is shared by the arms.
- An arm is a variant `look=NAME` beside the variant without it, where crops are true (`arm_of`, `variant_of_arm`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .errors import UsageError
from .types import Image, Prediction
from .variants import check_named, format_variant, in_arms, parse_variant

AXIS = "look"
FLAG = "--tool-arms"
LOOK = "look"
"""The inferencer that asks with tools: a task's `infer`."""
BASE, PLAIN, NOTHING, GREY, ELSEWHERE, WHOLE, GOLD = "base", "plain", "none", "grey", "elsewhere", "whole", "gold"
LOOK_ARMS = (BASE, PLAIN, NOTHING, GREY, ELSEWHERE, WHOLE, GOLD)
"""`base` shows what was asked for; `plain` offers no tools; the others show something else instead of the crop."""

CALL_CLASSES = (
    *("unknown-tool", "malformed", "unclosed", "schema", "frame", "empty", "aspect", "picture", "repeat"),
    *("too-many", "in-thought", "not-offered"),
)
"""What may be wrong with a call. The model is told, the trial goes on."""
ANSWERED, FORCED, STOPPED, NO_ANSWER, UNPARSED = "answered", "forced", "stopped", "no-answer", "unparsed"
CONTEXT, PICTURES, HISTORY_REFUSED, TOOLS_IGNORED = "context", "pictures", "history-refused", "tools-ignored"
ENDS = (
    ANSWERED,
    FORCED,
    STOPPED,
    NO_ANSWER,
    UNPARSED,
    CONTEXT,
    PICTURES,
    HISTORY_REFUSED,
    TOOLS_IGNORED,
)
"""How a trial ends. `forced`, `context` and `pictures` are answers that were forced, the last two by a refusal."""
UNSCORED_ENDS = {
    STOPPED: "the looks ended before an answer (--at-limit stop)",
    NO_ANSWER: "no answer: the last turn called a tool again, or was empty",
    UNPARSED: "the reply holds a call that could not be read",
}
"""Ends that leave nothing to score, and why."""
DETAIL = "look"
"""Where a prediction's `detail` keeps its `LookEnd`."""

Box = tuple[int, int, int, int]
"""left, top, right, bottom in pixels; right and bottom are the first ones outside."""


class Look(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one call came to: a picture, a text, or a class of error."""

    turn: int
    """The turn whose reply called, from 0."""
    tool: str
    """As the model named it."""
    call: str = ""
    """The id of the call."""
    picture: int = 0
    """The picture it is about, counted from 1 in order of showing; 0: none, or none that exists."""
    problem: str = ""
    """Its class, one of `CALL_CLASSES`; empty: it was done."""
    region: Box | None = None
    """What was looked at, in pixels of the upright source file, whatever was shown of it before."""
    shown: int = 0
    """The number that the new picture has; 0: none was shown."""
    size: tuple[int, int] | None = None
    """Width and height of the new picture as it was made, before the model's own size policy."""
    enlargement: float = 1.0
    """Pixels of the new picture for one of the source, along a side."""
    image: Image | None = None
    """What was shown; in an arm, what was shown instead."""
    told: str = ""
    """The text that the model was told; the same in all arms."""
    notes: tuple[str, ...] = ()
    """What was mended on the way: `swapped`, `clamped`, `grown`, `renamed`, `loose` (read although it was no JSON)."""


class LookEnd(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a trial with tools went, as a whole; stands in `Prediction.detail["look"]`."""

    end: str
    """One of `ENDS`."""
    turns: int = 1
    """Requests of this trial that were answered, a shared first one included."""
    calls: int = 0
    """Calls in all its replies, good and bad; calls = looks + the sum of `classes`."""
    looks: int = 0
    """Calls that were done."""
    classes: dict[str, int] = {}
    """Class -> how many calls were of it."""
    limit: str = ""
    """Which limit ended it: `max-turns`, `max-looks`, `repeat`, `pictures` or `context`; empty: none."""
    seconds: float = 0.0
    """The time of all its turns together."""
    shared: int = 0
    """Turns that another arm's trial has asked and paid for."""
    foreign: int = 0
    """Pictures or programs that the server ran by itself: no looks of ours."""
    tokens: tuple[int, int] = (0, 0)
    """Input and output tokens of all its turns, shared ones included; 0 where the server does not count."""


def end_of(prediction: Prediction) -> LookEnd | None:
    """Return how a trial with tools ended; None where no tools were offered (as in the arm `plain`)."""
    told: Any = prediction.detail.get(DETAIL)
    return None if told is None else msgspec.convert(told, LookEnd)


def why_unscored(prediction: Prediction) -> str:
    """Return why the reply of a trial with tools is no answer; empty where it is one."""
    told = prediction.detail.get(DETAIL)
    return UNSCORED_ENDS.get(told["end"], "") if told else ""


def arm_of(variant: str) -> tuple[str, str]:
    """Return the arm of a variant and the variant that it is compared with, `base` and itself where it is none."""
    if AXIS not in variant:
        return BASE, variant
    axes = dict(parse_variant(variant))
    return axes.pop(AXIS, BASE), format_variant(axes)


def variant_of_arm(variant: str, arm: str) -> str:
    """Return the variant of an arm; `base` is the variant itself."""
    return variant if arm == BASE else format_variant({**parse_variant(variant), AXIS: arm})


def in_look_arms(variants: Sequence[str], arms: Sequence[str]) -> tuple[str, ...]:
    """Return every variant in every arm; unknown arms, and arms without `base` to compare with, are refused."""
    check_named(arms, LOOK_ARMS, FLAG)
    if arms and BASE not in arms:
        raise UsageError(f"{FLAG} {','.join(arms)}: name `{BASE}` too, which the others are compared with")
    return in_arms(variants, arms or (BASE,), {arm: {} if arm == BASE else {AXIS: arm} for arm in LOOK_ARMS}, FLAG)
