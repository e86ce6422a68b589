"""A stored run as the result files of the page-image scripts: choices by variant, needles in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...core.message_parts import write_markers
from ...core.types import Sample, Score
from ...core.variants import parse_variant
from ...data.visual_tokens import ORDER
from ...report.exported_run import Details, ExportedRun, check_details, file_stem, write_files
from ...stats.intervals import wilson
from ...store.reader import RunReader, Trial

MAIN = "accuracy"


class Asked(NamedTuple):
    """One question of one variant: what was asked, what came back and how it scored."""

    trial: Trial
    scores: dict[str, Score]

    @property
    def correct(self) -> bool:
        """Tell whether the headline metric is 1."""
        main = self.scores.get(MAIN)
        return main is not None and main.value == 1.0

    @property
    def status(self) -> str:
        """Return success, null (no answer could be read), skipped (never sent) or error."""
        failure = self.trial.prediction.failure
        if failure is not None:
            return "skipped" if failure.attempts == 0 else "error"
        main = self.scores.get(MAIN)
        return "success" if main is not None and main.value is not None else "null"


UNKNOWN = "unknown"
CASE = "needle-case"
"""The scorer that minds upper and lower case."""
Rule = Callable[[Asked], bool]
"""When an answer counts as correct."""


def read_asked(reader: RunReader, task: str) -> dict[str, list[Asked]]:
    """Return the trials of a task by variant, in the order of the data; `pages=NAME` appears under its name."""
    scores: dict[Any, dict[str, Score]] = {}
    for score in reader.scores(task):
        scores.setdefault(score.key, {})[score.metric] = score
    found: dict[str, list[Asked]] = {}
    for trial in reader.trials(task):
        key = trial.prediction.key
        name = parse_variant(key.variant).get("pages", key.variant)
        found.setdefault(name, []).append(Asked(trial, scores.get(key, {})))
    return found


def choice_file(variant: str, model: str, asked: list[Asked], run_id: str) -> dict[str, Any]:
    """Return `{variant}_mc_eval.json`."""
    null = sum(each.status == "null" for each in asked)
    total = len(asked)
    return {
        "subdirectory": variant,
        "model": model.partition("/")[2] or model,
        **_totals(asked),
        "compensated_accuracy": _in_percent(sum(each.correct for each in asked) + 0.25 * null, total),
        "null_rate": _in_percent(null, total),
        **_lost(asked),
        "context_length_analysis": {
            "by_context_length": _by(asked, lambda sample: sample.tags.get("context_length"), ORDER),
            "tokenizer": next((each.trial.sample.meta.get("tokenizer") for each in asked), None),
        },
        "detailed_analysis": {
            "by_difficulty": _by(asked, lambda sample: sample.tags.get("difficulty")),
            "by_length": _by(asked, lambda sample: sample.tags.get("length")),
            "by_difficulty_and_length": _by_both(asked),
            "by_domain": _by(asked, lambda sample: sample.tags.get("domain")),
            "by_pages": _by(asked, lambda sample: sample.tags.get("pages")),
        },
        "compression_ratio": compression(asked),
        "config_hash": run_id,
        "results": [_choice_result(each) for each in asked],
    }


def needle_file(
    model: str, config: str, asked: list[Asked], run_id: str, *, scorers: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the needle scripts' one result file; `correct` follows their rule, contains, beside ours."""
    by_instance: dict[str, list[Asked]] = {}
    for each in asked:
        by_instance.setdefault(str(each.trial.sample.group), []).append(each)
    strict = sum(each.correct for each in asked)
    return {
        "model": model.partition("/")[2] or model,
        "config": config,
        **_totals(asked, _contained),
        **_lost(asked),
        "word_boundary_accuracy": _in_percent(strict, len(asked)),
        "instance_accuracies": {name: _tally(group, _contained) for name, group in by_instance.items()},
        "by_needle_depth": _by(asked, lambda sample: sample.tags.get("needle_depth"), correct=_contained),
        "by_context_length": _by(asked, lambda sample: sample.tags.get("context_length"), ORDER, correct=_contained),
        "by_kind": _by(asked, lambda sample: sample.tags.get("kind"), correct=_contained),
        "compression_ratio": compression(asked),
        "config_hash": f"{run_id}-case" if CASE in scorers else run_id,  # one run, read otherwise
        "results": [_needle_result(each) for each in asked],
    }


def compression(asked: list[Asked]) -> dict[str, float]:
    """Return text tokens per visual token over all documents, by model family: what the pages save or cost."""
    documents = {each.trial.sample.group: each.trial for each in asked}
    text = sum(int(trial.sample.tags.get("context_tokens") or 0) for trial in documents.values() if _estimated(trial))
    visual: dict[str, int] = {}
    for trial in documents.values():
        for family, tokens in _estimated(trial).items():
            visual[family] = visual.get(family, 0) + tokens
    return {family: round(text / tokens, 4) for family, tokens in visual.items() if tokens and text}


def _lost(asked: list[Asked]) -> dict[str, Any]:
    skipped = [each for each in asked if each.status == "skipped"]
    reasons = [{"instance_id": each.trial.sample.group, "reason": _reason(each)} for each in skipped]
    return {"errors": sum(each.status == "error" for each in asked), "skipped": reasons}


