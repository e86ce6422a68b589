"""A load that is killed or stopped at the worst moment keeps what it measured, and says what it is."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import COMMAND, run_command
from snellen.api import perf as module
from snellen.api.perf import LoadPlan, PerfSettings, Synthetic, run_perf
from snellen.api.settings import RunSettings
from snellen.api.timelines import read_any, summary_of
from snellen.core.errors import DataError, UsageError
from snellen.perf.collect import PARTIAL, partial_files
from waiting import CEILING_S, wait_until


def start_load(base_url: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    words = ["perf", "synthetic", "--model", "openai/mock", "--base-url", base_url, "--concurrency", "4"]
    words += ["--duration", "600", "--warmup", "0", "--no-pictures", "-o", str(folder), *more]
    return subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kept(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in partial_files(folder))


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_load_killed_inside_a_level_keeps_its_requests_and_says_so(
    mock_server: Callable[..., Any], tmp_path: Path, processes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server, out = mock_server("--ttft-ms", 5), tmp_path / "out"
    process = start_load(server.base_url, out, "--processes", processes)
    try:
        wait_until(lambda: kept(out) >= 20, "twenty finished requests")
        workers = children_of(process.pid)
    finally:
        process.kill()
        process.wait(CEILING_S)
    assert len(workers) == (int(processes) if processes != "1" else 0)
    wait_until(lambda: not any(map(is_alive, workers)), "the end of its workers: nobody wants their load any more")
    timeline = read_any(out)
    assert len(timeline.requests) >= 20 and timeline.interrupted
    summary = summary_of(timeline, profile="snellen", stage="total", stats=None, slo=None)
    assert any("killed" in note for note in summary["notes"])
    assert run_command(["perf", "summarize", out]) == 0
    assert "killed while it ran" in capsys.readouterr().out
    with pytest.raises(UsageError, match=r"killed.*summarize"):
        run_perf(synthetic(out))


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_a_line_that_was_cut_is_left_out_and_a_broken_one_is_told(tmp_path: Path) -> None:
    line = b'{"id":"a","start":1.0,"done":2.0}\n'
    (tmp_path / f"{PARTIAL}.jsonl").write_bytes(line * 3 + line[:11])
    assert len(read_any(tmp_path).requests) == 3
    (tmp_path / f"{PARTIAL}.jsonl").write_bytes(line + line[:11] + b"\n" + line)
    with pytest.raises(DataError, match="damaged"):
        read_any(tmp_path)


def synthetic(folder: Path) -> PerfSettings:
    run = RunSettings(tasks=("synthetic",), model="openai/mock", base_url="http://127.0.0.1:9/v1", output_dir=folder)
    return PerfSettings(run=run, levels=(LoadPlan(concurrency=1),), synthetic=Synthetic(8, 8), draw=False)


def test_ctrl_c_as_soon_as_the_folder_is_there_leaves_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir

    def make_and_stop(self: Path, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        monkeypatch.setattr(Path, "mkdir", make)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "mkdir", make_and_stop)
    assert run_perf(synthetic(tmp_path / "out")).interrupted
    assert json.loads((tmp_path / "out" / "perf.json").read_text())["interrupted"] is True


def test_ctrl_c_while_the_report_is_written_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_measure_levels", lambda *_: None)
    monkeypatch.setattr(module, "render_page", lambda *_: signal.raise_signal(signal.SIGINT) or "the page")
    with pytest.raises(KeyboardInterrupt):
        run_perf(synthetic(tmp_path / "out"))
    assert (tmp_path / "out" / "perf.html").read_text() == "the page"
    assert json.loads((tmp_path / "out" / "perf.json").read_text())["interrupted"] is False
