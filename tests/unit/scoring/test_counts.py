"""planned = n + unscored + failed + not yet asked + left out: chains, dialogues, plug-ins, early stops, groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import snellen
from cure_fixtures import item, write_cure
from made_runs import make_run, make_task, scored
from snellen.core.tasks import PlannedCounts, RunHeader, Task
from snellen.core.types import Estimate
from snellen.scoring.aggregates.counts import TaskCounts
from snellen.scoring.tables.table_builder import read_tables

COUNTS = ("n", "unscored", "failed", "not_yet_asked", "left_out")


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def total(estimate: dict[str, Any]) -> int:
    return sum(estimate[name] for name in COUNTS)


def by_unit(task: dict[str, Any]) -> dict[str, set[int]]:
    """Return what the counts of all metrics of each unit add up to."""
    found: dict[str, set[int]] = {}
    for name, estimate in task["metrics"].items():
        assert estimate["unit"], f"{name} does not say what it counts"
        found.setdefault(estimate["unit"], set()).add(total(estimate))
    return found


SAID = """
from snellen.core.errors import FailureKind, ModelError
from snellen.core.protocols import Capability, ImagePolicy
from snellen.core.types import Prediction

class Fails:
    name, cacheable, image_policy = "fails/x", False, ImagePolicy()
    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    def __init__(self, ids): self.ids = ids
    async def predict(self, request, images):
        if request.key.sample in self.ids:
            raise ModelError(FailureKind.REQUEST, "not this one")
        return Prediction(request.key, text=request.marks[0] if request.marks else "x")
    async def check(self): pass
    def identity(self): return {"name": "fails"}
    async def close(self): pass

def register(registry):
    registry.add("model", "fails", lambda name, options: Fails(name.split(",")))
