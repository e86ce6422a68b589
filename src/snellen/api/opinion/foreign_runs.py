"""Predictions made elsewhere to a stored run: replies as they are, failures as failures, damage counted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.builtins import default_registry
from ...core.event_loop import run_to_end
from ...core.garbage import rare_collections
from ...core.tasks import RunHeader, Task
from ...core.types import Form, Prediction, Request, Sample, TrialKey
from ...data.foreign.damage_counts import Damage
from ...data.foreign.foreign_rows import ForeignFile, ForeignRow
from ...data.foreign.formats import OWN_ROWS, open_predictions
from ...data.foreign.gold import has_letters_alone, letter_options
from ...data.foreign.peer_cards import peer_card
from ...data.foreign.row_spool import REFUSE, RowSpool, spool_rows
from ...report.finish import finish_run
from ...scoring.readings import OWN, Reading
from ..header import installed_versions, make_header
from ..run import REPORTED_TRIALS
from ..session import open_store
from .benchmark_rows import BenchmarkRows, join_row, merged_sample
from .foreign_trials import prediction_of, request_of, sample_of

IMPORTED = "imported"
"""Where run.db keeps whose predictions it holds."""
ROWS_AT_ONCE = 1_000
DIGEST = "imported"
VERDICT = "file_verdict"
"""The scorer of files that say themselves what was right."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
_CHUNK = 1 << 20
NumberedTrial = tuple[int, Sample, Request, Prediction]


class ImportResult(Struct, frozen=True):
    """What an import left: the run, what was counted, and the results of reading it."""

    folder: Path
    about: dict[str, Any]
    """Harness, task, model, file, rows, failures, damage, notes, numbers reported."""
    results: dict[str, Any]


class Answerer(Struct, frozen=True):
    """The model that another harness asked, as far as its file says."""

    name: str
    harness: str
    digest: str

    def identity(self) -> Mapping[str, Any]:
        """Return the hash of the file: whatever it is called, its replies are these."""
        return {"model": self.name, IMPORTED: self.harness, "sha256": self.digest}


@rare_collections()
def import_predictions(
    path: str | Path,
    *,
    harness: str | None = None,
    task: str | None = None,
    model: str | None = None,
    data: str | None = None,
    join: str | None = None,
    repeated: str = REFUSE,
    columns: Mapping[str, str] | None = None,
    catalogs: Sequence[str | Path] = (),
    output: str | Path | None = None,
    command: str = "",
) -> ImportResult:
    """Read the predictions of another harness into a run, score them as Snellen reads, and say what was damaged.

    `data` names the benchmark (a file or a task) where ids, questions and pictures come from; `join` says whether rows
    are found in it by `id` or by `order`; `columns` says which column, or path (`messages[-1].content`), of one's own
    rows is which field. The same call again changes nothing.
    """
    damage = Damage()
    file = open_predictions(path, damage, harness, columns)
    return store_file(
        file,
        damage,
        task=task,
        model=model,
        data=data,
        join=join,
        repeated=repeated,
        catalogs=catalogs,
        output=output,
        command=command or f"snellen import {path}",
    )


def store_file(
    file: ForeignFile,
    damage: Damage,
    *,
    task: str | None = None,
    model: str | None = None,
    data: str | None = None,
    join: str | None = None,
    repeated: str = REFUSE,
    catalogs: Sequence[str | Path] = (),
    reading: Reading = OWN,
    output: str | Path | None = None,
    command: str = "",
) -> ImportResult:
    """Store the rows of an opened file as a run, and score it."""
    with closing(spool_rows(file, damage, repeated)) as spool:
        known = None if data is None else BenchmarkRows(data, join, catalogs)
        if known is not None:
            known.compare(spool, damage)
        # Rows of one's own name no benchmark: those that are joined with one are of it, so that they can be compared.
        own = Path(data).stem if data is not None and file.harness == OWN_ROWS else our_name(file)
        named = (task or own, model or file.model or "unknown")
        header = _header(file, named, spool, known, command)
        about = _about(file, header, damage, spool)
        trials = _trials(header.tasks[0].name, spool, known)
        return store_run(header, trials, about, output=output, reading=reading)


