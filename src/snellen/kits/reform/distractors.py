"""An answer and a corpus to answer options: normalised, unique, hard, seeded, each with its provenance."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct
from rapidfuzz import fuzz

from ...core.errors import DataError
from ...data.answer_kinds import (
    normalise,
    word_lists,
)


def opposite_of(answer: str) -> str | None:
    """Return the other one of a pair of opposites."""
    return _opposites().get(answer.strip().casefold())


@lru_cache(maxsize=1)
def _opposites() -> dict[str, str]:
    pairs = word_lists()["opposites"]["pairs"]
    table: dict[str, str] = {}
    for left, right in pairs:
        table.setdefault(left, right)
        table.setdefault(right, left)
    return table


MAX_SIMILARITY = 90.0
"""At or above this ratio two answers are the same answer spelt twice."""


class Distractor(Struct, frozen=True, omit_defaults=True):
    """A wrong option and where it came from."""

    text: str
    source: str
    similarity: float | None = None
    count: int | None = None


def same_answer(left: str, right: str) -> bool:
    """Say whether two texts are one answer: equal, one inside the other word by word, or nearly the same spelling."""
    return _same_form(normalise(left), normalise(right))


def _same_form(a: str, b: str) -> bool:
    if a == b:
        return True
    if a.isdigit() or b.isdigit():
        return False
    same = _same_words()
    if same.get(a, a) == same.get(b, b):
        return True
    words_a, words_b = meanings(a), meanings(b)
    return words_a <= words_b or words_b <= words_a or fuzz.ratio(a, b, score_cutoff=MAX_SIMILARITY) > 0


@lru_cache(maxsize=1 << 16)
def meanings(form: str) -> frozenset[str]:
    """Return the words of a normal form, each by the first of those that mean the same, plurals by their singular."""
    same = _same_words()
    singles = ((word, _singular(word)) for word in form.split())
    return frozenset(same.get(word) or same.get(single, single) for word, single in singles)


@lru_cache(maxsize=1)
def _same_words() -> dict[str, str]:
    """Return each word or phrase that has others of its meaning -> one of them; groups that share a word are one."""
    table: dict[str, str] = {}
    for group in word_lists()["same"]["groups"]:
        forms = [normalise(text) for text in group]
        joined = {table[form] for form in forms if form in table}
        name = min(joined, default=_singular(forms[0]))
        table |= {form: name for form, known in table.items() if known in joined}
        table |= dict.fromkeys(forms, name)
    return table


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def first_unique(texts: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Keep the first text of each normal form, leaving out the forms in `taken`."""
    seen = {normalise(text) for text in taken}
    kept = []
    for text in texts:
        form = normalise(text)
        if form not in seen:
            seen.add(form)
            kept.append(text)
    return kept


def place(
    answer: str, wrong: Sequence[Distractor], generator: random.Random
) -> tuple[tuple[str, ...], dict[str, dict[str, object]]]:
    """Return the options with the answer at a uniform place, and the provenance of each wrong one."""
    options = [item.text for item in wrong]
    generator.shuffle(options)
    options.insert(generator.randrange(len(options) + 1), answer)
    return tuple(options), {item.text: provenance(item) for item in wrong}


def provenance(item: Distractor) -> dict[str, object]:
    """Return what is known of a wrong option, as plain data."""
    similarity = None if item.similarity is None else round(item.similarity, 1)
    known = {"source": item.source, "similarity": similarity, "count": item.count}
    return {name: value for name, value in known.items() if value is not None}


def require(wrong: Sequence[Distractor], count: int, where: str) -> Sequence[Distractor]:
    """Return `wrong`, or say that the corpus has fewer different answers than options are asked for."""
    if len(wrong) < count:
        fix = "lower dataset.options or give more data"
        raise DataError(f"{where}: only {len(wrong)} different wrong options for {count}; {fix}")
    return wrong


