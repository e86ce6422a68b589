"""Turns captions into BLEU-1..4, METEOR, ROUGE-L and CIDEr: corpus estimates, and a scorer for single replies."""

from __future__ import annotations

import importlib.util
import math
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from ...core.errors import EnvironmentProblem, MissingExtra, UsageError
from ...core.types import Estimate, Prediction, Request, Sample, Score
from ...stats.bootstrap import percentile_interval, resample
from ...stats.intervals import estimate_mean
from ..scorers.replies import answer_text, is_as_written, why_no_text
from ..scorers.word_accuracy import characters_apart
from .means import in_unit

MAX_ORDER = 4
ROUGE_BETA = 1.2
CIDER_SIGMA = 6.0
CIDER_SCALE = 10.0
# The COCO evaluation adds these to numerators and denominators instead of treating zero apart.
_TINY, _SMALL = 1e-15, 1e-9

Gram = tuple[str, ...]


class Caption(Struct, frozen=True):
    """One caption and its references, already tokenised: tokens stand between spaces."""

    text: str
    references: tuple[str, ...]


class BleuCounts(Struct, frozen=True):
    """What BLEU needs of one caption (or, added up, of a corpus)."""

    matched: tuple[int, ...]
    guessed: tuple[int, ...]
    length: int
    reference_length: int

    def __add__(self, other: BleuCounts) -> BleuCounts:
        return BleuCounts(
            tuple(a + b for a, b in zip(self.matched, other.matched, strict=True)),
            tuple(a + b for a, b in zip(self.guessed, other.guessed, strict=True)),
            self.length + other.length,
            self.reference_length + other.reference_length,
        )


def count_grams(text: str) -> Counter[Gram]:
    """Count the n-grams of orders 1 to 4 of a text split at white space."""
    tokens = text.split()
    return Counter(tuple(tokens[i : i + n]) for n in range(1, MAX_ORDER + 1) for i in range(len(tokens) - n + 1))


def bleu_counts(caption: Caption) -> BleuCounts:
    """Return clipped matches, guesses and lengths of one caption."""
    length = len(caption.text.split())
    allowed: Counter[Gram] = Counter()
    for reference in caption.references:
        allowed |= count_grams(reference)
    matched = [0] * MAX_ORDER
    for gram, count in (count_grams(caption.text) & allowed).items():
        matched[len(gram) - 1] += count
    guessed = tuple(max(0, length - n) for n in range(MAX_ORDER))
    closest = min((abs(size - length), size) for size in (len(reference.split()) for reference in caption.references))[
        1
    ]
    return BleuCounts(tuple(matched), guessed, length, closest)


def bleu(counts: BleuCounts) -> tuple[float, ...]:
    """Return BLEU-1 to BLEU-4 (0..1) from counts of one caption or of a corpus."""
    ratio = (counts.length + _TINY) / (counts.reference_length + _SMALL)
    penalty = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    values, product = [], 1.0
    for order in range(MAX_ORDER):
        product *= (counts.matched[order] + _TINY) / (counts.guessed[order] + _SMALL)
        values.append(product ** (1 / (order + 1)) * penalty)
    return tuple(values)


