"""A run in parts: whoever is killed, added, removed or asked twice, the joined run is the one of one process."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from command_line import COMMAND, json_of, run_command
from snellen.api.plan import make_plan
from snellen.api.stored_results import is_unfinished
from snellen.core.errors import UsageError
from snellen.core.homes import Part
from snellen.kits.arrays.parts import find_part, share_of, summarize_parts
from snellen.kits.drive.steering import running_parts
from snellen.report.viewer.changes import Changes
from snellen.report.viewer.run_library import RunLibrary
from snellen.report.viewer.shell import progress_bar
from waiting import CEILING_S, requests_seen, wait_until


@pytest.fixture
def data(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(own_folder / "cache"))
    rows = [
        {
            "id": f"q{number}",
            "question": f"How many legs has animal {number}?",
            "options": ["two", "four legs", "six"],
            "answer": "four legs" if number % 3 else "two",
        }
        for number in range(40)
    ]
    path = own_folder / "my.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def command(data: Path, folder: str, *more: object) -> list[object]:
    return ["run", data, "--model", "blind/longest", "--quiet", "-o", folder, *more]


def told(folder: Path) -> dict[str, Any]:
    """Return results.json without the moment at which it began, and its command: here that of the tests."""
    results = json.loads((folder / "results.json").read_bytes())
    results["run"] |= {"created": "", "command": ""}
    for row in results["run"].get("answerers", ()):
        row["since"] = ""
    return results


def is_equal(one: Path, other: Path) -> bool:
    same = (one / "records.jsonl").read_bytes() == (other / "records.jsonl").read_bytes()
    return same and told(one) == told(other)


def test_four_parts_leave_what_one_process_leaves(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(command(data, "one")) == 0
    for number in (2, 0, 3):
        assert run_command(command(data, "parts", "--shard", f"{number}/4")) == 0
    assert is_unfinished(Path("parts")) and not Path("parts/run.db").exists()
    assert json_of("merge", "parts", codes=(1,))["parts_left"] == {"1": "waiting"}
    assert not Path("parts/run.db").exists()
    for words in (["doctor", "parts"], ["report", "parts"], ["show", "parts", "--errors"]):
        assert run_command(words) == 3 and "snellen merge --partial parts" in capsys.readouterr().err, words
    seen = json_of("show", "parts")
    assert "of 30 replies read so far" in seen["figures"][0], "what waited was read when the part ended"
    assert (seen["done"], seen["planned"], seen["states"]) == (30, 40, {"complete": ["0", "2", "3"], "waiting": ["1"]})
    library = RunLibrary([Path("parts")])
    (seen_in_browser,) = library.runs()
    assert seen_in_browser.progress().stored == 30
    assert seen_in_browser.results()["tasks"]["my"]["metrics"]["accuracy"]["n"] == 30
    assert seen_in_browser.parts() == {"complete": 3, "waiting": 1}
    assert "stopped" in (bar := str(progress_bar(seen_in_browser))) and "3 complete, 1 waiting" in bar
    with pytest.raises(UsageError, match="snellen merge --partial"):  # a mark would go with the copy that is shown
        Changes(library, seen_in_browser.registry, allowed=True)._run(seen_in_browser.key)
    assert not Path("parts/run.db").exists()
    assert json_of("score", "parts")["status"]["not_yet_asked"] == {"my": 10}
    assert json_of("merge", "parts", "--partial")["missing"] == 10
    assert run_command(command(data, "parts", "--shard", "1/4")) == 0  # the last one joins them
    assert is_equal(Path("one"), Path("parts")) and not is_unfinished(Path("parts"))
    assert json_of("merge", "parts", "--tidy")["missing"] == 0
    assert not list(Path("parts/run.d").iterdir())
    assert run_command(command(data, "parts")) == 0  # from then on an ordinary run
    assert is_equal(Path("one"), Path("parts"))


def test_other_numbers_of_parts_go_on_where_the_others_were(data: Path) -> None:
    assert run_command(command(data, "one")) == 0
    for number in range(5):
        assert run_command(command(data, "parts", "--shard", f"{number}/16")) == 0
    for number in (1, 2):
        assert run_command(command(data, "parts", "--shard", f"{number}/3")) == 0
    assert run_command(command(data, "parts", "--shard", "0/1")) == 0
    assert is_equal(Path("one"), Path("parts"))
    asked = [line for log in Path("parts/run.d").glob("*.log") for line in log.read_bytes().splitlines()]
    assert sum(b' ["p",' in line for line in asked) == 40  # none twice
    assert summarize_parts("parts").parts == 1


def test_groups_and_documents_stay_together(own_folder: Path) -> None:
    rows = [{"id": str(n), "question": "Is it?", "answer": "yes", "group": f"g{n % 7}", "round": n} for n in range(70)]
    (own_folder / "talks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = snellen.RunSettings(tasks=("talks.jsonl",), model="blind/first", output_dir="x", infer_method="every")
    shares = [share_of(make_plan(settings), Part(number, 4)) for number in range(4)]
    homes = [{int(name) % 7 for name in share.own["talks"]} for share in shares]
    assert sorted(home for own in homes for home in own) == list(range(7))
    keys = [{key for job in share.jobs() for key in job.keys} for share in shares]
    assert sum(map(len, keys)) == 70 and [share.trials for share in shares] == list(map(len, keys))


ARRAY = {"SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "2"}
ARRAY |= {"SLURM_ARRAY_TASK_MAX": "8", "SLURM_ARRAY_TASK_STEP": "2"}


@pytest.mark.parametrize(
    ("text", "environment", "part"),
    [
        ("3/64", {}, Part(3, 64)),
        ("env", ARRAY, Part(2, 4)),
        ("env/64", ARRAY, Part(6, 64)),
        ("env/8", {"JOB_COMPLETION_INDEX": "0"}, Part(0, 8)),
        ("env", {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "5"}, Part(3, 5)),
        ("env", {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Part(1, 2)),
    ],
)
def test_the_part_is_found_in_the_environment(text: str, environment: dict[str, str], part: Part) -> None:
    assert find_part(text, environment) == part


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("env", {}),
        ("env", {"JOB_COMPLETION_INDEX": "1"}),
        ("env", ARRAY | {"SLURM_ARRAY_TASK_COUNT": "2"}),
        ("env/4", ARRAY),
        ("env", ARRAY | {"SLURM_ARRAY_TASK_ID": "six"}),
        ("env/4", {"JOB_COMPLETION_INDEX": "six"}),
        ("environment", {}),
    ],
)
def test_an_environment_that_does_not_say_is_refused(text: str, environment: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--shard"):
        find_part(text, environment)


def test_wrong_parts_are_refused_in_one_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(command(data, "parts", "--shard", "0/4")) == 0
    wrong = [
        (["--shard", "4/4"], "0/4 to 3/4"),
        (["--shard", "1/4", "--until-ci", "5"], "--until-ci"),
        (["--shard", "1/4", "--batch"], "--batch"),
        (["--shard", "1/4", "--fresh"], "--fresh"),
        (["--shard", "65/64"], "0/64 to 63/64"),
        (["--shard", "1/4", "--limit", "7"], "another configuration"),
        (["--shard", "1/4", "--model", "blind/first"], "blind/first"),
        ([], "snellen merge --partial"),
    ]
    for more, name in wrong:
        assert run_command(command(data, "parts", *more)) == 2
        error = capsys.readouterr().err.strip().splitlines()
        assert len(error) == 1 and name in error[0], (more, error)
    assert run_command(["run", data, "--model", "blind/first", "--shard", "0/2"]) == 2
    assert run_command(["merge", "."]) == 3
    capsys.readouterr()
    data.write_text(data.read_text().replace("animal 7?", "animal seven?"))
    assert run_command(command(data, "parts", "--shard", "1/4")) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1 and "row 'q7': question was" in error[0], error


def test_a_part_that_is_asked_twice_at_once_is_told_and_counted(
    data: Path, mock_server: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock_server("--ttft-ms", "30")
    asked = ["run", data, "--model", "openai/mock", "--base-url", server.base_url, "--no-cache", "-o", "twice"]
    asked += ["--max-workers", 2, "--shard", "0/1"]
    first = subprocess.Popen([*COMMAND, *map(str, asked)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        log = Path("twice/run.d/0000-of-0001.a0.json")
        wait_until(lambda: log.exists() or first.poll() is not None, "the first at work")
        assert run_command(asked) == 0
        assert "is also asked by process" in capsys.readouterr().err
    finally:
        first.wait(CEILING_S)
    results = json_of("merge", "twice")["results"]
    assert results["run"]["duplicates"]["asked_twice"] > 0 == results["run"]["duplicates"]["differ"]


@pytest.mark.parametrize("shard", [(), ("--shard", "0/1")])
def test_a_scheduler_that_says_it_twice_is_heard_once(
    data: Path, mock_server: Callable[..., Any], shard: tuple[str, ...]
) -> None:
    server = mock_server("--ttft-ms", "150")
    asked = [*COMMAND, "run", str(data), "--model", "openai/mock", "--base-url", server.base_url, "--no-cache"]
    asked += ["--max-workers", "4", "-o", "run", *shard]
    for number in (signal.SIGTERM, signal.SIGUSR1):
        before = requests_seen(server.base_url)
        process = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True)
        wait_until(lambda start=before: requests_seen(server.base_url) > start + 2, "requests in flight")
        process.send_signal(number)
        time.sleep(0.02)  # Slurm's own pace: two that wait together would be one
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        said = process.communicate(timeout=CEILING_S)[1]
        assert process.returncode == 75, said
        assert "Traceback" not in said
    assert subprocess.run([*asked, "--quiet"], check=False).returncode == 0
    assert requests_seen(server.base_url) == 40  # what was in flight was waited for and kept


def test_a_part_that_is_told_to_end_while_it_plans_asks_to_be_started_again(data: Path) -> None:
    Path("told.py").write_text("import os, signal\ndef register(registry): os.kill(os.getpid(), signal.SIGUSR1)\n")
    asked = [*COMMAND, *map(str, command(data, "run", "--shard", "0/2", "--plugin", "told.py"))]
    assert subprocess.run(asked, check=False, capture_output=True).returncode == 75


def test_clocks_that_are_apart_and_silent_parts_are_told(data: Path) -> None:
    for number in (0, 1, 2):
        assert run_command(command(data, "parts", "--shard", f"{number}/4")) == 0
    progress = [Path(f"parts/run.d/000{number}-of-0004.a0.json") for number in (0, 1, 2)]
    for path, owner in zip(progress, ("elsewhere", "elsewhere", socket.gethostname()), strict=True):
        said = json.loads(path.read_text())
        at_work = {"state": "running", "done": 5, "asked": 4, "seconds": 2.0, "input_tokens": 70}
        path.write_text(json.dumps(said | at_work | {"owner": {"host": owner, "pid": 999999999}}))
    now = progress[0].stat().st_mtime
    os.utime(progress[0], (now + 7200, now + 7200))
    os.utime(progress[1], (now - 7200, now - 7200))
    seen = json_of("show", "parts")
    assert {state: len(parts) for state, parts in seen["states"].items()} == {
        "running": 1, "silent": 1, "lost": 1, "waiting": 1
    }  # fmt: skip
    assert "1 part at work: 2.0 trials a second together, done in about 2 s" in seen["notes"], seen["notes"]
    assert "tokens so far: 210 in, 0 out" in seen["notes"]
    assert any("clocks are apart" in note for note in seen["notes"]) and "elsewhere" in seen["states"]["silent"][0]
    assert json_of("merge", "parts", "--partial")["stored"] == 30  # nothing is lost by what was said


def test_a_part_that_another_server_answered_is_refused_by_name(
    data: Path, mock_server: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (0, 1):
        served = ["--model", "openai/mock", "--base-url", mock_server().base_url, "--no-cache"]
        assert run_command(["run", data, *served, "--quiet", "-o", "parts", "--shard", f"{number}/2"]) == 0
    capsys.readouterr()
    assert run_command(["merge", "parts"]) == 2
    assert "0001-of-0002.a0.log" in capsys.readouterr().err and not Path("parts/run.db").exists()
    joined = json_of("merge", "parts", "--same-model")
    assert joined["missing"] == 0 and len(joined["results"]["run"]["servers"]) == 2


def test_a_server_that_is_gone_asks_to_be_started_again(data: Path) -> None:
    gone = ["--model", "openai/mock", "--base-url", "http://127.0.0.1:9/v1", "--no-cache", "-o", "gone", "--quiet"]
    assert run_command(["run", data, *gone, "--shard", "0/2"]) == 75
    assert run_command(["run", data, *gone]) == 3


def test_parts_hear_ctl_and_a_rate_is_shared_by_those_that_run(
    data: Path, mock_server: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    server = mock_server("--ttft-ms", 300)
    asked = ["--model", "openai/mock", "--base-url", server.base_url, "--max-workers", "2", "--no-cache"]
    line = [*COMMAND, "run", str(data), *asked, "--quiet", "-o", "run", "--shard"]
    parts = [subprocess.Popen([*line, f"{index}/2"]) for index in range(2)]
    try:
        wait_until(lambda: len(running_parts(Path("run"))) == 2, "two parts at work")
        assert run_command(["ctl", "run", "pause"]) == 0 and "2 parts paused" in capsys.readouterr().out
        seen = requests_seen(server.base_url)
        state = json_of("ctl", "run", "rate", "10", "--json")
        assert (state["parts"], state["rate"], state["paused"]) == (2, 10.0, True)
        assert requests_seen(server.base_url) == seen, "a paused part asks nothing"
        assert json_of("ctl", "run", "workers", "2", "--json")["workers"] == 2
        assert [one.progress.control["workers"] for one in running_parts(Path("run")) if one.progress] == [1, 1]
        assert run_command(["ctl", "run", "resume"]) == 0
        assert [part.wait(CEILING_S) for part in parts] == [0, 0]
    finally:
        for part in parts:
            part.kill()
            part.wait()
    assert not (Path("run") / "control.json").exists(), "a wish does not outlive its run"
    capsys.readouterr()
    assert run_command(["ctl", "run", "pause"]) == 2 and "no part" in capsys.readouterr().err


def test_parts_keep_pictures_and_the_joined_run_has_them(own_folder: Path, mock_server: Callable[..., Any]) -> None:
    for number in range(4):
        PIL.Image.new("RGB", (16, 16), (9, 60 * number, 9)).save(f"{number}.png")
    rows = [
        {"id": f"q{n}", "question": "Which?", "image": f"{n}.png", "options": ["a", "b"], "answer": "a"}
        for n in range(4)
    ]
    Path("my.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = ["run", "my.jsonl", "--model", "openai/mock", "--base-url", mock_server().base_url, "--quiet", "--no-cache"]
    assert run_command([*asked, "-o", "whole"]) == 0
    assert [run_command([*asked, "-o", "run", "--shard", f"{index}/2"]) for index in range(2)] == [0, 0]
    assert run_command([*asked, "-o", "none", "--shard", "0/1", "--keep-pictures", "off"]) == 0
    kept = [pictures_of(Path(name)) for name in ("whole", "run", "none")]
    assert len(kept[0]) == 4 and kept[0] == kept[1] and not kept[2]
    assert run_command(["merge", "--tidy", "run"]) == 0 and not list(Path("run/run.d").glob("*.pictures"))


def pictures_of(folder: Path) -> list[tuple[str, str, bytes]]:
    if not (folder / "pictures.db").exists():
        return []
    with closing(sqlite3.connect(folder / "pictures.db")) as database:
        return database.execute("SELECT * FROM pictures ORDER BY sha256").fetchall()


def test_parts_share_a_server_by_what_it_says(data: Path, mock_server: Callable[..., Any]) -> None:
    server = mock_server("--max-concurrency", 2, "--ttft-ms", 40, "--retry-after", "none")
    asked = [
        *COMMAND,
        "run",
        str(data),
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--no-cache",
        "--quiet",
    ]
    parts = [subprocess.Popen([*asked, "-o", "run", "--shard", f"{index}/3"]) for index in range(3)]
    assert [part.wait(CEILING_S) for part in parts] == [0, 0, 0]
    results = json_of("merge", "run")["results"]
    assert results["tasks"]["my"]["metrics"]["accuracy"]["n"] == 40 and results["status"]["complete"]
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/mock/stats", timeout=CEILING_S) as response:
        seen = json.load(response)
    assert (seen["status_200"], seen["peak"]) == (40, 2) and seen["status_429"] > 0
