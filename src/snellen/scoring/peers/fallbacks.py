"""What a harness does with a reply it cannot read: counts it as wrong, draws a letter, or leaves it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ...core.errors import UsageError, did_you_mean
from ...core.ids import rng
from ...extract.profiles import parse_aisbench, parse_flageval
from .evalscope_rules import read_last_answer
from .inspect_rules import read_answer_line
from .lmms_rules import (
    read_first_character,
    read_first_letter,
    read_first_of_four,
    read_letter_or_dotted,
    read_mcq,
    read_mmmu,
    read_raw_letter,
)
from .vlmevalkit_rules import can_infer, can_infer_after_answer

ReadLetter = Callable[[str, Mapping[str, str]], str | None]
WRONG, RANDOM = "wrong", "random"
SEED = 0


class PeerReader(Struct, frozen=True):
    """One harness's rule for a lettered reply, by name, and what it does where the rule finds nothing."""

    name: str
    read: ReadLetter
    unread: str = WRONG
    """`wrong`, or `random`: a letter is drawn, so that the same file scores differently each time."""
    failures: str = "answers"
    """`answers`: a failed call's text is read like a reply and counts; `left out`: it leaves the denominator."""
    source: str = ""
    """Where the rule was seen."""


def _flageval(reply: str, options: Mapping[str, str]) -> str | None:
    parsed = parse_flageval(reply)
    return parsed[0] if parsed else None


def _aisbench(reply: str, options: Mapping[str, str]) -> str | None:
    parsed = parse_aisbench(reply)
    return parsed[0] if parsed else None


_V, _L = "VLMEvalKit e8e78f0", "lmms-eval 75571cf"
PEER_READERS: Final[Mapping[str, PeerReader]] = {
    reader.name: reader
    for reader in (
        PeerReader("vlmevalkit", can_infer, source=f"{_V} vlmeval/utils/matching_util.py"),
        PeerReader("vlmevalkit-cot", can_infer_after_answer, source=f"{_V} vlmeval/dataset/image_mcq.py"),
        PeerReader("lmms-mmmu", read_mmmu, RANDOM, source=f"{_L} _task_utils/mmmu_mcq_utils.py; official MMMU"),
        PeerReader("lmms-mcq", read_mcq, source=f"{_L} _task_utils/mcq_extract.py"),
        PeerReader("lmms-first-letter", read_first_letter, source=f"{_L} blink, cv_bench"),
        PeerReader("lmms-first-of-four", read_first_of_four, source=f"{_L} vstar_bench"),
        PeerReader("lmms-first-character", read_first_character, source=f"{_L} seedbench"),
        PeerReader("lmms-letter-or-dotted", read_letter_or_dotted, source=f"{_L} ai2d, muirbench, scienceqa"),
        PeerReader("lmms-raw-letter", read_raw_letter, source=f"{_L} mmmu_pro vision"),
        PeerReader("inspect-choice", read_answer_line, failures="left out", source="inspect_ai 499e615 choice()"),
        PeerReader("evalscope", read_last_answer, source="evalscope 1617436 utils/multi_choices.py"),
        PeerReader("flageval", _flageval, failures="left out", source="FlagEvalMM fef27ec base_evaluator.py"),
        PeerReader("aisbench", _aisbench, source="AISBench first_option_postprocess"),
    )
}


def peer_reader(name: str) -> PeerReader:
    """Return a harness's reader by name, or say which there are."""
    if name not in PEER_READERS:
        known = ", ".join(PEER_READERS)
        raise UsageError(f"unknown peer reader {name!r}{did_you_mean(name, PEER_READERS)}; known: {known}")
    return PEER_READERS[name]


def draw_letter(letters: Sequence[str], sample: str, seed: int = SEED) -> str:
    """Return the letter that stands for a harness's random one: the same for the same sample and seed."""
    return rng(seed, sample, "peer's random letter").choice(list(letters))
