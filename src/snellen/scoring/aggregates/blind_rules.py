"""Options without image or question to what a rule of the surface would score; ties share the credit: no luck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

Preference = Callable[[Sequence[str]], Sequence[float]]
STOPS = (".", "。")


def _ends_in_stop(text: str) -> bool:
    return text.rstrip().endswith(STOPS)


def prefer_no_period(options: Sequence[str]) -> Sequence[float]:
    """Prefer what does not end in a full stop."""
    return [float(not _ends_in_stop(option)) for option in options]


def prefer_period(options: Sequence[str]) -> Sequence[float]:
    """Prefer what ends in a full stop."""
    return [float(_ends_in_stop(option)) for option in options]


def prefer_short(options: Sequence[str]) -> Sequence[float]:
    """Prefer few characters."""
    return [-float(len(option)) for option in options]


def prefer_long(options: Sequence[str]) -> Sequence[float]:
    """Prefer many characters."""
    return [float(len(option)) for option in options]


def prefer_shared_words(options: Sequence[str]) -> Sequence[float]:
    """Prefer the option that shares most words with the others: wrong ones are often built around the right one."""
    bags = [set(option.casefold().strip(" .").split()) for option in options]
    counts = Counter(word for bag in bags for word in bag)
    return [float(sum(counts[word] - 1 for word in bag)) for bag in bags]


def prefer_capital(options: Sequence[str]) -> Sequence[float]:
    """Prefer what begins with a capital letter."""
    return [float(option[:1].isupper()) for option in options]


def prefer_odd_one(options: Sequence[str]) -> Sequence[float]:
    """Prefer the one whose ending, first letter or number of words is unlike all others."""
    shapes = [(_ends_in_stop(option), option[:1].isupper(), "," in option) for option in options]
    counts = [Counter(column) for column in zip(*shapes, strict=True)]
    return [float(sum(counts[place][value] == 1 for place, value in enumerate(shape))) for shape in shapes]


RULES: dict[str, Preference] = {
    "no-period": prefer_no_period,
    "period": prefer_period,
    "shortest": prefer_short,
    "longest": prefer_long,
    "majority": prefer_shared_words,
    "capital": prefer_capital,
    "odd-one-out": prefer_odd_one,
}


def credit(options: Sequence[str], right: int, preference: Preference) -> float:
    """Return the chance that the rule takes the right option, drawing among those it prefers equally."""
    values = preference(options)
    best = max(values)
    return (values[right] == best) / sum(value == best for value in values)
