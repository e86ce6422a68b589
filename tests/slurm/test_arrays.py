"""Runs in parts on a real Slurm: killed, pre-empted, timed out and lost parts leave the run that one process leaves."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from command_line import COMMAND, json_of, run_command
from figures import note_figure
from slurm_cluster import Cluster, can_run, cluster
from snellen.api.stored_results import is_unfinished
from snellen.kits.mock.process import mock_process
from snellen.store.part_log import TRIAL, LogReading, log_files
from snellen.store.part_progress import Progress, read_attempts
from snellen.store.reader import RunReader
from waiting import CEILING_S, requests_seen, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.crash]
slurm_only = pytest.mark.skipif(not can_run(), reason="needs Slurm (make slurm installs it) and root")
PARTS = int(os.environ.get("SNELLEN_PARTS", "64"))
A_PART = 12
KILLS, PREEMPTED = max(1, PARTS * 10 // 64), max(1, PARTS * 5 // 64)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm")) as made:
        yield made


def write_rows(path: Path, count: int) -> Path:
    rows = [
        {
            "id": f"q{number}",
            "question": f"Which thing is number {number}?",
            "options": [f"thing {number}-{letter}" for letter in "abcd"],
            "answer": "ABCD"[number % 4],
        }
        for number in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def asked(data: Path, base_url: str, folder: Path, *more: object) -> list[str]:
    flags = ["--model", "openai/mock", "--base-url", base_url, "--no-cache", "--max-workers", 2, "-o", folder, *more]
    return [str(data), *map(str, flags)]


def told(folder: Path) -> tuple[Any, list[dict[str, Any]]]:
    """Return results and records without what time and place change: moments, folders, latencies, duplicates."""
    results = json.loads((folder / "results.json").read_bytes())
    results["run"] |= {"created": "", "command": "", "duplicates": None}
    for row in results["run"]["answerers"]:
        row["since"] = ""
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return without_latency(results), without_latency(records)


def since(began: float) -> str:
    """Return how long something took, and how many processes wanted the processor meanwhile."""
    return f"{time.monotonic() - began:.0f} s at load {os.getloadavg()[1]:.0f}"


def without_latency(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_latency(one) for key, one in value.items() if "latency" not in key and "second" not in key}
    return [without_latency(one) for one in value] if isinstance(value, list) else value


def nothing_is_lost(folder: Path) -> int:
    """Check that every reply that any log holds is a trial of the joined run; return how many lines."""
    with RunReader(folder) as run:
        stored = set(run.rows("SELECT sample, variant, repeat FROM predictions WHERE failed = 0"))
    kept = replies_in(folder)
    assert set(kept) <= stored
    return len(kept)


def running(folder: Path) -> dict[int, Progress]:
    """Return the parts at work and what they say."""
    found = read_attempts(folder)
    return {one.file.part.index: one.progress for one in found if one.progress and one.state == "running"}


def kill_some(folder: Path, count: int, slurm: Cluster) -> int:
    """Kill parts at work by -9, each after another number of stored replies."""
    draw, killed = random.Random(41), set[int]()
    place = [draw.randrange(A_PART) for _ in range(PARTS)]
    while len(killed) < count and slurm.unfinished():
        for index, said in running(folder).items():
            log = folder / "run.d" / f"{index:04}-of-{PARTS:04}.a0.log"
            if index not in killed and len(killed) < count and log.read_bytes().count(b' ["p",') >= place[index]:
                with suppress(ProcessLookupError):
                    os.kill(said.owner.pid, signal.SIGKILL)
                    killed.add(index)
        time.sleep(0.05)  # other processes are at work: no clock to inject
    return len(killed)


@slurm_only
def test_an_array_with_killed_preempted_and_lost_parts_equals_one_process(slurm: Cluster, tmp_path: Path) -> None:
    data, folder, began = write_rows(tmp_path / "my.jsonl", PARTS * A_PART), tmp_path / "run", time.monotonic()
    with mock_process(["--ttft-ms", "400"]) as server, mock_process() as quick:
        url = server.base_url
        one = subprocess.Popen([*COMMAND, "run", *asked(data, quick.base_url, tmp_path / "one", "--quiet")])
        submit = [*COMMAND, "submit", "slurm", "--parts", PARTS, "--time", "00:10:00"]
        slurm.run(*submit, "--go", *asked(data, url, folder, "--same-model"))
        wait_until(lambda: len(running(folder)) >= 4, "parts at work")
        ghost = lose_a_node(slurm, folder)
        killed = kill_some(folder, KILLS, slurm)
        preempted = preempt_some(PREEMPTED, slurm)
        wait_until(lambda: slurm.run("sinfo", "-h", "-n", "n4", "-o", "%t").startswith("down"), "the node called down")
        slurm.finish("the array")
        if ghost:
            os.kill(ghost, signal.SIGCONT)
            wait_until(lambda: not Path(f"/proc/{ghost}").exists(), "the ghost's own end")
        slurm.run("scontrol", "update", "NodeName=n4", "State=RESUME", check=False)
        if is_unfinished(folder):
            slurm.run(*submit, "--again", "--go", *asked(data, url, folder, "--same-model"))
            slurm.finish("what was left")
        assert one.wait(CEILING_S) == 0
    found = json_of("merge", folder, "--same-model")
    assert found["missing"] == 0 and killed == KILLS and preempted >= PREEMPTED
    ours, theirs = told(folder), told(tmp_path / "one")
    assert ours[1] == theirs[1]
    for results in (ours[0], theirs[0]):
        results["run"] |= {"answerers": [], "servers": []}
    assert ours[0] == theirs[0]
    lines = nothing_is_lost(folder)
    twice = found["asked_twice"]
    note_figure(
        "slurm",
        f"{PARTS} parts on Slurm, {killed} killed, {PREEMPTED} or more pre-empted, one node lost",
        f"{preempted} pre-empted, {lines} replies in logs, 0 lost, {twice} asked twice, figures and records equal, {since(began)}",
    )
    print(f"parts {PARTS}, killed {killed}, pre-empted {preempted}, twice {twice}, lines {lines}, {since(began)}")


def preempt_some(count: int, slurm: Cluster) -> int:
    """Let jobs of a better partition take whole nodes until so many parts had to make room."""
    while slurm.preempted() < count and slurm.jobs("RUNNING"):
        for node in {node for _, node in slurm.jobs("RUNNING").values()} - {"n4"}:
            slurm.run("sbatch", "-p", "high", "-w", node, "--exclusive", "--wrap", "sleep 1", "-o", "/dev/null")
        before, until = slurm.preempted(), time.monotonic() + 4.0  # the scheduler's own pace
        while slurm.preempted() == before and time.monotonic() < until:
            time.sleep(0.1)  # the scheduler is at work: no clock to inject
    return slurm.preempted()


def lose_a_node(slurm: Cluster, folder: Path) -> int:
    """Kill the daemon of node n4 and hold a process of it still: Slurm takes it for lost, and it lives on."""
    here = {number: node for number, (state, node) in slurm.jobs("RUNNING").items() if node == "n4"}
    wait_until(lambda: any(int(number.split("_")[1]) in running(folder) for number in here), "a part at work on n4")
    part = next(int(number.split("_")[1]) for number in here if int(number.split("_")[1]) in running(folder))
    pid = running(folder)[part].owner.pid
    os.kill(pid, signal.SIGSTOP)
    os.kill(slurm.pid("slurmd-n4"), signal.SIGKILL)
    return pid


@slurm_only
def test_a_time_limit_drains_requeues_and_finishes(slurm: Cluster, tmp_path: Path) -> None:
    data, folder = write_rows(tmp_path / "my.jsonl", 18), tmp_path / "run"
    with mock_process(["--ttft-ms", "1500"]) as server:
        submit = [*COMMAND, "submit", "slurm", "--parts", 1, "--time", "00:01:00", "--warn", 50, "--go"]
        slurm.run(*submit, *asked(data, server.base_url, folder, "--max-workers", 1))
        slurm.finish("a part of several time limits")
        seen = requests_seen(server.base_url)
    states = [one.progress.state for one in read_attempts(folder) if one.progress]
    assert states.count("stopped") >= 1 and states[-1] == "complete", states
    assert json_of("merge", folder)["asked_twice"] == 0
    assert json.loads((folder / "results.json").read_bytes())["status"]["complete"]
    assert seen == 18, "what was in flight was waited for and kept"


@slurm_only
def test_a_cancelled_array_stays_cancelled_and_goes_on_when_it_is_submitted_again(
    slurm: Cluster, tmp_path: Path
) -> None:
    data, folder = write_rows(tmp_path / "my.jsonl", 24), tmp_path / "run"
    with mock_process(["--ttft-ms", "500"]) as server:
        submit = [*COMMAND, "submit", "slurm", "--go"]
        words = asked(data, server.base_url, folder, "--max-workers", 1)
        said = slurm.run(*submit, "--parts", 2, *words)
        wait_until(lambda: len(replies_in(folder)) >= 2, "replies")
        slurm.run("scancel", re.findall(r"submitted as job (\d+)", said)[0])
        slurm.finish("the end of what was cancelled")
        assert [one.state for one in read_attempts(folder)] == ["stopped", "stopped"], "no part was requeued"
        slurm.run(*submit, "--again", *words)
        slurm.finish("what was left")
        assert requests_seen(server.base_url) == 24, "what was in flight was waited for and kept"
    assert json.loads((folder / "results.json").read_bytes())["status"]["complete"]


@slurm_only
def test_a_server_in_a_job_of_its_own_answers_all_parts_and_ends_with_them(slurm: Cluster, tmp_path: Path) -> None:
    data, began = write_rows(tmp_path / "my rows.jsonl", 40), time.monotonic()
    folder = tmp_path / '50% of "it\'s" räume #1'
    other = slurm.run(
        "sbatch", "--parsable", "--job-name=snellen-serve", "--wrap", "sleep 600", "-o", "/dev/null"
    ).strip()
    serve = shlex.join([*COMMAND, "mock-server", "--port", "18955", "--ttft-ms", "20"])
    told_it = [
        "submit",
        "slurm",
        "--parts",
        4,
        "--parallel",
        4,
        "--time",
        "00:05:00",
        "--serve",
        serve,
        "--port",
        18955,
    ]
    words = [data, "--model", "openai/mock", "--no-cache", "-o", folder]
    printed = slurm.run(*COMMAND, *told_it, *words)
    lines = [line.strip() for line in printed.splitlines() if "sbatch" in line]
    assert len(lines) == 3 and len(list((folder / "submit").glob("*.sh"))) == 3
    slurm.run("bash", "-ec", "\n".join(lines))  # as printed
    wait_until(lambda: (folder / "results.json").exists(), "the merged run", 90)
    mine = (folder / "submit" / "server.job").read_text().strip()
    wait_until(lambda: mine not in slurm.jobs("RUNNING"), "the end of the server")
    assert other in slurm.jobs("RUNNING"), "another run's server goes on"
    slurm.run("scancel", other)
    results = json.loads((folder / "results.json").read_bytes())
    assert results["status"]["complete"] and results["status"]["planned"] == {"my rows": 40}
    wait_until(lambda: not (folder / "submit" / "server.url").exists(), "the end of its address")
    logs = "".join(path.read_text() for path in (folder / "submit" / "logs").iterdir())
    broken = ["--serve", "false", "--go", data, "--model", "openai/mock", "-o", tmp_path / "broken"]
    slurm.run(*COMMAND, "submit", "slurm", "--parts", 2, *broken)
    slurm.finish("parts of a server that never starts")
    said = [path.read_text() for path in (tmp_path / "broken" / "submit" / "logs").glob("*_*.txt")]
    assert len(said) == 2 and all("the server did not start" in one for one in said)
    note_figure("slurm", "a served model in a job of its own, 4 parts, printed scripts run unchanged",
                f"40 of 40 trials, server ended by the merge, another server untouched, {since(began)}")  # fmt: skip
    assert "Traceback" not in logs, logs[-2000:]


def has_fuse() -> bool:
    return os.geteuid() == 0 and shutil.which("bindfs") is not None and Path("/dev/fuse").exists()


@pytest.mark.skipif(not has_fuse(), reason="needs bindfs and /dev/fuse")
def test_two_mounts_without_shared_locks_ask_the_same_parts_are_killed_and_damage_nothing(tmp_path: Path) -> None:
    data, real = write_rows(tmp_path / "my.jsonl", 120), tmp_path / "real"
    mounts = [tmp_path / "a", tmp_path / "b"]
    for place in (real, *mounts):
        place.mkdir()
    with mock_process(["--ttft-ms", "100"]) as server:
        subprocess.run([*COMMAND, "run", *asked(data, server.base_url, tmp_path / "one", "--quiet")], check=True)
        try:
            for mount in mounts:
                subprocess.run(["bindfs", real, mount], check=True)
            each = [(mount, part) for part in ("0/2", "1/2") for mount in mounts]
            parts = [start_part(data, server.base_url, mount, part) for mount, part in each]
            wait_until(lambda: len(replies_in(real / "run")) >= 24, "replies")
            parts[0].kill()
            assert parts[0].wait() == -signal.SIGKILL
            parts[0] = start_part(data, server.base_url, mounts[1], "0/2")  # the third that asks it, on the other node
            assert {one.wait(CEILING_S) for one in parts} == {0}
            found = json_of("merge", mounts[0] / "run")
        finally:
            for mount in mounts:
                subprocess.run(["fusermount", "-u", mount], check=False)
    assert found["missing"] == 0 < found["asked_twice"] and found["damaged"] == 0 and not found["unreadable"]
    assert told(real / "run") == told(tmp_path / "one")
    nothing_is_lost(real / "run")


def start_part(data: Path, base_url: str, mount: Path, part: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, "run", *asked(data, base_url, mount / "run", "--shard", part, "--quiet")])


def test_printed_scripts_are_good_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "it's mine.jsonl", 4)
    given = [["--model", "blind/first"], ["--model", "openai/x", "--serve", "vllm serve x", "--setup", "true"]]
    for more in given:
        command = ["submit", "slurm", "--parts", "2", *more, "it's mine.jsonl", "-o", "a b"]
        subprocess.run([*COMMAND, *command], check=True, stdout=subprocess.DEVNULL)
        for script in Path("a b/submit").glob("*.sh"):
            subprocess.run(["bash", "-n", script], check=True)


def test_64_then_8_then_1_parts_equal_one_process_and_none_is_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    data, draw = write_rows(tmp_path / "my.jsonl", 640), random.Random(8)
    asking = ["run", data, "--model", "blind/longest", "--quiet"]
    assert run_command([*asking, "-o", "one"]) == 0
    parts = (
        [(number, 64) for number in draw.sample(range(64), 20)] + [(number, 8) for number in (0, 3, 5, 7)] + [(0, 1)]
    )
    for number, count in parts:
        assert run_command([*asking, "-o", "run", "--shard", f"{number}/{count}"]) == 0
    assert Path("one/records.jsonl").read_bytes() == Path("run/records.jsonl").read_bytes()
    assert told(Path("one")) == told(Path("run"))
    assert nothing_is_lost(Path("run")) == 640


def test_64_then_8_then_1_parts_that_steal_and_are_killed_equal_one_process(tmp_path: Path) -> None:
    data, folder = write_rows(tmp_path / "my.jsonl", 640), tmp_path / "run"
    with mock_process(["--ttft-ms", "20"]) as server, mock_process() as quick:
        subprocess.run([*COMMAND, "run", *asked(data, quick.base_url, tmp_path / "one", "--quiet")], check=True)
        more = ("--same-model", "--steal", "--quiet", "--shard")
        for part, stored in (("9/64", 60), ("10/64", 120), ("3/8", 240), ("4/8", 320)):
            thief = subprocess.Popen([*COMMAND, "run", *asked(data, server.base_url, folder, *more, part)])
            wait_until(lambda most=stored: len(replies_in(folder)) >= most, f"{stored} replies")
            thief.kill()
            thief.wait()
        assert json_of("merge", folder, "--same-model", codes=(1,))["missing"] > 0
        subprocess.run([*COMMAND, "run", *asked(data, quick.base_url, folder, *more, "0/1")], check=True)
    found = json_of("merge", folder, "--same-model")
    assert found["missing"] == 0 and found["asked_twice"] <= 64 * 4
    assert told(folder)[1] == told(tmp_path / "one")[1]
    assert nothing_is_lost(folder) - 640 == found["asked_twice"]


def replies_in(folder: Path) -> list[tuple[Any, ...]]:
    """Return the trials of all logs, those that were asked twice too."""
    return [line.row[1:4] for file in log_files(folder) for line in LogReading(file.path) if line.kind == TRIAL]
