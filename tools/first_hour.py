"""Types the jobs of a newcomer's first hour and prints a table: commands, pages needed, errors met and what they name.

Own rows, an own server, a hub on loopback; every command is a process of its own, in an empty folder. A page is needed
where a command has a flag that stands neither in the README, nor in the command's short help, nor in what was printed
before, and where code is to be written. An error names its fix if its line holds something to type or to look at.
`python tools/first_hour.py`; exit 1 where a job does not do what it should.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import PIL.Image
import PIL.ImageDraw

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
COMMAND = [sys.executable, "-c", "from snellen.cli.main import main; main()"]
FIX = re.compile(
    r"--[a-z]|`[^`]+`|did you mean|-p [a-z]|pip install|it serves: |run the same command|curl |see snellen"
)
FLAG = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
BEFORE = {
    "make demo": (1, 0, 0, "–"),
    "1 own rows, served model": (3, 1, 1, "half"),
    "2 benchmark by name": (9, 1, 5, "3 of 5"),
    "2b data of another tool": (1, 0, 0, "–"),
    "3 compare": (1, 0, 0, "–"),
    "4 wrong answers, share": (1, 0, 1, "yes"),
    "5 five inferences": (1, 0, 0, "–"),
    "6 perf": (1, 0, 0, "–"),
    "7 Python": (0, 1, 2, "no"),
    "8 own model": (1, 1, 0, "–"),
    "8 own scorer": (4, 1, 3, "2 of 3"),
    "9 Ctrl-C, resume": (2, 0, 0, "–"),
    "10 exam": (2, 0, 0, "–"),
}
"""Job -> commands, documents, errors, how many named their fix, when the jobs were first typed by hand (b83b47b3)."""


@dataclass
class Hour:
    """Somebody who types, and what came of it."""

    url: str
    slow_url: str
    """A server that takes its time."""
    known: str
    """All that was read or printed so far."""
    commands: int = 0
    pages: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What did not come out as it should."""

    def type(self, line: str, expect: int = 0, more: Mapping[str, str] | None = None) -> str:
        """Type one command; return what it printed."""
        words = line.replace("URL", self.url).split()
        self._look_up(line)
        done = subprocess.run(
            [*COMMAND, *words], capture_output=True, text=True, check=False, env={**os.environ, **(more or {})}
        )
        self.note(line, done.returncode, done.stdout + done.stderr, expect)
        return done.stdout + done.stderr

    def note(self, line: str, code: int, printed: str, expect: int = 0) -> None:
        """Count a command and its errors; an exit code that was not expected is wrong."""
        self.commands += 1
        self.known += printed
        self.errors += [text for text in printed.splitlines() if text.startswith(("error:", "Traceback"))]
        self.check(code == expect, f"{line}: exit {code}, not {expect}: {printed[-300:]}")

    def read(self, page: str) -> None:
        """Look into a page of the documentation."""
        self.pages.append(page)
        self.known += (ROOT / "docs" / page).read_text(encoding="utf-8")

    def check(self, holds: object, otherwise: str) -> None:
        """Keep what does not hold."""
        if not holds:
            self.wrong.append(otherwise)

    def _look_up(self, line: str) -> None:
        """Read the command's help, and a page where a flag is not in it."""
        name = line.split(maxsplit=1)[0]
        self.known += subprocess.run([*COMMAND, name, "--help"], capture_output=True, text=True, check=False).stdout
        lacking = [flag for flag in FLAG.findall(line) if flag not in self.known]
        for flag in lacking:
            found = (page for page in sorted((ROOT / "docs").glob("*.md")) if flag in page.read_text(encoding="utf-8"))
            self.read(next(found, ROOT / "docs" / "index.md").name)


