"""Turns predictions that were made elsewhere into metrics with intervals: the library side of `snellen score FILE`.

Which metrics a file can give is its formulation's business; how replies are read is the profile's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, structs

from ...core.errors import DataError, UsageError, did_you_mean, not_among
from ...core.types import Estimate
from ...data.files.records import Record, Source, read_records
from ...extract.extraction import AMBIGUOUS
from ...extract.profiles import profile_named
from ..aggregates.instability import answer_entropy, trend_of_rounds
from ..aggregates.means import format_hit_rate, mean_of_questions, mean_of_trials, split
from ..table import ScoreTable
from .choices import choice_scorer
from .inferences import Question, average_tokens, by_id, judge_questions, question_table, seed_record
from .record_marks import AUTO, NUMBERS, OPTION_MARKS
from .texts import Scored, score_captions, score_chains, text_scorer
from .trials import read_trials

INFER_METHODS = ("generation", "likelihood")
OWN_PROFILE = "snellen"
_BY_LETTER = ("SingleChoice", "MultiInference")
NOTHING_READ = "no reply could be read"
FLAT_ROUNDS = "undefined: it needs at least two rounds that differ"
COMPATIBLE = {"reform": ("SingleChoice", "Generation", "OCROpenEnded", "KIEOpenEnded")}
"""What the profile of another system can score; those not named here only read letters."""


class OutsideOptions(Struct, frozen=True):
    """What changes the numbers of one file of predictions."""

    profile: str = OWN_PROFILE
    infer_method: str = "generation"
    eval_stability: bool = False
    multi_round_eval: bool = False
    annotations: Source | None = None
    detailed_keys: tuple[str, ...] = ()
    convention: str = "conditional"
    tokenizer: str = "whitespace"
    option_mark: str = AUTO
    """How the options were marked: upper, lower, number, or auto (what the record or the reply shows)."""


class OutsideResult(Struct, frozen=True, omit_defaults=True):
    """The metrics of one file. `notes` says of a metric what its number cannot; `records` are per question, if any."""

    n: int
    metrics: dict[str, Estimate]
    groups: dict[str, dict[str, dict[str, Estimate]]] = {}
    formulation: str = ""
    profile: str = OWN_PROFILE
    notes: dict[str, str] = {}
    missing: list[str] = []
    records: list[dict[str, Any]] = []


def score_predictions(predictions: Source, formulation: str, **options: Any) -> OutsideResult:
    """Score predictions (a JSON or JSONL file, or an iterable of records) made by any program.

    `formulation` is one of SingleChoice, Generation, OCROpenEnded, KIEOpenEnded, MultiInference, Consistency; `options`
    are the fields of OutsideOptions. Values are fractions. Raises DataError naming the record, or UsageError.

    Example:
        >>> record = {"sample_id": 1, "answer": 1, "answer_options": ["cat", "dog"], "prediction": "The answer is B."}
        >>> snellen.score_predictions([record], "SingleChoice").metrics["accuracy"].value
        1.0
    """
    chosen = _check(formulation, options)
    result = _SCORERS[formulation](read_records(predictions), formulation, chosen)
    return structs.replace(result, formulation=formulation, profile=chosen.profile)


def _check(formulation: str, options: Mapping[str, Any]) -> OutsideOptions:
    if formulation not in _SCORERS:
        raise UsageError(f"unknown formulation {not_among(formulation, _SCORERS)}")
    unknown = set(options) - set(OutsideOptions.__struct_fields__)
    if unknown:
        name = sorted(unknown)[0]
        raise UsageError(f"unknown option {name!r}{did_you_mean(name, OutsideOptions.__struct_fields__)}")
    chosen = OutsideOptions(**options)
    if chosen.infer_method not in INFER_METHODS:
        raise UsageError(f"unknown infer method {chosen.infer_method!r}; known: {', '.join(INFER_METHODS)}")
    if chosen.option_mark not in OPTION_MARKS:
        raise UsageError(f"unknown option mark {not_among(chosen.option_mark, OPTION_MARKS)}")
    _check_fit(formulation, chosen)
    return chosen


def _check_fit(formulation: str, chosen: OutsideOptions) -> None:
    fitting = COMPATIBLE.get(chosen.profile, _BY_LETTER)
    if chosen.profile != OWN_PROFILE and formulation not in fitting:
        name = profile_named(chosen.profile).name
        raise UsageError(f"profile {name!r} does not score {formulation}; it scores {', '.join(fitting)}")
    if chosen.eval_stability and formulation != "SingleChoice":
        needed = f"--eval-stability needs SingleChoice, not {formulation}"
        raise UsageError(f"instability is the entropy of chosen options: {needed}")
    if chosen.multi_round_eval and formulation not in ("SingleChoice", "OCROpenEnded", "KIEOpenEnded"):
        known = "SingleChoice, OCROpenEnded or KIEOpenEnded"
        raise UsageError(f"--multi-round-eval needs one score a record: {known}, not {formulation}")
    if formulation == "MultiInference" and chosen.annotations is None:
        raise UsageError("MultiInference needs --annotations FILE: the questions with their right answers")


def _score_trials(records: Iterable[Record], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    """Score a file of one answer a record: SingleChoice, OCROpenEnded, KIEOpenEnded."""
    is_choice = formulation == "SingleChoice"
    profile = chosen.profile
    read_as: Counter[str] = Counter()
    by_mark = partial(choice_scorer, profile, chosen.infer_method, chosen.option_mark, read_as)
    scorer = by_mark() if is_choice else text_scorer(formulation, profile)
    table = read_trials(records, scorer, with_rounds=chosen.multi_round_eval, with_classes=chosen.eval_stability)
    metrics = {"accuracy": mean_of_trials(table)}
    # ReForm-Eval prints a format hit rate for texts too; it is always 1.
    if is_choice or profile == "reform":
        metrics["format_hit_rate"] = format_hit_rate(table)
    if chosen.eval_stability:
        metrics["instability"] = answer_entropy(table)
    nothing = [name for name, one in metrics.items() if one.value is None or (one.read is not None and not one.read.n)]
    notes = dict.fromkeys(nothing, NOTHING_READ) | _mark_notes(read_as)
    if chosen.multi_round_eval:
        trend = trend_of_rounds(table)
        metrics |= trend
        notes |= {name: FLAT_ROUNDS for name, estimate in trend.items() if estimate.value is None}
    return OutsideResult(len(table), metrics, notes=notes)


def _mark_notes(read_as: Mapping[str, int]) -> dict[str, str]:
    """Say what was taken for the options' marks where nothing in the file says so."""
    said = {
        NUMBERS: "read as (1), (2), (3), …; --option-mark upper takes letters only",
        AMBIGUOUS: "not read: a number in brackets may be a label or an option's text; give --option-mark",
    }
    parts = [f"{read_as[style]} replies {words}" for style, words in said.items() if read_as.get(style)]
    return {"option_mark": "; ".join(parts)} if parts else {}


