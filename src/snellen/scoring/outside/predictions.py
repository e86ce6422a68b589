"""Turns predictions that were made elsewhere into metrics with intervals: the library side of `snellen score FILE`.

Which metrics a file can give is its formulation's business; how replies are read is the profile's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from ...core.errors import DataError, UsageError, did_you_mean
from ...core.types import Estimate
from ...extract.profiles import profile_named
from ..aggregates.consistency import chains_from_items, consistency, steps
from . import multi_inference
from .outside_caption import score_captions
from .outside_choice import tally_choices
from .outside_fields import Row, Source, read_rows
from .outside_tally import Tally
from .outside_text import tally_texts

INFER_METHODS = ("generation", "likelihood")
OWN_PROFILE = "snellen"
_BY_LETTER = ("SingleChoice", "MultiInference")
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


class OutsideResult(Struct, frozen=True, omit_defaults=True):
    """The metrics of one file. `notes` says of a metric what its number cannot; `records` are per question, if there are any."""

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

    `formulation` is one of SingleChoice, Generation, OCROpenEnded, KIEOpenEnded, MultiInference, Consistency; `options` are
    the fields of OutsideOptions. Values are fractions. Raises DataError naming the record, or UsageError.

    Example:
        >>> record = {"sample_id": 1, "answer": 1, "answer_options": ["cat", "dog"], "prediction": "The answer is B."}
        >>> snellen.score_predictions([record], "SingleChoice").metrics["accuracy"].value
        1.0
    """
    chosen = _check(formulation, options)
    rows = read_rows(predictions)
    result = _SCORERS[formulation](rows, formulation, chosen)
    return structs.replace(result, formulation=formulation, profile=chosen.profile)


def _check(formulation: str, options: Mapping[str, Any]) -> OutsideOptions:
    if formulation not in _SCORERS:
        raise UsageError(
            f"unknown formulation {formulation!r}{did_you_mean(formulation, _SCORERS)}; known: {', '.join(_SCORERS)}"
        )
    unknown = set(options) - set(OutsideOptions.__struct_fields__)
    if unknown:
        name = sorted(unknown)[0]
        raise UsageError(f"unknown option {name!r}{did_you_mean(name, OutsideOptions.__struct_fields__)}")
    chosen = OutsideOptions(**options)
    if chosen.infer_method not in INFER_METHODS:
        raise UsageError(f"unknown infer method {chosen.infer_method!r}; known: {', '.join(INFER_METHODS)}")
    _check_fit(formulation, chosen)
    return chosen


def _check_fit(formulation: str, chosen: OutsideOptions) -> None:
    fitting = COMPATIBLE.get(chosen.profile, _BY_LETTER)
    if chosen.profile != OWN_PROFILE and formulation not in fitting:
        name = profile_named(chosen.profile).name
        raise UsageError(f"profile {name!r} does not score {formulation}; it scores {', '.join(fitting)}")
    if chosen.eval_stability and formulation != "SingleChoice":
        raise UsageError(
            f"instability is the entropy of chosen options: --eval-stability needs SingleChoice, not {formulation}"
        )
    if chosen.multi_round_eval and formulation not in ("SingleChoice", "OCROpenEnded", "KIEOpenEnded"):
        raise UsageError(
            f"--multi-round-eval needs one score a record: SingleChoice, OCROpenEnded or KIEOpenEnded, not {formulation}"
        )
    if formulation == "MultiInference" and chosen.annotations is None:
        raise UsageError("MultiInference needs --annotations FILE: the questions with their right answers")


