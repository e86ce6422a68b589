"""The arms of a task and its tools, by what the data and the model have: what cannot be asked is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..core.errors import UsageError
from ..core.looks import LOOK, in_look_arms
from ..core.message_parts import all_pictures, all_videos
from ..core.protocols import Model
from ..core.tasks import Task
from ..core.types import OFFERED, Sample
from ..core.variants import (
    BLANK,
    FRAMES_SHUFFLED,
    NO_VIDEO,
    ONE_FRAME,
    OTHER,
    SHUFFLED_OPTIONS,
    WITHOUT_PAGE,
    find_arms,
    parse_variant,
)
from .chosen_model import find_card
from .model_frame import model_frame, needed_frame
from .settings import LOOKS, RunSettings

if TYPE_CHECKING:
    from ..prompt.controls import OtherPictures

NEW = (BLANK, OTHER, WITHOUT_PAGE)
"""Controls that show something in the place of what a row has."""


def check_evidence(task: Task, samples: Iterable[Sample], others: OtherPictures | None, *, told: bool) -> None:
    """Refuse arms that some rows cannot be asked in: a figure over the others would be one of another test.

    `told`: arms were named as such; else only what stands in for a picture is looked at, and never in vain.
    """
    controls = {parse_variant(variant).get("control", ""): variant for variant in task.variants}
    arms = {name: variant for name, variant in controls.items() if name in NEW}
    arms |= {arm.name: arm.variant for arm in find_arms(task.variants)} if told else {}
    if not arms:
        return
    lacking: dict[str, list[str]] = {}
    count = 0
    for sample in samples:
        count += 1
        for arm, variant in arms.items():
            lack = _lack(sample, arm, variant, others)
            if lack:
                lacking.setdefault(lack, []).append(sample.id)
    for lack, ids in lacking.items():
        raise UsageError(f"task {task.name!r}: {_said(ids, count)} {lack}")


def _said(ids: Sequence[str], count: int) -> str:
    if len(ids) == count:
        return "every row"
    named = ", ".join(map(repr, ids[:3]))
    return f"{len(ids)} of {count} rows ({named}{', …' if len(ids) > 3 else ''})"


def _lack(sample: Sample, arm: str, variant: str, others: OtherPictures | None) -> str:
    """Return what a row lacks for an arm, and what to do about it; nothing where it can be asked."""
    pictures, videos = all_pictures(sample), all_videos(sample)
    if not pictures and not videos:
        return f"lacks a picture, and arm {arm} is about it: leave those rows out (--ids, --subset), or --arms"
    if arm in (NO_VIDEO, ONE_FRAME, FRAMES_SHUFFLED) and not videos:
        return f"lacks a video, which arm {arm} is about: arms of pictures are none, blank and other"
    if arm == SHUFFLED_OPTIONS and (sample.form not in OFFERED or len(sample.options) < 2):
        return f"lacks options, whose order arm {arm} changes: leave the arm out"
    if arm == WITHOUT_PAGE:
        return _lacks_pages(sample, variant)
    if arm == OTHER and (others is None or others.find(sample) is None):
        return "has no other picture of the task with another answer: leave arm other out, or add rows"
    return ""


def _lacks_pages(sample: Sample, variant: str) -> str:
    from ..prompt.controls import choose_pages, needle_pages

    axes = {axis: value for axis, value in parse_variant(variant).items() if axis != "control"}
    wanted, shown = needle_pages(sample, axes.get("pages", "")), choose_pages(sample, axes)
    if not wanted:
        return "does not say which page holds the answer (column evidence_pages): leave arm without-page out"
    if all((image.page or place) in wanted for place, image in enumerate(shown, start=1)):
        return "has no page but the one that holds the answer: arm none asks that"
    return ""


AUTO, CARD = "auto", "card"
ASKS_ONE_REPLY = ("generate", "generation", "document", LOOK)
"""Inferencers in whose place looking again may stand: each trial is one question and its reply."""
CARRIES = {"openai": "user", "openai-responses": "tool", "anthropic": "tool", "gemini": "tool"}
"""API -> where a result's picture stands; those that are missing have no native calls."""
FRAME = "0-1000"
LONGEST = 2048
"""The side up to which regions are enlarged for a model of which it is not known to what side it shrinks pictures."""


