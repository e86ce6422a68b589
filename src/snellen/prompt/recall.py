"""A sample to a request for how its text goes on: whoever has not seen the test cannot know (`control=recall`)."""

from __future__ import annotations

from msgspec.structs import replace

from ..core.message_parts import without_markers
from ..core.types import Params, Request, Sample, TrialKey, Turn
from ..core.variants import RECALL as RECALL  # noqa: PLC0414 - part of what this module is
from .marks import letter_mark

ASK = "This is the beginning of a question of a published test. Reply with nothing but the text that comes next."
MOST_TOKENS = 48
"""A reply is compared with a few words: more need not be paid for."""
NEXT_WORDS = 8
"""Words of a question without options that are to come next."""


def split_text(sample: Sample) -> tuple[str, str]:
    """Return the text that is shown and what comes next: the second option, or the second half of the question."""
    question = without_markers(sample.question).strip()
    if len(sample.options) > 1:
        return f"{question}\n{letter_mark(0)}. {sample.options[0]}\n{letter_mark(1)}.", sample.options[1]
    words = question.split()
    half = len(words) // 2
    return " ".join(words[:half]), " ".join(words[half : half + NEXT_WORDS])


def recall_request(sample: Sample, key: TrialKey, params: Params) -> Request:
    """Return the request of a trial that asks for the next words: no picture, no options to choose from."""
    shown, _ = split_text(sample)
    most = min(params.max_tokens or MOST_TOKENS, MOST_TOKENS)
    return Request(key, (Turn("user", f"{ASK}\n\n{shown}"),), replace(params, max_tokens=most))