def write_rows() -> None:
    """Write sixty rows about sixty pictures: choices, numbers, names."""
    shops, rows = ["Tesco", "Lidl", "Rewe", "Migros"], []
    Path("pictures").mkdir()
    for n in range(60):
        page = PIL.Image.new("RGB", (200, 60), "white")
        PIL.ImageDraw.Draw(page).text((10, 20), f"{shops[n % 4]} {n}", fill="black")
        page.save(f"pictures/{n}.png")
        row: dict[str, object] = {
            "id": f"q{n:02}",
            "image": f"pictures/{n}.png",
            "topic": ("choice", "number", "name")[n % 3],
        }
        row |= (
            {"question": "Which shop is it?", "options": shops, "answer": shops[n % 4]},
            {"question": "Which number is printed?", "answer": str(n)},
            {"question": "What is the name of the shop?", "answer": shops[n % 4]},
        )[n % 3]
        rows.append(row)
    Path("my.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def demo(hour: Hour) -> None:
    """`make demo` types this."""
    hour.check("acuity_px" in hour.type("run eyechart --model reader -o runs/demo"), "no acuity")


def own_rows(hour: Hour) -> None:
    """The number of a talkative model must be the share of replies that hold the answer."""
    printed = hour.type("run my.jsonl --model openai/mock --base-url URL --name a")
    records = [json.loads(line) for line in Path("runs/a/records.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = {row["id"]: row for row in map(json.loads, Path("my.jsonl").read_text(encoding="utf-8").splitlines())}
    truth = sum(is_right(record["text"], rows[record["sample"]]) for record in records) / len(records)
    hour.check(f"{truth:.1%}".replace("%", " %") in printed, f"by hand {truth:.1%}, printed otherwise")
    hour.check("Result: " in printed and "Share: " in printed, "the end does not say the number, or how to share it")


def is_right(reply: str, row: Mapping[str, Any]) -> bool:
    """Count a reply without any code of ours: the right letter alone, or the right text as a word of it."""
    options = row.get("options", ())
    letters = ["ABCD"[options.index(row["answer"])]] if options else []
    return any(re.search(rf"(?<![\w.]){re.escape(one)}(?!\w|\.\d)", reply) for one in (*letters, row["answer"]))


def benchmark(hour: Hour) -> None:
    """Not here: refused with what to type; then fetched, then without a network."""
    with hub() as address:
        told = {"HF_ENDPOINT": address, "HF_HUB_CACHE": str(Path("empty").resolve())}
        hour.type("run mmmu-pro --model openai/mock --base-url URL --name mmmu", 2, told)
        hour.type("run mmmu-pro --model openai/mock --base-url URL --name mmmu --yes", 0, told)


def other_data(hour: Hour) -> None:
    """What another tool left in the hub's cache is found."""
    import huggingface_hub

    with hub() as address:
        file = "standard (10 options)/test-00000-of-00001.parquet"
        huggingface_hub.hf_hub_download(
            "MMMU/MMMU_Pro", file, repo_type="dataset", cache_dir=Path("hub"), endpoint=address
        )
    told = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_CACHE": str(Path("hub").resolve())}
    printed = hour.type(
        f"run mmmu-pro --model openai/mock --base-url URL --name cached --data-root {Path('none')}", 0, told
    )
    hour.check("hub's cache" in printed, "not said where the data came from")


def compare(hour: Hour) -> None:
    """Two runs end in a verdict."""
    hour.check("verdict: " in hour.type("compare runs/a runs/b"), "no verdict")


def wrong_answers(hour: Hour) -> None:
    """Why answers are wrong; report.html is there to be sent."""
    hour.check("not right" in hour.type("show runs/a --errors"), "no groups")
    hour.check(Path("runs/a/report.html").stat().st_size > 10_000, "no report to share")


def inferences(hour: Hour) -> None:
    """Several inferences of each question."""
    printed = hour.type("run my.jsonl --model openai/mock --base-url URL --num-infers 5 --temperature 0.6 --name five")
    hour.check("pass@5" in printed, "no pass@5")


def perf(hour: Hour) -> None:
    """A load."""
    hour.check("TTFT" in hour.type("perf my.jsonl --model openai/mock --base-url URL --concurrency 1,4"), "no TTFT")


def in_python(hour: Hour) -> None:
    """A run looked into from Python, by one page."""
    hour.read("python.md")
    code = (
        "import snellen; a = snellen.load('runs/a'); b = snellen.load('runs/b'); print(a); print(a.errors()); "
        "print(a.compare(b)); print(len(a.frame()), len(a.wrong()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    hour.note("python", done.returncode, done.stdout + done.stderr)
    hour.commands = 0
    hour.check("better" in done.stdout or "distinguishable" in done.stdout, "no verdict in Python")


def own_model(hour: Hour) -> None:
    """A function as a model."""
    hour.read("add-your-own-model.md")
    Path("model.py").write_text("def mine(image, prompt):\n    return '(A)'\n", encoding="utf-8")
    hour.type("run my.jsonl --plugin model.py --model plugin/mine --name own")


def own_scorer(hour: Hour) -> None:
    """A function as a scorer, on a run that is there."""
    hour.read("add-your-own-scorer.md")
    Path("scorer.py").write_text(
        "from snellen import Score\n\ndef long(sample, request, prediction, options):\n"
        "    return [Score(prediction.key, 'long', float(len(prediction.text) > 20))]\n\n"
        "def register(registry):\n    registry.add('scorer', 'long', long)\n",
        encoding="utf-8",
    )
    hour.check("long" in hour.type("score runs/a --plugin scorer.py"), "no score")


def interrupted(hour: Hour) -> None:
    """Ctrl-C in the middle, the same command again."""
    line = "run my.jsonl --model openai/mock --base-url URL --name cut --temperature 0.1 --max-workers 1"
    words = line.replace("URL", hour.slow_url).split()
    running = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while stored("runs/cut") < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    printed = running.communicate()[0]
    kept = stored("runs/cut")
    hour.note("run … Ctrl-C", running.returncode, printed, 130)
    again = hour.type(line.replace("URL", hour.slow_url))
    hour.check(0 < kept < 60 and f"{kept} stored before" in again, f"{kept} kept, and not said")


def stored(folder: str) -> int:
    """Count the stored trials of a run that may be written at the moment."""
    import sqlite3

    try:
        with sqlite3.connect(f"file:{folder}/run.db?mode=ro", uri=True) as database:
            return int(database.execute("SELECT COUNT(*) FROM predictions").fetchone()[0])
    except sqlite3.Error:
        return 0


def exam(hour: Hour) -> None:
    """A quick exam of two tests."""
    hour.type("exam --model openai/mock --base-url URL --quick --tests acuity,contrast -o runs/exam")
    hour.check(Path("runs/exam/prescription.html").exists(), "no prescription")


def mistakes(hour: Hour) -> None:
    """What people mistype: every error must name its fix."""
    for line in (
        "run my.jsonl --base-url URL",
        "run my.json --model openai/mock --base-url URL",
        "run mmbench --model openai/mock --base-url URL",
        "run my.jsonl --model openai/mock --base-url URL --temp 0",
        "run my.jsonl --model openai/other --base-url URL",
        "run my.jsonl --model opnai/mock --base-url URL",
        "run my.jsonl --model openai/mock --base-url URL --map question=prompt",
        "run my.jsonl --model openai/mock --base-url URL --name a --max-tokens 7",
        "comapre runs/a runs/b",
        "score runs/a --scorer contians",
    ):
        hour.type(line, 2)
    hour.type("view runs/none", 2)
    hour.type("show runs/none", 3)
    hour.type("run my.jsonl --model openai/mock --base-url http://127.0.0.1:9/v1", 3)


JOBS: dict[str, Callable[[Hour], None]] = {
    "make demo": demo,
    "1 own rows, served model": own_rows,
    "2 benchmark by name": benchmark,
    "2b data of another tool": other_data,
    "3 compare": compare,
    "4 wrong answers, share": wrong_answers,
    "5 five inferences": inferences,
    "6 perf": perf,
    "7 Python": in_python,
    "8 own model": own_model,
    "8 own scorer": own_scorer,
    "9 Ctrl-C, resume": interrupted,
    "10 exam": exam,
    "mistakes, typed on purpose": mistakes,
}


@contextmanager
def hub() -> Iterator[str]:
    """Serve three rows of MMMU-Pro as the hub does."""
    import pyarrow
    import pyarrow.parquet

    from hub_standin import hub_standin

    row = {"question": "Who?", "options": "['Klee', 'Marc']", "answer": "B", "subject": "Art"}
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"id": f"test_Art_{n}", **row} for n in range(3)]), buffer)
    files = {"standard (10 options)/test-00000-of-00001.parquet": buffer.getvalue()}
    with hub_standin({"MMMU/MMMU_Pro": files}) as server:
        yield server.address