"""


def failing(folder: Path, *ids: str) -> dict[str, Any]:
    (folder / "fails.py").write_text(SAID)
    return {"model": f"fails/{','.join(ids)}", "plugins": (folder / "fails.py",)}


def run_cure(folder: Path, task: str, *lost: str, **more: Any) -> dict[str, Any]:
    path = write_cure(folder, [item(number, 2 + number % 2) for number in range(6)])
    overrides = (("dataset.path", str(path)),)
    result = snellen.run(task, overrides=overrides, output_dir=folder / f"run-{task}", **failing(folder, *lost), **more)
    part: dict[str, Any] = result.results["tasks"][task]
    return part


def test_a_failed_step_fails_its_chain_whether_or_not_the_chain_is_told(tmp_path: Path) -> None:
    lost = ("00000.1", "00003.2", "00004.h")
    free, told = (run_cure(tmp_path, task, *lost)["metrics"] for task in ("cure", "cure-cot"))
    for found, inferences in ((free, 5), (told, 3)):  # told, an inference waits for its steps; free, it was answered
        counts = (found["Rh"]["n"], found["Rh"]["failed"], found["Rh"]["not_yet_asked"])
        assert counts == (inferences, 6 - inferences, 0)
        assert (found["Rcot"]["n"], found["Ro"]["n"]) == (3, 3)
        assert found["Rh_strict"]["n"] == 6 and total(found["Rh"]) == total(found["Cf"]) == 6
        assert by_unit({"metrics": found}) == {
            "trials": {21},
            "chains": {6},
            "trials of role=step": {15},
            "trials of step=1": {6},
            "trials of step=2": {6},
            "trials of step=3": {3},
        }
    assert free["Rh_strict"]["value"] == told["Rh_strict"]["value"]
    assert (free["accuracy"]["failed"], told["accuracy"]["failed"]) == (3, 7), "two steps keep four questions unasked"


def test_blind_rules_are_counted_on_the_chains_that_the_model_is(tmp_path: Path) -> None:
    whole = run_cure(tmp_path / "a", "cure")["metrics"]
    part = run_cure(tmp_path / "b", "cure", "00000.1", "00003.2")["metrics"]
    for rule in ("no-period", "shortest"):
        for name in ("Rh", "Rcot", "Ro"):
            assert whole[f"{name}_{rule}_blind"]["n"] == whole[name]["n"] == 6
            assert part[f"{name}_{rule}_blind"]["n"] == part[name]["n"] == (6 if name == "Rh" else 4)
    assert part["Rcot_no-period_blind"]["value"] == whole["Rcot_no-period_blind"]["value"] == 1.0


def test_a_later_run_asks_what_was_skipped(tmp_path: Path) -> None:
    run_cure(tmp_path, "cure-cot", "00000.1")
    (tmp_path / "fails.py").write_text(SAID.replace("in self.ids", "in ()"))
    path = tmp_path / "cure.jsonl"
    again = snellen.run(
        "cure-cot",
        model="fails/00000.1",
        plugins=(tmp_path / "fails.py",),
        overrides=(("dataset.path", str(path)),),
        output_dir=tmp_path / "run-cure-cot",
        same_model=True,  # the plug-in was edited
    )
    found = again.results["tasks"]["cure-cot"]["metrics"]
    assert (again.state.done, found["Rh"]["n"], found["accuracy"]["failed"]) == (3, 6, 0)


def dialogues(folder: Path) -> Path:
    rows = [
        {"id": f"{name}{number}", "group": name, "round": number, "question": f"Q{number}?", "options": ["a", "b"]}
        | {"answer": "A", "kind": name}
        for name in "xyzw"
        for number in range(1, 5)
    ]
    path = folder / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_rounds_after_a_failed_one_are_failed_not_lost(tmp_path: Path) -> None:
    settings = {"infer_method": "every", "output_dir": tmp_path / "run", "num_infers": 2}
    result = snellen.run(str(dialogues(tmp_path)), **failing(tmp_path, "x2", "y4"), **settings)
    part = result.results["tasks"]["d"]
    assert (part["metrics"]["accuracy"]["n"], part["metrics"]["accuracy"]["failed"]) == (24, 8)
    for number, failed in ((1, 0), (2, 2), (3, 2), (4, 4)):
        found = part["metrics"][f"accuracy_round_{number}"]
        assert (found["failed"], total(found)) == (failed, 8)
    assert by_unit(part)["trials"] == {32} and by_unit(part)["prompts"] == {16} and by_unit(part)["runs"] == {2}
    assert part["metrics"]["instability"]["failed"] == 4, "questions whose trials all failed are failed, not unread"
    assert result.results["status"]["not_yet_asked"] == {"d": 0}


THRICE = """
from snellen.core.jobs import ReadyRequests
from snellen.core.protocols import Capability, Inferencer
from snellen.core.types import TrialKey
import msgspec

class Thrice(Inferencer):
    needs = frozenset({Capability.GENERATE})
    def plan(self, task, items, prompter):
        for item in items:
            one = prompter.build(item.sample)
            keys = [TrialKey(task.name, item.sample.id, "base", n) for n in range(3)]
            yield ReadyRequests(item, [msgspec.structs.replace(one, key=key) for key in keys])

def register(registry):
    registry.add("inferencer", "thrice", Thrice())
