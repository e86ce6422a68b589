"""The items of a run to what blind rules score on them: the figures that must stand beside a model's own."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.ids import derive_seed
from ...core.types import Estimate, Sample
from ...scoring.aggregates.consistency import CHAINS, chains_from_table
from ...scoring.tables.table import ScoredTask, ScoreTable
from ...stats.intervals import estimate_mean

# Texts to the words that carry meaning, for everything that compares by overlap.

_WORD = re.compile(r"\w+", re.UNICODE)
_FUNCTION = """
    a an the this that these those it its he she they them his her their there here i you we and or but if so of to in
    on at by for from with without into over under as is are was were be been being am do does did has have had will
    would can could may might must should not no nor what which who whom whose when where why how s t
    """
FUNCTION_WORDS = frozenset(_FUNCTION.split())


@lru_cache(maxsize=200_000)
def content_words(text: str) -> frozenset[str]:
    """Return the words of a text, lower case, without function words and with plain plurals folded."""
    words = (word for word in _WORD.findall(text.casefold()) if word not in FUNCTION_WORDS)
    return frozenset(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words
    )


def overlap(words: frozenset[str], others: frozenset[str]) -> float:
    """Return which share of `words` is among the others; 0 for no words."""
    return len(words & others) / len(words) if words else 0.0


FOLDS = 5
HASHED = 96
"""Buckets for single words: a word that wrong options favour is an artefact too."""
RIDGE = 10.0
PLAIN = 8

Floats = NDArray[np.float32]


class Choice(NamedTuple):
    """A question with its options; `right` is the place of the right one, from 0."""

    question: str
    options: Sequence[str]
    right: int


def learned_credit(questions: Sequence[Choice], groups: Sequence[int]) -> NDArray[np.float64]:
    """Return per question the chance that a judge trained on the other items takes the right option (ties share it).

    `groups` keeps the questions of one item in one fold. The judge is a ridge regression on features of the options
    alone (length, words, punctuation, capitals, likeness to the others and to the question, hashed words), centred per
    question.
    """
    sizes = np.array([len(question.options) for question in questions])
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    rows = np.concatenate([_features(question) for question in questions])
    label = np.zeros(len(rows), dtype=np.float32)
    label[starts + np.array([question.right for question in questions])] = 1.0
    label -= np.repeat(1.0 / sizes, sizes).astype(np.float32)
    fold = np.array([derive_seed("fold", group) % FOLDS for group in groups])
    row_fold = np.repeat(fold, sizes)
    scores = np.zeros(len(rows), dtype=np.float32)
    for each in range(FOLDS):
        held = row_fold == each
        if held.any() and not held.all():
            scores[held] = rows[held] @ _fit(rows[~held], label[~held])
    of_question = zip(np.split(scores, starts[1:]), questions, strict=True)
    return np.array([_credit(options, question.right) for options, question in of_question])


def _fit(rows: Floats, label: Floats) -> Floats:
    gram = (rows.T @ rows).astype(np.float64) + RIDGE * np.eye(rows.shape[1])
    return np.linalg.solve(gram, (rows.T @ label).astype(np.float64)).astype(np.float32)


def _credit(scores: Floats, right: int) -> float:
    best = scores >= scores.max() - 1e-7
    return float(best[right]) / float(best.sum())


def _features(question: Choice) -> Floats:
    texts = question.options
    bags = [content_words(text) for text in texts]
    asked = content_words(question.question)
    table = np.zeros((len(texts), PLAIN + HASHED), dtype=np.float32)
    for place, (text, bag) in enumerate(zip(texts, bags, strict=True)):
        others = frozenset().union(*(other for index, other in enumerate(bags) if index != place))
        table[place, :PLAIN] = (
            len(text) / 20.0,
            text.count(" ") / 4.0,
            text.endswith((".", "。")),
            text[:1].isupper(),
            text.count(","),
            sum(map(str.isdigit, text)) / 4.0,
            overlap(bag, others),
            overlap(bag, asked),
        )
        for word in bag:
            table[place, PLAIN + zlib.crc32(word.encode()) % HASHED] += 1.0
    table -= table.mean(axis=0)
    return table


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


BASELINES = ("no-period", "period", "shortest", "longest", "majority")
LEARNED = "learned"
FEWEST_TO_LEARN = 20
"""Items below which a judge has nothing to learn from."""
BLIND_SUFFIX = "_blind"
FIGURES = ("Rh", "Rcot", "Ro")
Counted = dict[str, NDArray[Any]]
"""Figure -> the cluster of every chain that the model's own figure counts."""


