"""An eye exam from settings to its files: plan, sit, fit, write. The same call again continues it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.clock import SystemClock
from ..core.errors import RunMismatch, SnellenError, UsageError, not_among
from ..core.ids import content_hash
from ..core.process import run_to_end
from ..core.protocols import Capability, Model
from ..core.registry import Registry
from ..core.tasks import RunHeader, Task
from ..core.types import Form, Params, Sample
from ..engine.state import RunState
from ..report.files import write_atomically
from ..report.pages.exam_page import write_prescription
from ..report.pages.finish import finish_run
from ..sight.advice import Line, exam_command, method_of, prescribe
from ..sight.cards import MODES, chosen_tests
from ..sight.sitting import PREFIX, Order, Sitting, Stored, no_listeners
from ..sight.sitting import ExamListeners as ExamListeners  # noqa: PLC0414 - what an exam is listened to with
from ..store.reader import RunReader
from .chosen_model import create_model
from .executors import check_executor
from .header import installed_versions, make_header
from .plan import registry_for
from .session import Listener, Session, limits_for, open_session
from .settings import NOTHING, SAMPLING, AskSettings, RunSettings, make_record, refuse_others, rows_of, table, taking

WORKERS = 64
FORMAT = 1


class ExamSettings(AskSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an exam can be told: how a model is asked, and what is its own."""

    mode: str = "standard"
    tests: tuple[str, ...] = ()
    until: float | None = None
    """Half width of every interval in ln units, instead of the mode's."""
    requests: int | None = None
    tokens: int | None = None
    """At most so many new requests or tokens for this call; money is `max_cost`."""
    told: Callable[[Sample], None] | None = None
    heard: Callable[[str, str], None] | None = None
    """Called with every sample before it is asked, and with the name of a test and what is known of it."""


