"""An answer and a corpus to answer options: normalised, unique, hard, seeded, each with its provenance."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any

from msgspec import Struct
from rapidfuzz import fuzz

from ...core.config import read_config_file
from ...core.errors import DataError

YES_NO_KIND, NUMBER, YEAR, COLOUR, TIME = "yes/no", "number", "year", "colour", "time"
FIRST_YEAR, LAST_YEAR = 1000, 2100
_CLOCK = re.compile(r"\d{1,2}[:.]\d{2}( ?[ap]\.?m\.?)?|\d{1,2} ?([ap]\.?m\.?|o'?clock)", re.IGNORECASE)
_NUMBER = re.compile(r"\W*\d[\d,.]*\W*")
_ASKS = re.compile(r"\b(?:what|which|name the|name of the|name of this) ")
_SORT = re.compile(r"\b(?:kinds?|types?|sorts?|styles?) of (?:a |an )?")
_QUALITY = re.compile(r"\bwhat (?:is|are|was|were) (?:the |its |his |her )?(\w+)")
_ENDS_PHRASE = re.compile(
    r"\b(?:of|is|are|was|were|did|does|do|has|have|had|in|on|at|the|this|that|these|those|can|could|to|by|with|for"
    r"|from|will|would)\b"
)
QUALITIES = frozenset(
    ("colour", "title", "year", "date", "time", "number", "material", "shape", "weather", "language", "group")
)
"""Kinds that "what is the …" asks for: "what is the man doing" asks for no person."""


@lru_cache(maxsize=1)
def word_lists() -> Mapping[str, Any]:
    """Return the lists of the catalog."""
    return read_config_file(str(files("snellen") / "catalog/answers/kinds.toml"))


def answer_kind(question: str, answer: str) -> str:
    """Return the kind of an answer, by what it is and else by what is asked; `thing` or `name` where nothing tells."""
    return plain_kind(question, answer) or asked_kind(question)[0] or ("name" if _is_name(answer) else "thing")


def plain_kind(question: str, answer: str) -> str:
    """Return the kind that the answer itself shows: yes/no, number, year, time or colour; else nothing."""
    text = answer.strip().casefold().rstrip(".")
    if text in ("yes", "no"):
        return YES_NO_KIND
    if _CLOCK.fullmatch(text):
        return TIME
    if is_year(question, text):
        return YEAR
    if _NUMBER.fullmatch(text) or text in number_words():
        return NUMBER
    return COLOUR if _is_colour(text) else ""


def is_year(question: str, answer: str) -> bool:
    """Tell whether an answer is a year: four digits of our era, where the question is about time."""
    text = answer.strip()
    plain = len(text) == 4 and text.isdigit() and FIRST_YEAR <= int(text) <= LAST_YEAR
    return plain and re.search(r"\b(year|when|date|decade|born|built|since)\b", question.casefold()) is not None


@lru_cache(maxsize=1 << 14)
def asked_kind(question: str) -> tuple[str, str]:
    """Return the kind a question asks for and the noun that says so (`title`, `film`), or empty texts."""
    text = _SORT.sub("", " ".join(re.findall(r"\w+(?='s\b)|(?<!')\w+", question.casefold())))
    nouns = [noun for match in _ASKS.finditer(text) for noun in reversed(_phrase(text[match.end() :]))]
    known = _kind_of_noun()
    for noun in nouns:
        if noun in known:
            return known[noun], noun
    quality = _QUALITY.search(text)
    if quality and known.get(quality[1]) in QUALITIES:
        return known[quality[1]], quality[1]
    return _kind_of_opening(f"{text} "), ""


def _kind_of_opening(text: str) -> str:
    begins = word_lists()["begins"]
    for kind, beginnings in begins.items():
        if text.startswith(tuple(beginnings)):
            return str(kind)
    return "person" if any(f" {word}" in text for word in begins["person"]) else ""


def _phrase(text: str) -> list[str]:
    """Return the words of a noun phrase: all before the verb or preposition that ends it."""
    return _ENDS_PHRASE.split(text, maxsplit=1)[0].split()


@lru_cache(maxsize=1)
def _kind_of_noun() -> dict[str, str]:
    return {noun: kind for kind, nouns in reversed(word_lists()["asked_for"].items()) for noun in nouns}


def answer_kinds(question: str, answer: str, own: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the kinds of an answer from narrow to wide; `own` are the dataset's."""
    kind, noun = answer_kind(question, answer), asked_kind(question)[1]
    narrow = [f"{name}: {kind}" for name in own if name]
    if noun:
        narrow.append(f"{kind} ({noun})")
    shape = () if plain_kind(question, answer) else ("name" if _is_name(answer) else "thing",)
    return tuple(dict.fromkeys((*narrow, kind, *shape)))


@lru_cache(maxsize=1)
def number_words() -> tuple[str, ...]:
    """Return the words for 0 to 99, in their order."""
    table = read_config_file(str(files("snellen") / "catalog/words/numbers.toml"))
    ones, tens = table["ones"]["en"], table["tens"]["en"]
    higher = [ten if unit == 0 else f"{ten}-{ones[unit]}" for ten in tens for unit in range(10)]
    return (*ones, *higher)


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


def _is_colour(text: str) -> bool:
    table = word_lists()["colours"]
    words = re.findall(r"[\w&]+", text)
    plain = [word for word in words if word not in table["with"]]
    return bool(plain) and all(word in table["words"] for word in plain)


def _is_name(text: str) -> bool:
    return text[:1].isupper()


_COUNTING = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTING.split())} | {"none": "0"}
ARTICLES = frozenset(("a", "an", "the"))
MAX_SIMILARITY = 90.0
"""At or above this ratio two answers are the same answer spelt twice."""

_NOT_WORD = re.compile(r"[^\w\s.%-]|(?<!\d)\.|\.(?!\d)|(?<=\w)-|-(?!\d)")


class Distractor(Struct, frozen=True, omit_defaults=True):
    """A wrong option and where it came from."""

    text: str
    source: str
    similarity: float | None = None
    count: int | None = None


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """Return the form in which two options count as the same: case, articles, number words, punctuation gone."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _NOT_WORD.sub(" ", folded).split()
    kept = [NUMBER_WORDS.get(word, word) for word in words if word not in ARTICLES]
    return " ".join(kept) or folded.strip()


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
