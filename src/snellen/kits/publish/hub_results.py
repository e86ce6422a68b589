"""One number of a run as an evaluation result of a model repository: `.eval_results/NAME.yaml` of Hugging Face."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...core.errors import MissingExtra, UsageError
from ...report.exported_run import Details, ExportedRun, check_details
from ...report.files import write_atomically

DETAILS = {
    "dataset": "the benchmark's id on the hub, as cais/hle (needed)",
    "task_id": "which of its tasks (needed)",
    "scale": "the benchmark's own: fraction or percent (needed)",
    "task": "which task of the run",
    "metric": "which metric; the headline where nobody says",
    "revision": "the revision of the dataset",
    "url": "where the run can be looked at",
    "source": "what to call that place",
}
_ID = re.compile(r"[\w.-]+/[\w.-]+")
_SCALES = {"fraction": 1.0, "percent": 100.0}


def write(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write the entry, checked by huggingface_hub itself; what only the user knows is asked for, never guessed."""
    check_details(details, DETAILS, "hub")
    _require(details)
    task = details.get("task") or run.tasks[0].name
    if task not in {one.name for one in run.tasks} or (len(run.tasks) > 1 and "task" not in details):
        names = ", ".join(one.name for one in run.tasks)
        raise UsageError(f"--export hub writes one number: --detail task=NAME says of which task ({names})")
    metric = details.get("metric") or run.headline(task)[0] or ""
    estimate = run.metrics(task).get(metric)
    if estimate is None or estimate["value"] is None:
        raise UsageError(f"task {task!r} has no number {metric!r} to write; it has {', '.join(run.metrics(task))}")
    value = float(estimate["value"]) * _SCALES[details["scale"]]
    try:
        import yaml
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries
    except ImportError:
        raise MissingExtra("hub", "--export hub") from None
    entry = EvalResultEntry(
        dataset_id=details["dataset"],
        task_id=details["task_id"],
        value=round(value, 6),
        dataset_revision=details.get("revision"),
        date=run.began.date().isoformat(),
        source_url=details.get("url"),
        source_name=details.get("source"),
        notes=_notes(run, task, metric, estimate),
    )
    content = yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True, width=10**6)
    parse_eval_result_entries(yaml.safe_load(content))
    path = output / ".eval_results" / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', task)}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(content.encode()))
    return [path]


def _require(details: Details) -> None:
    missing = [name for name in ("dataset", "task_id", "scale") if not details.get(name)]
    if missing:
        needed = " ".join(f"--detail {name}=…" for name in missing)
        raise UsageError(f"--export hub needs {needed}: {'; '.join(DETAILS[name] for name in missing)}")
    if not _ID.fullmatch(details["dataset"]):
        raise UsageError(f"--detail dataset={details['dataset']}: no id of a benchmark on the hub (OWNER/NAME)")
    if details["scale"] not in _SCALES:
        raise UsageError(f"--detail scale={details['scale']} is none of {', '.join(_SCALES)}")
    if "source" in details and "url" not in details:
        raise UsageError("--detail source=… names a place: --detail url=… says where it is")


def _notes(run: ExportedRun, task: str, metric: str, estimate: Any) -> str:
    """Return everything that one number cannot say, in one line."""
    words = [f"snellen {run.version}, {metric} of {task}"]
    if estimate.get("ci95"):
        words.append("95 % interval {:.4f} to {:.4f}".format(*estimate["ci95"]))
    counts = ("n", "unscored", "failed", "not_yet_asked")
    words.append(", ".join(f"{name} {estimate.get(name)}" for name in counts))
    read = estimate.get("read")
    if read:
        words.append(f"an answer was read from {read['n']}")
    words.append(f"run {run.header.id}")
    return "; ".join(words)
