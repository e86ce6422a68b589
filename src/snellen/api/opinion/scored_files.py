"""`snellen score FILE`: predictions made elsewhere to a run and its numbers, whatever form they are in."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from ...core.errors import DataError, UsageError
from ...data.files.records import Source
from ...data.foreign.damage_counts import Damage, damage_lines
from ...scoring.headline import NO_ESTIMATE, headline
from ...store.reader import RunReader
from ..atlas.protocol_rows import framed, import_by_card
from .foreign_runs import VERDICT, ImportResult, import_predictions, store_file
from .formulations import open_formulation


def score_predictions(
    predictions: Source, formulation: str, *, output: str | Path | None = None, **options: Any
) -> dict[str, Any]:
    """Score predictions (a JSON or JSONL file, or an iterable of records) of ReForm-Eval, FlagEvalMM or CURE.

    `formulation` is one of SingleChoice, Generation, OCROpenEnded, KIEOpenEnded, MultiInference, Consistency; `options`
    are the fields of FormulationOptions. They become a run in `output`, which can be viewed and compared; told none,
    nothing stays. Values are fractions. Raises DataError naming the record, or UsageError.

    Example:
        >>> record = {"sample_id": 1, "answer": 1, "answer_options": ["cat", "dog"], "prediction": "The answer is B."}
        >>> snellen.score_predictions([record], "SingleChoice")["metrics"]["accuracy"]["value"]
        1.0
    """
    if output is not None:
        return score_file(predictions, formulation=formulation, output=output, **options)
    with tempfile.TemporaryDirectory() as folder:
        found = score_file(predictions, formulation=formulation, output=Path(folder, "run"), **options)
    return {name: value for name, value in found.items() if name != "folder"}


def score_file(
    predictions: Source,
    *,
    formulation: str | None = None,
    task: str | None = None,
    protocol: str | None = None,
    output: str | Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Import predictions as a run (told no `output`, one below `runs`) and return its numbers.

    By a `formulation` with its options; by the card `task` in its `protocol`, with the settings of `import_by_card`;
    else as the file looks, with those of `import_predictions`.
    """
    if formulation is not None:
        damage = Damage()
        file, reading = open_formulation(predictions, formulation, damage, options)
        done = store_file(file, damage, reading=reading, output=output, command=f"snellen score {file.path}")
        return frame(done) | {"formulation": formulation, "profile": reading.profile}
    if not isinstance(predictions, str | Path):
        raise UsageError("records in memory are scored by a formulation: write rows to a file first")
    if task is not None:
        return frame(import_by_card(predictions, task, protocol, output=output, **options))
    done = import_predictions(predictions, output=output, command=f"snellen score {predictions}", **options)
    found = frame(done)
    if not found["scored"]:
        why = "no row has a right answer that could be compared: give the benchmark with --data, or --map answer=COLUMN"
        raise DataError(f"{predictions}: nothing to score, {why} (the run is kept in {done.folder})")
    return found


def frame(done: ImportResult) -> dict[str, Any]:
    """Return what a program wants of an import: the headline with its counts, all metrics, what was damaged."""
    with RunReader(done.folder) as reader:
        task = next(one for one in reader.header().tasks if one.name == done.about["task"])
        reasons: Counter[str] = Counter()
        for _, scores in reader.with_scores(task.name):
            reasons.update({one.reason for one in scores if one.value is None and one.reason})
    result = done.results["tasks"][task.name]
    name, estimate = headline(result)
    notes = [*damage_lines(done.about["damage"]), *done.about["notes"]]
    if not estimate["n"] and result["metrics"].get(VERDICT, NO_ESTIMATE)["n"]:
        name = VERDICT
        notes.insert(0, "no row has a right answer: this is the share that the file itself calls right")
    found = framed(task, {**result, "headline": name}, reasons, notes, done.about["rows"])
    return {"folder": str(done.folder), **found, "damage": done.about["damage"]}
