"""What a run costs: said before, counted while it goes on, kept within a limit, and in the results after."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from command_line import run_command
from emulator import emulator
from snellen.api.plan import make_plan
from snellen.api.run_cost import describe_cost, estimate_run, note_age
from snellen.core.errors import UsageError
from snellen.core.secret import Secret
from snellen.kits.mock.server import MockOptions, Running
from snellen.model.served.prices import Prices, money

WORDS = "Which of the shapes in the picture has the longest side, and how often does it appear beside a green one?"


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Make forty questions of different length, with one picture or two."""
    for number in range(2):
        PIL.Image.new("RGB", (300, 200), (number, 0, 0)).save(tmp_path / f"{number}.png")
    lines = []
    for number in range(40):
        pictures = ["0.png"] if number % 3 else ["0.png", "1.png"]
        question = f"{number}: " + " ".join([WORDS] * (1 + number % 4))
        options = {"A": "the square", "B": "the circle", "C": "none of them"}
        lines.append({"id": str(number), "question": question, "images": pictures, "options": options, "answer": "A"})
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def server(mock_server: Callable[..., Running]) -> str:
    return mock_server().base_url


def settings(rows: Path, server: str, folder: Path, **more: Any) -> snellen.RunSettings:
    return snellen.RunSettings(tasks=(str(rows),), model="openai/mock", base_url=server, output_dir=folder, **more)


def test_the_estimate_is_within_a_tenth_of_the_servers_bill(rows: Path, server: str, tmp_path: Path) -> None:
    asked = settings(rows, server, tmp_path / "run")
    estimate = estimate_run(make_plan(asked), asked)
    results = snellen.run(asked).results
    cost = estimate.cost()
    assert cost is not None
    assert cost == pytest.approx(results["cost"]["value"], rel=0.10)
    usage = results["usage"]
    assert results["cost"]["value"] == pytest.approx((usage["input_tokens"] * 0.5 + usage["output_tokens"] * 1.5) / 1e6)


@pytest.mark.parametrize("images", [True, False], ids=["pictures", "text"])
@pytest.mark.parametrize("route", [None, "letters"])
@pytest.mark.parametrize("options", [{}, {"calibration": "content-free"}], ids=["plain", "calibrated"])
def test_the_estimate_of_likelihoods_is_within_a_tenth_of_the_bill(
    options: dict[str, str], route: str | None, images: bool, rows: Path, tmp_path: Path
) -> None:
    """Every candidate is a request with the whole prompt; what the server counts is what the run says it cost."""
    if not images:
        texts = [
            {key: value for key, value in json.loads(line).items() if key != "images"}
            for line in rows.read_text().splitlines()
        ]
        rows.write_text("\n".join(map(json.dumps, texts)))
    likely = {"infer_method": "likelihood", "candidates": "letters" if route else "text", **options}
    likely |= {"model_arguments": {"likelihood": route} if route else {}}
    with emulator(MockOptions()) as running:
        asked = settings(rows, running.base_url, tmp_path / "run", cache=False, **likely)
        estimate = estimate_run(make_plan(asked), asked)
        results = snellen.run(asked).results
        stats = running.server.stats
    bill = (stats["prompt_tokens"] * 0.5 + stats["completion_tokens"] * 1.5) / 1e6
    assert results["cost"]["unpriced"] == 0
    assert estimate.cost() == pytest.approx(bill, rel=0.10)
    assert results["cost"]["value"] == pytest.approx(bill, rel=0.03), "all but the self-test of the route"
    assert estimate.cost(most=True) is None, "no reply is written, so none reaches a limit"


@pytest.mark.parametrize("task", ["eyechart", "eyechart-choice", "eyechart-line"])
def test_the_estimate_of_eye_charts_is_within_a_tenth_too(
    task: str, mock_server: Callable[..., Running], tmp_path: Path
) -> None:
    answers = tmp_path / "answers.jsonl"
    assert run_command(["mock-server", "--write-answers", task, "--answers", answers, "--limit", 40]) == 0
    chart = {"tasks": (task,), "model": "openai/mock", "base_url": mock_server("--answers", answers).base_url}
    asked = snellen.RunSettings(**chart, limit=40, output_dir=tmp_path / "run")
    cost = estimate_run(make_plan(asked), asked).cost()
    assert cost == pytest.approx(snellen.run(asked).results["cost"]["value"], rel=0.10)


