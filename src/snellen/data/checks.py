"""Samples to a report of what is wrong or biased in them: nothing here needs a model."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.ids import content_hash, derive_seed, rng, sha256_hex
from ..core.types import Form, Image, Sample
from ..stats.intervals import wilson
from .answer_kinds import normalise, plain_kind, read_written
from .images.decode import read_bytes, read_header

FOLDS = 5
WORD_BUCKETS = 64
RIDGE = 5.0
PLAIN_FEATURES = 12

Floats = NDArray[np.float64]


def wording_credit(choices: Sequence[Sample]) -> Floats:
    """Return for each choice the credit of a judge trained on the others: 1 if it takes the right option, ties share.

    Samples of one group stand in one fold, so that nothing is learned from a sample's own neighbours.
    """
    sizes = np.array([len(sample.options) for sample in choices])
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    rows = np.concatenate([_rows(sample) for sample in choices])
    right = np.array([sample.options.index(sample.answers[0]) for sample in choices])
    label = -np.repeat(1.0 / sizes, sizes)
    label[starts + right] += 1.0
    fold = np.repeat([derive_seed("fold", sample.group or sample.id) % FOLDS for sample in choices], sizes)
    scores = np.zeros(len(rows))
    for each in range(FOLDS):
        held = fold == each
        if held.any() and not held.all():
            scores[held] = rows[held] @ _weights(rows[~held], label[~held])
    split = np.split(scores, starts[1:])
    return np.array([_share(values, place) for values, place in zip(split, right, strict=True)])


def _weights(rows: Floats, label: Floats) -> Floats:
    gram = rows.T @ rows + RIDGE * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(gram, rows.T @ label), dtype=np.float64)


def _share(scores: Floats, right: int) -> float:
    best = scores >= scores.max() - 1e-9
    return float(best[right]) / float(best.sum())


def _rows(sample: Sample) -> Floats:
    """Return the features of each option, less their mean: only what tells options of one question apart counts."""
    kinds = Counter(_shape(option) for option in sample.options)
    table = np.zeros((len(sample.options), PLAIN_FEATURES + WORD_BUCKETS))
    for place, option in enumerate(sample.options):
        shape, count = _shape(option), len(sample.options)
        table[place, :PLAIN_FEATURES] = (
            len(option) / 20.0,
            option.count(" ") / 3.0,
            option.endswith((".", "。", "!")),
            option[:1].isupper(),
            option.count(",") + option.count(";"),
            sum(map(str.isdigit, option)) / 3.0,
            shape == "digits",
            shape == "number in words",
            shape == "number with more",
            shape in ("colour", "yes/no"),
            not option.isascii(),
            kinds[shape] / count,
        )
        for word in option.casefold().split():
            table[place, PLAIN_FEATURES + zlib.crc32(word.encode()) % WORD_BUCKETS] += 0.5
    table -= table.mean(axis=0)
    return table


def _shape(option: str) -> str:
    written = read_written(option, "how ")
    if written is None:
        return plain_kind("", option) or "words"
    if written.in_words:
        return "number in words"
    return "number with more" if written.before or written.unit else "digits"


def odd_shapes(sample: Sample) -> bool:
    """Tell whether the answer is alone of its kind: a number in words among digits, a colour among things."""
    shapes = [_shape(option) for option in sample.options]
    answer = _shape(sample.answers[0])
    return len(shapes) > 2 and shapes.count(answer) == 1 and len(set(shapes)) == 2


COUNT = 10


class Excerpt(Struct, frozen=True):
    """What a person needs to judge one question; pictures are named, not shown."""

    id: str
    question: str
    options: tuple[str, ...]
    answers: tuple[str, ...]
    images: tuple[str, ...] = ()


def draw_excerpts(samples: Sequence[Sample], count: int = COUNT) -> tuple[Excerpt, ...]:
    """Draw some of the samples, the same at every look, in the order of the data."""
    places = rng("excerpts", len(samples)).sample(range(len(samples)), min(count, len(samples)))
    return tuple(_excerpt(samples[place]) for place in sorted(places))


def _excerpt(sample: Sample) -> Excerpt:
    names = tuple("inside the file" if image.ref.startswith("data:") else image.ref for image in sample.images)
    return Excerpt(sample.id, sample.question, sample.options, tuple(dict.fromkeys(sample.answers)), names)


EXAMPLES = 5
MIN_ITEMS = 30
"""Fewer samples than this say nothing about bias; only defects are reported."""
BIAS_MARGIN = 0.10
BLIND_MARGIN = 0.15
MAX_LABEL_SHARE = 0.65
CHI_LIMIT = 3.3
"""Normal deviate beyond which positions are not uniform (p < 0.0005)."""
MOST_FOLDED = 100_000
"""A longer question repeats another one only where it is written alike."""
END_MARKS = (".", "!", ";", ",")
ALONE = "have an answer that is alone of its kind among the options (a word among digits, a colour among things)"
DUPLICATE = "repeat the question, picture and options of an earlier one"


class Finding(Struct, frozen=True):
    """One thing that is wrong. `error` spoils scores; `warning` biases them."""

    check: str
    level: str
    message: str
    count: int = 1
    examples: tuple[str, ...] = ()


class Report(Struct, frozen=True):
    """What `snellen data check` says."""

    samples: int
    forms: dict[str, int]
    positions: dict[str, int]
    """Option count / place -> how often the answer stands there, written `4:0`."""
    labels: dict[str, int]
    figures: dict[str, dict[str, Any]]
    """blind, longest, position: value, ci95, chance."""
    findings: tuple[Finding, ...]
    excerpts: tuple[Excerpt, ...] = ()
    """Ten samples drawn at random, for a person to read."""

    @property
    def errors(self) -> int:
        """Return how many findings are errors."""
        return sum(finding.level == "error" for finding in self.findings)


def check_options(where: str, options: Sequence[str], answer: str) -> None:
    """Raise DataError unless there are two or more different options, the answer among them."""
    if len(options) < 2:
        raise DataError(f"record {where}: {len(options)} option(s); a choice needs at least two")
    forms = {normalise(option) for option in options}
    if len(forms) == 1:
        raise DataError(f"record {where}: all options are equal after normalising ({options[0]!r})")
    if answer not in options:
        raise DataError(f"record {where}: answer {answer!r} is not among the options {list(options)}")


def check_samples(samples: Iterable[Sample], licence: str = "", images: bool = True) -> Report:
    """Look at every sample and return the report."""
    gathered = list(samples)
    choices = [sample for sample in gathered if sample.form is Form.CHOICE and sample.options]
    findings = [*_defects(gathered, images), *_licence(licence, gathered)]
    positions, figures = _positions(choices), {}
    labels = Counter(normalise(sample.answers[0]) for sample in choices if sample.answers)
    if len(choices) >= MIN_ITEMS:
        figures = _figures([sample for sample in choices if sample.answers and sample.answers[0] in sample.options])
        findings += [*_bias(figures), *_position_bias(positions), *_balance(choices)]
    forms = dict(Counter(sample.form.value for sample in gathered))
    common, shown = dict(labels.most_common(20)), draw_excerpts(gathered)
    return Report(len(gathered), forms, positions, common, figures, tuple(findings), shown)


def _defects(samples: Sequence[Sample], images: bool) -> list[Finding]:
    tests: list[tuple[str, Callable[[Sample], bool], str]] = [
        ("question", lambda sample: not sample.question.strip(), "have an empty question"),
        ("answer", lambda sample: not sample.answers, "have no answer"),
        ("options", _too_few, "are choices with fewer than two options"),
        ("unique", _repeats, "have options that are equal after normalising"),
        ("label", _mislabelled, "have an answer that is not among the options"),
        ("answer", _has_blank, "have an empty answer or option"),
    ]
    repeated = [name for name, count in Counter(sample.id for sample in samples).items() if count > 1]
    caught = [(name, [sample.id for sample in samples if test(sample)], text) for name, test, text in tests]
    caught.append(("ids", repeated, "ids occur more than once"))
    findings = [_collect(name, "error", ids, text) for name, ids, text in caught]
    findings += [
        _collect("kinds", "warning", [sample.id for sample in samples if _stands_alone(sample)], ALONE),
        _collect("duplicates", "warning", _duplicates(samples), DUPLICATE),
        *(_pictures(samples) if images else ()),
    ]
    return [finding for finding in findings if finding.count]


def _collect(check: str, level: str, ids: Sequence[str], text: str) -> Finding:
    return Finding(check, level, f"{len(ids)} samples {text}", len(ids), tuple(ids[:EXAMPLES]))


def _stands_alone(sample: Sample) -> bool:
    return bool(sample.answers) and sample.answers[0] in sample.options and odd_shapes(sample)


def _has_blank(sample: Sample) -> bool:
    return any(not text.strip() for text in (*sample.answers, *sample.options))


def _too_few(sample: Sample) -> bool:
    return sample.form is Form.CHOICE and len(sample.options) < 2


def _repeats(sample: Sample) -> bool:
    return len({normalise(option) for option in sample.options}) < len(sample.options)


def _mislabelled(sample: Sample) -> bool:
    return bool(sample.options) and any(answer not in sample.options for answer in sample.answers)


def _duplicates(samples: Sequence[Sample]) -> list[str]:
    seen: set[str] = set()
    repeated = []
    for sample in samples:
        pictures = [(image.sha256 or image.ref, image.edits) for image in sample.images]
        options = sorted(map(normalise, sample.options))
        question = sample.question if len(sample.question) > MOST_FOLDED else normalise(sample.question)
        key = content_hash([question, pictures, options, sample.group, sample.tags.get("round")])
        if key in seen:
            repeated.append(sample.id)
        seen.add(key)
    return repeated


def _pictures(samples: Sequence[Sample]) -> list[Finding]:
    """Open every picture's header once; a content-addressed file must match its name."""
    verdicts: dict[str, str] = {}
    broken: list[str] = []
    missing: list[str] = []
    for sample in samples:
        for image in sample.images:
            if image.ref not in verdicts:
                verdicts[image.ref] = _picture_state(image)
            state = verdicts[image.ref]
            (missing if state == "missing" else broken if state else []).append(sample.id)
    none = [sample.id for sample in samples if not sample.images]
    return [
        _collect("images", "error", missing, "name a picture that does not exist"),
        _collect("images", "error", broken, "have a picture that is broken or changed"),
        _collect("images", "warning", none, "have no picture"),
    ]


