"""Serving performance of a task or a synthetic load: build, load, store, score, sum up; the search for a limit."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..core.builtins import default_registry
from ..core.errors import SnellenError, UsageError
from ..core.ids import content_hash
from ..core.process import run_to_end
from ..core.protocols import Model, StreamingModel
from ..core.types import Prediction, Request
from ..model.served.prices import Bill, Prices
from ..model.served.served_model import ServedModel
from ..perf.charts import latency_throughput, pictures, to_svg
from ..perf.collect import PARTIAL, partial_files
from ..perf.generator import Item
from ..perf.in_process import HERE, ModelGenerator, prepare_requests
from ..perf.measure import LoadPlan, Maker, Measured, measure
from ..perf.metrics import Objectives, summarize
from ..perf.stored import to_prediction, value_for_money
from ..perf.sweep import Point, Sweep, conclude, judge, search, sweep_table
from ..perf.timeline import Timeline, write_timeline
from ..perf.workload import TASK as SYNTHETIC
from ..perf.workload import (
    Asked,
    Dialogue,
    Synthetic,
    capture,
    compose,
    join_turns,
    make_dialogues,
    prepare_items,
    salt_dialogues,
    with_replies,
)
from ..report.files import write_atomically
from ..report.pages.finish import finish_run
from ..report.pages.perf_page import render_page
from ..store.cache import request_digest
from ..store.writer import RunWriter
from .chosen_model import create_model, find_card
from .plan import Plan, make_plan
from .run import reading_of
from .session import check_folder, keep_prices, open_store
from .settings import RunSettings, refuse_others

__all__ = [
    "SYNTHETIC", "LoadPlan", "PerfReport", "PerfSettings", "Sweep", "SweepSettings", "Synthetic",
    "describe_level", "draw", "level_name", "run_perf", "run_sweep", "sweep_table",
]  # fmt: skip


class PerfSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to load, with what, and what to keep. `levels` are measured one after another."""

    run: RunSettings
    levels: tuple[LoadPlan, ...]
    base_urls: tuple[str, ...] = ()
    synthetic: Synthetic | None = None
    """A made-up load instead of a task."""
    synthetic_count: int = 200
    multi_turn: bool = False
    """Samples of one group are turns of one dialogue."""
    think_s: float = 0.0
    prefix_cache: str = "as-is"
    objectives: dict[str, float] = {}
    draw: bool = True


class PerfReport(msgspec.Struct):
    """What a load leaves; valid also when it was stopped by hand."""

    folder: Path
    model: str
    task: str
    levels: list[dict[str, Any]]
    interrupted: bool = False


class _Load(msgspec.Struct):
    """Items ready for the wire and where they go; for a task also what stands behind each item."""

    items: list[Item]
    provider: str
    urls: list[str]
    headers: dict[str, str]
    trials: dict[str, Asked]
    plan: Plan | None
    stream: bool
    prices: Prices | None
    make: Maker | None = None
    """Runs the load on a model of this process, where no server is asked."""
    model: Model | None = None
    """That model, to be closed at the end."""

    async def put_on(self, level: LoadPlan, folder: Path | None = None) -> Measured:
        """Load the servers as the level says; with a folder what is measured is kept there meanwhile."""
        where = (self.items, self.provider, self.urls, self.headers)
        return await measure(level, *where, stream=self.stream, folder=folder, make=self.make)


def run_perf(settings: PerfSettings) -> PerfReport:
    """Measure every level; Ctrl-C ends it with a valid report of what was measured."""
    folder = settings.run.output_dir or Path("runs") / f"perf-{_label(settings)}"
    report = PerfReport(folder, settings.run.model, _task_name(settings), [])
    _refuse_full(folder)
    try:  # from here on Ctrl-C leaves a report, wherever it strikes
        with _made(folder):
            _measure_levels(settings, folder, report)
    except KeyboardInterrupt:
        report.interrupted = True
    with _undisturbed():
        _write_report(folder, report)
    return report


