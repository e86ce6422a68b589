"""`snellen exam compare … --price`: the cheapest setting within a point of the best, and what is not settled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from exam_observer import USUAL, Observer, sit
from snellen.api.exams import price_exams
from snellen.core.errors import DataError, UsageError
from snellen.core.types import Prediction, Usage

TESTS = ("acuity", "quarter-turns")
BETTER, WORSE = {**USUAL, "acuity": 2.5}, {**USUAL, "acuity": 20.0}


class Uncounted(Observer):
    """A server that does not count its tokens."""

    async def predict(self, request: Any, images: Any) -> Prediction:
        told = await super().predict(request, images)
        return Prediction(told.key, text=told.text, usage=Usage(None, 3), finish="stop")


@pytest.fixture(scope="module")
def exams(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("settings")
    always = {"ceiling-cheap": 100, "ceiling-dear": 400}
    made = {
        name: sit(folder / name, Observer({"acuity": 0.5}, tokens=tokens, lapse=0.0), tests=TESTS, mode="quick", seed=n)
        for n, (name, tokens) in enumerate(always.items())
    }
    made["blurred"] = sit(folder / "blurred", Observer(WORSE, tokens=50), tests=TESTS, mode="quick", seed=5)
    made["uncounted"] = sit(folder / "uncounted", Uncounted(), tests=("acuity",), mode="quick")
    return {name: result.folder for name, result in made.items()}


def test_the_cheapest_within_a_point_is_found_and_a_cheaper_worse_one_is_not(exams: dict[str, Path]) -> None:
    chosen = [exams[name] for name in ("ceiling-dear", "blurred", "ceiling-cheap")]
    priced = price_exams(chosen, ["2.5,10"])
    assert priced["tests"] == ["acuity"] and priced["left_out"] == {"quarter-turns": "has no threshold"}
    assert Path(priced["settings"][priced["cheapest"]]["folder"]).name == "ceiling-cheap"
    told = {Path(one["folder"]).name: one for one in priced["settings"]}
    assert told["ceiling-cheap"]["cost_of_1000_requests"] == pytest.approx(1000 * (100 * 2.5 + 10 * 10) / 1e6)
    assert told["blurred"]["verdict"] == "further" and told["blurred"]["behind"] > 20
    assert told["ceiling-cheap"]["verdict"] == "within"


def test_prices_may_differ_between_exams(exams: dict[str, Path]) -> None:
    chosen = [exams["ceiling-dear"], exams["ceiling-cheap"]]
    priced = price_exams(chosen, ["0.1,0.1", "50,50"])
    assert priced["cheapest"] == 0
    with pytest.raises(UsageError, match="3 prices for 2 exams"):
        price_exams(chosen, ["1,1", "2,2", "3,3"])


def test_what_noise_does_not_settle_is_not_called_within(exams: dict[str, Path], tmp_path: Path) -> None:
    pair = [
        sit(tmp_path / name, Observer(tokens=tokens), tests=("acuity",), mode="quick", seed=seed).folder
        for name, tokens, seed in (("one", 400, 3), ("two", 100, 4))
    ]
    priced = price_exams(pair, ["1,1"])
    verdicts = {one["verdict"] for number, one in enumerate(priced["settings"]) if number != priced["best"]}
    assert verdicts == {"not settled"} and priced["cheapest"] == priced["best"]
    cheaper = (
        priced["settings"][1]["cost_of_1000_requests"] < priced["settings"][priced["best"]]["cost_of_1000_requests"]
    )
    assert ("not settled" in priced["summary"] and "--fine" in priced["summary"]) == cheaper


def test_tokens_nobody_counted_are_refused(exams: dict[str, Path]) -> None:
    with pytest.raises(DataError, match="replies of acuity come without a count of tokens"):
        price_exams([exams["ceiling-dear"], exams["uncounted"]], ["1,1"])


def test_the_command_prints_both_or_the_table_alone(exams: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    two = [exams["ceiling-dear"], exams["ceiling-cheap"]]
    assert run_command(["exam", "compare", *two, "--price", "2.5,10"]) == 0
    shown = capsys.readouterr().out
    assert "eye exams · A" in shown and "← cheapest within a point" in shown and "left out: quarter-turns" in shown
    assert run_command(["exam", "compare", *two, exams["blurred"], "--price", "2.5,10", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["price"]["settings"]) == 3
    assert run_command(["exam", "compare", *two, exams["blurred"]]) == 2
    assert "--price" in capsys.readouterr().err
