"""Every reader of options that a card can name: other harnesses', benchmarks' own, and those that compare values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...extract.choice import extract_choice
from .fallbacks import PEER_READERS, ReadLetter
from .lmms_rules import read_mmmu
from .math_answers import read_maths_choice
from .vlmevalkit_rules import can_infer


def read_mmmu_pro(reply: str, options: Mapping[str, str]) -> str | None:
    """MMMU-Pro's own: the one letter that occurs after the last `Answer:`; else MMMU's reader on the whole reply."""
    if "Answer:" in reply:
        tail = reply.rpartition("Answer:")[2].strip()
        named = [mark for mark in options if mark in tail]
        if len(named) == 1:
            return named[0]
    return read_mmmu(reply, options)


def read_cot_line(reply: str, options: Mapping[str, str]) -> str | None:
    """VLMEvalKit's MMMU-Pro: the one capital of the last line that begins with `Answer:`; else its rules on that."""
    tails = [line.strip().removeprefix("Answer:") for line in reply.splitlines() if line.strip().startswith("Answer:")]
    if not tails:
        return can_infer(reply, options)
    capitals = {character for character in tails[-1] if character.isascii() and character.isupper()}
    if len(capitals) == 1 and (only := capitals.pop()) in options:
        return only
    return can_infer(tails[-1].strip(), options)


def read_nothing_but_letter(reply: str, options: Mapping[str, str]) -> str | None:
    """lmms-eval's MMMU-Pro vision: the reply is compared as it is, so `B.` and `(B)` are wrong answers."""
    return reply if reply else None


def read_blink(reply: str, options: Mapping[str, str]) -> str | None:
    """BLINK's own: the reply is a letter or `(X)`; else the only `(X)` of the last paragraph, else of the whole."""
    text = reply.strip()
    bare = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    if bare in options:
        return bare
    for part in (text.split("\n\n")[-1], text):
        named = [mark for mark in options if f"({mark})" in part]
        if len(named) == 1:
            return named[0]
    return None


def read_stated_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """MathVista: the reply is an option's text; else what our reader finds, in the place of its language model."""
    same = next((mark for mark, text in options.items() if reply.strip() == text), None)
    return same or extract_choice(reply, dict(options)).letter


CHOICE_READERS: Mapping[str, ReadLetter] = MappingProxyType(
    {name: reader.read for name, reader in PEER_READERS.items()}
    | {
        "mmmu": read_mmmu,
        "mmmu-pro": read_mmmu_pro,
        "vlmevalkit-cot": read_cot_line,
        "nothing-but-letter": read_nothing_but_letter,
        "blink": read_blink,
        "mathvision": read_maths_choice,
        "mathvista": read_stated_choice,
    }
)
"""By the name that cards use (`score_options.reader`)."""
