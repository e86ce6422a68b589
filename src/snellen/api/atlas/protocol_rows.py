"""`snellen score FILE --task NAME --protocol P`: rows with replies made elsewhere, read as a card says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ...core.builtins import default_registry
from ...core.errors import DataError, FailureKind, UsageError
from ...core.protocols import LoadContext
from ...core.registry import Registry
from ...core.tasks import RunHeader, Task
from ...core.types import Failure, Form, Prediction, Sample, Score
from ...data.atlas import card_rows
from ...data.catalog import Catalog
from ...data.files.rows import read_rows
from ...data.loaders.row_cells import FIELD
from ...prompt.build import Prompter
from ...prompt.by_form import PrompterByForm
from ...scoring.gathered import GatheredTask, Scored
from ...scoring.peers.lmms_rules import FAILED_REQUEST
from ...scoring.peers.peer_scores import check_fallback
from ...scoring.peers.peer_words import judge_needed, peer_beside
from ...scoring.peers.vlmevalkit_rules import FAILED_CALL
from ...scoring.ranges import score_trial
from ...scoring.results import summarize_task
from ...scoring.table import ScoredTask
from ...store.reader import Trial

REPLY_COLUMNS = ("response", "prediction")
NO_QUESTION = "(the question is not in the file)"
BATCH = 256
UNASKED = {"set": "question", "words": NO_QUESTION, "without": "question"}
"""Replies can be scored without their questions: none of the readers looks at them."""


def score_rows(
    path: str | Path,
    task: str,
    protocol: str | None = None,
    *,
    catalogs: Sequence[Path] = (),
    overrides: Sequence[tuple[str, Any]] = (),
) -> dict[str, Any]:
    """Score a table of rows (`id, options, answer, response`) as a protocol of a card does; return plain data.

    `options` may be a list, or one written as text; an empty `response` is an empty reply, none at all a failure.
    Columns of the benchmark's own shapes (`A`, `B`, `category` …) are understood as its card says.
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"there is no file {str(path)!r} with rows to score")
    columns = _check_columns(file)
    catalog, registry = Catalog(catalogs), default_registry()
    told = [("dataset.path", str(file.resolve())), *overrides]
    card = _scorable(catalog.task(task, told, protocol), columns)
    context = LoadContext()
    gathered = GatheredTask(card)
    reasons, options = _score_all(card, context, catalog, registry, gathered)
    scored = ScoredTask(card, gathered.tables(), lambda: iter(()))
    result = summarize_task(scored, registry, options, RunHeader("", {}, {}, ""))
    notes = [f"{text} ({sum(who.values())})" for text, who in context.notes.items()]
    rows = len(next(iter(gathered.tables().values())))
    return _framed(card, result, reasons, notes, rows)


def _check_columns(file: Path) -> set[str]:
    """Return the columns of a file; one of which no row could be scored is refused before a run's words say it."""
    first = next((row for _, row in read_rows(file)), None)
    if first is None:
        raise DataError(f"{file.name} has no rows to score")
    if not set(REPLY_COLUMNS) & set(first):
        needed = f"replies stand in a column {' or '.join(REPLY_COLUMNS)}"
        raise DataError(f"{file.name} has no column of replies (it has {', '.join(map(str, first))}); {needed}")
    return set(map(str, first))


def _scorable(task: Task, columns: Collection[str]) -> Task:
    """Return the task as one of rows that have replies and need no question."""
    check_fallback(task.fallback, f"task {task.name!r}")
    of_table = task.dataset["loader"] == "table" and bool(task.protocol)
    if task.dataset["loader"] != "card" and not of_table:
        raise UsageError(f"task {task.name!r} is no card of a published benchmark: rows are scored by --formulation")
    rows = _without_videos(task.dataset, columns) if of_table else task.dataset
    unasked = [] if of_table and "question" in rows.get("columns", {}) else [UNASKED]
    dataset = {
        **rows,
        "any_shape": True,
        "rows": [*unasked, *task.dataset.get("rows", ())],
        "not_pictures": (*task.dataset.get("not_pictures", ()), *REPLY_COLUMNS),
    }
    groups = tuple(tag for tag in task.group_by if tag in columns) if of_table else task.group_by
    return msgspec.structs.replace(task, dataset=dataset, group_by=groups)


