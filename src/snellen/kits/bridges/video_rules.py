"""How benchmarks of videos and the harnesses that run them read a letter, their misreadings included.

Facts: lmms-eval 0696573 to 12a4e4e, VLMEvalKit 006aa29 to 00fff54, Video-MME, LVBench and MotionBench as their own
scripts have it. A reader returns None where its tool draws a letter, asks a judge or gives up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ...core.types import Sample
from ...data.files.records import parse_literal
from ...extract.numbers import parse_number
from ...scoring.scorers.mmmu_open import judge_open
from .toolkit_rules import LONG_WORDS, can_infer

Options = Mapping[str, str]
_ANNOUNCED = ("The best answer is", "The correct answer is", "The answer is", "The answer")
_JOINED = ("The best option isThe correct option is", "Best answer:Best option:")
"""Two commas are missing in the list that Video-MME gives away, so that no reply holds these phrases."""
_APART = ("The best option is", "The correct option is", "Best answer:", "Best option:")
_MARKS = ",.!?;:'"
_EGO_SHAPES = ("({})", "{} ", "{}.")
_MCQ_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
_DOTTED = re.compile(r"([A-E])\.\s*.+", re.IGNORECASE)
_ALONE = re.compile(r"\b([A-E])\b", re.IGNORECASE)
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_MOTION_PHRASES = ("THE BEST ANSWER IS", "THE CORRECT ANSWER IS", "THE ANSWER IS", "BEST ANSWER:", "ANSWER:")
_MOTION_SHAPES = (re.compile(r"\b([A-F])\b"), re.compile(r"([A-F])[.):]"), re.compile(r"([A-F])"))


def _first_capital(phrases: Iterable[str], letters: str) -> Callable[[str, Options], str | None]:
    """Return a reader of the first of these capitals anywhere, even inside a word, after phrases were removed."""

    def _read(reply: str, options: Options) -> str | None:
        text = reply.strip()
        for phrase in phrases:
            text = text.replace(phrase, "")
        return next((character for character in text if character in letters), None)

    return _read


read_video_mme = _first_capital((*_ANNOUNCED, *_JOINED), "ABCD")
"""Video-MME's own script: `Best option: C` is B, the capital of Best."""
read_video_mme_kit = _first_capital((*_ANNOUNCED, *_JOINED, "Answer:", "Option:"), "ABCD")
"""VLMEvalKit's copy of it."""
read_longvideobench = _first_capital((*_ANNOUNCED, *_APART), "ABCDE")
"""LongVideoBench in lmms-eval, with its commas; where no capital is found both it and the paper draw a letter."""
read_longvideobench_kit = _first_capital((*_ANNOUNCED, *_JOINED, "Answer:", "Option:"), "ABCDE")
"""LongVideoBench in VLMEvalKit, without them."""


def read_bracketed(reply: str, options: Options) -> str | None:
    """LVBench, MotionBench: what stands before the first `)` and after a `(`, its first character (`The …` is T)."""
    before = reply.strip().partition(")")[0].strip()
    inside = before.split("(")[1].strip() if "(" in before else before
    return inside[:1] or None


def read_before_bracket(reply: str, options: Options) -> str | None:
    """MLVU's own: the character before the first `)`; without one the whole reply must be the letter."""
    said = reply[max(reply.index(")") - 1, 0) : reply.index(")")] if ")" in reply else reply
    return said if said in options else None


def read_mvbench_lmms(reply: str, options: Options) -> str | None:
    """MVBench in lmms-eval: `X. …`, else the first of A to E that stands alone, an article too (`a dog` is A)."""
    dotted = _DOTTED.fullmatch(reply.strip())
    if dotted:
        return dotted[1].upper()
    text = reply.replace("\n", " ").replace("\t", " ").strip()
    bare = text
    for mark in _MCQ_PUNCTUATION:
        glued = f"{mark} " in text or f" {mark}" in text or _COMMA_IN_NUMBER.search(text)
        bare = bare.replace(mark, "" if glued else " ")
    alone = _ALONE.search(bare.strip("'\"()"))
    return alone[1].upper() if alone else None


def read_egoschema(reply: str, options: Options) -> str | None:
    """EgoSchema in lmms-eval: of `(X)`, `X ` and `X.` the one that stands first, else an option with its letter.

    Each shape is taken where it stands last; where none is found lmms-eval draws a letter.
    """
    text = _bare(reply)
    places = [(text.rfind(shape.format(mark)), mark) for shape in _EGO_SHAPES for mark in options]
    if len(text.split()) > LONG_WORDS and not any(place >= 0 for place, _ in places):
        places = [(text.lower().rfind(f"{mark}. {said}".lower()), mark) for mark, said in options.items()]
    found = [one for one in places if one[0] >= 0]
    return min(found, key=lambda one: one[0])[1] if found else None


