"""CMMMU's rules for its three kinds of questions (choice, judgement, blank): as they are meant, and as its script runs.

Facts: lmms-eval 2747f96 cmmmu/utils.py, which is the benchmark's own script. Two faults of it are left out of the first
reading: a positive word is looked for before the negative one that holds it (不对 is read as 对), and a letter is
counted inside words (the A of `Answer`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...core.types import Sample

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
