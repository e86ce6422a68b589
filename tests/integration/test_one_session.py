"""Whatever asks a model, a run, an exam, a judge or a draft: one assembly, so the same refusals and the same limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import run_command
from exam_observer import Observer, sit
from exam_server import Ledger, serving
from judge_doubles import judge_model
from line_doubles import Scripted, jobs
from made_runs import make_run
from snellen.api.judges import ask_judge
from snellen.api.load import load_run
from snellen.api.session import ModelJobs, ask_jobs
from snellen.api.settings import RunSettings
from snellen.api.stored_results import results_of
from snellen.core.errors import EnvironmentProblem, RunMismatch, UsageError
from snellen.core.types import Prediction, Request, Usage
from snellen.scoring.judges.judge_card import Judge, read_judge

TESTS = ("orientation", "size")
FIRST, SECOND = "http://one:8000/v1", "http://two:8000/v1"
CARD = {"choices": {"RIGHT": 1.0, "WRONG": 0.0}, "prompt": "Case {case}.\n{fence}\n{answer}\n{fence}"}


def served(model: Scripted, url: str, said: str = "") -> Any:
    """Let a scripted model be one that is served somewhere."""

    def identity() -> Mapping[str, Any]:
        return {"model": model.name, "base_url": url}

    model.identity = identity  # type: ignore[method-assign]
    model.said = {"root": said} if said else {}  # type: ignore[attr-defined]
    return model


def judge() -> Judge:
    return read_judge(CARD, "mine")


def judge_at(url: str, said: str = "") -> Any:
    return served(judge_model(lambda request, answer: {"verdict": "RIGHT"}), url, said)


def settings(**more: Any) -> RunSettings:
    return RunSettings(tasks=(), model="scripted/judge", cache=False, **more)


def test_an_exam_continued_at_another_server_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    ledger, folder = Ledger(), tmp_path / "run"

    def at(url: str, **more: Any) -> Any:
        how = {"output_dir": folder, "told": ledger.tell, "cache": False, "mode": "quick", "tests": TESTS}
        return snellen.exam("openai/known", base_url=url, **how, **more)

    with serving(Observer(), ledger) as first, serving(Observer(), ledger) as second:
        assert at(first, requests=32).interrupted
        before = (folder / "exam.json").read_bytes()
        with pytest.raises(RunMismatch, match=f"{first}.*{second}"):
            at(second)
        assert (folder / "exam.json").read_bytes() == before
        assert at(second, same_model=True, requests=64).state.done > 32
        with load_run(folder) as run:
            assert [row["who"]["address"] for row in run.meta("answerers")] == [first, second]


def test_a_judge_continued_at_another_server_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", count=6)
    ask_judge(folder, judge(), judge_at(FIRST), settings())
    with pytest.raises(RunMismatch, match=f"{FIRST}.*{SECOND}"):
        ask_judge(folder, judge(), judge_at(SECOND), settings())
    assert ask_judge(folder, judge(), judge_at(SECOND), settings(same_model=True)).done == 0


def test_a_judge_whose_server_serves_another_checkpoint_now_is_refused(tmp_path: Path) -> None:
    folder, model = make_run(tmp_path / "run", count=30), judge_at(FIRST, "/models/a")
    with pytest.raises(EnvironmentProblem, match="--deadline"):
        ask_judge(folder, judge(), model, settings(deadline_s=1e-6, max_workers=1))
    with pytest.raises(RunMismatch, match="/models/b"):
        ask_judge(folder, judge(), judge_at(FIRST, "/models/b"), settings())
    ask_judge(folder, judge(), judge_at(FIRST, "/models/a"), settings())


class Elsewhere(Observer):
    """Served at an address, where a checkpoint has a name."""

    def __init__(self, said: str, **traits: Any) -> None:
        super().__init__(**traits)
        self.said = {"root": said}

    def identity(self) -> Mapping[str, Any]:
        return {**super().identity(), "base_url": FIRST}


def test_an_exam_whose_server_serves_another_checkpoint_now_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    sit(tmp_path / "run", Elsewhere("/models/a"), mode="quick", tests=TESTS, requests=32)
    before = (tmp_path / "run" / "exam.json").read_bytes()
    with pytest.raises(RunMismatch, match="/models/b"):
        sit(tmp_path / "run", Elsewhere("/models/b"), mode="quick", tests=TESTS)
    assert (tmp_path / "run" / "exam.json").read_bytes() == before
    whole = sit(tmp_path / "run", Elsewhere("/models/a"), mode="quick", tests=TESTS)
    assert not whole.interrupted
    finished = Elsewhere("/models/a")
    assert sit(tmp_path / "run", finished, mode="quick", tests=TESTS).exam == whole.exam, "nothing is left to ask"
    assert not finished.asked


def test_an_exam_is_not_continued_with_other_pictures(tmp_path: Path) -> None:
    sit(tmp_path / "run", Observer(), mode="quick", tests=TESTS, requests=32)
    one, other = sorted((tmp_path / "run" / "stimuli").iterdir())[:2]
    one.write_bytes(other.read_bytes())
    with pytest.raises(RunMismatch, match=one.name):
        sit(tmp_path / "run", Observer(), mode="quick", tests=TESTS)


def test_a_judge_is_asked_as_its_settings_say(tmp_path: Path, mock_server: Any) -> None:
    folder = make_run(tmp_path / "run", count=4)
    server = mock_server("--batch", "seconds=0.05", "--answer", "RIGHT")
    command = ["score", folder, "--judge", "correctness", "--judge-model", "openai/mock", "--url", server.base_url]
    assert run_command([*command, "--judge-arg", "max_costs=5"]) == 2
    assert not (folder / "judge-correctness").exists()
    batched = ("batch=true", "batch_poll_s=0.02", "price='1,2'", "max_cost=5", "rate=1000")
    assert run_command([*command, "--json", *(part for one in batched for part in ("--judge-arg", one))]) == 0
    with load_run(folder / "judge-correctness") as votes:
        (task,) = votes.tasks()
        told = [bool(trial.prediction.detail.get("batch")) for trial in votes.trials(task)]
    assert told.count(True) == len(told) - 1, "all but the first, which tells what the server refuses"


def test_drafts_are_refused_at_another_server_too(tmp_path: Path) -> None:
    def ask(url: str) -> Any:
        return ask_jobs(ModelJobs(tmp_path / "run", served(Scripted(), url), list(jobs(3)), {"t": 3}, {}), settings())

    assert ask(FIRST).done == 3
    with pytest.raises(RunMismatch, match=SECOND):
        ask(SECOND)


async def priced(request: Request) -> Prediction:
    return Prediction(request.key, text="ok", usage=Usage(1_000_000, 0))


def test_a_limit_in_money_holds_for_drafts_as_for_runs(tmp_path: Path) -> None:
    def ask(**more: Any) -> Any:
        work = ModelJobs(tmp_path / "run", served(Scripted(priced), FIRST), list(jobs(9)), {"t": 9}, {})
        return ask_jobs(work, settings(**more))

    with pytest.raises(UsageError, match="no price is known"):
        ask(max_cost=3.0)
    state = ask(max_cost=3.0, price="1,1")
    assert (state.done, state.over_limit, state.limits.spent) == (3, True, 3.0)
    assert ask(price="1,1").done == 6


def test_an_exam_ends_at_its_deadline_and_its_price_may_come_from_the_settings(tmp_path: Path) -> None:
    ledger = Ledger()
    how: dict[str, Any] = {"told": ledger.tell, "cache": False, "mode": "quick", "tests": TESTS}
    with serving(Observer(), ledger) as url:
        late = snellen.exam("openai/known", base_url=url, output_dir=tmp_path / "late", deadline_s=1e-6, **how)
        assert late.state.overdue and "--deadline" in late.exam["ended"]
        paid = snellen.exam(
            "openai/known", base_url=url, output_dir=tmp_path / "paid", price="1000,1000", requests=32, **how
        )
    assert paid.state.done
    assert paid.state.limits.spent == pytest.approx(0.305 * paid.state.done)
    assert results_of(tmp_path / "paid")["cost"]["paid"] == pytest.approx(paid.state.limits.spent)


def test_an_exam_asks_no_batches(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="batch"):
        snellen.exam("openai/known", base_url=FIRST, output_dir=tmp_path / "run", batch=True)


def test_the_exam_command_has_the_limits_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["exam", "--model", "blind/first", "--tests", "orientation", "--quick", "-o", tmp_path / "run", "--quiet"]
    assert (
        run_command([*command, "--deadline", "0.000001", "--rate", "100000", "--max-errors", "5%", "--same-model"]) == 3
    )
    assert run_command(command) == 0
    assert run_command([*command, "--max-cost", "1", "--budget", "1 euro"]) == 2
    assert "--max-cost" in capsys.readouterr().err