def read_tempcompass(reply: str, options: Options) -> str | None:
    """TempCompass, in both harnesses too: the letter, or a reply that begins with `X.` or `X)`; the rest is judged."""
    return reply[:1] if reply in options or (reply[1:2] in (".", ")") and reply[:1] in options) else None


def read_motionbench(reply: str, options: Options) -> str | None:
    """MotionBench in lmms-eval: in capitals, the first of A to F that stands alone, else that is marked, else any."""
    text = reply.strip().upper()
    for phrase in _MOTION_PHRASES:
        text = text.replace(phrase, "")
    return next((found[1] for shape in _MOTION_SHAPES if (found := shape.search(text))), None)


def read_video_mmmu(reply: str, options: Options) -> str | None:
    """Video-MMMU's own: `X.` or `X:` before `(X)` before `X ` before an option's text; of several the last."""
    text = _bare(reply)
    dotted, coloned, bracketed, spaced = (_shaped_so(shape, text, options) for shape in ("{}.", "{}:", "({})", "{} "))
    ways = ((dotted + coloned, "{}." if dotted else "{}:"), (bracketed, "({})"), (spaced, " {} "))
    for named, last in ways:
        if named:
            return max(named, key=lambda mark: text.rfind(last.format(mark)))
    return _last_text(text, options) if len(text.split()) > LONG_WORDS else None


def _bare(reply: str) -> str:
    """Return a reply without the marks at its ends, each taken away once, between two spaces."""
    for mark in _MARKS:
        reply = reply.strip(mark)
    return f" {reply} "


def _shaped_so(shape: str, text: str, options: Options) -> list[str]:
    return [mark for mark in options if shape.format(mark) in text]


def _last_text(text: str, options: Options) -> str | None:
    """Return the option whose text stands last in a text, in either case."""
    places = {mark: text.lower().rfind(said.lower()) for mark, said in options.items()}
    found = [mark for mark, place in places.items() if place >= 0]
    return max(found, key=places.__getitem__) if found else None


def read_video_mmmu_kit(reply: str, options: Options) -> str | None:
    """Video-MMMU in VLMEvalKit: the same of what follows the last `Answer:`."""
    return read_video_mmmu(reply.rpartition("Answer:")[2].strip(), options)


def read_first_word(reply: str, options: Options) -> str | None:
    """VSI-Bench and lmms-eval: the first word, without a full stop, in either case; `(A)` and `The …` are wrong."""
    word = first_word(reply)
    return word.upper() if word.upper() in options else None


def first_word(reply: str) -> str:
    """Return what stands before the first space, without a full stop at its end."""
    return reply.partition(" ")[0].rstrip(".").strip()


_SPATIAL_TAGGED = re.compile(
    r"<\s*answer\b[^>]*>\s*([A-J])[\s.．:：)\]】、]*.*?<\s*/\s*answer\s*>", re.IGNORECASE | re.DOTALL
)
_SPATIAL_CLOSED = tuple(
    re.compile(rf"(?<![A-Za-z])[(\[{{（【]?\s*([A-F])\s*[)\]}}）】]?\s*</\s*{tag}\s*>", re.IGNORECASE)
    for tag in ("answer", "think")
)
_SPATIAL_LISTED = re.compile(r"[*_>\-\s]*(?:option|选项)\s+[A-J]\s*[:：]", re.IGNORECASE)
_SPATIAL_LINE = re.compile(r"\s*[*_`>（）\[\]【】()]*\s*([A-F])\s*[*_`（）\[\]【】()]*\s*", re.IGNORECASE)
_SPATIAL_LABEL = re.compile(r"\s*([A-F])\s*[.．:：)\]】、-]\s+", re.IGNORECASE)
_SPATIAL_TOKEN = re.compile(
    r"(?<![A-Za-z])[*_`（\[{(]*\s*([A-F])\s*[*_`）\]})]*(?=$|[\s.,:;!?)\]】》」』，。；、：）])"
)
_SPATIAL_SAID = re.compile(
    r"(?:final\s*answer|the\s*answer\s*is|answer(?:\s*is)?|correct\s*answer|答案|最终答案|结论|所以|因此|我选(?:择)?|选择|选)"
    r"\s*[:：>＝=]?\s*[(\[{（【]?\s*([A-F])\s*[)\]}）】]?(?:\b|[.)、。])",
    re.IGNORECASE,
)
_SPATIAL_CAPITAL = re.compile(r"(?<![A-Za-z])[(\[{（【]?\s*([A-F])\s*[)\]}）】]?(?![A-Za-z])")
_SPATIAL_LINES, _SPATIAL_TAIL = 6, 800
_THOUGHT = (re.compile(r"</\s*think\s*>", re.IGNORECASE), re.compile(r"<\s*think\s*>", re.IGNORECASE))
UNSEEN = re.compile("[\u200b\u200c\u200d\ufeff]")
"""Characters without a width."""