def _picture_state(image: Image) -> str:
    if not image.ref.startswith("data:") and not Path(image.ref).is_file():
        return "missing"
    try:
        data = read_bytes(image)
        read_header(data, image.ref[:80])
    except DataError:
        return "broken"
    return "broken" if image.sha256 and sha256_hex(data) != image.sha256 else ""


def _licence(licence: str, samples: Sequence[Sample]) -> list[Finding]:
    return [] if licence or not samples else [Finding("licence", "warning", "no licence is named", len(samples))]


def _positions(choices: Sequence[Sample]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for sample in choices:
        if sample.answers and sample.answers[0] in sample.options:
            counts[f"{len(sample.options)}:{sample.options.index(sample.answers[0])}"] += 1
    return dict(sorted(counts.items()))


def _position_bias(positions: dict[str, int]) -> list[Finding]:
    """Chi-square of the answer's place for each number of options (sets such as yes/no are a matter of balance)."""
    findings = []
    for size in sorted({int(key.split(":")[0]) for key in positions}):
        counts = [positions.get(f"{size}:{place}", 0) for place in range(size)]
        total = sum(counts)
        if size < 3 or total < MIN_ITEMS:
            continue
        chi = sum((count - total / size) ** 2 / (total / size) for count in counts)
        if _chi_deviate(chi, size - 1) > CHI_LIMIT:
            shares = ", ".join(f"{count / total:.0%}" for count in counts)
            message = f"with {size} options the answer's place is not uniform: {shares}"
            findings.append(Finding("position", "warning", message, total))
    return findings


def _chi_deviate(chi: float, freedom: int) -> float:
    """Turn a chi-square into a normal deviate (Wilson and Hilferty 1931)."""
    spread = 2 / (9 * freedom)
    return float(((chi / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))


def _figures(choices: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    chance = sum(1 / len(sample.options) for sample in choices) / max(1, len(choices))
    prior = _Prior(choices)
    guesses: dict[str, Callable[[Sample], str]] = {
        "blind": prior.guess,
        "longest": lambda sample: max(sample.options, key=len),
        "shortest": lambda sample: min(sample.options, key=len),
        "punctuated": lambda sample: _odd_end(sample.options),
    }
    figures = {name: _figure(choices, guess, chance) for name, guess in guesses.items()}
    return {"wording": _wording(choices, chance), **figures} if choices else figures


def _wording(choices: Sequence[Sample], chance: float) -> dict[str, Any]:
    credit = wording_credit(choices)
    value = float(credit.mean())
    return {"value": value, "ci95": list(wilson(value, len(choices))), "chance": chance, "n": len(choices)}


def _figure(choices: Sequence[Sample], guess: Callable[[Sample], str], chance: float) -> dict[str, Any]:
    guessed = [(sample, guess(sample)) for sample in choices]
    tried = [(sample, text) for sample, text in guessed if text]
    value = sum(text == sample.answers[0] for sample, text in tried) / len(tried) if tried else None
    bounds = (0.0, 1.0) if value is None else wilson(value, len(tried))
    return {"value": value, "ci95": list(bounds), "chance": chance, "n": len(tried)}


def _odd_end(options: Sequence[str]) -> str:
    """Return the only option that ends (or the only one that does not end) with a full stop or the like."""
    ended = [option for option in options if option.endswith(END_MARKS)]
    plain = [option for option in options if not option.endswith(END_MARKS)]
    if len(options) < 3:
        return ""
    return ended[0] if len(ended) == 1 else plain[0] if len(plain) == 1 else ""


class _Prior:
    """The best text-only guesser we know: how often an option text was right when it was offered, itself left out."""

    def __init__(self, choices: Sequence[Sample]) -> None:
        self._right = Counter(normalise(sample.answers[0]) for sample in choices)
        self._offered = Counter(form for sample in choices for form in map(normalise, sample.options))

    def guess(self, sample: Sample) -> str:
        """Return the option that was most often right elsewhere."""
        return max(sample.options, key=lambda option: self._rate(normalise(option), normalise(sample.answers[0])))

    def _rate(self, option: str, answer: str) -> float:
        right = self._right[option] - (option == answer)
        offered = self._offered[option] - 1
        return (right + 0.5) / (offered + 2)


def _bias(figures: dict[str, dict[str, Any]]) -> list[Finding]:
    texts = {
        "wording": "a judge that learned from the wording of options alone is right",
        "blind": "a guesser that never sees the picture is right",
        "longest": "taking the longest option is right",
        "shortest": "taking the shortest option is right",
        "punctuated": "taking the option with the odd punctuation is right",
    }
    found = []
    for name, text in texts.items():
        figure = figures.get(name, {"n": 0, "ci95": (0.0, 0.0), "chance": 1.0})
        margin = BLIND_MARGIN if name in ("blind", "wording") else BIAS_MARGIN
        low, high = figure["ci95"]
        if figure["n"] >= MIN_ITEMS and low > figure["chance"] + margin:
            bounds = f"{low:.0%} to {high:.0%}; chance {figure['chance']:.0%}"
            message = f"{text} {figure['value']:.0%} of the time ({bounds})"
            found.append(Finding(name, "warning", message, figure["n"]))
    return found


def _balance(choices: Sequence[Sample]) -> list[Finding]:
    """Look at sets of options that come back often (yes/no, entailment): no label should rule."""
    sets: dict[tuple[str, ...], Counter[str]] = {}
    for sample in choices:
        if sample.answers:
            sets.setdefault(tuple(sorted(map(normalise, sample.options))), Counter())[normalise(sample.answers[0])] += 1
    found = []
    for options, counts in sets.items():
        total, (label, top) = sum(counts.values()), counts.most_common(1)[0]
        if total >= MIN_ITEMS and wilson(top / total, total)[0] > max(MAX_LABEL_SHARE, 1.5 / len(options)) - 0.1:
            message = f"of {total} questions with options {'/'.join(options)}, {top / total:.0%} are {label!r}"
            found.append(Finding("balance", "warning", message, total))
    return found
