"""Runs with tools beside runs without, and beside each other: what tools were worth, and where trials part."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from command_line import json_of, run_command
from look_agents import ask
from look_runs import make_look_run
from snellen.kits.looks.pairs import compare_looks
from snellen.scoring.compare.run_pairs import compare_runs
from snellen.scoring.stored import read_columns
from snellen.store.reader import RunReader

COUNT = 24


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Return a run without tools, one whose agent uses its crops, and one whose agent does not."""
    folder = tmp_path_factory.mktemp("looks")
    plain = make_look_run(folder / "plain", count=COUNT, arms=("plain",), plainly=True)
    uses = make_look_run(folder / "uses", count=COUNT, arms=("base", "grey"))
    ignores = make_look_run(folder / "ignores", count=COUNT, arms=("base", "grey"), use=0.0, seed=3)
    return plain, uses, ignores


def test_a_run_with_tools_is_set_against_one_without(runs: tuple[Path, Path, Path]) -> None:
    right = ask(np.random.default_rng(1), 1.0, COUNT).right
    found = compare_looks(runs[:2])["squares"]
    (pair,) = found.beside_plain
    assert (pair.plain, pair.tools) == ("plain", "uses")
    assert pair.worth["value"] == pytest.approx(right["base"].mean() - right["plain"].mean())
    rates = {name: part["rate"]["value"] for name, part in pair.split.items()}
    gained = rates["repaired"] + rates["repaired-uncalled"] - rates["spoilt"] - rates["spoilt-uncalled"]
    assert gained == pytest.approx(pair.worth["value"])


def test_effects_of_two_runs_differ_by_what_their_agents_do(runs: tuple[Path, Path, Path]) -> None:
    found = compare_looks(runs[1:])["squares"]
    effects = {name: one["effects"]["picture_effect"]["value"] for name, one in found.runs.items()}
    (change,) = found.changes
    assert change.difference["value"] == pytest.approx(effects["ignores"] - effects["uses"])
    assert found.beside_plain == []


def test_trials_with_tools_part_at_their_looks(runs: tuple[Path, Path, Path]) -> None:
    (found,) = compare_runs(runs[1:], metric="accuracy")["squares"]
    calls = [ask(np.random.default_rng(seed), use, COUNT).called for seed, use in ((1, 1.0), (3, 0.0))]
    assert found.divergence["looks"] >= int((calls[0] != calls[1]).sum())
    assert "prompt" not in found.divergence and "image" not in found.divergence


def test_compare_prints_the_block_and_writes_it_as_json(runs: tuple[Path, Path, Path]) -> None:
    told = json_of("compare", *runs[:2])
    assert told["looks"]["squares"]["beside_plain"][0]["tools"] == "uses"
    assert "what looking again was worth" in printed("compare", *runs[:2])
    assert "worth" in printed("compare", *runs[:2], "--format", "markdown")


def printed(*arguments: object) -> str:
    """Return what a command prints."""
    with redirect_stdout(StringIO()) as said:
        assert run_command(arguments) == 0
    return said.getvalue()


def test_show_prints_arms_effects_and_use(runs: tuple[Path, Path, Path]) -> None:
    shown = printed("show", runs[1])
    assert "picture effect" in shown and "trials that called a tool" in shown


def test_trials_are_found_by_class(runs: tuple[Path, Path, Path]) -> None:
    with RunReader(runs[1]) as reader:
        columns = read_columns(reader, reader.header().tasks[0])
    called = ask(np.random.default_rng(1), 1.0, COUNT).called
    base, chosen = columns.rows_with("variant", "base"), columns.filters["looks"]
    assert (chosen.rows(columns, "called") & base).sum() == called.sum()
    bad = sum(called[place] and place % 5 == 0 for place in range(COUNT))
    assert (chosen.rows(columns, "frame") & base).sum() == bad
    assert not chosen.rows(columns, "malformed").any()


def test_results_are_the_same_after_scoring_again(runs: tuple[Path, Path, Path]) -> None:
    before = json.loads((runs[1] / "results.json").read_bytes())["tasks"]
    printed("score", runs[1])
    assert json.loads((runs[1] / "results.json").read_bytes())["tasks"] == before