def _without_videos(dataset: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """Return where a video card's rows lie, without what the file need not have: videos, and columns of other names."""
    named = {key: column for key, column in (dataset.get("columns") or {}).items() if column in columns}
    places = {key: value for key, value in dataset.items() if key not in ("table_tag", "table_roots", "columns")}
    needed = {key: FIELD.finditer(str(places.get(key, ""))) for key in ("video", "subtitles")}
    lacking = [key for key, fields in needed.items() if not {field[1] for field in fields} <= set(columns)]
    return {key: value for key, value in places.items() if key not in lacking} | ({"columns": named} if named else {})


def _score_all(
    task: Task, context: LoadContext, catalog: Catalog, registry: Registry, gathered: GatheredTask
) -> tuple[Counter[str], dict[str, Any]]:
    """Score all rows; return how many trials have which reason not to be scored, and what the scorers were told."""
    options = dict(task.score_options)
    functions = [registry.get("scorer", name) for name in task.scorers]

    def score(*trial: Any) -> list[Score]:
        return [one for function in functions for one in function(*trial)]

    reasons: Counter[str] = Counter()
    trials = _trials(task, context, catalog)
    while batch := list(islice(trials, BATCH)):
        scored: list[Scored] = [(trial, score_trial(task, score, trial, options)) for trial in batch]
        gathered.add(scored)
        for _, scores in scored:  # ours and the tool's reading of one reply are one trial
            reasons.update({one.reason for one in scores if one.value is None and one.reason})
    return reasons, options


def _trials(task: Task, context: LoadContext, catalog: Catalog) -> Iterator[Trial]:
    """Yield the rows as trials: the request as the protocol would have made it, the reply as the file has it."""
    prompters: dict[Form, Prompter | PrompterByForm] = {}
    rows: dict[str, int] = {}
    for row, sample in enumerate(card_rows.load(task, context)):
        if rows.setdefault(sample.id, row) != row:
            same = f"rows {rows[sample.id] + 1} and {row + 1} are both sample {sample.id!r}"
            raise DataError(f"{same}: give every row an id of its own in a column id, or remove one")
        reply, asked = _take_reply(sample, task)
        if asked.form not in prompters:
            prompt = catalog.prompt(task, asked.form)
            # The question was put elsewhere: nothing is sent here, so no option can be missing in it.
            prompters[asked.form] = Prompter(task, msgspec.structs.replace(prompt, hidden=prompt.hidden or ("",)), 0)
        request = prompters[asked.form].build(asked)
        failure = _failure(reply)
        text = None if failure else reply
        yield Trial(asked, request, Prediction(request.key, text=text, failure=failure), row)


def _take_reply(sample: Sample, task: Task) -> tuple[str | None, Sample]:
    column = next((name for name in REPLY_COLUMNS if name in sample.tags), None)
    if column is None:
        raise DataError(f"sample {sample.id!r} has no reply: the column must be called {' or '.join(REPLY_COLUMNS)}")
    if len(sample.options) == 1:
        raise DataError(f"sample {sample.id!r} has one option alone ({sample.options[0]!r:.60}); a choice needs two")
    tags = {name: value for name, value in sample.tags.items() if name != column}
    reply = sample.tags[column]
    return None if reply is None else str(reply), msgspec.structs.replace(sample, tags=tags, dataset=task.name)


def _failure(reply: str | None) -> Failure | None:
    """Return what failed where a tool wrote a failed call in the place of a reply, or nothing at all."""
    if reply is None:
        return Failure(FailureKind.SERVER, "no reply in the file")
    if FAILED_CALL in reply or reply.lstrip().startswith(FAILED_REQUEST):
        return Failure(FailureKind.SERVER, reply[:200])
    return None


def _framed(
    task: Task, result: dict[str, Any], reasons: Mapping[str, int], notes: Sequence[str], rows: int
) -> dict[str, Any]:
    metrics = result["metrics"]
    headline = result["headline"]
    shown = metrics[headline]
    read = (shown["read"] or shown)["n"]
    needed = judge_needed(task, headline)
    more = [f"{needed['why']} Rows become a run by `snellen import`."] if needed else []
    return {
        "task": task.name,
        "protocol": task.protocol,
        "rows": rows,
        "n": shown["n"] + shown["unscored"] + shown["failed"],
        "metric": headline,
        "value": shown["value"],
        "ci95": shown["ci95"],
        "bounds": shown["bounds"],
        "read": shown["read"],
        "scored": read,
        "unread": shown["n"] - read,
        "unscored": shown["unscored"],
        "failed": shown["failed"],
        "unit": shown["unit"],
        "reasons": dict(sorted(reasons.items())),
        "peer": peer_beside(task, metrics, headline),
        "metrics": metrics,
        "groups": result["groups"],
        "notes": [*more, *notes, *result["notes"]],
    }