def read_spatial_kit(reply: str, options: Options) -> str | None:
    """VSI-Bench in VLMEvalKit: `<answer>`, else the last line that names one letter, a phrase, or the only capital."""
    text = UNSEEN.sub("", reply.strip())
    tagged = _SPATIAL_TAGGED.search(text)
    tail = text[-_SPATIAL_TAIL:]
    found = tagged or next((found for shape in _SPATIAL_CLOSED if (found := shape.search(tail))), None)
    if found:
        return found[1].upper()
    for part in (after_thought(text), tail):
        letter = _letter_of_lines(part.splitlines()[-_SPATIAL_LINES:])
        if letter:
            return letter
    said = _SPATIAL_SAID.search(text)
    if said:
        return said[1].upper()
    kept = "\n".join(line for line in text.splitlines() if not _SPATIAL_LISTED.match(line))
    capitals: set[str] = set(_SPATIAL_CAPITAL.findall(kept))
    return capitals.pop() if len(capitals) == 1 else None


def after_thought(text: str) -> str:
    """Return what follows the last `</think>`, else the last `<think>`, else all of it."""
    for tag in _THOUGHT:
        tags = list(tag.finditer(text))
        if tags:
            return text[tags[-1].end() :].strip()
    return text


def _letter_of_lines(lines: Iterable[str]) -> str | None:
    """Return the letter of the last line that is, begins with, or holds just one; lists of options are passed over."""
    for line in reversed([line.strip() for line in lines if line.strip()]):
        if _SPATIAL_LISTED.match(line):
            continue
        whole = _SPATIAL_LINE.fullmatch(line) or _SPATIAL_LABEL.match(line)
        if whole:
            return whole[1].upper()
        tokens: set[str] = set(_SPATIAL_TOKEN.findall(line))
        if len(tokens) == 1:
            return tokens.pop()
    return None


def fits_mvbench(reply: str, options: Options) -> list[str]:
    """Return what VLMEvalKit's MVBench lets pass: a first word that is a part of `(x)`, as nothing and `(` are of all.

    Else its rule for letters and texts; a judge, if it has one, comes after that.
    """
    word = reply.lower().partition(" ")[0]
    fits = [mark for mark in options if word.replace(".", "") in f"({mark.lower()})" or f"({mark.lower()})" in word]
    return fits or _inferred(reply, options)


def fits_mlvu(reply: str, options: Options) -> list[str]:
    """Return what VLMEvalKit's MLVU lets pass: MLVU's own letter, and the one that its rule for all options finds."""
    own = read_before_bracket(reply, options)
    return list(dict.fromkeys([*([own] if own else []), *_inferred(reply, options)]))


def _inferred(reply: str, options: Options) -> list[str]:
    found = can_infer(reply, options)
    return [found] if found is not None and found in options else []


def fits_mmvu(reply: str, options: Options) -> list[str]:
    """Return what lmms-eval's MMVU lets pass: every option whose letter stands alone, or whose text the reply holds.

    Also one whose letter occurs anywhere if a word of its text does.
    """
    lowered = reply.strip().lower()
    return [mark for mark, text in options.items() if _fits_mmvu(mark, text.strip().lower(), lowered)]


def _fits_mmvu(mark: str, text: str, reply: str) -> bool:
    if re.search(rf"\b{re.escape(mark.lower())}\b", reply) or text in reply:
        return True
    words = [word.strip("""!"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~""") for word in text.split()]
    return mark.lower() in reply and any(len(word) > 2 and word in reply for word in words)


FITTING: Mapping[str, Callable[[str, Options], list[str]]] = {
    "vlmevalkit-mvbench": fits_mvbench,
    "vlmevalkit-mlvu": fits_mlvu,
    "lmms-mmvu": fits_mmvu,
}
"""Rules that look whether a reply fits the right option, and so let it fit others too (`score_options.reader`)."""