def aggregate(scored: ScoredTask, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return Rh, Rcot and Ro of the blind baselines, as `Rh_no-period_blind`, on the very chains that Rh counts."""
    table = scored.tables.get("accuracy") or next(iter(scored.tables.values()), None)
    if table is None or not len(table):
        return {}
    return baselines(scored.samples(), counted=_counted(table), cluster_of=_clusters(table))


def _clusters(table: ScoreTable) -> dict[str, int]:
    return {name: int(cluster) for name, cluster in zip(table.samples, table.cluster_of_sample, strict=True)}


def _counted(table: ScoreTable) -> Counted:
    """Return which chains the figures count; where only inferences or only steps were asked, whose trials they do."""
    codes, names = table.tags["role"]
    roles = {names[code] for code in np.unique(codes[table.sample])}
    if roles == {"inference"}:
        return {"Rh": table.cluster[table.scored]}
    if len(roles) == 1:
        return {"Rcot": np.unique(table.cluster)}
    chains = chains_from_table(table)
    return {name: chains.clusters[known] for name, known in chains.known.items()}


def baselines(
    samples: Iterable[Sample],
    *,
    counted: Counted | None = None,
    cluster_of: Mapping[str, int] | None = None,
) -> dict[str, Estimate]:
    """Return what rules score that read the options only, ties shared, and a judge that learns from the other items.

    `counted` names the chains to average over, by the number that `cluster_of` gives a sample; else each item once.
    """
    chains = _in_chains(samples)
    found = {rule: [_by_rule(sample, rule) for chain in chains for sample in chain] for rule in BASELINES}
    if len(chains) >= FEWEST_TO_LEARN:
        found[LEARNED] = _by_learning(chains)
    numbers = [place if cluster_of is None else cluster_of[chain[0].id] for place, chain in enumerate(chains)]
    estimates: dict[str, Estimate] = {}
    for rule, chances in found.items():
        of_rule = _estimates(chains, chances, numbers, counted).items()
        estimates |= {f"{name}_{rule}{BLIND_SUFFIX}": estimate for name, estimate in of_rule}
    return estimates


def _in_chains(samples: Iterable[Sample]) -> list[list[Sample]]:
    items: dict[str, list[Sample]] = {}
    for sample in samples:
        items.setdefault(sample.group or sample.id, []).append(sample)
    return list(items.values())


def _estimates(
    chains: Sequence[Sequence[Sample]], chances: Sequence[float], numbers: Sequence[int], counted: Counted | None
) -> dict[str, Estimate]:
    """Return Rh, Rcot and Ro from the chance of every sample, in the order of chains; the unasked are left out."""
    given = iter(chances)
    rows = [expected([(sample, next(given)) for sample in chain]) for chain in chains]
    estimates = {}
    for name in FIGURES:
        credit_of = {number: row[name] for number, row in zip(numbers, rows, strict=True) if name in row}
        clusters = np.array(list(credit_of)) if counted is None else counted.get(name, np.empty(0, np.int64))
        values = np.array([credit_of[int(cluster)] for cluster in clusters])
        if credit_of and (counted is None or name in counted):
            estimates[name] = structs.replace(estimate_mean(values, clusters), unit=CHAINS)
    return estimates


def expected(chain: Iterable[tuple[Sample, float]]) -> dict[str, float]:
    """Return the chances of one item: inference right (Rh), all steps right (Rcot), both (Ro), as far as asked."""
    found: dict[str, float] = {}
    for sample, chance in chain:
        name = "Rh" if _is_inference(sample) else "Rcot"
        found[name] = found.get(name, 1.0) * chance
    return found | ({"Ro": math.prod(found.values())} if len(found) == 2 else {})


def _by_rule(sample: Sample, rule: str) -> float:
    return credit(sample.options, sample.options.index(sample.answers[0]), RULES[rule])


def _by_learning(chains: Sequence[Sequence[Sample]]) -> list[float]:
    """Let one judge learn the inferences and another the steps, as they are worded differently."""
    asked = [(sample, place) for place, chain in enumerate(chains) for sample in chain]
    chances = np.zeros(len(asked))
    for wanted in (True, False):
        rows = [row for row, (sample, _) in enumerate(asked) if _is_inference(sample) is wanted]
        if rows:
            choices = [_choice(asked[row][0]) for row in rows]
            chances[rows] = learned_credit(choices, [asked[row][1] for row in rows])
    return [float(chance) for chance in chances]


def _choice(sample: Sample) -> Choice:
    return Choice(sample.question, sample.options, sample.options.index(sample.answers[0]))


def _is_inference(sample: Sample) -> bool:
    return sample.tags.get("role") == "inference"