class ExamResult(NamedTuple):
    """What an exam leaves."""

    folder: Path
    exam: dict[str, Any]
    state: RunState
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Tell whether it ended before all was asked."""
        return not self.exam["complete"]


@taking(ExamSettings)
def exam(model: str, **settings: Any) -> ExamResult:
    """Examine how a model sees and return the prescription; the same call again continues an unfinished exam.

    Takes settings of its own (`mode`, `tests`, `until`, `requests`, …) and those about asking a model (`base_url`,
    `seed`, `output_dir`, …): `snellen.exam("openai/NAME", base_url=…, mode="quick")`. Others are refused by name.

    Example:
        >>> result = snellen.exam("blind/random", tests=("orientation",), mode="quick")
        >>> result.exam["tests"]["orientation"]["verdict"]
        'not measurable'
    """
    wanted = make_record(ExamSettings, "exam", settings)
    asked = RunSettings(tasks=(), model=model, **{name: getattr(wanted, name) for name in table(AskSettings)})
    return run_exam(wanted, asked, listeners=ExamListeners(wanted.told, wanted.heard))


def run_exam(
    wanted: ExamSettings,
    settings: RunSettings,
    watcher: Listener | None = None,
    listeners: ExamListeners = no_listeners,
) -> ExamResult:
    """Sit an exam as the settings say; `listeners` hear of every trial before it is asked, and of every test.

    What stops it (a server that is gone, a key that no longer holds) is raised after what was measured is written.
    """
    began = SystemClock().monotonic()
    refuse_others(settings, "exam")
    _check(wanted)
    check_executor(settings)
    registry = registry_for(settings)
    model = create_model(settings, registry)
    if Capability.IMAGES not in model.capabilities:
        raise UsageError(f"model {model.name!r} takes no pictures: there is nothing to examine")
    order = _order(wanted, settings, registry)
    folder = settings.output_dir or Path("runs") / _folder_name(model, wanted, settings)
    header = _header(order, model, settings)
    if settings.max_workers is None:
        settings = msgspec.structs.replace(settings, max_workers=WORKERS)
    limits = limits_for(model, settings, began=began, requests=wanted.requests, tokens=wanted.tokens)
    session = open_session(folder, header, model, settings, limits, listener=watcher)
    sitting, state, problem = run_to_end(_sit(session, order, listeners))
    if problem is not None and set(sitting.results) != set(order.tests):
        raise problem
    content = exam_content(sitting, model.name) | {"method": _method(order, wanted, settings)}
    write_exam(folder, content)
    finish_run(folder, registry, report=False)
    write_prescription(folder, content, header)
    if problem is not None:
        raise problem
    return ExamResult(folder, content, state, SystemClock().monotonic() - began)


def _check(wanted: ExamSettings) -> None:
    if wanted.mode not in MODES:
        raise UsageError(f"exam mode {not_among(wanted.mode, MODES)}")
    if wanted.until is not None and not 0.02 <= wanted.until <= 1.0:
        raise UsageError(f"--until {wanted.until}: a half width in ln units from 0.02 to 1 (0.15 is -14/+16 %)")


def _order(wanted: ExamSettings, settings: RunSettings, registry: Registry) -> Order:
    temperature = 0.0 if settings.temperature is None else settings.temperature
    params = Params(temperature=temperature, top_p=settings.top_p, extra_body=settings.extra_body)
    tests = chosen_tests(wanted.tests, wanted.mode, registry)
    return Order(tests, wanted.mode, settings.seed, wanted.until, params, settings.max_tokens)


def _method(order: Order, wanted: ExamSettings, settings: RunSettings) -> dict[str, Any]:
    """Return the method with the settings that change replies, and the command, whether typed or called from Python.

    The address is left out: it is nobody's who reads the page, and may hold what is secret.
    """
    told: dict[str, Any] = {"temperature": order.params.temperature}
    for name, row in rows_of("exam").items():
        value = getattr(settings, name, None)
        if row.group == SAMPLING and name not in ("temperature", "seed") and value not in NOTHING:
            told[name.replace("_", "-")] = value
    more = {**told, **(told.get("extra-body") or {}), "until": order.half_width}
    known = {flag for row in rows_of("exam").values() for flag in row.flags} | {"--until"}
    more = {name: value for name, value in more.items() if f"--{name.replace('_', '-')}" in known}
    if settings.temperature is None:
        more.pop("temperature")
    command = exam_command(settings.model, order.mode, order.seed, wanted.tests, more)
    kept = {"mode": order.mode, "seed": order.seed, **told}
    return method_of(order.mode, order.seed, order.half_width, command, kept)


def _folder_name(model: Model, wanted: ExamSettings, settings: RunSettings) -> str:
    name = "".join(char if char.isalnum() else "-" for char in model.name)
    tests = f"-{content_hash(wanted.tests, 6)}" if wanted.tests else ""
    return f"exam-{name}-{wanted.mode}-{settings.seed}{tests}"


def _header(order: Order, model: Model, settings: RunSettings) -> RunHeader:
    cards = {name: msgspec.to_builtins(test.card) for name, test in order.tests.items()}
    config = {
        "seed": order.seed,
        "exam": {
            "format": FORMAT,
            "mode": order.mode,
            "tests": {name: content_hash(card) for name, card in cards.items()},
            "until": order.half_width,
            "params": msgspec.to_builtins(order.params),
            "max_tokens": order.max_tokens,
        },
    }
    tasks = [_task(name, test.card.title, order) for name, test in order.tests.items()]
    return make_header(model, config, versions=installed_versions(), command=settings.command, tasks=tasks, planned={})


def _task(name: str, title: str, order: Order) -> Task:
    return Task(
        PREFIX + name,
        {"loader": "exam"},
        Form.OPEN,
        params=order.params,
        scorers=("exam",),
        aggregates=("exam",),
        group_by=("stage", "wording"),
        title=title,
        dimension="eye exam",
    )


async def _sit(
    opening: AbstractAsyncContextManager[Session], order: Order, listeners: ExamListeners
) -> tuple[Sitting, RunState, SnellenError | None]:
    """Sit the exam; return what is known then, the counts, and what stopped it."""
    async with opening as session:
        stored = _stored(session, order.tests) if session.resumed else Stored()

        def plan_more(trials: int) -> None:  # how many trials there will be is known only up to the next round
            session.state.planned += trials

        how: dict[str, Any] = {"limits": session.limits, "listeners": listeners._replace(round=plan_more)}
        sitting = Sitting(order, session.folder, session.writer, stored, **how)
        problem: SnellenError | None = None
        try:
            await session.ask(lambda: iter([sitting]))
        except RunMismatch:  # nothing was asked, and what was written stays
            raise
        except SnellenError as stopped:  # the tests have ended with what they know
            sitting.ended, problem = str(stopped), stopped
        if session.state.unfinished and not sitting.ended:  # what was in flight at the end of the drain was let go
            sitting.ended = session.limits.closed
        return sitting, session.state, problem


def _stored(session: Session, tests: Iterable[str]) -> Stored:
    """Return the samples of an exam that was begun before, and which have their replies."""
    names = [PREFIX + name for name in tests]
    with RunReader(session.folder) as reader:
        samples = {(name, sample.id): sample for name in names for sample in reader.samples(name)}
    return Stored(samples, {(name, key[0]) for name in names for key in session.writer.finished_keys(name)})


def exam_content(sitting: Sitting, model: str) -> dict[str, Any]:
    """Return exam.json as plain data: nothing in it depends on when or how often it was interrupted."""
    order = sitting.order
    results = {name: sitting.results[name] for name in order.tests}
    resolution = sitting.resolution
    lines: list[Line] = prescribe(results, resolution)
    return {
        "format": FORMAT,
        "model": model,
        "seed": order.seed,
        "mode": order.mode,
        "until": order.half_width,
        "complete": not sitting.ended,
        "ended": sitting.ended,
        "replanned": sitting.replanned,
        "counts": {
            name: sum(result[name] for result in results.values())
            for name in ("trials", "right", "wrong", "no_answer", "failed")
        },
        "prescription": [msgspec.to_builtins(line) for line in lines],
        "resolution": resolution,
        "drift": sitting.drift,
        "tests": results,
    }


def write_exam(folder: Path, content: Mapping[str, Any]) -> Path:
    """Write exam.json beside run.db."""
    path = folder / "exam.json"
    body = msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
    write_atomically(path, lambda file: file.write(body))
    return path