class AnswerPool:
    """The answers of a corpus by kind, ranked by how often they occur: the statistics behind hard negatives."""

    WINDOW = 48
    TRIES = 28

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        counts: dict[str, Counter[str]] = {}
        spelt: dict[str, str] = {}
        for kind, answer in pairs:
            form = normalise(answer)
            spelt.setdefault(form, answer)
            counts.setdefault(kind, Counter())[form] += 1
        self._ranked = {kind: [form for form, _ in counter.most_common()] for kind, counter in counts.items()}
        self._rank = {kind: {form: place for place, form in enumerate(ranked)} for kind, ranked in self._ranked.items()}
        self._counts = counts
        self._spelt = spelt

    def count(self, kind: str, answer: str) -> int:
        """Return how often `answer` occurs among the answers of `kind`."""
        return self._counts.get(kind, Counter())[normalise(answer)]

    def negatives(
        self, kinds: Sequence[str], answer: str, accepted: Iterable[str], count: int, generator: random.Random
    ) -> list[Distractor]:
        """Draw wrong answers of the same kind: matched in frequency, similar but never an accepted answer.

        `kinds` runs from narrow to wide; the next is used only when one has too few.
        """
        forbidden = tuple({answer, *accepted})
        chosen: list[Distractor] = []
        for kind in kinds:
            if len(chosen) >= count:
                break
            taken = [*forbidden, *(item.text for item in chosen)]
            chosen += self._draw(kind, answer, taken, count - len(chosen), generator)
        return chosen

    def _draw(
        self, kind: str, answer: str, taken: Sequence[str], count: int, generator: random.Random
    ) -> list[Distractor]:
        ranked = self._ranked.get(kind, [])
        window = self._window(kind, normalise(answer))
        tries = window if len(window) <= self.TRIES else generator.sample(window, self.TRIES)
        known = [normalise(text) for text in taken]
        forms = [form for form in tries if not _clashes(form, known)]
        if len(forms) < count:
            forms = list(islice((form for form in ranked if not _clashes(form, known)), count * 4))
        picked = _spread(self._hardest(forms, answer), count, generator)
        counts = self._counts.get(kind, Counter())
        source = f"answers of kind {kind!r}" if kind else "answers of the corpus"
        return [Distractor(self._spelt[form], source, similarity, counts[form]) for form, similarity in picked]

    def _window(self, kind: str, form: str) -> list[str]:
        """Return answers about as frequent as `form`: it must not be the most common option."""
        ranked = self._ranked.get(kind, [])
        middle = self._rank.get(kind, {}).get(form, len(ranked))
        start = max(0, min(middle - self.WINDOW // 2, len(ranked) - self.WINDOW))
        return ranked[start : start + self.WINDOW]

    def _hardest(self, forms: Sequence[str], answer: str) -> list[tuple[str, float]]:
        form = normalise(answer)
        scored = [(other, fuzz.ratio(form, other)) for other in forms]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _clashes(form: str, known: Sequence[str]) -> bool:
    for other in known:  # noqa: SIM110 - the innermost loop of drawing: no generator for each call
        if _same_form(form, other):
            return True
    return False


def _spread(scored: Sequence[tuple[str, float]], count: int, generator: random.Random) -> list[tuple[str, float]]:
    """Take from the harder half, leaving out what repeats an earlier choice."""
    half = list(scored[: max(count * 2, len(scored) // 2)])
    generator.shuffle(half)
    picked: list[tuple[str, float]] = []
    for form, similarity in [*half, *scored[len(half) :]]:
        if len(picked) == count:
            break
        if not _clashes(form, [other for other, _ in picked]):
            picked.append((form, similarity))
    return picked


class ClassNegatives:
    """Wrong classes for a class: `uniform`, `near` (taxonomy, else spelling) or `confusable` (a confusion table)."""

    NEAREST = 12

    def __init__(
        self,
        names: Mapping[str, Sequence[str]],
        strategy: str = "near",
        parents: Mapping[str, str] | None = None,
        confusion: Mapping[str, Mapping[str, float]] | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        """`groups`: wrong classes come from the right one's own group only (breeds of its species)."""
        self._names = names
        self._groups = groups or {}
        self._strategy = strategy
        self._lineage = {label: _ancestors(label, parents or {}) for label in names}
        self._confusion = confusion or {}
        self._nearest: dict[str, list[tuple[str, float]]] = {}
        self._synonyms = {label: _all_meanings(texts) for label, texts in names.items()}

    def draw(self, label: str, count: int, generator: random.Random) -> list[Distractor]:
        """Draw `count` wrong classes, none a synonym of the right one or of each other."""
        ranked = self._ranked(label)
        head = ranked if self._strategy == "uniform" else ranked[: max(self.NEAREST, count)]
        shuffled = generator.sample(head, len(head))
        chosen: list[Distractor] = []
        taken = set(self._synonyms[label])
        texts = [self._names[label][0]]
        for other, nearness in [*shuffled, *ranked[len(head) :]]:
            if len(chosen) == count:
                break
            name = self._names[other][0]
            if not taken & self._synonyms[other] and not any(_nearly(name, text) for text in texts):
                taken |= self._synonyms[other]
                texts.append(name)
                chosen.append(Distractor(name, f"class {other} ({self._strategy})", nearness))
        return chosen

    def _ranked(self, label: str) -> list[tuple[str, float]]:
        if label not in self._nearest:
            group = self._groups.get(label)
            others = [other for other in self._names if other != label and self._groups.get(other) == group]
            scored = [(other, self._nearness(label, other)) for other in others]
            self._nearest[label] = sorted(scored, key=lambda pair: (-pair[1], pair[0]))
        return self._nearest[label]

    def _nearness(self, label: str, other: str) -> float:
        if self._strategy == "uniform":
            return 0.0
        if self._strategy == "confusable" and self._confusion:
            return float(self._confusion.get(label, {}).get(other, 0.0))
        shared = len(set(self._lineage[label]) & set(self._lineage[other]))
        return shared * 100.0 + fuzz.ratio(self._names[label][0], self._names[other][0])


def _all_meanings(names: Sequence[str]) -> set[object]:
    forms = [normalise(name) for name in names]
    return {*forms, *map(meanings, forms), *(_same_words().get(form, form) for form in forms)}


def _nearly(left: str, right: str) -> bool:
    a, b = normalise(left), normalise(right)
    digits = [re.findall(r"\d+", form) for form in (a, b)]
    return digits[0] == digits[1] and _same_form(a, b)


def _ancestors(label: str, parents: Mapping[str, str]) -> tuple[str, ...]:
    lineage: list[str] = []
    while label in parents and parents[label] not in lineage:
        label = parents[label]
        lineage.append(label)
    return tuple(lineage)
