"""The workshop's four steps, each one call: draft, gates, review, publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from ...api.chosen_model import create_model
from ...api.plan import registry_for
from ...api.run import run_settings
from ...api.session import Listener, ModelJobs, ask_jobs, check_finished, limits_for
from ...api.settings import RunSettings
from ...core.config import convert
from ...core.errors import DataError, UsageError, did_you_mean
from ...core.ids import content_hash
from ...core.jobs import Item, ReadyRequests
from ...core.types import Form, Image, Prediction, Sample, TrialKey
from ...data.catalog import Catalog
from ...data.files.records import write_lines
from ...data.files.rows import Row, read_rows
from ...data.images.decode import read_bytes, read_header
from ...scoring.judges.judge_card import Judge, judge_key, plan_votes, read_judge, with_pictures
from ...scoring.judges.verdicts import score_votes
from ...store.owner import RunLock
from ...store.reader import RunReader
from ..cure.loader import CureBox, CureImage, CureSource, PictureFinder, clamp
from .desk import ReviewSettings
from .draft import TASK as DRAFT_TASK
from .draft import Drafting, DraftPrompt, collect_drafts, plan_drafts
from .gates import GateReport, GateSettings, Replies, run_gates
from .publish import Published, Title, audit_sentence, cure_rows
from .publish import publish as write_published
from .records import Draft, Finding, SetAside, Source
from .workshop import Workshop

# Coarse annotations (the Sherlock format, or rows with a mapping) to Sources; the unusable are set aside by reason.

FIELDS = ("id", "image", "box", "clue", "inference")
SHERLOCK = {
    "id": "instance_id",
    "image": "inputs.image.url",
    "box": "inputs.bboxes",
    "clue": "inputs.clue",
    "inference": "targets.inference",
}
STAGE = "source"


def read_sources(
    path: Path, image_root: Path | None = None, columns: Mapping[str, str] | None = None
) -> Iterator[Source | SetAside]:
    """Yield one record a row: a Source, or why the row cannot be used. A mistyped column is an error at once."""
    find = PictureFinder(CureSource("cure", str(path), str(image_root) if image_root else None), None)
    seen: set[str] = set()
    for number, row in read_rows(path):
        usual = SHERLOCK if "inputs" in row and "targets" in row else {name: name for name in FIELDS}
        mapping = usual | dict(columns or {})
        where = f"{path.name} record {number}"
        for field, column in (columns or {}).items():
            _check_column(field, column, row, where)
        record = _to_source(row, mapping, find, where)
        if record.id in seen:
            record = SetAside(f"{record.id}#{number}", STAGE, f"the id {record.id!r} occurs twice", row)
        seen.add(record.id)
        yield record


def _check_column(field: str, column: str, row: Row, where: str) -> None:
    if field not in FIELDS:
        fields = f"{did_you_mean(field, FIELDS)}; fields: {', '.join(FIELDS)}"
        raise DataError(f"--map {field}={column}: no such field{fields}")
    if column.partition(".")[0] not in row:
        raise DataError(f"{where} has no column {column!r}{did_you_mean(column, row)}; it has: {', '.join(row)}")


def _to_source(row: Row, mapping: Mapping[str, str], find: PictureFinder, where: str) -> Source | SetAside:
    values = {field: _dig(row, column) for field, column in mapping.items()}
    if values["box"] is None:
        values["box"] = _dig(row, "bboxes")
    content = [values["image"], values["box"], values["inference"]]
    name = content_hash(content, 12) if values["id"] in (None, "") else str(values["id"])
    try:
        texts = {field: _text(values[field], field) for field in ("image", "clue", "inference")}
        url = texts["image"]
        source = Source(name, find(url), texts["clue"], texts["inference"], _first_box(values["box"]), url=url)
        return _with_picture(source)
    except DataError as error:
        return SetAside(name, STAGE, f"{where}: {error}", row)


def _with_picture(source: Source) -> Source:
    """Open the picture's header: a dead link is found now, not after an LLM was paid."""
    header = read_header(read_bytes(Image(source.image)), source.image)
    box = source.box
    if box is not None:
        left, top, right, bottom = clamp(CureBox(*box), CureImage(source.url, header.width, header.height))
        box = (left, top, right - left, bottom - top)
    return structs.replace(source, width=header.width, height=header.height, box=box)


