"""Answers in a form made for machines (\\boxed{}, answer tags, JSON fields) to options; the last one counts."""

from __future__ import annotations

import re

from .extraction import AMBIGUOUS, NOT_OFFERED, TRUNCATED, UNPARSED, Extraction
from .numbers import find_measures, fitting_option
from .option_set import OptionSet, Reply
from .word_lists import LazyPattern

_BOX = LazyPattern(r"boxed\s?\{|<\|begin_of_box\|>", finds="\\boxed{b}", passes="the box {b}")
_TAG = LazyPattern(r"[<\[](<machine.tag>)[>\]]", finds="<answer>b</answer>", passes="<b>b</b>")
_FIELD = LazyPattern(
    r"[\"']?(?:<machine.field>)[\"']?\s?:\s{0,3}"
    r"(?P<value>\"[^\"\n]{0,200}\"?|'[^'\n]{0,200}'?|\[[^\]\n]{0,200}\]?|[^\s,}\n]{1,20})",
    finds='{"answer": "b"}',
    passes='{"reason": "b"}',
)
_OBJECT = LazyPattern(
    r"(?<![\\a-z}^_])\{\s{0,8}(?:[\"']|[a-z_\u4e00-\u9fff][\w ]{0,30}:)", finds='{"answer": "b"}', passes="x^{2:3}"
)
_SPLIT = re.compile(r"\s?(?:,|;|/|&|\band\b|\bor\b|和|或|、)\s?")
_JOINED = LazyPattern(r"[}\s$\\()]*(?:or|and|,|/)[\s$\\()]*(?:boxed\s?\{)?", finds="} or \\boxed{")
_NOTHING = frozenset({"null", "none", "n/a", "unknown"})
_SHORT = 40
_MOST = 32
"""Boxes and tags that are looked at, from the end: a bound on time for replies that loop."""


def structured(options: OptionSet, reply: Reply) -> Extraction | None:
    """The last box, tag or field that says something decides."""
    low = reply.low
    braced, tagged = "{" in low, "<" in low or "[" in low
    verdict = None
    if (braced and "boxed" in low) or (tagged and "begin_of_box" in low):
        verdict = _decide(options, reply, _boxes(low), "boxed")
    if verdict is None and tagged:
        verdict = _decide(options, reply, _tags(low), "tag")
    return verdict or (_decide(options, reply, _fields(low), "json") if braced else None)


def other_box(options: OptionSet, reply: Reply) -> Extraction | None:
    """A box that holds no option is an answer all the same: what stands beside it is working, and none is chosen."""
    low = reply.low
    places = _boxes(low) if "boxed" in low and "{" in low else []
    filled = [place for place in places if low[slice(*place)].strip(" {}\"'$\\") and place[1] < len(low)]
    return Extraction(None, "boxed", NOT_OFFERED, reply.span(*filled[-1])) if filled else None


def answer_field(body: str) -> tuple[int, int] | None:
    """Return where the last box, tag or JSON field with any content stands."""
    low = body.lower()
    places = _boxes(low) or _tags(low) or (_fields(low) if "{" in low else [])
    return next(((start, end) for start, end in reversed(places) if low[start:end].strip()), None)


def _decide(options: OptionSet, reply: Reply, places: list[tuple[int, int]], rule: str) -> Extraction | None:
    for position, (start, end) in enumerate(reversed(places[-_MOST:])):
        verdict = _read(options, reply, start, end, rule)
        if verdict is None:
            continue
        # `\boxed{A} or \boxed{B}`: two joined boxes choose nothing.
        rivals = places[: len(places) - position - 1][-1:]
        joined = verdict.letter and rivals and _JOINED.fullmatch(reply.low, rivals[0][1], min(start, rivals[0][1] + 29))
        if joined and joined.end() == start and _read(options, reply, *rivals[0], rule) != verdict:
            return Extraction(None, rule, AMBIGUOUS)
        return verdict
    return None


def _read(options: OptionSet, reply: Reply, start: int, end: int, rule: str) -> Extraction | None:
    content = reply.body[start:end]
    if not content.strip(" {}\"'<>/[]\\$"):
        return Extraction(None, rule, TRUNCATED) if end >= len(reply.body.rstrip()) else None
    index = options.bare(content)
    if index is None:
        index = _by_quantity(options, content)
    if index is not None:
        return options.pick_at(reply, index, rule, start, end)
    reason = _why_not(options, content)
    return Extraction(None, rule, reason, reply.span(start, end)) if reason else None


def _by_quantity(options: OptionSet, content: str) -> int | None:
    """Return the option that equals the only number of a field (`1/4` for `0.25`), if all options are quantities."""
    said = find_measures(content) if options.texts.measures and len(content) <= _SHORT else []
    return fitting_option(said[0], options.texts.measures) if len(said) == 1 else None


def _why_not(options: OptionSet, content: str) -> str | None:
    """Say why a field that holds no single option still settles the matter: several, a strange mark, or null."""
    parts = [options.bare(part) for part in _SPLIT.split(content.strip(" []{}"))[:27]]
    if None not in parts and len(set(parts)) > 1:
        return AMBIGUOUS
    core = content.strip(" .()[]{}\"'$*\\")
    if len(core) == 1 and core.isupper():
        return NOT_OFFERED
    return UNPARSED if core.lower() in _NOTHING and options.texts.none is None else None


def _boxes(low: str) -> list[tuple[int, int]]:
    """Contents of \\boxed{…}, braces balanced, at most 200 characters."""
    places = []
    for match in list(_BOX.finditer(low))[-_MOST:]:
        end = low.find("<|end_of_box", match.end()) if match.group()[0] == "<" else _closing(low, match.end())
        places.append((match.end(), end if end >= 0 else min(len(low), match.end() + 200)))
    return places


def _closing(low: str, start: int) -> int:
    depth = 1
    for at in range(start, min(len(low), start + 200)):
        depth += (low[at] == "{") - (low[at] == "}")
        if depth == 0:
            return at
    return -1


def _tags(low: str) -> list[tuple[int, int]]:
    """Contents of <answer>…</answer> and its kin; an open tag reaches to the end of the reply."""
    places = []
    for match in list(_TAG.finditer(low))[-_MOST:]:
        end = low.find("</" if match.group()[0] == "<" else "[/", match.end(), match.end() + 400)
        places.append((match.end(), end if end >= 0 else min(len(low), match.end() + 400)))
    return places


def _fields(low: str) -> list[tuple[int, int]]:
    """Values of answer fields from the first brace on that opens an object: those of LaTeX and of sets do not."""
    begin = _OBJECT.search(low)
    return [match.span("value") for match in _FIELD.finditer(low, begin.start())] if begin else []
