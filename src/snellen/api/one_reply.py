"""A reply and its options to what is read from it, and why: what `snellen extract` prints."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..core.errors import UsageError
from ..extract.choice import extract_choice, why
from ..extract.extraction import RULE_SET
from ..extract.option_set import derive_marks


class Reading(Struct, frozen=True):
    """What was read from one reply: the option, the rule that decided, the part it read, and why in words."""

    letter: str | None
    text: str | None
    rule: str
    reason: str | None
    span: tuple[int, int] | None
    why: str
    rules: int | str


def read_reply(
    reply: str,
    options: Sequence[str],
    *,
    marks: Sequence[str] = (),
    finish: str | None = None,
    profile: str = "snellen",
) -> Reading:
    """Read which option a reply chooses and say why; without `marks` the options are lettered A, B, C, …"""
    if not options:
        raise UsageError("no options given: name each with --option TEXT, in the order they were shown")
    named = tuple(marks) or derive_marks(len(options))
    if len(named) != len(options) or len({mark.lower() for mark in named}) != len(named):
        raise UsageError(f"{len(named)} marks for {len(options)} options: give each option one mark of its own")
    shown = dict(zip(named, options, strict=True))
    found = extract_choice(reply, shown, profile=profile, finish=finish)
    text = None if found.letter is None else shown[found.letter]
    rules: int | str = RULE_SET if profile == "snellen" else profile
    return Reading(found.letter, text, found.rule, found.reason, found.span, why(found, reply), rules)
