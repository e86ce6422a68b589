"""Inferencers from plug-ins: found by name in the registry; what they raise costs their own trials, not the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.builtins import INFERENCERS, default_registry
from snellen.core.errors import ConfigError, UsageError
from snellen.core.protocols import Capability
from snellen.store.reader import RunReader

PLUGIN = """
from snellen.core.errors import ConfigError
from snellen.core.protocols import Capability, Inferencer
from snellen.infer.generate import GENERATE


class Broken:
    def __init__(self, job):
        self.job, self.keys = job, job.keys

    async def run(self, ask):
        if self.keys[0].sample == "s1":
            raise {error}
        await self.job.run(ask)


class Odd(Inferencer):
    needs = frozenset({{Capability.GENERATE}})

    def plan(self, task, items, prompter):
        {before}
        return map(Broken, GENERATE.plan(task, items, prompter))


def register(registry):
    registry.add("inferencer", "odd", Odd())
"""


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(folder: Path, error: str = "KeyError('gone')", before: str = "") -> Any:
    rows = [{"id": f"s{n}", "question": f"Q{n}?", "options": ["one", "two"], "answer": "A"} for n in range(3)]
    (folder / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "odd.py").write_text(PLUGIN.format(error=error, before=before))
    return snellen.run(
        str(folder / "d.jsonl"),
        "blind/first",
        plugins=(folder / "odd.py",),
        infer_method="odd",
        output_dir=folder / "r",
        same_model=True,
    )


def test_every_built_in_inferencer_says_what_it_needs_and_plans() -> None:
    registry = default_registry()
    assert set(registry.names("inferencer")) >= set(INFERENCERS)
    for name in INFERENCERS:
        inferencer = registry.get("inferencer", name)
        assert inferencer.needs <= set(Capability) and callable(inferencer.plan) and callable(inferencer.read_options)


def test_what_a_job_raises_is_a_typed_failure_of_its_own_trials(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.results["tasks"]["d"]["metrics"]["accuracy"]["n"] == 2
    assert (result.failed, result.state.failures) == (1, {"request": 1})
    reader = RunReader(tmp_path / "r")
    failures = {trial.sample.id: trial.prediction.failure for trial in reader.trials("d")}
    reader.close()
    assert failures["s0"] is failures["s2"] is None
    assert failures["s1"].message == "inferencer 'odd' raised KeyError: 'gone'"


def test_a_mended_plug_in_asks_only_what_failed(tmp_path: Path) -> None:
    run(tmp_path)
    mended = run(tmp_path, error="KeyError('late') if await self.job.run(ask) else ValueError('still odd')")
    assert (mended.state.resumed, mended.state.done, mended.failed) == (2, 1, 0)


def test_a_finished_trial_is_never_replaced_by_a_failure(tmp_path: Path) -> None:
    result = run(tmp_path, error="ValueError('late') if await self.job.run(ask) is None else None")
    assert result.failed == 0  # its trial was asked before it raised
    assert result.results["tasks"]["d"]["metrics"]["accuracy"]["n"] == 3


def test_what_a_job_raises_on_purpose_ends_the_run_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^mend the card$"):
        run(tmp_path, error="ConfigError('mend the card')")


def test_a_plan_that_raises_is_an_error_that_names_the_plug_in(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inferencer 'odd' raised ZeroDivisionError"):
        run(tmp_path, before="1 / 0")


def test_an_inferencer_without_needs_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"question": "Q?", "options": ["a", "b"], "answer": "A"}')
    (tmp_path / "odd.py").write_text("def register(registry):\n    registry.add('inferencer', 'odd', object())\n")
    settings = RunSettings(tasks=("d.jsonl",), model="blind/first", plugins=(Path("odd.py"),), infer_method="odd")
    with pytest.raises(UsageError, match="inferencer 'odd' raised AttributeError"):
        make_plan(settings)


PAIRS = """
from snellen.core.jobs import Job
from snellen.core.protocols import Capability, Inferencer
from snellen.core.types import TrialKey


class Pair:
    def __init__(self, item, keys, prompter):
        self.item, self.keys, self.prompter = item, keys, prompter

    async def run(self, ask):
        for key in self.keys[:{asks}]:
            await ask(self.item, self.prompter.build(self.item.sample, key.variant, key.repeat))
        raise OverflowError("tired")


class Pairs(Inferencer):
    needs = frozenset({{Capability.GENERATE}})

    def plan(self, task, items, prompter):
        for item in items:
            yield Pair(item, [TrialKey(task.name, item.sample.id, name) for name in task.variants], prompter)


def register(registry):
    registry.add("inferencer", "pairs", Pairs())
"""


@pytest.mark.parametrize("asks", [0, 1])
def test_what_is_stored_stays_when_the_rest_of_a_job_fails_again(tmp_path: Path, asks: int) -> None:
    (tmp_path / "d.jsonl").write_text('{"question": "Q?", "options": ["a", "b"], "answer": "A"}')
    for count in (1, asks):
        (tmp_path / "pairs.py").write_text(PAIRS.format(asks=count))
        result = snellen.run(
            "d.jsonl",
            "blind/first",
            plugins=(Path("pairs.py"),),
            infer_method="pairs",
            variants=("base", "order=1"),
            output_dir=tmp_path / "r",
            same_model=True,
        )
        assert (result.failed, result.results["tasks"]["d"]["metrics"]["accuracy"]["n"]) == (1, 1)