def line_of(name: str, hour: Hour) -> str:
    """Return a row of the table: now, and when the jobs were first typed."""
    fixed = sum(bool(FIX.search(error)) for error in hour.errors)
    before = BEFORE.get(name, ("–", "–", "–", "–"))
    cells = (
        hour.commands,
        len(set(hour.pages)),
        len(hour.errors),
        f"{fixed} of {len(hour.errors)}" if hour.errors else "–",
    )
    return f"| {name} | {' | '.join(f'{now} ({old})' for now, old in zip(cells, before, strict=True))} |"


def main() -> int:
    """Type all jobs, print the table, say what was wrong."""
    from snellen.kits.mock.process import mock_process

    wrong: list[str] = []
    totals = [0, 0, 0]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ |= {"SNELLEN_CACHE_DIR": f"{folder}/cache", "COLUMNS": "160", "HF_HUB_DISABLE_TELEMETRY": "1"}
        write_rows()
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        subprocess.run(
            [*COMMAND, "mock-server", "--write-answers", "my.jsonl", "--answers", "answers.jsonl"], check=True
        )
        served = ["--answers", "answers.jsonl", "--strict-model", "--reader"]
        with mock_process([*served, "noisy:accuracy=0.65+verbose"]) as other:
            Hour(other.base_url, "", readme).type("run my.jsonl --model openai/mock --base-url URL --name b")
        print("| job | commands | pages | errors | named their fix |\n|---|---:|---:|---:|---:|")
        slowly = [*served, "noisy:accuracy=0.57+verbose", "--ttft-ms", "60"]
        with mock_process([*served, "noisy:accuracy=0.57+verbose"]) as server, mock_process(slowly) as slow:
            for name, job in JOBS.items():
                hour = Hour(server.base_url, slow.base_url, readme)
                job(hour)
                print(line_of(name, hour), flush=True)
                wrong += [f"{name}: {one}" for one in hour.wrong]
                wrong += [f"{name}: names no fix: {error}" for error in hour.errors if not FIX.search(error)]
                if name in BEFORE:
                    totals = [
                        *map(sum, zip(totals, (hour.commands, len(set(hour.pages)), len(hour.errors)), strict=True))
                    ]
        before = [sum(int(row[at]) for row in BEFORE.values()) for at in range(3)]
        cells = " | ".join(f"{now} ({then})" for now, then in zip(totals, before, strict=True))
        print(f"| all but the mistakes | {cells} | |")
    print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