def store_run(
    header: RunHeader,
    trials: Iterator[NumberedTrial],
    about: dict[str, Any],
    *,
    output: str | Path | None = None,
    reading: Reading = OWN,
) -> ImportResult:
    """Store trials whose replies were made elsewhere as a run, and score it as any run."""
    folder = Path(output) if output is not None else Path("runs") / _folder_name(header)
    run_to_end(_store(folder, header, trials, about, reading))
    results = finish_run(folder, default_registry(), report=header.planned[about["task"]] <= REPORTED_TRIALS)
    return ImportResult(folder, about, results)


def our_name(file: ForeignFile) -> str:
    """Return our name of a benchmark: of one the harness's card knows, else the harness's own name in our style."""
    found = peer_card(file.harness).find(file.task)
    own = _UNSAFE.sub("-", file.task).strip("-").lower() or "predictions"
    return (found.task if found is not None else "") or own


def _header(
    file: ForeignFile, named: tuple[str, str], spool: RowSpool, known: BenchmarkRows | None, command: str
) -> RunHeader:
    """Return the header: rows that are missing are planned too, and so are counted as not asked."""
    expected = len(known) * spool.repeats if known is not None else file.expected or 0
    made = _task(file, named[0], spool, alone=known is None)
    joined = known.fingerprint if known is not None else None
    rows = {"data": spool.digest, "joined": joined, "repeats": spool.repeats}
    digest = file_hash(file.path) if file.path.is_file() else spool.digest
    rows |= {"scoring": msgspec.to_builtins(dict(file.scoring))} if file.scoring else {}
    return make_header(
        Answerer(named[1], file.harness, digest),
        {"tasks": {made.name: rows}, "seed": 0},
        versions=installed_versions(),
        command=command,
        tasks=[made],
        planned={made.name: max(len(spool), expected)},
    )


def _task(file: ForeignFile, name: str, spool: RowSpool, *, alone: bool) -> Task:
    """Return the task: choices alone are scored as such, others (or what --data may make of them) as its card says."""
    choices = alone and spool.forms == {Form.CHOICE}
    scorers = ("choice",) if choices else peer_card(file.harness).rules(file.task).ours
    scorers = (*scorers, VERDICT) if spool.judged else scorers
    form = Form.CHOICE if choices else Form.AUTO
    fields = {"form": form, "scorers": scorers, "title": file.task, **file.scoring}
    return Task(name, {"loader": IMPORTED}, repeats=spool.repeats, **fields)


def file_hash(path: Path) -> str:
    """Return the hash of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _folder_name(header: RunHeader) -> str:
    label = f"{header.tasks[0].name[:60]}--{header.model[:60]}"
    return f"{_UNSAFE.sub('-', label)}--{header.config['model'][IMPORTED]}-{header.id[:8]}"


async def _store(
    folder: Path, header: RunHeader, trials: Iterator[NumberedTrial], about: Mapping[str, Any], reading: Reading
) -> None:
    """Write all rows and what is known of them."""
    with open_store(folder, header, reading) as writer:
        while batch := list(islice(trials, ROWS_AT_ONCE)):
            await writer.put_all(batch, DIGEST)
        writer.put_meta(IMPORTED, about)


def _trials(task: str, spool: RowSpool, known: BenchmarkRows | None) -> Iterator[NumberedTrial]:
    for told in spool:
        found = None if known is None else known.find(told)
        row = told if found is None else join_row(told, found)
        row = _with_letters(row, spool.highest_letter)
        sample = sample_of(row, task) if found is None else merged_sample(row, found)
        key = TrialKey(task, sample.id, row.variant, row.repeat)
        yield spool.questions[told.id], sample, request_of(key, row, sample), prediction_of(key, row)


def _with_letters(row: ForeignRow, highest: str) -> ForeignRow:
    """Return a row whose options are known by their letters only with these: letter is read against letter."""
    if not has_letters_alone(row.options, row.answers):
        return row
    return msgspec.structs.replace(row, options=letter_options(highest))


def _about(file: ForeignFile, header: RunHeader, damage: Damage, spool: RowSpool) -> dict[str, Any]:
    name = header.tasks[0].name
    return {
        "harness": file.harness,
        "peer_task": file.task,
        "task": name,
        "model": header.model,
        "file": str(file.path),
        "rows": len(spool),
        "failed": spool.failed,
        "judged": spool.judged,
        "planned": header.planned[name],
        "reported": dict(file.reported),
        "damage": damage.described(),
        "notes": file.notes,
    }
