"""How the harnesses score short texts and yes or no: their ANLS, relaxed accuracy, containment and equality."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final

from rapidfuzz.distance import Levenshtein

from ...scoring.scorers.vqa import RELAXED_TOLERANCE, vqa_accuracy
from .toolkit_rules import can_infer, lmms_yes_no, lmms_yes_no_equal, lmms_yes_no_of_mme, vlmevalkit_yes_no

ANLS_KEPT = 0.5
"""The harnesses keep a similarity of exactly so much; the paper's rule does not."""
_STOP_AFTER_DIGIT = re.compile(r"(?<=\d)\.(?!\d)")
_DECIMAL = re.compile(r"-?(?:\d+\.\d+|\d+|\.\d+)")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def peer_anls(reply: str, answers: Sequence[str]) -> float:
    """ANLS as VLMEvalKit and lmms-eval count it: the distance of folded texts over the length of the unfolded ones."""
    best = max((_similarity(reply, answer) for answer in answers), default=0.0)
    return best if best >= ANLS_KEPT else 0.0


def _similarity(reply: str, answer: str) -> float:
    length = max(len(reply), len(answer))
    folded = [" ".join(text.strip().lower().split()) for text in (reply, answer)]
    return 1.0 - Levenshtein.distance(*folded) / length if length else 1.0


def peer_relaxed(reply: str, answers: Sequence[str]) -> float:
    """Relaxed accuracy as they count it: no thousands marks, and a right answer of 0 is compared as text."""
    return float(any(_relaxed(reply.strip(), answer.strip()) for answer in answers))


def _relaxed(reply: str, answer: str) -> bool:
    said, wanted = _number(reply), _number(answer)
    if said is None or not wanted:
        return reply.lower() == answer.lower()
    return abs(said - wanted) / abs(wanted) <= RELAXED_TOLERANCE


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        return None


def peer_vqa(reply: str, answers: Sequence[str]) -> float:
    """VQA accuracy over the annotators, each left out once."""
    return vqa_accuracy(reply, answers)


def vlmevalkit_vqa(reply: str, answers: Sequence[str]) -> float:
    """The same in VLMEvalKit, where a full stop after a digit stays: `2000.` is not 2000."""
    return vqa_accuracy(_keep_stops(reply), [_keep_stops(answer) for answer in answers])


def _keep_stops(text: str) -> str:
    """Put a sign no normal form touches in the place of such full stops."""
    return _STOP_AFTER_DIGIT.sub("\0", text)


def peer_equal_number(reply: str, answers: Sequence[str]) -> float:
    """ZeroBench in lmms-eval: the same number, or the same text without quotes and a last full stop."""
    said = _plain(reply)
    return float(any(said == wanted or _same_decimal(said, wanted) for wanted in map(_plain, answers)))


def _plain(text: str) -> str:
    bare = " ".join(text.strip().lower().strip("\"'`").split())
    return bare[:-1].rstrip() if bare.endswith(".") else bare


def _same_decimal(first: str, second: str) -> bool:
    plain = [text.strip().replace(",", "") for text in (first, second)]
    return all(_DECIMAL.fullmatch(text) for text in plain) and Decimal(plain[0]) == Decimal(plain[1])


def peer_contains(reply: str, answers: Sequence[str]) -> float:
    """OCRBench: any answer is part of the reply, in lower case and on one line; a long reply profits."""
    folded = reply.lower().strip().replace("\n", " ")
    return float(any(answer.lower().strip().replace("\n", " ") in folded for answer in answers))


def lmms_contains(reply: str, answers: Sequence[str]) -> float:
    """OCRBench in lmms-eval: the same once full-width characters are plain."""
    fold = partial(unicodedata.normalize, "NFKC")
    return peer_contains(fold(reply), list(map(fold, answers)))


def peer_equal(reply: str, answers: Sequence[str]) -> float:
    """Equality of lower-cased texts without punctuation: a sentence is wrong."""
    said = reply.strip().lower().translate(_NO_PUNCTUATION)
    return float(any(said == answer.strip().lower().translate(_NO_PUNCTUATION) for answer in answers))


def vlmevalkit_mmmu_open(reply: str, answers: Sequence[str]) -> float:
    """VLMEvalKit's MMMU: an open question becomes a choice of A, the answer, and B, `Other Answers`; A is right."""
    return float(bool(answers) and can_infer(reply, {"A": answers[0], "B": "Other Answers"}) == "A")


def lmms_mmmu_open(reply: str, answers: Sequence[str]) -> float:
    """lmms-eval's MMMU since #724: one parsed text is taken for a list of its letters, so nothing is ever right."""
    return 0.0


TEXT_RULES: Final[Mapping[str, Callable[[str, Sequence[str]], float]]] = {
    "peer-anls": peer_anls,
    "peer-relaxed": peer_relaxed,
    "peer-vqa": peer_vqa,
    "vlmevalkit-vqa": vlmevalkit_vqa,
    "peer-ocrbench": peer_contains,
    "lmms-ocrbench": lmms_contains,
    "peer-exact": peer_equal,
    "vlmevalkit-mmmu-open": vlmevalkit_mmmu_open,
    "lmms-mmmu-open": lmms_mmmu_open,
}
YES_NO_RULES: Final[Mapping[str, Callable[[str], str | None]]] = {
    "vlmevalkit": vlmevalkit_yes_no,
    "lmms-pope": lmms_yes_no,
    "lmms-equal": lmms_yes_no_equal,
    "lmms-mme": lmms_yes_no_of_mme,
}
