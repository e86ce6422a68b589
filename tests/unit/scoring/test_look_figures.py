"""What looking again was worth, from stored turns: every figure is counted by hand from what the agent did."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from msgspec.structs import replace

from look_agents import ask
from look_runs import HEIGHT, WIDTH, make_look_run
from snellen.core.looks import BASE, PLAIN, Look
from snellen.core.tasks import Task
from snellen.core.types import Form, Image, Sample
from snellen.kits.looks.figures import LookArms, aim, describe_looks
from snellen.kits.looks.trials import gold_boxes, has_looks, look_trials, source_of
from snellen.model.served.prices import Prices
from snellen.scoring.results import group_keys
from snellen.scoring.stored import stored_tables
from snellen.scoring.tables.table import ScoredTask, ScoreTable
from snellen.store.reader import RunReader

COUNT, REPEATS = 48, 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run in all arms of an agent that uses all its crops."""
    return make_look_run(tmp_path_factory.mktemp("looks") / "run", count=COUNT, repeats=REPEATS)


@pytest.fixture(scope="module")
def told(run: Path) -> dict[str, Any]:
    """Return what results.json says of its looks."""
    found: dict[str, Any] = json.loads((run / "results.json").read_bytes())["tasks"]["squares"]
    return found


def test_effects_are_differences_of_arms_as_they_were_answered(told: dict[str, Any]) -> None:
    right = {arm: values.mean() for arm, values in ask(np.random.default_rng(1), 1.0, COUNT, REPEATS).right.items()}
    effects = {name: one["value"] for name, one in told["looks"]["effects"].items()}
    assert effects == pytest.approx(
        {
            "worth": right["base"] - right["plain"],
            "picture_effect": right["base"] - right["grey"],
            "misled": right["none"] - right["elsewhere"],
            "zoom_effect": right["base"] - right["whole"],
        }
    )
    reliance = (right["base"] - right["grey"]) / (right["gold"] - right["grey"])
    assert told["looks"]["reliance"]["value"] == pytest.approx(reliance)


def test_the_split_adds_up_to_the_worth_and_its_chance_is_that_of_repeats(told: dict[str, Any]) -> None:
    split = told["looks"]["split"]
    rates = [split[name]["rate"]["value"] for name in ("repaired", "repaired-uncalled", "spoilt", "spoilt-uncalled")]
    assert rates[0] + rates[1] - rates[2] - rates[3] == pytest.approx(told["looks"]["effects"]["worth"]["value"])
    plain = ask(np.random.default_rng(1), 1.0, COUNT, REPEATS).right["plain"]
    flips = (plain[:, 0] != plain[:, 1]).mean() / 2
    assert split["repaired"]["chance"] + split["repaired-uncalled"]["chance"] == pytest.approx(flips)
    assert sum(told["looks"]["questions"].values()) == COUNT


def test_the_score_of_the_task_is_that_of_true_crops(told: dict[str, Any]) -> None:
    assert told["metrics"]["accuracy"]["value"] == pytest.approx(told["looks"]["arms"]["base"]["score"]["value"])
    assert told["metrics"]["accuracy"]["n"] == COUNT * REPEATS


def test_calls_classes_turns_and_tokens_are_counted(run: Path, told: dict[str, Any]) -> None:
    called = ask(np.random.default_rng(1), 1.0, COUNT, REPEATS).called
    bad = sum(REPEATS for place in range(COUNT) if called[place] and place % 5 == 0)
    use = told["looks"]["used"]
    assert use["call_rate"]["value"] == pytest.approx(called.mean())
    assert use["classes"] == {"frame": bad} and use["calls"] == bad + REPEATS * called.sum()
    assert use["turns"]["value"] == pytest.approx(1 + called.mean())
    assert use["tokens"]["value"] == pytest.approx(np.where(called, 1760, 720).mean())
    assert any(f"{bad:,} frame" in note for note in told["notes"])


def test_aim_is_measured_against_the_box_of_the_data(told: dict[str, Any]) -> None:
    found = np.random.default_rng(2).random(COUNT) < 0.8
    called = ask(np.random.default_rng(1), 1.0, COUNT, REPEATS).called
    aim = told["looks"]["aim"]
    assert aim["crops"] == REPEATS * called.sum()
    assert aim["holds_half"]["value"] == pytest.approx(found[called].mean())
    assert aim["found"]["value"] == pytest.approx(found[called].mean())
    assert aim["enlargement"]["value"] == 4.0
    assert aim["looked_at"]["value"] == pytest.approx(160 * 120 / (WIDTH * HEIGHT))


