"""The plan on a terminal: five lines at most, the one that matters first; a log has all of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from snellen.api.plan import make_plan
from snellen.api.plan_words import short_plan
from snellen.api.run_cost import estimate_run
from snellen.api.settings import RunSettings, make_record
from snellen.engine.state import RunState
from snellen.report.console import WholeConsole
from snellen.report.progress import Progressbar


def write_rows(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def short_of(*tasks: str, **settings: object) -> list[str]:
    told = make_record(
        RunSettings, "run", {"tasks": tasks, "model": "openai/x", "base_url": "http://127.0.0.1:9/v1", **settings}
    )
    plan = make_plan(told)
    return short_plan(plan, estimate_run(plan, told))


@pytest.fixture
def choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write_rows(
        tmp_path / "my.jsonl",
        [{"id": n, "question": "Which?", "options": ["cat", "dog"], "answer": "B"} for n in range(6)],
    )


def test_what_is_guessed_of_the_rows_comes_first(choices: str, tmp_path: Path) -> None:
    assert "6 questions" in short_of(choices)[0]
    rows = [{"id": n, "question": "Which?", "options": ["cat", "dog"], "answer": n % 2} for n in range(6)]
    first, second, *_ = short_of(write_rows(tmp_path / "index.jsonl", rows))
    assert first.startswith("note: ") and "index" in first
    assert second.startswith("index: 6 questions")


def test_however_many_tasks_there_are_five_lines_at_most(choices: str, tmp_path: Path) -> None:
    more = [
        write_rows(tmp_path / f"t{n}.jsonl", [{"id": 1, "question": "Which?", "options": ["cat", "dog"], "answer": 1}])
        for n in range(5)
    ]
    lines = short_of(choices, *more, price="1,2", num_infers=3)
    assert len(lines) <= 5
    assert any("6 tasks: 33 trials" in line for line in lines) and "further notes" in lines[0]
    assert len(short_of(choices, more[0], price="1,2")) <= 5
    assert "× 1 variant × 3 inferences = 18 trials" in short_of(choices, num_infers=3)[0]


def test_progress_stays_on_one_line_of_a_narrow_terminal() -> None:
    import asyncio

    state = RunState(planned=60)
    state.done, state.failed, state.retries, state.slots, state.in_flight = 20, 3, 4, 32, 8
    state.last_error = "duplicate response on a reused connection; retried " * 3
    console = WholeConsole(force_terminal=True, width=80, record=True)

    async def watched() -> None:
        with Progressbar(console).watch(state):
            await asyncio.sleep(0.6)

    with console.capture() as shown:
        asyncio.run(watched())
    drawn = [line for line in shown.get().replace("\r", "\n").split("\n") if "failed" in line]
    assert drawn and all("3 failed" in line and "duplicate" not in line for line in drawn), drawn
    assert "\x1b[1A\x1b[2K\x1b[1A" not in shown.get(), "more than one line was drawn over"
