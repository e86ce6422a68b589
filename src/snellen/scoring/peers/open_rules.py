"""Rules for replies without options, by the name cards use: a reply and its sample in, a value, or None for unread."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence

from msgspec import structs

from ...core.types import Sample
from ...extract.numbers import parse_number
from ...extract.other_kinds import extract_number
from ...extract.rules.answer_number import LAST
from ..scorers.joined_answers import is_joined
from ..scorers.mmmu_open import judge_open
from ..scorers.text_match import meets
from ..scorers.vqa import anls, relaxed_accuracy, vqa_accuracy
from ..scorers.vqa_normalise import normalise_vqa
from ..videos.video_texts import (
    fits_text,
    mmmu_after_answer,
    mra_of_first_number,
    mra_of_first_word,
    mra_of_last_number,
)
from .cmmmu_rules import drawn_from, judge_cmmmu, judge_cmmmu_as_run
from .document_rules import lmms_document, official_document
from .math_answers import equals_first_box, equals_in_maths
from .text_rules import peer_anls, peer_equal_number, peer_relaxed, vlmevalkit_vqa
from .typed_answers import equals_typed, equals_typed_lmms, equals_typed_vlmevalkit
from .vlmevalkit_rules import can_infer

OpenRule = Callable[[str, Sample], float | None]
_HANDWRITTEN = ("hme100k", "handwritten mathematical expression recognition")


def _mmmu(reply: str, sample: Sample) -> float:
    return float(judge_open(reply, sample.answers))


def _never(reply: str, sample: Sample) -> float:
    """lmms-eval's MMMU since 2025: it compares the characters of one candidate, so an open answer is never right."""
    return 0.0


def _vlmevalkit_open(reply: str, sample: Sample) -> float | None:
    """VLMEvalKit's MMMU: the question becomes a choice of the answer (A) and `Other Answers` (B)."""
    right = str(list(sample.answers)) if len(sample.answers) > 1 else sample.answers[0]
    mark = can_infer(reply, {"A": right, "B": "Other Answers"})
    return None if mark is None else float(mark == "A")


def _ocrbench(reply: str, sample: Sample) -> float:
    """An answer stands in the reply: lower case and spaces folded; of formulas, as written without any space."""
    if _is_handwritten(sample):
        bare = reply.strip().replace("\n", " ").replace(" ", "")
        return float(any(answer.strip().replace("\n", " ").replace(" ", "") in bare for answer in sample.answers))
    text = reply.lower().strip().replace("\n", " ")
    return float(any(answer.lower().strip().replace("\n", " ") in text for answer in sample.answers))


def _is_handwritten(sample: Sample) -> bool:
    kinds = {str(sample.tags.get(name, "")).lower() for name in ("dataset", "category", "question_type")}
    return any(kind.startswith(_HANDWRITTEN) for kind in kinds)


def _ocrbench_lmms(reply: str, sample: Sample) -> float:
    """The same in lmms-eval, which folds full-width characters into plain ones first, but not in formulas."""
    if _is_handwritten(sample):
        return _ocrbench(reply, sample)
    answers = tuple(unicodedata.normalize("NFKC", answer) for answer in sample.answers)
    return _ocrbench(unicodedata.normalize("NFKC", reply), structs.replace(sample, answers=answers))


def _equal_lower(reply: str, sample: Sample) -> float:
    """RealWorldQA in lmms-eval: the reply in lower case without its last full stop is the answer."""
    given = reply.lower().strip().removesuffix(".")
    return float(any(given == answer.lower().strip().removesuffix(".") for answer in sample.answers))


def mean_relative_accuracy(given: float, wanted: float) -> float:
    """Return VSI-Bench's MRA: the share of ten tolerances, 50 % to 5 %, that the relative error keeps within."""
    if not wanted:
        return float(given == wanted)
    error = abs(given - wanted) / abs(wanted)
    return sum(error <= tolerance / 100 for tolerance in range(50, 0, -5)) / 10


def _mra(reply: str, sample: Sample) -> float | None:
    found = extract_number(reply)
    given = None if found.rule == LAST else found.value
    golds = [number.value for answer in sample.answers if (number := parse_number(answer)) is not None]
    return None if given is None or not golds else max(mean_relative_accuracy(given, gold) for gold in golds)


def _exact(reply: str, sample: Sample) -> float | None:
    """Equal to an answer in VQA normal form; of joined answers (MM-Vet's `a <AND> b`) what they ask for."""
    if is_joined(sample.answers):
        met = meets(reply, sample.answers)
        return None if met is None else float(met)
    wanted = normalise_vqa(reply)
    return float(any(wanted == normalise_vqa(answer) for answer in sample.answers))


OPEN_RULES: Mapping[str, OpenRule] = {
    "exact": _exact,
    "mmmu": _mmmu,
    "never": _never,
    "vlmevalkit-other": _vlmevalkit_open,
    "anls": lambda reply, sample: anls(reply, sample.answers),
    "anls-peers": lambda reply, sample: peer_anls(reply, sample.answers),
    "relaxed": lambda reply, sample: relaxed_accuracy(reply, sample.answers),
    "relaxed-peers": lambda reply, sample: peer_relaxed(reply, sample.answers),
    "ocrbench": _ocrbench,
    "ocrbench-lmms": _ocrbench_lmms,
    "vqa": lambda reply, sample: vqa_accuracy(reply, sample.answers),
    "vqa-vlmevalkit": lambda reply, sample: vlmevalkit_vqa(reply, sample.answers),
    "equal": lambda reply, sample: float(reply.strip() in sample.answers),
    "equal-number": lambda reply, sample: peer_equal_number(reply, sample.answers),
    "equal-lower": _equal_lower,
    "typed": equals_typed,
    "typed-lmms": equals_typed_lmms,
    "typed-vlmevalkit": equals_typed_vlmevalkit,
    "maths": equals_in_maths,
    "maths-vlmevalkit": equals_first_box,
    "document": official_document,
    "lmms-document": lmms_document,
    "mra": _mra,
    "cmmmu": judge_cmmmu,
    "cmmmu-as-run": judge_cmmmu_as_run,
    "mra-first-word": mra_of_first_word,
    "mra-first-number": mra_of_first_number,
    "mra-last-number": mra_of_last_number,
    "mra-whole": mra_of_last_number,
    "mmmu-after-answer": mmmu_after_answer,
    "lmms-mmvu": fits_text,
}
"""By the name that cards use (`score_options.open`); `mra-whole` is a former name in runs of 0.2."""
EMPTY_FITS = ("lmms-mmvu",)
"""Rules whose tool counts an empty reply as right."""
DRAWS: Mapping[str, Callable[[Sample], Sequence[str]]] = {"cmmmu-as-run": drawn_from}
"""Rules whose tool draws an answer where it reads none: among what."""
