"""One reply read by a harness and by us: where the two part, and in whose favour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from ...core.types import Form, Prediction, Request, Sample, Score
from ...scoring.scorers.by_form import NEEDS_OWN_SCORER
from ...scoring.tables.table import is_unread
from .peer_readers import PeerProtocol, PeerVerdict

PEER = "peer"
MISREAD = "misread"
READ_INTO = "read_into"
DRAWN = "drawn"
FAILURE = "failure_counted"
OTHERWISE = "scored_otherwise"
UNREAD = "unread_counted"
LEFT_OUT = "left_out"
NOT_COMPARED = "not_compared"
KINDS: Final[Mapping[str, str]] = {
    MISREAD: "the reply names one option, and the harness took another or none",
    READ_INTO: "we read no option from the reply, and the harness took one",
    DRAWN: "the harness could not read the reply and drew a letter",
    FAILURE: "the call failed, and its error text, or nothing, was counted as an answer",
    OTHERWISE: "the same reply gets another score",
    UNREAD: "neither reads an answer, and both count that as not right",
    LEFT_OUT: "the harness has no score for the reply, and we do",
    NOT_COMPARED: "an open answer of a benchmark that needs a scorer of its own: we do not score it",
}
"""Kind of disagreement -> what it is."""
UNDECIDED = ("", LEFT_OUT, NOT_COMPARED)
FOR, AGAINST, NEITHER = "for the model", "against the model", "neither"
SAME = 1e-9
LONGEST_QUESTION = 500


class Opinion(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the two make of one trial; `kind` is empty where they agree."""

    sample: str
    repeat: int
    kind: str
    favour: str
    """Whom the harness's value favours, beside ours; a reply without a score of ours counts as 0 here."""
    peer_value: float | None
    our_value: float | None
    peer_read: str | None = None
    our_read: str | None = None
    our_reason: str | None = None
    gold: str = ""
    reply: str = ""
    recorded: float | None = None
    """What the file itself says the harness counted."""
    reproduced: float | None = None
    """What its rule gives when it is applied again; None where no rule is known."""
    group: str = ""
    split: str = ""
    metric: str = ""
    question: str = ""

    @property
    def our_worth(self) -> float | None:
        """Return what the reply counts in our number: its value, 0 where nothing was read; None: it is outside."""
        return 0.0 if self.our_value is None and is_unread(self.our_reason) else self.our_value


class _Reading(NamedTuple):
    """What the harness took from a reply; not `known` where a file says what it counted but not what it read."""

    known: bool
    read: str | None = None
    """As it writes it: a letter, a word."""
    text: str | None = None
    """The option or word that stands for."""


def opinion_on(
    protocol: PeerProtocol,
    sample: Sample,
    request: Request,
    prediction: Prediction,
    score: Score | None,
    *,
    by_file: bool = False,
) -> Opinion:
    """Return what a harness and we make of one trial.

    `by_file`: the verdicts that the file holds are what the harness counted, and a row without one is out of its
    number; else its rule, applied again, tells.
    """
    told: Mapping[str, Any] = prediction.detail.get(PEER) or {}
    options = dict(zip(request.marks, request.shown, strict=True)) if request.marks else {}  # else weighed, not shown
    verdict = _rule_again(protocol, sample, prediction, options, told)
    recorded = told.get("verdict")
    reproduced = None if verdict is None else verdict.value
    peer_value = recorded if by_file else reproduced
    reading = _reading(told.get("read") if by_file else None, verdict, peer_value, sample.form, options)
    our_value, our_read, reason = _ours(score, sample.form)
    if peer_value is None:
        kind = LEFT_OUT if our_value is not None or is_unread(reason) else ""
    else:
        kind = _kind(prediction, verdict, peer_value, our_value, (reading, our_read))
    kind = _unless_unscored(kind, reason)
    return Opinion(
        sample.id,
        prediction.key.repeat,
        kind,
        _favour(peer_value, our_value) if kind not in UNDECIDED else NEITHER,
        peer_value,
        our_value,
        reading.read,
        _marked(our_read, options),
        reason,
        ", ".join(_marked(answer, options) or "" for answer in sample.answers),
        _shown_reply(prediction, told),
        recorded,
        reproduced,
        sample.group or "",
        str(sample.tags.get("split") or ""),
        _metric(score),
        sample.question[:LONGEST_QUESTION],
    )


