"""The figure so far: the one that the results will have, within its share of the processor, or none."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from made_runs import make_run, make_task
from snellen.api.run import run_settings
from snellen.api.settings import RunSettings
from snellen.core.builtins import default_registry
from snellen.core.tasks import Figure, Task
from snellen.core.types import Prediction, Request, Sample
from snellen.engine.state import RunState
from snellen.report import so_far
from snellen.report.progress import Progressbar, facts
from snellen.report.so_far import SoFar
from snellen.report.written import written, written_interval
from snellen.scoring.protocols.readings import OWN
from snellen.scoring.run import score_run
from snellen.store.reader import RunReader, Trial

RICH = {"total": lambda: 1e9}
"""A process that has used so much that its share never ends."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, list[Trial], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("so-far")
    with RunReader(make_run(folder, count=40, task=make_task(variants=("base", "wording=1"), repeats=3))) as reader:
        task = reader.header().tasks[0]
        return (
            task,
            list(reader.trials(task.name)),
            score_run(reader, default_registry(), keep=False)["tasks"][task.name],
        )


def shown(task: Task, trials: Sequence[Trial], **clocks: Any) -> SoFar:
    """Return what is told after some replies, looked at now and then."""
    one = SoFar([task], default_registry(), OWN, **{**RICH, **clocks})
    for number, (sample, request, prediction, _) in enumerate(trials):
        one.take(sample, request, prediction)
        if number % 100 == 0:
            look_at_all(one)
    look_at_all(one)
    return one


def look_at_all(one: SoFar) -> None:
    while one._waiting:
        one.look()


def test_it_is_the_figure_of_the_results(stored: tuple[Task, list[Trial], dict[str, Any]]) -> None:
    task, trials, result = stored
    accuracy = result["metrics"]["accuracy"]
    unread = accuracy["n"] - accuracy["read"]["n"]
    assert unread and accuracy["failed"], "the fixture has all kinds of replies"
    value, interval = written("accuracy", accuracy), written_interval("accuracy", accuracy)
    counts = f"240 replies, {unread} unread"
    assert shown(task, trials).words == f"accuracy {value} [{interval}] so far ({counts})"


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(5, 240))
def test_in_whatever_order_replies_come(stored: Any, random: Any, count: int) -> None:
    task, trials, _ = stored
    chosen = random.sample(trials, count)
    assert shown(task, chosen).words == shown(task, sorted(chosen, key=lambda trial: trial.row)).words


def test_a_handful_of_replies_says_nothing(stored: Any) -> None:
    task, trials, _ = stored
    assert shown(task, trials[:9]).words == ""
    assert shown(task, trials[:10]).words != ""


def test_no_more_than_its_share_of_the_processor(stored: Any) -> None:
    task, trials, _ = stored
    clock = [0.0]

    def own() -> float:
        clock[0] += 0.001  # a reply takes a millisecond
        return clock[0]

    total = [1.0]
    one = SoFar([task], default_registry(), OWN, total=lambda: total[0], own=own)
    for sample, request, prediction, _ in trials:
        one.take(sample, request, prediction)
    for _ in range(100):
        one.look()
    limit = so_far.SHARE + so_far.AT_ONCE_S + 0.005
    assert 0 < one._spent_s <= limit
    assert f"of {len(trials)} replies" in one.words, "it says of how many replies the figure is"
    total[0] = 2.0
    read = len(one._waiting)
    one.look()
    assert len(one._waiting) < read


