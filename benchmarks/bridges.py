"""100,000 trials written in each form of another tool: seconds of CPU, memory, bytes.

`python benchmarks/bridges.py [--trials 100000]`: makes the run once, then writes each form in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

FORMS = ("eee", "inspect", "otel", "junit", "croissant", "hub")
HUB = {"dataset": "org/bench", "task_id": "default", "scale": "percent"}


def write_one(run: Path, form: str, output: Path) -> None:
    from snellen.api.outputs import export

    before = time.perf_counter()
    export(run, form, output, HUB if form == "hub" else None)
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "form": form,
                "wall_s": round(time.perf_counter() - before, 1),
                "cpu_s": round(time.process_time(), 1),
                "peak_mb": round(used.ru_maxrss / 1024),
                "written_mb": round(size / 1e6, 1),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--form")
    parser.add_argument("--output", type=Path)
    told = parser.parse_args()
    if told.form:
        write_one(told.run, told.form, told.output)
        return
    from made_runs import make_run, make_task

    with tempfile.TemporaryDirectory() as folder:
        run = told.run or make_run(Path(folder) / "run", count=told.trials // 2, task=make_task(repeats=2))
        for form in FORMS:
            command = [
                sys.executable,
                __file__,
                "--run",
                str(run),
                "--form",
                form,
                "--output",
                str(Path(folder) / form),
            ]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