def _score_captions(records: Iterable[Record], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    return _result(score_captions(records, tokeniser=chosen.tokenizer))


def _score_chains(records: Iterable[Record], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    return _result(score_chains(records, convention=chosen.convention))


def _result(scored: Scored) -> OutsideResult:
    n, metrics, notes = scored
    return OutsideResult(n, metrics, notes=notes)


def _answered(predicted: Mapping[str, Question]) -> dict[str, Question]:
    """Keep the questions that have an inference; refuse predictions that hold none at all."""
    answered = {name: question for name, question in predicted.items() if question.replies}
    if not answered:
        raise DataError("the predictions hold no inference of any annotated question, so there is nothing to score")
    return answered


def _score_inferences(records: Iterable[Record], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    annotations = dict(by_id(read_records(chosen.annotations or (), "annotations")))
    predicted = dict(judge_questions(annotations, records, chosen.profile))
    answered = _answered(predicted)
    questions, compatible = list(answered.values()), chosen.profile == "flageval"
    table = question_table(questions, chosen.detailed_keys)
    metrics = _accuracies(table, compatible)
    if compatible:
        tokens = average_tokens(list(predicted.values()))
        metrics |= {name: Estimate(value, n=len(questions)) for name, value in tokens.items()}
    kept = [question for question in questions if question.is_scored or not compatible]
    missing = [name for name in annotations if name not in answered]
    note = f"{len(missing)} annotated questions have no prediction and are not in the numbers"
    notes = {"missing": note} if missing else {}
    groups = {key: _by_value(table, questions, key, compatible) for key in chosen.detailed_keys}
    seed_records = [seed_record(question, dense=compatible) for question in kept]
    return OutsideResult(len(questions), metrics, groups, notes=notes, missing=missing, records=seed_records)


def _by_value(
    table: ScoreTable, questions: Sequence[Question], key: str, compatible: bool
) -> dict[str, dict[str, Estimate]]:
    """Return the accuracies by the values of one field of the annotations, in the order in which they occur."""
    parts = dict(split(table, key))
    values = dict.fromkeys(str(question.annotation.get(key)) for question in questions)
    return {value: _accuracies(parts[value], compatible) for value in values}


def _accuracies(table: ScoreTable, compatible: bool) -> dict[str, Estimate]:
    """Return macro and micro accuracy; FlagEvalMM rounds percentages to two digits, and so does its profile."""
    metrics = {"accuracy": mean_of_questions(table), "accuracy_micro": mean_of_trials(table)}
    return {name: _rounded(estimate) for name, estimate in metrics.items()} if compatible else metrics


def _rounded(estimate: Estimate) -> Estimate:
    value = None if estimate.value is None else round(round(100 * estimate.value, 2) / 100, 6)
    return structs.replace(estimate, value=value)


_SCORERS: dict[str, Callable[[Iterable[Record], str, OutsideOptions], OutsideResult]] = {
    "SingleChoice": _score_trials,
    "Generation": _score_captions,
    "OCROpenEnded": _score_trials,
    "KIEOpenEnded": _score_trials,
    "MultiInference": _score_inferences,
    "Consistency": _score_chains,
}

FORMULATIONS: Sequence[str] = tuple(_SCORERS)
