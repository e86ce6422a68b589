"""Parts that take work from others: the joined run is that of one process, and little is asked twice."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import snellen
from command_line import COMMAND, json_of, run_command
from snellen.api.plan import make_plan
from snellen.core.homes import Part
from snellen.kits.arrays.parts import MOST_TRIALS, share_of, units_of
from snellen.store.part_log import TRIAL, LogReading, log_files
from waiting import CEILING_S, requests_seen, wait_until

ROWS = 120


@pytest.fixture
def data(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(own_folder / "cache"))
    rows = [
        {"id": f"q{n}", "question": f"How many legs has {n}?", "options": ["two", "four legs"], "answer": "two"}
        for n in range(ROWS)
    ]
    path = own_folder / "my.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def blind(data: Path, folder: str, *more: object) -> list[object]:
    return ["run", data, "--model", "blind/longest", "--quiet", "-o", folder, *more]


def served(data: Path, url: str, folder: str, *more: object) -> list[object]:
    flags = ["--model", "openai/mock", "--base-url", url, "--no-cache", "--max-workers", 2, "--quiet", "-o", folder]
    return ["run", data, *flags, *more]


def start(arguments: list[object]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *map(str, arguments)], stderr=subprocess.DEVNULL)


def trials_in(folder: Path, part: int) -> list[str]:
    files = [file for file in log_files(folder) if file.part.index == part]
    return [line.row[1] for file in files for line in LogReading(file.path) if line.kind == TRIAL]


def records(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if "latency" not in key} for row in rows]


def test_one_part_takes_all_that_nobody_began_and_the_run_is_that_of_one_process(data: Path) -> None:
    assert run_command(blind(data, "one")) == 0
    first = json_of(*blind(data, "run", "--shard", "1/3", "--steal"))
    assert (first["part"]["taken"], first["part"]["trials"], first["done"]) == (80, ROWS, ROWS)
    second = json_of(*blind(data, "run", "--shard", "0/3", "--steal"))
    assert (second["part"]["given"], second["done"]) == (0, 40), "what is there is counted, not asked"
    assert trials_in(Path("run"), 0) == []
    assert run_command(blind(data, "run", "--shard", "2/3")) == 0, "without the flag too; the last one joins them"
    assert Path("one/records.jsonl").read_bytes() == Path("run/records.jsonl").read_bytes()
    assert json_of("merge", "run", "--tidy")["asked_twice"] == 0
    assert not list(Path("run/run.d").iterdir())


def test_what_a_part_without_the_flag_has_stored_is_not_asked_again(data: Path) -> None:
    assert run_command(blind(data, "run", "--shard", "2/3")) == 0
    assert json_of(*blind(data, "run", "--shard", "1/3", "--steal"))["done"] == ROWS
    assert len(trials_in(Path("run"), 1)) == 80
    assert json_of("merge", "run")["asked_twice"] == 0


def test_parts_at_work_share_what_is_left_and_nothing_is_asked_twice(
    data: Path, mock_server: Callable[..., Any]
) -> None:
    slow, quick = mock_server("--ttft-ms", 150), mock_server()
    assert run_command(served(data, quick.base_url, "one")) == 0
    more = ("--same-model", "--steal", "--shard")
    lazy = start(served(data, slow.base_url, "run", *more, "0/3"))
    wait_until(lambda: len(trials_in(Path("run"), 0)) > 4, "the slow part at work")
    for number in (1, 2):
        assert run_command(served(data, quick.base_url, "run", *more, f"{number}/3")) == 0
    assert lazy.wait(CEILING_S) == 0
    found = json_of("merge", "run", "--same-model")
    assert (found["missing"], found["asked_twice"]) == (0, 0)
    assert len(trials_in(Path("run"), 0)) < ROWS // 3 < len(trials_in(Path("run"), 1))
    assert records(Path("one")) == records(Path("run"))
    assert json_of("show", "run")["run"], "from then on an ordinary run"


@pytest.mark.parametrize("next_part", ["0/3", "1/3", "2/3"])
def test_what_a_killed_thief_held_is_asked_by_whoever_runs_next(
    data: Path, mock_server: Callable[..., Any], next_part: str
) -> None:
    slow, quick = mock_server("--ttft-ms", 100), mock_server()
    more = ("--same-model", "--steal", "--shard")
    assert run_command(served(data, quick.base_url, "one")) == 0
    thief = start(served(data, slow.base_url, "run", *more, "1/3"))
    wait_until(lambda: len(trials_in(Path("run"), 1)) > 43, "a thief at work at what it took")
    thief.send_signal(signal.SIGKILL)
    thief.wait()
    before = len(trials_in(Path("run"), 1))
    assert json_of("merge", "run", codes=(1,))["missing"] == ROWS - before
    asked = requests_seen(quick.base_url)
    assert run_command(served(data, quick.base_url, "run", *more, next_part)) == 0
    found = json_of("merge", "run", "--same-model")
    assert found["missing"] == 0 and found["asked_twice"] <= MOST_TRIALS
    assert requests_seen(quick.base_url) - asked == ROWS - before, "what was stored is not asked again"
    assert records(Path("one")) == records(Path("run"))


def test_a_part_that_stood_still_is_taken_over_and_asks_at_most_one_unit_twice(
    data: Path, mock_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snellen.store.part_progress.SILENT_S", -1.0)  # for this process all others are silent
    slow, quick = mock_server("--ttft-ms", 100), mock_server()
    more = ("--same-model", "--steal", "--shard")
    ghost = start(served(data, slow.base_url, "run", *more, "0/2"))
    wait_until(lambda: len(trials_in(Path("run"), 0)) > 4, "a part at work")
    ghost.send_signal(signal.SIGSTOP)
    assert run_command(served(data, quick.base_url, "run", *more, "1/2")) == 0
    ghost.send_signal(signal.SIGCONT)
    assert ghost.wait(CEILING_S) == 0
    found = json_of("merge", "run", "--same-model")
    assert found["missing"] == 0 and 0 < found["asked_twice"] <= MOST_TRIALS


def test_units_keep_groups_whole_and_a_large_group_is_never_taken(own_folder: Path) -> None:
    sizes = [3, 70, 5, 60, 9, 64, 2, 2, 200, 1]
    names = [f"g{index}" for index, size in enumerate(sizes) for _ in range(size)]
    rows = [{"id": str(n), "question": "Is it?", "answer": "yes", "group": name} for n, name in enumerate(names)]
    (own_folder / "talks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = snellen.RunSettings(tasks=("talks.jsonl",), model="blind/first", output_dir="x")
    plan = make_plan(settings)
    shares = [share_of(plan, Part(index, 2)) for index in range(2)]
    units = units_of(plan, shares[0].assignment, 2)
    for unit in units.values():
        groups = {names[int(name)] for name in unit.samples["talks"]}
        assert unit.trials == sum(sizes[int(group[1:])] for group in groups), "groups are whole"
        assert unit.trials <= MOST_TRIALS or len(groups) == 1
        assert unit.samples["talks"] <= shares[unit.id[0]].own["talks"]
    assert sum(unit.trials for unit in units.values()) == sum(sizes)
    large = {unit.id[0]: 0 for unit in units.values()}
    for unit in units.values():
        large[unit.id[0]] += unit.trials if unit.trials > MOST_TRIALS else 0
    assert large[0] and large[1]
    end = json_of("run", "talks.jsonl", "--model", "blind/first", "--quiet", "-o", "x", "--shard", "0/2", "--steal")
    assert end["done"] == sum(sizes) - large[1], "what is too large to be taken waits for its own part"


def test_stealing_without_a_part_is_refused_and_the_script_has_the_flag(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(blind(data, "run", "--steal")) == 2 and "--shard" in capsys.readouterr().err
    assert run_command(["submit", "slurm", "--parts", 4, *blind(data, "run", "--steal")[1:]]) == 0
    line = next(line for line in Path("run/submit/array.sh").read_text().splitlines() if "--shard" in line)
    assert "--steal" in line
