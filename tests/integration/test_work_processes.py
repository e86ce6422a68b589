"""Documents and bundles made by worker processes are those of one process to the byte, also when workers are killed."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import pytest

from command_line import run_command
from executor_runs import descendants
from snellen.api.executors import Workers, mapper_for
from snellen.core.errors import UsageError
from snellen.data.files.work import WorkSpec

TWO = ["--executor", "processes", "--replicas", "2"]
PROCESS = "snellen.kits.scale.processes"


def contents(folder: Path) -> dict[str, str]:
    """Return every file below a folder with its hash."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and their pages drawn by one process."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "texts").mkdir()
    for number in range(3):
        (folder / "texts" / f"d{number}.txt").write_text(f"Page {number} says so. " * 150)
    render = ["docs", "render", folder / "texts", "-o", folder / "clean", "--dpi", "48"]
    assert run_command(render) == 0
    return folder


def test_pages_and_degraded_pages_are_the_same_to_the_byte(pages: Path, tmp_path: Path) -> None:
    assert run_command(["docs", "render", pages / "texts", "-o", tmp_path / "clean", "--dpi", "48", *TWO]) == 0
    assert contents(tmp_path / "clean") == contents(pages / "clean")
    steps = ["--chain", "page_shuffle:2+page_stitch:1+rotation:1+gaussian_noise:2+jpeg:3"]
    assert run_command(["docs", "perturb", pages / "clean", "-o", pages / "bad", *steps]) == 0
    assert run_command(["docs", "perturb", pages / "clean", "-o", tmp_path / "bad", *steps, *TWO]) == 0
    assert contents(tmp_path / "bad") == contents(pages / "bad")


def test_a_pdf_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4")
    assert run_command(["docs", "render", tmp_path / "a.pdf", "-o", tmp_path / "out", *TWO]) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert "leave out --executor" in error


def test_killed_workers_change_nothing_and_are_told() -> None:
    spec = WorkSpec("work_doubles:Sleeper", b"0.02")
    items = [str(number).encode() for number in range(60)]
    told: list[str] = []
    results = mapper_for(Workers("processes", 2), told.append)(spec, items)
    found = [next(results)]
    os.kill(descendants(os.getpid(), PROCESS)[0], signal.SIGKILL)
    assert [*found, *results] == [item * 2 for item in items]
    assert any("lost: killed by SIGKILL" in note for note in told)


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (Workers(replicas=2), "--replicas is for --executor processes or ray"),
        (Workers("processes", ray_address="auto"), "--ray-address is for --executor ray"),
        (Workers("threads"), "is none of local, processes, ray"),
    ],
)
def test_flags_without_their_executor_are_refused(workers: Workers, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        mapper_for(workers)
