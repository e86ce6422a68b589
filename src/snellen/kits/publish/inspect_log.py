"""A run as inspect_ai's logs, one `.eval` archive a task: what its viewer and its data frames open."""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...core.tasks import Task
from ...core.types import BASE_VARIANT, Score, Turn
from ...report.exported_run import (
    ESTIMATED,
    Details,
    ExportedRun,
    ExportedTrial,
    check_details,
    hashed,
    picture_hashes,
    trial_id,
)
from ...report.files import atomic_file

STOPS = {"length": "max_tokens", "stop": "stop", "content_filter": "content_filter", "tool_calls": "tool_calls"}
_SUMMARY_CHARACTERS = 200
_LONG_TEXT = 100
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


def write(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write `TIME_TASK_ID.eval` for every task."""
    check_details(details, {}, "inspect")
    output.mkdir(parents=True, exist_ok=True)
    files = []
    for task in run.tasks:
        time = run.began.strftime("%Y-%m-%dT%H-%M-%S+00-00")
        name = _UNSAFE.sub("-", task.name).strip("-") or "task"
        path = output / f"{time}_{name}_{hashed(run.header.id, task.name, size=11)}.eval"
        _TaskLog(run, task).write(path)
        files.append(path)
    return files


class _TaskLog:
    def __init__(self, run: ExportedRun, task: Task) -> None:
        self._run, self._task = run, task
        self._summaries: list[str] = []
        """As they will be written: as objects those of a large run would fill the memory."""
        self._values: dict[str, list[float]] = {}
        self._failed = 0
        self._latest = run.began
        self._attempts = _attempts(run, task.name)
        self._usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}

    def write(self, path: Path) -> None:
        """Write all members, the same bytes for the same run: they have no time of their own."""
        with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as archive:
            start = {"version": 2, "eval": self._spec(), "plan": self._plan()}
            _add(archive, "_journal/start.json", start)
            for trial in self._run.trials(self._task.name):
                sample = self._sample(trial)
                _add(archive, f"samples/{_member(sample['id'])}_epoch_{sample['epoch']}.json", sample)
                self._note(sample)
            _add_text(archive, "summaries.json", f"[{','.join(self._summaries)}]")
            _add(archive, "header.json", {**start, **self._ending()})

    def _note(self, sample: Mapping[str, Any]) -> None:
        """Keep what the list of samples and the results say of a sample."""
        self._summaries.append(json.dumps(_summary(sample), separators=(",", ":")))
        self._failed += "error" in sample
        for metric, score in (sample.get("scores") or {}).items():
            self._values.setdefault(metric, []).append(score["value"])

    def _spec(self) -> dict[str, Any]:
        run, task = self._run, self._task
        return {
            "eval_id": hashed(run.header.id, task.name, "eval", size=11),
            "run_id": hashed(run.header.id, "run", size=11),
            "task_id": hashed(run.header.id, task.name, "task", size=11),
            "created": run.began.isoformat(),
            "task": task.name,
            "task_version": 0,
            "dataset": {"name": task.title or task.name},
            "model": run.header.model or "unknown",
            "config": {"epochs": task.repeats},
            "packages": {"snellen": run.version},
            "metadata": {
                "snellen": {
                    "run": run.header.id,
                    "planned": run.planned(task.name),
                    "not_yet_asked": run.missing(task.name),
                    "command": run.header.command,
                    "task": {"scorers": list(task.scorers), "aggregates": list(task.aggregates)},
                }
            },
        }

    def _plan(self) -> dict[str, Any]:
        params = {name: value for name, value in msgspec.to_builtins(self._task.params).items() if value is not None}
        known = {name: params[name] for name in ("temperature", "top_p", "max_tokens", "seed") if name in params}
        return {"name": "plan", "steps": [{"solver": "generate", "params": {}}], "config": known}

    def _ending(self) -> dict[str, Any]:
        run, name = self._run, self._task.name
        metric, _ = run.headline(name)
        done = run.reader.count_trials(name)
        estimates = run.metrics(name)
        scores = [self._score_result(key, estimates) for key in self._values]
        return {
            "status": "success" if not run.missing(name) else "cancelled",
            "results": {
                "total_samples": run.planned(name),
                "completed_samples": done - self._failed,
                "scores": scores,
                "metadata": {"snellen": {"headline": metric, "metrics": _plain(estimates)}},
            },
            "stats": {
                "started_at": run.began.isoformat(),
                "completed_at": self._latest.isoformat(),
                "model_usage": {run.header.model or "unknown": self._usage},
            },
        }

    def _score_result(self, metric: str, estimates: Mapping[str, Any]) -> dict[str, Any]:
        """Return one scorer's results; what it could not read it has not scored, and the mean is over the rest."""
        own = estimates.get(metric) or {}
        read = own.get("read") or own
        values = self._values[metric]
        scored = [value for value in values if not math.isnan(value)]
        shown = {"accuracy" if metric == "accuracy" else "mean": sum(scored) / len(scored) if scored else None}
        metrics = {name: {"name": name, "value": value} for name, value in shown.items() if value is not None}
        return {
            "name": metric,
            "scorer": metric,
            "scored_samples": len(scored),
            "unscored_samples": len(values) - len(scored),
            "metrics": metrics,
            "metadata": {"snellen": _plain(dict(own) | {"read": read.get("value")})},
        }

    def _sample(self, trial: ExportedTrial) -> dict[str, Any]:
        key, prediction, request = trial.prediction.key, trial.prediction, trial.request
        self._latest = max(self._latest, trial.ended)
        attachments: dict[str, str] = {}
        asked = [self._message(turn, place, attachments, trial) for place, turn in enumerate(request.messages)]
        output = _output(trial, self._run.header.model or "unknown")
        said = [output["choices"][0]["message"]] if output.get("choices") else []
        for name in self._usage:
            self._usage[name] += (output.get("usage") or {}).get(name, 0)
        sample: dict[str, Any] = {
            "id": key.sample if key.variant == BASE_VARIANT else f"{key.sample} [{key.variant}]",
            "epoch": key.repeat + 1,
            "input": [message for message in asked if message["role"] == "user"] or trial.sample.question,
            "target": _target(trial),
            "messages": [*asked, *said],
            "output": output,
            "metadata": self._facts(trial),
            "attachments": attachments,
            "store": {},
            "model_usage": {},
            "started_at": trial.began.isoformat(),
            "completed_at": trial.ended.isoformat(),
            "total_time": trial.latency_s or 0.0,
            "working_time": trial.latency_s or 0.0,
            "uuid": trial_id(trial, self._run.header.id, size=11),
        }
        if request.shown:
            sample["choices"] = list(request.shown)
        if prediction.failure is not None:
            message = f"{prediction.failure.kind.value}: {prediction.failure.message}"
            sample["error"] = _error(message)
        else:
            sample["scores"] = {score.metric: _score(score, trial) for score in trial.scores}
        sample["events"] = list(_events(sample, asked, self._run.header.model or "unknown"))
        tried = self._attempts.get((key.sample, key.variant, key.repeat))
        if tried:
            sample["error_retries"] = [_error(text) for text in tried]
        return sample

    def _message(self, turn: Turn, place: int, attachments: dict[str, str], trial: ExportedTrial) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        for part in turn.arrange(turn.images):
            if isinstance(part, str):
                parts += [{"type": "text", "text": part}] if part else []
                continue
            url = self._run.data_url(part)
            if url is None:
                parts.append({"type": "text", "text": "[a picture that is not there any more]"})
                continue
            name = hashed(url)
            attachments[name] = url
            parts.append({"type": "image", "image": f"attachment://{name}", "detail": "auto"})
        content = parts if any(part["type"] == "image" for part in parts) else turn.text
        role = turn.role if turn.role in ("system", "user", "assistant") else "user"
        return {"id": f"{trial_id(trial, self._run.header.id)}-{place}", "role": role, "content": content}

    def _facts(self, trial: ExportedTrial) -> dict[str, Any]:
        key, own = trial.prediction.key, trial.prediction
        facts: dict[str, Any] = {
            "sample": key.sample,
            "variant": key.variant,
            "repeat": key.repeat,
            "outcome": trial.outcome,
            "form": trial.sample.form.value,
            "question": trial.sample.question,
            "answers": list(trial.sample.answers),
            "options": list(trial.sample.options),
            "marks": list(trial.request.marks),
            "group": trial.sample.group,
            "images": picture_hashes(trial),
            "time": ESTIMATED if trial.estimated else "noted",
            "cached": own.cached,
            "finish": own.finish,
        }
        if own.loglikelihoods is not None:
            reduction = trial.request.likelihood.reduction
            facts |= {"loglikelihoods": list(own.loglikelihoods), "reduction": reduction}
            facts["counts"] = {name: own.detail[name] for name in ("tokens", "bytes", "priors") if name in own.detail}
        if own.failure is not None:
            facts["failure"] = msgspec.to_builtins(own.failure)
        return {
            **trial.sample.tags,
            "snellen": {name: value for name, value in facts.items() if value not in (None, [])},
        }


def _events(sample: Mapping[str, Any], asked: list[dict[str, Any]], model: str) -> Iterator[dict[str, Any]]:
    """Yield what the transcript shows, where the viewer opens: the call, and how its reply was scored."""
    at = {"timestamp": sample["completed_at"], "working_start": 0.0, "span_id": None}
    call = {
        "model": model,
        "input": asked,
        "tools": [],
        "tool_choice": "none",
        "config": {},
        "output": sample["output"],
    }
    failed = {"error": sample["error"]["message"]} if "error" in sample else {}
    yield {"event": "model", "uuid": f"{sample['uuid']}-call", **at, **call, **failed}
    for name, score in (sample.get("scores") or {}).items():
        yield {"event": "score", "uuid": f"{sample['uuid']}-{name}", **at, "score": score, "target": sample["target"]}


def _attempts(run: ExportedRun, task: str) -> dict[tuple[str, str, int], list[str]]:
    found: dict[tuple[str, str, int], list[str]] = {}
    for name, sample, variant, repeat, at, kind, _, message in run.reader.attempts():
        if name == task:
            found.setdefault((sample, variant, repeat), []).append(f"{at} {kind}: {message}")
    return found


def _add(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    """Add a member; a score that could not be read is a bare NaN, as the reader of these logs wants it."""
    _add_text(archive, name, json.dumps(value, separators=(",", ":")))


def _add_text(archive: zipfile.ZipFile, name: str, text: str) -> None:
    info = zipfile.ZipInfo(name, _FIRST_DAY)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, text)


def _member(name: str) -> str:
    """Return an id as the name of a member: what separates folders would make another member of it."""
    return name.replace("/", "%2F").replace("\\", "%5C").replace("\0", "")


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _target(trial: ExportedTrial) -> str | list[str]:
    """Return the marks of the right options as they were shown, or the right answers themselves."""
    request = trial.request
    marks = [mark for mark, text in zip(request.marks, request.shown, strict=False) if text in trial.sample.answers]
    right = marks or list(trial.sample.answers)
    return right[0] if len(right) == 1 else right or ""


def _output(trial: ExportedTrial, model: str) -> dict[str, Any]:
    prediction = trial.prediction
    if prediction.failure is not None:
        return {"model": model, "choices": [], "completion": "", "error": prediction.failure.message}
    text = prediction.text or ""
    content: str | list[dict[str, str]] = text
    if prediction.reasoning:
        content = [{"type": "reasoning", "reasoning": prediction.reasoning}, {"type": "text", "text": text}]
    message = {"role": "assistant", "content": content, "source": "generate", "model": model}
    stop = STOPS.get(prediction.finish or "", "unknown")
    output: dict[str, Any] = {"model": model, "choices": [{"message": message, "stop_reason": stop}]}
    output |= {"completion": text, "time": trial.latency_s}
    usage = prediction.usage
    if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
        counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        output["usage"] = counts | {"total_tokens": usage.input_tokens + usage.output_tokens}
    return output


def _score(score: Score, trial: ExportedTrial) -> dict[str, Any]:
    told: dict[str, Any] = {"value": float("nan") if score.value is None else float(score.value)}
    if score.answer is not None:
        told["answer"] = score.answer
    told["explanation"] = f"not read: {score.reason}" if score.value is None else f"read by rule {score.rule or '–'}"
    span = score.detail.get("span")
    return told | ({"metadata": {"span": list(span)}} if span else {})


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the list of samples shows, short; pictures stay with their sample."""
    asked = sample["input"]
    text = asked if isinstance(asked, str) else " ".join(_texts(asked))
    summary: dict[str, Any] = {
        "id": sample["id"],
        "epoch": sample["epoch"],
        "input": text[:_SUMMARY_CHARACTERS],
        "target": sample["target"],
        "scores": {name: _short(score) for name, score in (sample.get("scores") or {}).items()},
        "metadata": {},
        "uuid": sample["uuid"],
        "started_at": sample["started_at"],
        "completed_at": sample["completed_at"],
        "total_time": sample["total_time"],
        "working_time": sample["working_time"],
        "completed": True,
        "message_count": len(sample["messages"]),
    }
    return summary | ({"error": sample["error"]["message"][:_SUMMARY_CHARACTERS]} if "error" in sample else {})


def _short(score: Mapping[str, Any]) -> dict[str, Any]:
    answer = score.get("answer")
    told = {"value": score["value"]}
    return told | ({"answer": answer[:_LONG_TEXT]} if isinstance(answer, str) else {})


def _texts(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from (part["text"] for part in parts if part["type"] == "text")


def _plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))
