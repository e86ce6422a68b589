"""Rules for replies without options, by the name cards use: a reply and its sample in, a value, or None for unread."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import structs
from rapidfuzz.distance import Levenshtein

from ...core.types import Sample
from ...data.files.records import parse_literal
from ...extract.choice import extract_choice
from ...extract.numbers import parse_number
from ...extract.other_kinds import LAST, extract_number, extract_short
from ...scoring.scorers.document_answer import FORMAT_TAG, NEAR, NOT_ANSWERABLE
from ...scoring.scorers.mmmu_open import judge_open
from ...scoring.scorers.replies import is_joined
from ...scoring.scorers.text_match import meets
from ...scoring.scorers.vqa import anls, normalise_vqa, relaxed_accuracy, vqa_accuracy
from .math_answers import equals_first_box, equals_in_maths, is_number
from .text_rules import peer_anls, peer_equal_number, peer_relaxed, vlmevalkit_vqa
from .toolkit_rules import can_infer
from .video_rules import fits_text, mmmu_after_answer, mra_of_first_number, mra_of_first_word, mra_of_last_number

LETTERS = {letter: letter for letter in "ABCDEFGHIJ"}
_CUE = re.compile(r"(?:answer|order|result|differences?)\b[^:=\n\d]{0,30}[:=]?\s*", re.IGNORECASE)
_RUN = re.compile(r"\d+(?:[\s,，]+\d+)*")
_GLUED = re.compile(r"(?<![A-Za-z])[A-J](?:[\s,]*[A-J])*(?![A-Za-z])")
_PAIR = re.compile(r"\b(\d+)\s*,\s*(\d+)\b")


def judge_tir(reply: str, sample: Sample) -> float | None:
    """Return how right a reply is by the rule of its task (the tag `task`); None where nothing was read."""
    answer, task = sample.answers[0].strip(), str(sample.tags.get("task", ""))
    if task == "ocr":
        return float(answer in reply)
    if task == "jigsaw":
        return _order(reply, answer)
    if answer.isalpha():
        return _letters_of_task(reply, answer)
    if is_number(answer):
        said = extract_number(reply).value
        return None if said is None else float(said == float(answer))
    if task == "spot_difference":
        return _set(reply, answer)
    return _pair(reply, answer)


def _letters_of_task(reply: str, answer: str) -> float | None:
    if len(answer) == 1:
        said = extract_choice(reply, LETTERS).letter
        return None if said is None else float(said == answer)
    found = _GLUED.findall(_after_cue(reply))
    if not found:
        return None
    return float(sorted(letter for letter in found[-1] if letter.isalpha()) == sorted(answer))


def _order(reply: str, answer: str) -> float | None:
    """The share of pieces in their place, of the first run of as many numbers as there are pieces."""
    right = [int(number) for number in re.findall(r"\d+", answer)]
    runs = [[int(number) for number in re.findall(r"\d+", run)] for run in _RUN.findall(reply)]
    said = next((run for run in runs if len(run) == len(right)), None)
    return None if said is None or not right else sum(map(int.__eq__, right, said)) / len(right)


def _set(reply: str, answer: str) -> float | None:
    """What both name, of what either names."""
    said, right = set(_whole_numbers(_after_cue(reply))), set(_whole_numbers(answer))
    return len(said & right) / len(said | right) if said else None


def _pair(reply: str, answer: str) -> float | None:
    found, right = _PAIR.findall(reply), _PAIR.findall(answer)
    return None if not found or not right else float(tuple(map(int, found[-1])) == tuple(map(int, right[0])))


def _after_cue(reply: str) -> str:
    """Return what follows the last word that announces an answer; the whole reply where none does."""
    cues = list(_CUE.finditer(reply))
    tail = reply[cues[-1].end() :] if cues else ""
    return tail if re.search(r"\d|[A-J]", tail) else reply


def _whole_numbers(text: str) -> Sequence[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


_PARENTHESES = re.compile(r"\s*\([^)]*\)")
_OUTER_QUOTES = re.compile(r"^['\"]|['\"]$")
_EXACT = re.compile(r"\d+(?:[-\s]\d+)?|\d{4}[-\s]\d{2}(?:[-\s]\d{2})?|[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}")
_FIRST_NUMBER = re.compile(r"[-+]?\d*\.?\d+")
_UNITS = (" miles", " mile", " million")
_FEWEST_DIGITS, _DIGITS_OF_NONE = 2, 3
_BARE = " \t\n.!?,;:\"'"


def official_document(reply: str, sample: Sample) -> float:
    """The benchmark's rule, of the reply; of a sentence, of the short answer our reader finds, where GPT-4o would."""
    short = extract_short(reply)
    said = reply if short.strip(_BARE).lower() == reply.strip(_BARE).lower() else short
    return _best(_official, said, sample)