def _by_both(asked: list[Asked]) -> dict[str, Any]:
    """Return difficulty -> length -> counts, nested as the scripts have it."""
    groups: dict[str, list[Asked]] = {}
    for each in asked:
        groups.setdefault(str(each.trial.sample.tags.get("difficulty")), []).append(each)
    return {name: _by(group, lambda sample: sample.tags.get("length")) for name, group in sorted(groups.items())}


def _contained(each: Asked) -> bool:
    return _rungs(each).get("contains") == 1.0


def _rungs(each: Asked) -> dict[str, float]:
    score = each.scores.get(MAIN)
    rungs: dict[str, float] = score.detail.get("ladder", {}) if score is not None else {}
    return rungs


def _right(each: Asked) -> bool:
    return each.correct


def _totals(asked: list[Asked], correct: Rule = _right) -> dict[str, Any]:
    tally = _tally(asked, correct)
    interval = wilson(tally["correct"] / tally["total"], tally["total"]) if asked else None
    shown = [round(100 * bound, 2) for bound in interval] if interval else None
    counts = {"total_questions": tally["total"], "correct": tally["correct"], "accuracy": tally["accuracy"]}
    return counts | {"ci95": shown}


def _tally(asked: Iterable[Asked], correct: Rule = _right) -> dict[str, Any]:
    hits = [correct(each) for each in asked]
    return {"total": len(hits), "correct": sum(hits), "accuracy": _in_percent(sum(hits), len(hits))}


def _in_percent(part: float, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


def _by(
    asked: list[Asked], key: Callable[[Sample], Any], order: tuple[str, ...] = (), *, correct: Rule = _right
) -> dict[str, Any]:
    """Group by the values seen, so that nothing drops out of a table because its value was not expected.

    Data that does not have the field at all has no table of it.
    """
    values = [key(each.trial.sample) for each in asked]
    groups: dict[str, list[Asked]] = {}
    for each, value in zip(asked, values, strict=True):
        groups.setdefault(UNKNOWN if value is None else str(value), []).append(each)
    if all(value is None for value in values):
        return {}
    names = sorted(groups, key=lambda name: (order.index(name) if name in order else len(order), name))
    return {name: _tally(groups[name], correct) for name in names}


def _reason(each: Asked) -> str:
    failure = each.trial.prediction.failure
    return failure.message if failure is not None else ""


def _common(each: Asked) -> dict[str, Any]:
    request, prediction = each.trial.request, each.trial.prediction
    timing, main = prediction.timing, each.scores.get(MAIN)
    return {
        "instance_id": each.trial.sample.group,
        "question": each.trial.sample.question,
        "prompt": write_markers(request.messages)[-1].text,
        "model_output": prediction.text,
        "num_images": sum(len(turn.images) for turn in request.messages),
        "status": each.status,
        "error": _reason(each) or None,
        "parse_rule": main.rule if main else None,
        "finish_reason": prediction.finish,
        "usage": prediction.usage,
        "latency_s": round(timing.done - timing.sent, 4) if timing else None,
        "image_tokens_est": _estimated(each.trial),
    }


def _estimated(trial: Trial) -> Mapping[str, int]:
    name = parse_variant(trial.prediction.key.variant).get("pages", "base")
    known: Mapping[str, Mapping[str, int]] = trial.sample.meta.get("visual_tokens", {})
    return known.get(name, {})


def _choice_result(each: Asked) -> dict[str, Any]:
    sample, request = each.trial.sample, each.trial.request
    main = each.scores.get(MAIN)
    letters = dict(zip(request.shown, request.marks, strict=True))
    right = next((letters[answer] for answer in sample.answers if answer in letters), sample.meta.get("answer"))
    return _common(each) | {
        "choices": dict(zip(request.marks, request.shown, strict=True)),
        "ground_truth": right,
        "extracted_answer": letters.get(main.answer) if main and main.answer is not None else None,
        "correct": each.correct,
    }


def _needle_result(each: Asked) -> dict[str, Any]:
    sample = each.trial.sample
    only_contained = _contained(each) and not each.correct  # the rule of `correct` in this file, not ours
    return (
        _common(each)
        | ({"parse_rule": "contains"} if only_contained else {})
        | {
            "question_id": sample.id,
            "question_idx": int(sample.id.rpartition("#")[2]) if "#" in sample.id else None,
            "ground_truth": ", ".join(sample.answers),
            "correct": _contained(each),
            "scores": {metric: score.value for metric, score in each.scores.items()} | _rungs(each),
            "tags": sample.tags,
        }
    )


def write_choices(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write the files of the choice script: `<variant>_mc_eval.json`."""
    check_details(details, {}, "mc")
    files: dict[str, Any] = {}
    for task in run.tasks:
        for variant, asked in read_asked(run.reader, task.name).items():
            name = f"{file_stem(variant)}_mc_eval.json"
            files[name] = choice_file(variant, run.header.model, asked, run.header.id)
    return write_files(output, files)


def write_needles(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write the file of the needle script: `niah_eval.json`."""
    check_details(details, {}, "niah")
    tasks = (read_asked(run.reader, task.name) for task in run.tasks)
    asked = [trial for variants in tasks for trials in variants.values() for trial in trials]
    scorers = [name for task in run.tasks for name in task.scorers]
    found = needle_file(run.header.model, "", asked, run.header.id, scorers=scorers)
    return write_files(output, {"niah_eval.json": found})
