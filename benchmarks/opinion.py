"""100,000 predictions of other harnesses imported within 20 s and 300 MB, and read a second time within 30 s, format by format.

`python benchmarks/opinion.py` runs all formats, `… opinion.py lmms-eval` one; `SNELLEN_BENCH_ROWS` makes fewer rows than 100,000.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from foreign_files import inspect_header, write_archive, write_json, write_lines, write_sheet, write_tsv

ROWS = int(os.environ.get("SNELLEN_BENCH_ROWS", "100000"))
IMPORT_S, OPINION_S, RESIDENT_MB = 20.0, 30.0, 300.0
OPTIONS = {"A": "a black cat on a mat", "B": "a brown dog at a door", "C": "a white horse", "D": "a cow in the grass"}
PROMPT = (
    "Which animal is to be seen in picture {}?\n{}\nAnswer with the option's letter from the given choices directly."
)
LINES = "\n".join(f"{letter}. {text}" for letter, text in OPTIONS.items())
REPLIES = (
    "B",
    "The answer is (B).",
    "Looking at the picture, one sees fur, a tail and a collar. A cat would sit otherwise. The correct answer is B.",
    "B, since everything about the animal in the picture says so",
    "I cannot tell what that is.",
    "**C. a white horse**",
)
CHILD = """
import re, sys, time
started = time.monotonic()
from pathlib import Path
if sys.argv[1] == "import":
    from snellen.kits.bridges.foreign_runs import import_predictions
    done = import_predictions(Path(sys.argv[2]), output=Path(sys.argv[3]))
    count, misread = done.about["rows"], 0
else:
    from snellen.kits.bridges.second_opinions import second_opinion
    found = second_opinion(Path(sys.argv[3]))
    count, misread = found.summary["trials"], found.summary["kinds"]["misread"]["count"]
mb = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # of this program alone, not of who started it
print(count, misread, time.monotonic() - started, time.process_time(), mb)
"""


def reply(number: int) -> str:
    return "Failed to obtain answer via API." if number % 97 == 0 else REPLIES[number % len(REPLIES)]


def table_rows() -> Iterator[dict[str, Any]]:
    for number in range(ROWS):
        question = f"Which animal is to be seen in picture {number}?"
        yield {
            "index": number,
            "question": question,
            **OPTIONS,
            "answer": "B",
            "category": number % 7,
            "prediction": reply(number),
        }


def sample_lines() -> Iterator[dict[str, Any]]:
    for number in range(ROWS):
        prompt = PROMPT.format(number, LINES)
        yield {
            "doc_id": number,
            "target": "B",
            "input": prompt,
            "filtered_resps": [reply(number)],
            "token_counts": [None],
        }


def log_members() -> Iterator[tuple[str, Any]]:
    yield "header.json", inspect_header(ROWS, 0.5)
    for number in range(ROWS):
        output = {"completion": reply(number), "choices": [{"stop_reason": "stop"}]}
        sample = {
            "id": number,
            "epoch": 1,
            "input": f"Picture {number}?",
            "choices": list(OPTIONS.values()),
            "target": "B",
        }
        yield f"samples/{number}_epoch_1.json", {**sample, "output": output, "scores": {"choice": {"value": "C"}}}


FORMATS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "lmms-eval": ("t_samples_mmmu_val.jsonl", lambda path: write_lines(path, list(sample_lines()))),
    "vlmevalkit-tsv": ("small_MMStar.tsv", lambda path: write_tsv(path, list(table_rows()))),
    "vlmevalkit-json": ("small_MMStar.json", lambda path: write_json(path, list(table_rows()))),
    "vlmevalkit-xlsx": ("small_MMStar.xlsx", lambda path: write_sheet(path, list(table_rows()))),
    "inspect": ("log.eval", lambda path: write_archive(path, list(log_members()))),
}


def measure(step: str, path: Path, folder: Path, bar_s: float) -> bool:
    """Run one step in a process of its own and tell whether it keeps its bars; CPU time, since machines are shared."""
    command = [sys.executable, "-c", CHILD, step, str(path), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    count, misread, wall, cpu, mb = map(float, done)
    passed = count == ROWS and (ROWS < 100_000 or (cpu <= bar_s and mb <= RESIDENT_MB))
    found = f", {misread:,.0f} misread" if misread else ""
    figures = f"{count:,.0f} rows, {cpu:.1f} s of CPU ({wall:.1f} s by the clock), {mb:.0f} MB{found}"
    print(f"  {'PASS' if passed else 'FAIL'} {step}: {figures} (bars {bar_s:.0f} s, {RESIDENT_MB:.0f} MB)", flush=True)
    return passed


def main() -> int:
    passed = True
    for name in sys.argv[1:] or list(FORMATS):
        with tempfile.TemporaryDirectory() as temporary:
            file, write = FORMATS[name]
            path, run = Path(temporary) / "m" / file, Path(temporary) / "run"
            path.parent.mkdir()
            write(path)
            print(f"{name}: {path.stat().st_size / 1e6:.0f} MB")
            passed &= measure("import", path, run, IMPORT_S)
            passed &= measure("second-opinion", path, run, OPINION_S)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