def _score_choices(rows: Iterable[Row], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    tally = tally_choices(
        rows, profile=chosen.profile, infer_method=chosen.infer_method, with_rounds=chosen.multi_round_eval
    )
    return _finish(tally, chosen, hit_rate=True)


def _score_texts(rows: Iterable[Row], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    tally = tally_texts(rows, formulation=formulation, profile=chosen.profile, with_rounds=chosen.multi_round_eval)
    # ReForm-Eval prints a format hit rate here too; it is always 1.
    return _finish(tally, chosen, hit_rate=chosen.profile == "reform")


def _finish(tally: Tally, chosen: OutsideOptions, *, hit_rate: bool) -> OutsideResult:
    tally.check()
    metrics = {"accuracy": tally.accuracy()}
    if hit_rate:
        metrics["format_hit_rate"] = tally.hit_rate()
    if chosen.eval_stability:
        metrics["instability"] = tally.instability()
    if chosen.multi_round_eval:
        metrics |= tally.rounds()
    undefined = {
        name: "undefined: it needs at least two rounds that differ"
        for name, value in metrics.items()
        if value.value is None
    }
    return OutsideResult(len(tally), metrics, notes=undefined)


def _score_captions(rows: Iterable[Row], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    n, metrics, notes = score_captions(rows, tokeniser=chosen.tokenizer)
    return OutsideResult(n, metrics, notes=notes)


def _score_inferences(rows: Iterable[Row], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    annotations = multi_inference.read_annotations(read_rows(chosen.annotations or (), "annotations"))
    judged = multi_inference.judge_all(annotations, rows, profile=chosen.profile)
    compatible = chosen.profile == "flageval"
    groups = {
        key: {
            value: _rounded(multi_inference.estimates(members), compatible)
            for value, members in multi_inference.group_questions(judged.questions, key).items()
        }
        for key in chosen.detailed_keys
    }
    metrics = _rounded(multi_inference.estimates(judged.questions), compatible)
    metrics |= {name: Estimate(value, n=len(judged.questions)) for name, value in judged.tokens.items()}
    records = [
        multi_inference.seed_record(question, dense=compatible)
        for question in judged.questions
        if question.scores or not compatible
    ]
    notes = (
        {"missing": f"{len(judged.missing)} annotated questions have no prediction and are not in the numbers"}
        if judged.missing
        else {}
    )
    return OutsideResult(len(judged.questions), metrics, groups, notes=notes, missing=judged.missing, records=records)


def _rounded(metrics: dict[str, Estimate], compatible: bool) -> dict[str, Estimate]:
    """FlagEvalMM rounds percentages to two digits; its profile gives the same figure as a fraction."""
    if not compatible:
        return metrics
    return {
        name: value
        if value.value is None
        else structs.replace(value, value=round(round(100 * value.value, 2) / 100, 6))
        for name, value in metrics.items()
    }


def _score_consistency(rows: Iterable[Row], formulation: str, chosen: OutsideOptions) -> OutsideResult:
    truths, found = [], []
    for row in rows:
        truth, prediction = row.get("ground_truth"), row.get("prediction")
        if not isinstance(truth, Mapping) or not isinstance(prediction, Mapping):
            row.fail("'ground_truth' and 'prediction' must be objects {\"inference\": …, \"chain\": […]}")
        try:
            chains_from_items([truth], [prediction])
        except DataError as error:
            row.fail(str(error).removeprefix("item 0: "))
        truths.append(truth)
        found.append(prediction)
    if not truths:
        raise DataError("the file holds no records, so there is nothing to score")
    chains = chains_from_items(truths, found)
    metrics = consistency(chains, chosen.convention) | steps(chains)
    undefined = {name: "undefined: no item qualifies" for name, value in metrics.items() if value.value is None}
    return OutsideResult(len(truths), metrics, notes=undefined)


_SCORERS: dict[str, Callable[[Iterable[Row], str, OutsideOptions], OutsideResult]] = {
    "SingleChoice": _score_choices,
    "Generation": _score_captions,
    "OCROpenEnded": _score_texts,
    "KIEOpenEnded": _score_texts,
    "MultiInference": _score_inferences,
    "Consistency": _score_consistency,
}

FORMULATIONS: Sequence[str] = tuple(_SCORERS)
