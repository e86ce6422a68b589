"""Turns replies into right or wrong by FlagEvalMM's own rules (profile `flageval`), for numbers comparable with it."""

from __future__ import annotations

import difflib
import re
from typing import Any

SIMILARITY_THRESHOLD = 0.7
REJECTION_STARTS = ("Error code", "Can not answer because of", "Input data may contain inappropriate content")
"""A reply that starts so is an error of the harness that wrote the file, not an answer."""

_WRONG_SIGNS = ("\\times", "不对", "不正确", "×")
_LATEX_TEXT = re.compile(r"\\text\s*\{(.*?)\}")
_SYNONYMS = {
    "√": "正确", "：": ":", "$": "", "（": "(", "）": ")", "，": ",", "。": ".", "变小": "减小", "变大": "增大",
    "路程": "距离", "\\pi": "π", "＞": ">", "＜": "<", "；": ";",
}  # fmt: skip
_CIRCLED = {chr(ord("①") + offset): str(offset + 1) for offset in range(10)}
_WHOLE_ANSWERS = {"错": "错误", "对": "正确", "“T”": "T", "“F”": "F"}
_WHOLE_ANSWERS |= {f"({answer})": answer for answer in ("F", "T", "正确", "错误")}
_CUES = (
    "Answer:", "Answer is", "answer is", "Answer", "answer", "答案为", "答案是", "解是", "解为", "答案", "结果", "为",
    "因此", " = ",
)  # fmt: skip
_WITH_UNIT = re.compile(r"(\d+)(?:cm|m|km|mm|s|h|kg|g|l|ml|mol|厘米|米|千米|°|毫米|月|秒|小时|克|千克|升|毫升|摩尔)\n?")


def is_rejected(answer: Any) -> bool:
    """Whether the reply is an error text, which FlagEvalMM takes out of numerator and denominator."""
    return isinstance(answer, str) and answer.startswith(REJECTION_STARTS)


def normalise_blank(text: str) -> str:
    """Return the form in which fill-in answers are compared."""
    if "$" not in text:
        for sign in _WRONG_SIGNS:
            text = text.replace(sign, "错误")
    text = _LATEX_TEXT.sub(r"\1", text)
    for old, new in (_SYNONYMS | _CIRCLED).items():
        text = text.replace(old, new)
    text = _WHOLE_ANSWERS.get(text, text)
    cue = next((cue for cue in _CUES if cue in text), None)
    text = (text.rsplit(cue, 1)[-1] if cue else text).strip().removeprefix(":")
    text = text[:-1] if text.endswith((".", ",", ":", ";")) else text
    unit = _WITH_UNIT.fullmatch(text)
    return (unit[1] if unit else text).strip()


def judge_blank(reply: str, answer: str) -> tuple[bool, str]:
    """Return whether any line of the reply is more than 0.7 similar to the answer, and that line (else all lines)."""
    visible = reply.split("</think>")[1] if "</think>" in reply else reply
    wanted = normalise_blank(answer)
    lines = [line for line in map(normalise_blank, visible.split("\n")) if line]
    for line in lines:
        matcher = difflib.SequenceMatcher(None, line, wanted)
        # The upper bound by length spares the quadratic comparison of long lines.
        if matcher.real_quick_ratio() > SIMILARITY_THRESHOLD and matcher.ratio() > SIMILARITY_THRESHOLD:
            return True, line
    return False, "\n".join(lines)