def lmms_document(reply: str, sample: Sample) -> float:
    """lmms-eval's own: the first number of the reply, and nothing but `not answerable` where there is no answer."""
    return _best(_lmms, reply.strip(), sample)


def _best(rule: Callable[[str, str, str], float], reply: str, sample: Sample) -> float:
    kind = str(sample.tags.get(FORMAT_TAG) or "Str")
    return max(rule(answer, reply, kind) for answer in sample.answers)


def _official(gold: str, reply: str, kind: str) -> float:
    if kind == "Int":
        wanted, given = _float(gold), _float(reply)
        return float(wanted is not None and given is not None and int(wanted) == int(given))
    if kind == "Float":
        return float(_near(_float(_clean(gold)), _float(_clean(reply))))
    if kind == "Str":
        return _likeness(_clean(gold), _clean(reply))
    return _same_members(_members(gold), _members(reply), lambda first: _float(first) is not None)


def _lmms(gold: str, reply: str, kind: str) -> float:
    kind = kind.strip().lower()
    if kind in ("int", "integer"):
        wanted, given = _first_number(gold), _first_number(reply)
        return float(wanted is not None and given is not None and int(wanted) == int(given))
    if kind == "float":
        return float(_near(_first_number(gold), _first_number(reply)))
    if kind == "list":
        wanted_members, given_members = ([_clean_lmms(one) for one in _listed(text)] for text in (gold, reply))
        return _same_members(wanted_members, given_members, lambda first: _first_number(first) is not None)
    if kind == "none":
        return float(_clean_lmms(reply) == NOT_ANSWERABLE)
    return _likeness(_clean_lmms(gold), _clean_lmms(reply))


def _clean(text: str) -> str:
    bare = _PARENTHESES.sub("", text.lower().strip()).strip()
    return _OUTER_QUOTES.sub("", bare).strip().lstrip("$").strip().rstrip("%").strip()


def _clean_lmms(text: str) -> str:
    bare = _clean(text)
    for unit in _UNITS:
        bare = bare.removesuffix(unit).strip()
    return " ".join(bare.split())


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _first_number(text: str) -> float | None:
    found = _FIRST_NUMBER.search(text.replace(",", ""))
    return float(found[0]) if found else None


def _near(wanted: float | None, given: float | None) -> bool:
    """Tell whether two numbers are one within a hundredth, or to the digits both have; either may be per cent."""
    if wanted is None or given is None:
        return False
    for meant in (wanted / 100, wanted, wanted * 100):
        digits = max(min(_decimals(given), _decimals(meant)), _FEWEST_DIGITS)
        if math.isclose(meant, given, rel_tol=NEAR) or round(given, digits) == round(meant, digits):
            return True
    return False


def _decimals(number: float) -> int:
    text = str(number)
    return len(text.rpartition(".")[2]) if "." in text else _DIGITS_OF_NONE


def _listed(text: str) -> list[str]:
    parsed = parse_literal(text.strip()) if text.startswith("[") else None
    return [str(one) for one in parsed] if isinstance(parsed, list) else [text]


def _members(text: str) -> list[str]:
    return [_clean(one) for one in _listed(text)]


def _same_members(wanted: list[str], given: list[str], is_exact: Callable[[str], bool]) -> float:
    if len(wanted) != len(given):
        return 0.0
    wanted, given = sorted(wanted), sorted(given)
    if wanted and (is_exact(wanted[0]) or _must_be_exact(wanted[0])):
        return float(wanted == given)
    return min((_anls(one, other) for one, other in zip(wanted, given, strict=True)), default=1.0)


def _likeness(wanted: str, given: str) -> float:
    return float(wanted == given) if _must_be_exact(wanted) else _anls(wanted, given)


def _must_be_exact(text: str) -> bool:
    kinds = "https://" in text or "a.m." in text or "p.m." in text
    return kinds or text.endswith((".py", "ipynb")) or text.startswith("page") or bool(_EXACT.fullmatch(text))


def _anls(wanted: str, given: str) -> float:
    longest = max(len(wanted), len(given))
    likeness = 1.0 - Levenshtein.distance(wanted, given) / longest if longest else 1.0
    return likeness if likeness > 0.5 else 0.0


