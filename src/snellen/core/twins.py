"""A sample and a variant to the question that is really asked: itself, or a twin with other numbers, names, colours.

Twins are drawn by rules of the card, or come with the row; they travel in the sample's `meta`, so that scoring needs
nothing else.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .config import convert
from .errors import ConfigError
from .ids import rng
from .types import Sample

AXIS, KEPT = "twin", "twins"
OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
TRIES = 20
"""Draws before a rule is given up on: a twin must differ from its question, and its options from one another."""


class TwinRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How a question is drawn anew: where `find` matches, its named groups are drawn again."""

    find: str
    """A regular expression over the question, with named groups."""
    draw: dict[str, str | tuple[str, ...]]
    """Group -> numbers `2-20`, or words to draw from."""
    answer: str = ""
    """The new answer as a formula of the groups (`a + b`); empty: the words that were drawn replace the old ones."""


class Twin(Struct, frozen=True):
    """What a twin has of its own."""

    question: str
    options: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


def twin_of(sample: Sample, axes: Mapping[str, str]) -> Sample:
    """Return the sample as a variant asks it: `twin=2` is its second twin."""
    if AXIS not in axes:
        return sample
    known: Sequence[Any] = sample.meta.get(KEPT) or ()
    number = axes[AXIS]
    if not number.isdigit() or not 1 <= int(number) <= len(known):
        raise ConfigError(f"variant {AXIS}={number}: sample {sample.id!r} has {len(known)} twins")
    twin = convert(known[int(number) - 1], Twin, f"twin {number} of sample {sample.id!r}")
    return replace(sample, question=twin.question, options=twin.options, answers=twin.answers)


def with_twins(sample: Sample, rules: Sequence[TwinRule], count: int, seed: int = 0) -> Sample:
    """Return the sample with its twins drawn by the first rule that fits; one without a fitting rule stays."""
    if sample.meta.get(KEPT):
        return sample
    for rule in rules:
        match = re.search(rule.find, sample.question)
        if match is not None:
            drawn = [_draw(sample, rule, match, number, seed) for number in range(count)]
            twins = [{"question": one.question, "options": one.options, "answers": one.answers} for one in drawn if one]
            return replace(sample, meta={**sample.meta, KEPT: twins}) if len(twins) == count else sample
    return sample


def read_rules(table: Sequence[Any], task: str) -> tuple[TwinRule, ...]:
    """Check the rules of a card."""
    rules = tuple(convert(one, TwinRule, f"twin rule of task {task!r}") for one in table)
    for rule in rules:
        try:
            groups = re.compile(rule.find).groupindex
        except re.error as error:
            raise ConfigError(f"task {task!r}: twin rule {rule.find!r} is no regular expression: {error}") from None
        unknown = next((name for name in rule.draw if name not in groups), None)
        if unknown is not None or not rule.draw:
            what = f"draws {unknown!r}, which {rule.find!r} does not name" if rule.draw else "draws nothing"
            raise ConfigError(f"task {task!r}: a twin rule {what}")
    return rules


def _draw(sample: Sample, rule: TwinRule, match: re.Match[str], number: int, seed: int) -> Twin | None:
    """Return one twin, or None where no draw differs from the question and keeps its options apart."""
    draw = rng(seed, sample.id, AXIS, number)
    for _ in range(TRIES):
        new = {name: _one(told, draw.randint, draw.choice) for name, told in rule.draw.items()}
        if all(new[name] == match[name] for name in new):
            continue
        twin = _made(sample, rule, match, new)
        if len(set(twin.options)) == len(sample.options) and twin.question != sample.question:
            return twin
    return None


def _one(told: str | Sequence[str], between: Callable[[int, int], int], choose: Callable[[Any], Any]) -> str:
    if isinstance(told, str):
        low, _, high = told.partition("-")
        if not (low.isdigit() and high.isdigit() and int(low) <= int(high)):
            raise ConfigError(f"a twin rule draws {told!r}, which is no range such as 2-20")
        return str(between(int(low), int(high)))
    return str(choose(list(told)))


def _made(sample: Sample, rule: TwinRule, match: re.Match[str], new: Mapping[str, str]) -> Twin:
    question = sample.question
    for name in sorted(new, key=match.start, reverse=True):
        question = question[: match.start(name)] + new[name] + question[match.end(name) :]
    if not rule.answer:
        changed = {match[name]: value for name, value in new.items()}
        return Twin(question, *(tuple(_renamed(text, changed) for text in texts) for texts in _texts(sample)))
    old, fresh = (compute(rule.answer, values) for values in ({**match.groupdict()}, {**match.groupdict(), **new}))
    moved = tuple(tuple(_moved(text, fresh - old) for text in texts) for texts in _texts(sample))
    return Twin(question, *moved)


def _texts(sample: Sample) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return sample.options, sample.answers


def _renamed(text: str, changed: Mapping[str, str]) -> str:
    pattern = "|".join(re.escape(old) for old in sorted(changed, key=len, reverse=True))
    return re.sub(rf"\b(?:{pattern})\b", lambda found: changed[found[0]], text) if pattern else text


def _moved(text: str, by: int) -> str:
    """Return a number that is as far from the answer as it was; what is no number stays."""
    return str(int(text) + by) if re.fullmatch(r"-?\d+", text) else text


def compute(formula: str, values: Mapping[str, str | None]) -> int:
    """Return the value of a formula of whole numbers and names with + - * //; anything else is refused.

    Example:
        >>> from snellen.core.twins import compute
        >>> compute("a * b + 1", {"a": "3", "b": "4"})
        13
    """
    try:
        return _value(ast.parse(formula, mode="eval").body, values)
    except (SyntaxError, KeyError, ValueError, TypeError, ZeroDivisionError, RecursionError) as error:
        raise ConfigError(f"twin rule: answer {formula!r} cannot be computed: {error}") from None


def _value(node: ast.expr, values: Mapping[str, str | None]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return int(values[node.id] or "")
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return int(OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values)))
    raise ValueError("only whole numbers, names, + - * // are allowed")