def test_without_a_region_in_the_data_there_is_no_aim(run: Path) -> None:
    with RunReader(run) as reader:
        trials = look_trials(reader, "squares")
        arms = LookArms(stored_tables(reader, "squares")["accuracy"], trials)
        samples = [replace(sample, meta={}) for sample in reader.samples("squares")]
    found = aim(arms, samples, {})
    assert found["holds_half"].value is None and found["overlap"].value is None and found["found"].value is None
    assert found["enlargement"].value == 4.0


def test_the_price_is_what_tools_take_more_over_what_they_repaired(run: Path) -> None:
    with RunReader(run) as reader:
        prices = Prices(1.0, 2.0, "EUR")
        trials = look_trials(reader, "squares", prices)
        table = stored_tables(reader, "squares")["accuracy"]
        task = reader.header().tasks[0]
        samples = list(reader.samples("squares"))
    arms = LookArms(table, trials)
    assert arms.names[:2] == [BASE, PLAIN]
    scored = ScoredTask(task, {"accuracy": table}, lambda: iter(()), lambda: iter(samples), prices=prices)
    looks = describe_looks(scored, trials)
    extra = looks["used"]["tokens"]["value"] - 620
    price = looks["price"]["gained"]["tokens"]["value"]
    assert price == pytest.approx(extra / looks["effects"]["worth"]["value"])
    money = looks["price"]["gained"]["money"]["value"]
    assert 0.0 < money < price * 2e-6 and looks["currency"] == "EUR"


def test_without_repeats_or_a_plain_arm_it_is_said(tmp_path: Path) -> None:
    make_look_run(tmp_path / "once", count=6, arms=("base", "plain"))
    make_look_run(tmp_path / "alone", count=6, arms=("base",))
    once, alone = (
        json.loads((tmp_path / name / "results.json").read_bytes())["tasks"]["squares"] for name in ("once", "alone")
    )
    assert any("--num-infers" in note for note in once["notes"])
    assert any("--tool-arms base,plain" in note for note in alone["notes"])
    assert alone["looks"]["effects"] == {} and alone["looks"]["price"] == {} and alone["looks"]["reliance"] is None
    assert "picture_effect" not in once["looks"]["effects"]


def test_a_run_without_tools_has_no_looks(tmp_path: Path) -> None:
    from made_runs import make_run

    folder = make_run(tmp_path / "run", count=4, pictures=1)
    with RunReader(folder) as reader:
        assert not has_looks(reader, "shapes") and look_trials(reader, "shapes") == {}
    assert "looks" not in json.loads((folder / "results.json").read_bytes())["tasks"]["shapes"]


@pytest.mark.parametrize(
    ("meta", "size", "expected"),
    [
        ({"box": [10, 20, 30, 40]}, None, [(10, 20, 30, 40)]),
        ({"box": "0.1,0.2,0.5,0.6"}, (100, 200), [(10.0, 40.0, 50.0, 120.0)]),
        ({"boxes": [{"page": 1, "box": [1, 2, 3, 4]}, [5, 6, 7, 8]]}, None, [(5, 6, 7, 8)]),
        ({"box": [0.1, 0.2, 0.5, 0.6]}, None, []),
        ({"box": [30, 20, 10, 40]}, None, []),
        ({"box": "no box"}, None, []),
    ],
)
def test_gold_boxes_are_read_in_pixels(meta: dict[str, Any], size: Any, expected: Any) -> None:
    sample = Sample("1", "t", Form.OPEN, "What?", (Image("/a.png"),), meta=meta)
    assert gold_boxes(sample, 0, size) == expected


def test_a_look_at_a_crop_is_one_at_its_source() -> None:
    sample = Sample("1", "t", Form.OPEN, "What?", (Image("/a.png"), Image("/b.png")))
    first = Look(0, "zoom", picture=2, region=(0, 0, 9, 9), shown=3)
    second = Look(1, "zoom", picture=3, region=(1, 1, 5, 5), shown=4)
    assert source_of(second, sample, (first, second)) == 1
    assert source_of(Look(0, "zoom", picture=1, image=Image("/b.png")), sample, ()) == 1


def test_records_say_how_each_trial_with_tools_went(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    ends = {row["variant"]: row["look"]["end"] for row in rows if "look" in row}
    assert set(ends.values()) == {"answered"}
    assert {row["variant"] for row in rows} - set(ends) == {"look=plain"}, "offered no tools"


def test_regions_of_the_data_are_no_groups() -> None:
    tags = {"box": (np.zeros(4, np.int32), ("[1, 2, 3, 4]", "[2, 3, 4, 5]")), "half": (np.zeros(4), ("left", "right"))}
    table = SimpleNamespace(tags=tags, is_varied=False)
    assert group_keys({"accuracy": cast(ScoreTable, table)}, Task("t", {}, Form.OPEN)) == ["half"]