def _refuse_full(folder: Path) -> None:
    if (folder / "perf.json").exists() or (folder / "run.db").exists():
        raise UsageError(f"{folder} holds a measurement already; a load cannot be continued: choose another -o")
    check_folder(folder)
    if left := [path for path in folder.rglob(f"{PARTIAL}*.jsonl") if path.stat().st_size]:
        see = f"`snellen perf summarize {left[0].parent}` sums up what it had measured"
        raise UsageError(f"{folder} holds a load that was killed; it cannot be continued: choose another -o; {see}")


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder before anything is asked; what could not begin leaves none behind."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except SnellenError:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()
        raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _write_report(folder: Path, report: PerfReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _keep(folder, report)
    names = {level["level"]: level.get("pictures", ()) for level in report.levels}
    drawn = {level: {name: (folder / name).read_text() for name in files} for level, files in names.items()}
    (folder / "perf.html").write_text(render_page(f"{report.task} · {report.model}", report.levels, drawn))


def _measure_levels(settings: PerfSettings, folder: Path, report: PerfReport) -> None:
    load = run_to_end(_prepare(settings))
    try:
        _measure_each(load, settings, folder, report)
    finally:
        if load.model is not None:
            run_to_end(load.model.close())


def _measure_each(load: _Load, settings: PerfSettings, folder: Path, report: PerfReport) -> None:
    for level in settings.levels:
        if report.levels:  # what is measured is kept, should this process be killed in a later level
            _keep(folder, msgspec.structs.replace(report, interrupted=True))
        level_folder = folder if len(settings.levels) == 1 else folder / level_name(level)
        level_folder.mkdir(parents=True, exist_ok=True)
        entry: dict[str, Any] = {"level": level_name(level), "plan": level.as_dict()}
        report.levels.append(entry)
        measured = run_to_end(load.put_on(level, level_folder))
        report.interrupted = measured.timeline.interrupted
        entry |= describe_level(measured.timeline, settings.objectives)
        if not measured.timeline.requests:
            return
        write_timeline(level_folder / "timeline.json", measured.timeline)
        for path in partial_files(level_folder):
            path.unlink()
        if load.plan is not None:
            entry["value"] = _score(level_folder, load, load.plan, measured, settings)
        if settings.draw:
            drawn = draw(level_folder, measured.timeline)
            entry["pictures"] = [str((level_folder / name).relative_to(folder)) for name in drawn]
        if report.interrupted:
            return


def _keep(folder: Path, report: PerfReport) -> None:
    write_atomically(folder / "perf.json", lambda file: _write(file, report))


def describe_level(timeline: Timeline, objectives: Objectives | None) -> dict[str, Any]:
    """Return the summaries of one level: whole run, steady state if there is one, what the generator saw of itself."""
    shared = {"planned": timeline.planned, "watch": timeline.watch, "interrupted": timeline.interrupted}
    if not timeline.requests:
        return {"total": None, "steady": None, **shared, "notes": ["stopped before the first reply"]}
    total = summarize(timeline, "total", objectives=objectives)
    try:
        steady: dict[str, Any] | None = summarize(timeline, "stable", objectives=objectives)
    except SnellenError:
        steady = None
    return {"total": total, "steady": steady, **shared, "notes": total["notes"]}


class SweepSettings(msgspec.Struct, frozen=True):
    """How to search: by rate or by concurrency, between which bounds, how finely; how many requests must be good."""

    by_rate: bool = True
    first: float = 1.0
    ceiling: float = 4096.0
    precision: float = 0.05
    attainment: float = 0.9


def run_sweep(settings: PerfSettings, how: SweepSettings) -> tuple[Sweep, Path]:
    """Search the highest rate (or concurrency) that meets the objectives; writes sweep.json and the curve."""
    if not settings.objectives:
        raise UsageError("a sweep needs objectives: --slo ttft=500ms,tpot=40ms")
    folder = settings.run.output_dir or Path("runs") / f"sweep-{_label(settings)}"
    points: list[Point] = []
    note = ""
    try:
        with _made(folder):
            run_to_end(_search(settings, how, points))
    except KeyboardInterrupt:
        note = "stopped by hand: the search is not finished"
    unit = "requests/s" if how.by_rate else "concurrent requests"
    sweep = conclude(points, unit, settings.objectives, how.attainment)
    sweep.note = note or sweep.note
    write_atomically(folder / "sweep.json", lambda file: _write(file, sweep))
    if settings.draw and points:
        (folder / "curve.svg").write_text(to_svg(latency_throughput(sweep)))
    return sweep, folder


async def _search(settings: PerfSettings, how: SweepSettings, points: list[Point]) -> None:
    load = await _prepare(settings)
    try:
        await _search_with(load, settings, how, points)
    finally:
        if load.model is not None:
            await load.model.close()


async def _search_with(load: _Load, settings: PerfSettings, how: SweepSettings, points: list[Point]) -> None:
    base = settings.levels[0]

    async def measure_point(value: float) -> Point:
        rate, slots = (value, None) if how.by_rate else (None, round(value))
        level = msgspec.structs.replace(base, rate=rate, concurrency=slots)
        timeline = await _timeline_of(load, level)
        point = judge(timeline, value, settings.objectives, how.attainment)
        if point.limited:
            # Once more, with more processes where there are cores: a busy machine is often quiet the second time.
            more = min(2 * int(timeline.load["processes"]), os.cpu_count() or 1)
            timeline = await _timeline_of(load, msgspec.structs.replace(level, processes=more))
            point = judge(timeline, value, settings.objectives, how.attainment)
        points.append(point)
        return point

    await search(measure_point, first=how.first, ceiling=how.ceiling, precision=how.precision, whole=not how.by_rate)


async def _timeline_of(load: _Load, level: LoadPlan) -> Timeline:
    timeline = (await load.put_on(level)).timeline
    if timeline.interrupted:
        raise KeyboardInterrupt
    return timeline


async def _prepare(settings: PerfSettings) -> _Load:
    run = settings.run
    refuse_others(run, "perf")
    if run.plugins and (own := _own_model(settings)) is not None:
        return await _prepare_own(settings, *own)
    models = [_served(msgspec.structs.replace(run, base_url=url)) for url in settings.base_urls or (run.base_url,)]
    stream = run.stream is not False
    prices = find_card(models[0], run).prices(run.price)
    plan = None if settings.synthetic else make_plan(msgspec.structs.replace(run, stream=stream))
    captured, dialogues = await _what_is_asked(settings, plan, stream=stream)
    try:
        for model in models:
            await model.check()
        items = await prepare_items(models[0], dialogues, think_s=settings.think_s)
    finally:
        for model in models:
            await model.close()
    urls, headers = zip(*(model.endpoint(stream=stream) for model in models), strict=True)
    trials = _trials(items, dialogues, captured)
    return _Load(items, models[0].dialect.family, list(urls), headers[0], trials, plan, stream, prices)


async def _what_is_asked(
    settings: PerfSettings, plan: Plan | None, *, stream: bool
) -> tuple[list[list[Asked]], list[Dialogue]]:
    """Return the trials of a task and the dialogues that are sent; of a synthetic load these only."""
    captured, dialogues = list[list[Asked]](), list[Dialogue]()
    if plan is not None:
        captured = await _capture_all(plan, settings)
        dialogues = [[turn.request for turn in dialogue] for dialogue in captured]
    elif settings.synthetic is not None:
        dialogues = list(make_dialogues(settings.synthetic, settings.synthetic_count, settings.run.seed, stream=stream))
    return captured, salt_dialogues(dialogues, settings.prefix_cache, settings.run.seed)


def _own_model(settings: PerfSettings) -> tuple[Model, Plan | None] | None:
    """Return the model of a plug-in that answers in this process, and the plan of a task; None of a server's."""
    run, plan = settings.run, None
    if settings.synthetic is None:
        plan = make_plan(run)
    # The plan's own where there is one: a second may not fit into memory.
    model = create_model(run, default_registry(run.plugins)) if plan is None else plan.model
    ours = type(model).__module__.startswith("snellen.") and not run.model.startswith("plugin/")
    return None if ours or isinstance(model, ServedModel) else (model, plan)


async def _prepare_own(settings: PerfSettings, model: Model, plan: Plan | None) -> _Load:
    """Make ready a load on a model of this process: one that streams is timed piece by piece, another whole."""
    stream = settings.run.stream is not False and isinstance(model, StreamingModel)
    captured, dialogues = await _what_is_asked(settings, plan, stream=stream)
    await model.check()
    items, images = await prepare_requests(model, dialogues, think_s=settings.think_s)
    trials = _trials(items, dialogues, captured)
    make = partial(ModelGenerator, model=model, images=images, stream=stream)
    return _Load(items, "", [HERE], {}, trials, plan, stream, None, make, model)


def _trials(
    items: Sequence[Item], dialogues: Sequence[Sequence[Request]], captured: Sequence[Sequence[Asked]]
) -> dict[str, Asked]:
    """Return what stands behind each turn of each item, with its request as it is sent."""
    return {
        f"{item.id}/{number}": turn._replace(request=request)
        for item, dialogue, turns in zip(items, dialogues, captured, strict=False)
        for number, (request, turn) in enumerate(zip(dialogue, turns, strict=True))
    }


def _served(settings: RunSettings) -> ServedModel:
    model = create_model(settings, default_registry(settings.plugins))
    if not isinstance(model, ServedModel):
        servers = "`snellen perf` loads servers (openai/NAME --base-url URL)"
        raise UsageError(f"model {settings.model!r} is not served over HTTP; {servers}")
    return model


async def _capture_all(plan: Plan, settings: PerfSettings) -> list[list[Asked]]:
    """Return what the plan's jobs would ask, a dialogue a job; with --multi-turn a group's samples make one."""
    groups: dict[str, list[Asked]] = {}
    for number, job in enumerate(plan.jobs()):
        turns = await capture(job)
        if not turns:
            continue
        sample, key = turns[0].planned.sample, turns[0].request.key
        together = settings.multi_turn and sample.group is not None and len(turns) == 1
        group = f"{key.task}|{sample.group}|{key.variant}|{key.repeat}" if together else str(number)
        groups.setdefault(group, []).extend(turns)
    return [_joined(turns) if settings.multi_turn else turns for turns in groups.values()]


def _joined(turns: list[Asked]) -> list[Asked]:
    if len(turns) < 2 or len(turns[1].request.messages) > len(turns[0].request.messages):
        return turns  # one turn, or a job that builds its own history
    joined = join_turns([turn.request for turn in turns])
    return [turn._replace(request=request) for turn, request in zip(turns, joined, strict=True)]


def _score(folder: Path, load: _Load, plan: Plan, measured: Measured, settings: PerfSettings) -> dict[str, Any]:
    bill = Bill(load.prices) if load.prices else None
    with open_store(folder, plan.header, reading_of(settings.run)) as writer:
        keep_prices(writer, load.prices)
        run_to_end(_store(writer, load, plan, measured, bill))
    results = finish_run(folder, plan.registry, reading=reading_of(settings.run))
    return value_for_money(measured, results, bill)


async def _store(writer: RunWriter, load: _Load, plan: Plan, measured: Measured, bill: Bill | None) -> None:
    """Keep the first good reply to every request of the data, and add all of them to the bill."""
    pictures = {f"{item.id}/{turn}": sent for item in load.items for turn, sent in enumerate(item.pictures)}
    replies: dict[tuple[str, int], list[str]] = defaultdict(list)
    heard: dict[tuple[str, int], list[tuple[Request, Prediction]]] = defaultdict(list)
    identity = content_hash(plan.model.identity(), 32)
    for outcome in measured.outcomes:
        name, said = f"{outcome.item}/{outcome.record.turn}", replies[outcome.item, outcome.round]
        trial = load.trials[name]
        request, sent = with_replies(trial.request, said), pictures.get(name, ())
        said.append(outcome.text or "")
        prediction = to_prediction(request, outcome, sent)
        if bill is not None:
            bill.add(prediction)
        if trial.keep:
            digest = request_digest(identity, request, [image.sha256 for image in sent])
            await writer.put(trial.position, trial.planned.sample, request, prediction, digest)
        if trial.composer is not None:
            heard[outcome.item, outcome.round].append((request, prediction))
    for (item, _), replies_of_job in heard.items():
        await _store_composed(writer, load.trials[f"{item}/0"], replies_of_job, identity)


async def _store_composed(
    writer: RunWriter, first: Asked, heard: Sequence[tuple[Request, Prediction]], identity: str
) -> None:
    """Let the job make its answers again, of what the server really said."""
    if first.composer is None:
        return
    for planned, request, prediction in await compose(first.composer, heard):
        digest = request_digest(identity, request, [image.sha256 for image in prediction.images])
        await writer.put(planned.position, planned.sample, request, prediction, digest)


def draw(folder: Path, timeline: Timeline) -> list[str]:
    """Write every picture of a load as SVG and return their file names."""
    drawn = {f"{name}.svg": to_svg(spec) for name, spec in pictures(timeline).items()}
    for name, svg in drawn.items():
        (folder / name).write_text(svg)
    return list(drawn)


def level_name(level: LoadPlan) -> str:
    """Return a short name of a load, fit for a folder."""
    if level.trace:
        return "trace"
    if level.rate is not None:
        return f"rate-{level.rate:g}"
    return f"pressure-{level.concurrency}" if level.pressure_s else f"concurrency-{level.concurrency}"


def _task_name(settings: PerfSettings) -> str:
    return SYNTHETIC if settings.synthetic is not None else "+".join(settings.run.tasks)


def _label(settings: PerfSettings) -> str:
    label = f"{_task_name(settings)}--{settings.run.model}"
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in label)
    return f"{safe[:80]}--{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _write(file: Any, value: Any) -> None:
    file.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2) + b"\n")
