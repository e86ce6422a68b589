"""A reply to what a harness makes of it: what it reads, and what it counts; by its rules, reproduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ...core.errors import UsageError, not_among
from ...core.types import Form
from ...scoring.protocols.peer_scores import draw_letter
from .peer_readers import PEER_READERS, RANDOM, PeerReader
from .text_rules import TEXT_RULES, YES_NO_RULES


class PeerVerdict(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a harness makes of one reply; `value` None: the row leaves its denominator."""

    value: float | None
    read: str | None = None
    """The letter or word it read, or the letter it drew."""
    drawn: bool = False
    """Nothing was read, and a random letter took its place."""


class PeerProtocol(Struct, frozen=True):
    """The rules by which one harness reads one benchmark, by the form of the question; None: no rule is known."""

    choice: PeerReader | None = None
    yesno: Callable[[str], str | None] | None = None
    open: Callable[[str, Sequence[str]], float] | None = None
    failures: str = "answers"

    def judge(
        self, form: Form, reply: str, options: Mapping[str, str], answers: Sequence[str], sample: str
    ) -> PeerVerdict | None:
        """Return what the harness makes of a reply, or None where no rule of its is known for the form."""
        if form is Form.CHOICE and self.choice is not None:
            return _judge_choice(self.choice, reply, options, answers, sample)
        if form is Form.YESNO and self.yesno is not None:
            said = self.yesno(reply)
            return PeerVerdict(float(said is not None and said.lower() in answers), said)
        if form is Form.OPEN and self.open is not None:
            return PeerVerdict(self.open(reply, answers), reply)
        return None


def _judge_choice(
    reader: PeerReader, reply: str, options: Mapping[str, str], answers: Sequence[str], sample: str
) -> PeerVerdict:
    letter = reader.read(reply, options)
    drawn = letter is None and reader.unread == RANDOM and bool(options)
    if drawn:
        letter = draw_letter(list(options), sample)
    return PeerVerdict(float(letter is not None and options.get(letter) in answers), letter, drawn)


def peer_protocol(choice: str, yesno: str, open_rule: str) -> PeerProtocol:
    """Return the rules of these names; an empty name is no rule, one that does not exist is refused."""
    for name, known in ((choice, PEER_READERS), (yesno, YES_NO_RULES), (open_rule, TEXT_RULES)):
        if name and name not in known:
            raise UsageError(f"unknown rule of a harness {not_among(name, known)}")
    reader = PEER_READERS.get(choice)
    failures = reader.failures if reader is not None else "answers"
    return PeerProtocol(reader, YES_NO_RULES.get(yesno), TEXT_RULES.get(open_rule), failures)