def test_what_is_left_is_estimated_from_what_is_stored(rows: Path, server: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    half = estimate_run(*planned(settings(rows, server, folder))).cost()
    snellen.run(settings(rows, server, folder, max_cost=(half or 0) / 2, yes=True, max_workers=2))
    estimate = estimate_run(*planned(settings(rows, server, folder)))
    assert "measured" in str(estimate.tasks[0].expected)
    assert 0 < estimate.tasks[0].left < 40
    before = stored_cost(folder)
    whole = snellen.run(settings(rows, server, folder)).results["cost"]["value"]
    assert before + (estimate.cost() or 0) == pytest.approx(whole, rel=0.05)
    assert estimate_run(*planned(settings(rows, server, folder))).cost() == 0


def planned(asked: snellen.RunSettings) -> tuple[Any, snellen.RunSettings]:
    return make_plan(asked), asked


def stored_cost(folder: Path) -> float:
    return float(json.loads((folder / "results.json").read_text())["cost"]["value"])


def test_a_limit_is_never_passed_and_the_same_command_continues(
    rows: Path, server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, limit = tmp_path / "run", 0.003
    command = ["run", rows, "--model", "openai/mock", "--base-url", server, "-o", folder]
    command += ["--max-cost", limit, "--yes", "--max-workers", 8]
    codes, costs = [], [0.0]
    while not codes or codes[-1] == 3:
        codes.append(run_command(command))
        costs.append(stored_cost(folder))
        assert costs[-1] - costs[-2] <= limit * 1.0001, "more was spent than the command allows"
        assert len(codes) < 20
    assert codes == [3] * (len(codes) - 1) + [0]
    assert len(codes) > 2
    assert "stopped by --max-cost" in capfd.readouterr().err
    status = json.loads((folder / "results.json").read_text())["status"]
    assert status["complete"]


def test_a_run_that_looks_too_dear_is_not_begun(
    rows: Path, server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    command = ["run", rows, "--model", "openai/mock", "--base-url", server, "-o", folder, "--max-cost", 0.001]
    assert run_command(command) == 2
    told = capfd.readouterr().err
    assert "more than --max-cost 0.001" in told
    assert "--yes" in told
    assert not (folder / "run.db").exists()


def test_a_limit_needs_a_price(rows: Path, server: str, tmp_path: Path) -> None:
    unknown = {"tasks": (str(rows),), "model": "openai/other", "base_url": server, "output_dir": tmp_path / "run"}
    with pytest.raises(UsageError, match="no price is known"):
        snellen.run(snellen.RunSettings(**unknown, max_cost=5.0))
    results = snellen.run(settings(rows, server, tmp_path / "run", max_cost=5.0, price="1,2")).results
    usage = results["usage"]
    assert results["cost"]["value"] == pytest.approx((usage["input_tokens"] + 2 * usage["output_tokens"]) / 1e6)


def test_the_plan_says_tokens_and_money_and_what_they_rest_on(
    rows: Path, server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["run", rows, "--model", "openai/mock", "--base-url", server, "-o", tmp_path / "run"]
    assert run_command(command) == 0
    told = " ".join(capfd.readouterr().err.split())
    assert "input and" in told
    assert "output tokens" in told
    assert "EUR" in told
    assert "from 40 prompts; pictures by flat" in told
    assert run_command([*command, "--price", "100,100"]) == 0
    assert "nothing is left to ask" in capfd.readouterr().err
    assert run_command([*command, "--fresh"]) == 0
    assert "input and" in " ".join(capfd.readouterr().err.split()), "all of it is asked and paid again"
    assert run_command([*command[:-1], tmp_path / "other", "--price", "100,100"]) == 0
    assert "100 in, 100 out" in capfd.readouterr().err


def test_a_name_at_another_address_has_no_price(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    named = {"tasks": (str(rows),), "model": "openai/gpt-4o", "output_dir": tmp_path / "run"}
    here = snellen.RunSettings(**named)
    assert estimate_run(*planned(here)).cost() is not None
    elsewhere = snellen.RunSettings(**named, base_url="http://127.0.0.1:9/v1")
    plan = make_plan(elsewhere)
    estimate = estimate_run(plan, elsewhere)
    assert estimate.cost() is None
    assert "is of https://api.openai.com/v1, and this is http://127.0.0.1:9/v1" in " ".join(
        describe_cost(plan, estimate)
    )


@pytest.mark.parametrize(("day", "told"), [("2026-08-08", True), ("2026-11-01", False), ("", False), ("May", False)])
def test_old_prices_are_said_to_be_old(day: str, told: bool) -> None:
    notes = list(note_age(Prices(1.0, 1.0, as_of=day), date(2026, 11, 16)))
    assert bool(notes) is told
    assert not told or "100 days old" in notes[0]


def test_cached_replies_are_worth_something_and_paid_once(rows: Path, server: str, tmp_path: Path) -> None:
    first = snellen.run(settings(rows, server, tmp_path / "one")).results["cost"]
    second = snellen.run(settings(rows, server, tmp_path / "two", cache_check=0))
    again = second.results["cost"]
    assert second.state.limits.spent == 0.0, "replies of the cache are not in the live cost"
    assert first["paid"] == first["value"] > 0
    assert (again["paid"], again["value"]) == (0, first["value"])


def test_results_have_the_cost_of_tasks_and_right_answers(rows: Path, server: str, tmp_path: Path) -> None:
    results = snellen.run(settings(rows, server, tmp_path / "run")).results
    task = results["tasks"]["rows"]
    cost, accuracy = task["cost"], task["metrics"]["accuracy"]
    right = accuracy["value"] * accuracy["n"]
    assert cost["right_answers"] == pytest.approx(right)
    if right:
        assert cost["per_right_answer"] == pytest.approx(cost["value"] / right)
    assert results["cost"]["value"] == pytest.approx(cost["value"])
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"cost of all replies: {money(cost['value'], 'EUR')}" in page


def test_the_leaderboard_shows_what_runs_cost(
    rows: Path, server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    snellen.run(str(rows), "blind/first", output_dir=tmp_path / "runs" / "blind")
    assert run_command(["leaderboard", tmp_path / "runs", "--format", "csv"]) == 0
    assert "cost" not in capfd.readouterr().out
    results = snellen.run(settings(rows, server, tmp_path / "runs" / "mock")).results
    assert run_command(["leaderboard", tmp_path / "runs", "--format", "csv"]) == 0
    told = capfd.readouterr().out
    assert "cost,cost a right answer" in told
    assert money(results["cost"]["value"], "EUR") in told
    assert run_command(["leaderboard", tmp_path / "runs", "--json"]) == 0
    lines = json.loads(capfd.readouterr().out)["lines"]
    assert {line["model"]: line["cost"] and line["cost"]["value"] for line in lines} == {
        "blind/first": None,
        "openai/mock": results["cost"]["value"],
    }


PAIR = ["the square on the left", "the circle in the middle"]
CARD = """
model = "{model}"
characters_per_token = 4.2

[prices]
input_per_million = 0.5
output_per_million = 1.5
currency = "EUR"

[pictures]
kind = "flat"
base = 256
"""


BATCHED = ("openai-responses", "azure", "mistral", "anthropic", "gemini")


@pytest.mark.parametrize(
    ("dialect", "batch"),
    [*((name, True) for name in BATCHED), *((name, False) for name in (*BATCHED, "vertex", "bedrock"))],
)
def test_the_estimate_of_every_dialect_is_within_a_tenth_of_the_emulators_bill(
    dialect: str, batch: bool, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    name = "gemini-mock" if dialect == "vertex" else "mock"
    (tmp_path / "cards" / "models").mkdir(parents=True)
    (tmp_path / "cards" / "models" / "own.toml").write_text(CARD.format(model=f"{dialect}/{name}"))
    spoken = MockOptions(dialect=dialect, models=(name,), answer="A. the square of the two")
    with emulator(spoken) as running:
        place = {"tasks": (str(rows),), "model": f"{dialect}/{name}", "base_url": running.base_url, "cache": False}
        more = {"batch": batch, "batch_poll_s": 0.02, "api_key": Secret("k"), "catalogs": (tmp_path / "cards",)}
        asked = snellen.RunSettings(**place, **more, output_dir=tmp_path / "run")
        cost = estimate_run(make_plan(asked), asked).cost()
        told = snellen.run(asked).results["cost"]["value"]
        seen = running.server.stats
    live, batched = (
        seen[f"{kind}prompt_tokens"] * 0.5 + seen[f"{kind}completion_tokens"] * 1.5 for kind in ("", "batch_")
    )
    bill = (live + batched / 2) / 1e6
    assert told == pytest.approx(bill)
    assert cost == pytest.approx(bill, rel=0.10)


def test_dialogues_are_estimated_with_their_history(server: str, tmp_path: Path) -> None:
    lines = []
    for number in range(24):
        row = {
            "id": str(number),
            "group": str(number // 4),
            "round": number % 4,
            "options": PAIR,
            "answer": "A",
        }
        lines.append(row | {"question": f"{number}: {WORDS}"})
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    asked = settings(path, server, tmp_path / "run", infer_method="every", cache=False)
    estimate = estimate_run(make_plan(asked), asked)
    told = snellen.run(asked).results["usage"]
    tokens = estimate.tokens()
    assert tokens is not None and tokens.input == pytest.approx(told["input_tokens"], rel=0.10)


def test_a_limit_holds_for_likelihoods(rows: Path, server: str, tmp_path: Path) -> None:
    """Before, a scored trial had no count of tokens, and the first of them ended a run with a limit."""
    folder = tmp_path / "run"
    asked = settings(rows, server, folder, infer_method="likelihood", max_workers=2)
    whole = estimate_run(*planned(asked)).cost() or 0
    snellen.run(settings(rows, server, folder, infer_method="likelihood", max_workers=2, max_cost=whole / 2, yes=True))
    spent = stored_cost(folder)
    assert 0.25 * whole < spent <= whole / 2
    estimate = estimate_run(*planned(asked))
    assert "measured" in str(estimate.tasks[0].expected)
    assert spent + (estimate.cost() or 0) == pytest.approx(snellen.run(asked).results["cost"]["value"], rel=0.05)
    words = "\n".join(
        describe_cost(make_plan(settings(rows, server, tmp_path / "new", infer_method="likelihood")), estimate)
    )
    assert "input and" in words
