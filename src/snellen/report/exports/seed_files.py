"""A stored run to the result files of other systems, so that their tools and their users can go on with them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ...core.errors import UsageError
from ...core.message_parts import write_markers
from ...core.tasks import Task
from ...core.types import Form, Prediction, Request, Sample, Score
from ...scoring.readings import own_reading
from ...store.reader import RunReader
from ..files import write_atomically
from . import page_script_files
from .flageval_files import flageval_records, flageval_result
from .perplexity_list import perplexity_fields
from .trial_files import FORMATS, write_export

Files = dict[str, Any]
"""File name -> a JSON value, or what yields the records of a list, or the lines of a `.jsonl`; read once, in turn."""
FORMULATIONS = {
    Form.CHOICE: "SingleChoice",
    Form.YESNO: "SingleChoice",
    Form.OCR: "OCROpenEnded",
    Form.KIE: "KIEOpenEnded",
}


def export_run(folder: Path, form: str, output: Path) -> list[Path]:
    """Write a run in one of EXPORTS or FORMATS below `output` and return the files."""
    output.mkdir(parents=True, exist_ok=True)
    if form in FORMATS:
        return [write_export(folder, form, output / f"trials.{form}")]
    with RunReader(folder) as reader:
        return [_write(output / name, value) for name, value in EXPORTS[form](reader).items()]


def _write(path: Path, value: Any) -> Path:
    def write(file: BinaryIO) -> None:
        if path.suffix == ".jsonl":
            file.writelines(msgspec.json.encode(line) + b"\n" for line in value)
        elif isinstance(value, Iterator):
            file.writelines(listed(value))
        else:
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    write_atomically(path, write)
    return path


def listed(records: Iterator[Any]) -> Iterator[bytes]:
    """Yield the parts of a JSON list, as it would be indented whole; no more than one record is held."""
    before = b"[\n  "
    for record in records:
        # a line break in a text is escaped: each one here is of the layout
        yield before + msgspec.json.format(msgspec.json.encode(record), indent=2).replace(b"\n", b"\n  ")
        before = b",\n  "
    yield b"[]\n" if before.startswith(b"[") else b"\n]\n"


def _trials(reader: RunReader, task: Task) -> Iterator[tuple[Sample, Request, Prediction, Score | None]]:
    """Yield every trial with its first score."""
    for (sample, request, prediction, _), scores in reader.with_scores(task.name):
        yield sample, request, prediction, scores[0] if scores else None


def flageval(reader: RunReader) -> Files:
    """FlagEvalMM: `<task>.json`, one record a question with all its inferences, and `<task>_result.json`.

    Of a run that is read in its profile the records count as it counts: gaps are left out.
    """
    dense = own_reading(reader).profile == "flageval"
    files: Files = {}
    for task in reader.header().tasks:
        files[f"{_stem(task.name)}.json"] = flageval_records(_trials(reader, task), dense=dense)
        files[f"{_stem(task.name)}_result.json"] = flageval_result(_trials(reader, task), task.group_by)
    return files


def reform(reader: RunReader) -> Files:
    """ReForm-Eval: samples with their prediction; the answer of a choice is the index of the option as shown."""
    header = reader.header()
    model = _stem(header.model.rpartition("/")[2])
    files: Files = {}
    for task in header.tasks:
        name = f"{_stem(task.name)}_{FORMULATIONS.get(task.form, 'Generation')}_{_method(task)}_{model}.json"
        files[name] = starmap(partial(_reform_record, task), _trials(reader, task))
    return files


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


def aisbench(reader: RunReader) -> Files:
    """AISBench: `<task>.jsonl` with the successes and `<task>_failed.jsonl` with the rest."""
    files: Files = {}
    for task in reader.header().tasks:
        done, failed = [], []
        for number, (sample, request, prediction, _) in enumerate(_trials(reader, task)):
            turns = write_markers(request.messages)
            prompt = [{"role": turn.role, "content": turn.text, "images": len(turn.images)} for turn in turns]
            record: dict[str, Any] = {"data_abbr": task.name, "id": number}
            if prediction.failure is not None:
                failed.append(record | {"input": prompt, "error_info": prediction.failure.message})
                continue
            name = uuid.uuid5(uuid.NAMESPACE_OID, "/".join(map(str, msgspec.structs.astuple(prediction.key)))).hex
            record |= {"success": True, "uuid": name, "origin_prompt": prompt, "prediction": prediction.text}
            record |= perplexity_fields(request, prediction)
            done.append(record | ({"gold": _gold(sample, request)} if sample.answers else {}))
        files[f"{_stem(task.name)}.jsonl"] = done
        if failed:
            files[f"{_stem(task.name)}_failed.jsonl"] = failed
    return files


def _gold(sample: Sample, request: Request) -> str:
    marks = [mark for mark, text in zip(request.marks, request.shown, strict=False) if text in sample.answers]
    return marks[0] if marks else sample.answers[0]


def choices(reader: RunReader) -> Files:
    """The page-image scripts: `<variant>_mc_eval.json`."""
    header = reader.header()
    files: Files = {}
    for task in header.tasks:
        for variant, asked in page_script_files.read_asked(reader, task.name).items():
            name = f"{_stem(variant)}_mc_eval.json"
            files[name] = page_script_files.choice_file(variant, header.model, asked, header.id)
    return files


def needles(reader: RunReader) -> Files:
    """The page-image scripts: `niah_eval.json`."""
    header = reader.header()
    tasks = (page_script_files.read_asked(reader, task.name) for task in header.tasks)
    asked = [trial for variants in tasks for trials in variants.values() for trial in trials]
    return {"niah_eval.json": page_script_files.needle_file(header.model, "", asked, header.id)}


def _stem(name: str) -> str:
    """Return a name that is safe as a file name."""
    kept = "".join(char if char.isalnum() or char in "._-" else "_" for char in name).strip(".")
    if not kept:
        raise UsageError(f"{name!r} gives no file name")
    return kept[:120]


EXPORTS: dict[str, Callable[[RunReader], Files]] = {
    "flageval": flageval,
    "reform": reform,
    "mc": choices,
    "niah": needles,
    "aisbench": aisbench,
}
