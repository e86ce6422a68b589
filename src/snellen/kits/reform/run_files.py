"""A stored run as ReForm-Eval's own result files, which its `run_eval.py` reads again."""

from __future__ import annotations

from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

from ...core.tasks import Task
from ...core.types import Form, Prediction, Request, Sample, Score
from ...report.exported_run import Details, ExportedRun, check_details, file_stem, first_scored, write_files

FORMULATIONS = {
    Form.CHOICE: "SingleChoice",
    Form.YESNO: "SingleChoice",
    Form.OCR: "OCROpenEnded",
    Form.KIE: "KIEOpenEnded",
}


def write(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write samples with their prediction; the answer of a choice is the index of the option as shown."""
    check_details(details, {}, "reform")
    model = file_stem(run.header.model.rpartition("/")[2])
    files: dict[str, Any] = {}
    for task in run.tasks:
        name = f"{file_stem(task.name)}_{FORMULATIONS.get(task.form, 'Generation')}_{_method(task)}_{model}.json"
        files[name] = starmap(partial(_reform_record, task), first_scored(run, task))
    return write_files(output, files)


def _reform_record(
    task: Task, sample: Sample, request: Request, prediction: Prediction, _: Score | None
) -> dict[str, Any]:
    trial = {"repeat": prediction.key.repeat, "variant": prediction.key.variant}
    record: dict[str, Any] = {"sample_id": sample.id, "question": sample.question, **trial}
    if task.form in (Form.CHOICE, Form.YESNO) and request.shown:
        right = [place for place, text in enumerate(request.shown) if text in sample.answers]
        record |= {"answer_options": list(request.shown), "answer": str(right[0]) if right else None}
    elif task.form is Form.CAPTION:
        record |= {"references": list(sample.answers)}
    else:
        record |= {"answer": sample.answers[0] if len(sample.answers) == 1 else list(sample.answers)}
    if "round" in sample.tags:
        record["round_id"] = sample.tags["round"]
    return record | {"prediction": _reply(prediction)}


def _method(task: Task) -> str:
    return "likelihood" if task.infer == "likelihood" else "generation"


def _reply(prediction: Prediction) -> str | int | None:
    """A failure stays null: it never becomes a text that could be scored."""
    if prediction.loglikelihoods is not None:
        return max(range(len(prediction.loglikelihoods)), key=prediction.loglikelihoods.__getitem__)
    return prediction.text
