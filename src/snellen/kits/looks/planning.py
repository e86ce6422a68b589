"""A task to the same asked with tools, by what settings, model and its card say; and what its turns may come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ...api.chosen_model import find_card
from ...api.model_frame import model_frame, needed_frame
from ...api.plan import Plan, PlannedTask
from ...api.run_cost import Turns, longest_request, size_as_sent
from ...api.settings import RunSettings, rows_for
from ...core.errors import UsageError
from ...core.looks import LOOK, in_look_arms
from ...core.protocols import Model
from ...core.tasks import Task
from ...core.types import Image, Request, Sample
from ...model.served.model_card import ASSUMED, FoundCard, ModelCard
from .films import MOST_FRAMES, own_size
from .inferencer import CALLS_A_TURN, Setup
from .inferencer import LOOK as INFERENCER
from .views import SHRINKING
from .words import NATIVE, PRESETS, TEXT

SETTINGS = rows_for("look")
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
    told = next((name for name in SETTINGS if getattr(settings, name)), None)
    if told is not None:
        raise UsageError(f"--{told.replace('_', '-')} means nothing without --tools: add --tools zoom, or leave it out")


def _refuse_unused(dialect: str, settings: RunSettings) -> None:
    """Refuse what the way of writing calls leaves no choice of: a preset has its own frame and limits."""
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
    kept = [name for name in SETTINGS if name != "tool_arms"]
    return {names.get(name, name): getattr(settings, name) for name in kept if getattr(settings, name)}


def _family(model: Model) -> str:
    return str(getattr(getattr(model, "dialect", None), "family", ""))


def _dialect(told: str, model: Model) -> str:
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


WORDS_A_LOOK = 120
"""Tokens around the picture of a result: what is told, twice, and the ids."""


def growth(
    planned: PlannedTask, plan: Plan, found: FoundCard, looked_at: Sequence[tuple[Sample, Request]]
) -> Turns | None:
    """Return how a trial with tools grows at most; None where nothing limits a reply."""
    setup, limit = Setup.of(INFERENCER.read_options(planned.task)), planned.task.params.max_tokens
    if limit is None:
        return None
    card = found.card or ModelCard(plan.model.name)
    formula, side = card.pictures or ASSUMED, setup.options.longest
    pictures = [image for _, request in looked_at for turn in request.messages for image in turn.images]
    sizes = [(side, side), *filter(None, (_largest_look(one, plan, setup.terms.rules.grid) for one in pictures))]
    calls = setup.preset.calls_a_turn if setup.preset else CALLS_A_TURN
    calls *= MOST_FRAMES if "frame" in setup.options.tools else 1
    first = max(longest_request(request, plan, card, formula) for _, request in looked_at)
    return Turns(setup.options.max_turns, first, limit + calls * (max(map(formula.count, sizes)) + WORDS_A_LOOK))


def _largest_look(image: Image, plan: Plan, grid: int) -> tuple[int, int] | None:
    """Return the size of a look at all of a picture: what was shrunk to be shown is looked at in its own size."""
    source = own_size(image)
    edits = tuple(edit for edit in source.edits if not edit.startswith(SHRINKING))
    size = size_as_sent(msgspec.structs.replace(source, edits=edits), plan.model.image_policy)
    return size and (size[0] + grid, size[1] + grid)
