"""What the terminal shows: foreign text cannot command it, numbers have the digits one can use, progress tells what is wrong."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest
from rich.console import Console

from snellen.core.text import clean_text, show_text
from snellen.core.types import Failure, FailureKind, Prediction, TrialKey, Usage
from snellen.engine.state import RunState
from snellen.report import progress
from snellen.report.progress import Progressbar, facts
from snellen.report.terminal import dimension_table, group_tables, plain, results_table, tells_more
from snellen.report.written import number

ESCAPES = [
    "\x1b[2J",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x07",
    "\x9b31m",
    "\x1bP1$r\x1b\\",
    "\u202egnp.exe",
    "\u2066x",
    "\r",
    "\x00",
    "\x7f",
    "\u200f",
]


def shown(*renderables: Any, tty: bool = True) -> str:
    console = Console(file=io.StringIO(), force_terminal=tty, color_system=None, width=120)
    for each in renderables:
        console.print(each)
    return console.file.getvalue()  # type: ignore[attr-defined]


def estimate(value: float | None, n: int = 4, ci95: list[float] | None = None) -> dict[str, Any]:
    return {"value": value, "stderr": None, "ci95": ci95, "n": n, "unscored": 1, "failed": 2}


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_foreign_text_commands_the_terminal(escape: str) -> None:
    result = {
        "metrics": {f"m{escape}": estimate(0.5)},
        "groups": {f"k{escape}": {f"v{escape}": {"m": estimate(0.5)}, "w": {"m": estimate(0.5)}}},
    }
    text = shown(
        plain(escape),
        results_table(f"t{escape}", result),
        *group_tables(result),
        dimension_table({f"d{escape}": (0.5, 1), "e": (0.5, 1)}),
    )
    assert not set(text) & set("\x1b\x07\x9b\r\x00\x7f\u202e\u2066\u200f")
    assert "\ufffd" in text


def test_markup_is_text() -> None:
    assert "[red]x[/red]" in shown(plain("[red]x[/red]"))
    assert "[bold]t" in shown(results_table("[bold]t", {"metrics": {}}))


def test_clean_and_showable_text() -> None:
    assert clean_text("plain ä 😀\n\t") == "plain ä 😀\n\t"
    assert clean_text("a\ud83d\x00b") == "a\ufffd\ufffdb"
    assert show_text("a\x1bb\nc\td\udc80") == "a\ufffdb\nc\td\ufffd"


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "0.123"), (9.9996, "10.000"), (10.0, "10.0"), (-12.34, "-12.3"), (0.0, "0.000")]
)
def test_numbers_have_the_digits_one_can_use(value: float, text: str) -> None:
    assert number(value) == text


def test_a_table_shows_intervals_and_counts_and_leaves_out_what_says_nothing() -> None:
    metrics = {
        "accuracy": estimate(0.5, ci95=[0.25, 0.75]),
        "accuracy_strict": estimate(0.5),
        "unread_rate": estimate(0.0),
        "refusal_rate": estimate(0.25),
        "accuracy_macro_topic": estimate(0.4),
        "accuracy_variance_wording": estimate(0.1),
        "empty": estimate(None),
    }
    text = shown(results_table("t", {"metrics": metrics}))
    lines = {line.split("│")[1].strip(): line for line in text.splitlines() if line.startswith("│")}
    assert list(lines) == ["accuracy", "empty", "refusal_rate"]
    assert "25.0 – 75.0" in lines["accuracy"]
    assert [cell.strip() for cell in lines["empty"].split("│")[2:4]] == ["–", "–"]
    assert [cell.strip() for cell in lines["accuracy"].split("│")[4:9]] == ["–", "4", "–", "2", "1"]


def test_a_table_shows_the_bounds_and_the_share_that_was_read() -> None:
    metrics = {"accuracy": {**estimate(0.25), "bounds": [0.25, 0.5], "read": {"value": 1 / 3, "n": 3}}}
    metrics["accuracy_read"] = estimate(1 / 3)
    text = shown(results_table("t", {"metrics": metrics}))
    lines = {line.split("│")[1].strip(): line for line in text.splitlines() if line.startswith("│")}
    assert [cell.strip() for cell in lines["accuracy"].split("│")[4:7]] == ["25.0 – 50.0", "4", "75.0 %"]
    assert "33.3 %" in lines["accuracy_read"]


def test_a_strict_twin_is_shown_where_it_differs() -> None:
    metrics = {"accuracy": estimate(0.5), "accuracy_strict": estimate(0.4)}
    assert tells_more("accuracy_strict", metrics)
    assert not tells_more("accuracy_strict", metrics | {"accuracy_strict": estimate(None)})


def test_groups_are_shown_when_there_are_a_few() -> None:
    def groups(count: int) -> dict[str, Any]:
        return {
            "groups": {
                "topic": {str(n): {"m": estimate(0.5, ci95=[0.0, 1.0]), "m_rate": estimate(0.0)} for n in range(count)}
            }
        }

    assert [len(list(group_tables(groups(count)))) for count in (1, 2, 12, 13)] == [0, 1, 1, 0]
    text = shown(*group_tables(groups(2)))
    assert "50.0 % [0.0 – 100.0]" in text
    assert "m_rate" not in text


def test_dimensions_and_their_mean() -> None:
    assert "30.0 %" in shown(dimension_table({"a": (0.2, 3), "b": (0.4, 1)})).splitlines()[-2]


def test_progress_tells_what_is_wrong() -> None:
    state = RunState(planned=10)
    assert facts(state) == ""
    state.count(Prediction(TrialKey("t", "s"), failure=Failure(FailureKind.SERVER, "HTTP 500: \x1b[2J" + "x" * 100)))
    state.count(Prediction(TrialKey("t", "s"), text="a", cached=True, usage=Usage(5, None)))
    state.retries, state.slots, state.in_flight = 3, 8, 2
    text = facts(state)
    assert text.startswith("1 cached · 1 failed · 3 retries · 2 in flight (limit 8) · last: HTTP 500")
    assert len(text) < 140
    assert (state.done, state.failed, state.failures, state.input_tokens, state.output_tokens) == (
        2,
        1,
        {"server": 1},
        5,
        0,
    )


@pytest.mark.parametrize("tty", [True, False])
def test_progress_on_a_terminal_and_on_a_pipe_is_neutral_text(monkeypatch: pytest.MonkeyPatch, tty: bool) -> None:
    monkeypatch.setattr(progress, "REFRESH_S", 0.0)
    ticks = iter(range(0, 100_000, 20))
    console = Console(file=io.StringIO(), force_terminal=tty, color_system=None, width=200)
    state = RunState(planned=7, done=3, resumed=1, retries=1, last_error="bad \x1b]0;title\x07 \u202e")

    async def watch() -> None:
        with Progressbar(console, clock=lambda: float(next(ticks))).watch(state):
            for _ in range(20):
                await asyncio.sleep(0)

    asyncio.run(watch())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "]0;title\x07" not in text
    assert "\u202e" not in text
    assert "bad" in text
    assert tty or "4/7" in text


def test_quiet_is_quiet() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)

    async def watch() -> None:
        with Progressbar(console, quiet=True).watch(RunState(planned=3)):
            await asyncio.sleep(0)

    asyncio.run(watch())
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