CHOICE, JUDGEMENT = "选择", "判断"
"""What the column `type` says; anything else is a blank to be filled."""
TRUE, FALSE = "对", "错"
_OPTIONS = ("option1", "option2", "option3", "option4")
_BEFORE_VERDICT = ("是", "为", "所以", "判断", "陈述", "说法", "表达", "答案", "结果")
_BEFORE_ANSWER = ("是", "为", "所以", "等于", "方案", "选择", "正确答案", "因此", "最后", "答案", "结果")
_POSITIVE = ("正确", "对", "准确", "肯定")
_NEGATIVE = ("不对", "错误", "不正确", "不准确", "不合适", "否定", "错")
_UNDECIDED = ("对错", "是否", "否正确", "或者", "正确性", "对不")
_NOT_WRONG = ("没错", "没有错", "不错", "无错", "并非错")
"""A negative word negated: what it means hangs on more than words, so it is not read."""
_NOTHING = frozenset(":,.!?;'")
_NUMBER = re.compile(r"-?(?<![\d.])(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\d])")


def judge_cmmmu(reply: str, sample: Sample) -> float | None:
    """Return whether a reply is right by CMMMU's rule for its kind; None where the rule would draw at random."""
    return _judged(reply, sample, as_run=False)


def judge_cmmmu_as_run(reply: str, sample: Sample) -> float | None:
    """Return the same as the script computes it, its two faults included."""
    return _judged(reply, sample, as_run=True)


def drawn_from(sample: Sample) -> Sequence[str]:
    """Return among what the script draws where it reads nothing; of a blank it draws nothing."""
    kind = sample.tags.get("type")
    return ("A", "B", "C", "D") if kind == CHOICE else (TRUE, FALSE) if kind == JUDGEMENT else ()


def _judged(reply: str, sample: Sample, *, as_run: bool) -> float | None:
    kind, gold = sample.tags.get("type"), sample.answers[0].strip()
    if kind not in (CHOICE, JUDGEMENT):
        return float(_fills(reply, gold))
    if kind == CHOICE:
        said = _letters(reply, [str(sample.tags.get(name) or "") for name in _OPTIONS], as_run=as_run)
    else:
        said = _verdict(reply, as_run=as_run)
    return None if said is None else float(said == gold)


def _letters(reply: str, options: Sequence[str], *, as_run: bool) -> str | None:
    """Return the letters named most often, several where they tie: in brackets, else bare, else by their texts."""
    text = reply
    for mark in ",.!?;:'":
        text = text.strip(mark)
    marks = "ABCD"[: len(options)]
    bare = [
        text.count(mark) if as_run else len(re.findall(rf"(?<![A-Za-z]){mark}(?![A-Za-z])", text)) for mark in marks
    ]
    ways = ([text.count(f"({mark})") for mark in marks], bare, [text.count(one) if one else 0 for one in options])
    counts = next((way for way in ways if any(way)), None)
    if counts is None:
        return None
    return "".join(mark for mark, count in zip(marks, counts, strict=True) if count == max(counts))


def _verdict(reply: str, *, as_run: bool) -> str | None:
    """Return 对 or 错 by the words of most tails; None where they are as many, or none."""
    tails = [tail for tail in set(_tails(reply, _BEFORE_VERDICT)) if not any(word in tail for word in _UNDECIDED)]
    said = [_polarity_as_run(tail) if as_run else _polarity(tail) for tail in tails]
    return None if said.count(TRUE) == said.count(FALSE) else max((TRUE, FALSE), key=said.count)


def _polarity_as_run(tail: str) -> str | None:
    if any(word in tail for word in _POSITIVE):
        return TRUE
    return FALSE if any(word in tail for word in _NEGATIVE) else None


def _polarity(tail: str) -> str | None:
    """Return what a tail says; nothing where it says both, or that something is not wrong."""
    if any(word in tail for word in _NOT_WRONG):
        return None
    rest = tail
    for word in sorted(_NEGATIVE, key=len, reverse=True):
        rest = rest.replace(word, " ")
    is_true, is_false = any(word in rest for word in _POSITIVE), rest != tail
    return None if is_true == is_false else TRUE if is_true else FALSE


def _fills(reply: str, gold: str) -> bool:
    """Tell whether a text among the candidates holds the answer, or a number is it to two decimals."""
    tails = _tails(reply, _BEFORE_ANSWER, equation=True)
    found = [*tails, *(number for tail in tails for number in _NUMBER.findall(tail))]
    wanted = _form(gold, gold)
    forms = [form for one in found if (form := _form(one, gold)) is not None]
    return any(
        form == wanted if isinstance(form, float) else isinstance(wanted, str) and wanted in form for form in forms
    )


