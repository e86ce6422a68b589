"""What a machine does to a run: it is stopped and goes on, its clock goes back, its helpers are killed for memory, its locks are none."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from command_line import COMMAND, run_command
from executor_runs import descendants
from figures import note_figure
from forked import forge
from killing import outcome
from snellen.kits.mock.process import mock_process
from waiting import CEILING_S, stored_trials


def write_rows(home: Path, count: int, picture: str = "") -> Path:
    rows = [
        {"id": f"q{n}", "question": f"Which is {n}?", "options": ["one", "two"], "answer": "A"} for n in range(count)
    ]
    more = {"image": picture} if picture else {}
    (home / "my.jsonl").write_text("".join(json.dumps(row | more) + "\n" for row in rows))
    return home / "my.jsonl"


def asked(data: Path, base_url: str, folder: Path, *more: object) -> list[object]:
    told = ["--model", "openai/mock", "--base-url", base_url, "--quiet", "--no-cache", "--max-workers", 8]
    return ["run", data, *told, "-o", folder, *more]


@pytest.mark.slow
def test_a_run_that_is_stopped_and_goes_on_is_whole_and_nobody_writes_meanwhile(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    data, url = write_rows(tmp_path, 200), mock_server("--ttft-ms", 20).base_url
    assert run_command(asked(data, url, tmp_path / "whole")) == 0
    draw, stops = random.Random(5), 0
    with forge(tmp_path / "said.txt") as smith:
        pid = smith.start(asked(data, url, tmp_path / "run"))
        for place in sorted(draw.sample(range(10, 180), 4)):
            if smith.watch(pid, lambda place=place: stored_trials(tmp_path / "run") >= place) is None:
                break
            os.kill(pid, signal.SIGSTOP)
            stops += 1
            assert run_command(asked(data, url, tmp_path / "run")) == 3, "a second writer while the first is stopped"
            os.kill(pid, signal.SIGCONT)
        assert smith.wait() in (0, None)
    assert stops and outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    note_figure(
        "fault",
        "SIGSTOP and SIGCONT of a run of 200 trials",
        f"{stops} stops: results equal, a second writer refused each time",
    )


def test_a_clock_that_goes_back_changes_no_number(
    mock_server: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, url, looks = write_rows(tmp_path, 300), mock_server().base_url, [0]
    assert run_command(asked(data, url, tmp_path / "whole")) == 0
    true = time.time

    def back() -> float:
        looks[0] += 1
        return true() - 60.0 * looks[0]

    monkeypatch.setattr(time, "time", back)
    assert run_command(asked(data, url, tmp_path / "run")) == 0
    assert [run_command(asked(data, url, tmp_path / "parts", "--shard", f"{n}/2")) for n in (0, 1)] == [0, 0]
    monkeypatch.undo()
    assert looks[0] and outcome(tmp_path / "run") == outcome(tmp_path / "whole") == outcome(tmp_path / "parts")
    note_figure(
        "fault",
        "a clock that goes back a minute at every look",
        f"{looks[0]:,} looks, a run and two parts: results equal",
    )


@pytest.mark.slow
def test_children_that_are_killed_for_memory_cost_no_more_than_their_pictures(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    url = mock_server("--ttft-ms", 5).base_url
    noise = np.random.default_rng(1).integers(0, 255, (700, 700, 3), dtype=np.uint8)
    names = []
    for number in range(60):
        names.append(f"{number}.png")
        PIL.Image.fromarray(np.roll(noise, number, 0)).save(tmp_path / names[-1], compress_level=1)
    rows = [
        {"id": f"q{n}", "question": "?", "options": ["a", "b"], "answer": "A", "image": name}
        for n, name in enumerate(names)
    ]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = lambda folder: asked(tmp_path / "my.jsonl", url, folder, "--image-max-side", 256)  # noqa: E731
    assert run_command(command(tmp_path / "whole")) == 0
    kills, draw = 0, random.Random(6)
    process = subprocess.Popen([*COMMAND, *map(str, command(tmp_path / "run"))])
    while process.poll() is None and kills < 20:
        for pid in draw.sample(found := descendants(process.pid, ""), min(1, len(found))):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        time.sleep(0.05)  # another process is at work
    code = process.wait(CEILING_S)
    assert code in (0, 1), "a killed helper never ends the run"
    before = outcome(tmp_path / "run")
    failed = sum(record["outcome"] == "failed" for record in before[1])  # type: ignore[index]
    assert run_command(command(tmp_path / "run")) == 0
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    note_figure("fault", "SIGKILL of processes that draw pictures, as a lack of memory does",
                f"{kills} kills in a run of 60 pictures: {failed} samples failed by name, the same command completes it")  # fmt: skip


def test_a_file_system_without_locks_is_named_and_parts_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path, 6)

    def none(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    told = ["run", data, "--model", "blind/first", "--quiet", "--no-cache", "-o", tmp_path / "run"]
    assert run_command(told) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot lock" in said and str(tmp_path / "run") in said
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    assert [run_command([*told, "--shard", f"{n}/2"]) for n in (0, 1)] == [0, 0]
    assert (tmp_path / "run" / "results.json").exists()


def has_fuse() -> bool:
    return os.geteuid() == 0 and shutil.which("bindfs") is not None and Path("/dev/fuse").exists()


@pytest.mark.slow
@pytest.mark.skipif(not has_fuse(), reason="needs bindfs and /dev/fuse")
def test_two_whole_runs_through_mounts_that_keep_no_locks_end_by_a_line_and_leave_a_sound_run(tmp_path: Path) -> None:
    data, real, mounts = write_rows(tmp_path, 300), tmp_path / "real", [tmp_path / "a", tmp_path / "b"]
    for place in (real, *mounts):
        place.mkdir()
    with mock_process(["--ttft-ms", "20"]) as server:
        try:
            for mount in mounts:
                subprocess.run(["bindfs", real, mount], check=True)
            lines = [[*COMMAND, *map(str, asked(data, server.base_url, mount / "run"))] for mount in mounts]
            both = [subprocess.Popen(line, stderr=subprocess.PIPE, text=True) for line in lines]
            said = [one.communicate(timeout=CEILING_S)[1] for one in both]
        finally:
            for mount in mounts:
                subprocess.run(["fusermount", "-u", mount], check=False)
        assert {one.returncode for one in both} <= {0, 3}, "\n".join(said)
        assert all(one.count("\n") <= 1 and "Traceback" not in one for one in said), said
        assert any("--shard" in one for one in said if one) or not any(said)
        assert run_command(["doctor", real / "run"]) in (0, 3)
        run_command(["repair", real / "run"])
        assert run_command(asked(data, server.base_url, real / "run")) == 0
    records = [json.loads(line) for line in (real / "run" / "records.jsonl").read_text().splitlines()]
    assert len(records) == 300 and {record["value"] for record in records} == {1.0}