"""


def test_a_plug_in_that_asks_more_than_one_trial_a_sample_has_planned_them(tmp_path: Path) -> None:
    (tmp_path / "thrice.py").write_text(THRICE)
    result = snellen.run(
        str(dialogues(tmp_path)),
        "blind/first",
        plugins=(tmp_path / "thrice.py",),
        infer_method="thrice",
        output_dir=tmp_path / "run",
    )
    status = result.results["status"]
    assert (status["planned"], status["not_yet_asked"], status["complete"]) == ({"d": 48}, {"d": 0}, True)
    assert by_unit(result.results["tasks"]["d"])["trials"] == {48}


def test_what_an_early_stop_did_not_ask_is_counted_in_every_metric_and_group(tmp_path: Path) -> None:
    rows = [
        {"id": n, "question": "?", "options": ["a", "b"], "answer": "A", "kind": "rare" if n % 50 == 7 else f"k{n % 3}"}
        for n in range(3000)
    ]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = snellen.run("d.jsonl", "blind/first", until_ci=20.0, output_dir=tmp_path / "run", cache=False)
    part = result.results["tasks"]["d"]
    waiting = result.results["status"]["not_yet_asked"]["d"]
    assert waiting > 0 and result.results["status"]["complete"]
    assert by_unit(part) == {"trials": {3000}}
    assert part["metrics"]["accuracy"]["not_yet_asked"] == waiting
    groups = {value: found["accuracy"] for value, found in part["groups"]["kind"].items()}
    assert {value: total(found) for value, found in groups.items()} == {"k0": 980, "k1": 980, "k2": 980, "rare": 60}
    assert sum(found["not_yet_asked"] for found in groups.values()) == waiting


def test_a_stopped_run_of_0_1_says_that_it_does_not_know_its_groups(tmp_path: Path) -> None:
    task = make_task(variants=("base", "order=1"), repeats=2)
    folder = make_run(tmp_path / "run", task=task, count=12, stop_after=20, score=False)
    part = scored(folder)["tasks"][task.name]
    assert part["metrics"]["accuracy"]["not_yet_asked"] == 28
    assert part["metrics"]["instability"]["not_yet_asked"] == 7, "questions follow from trials"
    assert part["groups"]["variant"]["base"]["accuracy"]["not_yet_asked"] == 14
    assert {found["accuracy"]["not_yet_asked"] for found in part["groups"]["shape"].values()} == {None}


def rows(*values: float | None) -> Iterator[Any]:
    for number, value in enumerate(values):
        yield (f"s{number}", "base", 0, "accuracy", value, None, None, None if value is not None else "unread")


def test_groups_of_which_nothing_was_asked_are_named() -> None:
    samples = [("s0", None, {"kind": "x"}), ("s1", None, {"kind": "y"})]
    table = read_tables(rows(1.0, None), samples=samples)["accuracy"]
    task = Task("t", {}, variants=("base", "order=1"), repeats=3)
    counted = PlannedCounts(10, 10, {"kind": {"x": 4, "y": 5, "z": 1}})
    header = RunHeader("i", {}, {}, "", tasks=[task], planned={"t": 60}, counted={"t": counted})
    counts = TaskCounts(table, task, header)
    assert list(counts.unseen_groups("kind")) == ["z"] and list(counts.unseen_groups("variant")) == ["order=1"]
    found = counts.settle_group("kind", "y", {"a": Estimate(None, unscored=1)})["a"]
    assert (found.not_yet_asked, found.left_out) == (29, 0)
    assert counts.settle(Estimate(None, unit="variants")).not_yet_asked == 1
    assert counts.settle(Estimate(None, unit="")).not_yet_asked == 0, "who does not say what is counted is left alone"


@pytest.mark.parametrize(
    ("counts", "planned", "said"),
    [
        ({"hub": 9000}, 60, ["60 of 9,000 rows: a part"]),
        ({"hub": 9000, "tsv": 9000}, 60, ["60 of 9,000 rows: a part"]),
        ({"hub": 900, "tsv": 1050}, 60, ["60 of 900 (hub) or 1,050 (tsv) rows: a part"]),
        ({"hub": 900, "tsv": 1050}, 1050, []),
        ({"hub": 60}, 61, ["61 of 60 rows: more than"]),
        ({"hub": None}, 60, []),
        ({}, 60, []),
    ],
)
def test_a_number_of_a_part_of_a_benchmark_says_of_which(
    counts: dict[str, int | None], planned: int, said: list[str]
) -> None:
    task = make_task("part", repeats=2)
    sources = {name: {"count": count} if count else {} for name, count in counts.items()}
    task = msgspec.structs.replace(task, dataset={**task.dataset, "sources": sources})
    header = RunHeader("", {}, {}, "", tasks=[task], planned={task.name: planned * 2})
    table = read_tables(rows(1.0))["accuracy"]
    told = TaskCounts(table, task, header).beside_card()
    assert [note[: len(start)] for note, start in zip(told, said, strict=True)] == said