def _form(text: str, gold: str) -> str | float | None:
    """Return a number to two decimals, else the text; None for one much longer than the answer."""
    text = text.strip()
    try:
        return round(float(text.replace(",", "")), 2)
    except ValueError:
        too_long = len(text) > len(gold) + 20 or _latin(text) > _latin(gold) + 2
        return None if too_long else text


def _latin(text: str) -> int:
    return sum(character.isascii() and character.isalpha() for character in text)


def _tails(reply: str, cues: Sequence[str], *, equation: bool = False) -> list[str]:
    """Return the shortest tail after a cue of every sentence, or the whole reply where none has one."""
    text = reply.strip("。").strip()
    lines = re.split(r"[。\n]", text)
    found = []
    for place, line in enumerate(lines):
        known = (*cues, "=") if equation and place == len(lines) - 1 else cues
        tails = [tail for cue in known if cue in line and (tail := line.rpartition(cue)[2].strip())]
        shortest = min(tails, key=len, default="")
        if shortest and shortest not in _NOTHING:
            found.append(shortest)
    return found or [text]


_LIST = re.compile(r"\[[^\[\]]*\]")


def equals_typed(reply: str, sample: Sample) -> float | None:
    """MathVista's own: the reply as the answer's type, equal to it; None where no value of the type can be found.

    The benchmark lets a language model find the value in a long reply; here our reader of numbers does.
    """
    value = normal_form(_value_in(reply, _kind(sample)), _kind(sample), _precision(sample))
    return None if value is None else float(any(value == _gold(answer, sample) for answer in sample.answers))


def equals_typed_whole(reply: str, sample: Sample) -> float | None:
    """MathVista's before it asks a model: the whole reply is a number of the answer's type; None for any other."""
    kind = _kind(sample)
    try:
        value = str(int(reply)) if kind == "integer" else str(float(reply)) if kind == "float" else None
    except ValueError:
        return None  # the model extracts
    given = normal_form(value, kind, _precision(sample))
    return None if given is None else float(any(given == _gold(answer, sample) for answer in sample.answers))


def equals_typed_lmms(reply: str, sample: Sample) -> float | None:
    """lmms-eval's: decimals are rounded to a number of digits that is itself no whole number, so they never match."""
    return 0.0 if _kind(sample) == "float" else equals_typed(reply, sample)


def equals_typed_vlmevalkit(reply: str, sample: Sample) -> float | None:
    """VLMEvalKit's before its judge: the whole reply as a number equals the answer; lists are never right."""
    kind = _kind(sample)
    if kind == "list":
        return 0.0
    try:
        given: float = int(reply) if kind == "integer" else float(reply)
    except ValueError:
        return None  # the judge extracts
    return 1.0 if any(given == _number(answer) for answer in sample.answers) else None


def normal_form(value: Any, kind: str, precision: int | None) -> str | None:
    """Return a value as its type writes it, or None for what is no such value."""
    if value is None:
        return None
    text = str(value).strip()
    if kind not in ("integer", "float"):
        return text
    number = _number(text)
    if number is None:
        return None
    return str(int(number)) if kind == "integer" else str(round(number, precision if precision is not None else 1))


def _value_in(reply: str, kind: str) -> str | None:
    text = reply.strip()
    if kind == "list":
        found = _LIST.findall(text)
        return found[-1] if found else None
    if kind not in ("integer", "float"):
        return text
    if _number(text) is not None:
        return text
    number = extract_number(text)
    # One of several numbers, with nothing that says it is the answer, is nobody's value.
    return None if number.value is None or number.rule == LAST else str(number.value)


def _gold(answer: str, sample: Sample) -> str | None:
    return normal_form(answer, _kind(sample), _precision(sample)) or answer


def _kind(sample: Sample) -> str:
    return str(sample.tags.get("answer_type") or "text")


def _precision(sample: Sample) -> int | None:
    stated = _number(str(sample.tags.get("precision")))
    return None if stated is None else int(stated)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


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
    "typed-whole": equals_typed_whole,
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
    "tir-bench": judge_tir,
}
"""By the name that cards use (`score_options.open`); `mra-whole` is a former name in runs of 0.2."""
EMPTY_FITS = ("lmms-mmvu",)
"""Rules whose tool counts an empty reply as right."""
DRAWS: Mapping[str, Callable[[Sample], Sequence[str]]] = {"cmmmu-as-run": drawn_from}
"""Rules whose tool draws an answer where it reads none: among what."""
