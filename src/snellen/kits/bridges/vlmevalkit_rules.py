"""VLMEvalKit's way from a reply to an option or to yes and no, as of e8e78f0 (August 2026), misreadings included."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Final

"""What it writes into the reply of a call that failed: in full `… via API.`, of local models `…: TYPE MESSAGE`."""
DECLINED: Final = "Z"
"""The letter it uses for a reply that chooses nothing: never right."""
REFUSALS: Final = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
LAST_WORDS = 4
"""A letter counts only if it first stands among so many words at the end."""
_MARKS = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_ANSWER_IS = re.compile(r"answer\s+is\s+\**([ABCD])", re.IGNORECASE)
_VQA_MARKS = str.maketrans(dict.fromkeys(';/[]"{}()=+\\_-><@`,?!.:', " "))


def infer_letter(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter its first rule takes: one alone among the words and near the end, else after `answer is`."""
    if "Failed to obtain answer via API" in reply:
        return None
    if any(refusal in reply for refusal in REFUSALS):
        return DECLINED
    words = reply.translate(_MARKS).split()
    named = [letter for letter in options if letter in words]
    if len(named) == 1 and words.index(named[0]) >= len(words) - LAST_WORDS:
        return named[0]
    return DECLINED if not named and DECLINED in words else _announced(reply, options)


def _announced(reply: str, options: Mapping[str, str]) -> str | None:
    announced = _ANSWER_IS.search(reply)
    letter = announced[1].upper() if announced else ""
    return letter if letter in options else None


def infer_from_text(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the only option whose text the reply contains; a reply over twice as long as all options is not read."""
    lowered = reply.lower()
    if len(lowered) > 2 * sum(map(len, options.values())):
        return None
    named = [letter for letter, text in options.items() if text.lower() in lowered]
    return named[0] if len(named) == 1 else None


def can_infer(reply: str, options: Mapping[str, str]) -> str | None:
    """Return the letter VLMEvalKit reads without a judge; None where it would ask one (or count the reply as wrong)."""
    return infer_letter(reply, options) or infer_from_text(reply, options)


def can_infer_after_answer(reply: str, options: Mapping[str, str]) -> str | None:
    """MMMU-Pro with a chain of thought: of the only line that begins with `Answer:` what follows, by `can_infer`.

    A line without another capital is A, for the one of `Answer`; without such a line, or with several, all is read.
    """
    lines = [line.strip() for line in reply.split("\n") if line.strip().startswith("Answer:")]
    if len(lines) != 1:
        return can_infer(reply, options)
    capitals = {character for character in lines[0] if character in string.ascii_uppercase}
    return can_infer(capitals.pop() if len(capitals) == 1 else lines[0].removeprefix("Answer:"), options)


def vlmevalkit_yes_no(reply: str) -> str | None:
    """Return `Yes` or `No` if just one of the words occurs, else None: `Unknown`, which is wrong without a judge."""
    words = reply.lower().translate(_VQA_MARKS).split()
    said = {word for word in words if word in ("yes", "no")}
    return said.pop().capitalize() if len(said) == 1 else None