def test_what_waits_is_bounded(stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task, trials, _ = stored
    monkeypatch.setattr(so_far, "MOST_WAITING", 30)
    one = SoFar([task], default_registry(), OWN, **RICH)
    for sample, request, prediction, _ in trials:
        one.take(sample, request, prediction)
    look_at_all(one)
    assert "so far (30 of 240 replies" in one.words


SILENT = [
    {"infer": "every"},
    {"infer": "chain"},
    {"infer": "document"},
    {"aggregates": ("caption",)},
    {"scorers": ()},
    {"figures": (Figure("circular", "all-of", by=("group",)),), "headline": "circular"},
    {"figures": (Figure("circular", "all-of", by=("group",)),)},
    {"headline": "anls"},
]


@pytest.mark.parametrize("changed", SILENT, ids=str)
def test_what_is_no_figure_of_single_trials_is_not_told(stored: Any, changed: dict[str, Any]) -> None:
    task, trials, _ = stored
    assert shown(msgspec.structs.replace(task, **changed), trials).words == ""


@pytest.mark.parametrize("changed", [{"headline": "accuracy"}, {"aggregates": ("calibration",)}], ids=str)
def test_side_figures_do_not_silence_it(stored: Any, changed: dict[str, Any]) -> None:
    task, trials, _ = stored
    assert shown(msgspec.structs.replace(task, **changed), trials).words.startswith("accuracy ")


def test_several_tasks_are_told_by_name(stored: Any) -> None:
    task, trials, _ = stored
    one = SoFar([task, msgspec.structs.replace(task, name="other")], default_registry(), OWN, **RICH)
    for sample, request, prediction, _ in trials:
        one.take(sample, request, prediction)
    look_at_all(one)
    assert one.words.startswith("shapes: accuracy ")


class Failing:
    """An onlooker whose scorer fails at the second look."""

    words, looks = "accuracy 50.0 % so far", 0

    def take(self, sample: Sample, request: Request, prediction: Prediction) -> None:
        """Hear of it."""

    def look(self) -> None:
        """Fail in time."""
        self.looks += 1
        if self.looks > 1:
            self.words = ""
            raise ZeroDivisionError


def test_a_terminal_draws_it_and_a_scorer_that_fails_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snellen.report.progress.LOOK_S", 0.01)
    out, state, onlooker = io.StringIO(), RunState(planned=9), Failing()
    state.onlooker = onlooker

    async def go() -> None:
        with Progressbar(Console(file=out, force_terminal=True, width=120)).watch(state):
            assert state.is_drawn
            while onlooker.looks < 2:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02)

    asyncio.run(go())
    assert onlooker.looks == 2
    assert not state.is_drawn


def test_it_is_said_where_stored_replies_are_left_out() -> None:
    state = RunState(planned=9, resumed=3, onlooker=Failing(), is_drawn=True)
    assert facts(state) == "accuracy 50.0 % so far, those stored before left out"
    state.is_drawn = False
    assert facts(state) == ""


class Seer:
    """A watcher that looks on as a terminal does, or does not."""

    def __init__(self, *, drawn: bool) -> None:
        self.drawn, self.words, self.heard = drawn, "", 0

    def planned(self, plan: Any, estimate: Any) -> None:
        """Hear of the plan."""

    def told(self, line: str) -> None:
        """Hear a line."""

    def agrees(self, question: str) -> bool:
        """Agree."""
        return True

    @contextmanager
    def watch(self, state: RunState) -> Iterator[None]:
        """Draw, or not."""
        state.is_drawn = self.drawn
        yield
        assert isinstance(state.onlooker, SoFar)
        self.heard = sum(one.replies for one in state.onlooker._tasks.values())
        state.onlooker._total = RICH["total"]
        look_at_all(state.onlooker)
        self.words = state.onlooker.words


@pytest.mark.parametrize("drawn", [True, False])
def test_a_run_is_read_only_while_it_is_drawn(tmp_path: Path, drawn: bool) -> None:
    rows = [f'{{"id": "{n}", "question": "Which?", "options": ["a", "bb"], "answer": "B"}}' for n in range(12)]
    (tmp_path / "own.jsonl").write_text("\n".join(rows))
    seer = Seer(drawn=drawn)
    settings = RunSettings(tasks=(str(tmp_path / "own.jsonl"),), model="blind/longest", output_dir=tmp_path / "run")
    result = run_settings(settings, seer)
    accuracy = msgspec.to_builtins(result.metrics["own"]["accuracy"])
    told = f"accuracy {written('accuracy', accuracy)} [{written_interval('accuracy', accuracy)}] so far (12 replies)"
    assert (seer.heard, seer.words) == ((12, told) if drawn else (0, ""))