_POWERS = str.maketrans({"²": "^2", "³": "^3", "¹": "^1", "⁰": "^0", "⁴": "^4", "⁵": "^5"})
_NUMBER = re.compile(r"\d+\.?\d*")
_ORDER = re.compile(r"o\s*\([^)]+\)")
_NEAR = 0.01
_SIGNED = re.compile(r"-?\d+(?:\.\d+)?")
_WITH_POWERS = re.compile(r"[-+]?(?:\d*\.\d+|\d+)(?:[eE][-+]?\d+)?")
_TAGGED_NUMBER = re.compile(
    rf"<\s*answer\b[^>]*>\s*({_WITH_POWERS.pattern})(?:[^\d<][^<]*)?<\s*/\s*answer\s*>", re.IGNORECASE
)
_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_NUMBER_WORDS = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)
_PUNCTUATION = """!"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"""


def mra_of_first_word(reply: str, sample: Sample) -> float | None:
    """VSI-Bench's own: the first word must be the number (`about 4` is none)."""
    return _mra(_float(first_word(reply)), sample)


def mra_of_first_number(reply: str, sample: Sample) -> float | None:
    """VSI-Bench in lmms-eval: the first word as a number, else the first number in digits, else in words."""
    given = _float(first_word(reply))
    if given is None and (digits := _SIGNED.search(reply)):
        given = float(digits[0])
    if given is None and (word := _NUMBER_WORDS.search(reply)):
        given = float(_WORDS.index(word[1].lower()))
    return _mra(given, sample)


def mra_of_last_number(reply: str, sample: Sample) -> float | None:
    """VSI-Bench in VLMEvalKit: the number an `<answer>` begins with, else the last one after any thought.

    Words up to twenty are numbers too; of a list its first member is read.
    """
    listed = parse_literal(reply.strip()) if reply.strip().startswith("[") and reply.strip().endswith("]") else None
    text = str(listed[0]) if isinstance(listed, list) and listed else reply
    text = _NUMBER_WORDS.sub(lambda word: str(_WORDS.index(word[1].lower())), UNSEEN.sub("", text.strip()))
    tagged = _TAGGED_NUMBER.search(text)
    numbers = [tagged[1]] if tagged else _WITH_POWERS.findall(after_thought(text)) or _WITH_POWERS.findall(text)
    return _mra(float(numbers[-1]) if numbers else None, sample)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _mra(given: float | None, sample: Sample) -> float | None:
    """Return mean relative accuracy over ten thresholds, 0.50 to 0.95; None where no number was given."""
    gold = parse_number(sample.answers[0])
    if given is None or gold is None or not gold.value or not math.isfinite(given):
        return None
    error = abs(given - gold.value) / abs(gold.value)
    return float(np.mean(error <= 1 - np.linspace(0.5, 0.95, 10)))


def mmmu_after_answer(reply: str, sample: Sample) -> float:
    """Video-MMMU in VLMEvalKit: MMMU's rule for open questions, of what follows the last `Answer:`."""
    return float(judge_open(reply.rpartition("Answer:")[2].strip(), sample.answers))


def fits_text(reply: str, sample: Sample) -> float | None:
    """lmms-eval's MMVU: right where one text holds the other (so an empty reply is), numbers agree or all words occur.

    None for the rest, which it shows to a judge.
    """
    return 1.0 if any(_fits(_plain(reply), _plain(answer)) for answer in sample.answers) else None


def _plain(text: str) -> str:
    return " ".join(text.strip().lower().translate(_POWERS).split())


def _fits(given: str, wanted: str) -> bool:
    held = wanted in given or given in wanted
    return held or _same_number(given, wanted) or _same_order(given, wanted) or _all_words(given, wanted)


def _same_number(given: str, wanted: str) -> bool:
    numbers = [float(found[0]) for text in (given, wanted) if (found := _NUMBER.search(text))]
    return len(numbers) == 2 and abs(numbers[0] - numbers[1]) < _NEAR


def _same_order(given: str, wanted: str) -> bool:
    """Tell whether both name the same order of growth, `O(n)`."""
    orders = [found[0] for text in (given, wanted) if (found := _ORDER.search(text))]
    return len(orders) == 2 and orders[0] == orders[1]


def _all_words(given: str, wanted: str) -> bool:
    """Tell whether all longer words of an answer of two to five occur."""
    words, said = ([word.strip(_PUNCTUATION) for word in text.split()] for text in (wanted, given))
    return 2 <= len([word for word in words if word]) <= 5 and all(word in said for word in words if len(word) > 2)
