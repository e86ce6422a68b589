"""The counters of a run to what one wants to know while waiting: a live bar, or plain lines for a log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from ..core.text import plural
from ..engine.state import RunState
from ..model.served.prices import money
from .terminal import plain

REFRESH_S = 0.25
LOOK_S = 1.0
"""A figure of the replies so far is made so often: what is over before needs none."""
LINE_EVERY_S = 10.0
ERROR_SHOWN = 70
TREND_AFTER = 5
"""Replies after which what they cost says something of the others."""
LONG_REST_S = 20.0
"""A rest of so long is told also where nothing else is."""


class Progressbar:
    """Shows a RunState a few times a second on stderr; on a pipe, or if told so, a plain line now and then."""

    def __init__(
        self,
        console: Console,
        *,
        quiet: bool = False,
        as_lines: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._console = console
        self._quiet = quiet
        self._as_lines = as_lines or not console.is_terminal
        self._clock = clock

    def watch(self, state: RunState) -> AbstractContextManager[object]:
        """Show progress until the block ends."""
        if self._quiet:
            return _polled(self._rests(state), REFRESH_S)
        return _polled(self._lines(state), REFRESH_S) if self._as_lines else self._live(state)

    @contextmanager
    def _live(self, state: RunState) -> Iterator[None]:
        facts = _Facts(state, self._clock)
        columns: list[str | ProgressColumn] = [
            SpinnerColumn(),
            BarColumn(bar_width=20),
            TextColumn("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
            facts,
        ]
        with Progress(*columns, console=self._console, transient=True, refresh_per_second=4, expand=True) as bar:
            task = bar.add_task("", total=state.planned)

            def show() -> None:
                bar.update(task, completed=state.done + state.resumed)

            with _polled(show, REFRESH_S), _polled(lambda: _look(state), LOOK_S) as looking:
                looking.add_done_callback(_let_go)
                state.is_drawn = True
                try:
                    yield
                finally:
                    state.is_drawn = False

    def _rests(self, state: RunState) -> Callable[[], None]:
        """Return what says nothing, but not for minutes: a rest that a server asked for is told once."""
        told = [0.0, 0.0]

        def line() -> None:
            if (words := state.pacing()) and not told[1]:
                told[1] = 1.0
                self._console.print(plain(words))
            left = state.paused_until - self._clock()
            if left >= LONG_REST_S and state.paused_until > told[0]:
                told[0] = state.paused_until + LONG_REST_S
                self._console.print(plain(f"waits {left:.0f} s as the server asked: {state.last_error[:ERROR_SHOWN]}"))

        return line

    def _lines(self, state: RunState) -> Callable[[], None]:
        """Return what prints a line now and then."""
        started = self._clock()
        last = [started]

        def line() -> None:
            if self._clock() - last[0] >= LINE_EVERY_S:
                last[0] = self._clock()
                self._console.print(plain(progress_line(state, self._clock() - started, last[0])))

        return line


@contextmanager
def _polled(show: Callable[[], None], every_s: float) -> Iterator[asyncio.Task[None]]:
    """Call a function every so many seconds until the block ends."""
    poll = asyncio.get_running_loop().create_task(_poll(show, every_s))
    try:
        yield poll
    finally:
        poll.cancel()


async def _poll(show: Callable[[], None], every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        show()


def _look(state: RunState) -> None:
    if state.onlooker is not None:
        state.onlooker.look()


def _let_go(looking: asyncio.Task[None]) -> None:
    """Take what a scorer raised while one looked on: then there is no figure, and scoring the run will say why."""
    if not looking.cancelled():
        looking.exception()


class _Facts(ProgressColumn):
    def __init__(self, state: RunState, clock: Callable[[], float]) -> None:
        super().__init__(Column(ratio=1, no_wrap=True, overflow="ellipsis"))  # one line, whatever is said
        self._state, self._clock = state, clock
        self._started = clock()

    def render(self, task: Task) -> Text:
        """Return the counters beside the bar."""
        now = self._clock()
        return plain(facts(self._state, now - self._started, now))


def progress_line(state: RunState, elapsed_s: float, now: float) -> str:
    """Return one line for a log: how far, how fast, how long still."""
    done = state.done + state.resumed
    left = (state.planned - done) * elapsed_s / state.done if state.done else None
    eta = f" · about {left:,.0f} s left" if left is not None else ""
    return f"{done}/{state.planned} {facts(state, elapsed_s, now)}{eta}"


def facts(state: RunState, elapsed_s: float = 0.0, now: float = 0.0) -> str:
    """Return what is worth knowing while one waits, most important first, since a narrow terminal cuts the end.

    Figure so far, what goes wrong, why it waits; then speed, cost and the last error.
    """
    parts = [_so_far(state)]
    counted = (
        ("cached", state.cached),
        ("failed", state.failed),
        ("cut off", state.cut_off),
        ("empty", state.empty),
    )
    parts += [f"{count:,} {name}" for name, count in counted if count]
    parts.append(plural(state.retries, "retry") if state.retries else "")
    if words := state.pacing():
        parts.append(words)
    if state.paused_until > now > 0.0:
        parts.append(f"waits {state.paused_until - now:.0f} s as the server asked")
    parts += [
        *_speed(state, elapsed_s),
        _cost(state),
        f"{state.in_flight} in flight (limit {state.slots})" if state.slots else "",
        state.replicas(),
    ]
    if state.retries and state.last_error:
        parts.append(f"last: {state.last_error[:ERROR_SHOWN]}")
    return " · ".join(part for part in parts if part)


def _so_far(state: RunState) -> str:
    words = state.onlooker.words if state.onlooker is not None and state.is_drawn else ""
    return f"{words}, those stored before left out" if words and state.resumed else words


def _speed(state: RunState, elapsed_s: float) -> list[str]:
    if elapsed_s <= 0.0 or not state.done:
        return []
    tokens = state.output_tokens / elapsed_s
    return [f"{state.done / elapsed_s:.1f}/s", f"{tokens:,.0f} tokens/s" if tokens >= 1 else ""]


def _cost(state: RunState) -> str:
    """Say what was spent and, once some replies came, what all of them will cost at this rate."""
    if state.limits.prices is None:
        return ""
    spent, bill = state.limits.spent, state.limits.bill
    asked, left = state.done - state.cached, state.planned - state.resumed - state.done
    trend = f" of about {money(spent * (1 + left / asked))}" if asked >= TREND_AFTER and left > 0 else ""
    unknown = f" and {plural(bill.unpriced, 'reply')} of unknown price" if bill.unpriced else ""
    return f"cost {money(spent)}{trend} {bill.prices.currency}".rstrip() + unknown
