"""A run as Every Eval Ever's two files a task (0.3.0): the numbers with their uncertainty, and every trial."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ...core.tasks import Task
from ...core.types import Prediction
from ...report.exported_run import (
    ESTIMATED,
    FAILED,
    Details,
    ExportedRun,
    ExportedTrial,
    check_details,
    hashed,
    picture_hashes,
    split_model,
)
from ...report.files import atomic_file
from ...scoring.aggregates.headline import is_no_share
from ...scoring.tables.table import lower_is_better

SCHEMA = "0.3.0"
DETAILS = {
    "organization": "who made the run",
    "relationship": "first_party, third_party, collaborative or other",
    "developer": "who made the model",
    "collection": "the folder of the collection",
}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_OURS = "snellen."


def write(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write `data/COLLECTION/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl` for every task."""
    check_details(details, DETAILS, "eee")
    files: list[Path] = []
    if details.get("developer", split_model(run.header.model)[1]) == "unknown":
        run.notes.append("nothing says who made the model: --detail developer=NAME; records are found by it")
    for task in run.tasks:
        files += _TaskFiles(run, task, details).write(output)
    return files


class _TaskFiles:
    """The two files of one task."""

    def __init__(self, run: ExportedRun, task: Task, details: Details) -> None:
        self._run, self._task, self._details = run, task, details
        provider, developer, name = split_model(run.header.model)
        self._provider = provider
        self._developer = details.get("developer", developer)
        self._name = name or "unknown"
        self._model = f"{self._developer}/{self._name}" if self._developer != "unknown" else self._name
        self._id = f"{task.name}/{_safe(self._model)}/{run.header.id}"
        self._metric, self._main = run.headline(task.name)

    def write(self, output: Path) -> list[Path]:
        """Write both files; the aggregate last, since it names the other's checksum."""
        parts = (self._details.get("collection", self._task.name), self._developer, self._name)
        folder = output.joinpath("data", *map(_safe, parts))
        folder.mkdir(parents=True, exist_ok=True)
        name = str(uuid.UUID(bytes=bytes.fromhex(hashed(self._run.header.id, self._task.name)), version=4))
        samples = folder / f"{name}_samples.jsonl"
        digest, count = hashlib.sha256(), 0
        with atomic_file(samples) as file:
            for row in self._rows():
                count += 1
                _put(file, digest, row)
        place = samples.relative_to(output).as_posix()
        aggregate = self._aggregate({"file_path": place, "total_rows": count, "checksum": digest.hexdigest()})
        with atomic_file(folder / f"{name}.json") as file:
            file.write(json.dumps(aggregate, indent=2, sort_keys=True).encode("ascii") + b"\n")
        return [folder / f"{name}.json", samples]

    def _rows(self) -> Iterator[dict[str, Any]]:
        return (self._row(trial) for trial in self._run.trials(self._task.name))

    def _aggregate(self, samples: Mapping[str, Any]) -> dict[str, Any]:
        run, told = self._run, self._details
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "evaluation_timestamp": run.header.created,
            "retrieved_timestamp": str(int(run.began.timestamp())),
            "source_metadata": {
                "source_name": "Snellen",
                "source_type": "evaluation_run",
                "source_organization_name": told.get("organization", "unknown"),
                "evaluator_relationship": told.get("relationship", "other"),
                "additional_details": self._about(),
            },
            "eval_library": {"name": "snellen", "version": run.version},
            "model_info": {
                "name": self._name,
                "id": self._model,
                "developer": self._developer,
                "additional_details": {
                    "deployment_type": "self_deployed" if self._provider in ("hf", "vllm") else "unknown",
                    "model_availability": "unknown",
                },
            },
            "evaluation_results": list(self._results()),
            "detailed_evaluation_results": {"format": "jsonl", "hash_algorithm": "sha256", **samples},
        }

    def _about(self) -> dict[str, str]:
        task = {"scorers": self._task.scorers, "aggregates": self._task.aggregates}
        facts = {
            "run": self._run.header.id,
            "planned": self._run.planned(self._task.name),
            "not_yet_asked": self._run.missing(self._task.name),
            "headline": self._metric or "",
            "command": self._run.header.command,
            "task": json.dumps(task, sort_keys=True),
        }
        return {f"{_OURS}{name}": str(value) for name, value in facts.items()}

    def _results(self) -> Iterator[dict[str, Any]]:
        for metric, estimate in sorted(self._run.metrics(self._task.name).items()):
            if estimate["value"] is not None:
                yield self._result(metric, estimate)

    def _result(self, metric: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
        counts = ("unscored", "failed", "left_out", "not_yet_asked", "unit", "n")
        bounded = not is_no_share(metric) and 0.0 <= float(estimate["value"]) <= 1.0
        return {
            "evaluation_result_id": f"{self._task.name}/{metric}",
            "evaluation_name": self._task.name,
            "source_data": {"dataset_name": self._task.title or self._task.name, "source_type": "other"},
            "metric_config": {
                "metric_id": metric,
                "metric_name": metric,
                "lower_is_better": lower_is_better(metric),
                "score_type": "continuous",
                "min_score": 0.0 if bounded else "-Infinity",
                "max_score": 1.0 if bounded else "Infinity",
            },
            "score_details": {
                "score": float(estimate["value"]),
                "details": {name: str(estimate.get(name)) for name in counts},
                "uncertainty": _uncertainty(estimate),
            },
            "generation_config": self._generation(),
        }

    def _generation(self) -> dict[str, Any]:
        told = {name: value for name, value in msgspec.to_builtins(self._task.params).items() if value is not None}
        known = {name: told[name] for name in ("temperature", "top_p", "max_tokens") if name in told}
        rest = {name: _text(value) for name, value in told.items() if name not in known}
        rest |= {"repeats": str(self._task.repeats), "variants": _text(list(self._task.variants))}
        return {"generation_args": known, "additional_details": rest}

    def _counted(self, metric: str) -> str | None:
        """Return the result that the rows' scores make: the strict twin of their metric, if the task has one."""
        known = self._run.metrics(self._task.name)
        names = (name for name in (f"{metric}_strict", metric) if known.get(name, {}).get("value") is not None)
        return next((f"{self._task.name}/{name}" for name in names), None)

    def _row(self, trial: ExportedTrial) -> dict[str, Any]:
        sample, request, prediction = trial.sample, trial.request, trial.prediction
        asked = next((turn.text for turn in reversed(request.messages) if turn.role == "user"), sample.question)
        shown = request.shown or sample.options
        row: dict[str, Any] = {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "model_id": self._model,
            "evaluation_name": self._task.name,
            "sample_id": sample.id,
            "sample_hash": hashed(sample.question, *sample.answers, size=32),
            "interaction_type": "single_turn",
            "input": {"raw": sample.question, "formatted": asked, "reference": list(sample.answers)},
            "output": {"raw": [] if prediction.text is None else [prediction.text]},
            "answer_attribution": _attribution(trial),
            "evaluation": {"score": trial.strict_value(), "is_correct": trial.is_right()},
            "metadata": _metadata(trial),
        }
        counted = self._counted(trial.main.metric if trial.main else self._metric or "")
        if counted:
            row["evaluation_result_id"] = counted
        if shown:
            row["input"]["choices"] = list(shown)
        if prediction.reasoning:
            row["output"]["reasoning_trace"] = [prediction.reasoning]
        return row | _measured(trial)


def _put(file: BinaryIO, digest: Any, row: Mapping[str, Any]) -> None:
    """Write one line in ASCII: a line separator inside a reply must not end it for readers who split by any."""
    line = json.dumps(row, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    digest.update(line)
    file.write(line)


def _safe(text: str) -> str:
    name = _UNSAFE.sub("_", text).strip("._") or "unknown"
    return f"{name}_" if name == "data" else name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _uncertainty(estimate: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"num_samples": int(estimate["n"])}
    if estimate.get("stderr") is not None:
        found["standard_error"] = {"value": float(estimate["stderr"]), "method": "clustered by question"}
    if estimate.get("ci95"):
        low, high = estimate["ci95"]
        found["confidence_interval"] = {
            "lower": float(low),
            "upper": float(high),
            "confidence_level": 0.95,
            "method": "as snellen computes it for this metric",
        }
    return found


def _attribution(trial: ExportedTrial) -> list[dict[str, Any]]:
    if trial.main is None or trial.outcome == FAILED:
        return []
    entry = {"turn_idx": 0, "source": "output.raw", "extracted_value": trial.main.answer or ""}
    return [entry | {"extraction_method": trial.main.rule or trial.main.reason or "none", "is_terminal": True}]


def _metadata(trial: ExportedTrial) -> dict[str, str]:
    key, prediction, main = trial.prediction.key, trial.prediction, trial.main
    facts: dict[str, Any] = {
        "outcome": trial.outcome,
        "variant": key.variant,
        "repeat": str(key.repeat),
        "at": trial.ended.isoformat(timespec="milliseconds"),
        "time": ESTIMATED if trial.estimated else None,
        "reason": main.reason if main else None,
        "metric": main.metric if main else None,
        "span": _text(main.detail["span"]) if main and main.detail.get("span") else None,
        "finish": prediction.finish,
        "group": trial.sample.group,
        "form": trial.sample.form.value,
        "marks": _text(list(trial.request.marks)) if trial.request.marks else None,
        "images": _text(picture_hashes(trial)) if picture_hashes(trial) else None,
        "scores": _text({score.metric: score.value for score in trial.scores}) if len(trial.scores) > 1 else None,
        **_likelihoods(prediction, trial.request.likelihood.reduction),
    }
    facts |= {f"tag.{name}": _text(value) for name, value in trial.sample.tags.items()}
    return {f"{_OURS}{name}": value for name, value in facts.items() if value is not None}


def _likelihoods(prediction: Prediction, reduction: str) -> dict[str, str]:
    if prediction.loglikelihoods is None:
        return {}
    return {"loglikelihoods": _text(list(prediction.loglikelihoods)), "reduction": reduction}


def _measured(trial: ExportedTrial) -> dict[str, Any]:
    usage, failure = trial.prediction.usage, trial.prediction.failure
    found: dict[str, Any] = {}
    if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
        total = usage.input_tokens + usage.output_tokens
        counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "total_tokens": total}
        found["token_usage"] = counts
    if trial.latency_s is not None:
        found["performance"] = {"latency_ms": round(trial.latency_s * 1000, 3)}
    if failure is not None:
        found["error"] = json.dumps(msgspec.to_builtins(failure), sort_keys=True)
    return found