def rouge_l(caption: Caption) -> float:
    """Return ROUGE-L (0..1): F-measure of the best recall and the best precision of the longest common subsequence.

    Tokens stand between single spaces, as in the COCO evaluation; so two spaces hold an empty token.
    """
    tokens = caption.text.split(" ")
    references = [reference.split(" ") for reference in caption.references]
    common = [LCSseq.similarity(tokens, reference) for reference in references]
    precision = max(shared / len(tokens) for shared in common)
    recall = max(shared / len(reference) for shared, reference in zip(common, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + ROUGE_BETA**2) * precision * recall / (recall + ROUGE_BETA**2 * precision)


class _Vector(Struct):
    weights: tuple[dict[Gram, float], ...]
    norms: tuple[float, ...]
    bigrams: int


def cider(captions: Sequence[Caption], *, plain: bool = False) -> list[float]:
    """Return one CIDEr value a caption (0..10); the corpus value is their mean.

    This is what the COCO evaluation calls CIDEr: the paper's CIDEr-D, without stemming. `plain` leaves out
    clipping and length penalty (the paper's CIDEr). Document frequencies come from these references alone.
    """
    references = [[count_grams(reference) for reference in caption.references] for caption in captions]
    frequency = Counter(gram for group in references for gram in set().union(*group))
    log_size = math.log(len(captions)) if captions else 0.0
    weigh = partial(_weigh, frequency=frequency, log_size=log_size)
    return [
        CIDER_SCALE
        * _mean(_agreement(weigh(count_grams(caption.text)), weigh(reference), plain) for reference in group)
        for caption, group in zip(captions, references, strict=True)
    ]


def _weigh(counts: Counter[Gram], frequency: Counter[Gram], log_size: float) -> _Vector:
    weights: tuple[dict[Gram, float], ...] = tuple({} for _ in range(MAX_ORDER))
    for gram, count in counts.items():
        weights[len(gram) - 1][gram] = count * (log_size - math.log(max(1, frequency[gram])))
    norms = tuple(math.sqrt(sum(value * value for value in order.values())) for order in weights)
    # The evaluation takes the number of bigrams for the length; so do we.
    return _Vector(weights, norms, sum(count for gram, count in counts.items() if len(gram) == 2))


def _agreement(caption: _Vector, reference: _Vector, plain: bool) -> float:
    penalty = 1.0 if plain else math.exp(-((caption.bigrams - reference.bigrams) ** 2) / (2 * CIDER_SIGMA**2))
    return penalty * _mean(_cosine(caption, reference, order, plain) for order in range(MAX_ORDER))


def _cosine(caption: _Vector, reference: _Vector, order: int, plain: bool) -> float:
    shared, norm = reference.weights[order], caption.norms[order] * reference.norms[order]
    products = (
        (weight if plain else min(weight, shared[gram])) * shared[gram]
        for gram, weight in caption.weights[order].items()
        if gram in shared
    )
    return sum(products) / norm if norm else 0.0


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


TIMEOUT_S = 1800.0
_PUNCTUATION = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
_METEOR_JAR = Path("meteor", "meteor-1.5.jar")
_TOKENISER_JAR = Path("tokenizer", "stanford-corenlp-3.4.1.jar")


def missing_reason() -> str | None:
    """Return why METEOR and PTB tokens cannot be had on this machine, or None if they can."""
    if importlib.util.find_spec("pycocoevalcap") is None:
        return "needs an extra that is not installed: pip install 'snellen[caption]'"
    return None if shutil.which("java") else "needs Java (a `java` command) and there is none"


def meteor(captions: Sequence[Caption]) -> tuple[float, list[float]]:
    """Return METEOR of the corpus and of each caption (0..1). Line breaks, `|||` and empty texts are safe."""
    if not captions:
        return 0.0, []
    with _java(["-Xmx2G", "-jar", str(_jar(_METEOR_JAR)), "-", "-", "-stdio", "-l", "en", "-norm"]) as (write, read):
        statistics = [_ask(write, read, " ||| ".join(["SCORE", *_fields(caption)])) for caption in captions]
        write.write("EVAL ||| " + " ||| ".join(statistics) + "\n")
        write.flush()
        values = [_number(read.readline()) for _ in captions]
        return _number(read.readline()), values


def _fields(caption: Caption) -> list[str]:
    """One line, fields between bars: a line break inside a text would shift all others and block for ever.

    Bars are taken out of captions only; in a reference they make two references of it, as in the COCO evaluation.
    """
    return [
        *(_on_one_line(text) for text in caption.references),
        _on_one_line(caption.text).replace("|||", "").replace("  ", " "),
    ]


def _on_one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def _ask(write: IO[str], read: IO[str], line: str) -> str:
    write.write(line + "\n")
    write.flush()
    answer = read.readline().strip()
    if not answer:
        raise EnvironmentProblem("METEOR ended without an answer: check that `java` runs and has 2 GB of memory")
    return answer


def _number(line: str) -> float:
    try:
        return float(line)
    except ValueError:
        raise EnvironmentProblem(f"METEOR answered {line.strip()[:60]!r} where a number belongs") from None


@contextmanager
def _java(arguments: list[str]) -> Iterator[tuple[IO[str], IO[str]]]:
    """Run Java with text pipes; it is ended on the way out and, so that nothing can hang, after TIMEOUT_S."""
    command = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", *arguments]
    process = subprocess.Popen(  # noqa: S603 - a fixed program of the extra, no shell
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
    )
    watchdog = threading.Timer(TIMEOUT_S, process.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 - both are pipes
        yield process.stdin, process.stdout
    except BrokenPipeError:
        raise EnvironmentProblem("METEOR ended early: check that `java` runs and has 2 GB of memory") from None
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def tokenise_ptb(texts: Sequence[str]) -> list[str]:
    """Return each text as lower-case PTB tokens without punctuation, as the COCO caption evaluation prepares it."""
    if not texts:
        return []
    command = [
        "java",
        "-Dfile.encoding=UTF-8",
        "-cp",
        str(_jar(_TOKENISER_JAR)),
        "edu.stanford.nlp.process.PTBTokenizer",
    ]
    lines = "\n".join(" ".join(text.splitlines()) for text in texts) + "\n"
    finished = subprocess.run(  # noqa: S603 - a fixed program of the extra, no shell
        [*command, "-preserveLines", "-lowerCase"],
        input=lines.encode("utf-8", "replace"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )
    tokenised = finished.stdout.decode("utf-8", "replace").split("\n")[: len(texts)]
    if finished.returncode or len(tokenised) != len(texts):
        raise EnvironmentProblem(
            f"the PTB tokeniser gave {len(tokenised)} lines for {len(texts)} texts: check that `java` runs"
        )
    return [" ".join(token for token in line.split() if token not in _PUNCTUATION) for line in tokenised]


def _jar(relative: Path) -> Path:
    spec = importlib.util.find_spec("pycocoevalcap")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("caption", "METEOR")
    if not shutil.which("java"):
        raise EnvironmentProblem("METEOR and PTB tokens need Java: install a Java runtime so that `java` is found")
    return Path(next(iter(spec.submodule_search_locations))) / relative


TOKENISERS = ("whitespace", "ptb")
_DRAWS = 1000
_TEXT_METRIC = "rouge_l"
"""The one of the scorer's metrics whose scores lend their texts to the corpus metrics."""
_LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


def caption(text: str, references: Sequence[str]) -> Caption:
    """Make a caption of raw texts; line breaks, with the white space around them, become one space."""
    return Caption(_one_line(text), tuple(_one_line(reference) for reference in references))


def own_caption(text: str, references: Sequence[str]) -> Caption:
    """Make a caption of a run: where a script has no spaces, every character is a token, else a sentence is one."""
    return caption(characters_apart(text), [characters_apart(reference) for reference in references])


def _one_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text).strip() if "\n" in text or "\r" in text else text


def tokenise(captions: Sequence[Caption], tokeniser: str) -> list[Caption]:
    """Prepare captions: `whitespace` leaves them, `ptb` lower-cases, splits and drops punctuation (needs Java)."""
    if tokeniser not in TOKENISERS:
        raise UsageError(f"unknown tokeniser {tokeniser!r}; known: {', '.join(TOKENISERS)}")
    if tokeniser == "whitespace":
        return list(captions)
    flat = iter(tokenise_ptb([text for item in captions for text in (item.text, *item.references)]))
    return [Caption(next(flat), tuple(next(flat) for _ in item.references)) for item in captions]


def corpus_estimates(
    captions: Sequence[Caption], clusters: NDArray[Any] | None = None, *, tokeniser: str = "whitespace"
) -> tuple[dict[str, Estimate], dict[str, str]]:
    """Return the corpus metrics (fractions; CIDEr up to 10) and, for those that cannot be had, the reason.

    With `ptb` every name ends in `_ptb`. Intervals are clustered by `clusters` (the sample of each caption).
    """
    prepared = tokenise(captions, tokeniser)
    groups = np.arange(len(prepared)) if clusters is None else clusters
    metrics = _bleu_estimates([bleu_counts(item) for item in prepared], groups)
    reason = missing_reason()
    metrics["meteor"] = Estimate(None, unscored=len(prepared)) if reason else _meteor_estimate(prepared, groups)
    metrics["rouge_l"] = estimate_mean(np.array([rouge_l(item) for item in prepared]), groups)
    metrics["cider"] = _cider_estimate(cider(prepared), groups)
    metrics["cider_plain"] = _cider_estimate(cider(prepared, plain=True), groups)
    suffix = "_ptb" if tokeniser == "ptb" else ""
    metrics = in_unit("trials", metrics)
    return {name + suffix: value for name, value in metrics.items()}, {f"meteor{suffix}": reason} if reason else {}


def _bleu_estimates(counts: Sequence[BleuCounts], clusters: NDArray[Any]) -> dict[str, Estimate]:
    rows = np.array(
        [[*item.matched, *item.guessed, item.length, item.reference_length] for item in counts], dtype=float
    )
    _, codes = np.unique(clusters, return_inverse=True)
    totals = np.zeros((int(codes.max()) + 1, rows.shape[1]))
    np.add.at(totals, codes, rows)
    values = bleu(_counts_of(rows.sum(axis=0)))
    drawn = np.array([bleu(_counts_of(row)) for row in resample(totals, _DRAWS, "bleu")])
    intervals = [percentile_interval(drawn[:, order], len(totals), (0.0, 1.0)) for order in range(MAX_ORDER)]
    return {
        f"bleu_{order + 1}": Estimate(value, ci95=interval, n=len(counts))
        for order, (value, interval) in enumerate(zip(values, intervals, strict=True))
    }


def _counts_of(row: NDArray[np.float64]) -> BleuCounts:
    whole = [int(value) for value in row]
    return BleuCounts(tuple(whole[:MAX_ORDER]), tuple(whole[MAX_ORDER : 2 * MAX_ORDER]), whole[-2], whole[-1])


def _cider_estimate(values: Sequence[float], clusters: NDArray[Any]) -> Estimate:
    estimate = estimate_mean(np.array(values), clusters)
    if estimate.ci95 is None:
        return estimate
    low, high = estimate.ci95
    return structs.replace(estimate, ci95=(max(0.0, low), min(CIDER_SCALE, high)))


def _meteor_estimate(captions: Sequence[Caption], clusters: NDArray[Any]) -> Estimate:
    """The corpus value is no mean, but its spread is that of the single values: they lend it their interval's width."""
    value, single = meteor(captions)
    spread = estimate_mean(np.array(single), clusters)
    if spread.ci95 is None or spread.value is None:
        return Estimate(value, n=len(captions))
    low, high = (max(0.0, min(1.0, value + side - spread.value)) for side in spread.ci95)
    return Estimate(value, spread.stderr, (low, high), len(captions))


def score(sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]) -> Sequence[Score]:
    """Scorer `caption`: ROUGE-L and BLEU-1..4 of one reply. Corpus BLEU is not their mean: see `corpus_estimates`."""
    written = is_as_written(options)
    text = prediction.text if written else answer_text(prediction)
    names = (_TEXT_METRIC, *(f"bleu_{order}_sentence" for order in range(1, MAX_ORDER + 1)))
    if not sample.answers or not (text or (written and text is not None)):
        reason = "the sample has no reference caption" if text else why_no_text(prediction)
        return [Score(key=prediction.key, metric=name, value=None, reason=reason) for name in names]
    item = caption(text or "", sample.answers) if written else own_caption(text or "", sample.answers)
    values = (rouge_l(item), *bleu(bleu_counts(item)))
    return [
        Score(key=prediction.key, metric=name, value=value, answer=text)
        for name, value in zip(names, values, strict=True)
    ]


def aggregate(scored: Any, options: Mapping[str, Any]) -> Mapping[str, Estimate]:
    """Aggregate `caption`: the corpus metrics of a task scored by scorer `caption`; option `tokenizer` as above."""
    pairs = [
        (sample, score)
        for sample, score in scored.scores()
        if score.metric == _TEXT_METRIC and score.answer is not None
    ]
    if not pairs:
        return {}
    made = caption if is_as_written(options) else own_caption
    captions = [made(score.answer, sample.answers) for sample, score in pairs]
    _, clusters = np.unique([sample.group or sample.id for sample, _ in pairs], return_inverse=True)
    estimates, _ = corpus_estimates(captions, clusters, tokeniser=str(options.get("tokenizer", "whitespace")))
    if len({sample.id for sample, _ in pairs}) == 1:
        estimates |= _without_cider(estimates, len(pairs))
    # The mean of the single ROUGE-L values is in the table already.
    return {name: estimate for name, estimate in estimates.items() if name != _TEXT_METRIC}


def _without_cider(estimates: Mapping[str, Estimate], captions: int) -> dict[str, Estimate]:
    """Of one sample no word is rarer than another: CIDEr is 0 whatever was said, which is no measurement."""
    unknown = Estimate(None, unscored=captions, unit="trials")
    return {name: unknown for name in estimates if name.startswith("cider")}
