"""The workshop's four steps, each one call: draft, gates, review, publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...api.chosen_model import create_model
from ...api.plan import registry_for
from ...api.run import run_settings
from ...api.session import Listener, ModelJobs, ask_jobs, check_finished, limits_for
from ...api.settings import RunSettings
from ...core.config import convert
from ...core.errors import DataError, UsageError
from ...core.ids import content_hash
from ...data.catalog import Catalog
from ...data.files.records import write_lines
from ...scoring.judge_card import read_judge
from ...store.lock import RunLock
from ...store.reader import RunReader
from .checks import CARD, CHECKERS, TASK, plan_checks, read_checks
from .desk import ReviewSettings
from .draft import TASK as DRAFT_TASK
from .draft import Drafting, DraftPrompt, collect_drafts, plan_drafts
from .figures import audit_sentence
from .gates import GateReport, GateSettings, Replies, run_gates
from .publish import Published, Title, cure_rows
from .publish import publish as write_published
from .records import Draft, Finding, SetAside, Source
from .sources import read_sources
from .workshop import Workshop

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
    from .serve import serve  # the web server is an extra that the other steps do without
    from .web import Keys

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
