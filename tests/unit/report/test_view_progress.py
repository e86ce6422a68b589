"""Progress: what is told while one waits."""

from __future__ import annotations

import asyncio
import io

import PIL.Image
import pytest
from rich.console import Console

from snellen.core.errors import UsageError
from snellen.core.types import Prediction, TrialKey, Usage
from snellen.engine.limits import Limits
from snellen.engine.state import RunState
from snellen.model.served.prices import Prices, parse_price
from snellen.report.progress import Progressbar, facts, progress_line
from snellen.report.terminal_image import blocks, escape_sequence, protocol_of

KEY = TrialKey("t", "s")


def spent() -> Limits:
    """Two thousandths of a euro, and one reply of unknown price."""
    limits = Limits(prices=Prices(2.0, 0.0, "EUR"))
    limits.count(Prediction(KEY, text="x", usage=Usage(1_000, 0)))
    limits.count(Prediction(KEY, text="x"))
    return limits


def busy() -> RunState:
    state = RunState(
        planned=100,
        slots=8,
        in_flight=5,
        limits=spent(),
        retries=2,
        last_error="429 too many \x1b[2J requests",
    )
    for _ in range(10):
        state.count(Prediction(KEY, text="x", usage=Usage(100, 50), finish="length"))
    state.count(Prediction(KEY, text="  "))
    return state


def test_facts_tell_speed_cost_trouble_and_why() -> None:
    told = facts(busy(), 2.0)
    for part in (
        "5.5/s",
        "250 tokens/s",
        "cost 0.00200 of about 0.0182 EUR and 1 reply of unknown price",
        "5 in flight (limit 8)",
        "10 cut off",
        "1 empty",
        "2 retries",
        "last: 429 too many",
    ):
        assert part in told, part


def test_facts_tell_how_long_a_server_asked_to_wait() -> None:
    state = busy()
    state.paused_until = 112.0
    assert "waits 12 s as the server asked" in facts(state, 2.0, 100.0)
    assert "waits" not in facts(state, 2.0, 113.0)


def test_a_quiet_run_tells_a_long_rest_once_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snellen.report.progress.REFRESH_S", 0.001)
    written, looks = io.StringIO(), [0]

    def clock() -> float:
        looks[0] += 1
        return 100.0

    async def go(paused_until: float) -> None:
        state, looks[0] = busy(), 0
        state.paused_until = paused_until
        with Progressbar(Console(file=written, width=200), quiet=True, clock=clock).watch(state):
            while looks[0] < 5:
                await asyncio.sleep(0)

    asyncio.run(go(105.0))
    assert written.getvalue() == ""
    asyncio.run(go(400.0))
    assert written.getvalue().count("\n") == 1
    assert "waits 300 s as the server asked: 429" in written.getvalue()


def test_a_line_for_a_log_tells_what_is_left() -> None:
    assert progress_line(busy(), 11.0, 0.0).startswith("11/100 ")
    assert "about 89 s left" in progress_line(busy(), 11.0, 0.0)
    assert "left" not in progress_line(RunState(planned=5), 1.0, 0.0)


def test_nothing_done_yet_is_quiet() -> None:
    assert facts(RunState(planned=10), 5.0) == ""


PRICED = [
    (None, None),
    ("1,2", Prices(1, 2, "", source="--price")),
    ("0.5, 1.5,0.1", Prices(0.5, 1.5, "", 0.1, source="--price")),
]


@pytest.mark.parametrize(("told", "price"), PRICED)
def test_prices(told: str | None, price: Prices | None) -> None:
    assert parse_price(told) == price


@pytest.mark.parametrize("told", ["", "1", "a,b", "1,2,3,4", "-1,2", "nan,1", "inf,1"])
def test_bad_prices_are_refused_with_the_form(told: str) -> None:
    with pytest.raises(UsageError, match="IN,OUT"):
        parse_price(told)


@pytest.mark.parametrize(("as_lines", "terminal"), [(True, True), (False, False)])
def test_plain_lines_have_no_escapes(as_lines: bool, terminal: bool) -> None:
    out = io.StringIO()
    now = [0.0]

    def clock() -> float:
        now[0] += 6.0
        return now[0]

    async def watch() -> None:
        bar = Progressbar(Console(file=out, force_terminal=terminal, width=200), as_lines=as_lines, clock=clock)
        with bar.watch(busy()):
            while not out.getvalue():
                await asyncio.sleep(0.01)

    asyncio.run(watch())
    assert out.getvalue().startswith("11/100")
    assert "\x1b[?25l" not in out.getvalue()


def test_quiet_prints_nothing() -> None:
    out = io.StringIO()

    async def go() -> None:
        with Progressbar(Console(file=out), quiet=True).watch(busy()):
            pass

    asyncio.run(go())
    assert out.getvalue() == ""


class TestPictures:
    def test_terminals_are_known_by_what_they_say(self) -> None:
        assert protocol_of({"TERM": "xterm-kitty"}) == "kitty"
        assert protocol_of({"TERM_PROGRAM": "WezTerm"}) == "iterm"
        assert protocol_of({"TERM": "xterm-256color"}) == "blocks"

    def test_blocks_are_two_pixels_high(self) -> None:
        text = blocks(PIL.Image.new("RGB", (64, 32), "red"), 64, 32)
        assert text.plain.splitlines() == ["▀" * 64] * 16

    def test_protocols_carry_a_png(self) -> None:
        picture = PIL.Image.new("RGB", (200, 200), "red")
        assert escape_sequence(picture, "iterm").startswith("\x1b]1337;File=inline=1")
        assert escape_sequence(picture, "kitty").startswith("\x1b_Gf=100,a=T,")