def with_tools(task: Task, settings: RunSettings, model: Model) -> Task:
    """Return the task as it is asked with tools; unchanged where none are offered."""
    if not settings.tools and task.infer != LOOK:
        _refuse_alone(settings)
        return task
    if settings.batch:
        raise UsageError("--tools is not for --batch: each turn needs the reply to the one before; leave one out")
    if task.infer not in ASKS_ONE_REPLY:
        raise UsageError(f"--tools is not for --infer-method {task.infer}: a reply with calls is needed; leave one out")
    if settings.max_cost is not None and task.params.max_tokens is None:
        raise UsageError("--max-cost with --tools needs --max-tokens: turns grow by their replies")
    options = {**(task.infer_options if task.infer == LOOK else {}), **_told(settings)}
    options["dialect"] = _dialect(options.get("dialect", AUTO), model)
    _refuse_unused(options["dialect"], settings)
    options["frame"] = _frame(options.get("frame", CARD), model, settings)
    options["carry"] = _carry(options.get("carry", AUTO), model)
    options.setdefault("longest", _longest(model, settings))
    options.update(_limits(model, settings))
    variants = in_look_arms(task.variants, settings.tool_arms)
    protocol = task.protocol
    if protocol and task.infer != LOOK:  # its card's numbers are without
        protocol = f"{protocol}, with {'+'.join(options['tools'])}"
    return replace(task, infer=LOOK, infer_options=options, variants=variants, protocol=protocol)


def _longest(model: Model, settings: RunSettings) -> int:
    """Return the side up to which regions are enlarged: what a server takes may be far more than its model sees."""
    told, frame = settings.image_policy, model_frame(model, settings).frame
    seen = (told.max_side if told is not None else None) or (frame.side if frame is not None else None) or LONGEST
    return min(seen, model.image_policy.max_side or seen)


def _limits(model: Model, settings: RunSettings) -> dict[str, int]:
    """Return what the model's card says of its limits: a look that would pass them is not sent."""
    card = find_card(model, settings).card
    known = {"context": card.context, "pictures": card.max_images} if card is not None else {}
    return {name: limit for name, limit in known.items() if limit}


def _refuse_alone(settings: RunSettings) -> None:
    told = next((name for name in LOOKS if getattr(settings, name)), None)
    if told is not None:
        raise UsageError(f"--{told.replace('_', '-')} means nothing without --tools: add --tools zoom, or leave it out")


def _refuse_unused(dialect: str, settings: RunSettings) -> None:
    """Refuse what the way of writing calls leaves no choice of: a preset has its own frame and limits."""
    from ..prompt.look_words import NATIVE, PRESETS

    fixed = {"carry": "a place in native messages"} if dialect != NATIVE else {}
    if preset := PRESETS.get(dialect):
        own = {"max_turns": preset.max_turns, "max_looks": preset.max_looks}
        fixed |= {"tool_frame": f"its frame is {preset.frame}"}
        fixed |= {name: f"its own limit is {limit}" for name, limit in own.items() if limit}
    for name, why in fixed.items():
        if getattr(settings, name) not in (None, "", AUTO, CARD):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} means nothing with calls in the dialect {dialect} ({why}): leave it out")


def _told(settings: RunSettings) -> dict[str, Any]:
    """Return the options that were told."""
    names = {"tool_dialect": "dialect", "tool_frame": "frame"}
    kept = [name for name in LOOKS if name != "tool_arms"]
    return {names.get(name, name): getattr(settings, name) for name in kept if getattr(settings, name)}


def _family(model: Model) -> str:
    return str(getattr(getattr(model, "dialect", None), "family", ""))


def _dialect(told: str, model: Model) -> str:
    from ..prompt.look_words import NATIVE, TEXT

    if told == AUTO:
        return NATIVE if _family(model) in CARRIES else TEXT
    if told == NATIVE and _family(model) not in CARRIES:
        raise UsageError(f"--tool-dialect native: {model.name} has no calls of its own; use text or a preset")
    return told


def _frame(told: str, model: Model, settings: RunSettings) -> str:
    """Return the frame that tools declare: as told, as the model's card has it, or 0-1000.

    The order of corners is the tool's own, whatever the model does by itself; squares and y from below are no tool's.
    """
    if told != CARD:
        return replace(needed_frame(model, settings, told, "--tool-frame"), y_first=False).name
    known = model_frame(model, settings).frame
    if known is not None and not known.padded and not known.y_up:
        return replace(known, y_first=False).name
    return FRAME


def _carry(told: str, model: Model) -> str:
    return CARRIES.get(_family(model), "user") if told == AUTO else told
