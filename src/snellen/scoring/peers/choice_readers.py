"""Every reader of options that a card can name: other harnesses', benchmarks' own, and those that compare values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...extract.choice import extract_choice
from .fallbacks import PEER_READERS, ReadLetter
from .lmms_rules import read_mmmu, read_mmmu_official
from .math_answers import read_boxed_choice, read_maths_choice


def read_mmmu_pro(reply: str, options: Mapping[str, str]) -> str | None:
    """MMMU-Pro's own: the one letter that occurs after the last `Answer:`; else MMMU's reader on the whole reply."""
    if "Answer:" in reply:
        tail = reply.rpartition("Answer:")[2].strip()
        named = [mark for mark in options if mark in tail]
        if len(named) == 1:
            return named[0]
    return read_mmmu(reply, options)


def read_blink(reply: str, options: Mapping[str, str]) -> str | None:
    """BLINK's own: the reply is a letter or `(X)`, else the only word that is `(X)`, in the last paragraph first."""
    whole = [mark for mark in options if reply in (mark, f"({mark})")]
    if whole:
        return whole[0]
    in_all, in_last = (_words_in_brackets(part, options) for part in (reply, reply.rsplit("\n\n", maxsplit=1)[-1]))
    return in_last[0] if len(in_last) == 1 else in_all[0] if len(in_all) == 1 else None


def _words_in_brackets(text: str, options: Mapping[str, str]) -> list[str]:
    words = text.split()
    return [mark for mark in options if f"({mark})" in words]


_MMSTAR_STARTS = ("", "(", "option ", "the answer is ")


def read_mmstar(reply: str, options: Mapping[str, str]) -> str | None:
    """MMStar's own: in lower case, the letter the reply begins with, at once or after `(`, `option` or a phrase."""
    text = reply.lower().strip().replace("\n", " ")
    said = [text[len(start) : len(start) + 1].upper() for start in _MMSTAR_STARTS if text.startswith(start)]
    return next((letter for letter in said if letter in options), None)


def read_stated_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """MathVista: the reply is an option's text; else what our reader finds, in the place of its language model."""
    same = next((mark for mark, text in options.items() if reply.strip() == text), None)
    return same or extract_choice(reply, dict(options)).letter


CHOICE_READERS: Mapping[str, ReadLetter] = MappingProxyType(
    {name: reader.read for name, reader in PEER_READERS.items()}
    | {
        "mmmu": read_mmmu,
        "mmmu-official": read_mmmu_official,
        "mmmu-pro": read_mmmu_pro,
        "blink": read_blink,
        "mmstar": read_mmstar,
        "mathvision": read_maths_choice,
        "vlmevalkit-boxed": read_boxed_choice,
        "mathvista": read_stated_choice,
    }
)
"""By the name that cards use (`score_options.reader`)."""