def _dig(row: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        row = row.get(part) if isinstance(row, dict) else None
    return row.get("url") if isinstance(row, dict) and "url" in row else row


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{field} is missing or empty")
    return " ".join(value.split())


def _first_box(value: Any) -> tuple[float, float, float, float] | None:
    """Read a box as [left, top, width, height] or an object with these names, alone or first in a list."""
    if value in (None, []):
        return None
    if isinstance(value, list) and isinstance(value[0], dict | list):
        value = value[0]
    numbers = [value.get(name) for name in ("left", "top", "width", "height")] if isinstance(value, dict) else value
    if (
        not isinstance(numbers, list)
        or len(numbers) != 4
        or not all(isinstance(number, int | float) for number in numbers)
    ):
        raise DataError(f"box {value!r} is not left, top, width, height")
    left, top, width, height = map(float, numbers)
    return left, top, width, height


# Drafts to votes of LLM checkers and back: a checker is a judge with k votes, asked like any model.

TASK = "check"
CHECKERS = ("unique", "chain", "grounded")
CARD = "curate_{}"


def plan_checks(judge: Judge, drafts: Iterable[Draft], *, with_picture: bool) -> Iterator[ReadyRequests]:
    """Yield a job an item."""
    for position, draft in enumerate(drafts):
        sample = check_sample(draft)
        votes = plan_votes(judge, [(sample, _as_reply(draft))])
        requests = tuple(with_pictures(vote, sample) if with_picture else vote for vote in votes)
        yield ReadyRequests(Item(position, sample), requests)


def check_sample(draft: Draft) -> Sample:
    """Return what the checker is told beside the draft."""
    notes = (f"seen: {draft.source.clue}", f"inferred: {draft.source.inference}")
    question, images = "A drafted item is to be checked.", (draft.source.picture(),)
    return Sample(draft.id, TASK, Form.OPEN, question, images=images, answers=notes)


def _as_reply(draft: Draft) -> Prediction:
    """Return the draft as what a judge judges: the reply of a model."""
    return Prediction(TrialKey(TASK, draft.id), text=show_draft(draft))


def show_draft(draft: Draft) -> str:
    """Return an item as plain text, right candidates marked."""
    lines: list[str] = []
    for name, question in draft.questions():
        lines.append(f"{name}: {question.question}")
        signs = ("*" if place == question.right else "-" for place in range(len(question.candidates)))
        lines += [f"  {sign} {text}" for sign, text in zip(signs, question.candidates, strict=True)]
    return "\n".join(lines)


def read_checks(reader: RunReader, judge: Judge, drafts: Iterable[Draft], gate: str) -> dict[str, Finding]:
    """Return what the majority said of each item: fail, or a warning where there was no majority."""
    replies: Mapping[TrialKey, str | None] = {
        prediction.key: prediction.text for _, _, prediction, _ in reader.trials(f"{TASK}@{judge.name}")
    }
    findings: dict[str, Finding] = {}
    for draft in drafts:
        reply = _as_reply(draft)
        keys = [judge_key(reply.key, judge, vote) for vote in range(judge.votes)]
        score = score_votes(judge, reply, [replies.get(key) for key in keys])
        if score.value is None:
            findings[draft.id] = Finding(gate, "warn", f"the checker gave no verdict: {score.reason}")
        elif score.value < 0.5:
            reason = f"the checker says no ({judge.title.lower()}; {judge.votes} votes)"
            findings[draft.id] = Finding(gate, "fail", reason)
    return findings


__all__ = ["DraftResult", "GateSettings", "ReviewSettings", "audit_sentence", "draft", "gates", "publish", "review"]


class DraftResult(Struct, frozen=True):
    """What drafting left."""

    sources: int
    drafts: int
    set_aside: int
    reasons: dict[str, int]
    requests: int
    cached: int
    failed: int
    interrupted: bool
    over_budget: bool


def draft(
    source: Path,
    folder: Path,
    settings: RunSettings,
    *,
    image_root: Path | None = None,
    prompt: str = "draft",
    columns: Mapping[str, str] | None = None,
    requests_at_most: int | None = None,
    watcher: Listener | None = None,
) -> DraftResult:
    """Have an LLM draft an item for every coarse annotation; the same call again continues."""
    workshop = Workshop(folder)
    words = convert(Catalog(settings.catalogs).card("curate", prompt), DraftPrompt, f"curate card {prompt!r}")
    model = create_model(settings, registry_for(settings))
    records = list(read_sources(source, image_root, columns))[: settings.limit]
    sources = [record for record in records if isinstance(record, Source)]
    unusable = [record for record in records if isinstance(record, SetAside)]
    if not sources:
        raise DataError(f"{source.name} has no usable record: {unusable[0].reason if unusable else 'it is empty'}")
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(workshop.sources, sources)
    drafting = Drafting(words, settings.seed)
    config = {"prompt": msgspec.to_builtins(words), "seed": settings.seed, "sources": content_hash(sources)}
    work = ModelJobs(
        workshop.drafting, model, list(plan_drafts(sources, drafting)), {DRAFT_TASK: 2 * len(sources)}, config
    )
    state = ask_jobs(work, settings, watcher, limits=limits_for(model, settings, requests=requests_at_most))
    drafts, set_aside = _read_drafts(workshop, drafting, unusable)
    return DraftResult(
        sources=len(records),
        drafts=len(drafts),
        set_aside=len(set_aside),
        reasons=_tally(set_aside),
        requests=state.limits.sent,
        cached=state.cached,
        failed=state.failed,
        interrupted=state.unfinished and not state.over_limit,
        over_budget=state.over_limit,
    )


def _read_drafts(
    workshop: Workshop, drafting: Drafting, unusable: list[SetAside]
) -> tuple[list[Draft], list[SetAside]]:
    with RunReader(workshop.drafting) as reader:
        records = list(collect_drafts(reader, drafting))
    drafts = [record for record in records if isinstance(record, Draft)]
    set_aside = [*unusable, *(record for record in records if isinstance(record, SetAside))]
    write_lines(workshop.drafts, drafts)
    write_lines(workshop.set_aside("draft"), set_aside)
    return drafts, set_aside


def gates(
    folder: Path,
    gate_settings: GateSettings | None = None,
    *,
    checker: RunSettings | None = None,
    blind_models: Sequence[RunSettings] = (),
) -> GateReport:
    """Pass all drafts through the gates; `checker` is asked as a judge, `blind_models` answer without pictures."""
    workshop = Workshop(folder)
    drafts = workshop.read_drafts()
    checks = _ask_checker(workshop, drafts, checker) if checker is not None else {}
    judges = {settings.model: _ask_blindly(workshop, drafts, settings) for settings in blind_models}
    kept, set_aside, report = run_gates(drafts, gate_settings, checks, judges)
    if workshop.ledger.is_file() and workshop.gated.is_file() and kept != workshop.read_gated():
        reason = "these gates would change what people decided on; gate a copy of the folder instead"
        raise UsageError(f"{folder} is under review: {reason}")
    write_lines(workshop.gated, kept)
    write_lines(workshop.set_aside("gates"), set_aside)
    workshop.gate_report.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    return report


def _ask_checker(workshop: Workshop, drafts: Sequence[Draft], settings: RunSettings) -> dict[str, dict[str, Finding]]:
    findings = {}
    catalog = Catalog(settings.catalogs)
    for name in CHECKERS:
        judge = read_judge(catalog.card("judges", CARD.format(name)), CARD.format(name))
        model = create_model(settings, registry_for(settings))
        jobs = list(plan_checks(judge, drafts, with_picture=name == "grounded"))
        config = {"judge": msgspec.to_builtins(judge), "drafts": content_hash(drafts)}
        folder = workshop.checking / f"{name}-{content_hash(config, 8)}"
        planned = {f"{TASK}@{judge.name}": judge.votes * len(drafts)}
        check_finished(ask_jobs(ModelJobs(folder, model, jobs, planned, config), settings), f"checker {name!r}")
        with RunReader(folder) as reader:
            findings[f"{name} (checker)"] = read_checks(reader, judge, drafts, f"{name} (checker)")
    return findings


def _ask_blindly(workshop: Workshop, drafts: Sequence[Draft], settings: RunSettings) -> Replies:
    """Run a model on all questions without pictures, as a task like any other, and return what it got right."""
    name = content_hash([drafts, settings.model, settings.base_url], 8)
    folder = workshop.checking / f"blind-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "annotations.json"
    data.write_bytes(msgspec.json.encode(cure_rows(drafts)))
    overrides = (*settings.overrides, ("dataset.path", str(data)), ("dataset.pictures", False))
    blind = msgspec.structs.replace(settings, tasks=("cure",), overrides=overrides, output_dir=folder / "run")
    run_settings(blind, None)
    replies: dict[str, dict[str, list[float]]] = {}
    with RunReader(folder / "run") as reader:
        for score in reader.scores("cure"):
            position, _, part = score.key.sample.partition(".")
            role = "inference" if part == "h" else "step"
            replies.setdefault(drafts[int(position)].id, {}).setdefault(role, []).append(score.value or 0.0)
    return replies


def review(
    folder: Path, settings: ReviewSettings | None, port: int, ready: Callable[[dict[str, str], int, int], None]
) -> None:
    """Serve the review page on localhost until stopped; `ready` is told the links, the port and the number of items.

    Without `settings` those of the last review hold.
    """
    from .web import (
        Keys,
        serve,  # the web server is an extra that the other steps do without
    )

    workshop = Workshop(folder)
    desk = workshop.open_desk(settings)
    lock = RunLock(folder)  # one server a folder: the state that pages see lives in its memory
    try:
        items = len(desk.items)
        serve(desk, Keys(workshop.key), workshop.name, port, lambda links, chosen: ready(links, chosen, items))
    finally:
        lock.release()


def publish(
    folder: Path, out: Path | None = None, *, name: str = "", licence: str = "", despite_gates: str = ""
) -> Published:
    """Write the accepted items as a dataset with its card.

    A set that failed its gates is refused, unless `despite_gates` says why it goes out; the card prints that.
    """
    workshop = Workshop(folder)
    if not workshop.ledger.is_file():
        raise UsageError(f"{folder} has no review yet: run `snellen curate review {folder} --reviewer NAME` first")
    desk = workshop.open_desk()
    with closing(desk.ledger):
        gate_report: dict[str, Any] = msgspec.json.decode(workshop.gate_report.read_bytes())
        title = Title(name or workshop.name, licence, despite_gates)
        return write_published(desk, out or workshop.published, title, gate_report, workshop.read_set_aside())


def _tally(set_aside: Sequence[SetAside]) -> dict[str, int]:
    """Return reason -> how many, the most frequent first; how often a reply was asked for again does not count."""
    return dict(Counter(record.reason.partition(" (after")[0] for record in set_aside).most_common())