def _rule_again(
    protocol: PeerProtocol,
    sample: Sample,
    prediction: Prediction,
    options: Mapping[str, str],
    told: Mapping[str, Any],
) -> PeerVerdict | None:
    """Return what the harness's rule makes of what it read; None where it leaves the row out, or no rule is known."""
    left_out = prediction.failure is not None and protocol.failures != "answers"
    if left_out or prediction.loglikelihoods is not None or not sample.answers:
        return None
    text = told.get("reply", prediction.text) or ""
    return protocol.judge(sample.form, text, options, sample.answers, sample.id)


def _ours(score: Score | None, form: Form) -> tuple[float | None, str | None, str | None]:
    """Return our value, what we read, and why there is no value."""
    if score is None:
        return None, None, None
    return score.value, None if form is Form.OPEN else score.answer, score.reason


def _metric(score: Score | None) -> str:
    return "" if score is None else score.metric


def _shown_reply(prediction: Prediction, told: Mapping[str, Any]) -> str:
    failure = "" if prediction.failure is None else prediction.failure.message
    return told.get("reply", prediction.text) or failure


def _reading(
    told: str | None, verdict: PeerVerdict | None, recorded: float | None, form: Form, options: Mapping[str, str]
) -> _Reading:
    """Return what the harness read: as its file says, else as its rule reads, if that leads to the same verdict."""
    if form is Form.OPEN:
        return _Reading(known=False)
    meant = _meant(told, form, options)
    if told is not None and (meant is not None or len(told) == 1):
        return _Reading(True, told, meant)
    if verdict is None or (recorded is not None and abs(recorded - (verdict.value or 0.0)) > SAME):
        return _Reading(known=False)
    return _Reading(True, verdict.read, _meant(verdict.read, form, options))


def _meant(read: str | None, form: Form, options: Mapping[str, str]) -> str | None:
    """Return the option a letter stands for, or yes or no; what stands for none (Z, T, Unknown) is None."""
    if read is None:
        return None
    if form is Form.YESNO and not options:
        return read.casefold() if read.casefold() in ("yes", "no") else None
    return options.get(read.strip("() .").upper()) or next((text for text in options.values() if text == read), None)


def _kind(
    prediction: Prediction,
    verdict: PeerVerdict | None,
    peer_value: float,
    our_value: float | None,
    readings: tuple[_Reading, str | None],
) -> str:
    if prediction.failure is not None:
        return FAILURE
    if verdict is not None and verdict.drawn:
        return DRAWN
    reading, ours = readings
    if reading.known:
        return _kind_of_reading(reading.text, ours, peer_value, our_value)
    return _kind_of_value(peer_value, our_value)


def _unless_unscored(kind: str, reason: str | None) -> str:
    """Return the kind; where we have no rule for the answer there is nothing to compare."""
    return NOT_COMPARED if kind and reason == NEEDS_OWN_SCORER else kind


def _kind_of_reading(peer: str | None, ours: str | None, peer_value: float, our_value: float | None) -> str:
    if ours is None:
        return UNREAD if peer is None else READ_INTO
    if peer is None or peer.casefold() != ours.casefold():
        return MISREAD
    return _kind_of_value(peer_value, our_value)


def _kind_of_value(peer_value: float, our_value: float | None) -> str:
    if our_value is None:
        return READ_INTO if peer_value else UNREAD
    return OTHERWISE if abs(peer_value - our_value) > SAME else ""


def _marked(text: str | None, options: Mapping[str, str]) -> str | None:
    letter = next((letter for letter, option in options.items() if option == text), None)
    return text if letter is None else f"{letter}. {text}"


def _favour(peer: float | None, ours: float | None) -> str:
    difference = (peer or 0.0) - (ours or 0.0)
    return FOR if difference > SAME else AGAINST if difference < -SAME else NEITHER
