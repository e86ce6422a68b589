"""Own rows: 100,000 of a VLMEvalKit-like TSV (2 GB of base64) planned within 60 s and 300 MB, each picture decoded once; plain rows a second; 5,000 rows of a card planned.

`python benchmarks/rows.py` runs all, `… rows.py plain`, `… rows.py tsv` or `… rows.py card` one part; `SNELLEN_BENCH_ROWS` makes fewer rows than 100,000.
"""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import PIL.Image

ROWS = int(os.environ.get("SNELLEN_BENCH_ROWS", "100000"))
PLAN_S, RESIDENT_MB, PLAIN_A_SECOND = 60.0, 300.0, 100_000
CARD_ROWS, CARD_S = 5_000, 3.0
"""TextVQA's validation split has so many."""
PICTURE_BYTES = 15_000
"""As base64 20 kB a row: 2 GB in 100,000 rows."""
PLAN = """
import resource, sys, time
from collections import Counter
from pathlib import Path
import pybase64
decoded = Counter()
real = pybase64.b64decode
def counted(text, *a, **k):
    decoded["all"] += 1
    return real(text, *a, **k)
pybase64.b64decode = counted
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
started, cpu = time.monotonic(), time.process_time()
plan = make_plan(RunSettings(tasks=(sys.argv[1],), model="openai/x", base_url="http://127.0.0.1:9", output_dir=Path(sys.argv[2])))
planned, planned_cpu = time.monotonic() - started, time.process_time() - cpu
started = time.monotonic()
seen = sum(len(sample.images) for sample in plan.tasks[0].dataset)
again = time.monotonic() - started
mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(plan.trials, plan.tasks[0].survey.images, seen, decoded["all"], planned, planned_cpu, again, mb)
"""
PLAIN = """
import sys, time
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Form
from snellen.data.loaders.table import load
task = Task("t", {"loader": "table", "path": sys.argv[1]}, form=Form.AUTO)
best = 0.0
for _ in range(3):
    started = time.process_time()
    count = sum(1 for _ in load(task, LoadContext()))
    best = max(best, count / (time.process_time() - started))
print(best)
"""
CARD = """
import sys, time
from pathlib import Path
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
settings = RunSettings(tasks=("textvqa",), model="openai/x", base_url="http://127.0.0.1:9", data_root=Path(sys.argv[1]), output_dir=Path(sys.argv[2]))
started, cpu = time.monotonic(), time.process_time()
plan = make_plan(settings)
print(plan.trials, plan.tasks[0].survey.images, time.monotonic() - started, time.process_time() - cpu)
"""


def child(code: str, *arguments: object) -> list[float]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return [float(part) for part in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def make_pictures(count: int) -> list[bytes]:
    """Return PNG files of about the wanted size; the rows differ in their last chunk, so that each is its own."""
    draw = np.random.default_rng(3)
    pictures = []
    for _ in range(count):
        side = int((PICTURE_BYTES / 3) ** 0.5)
        stream = io.BytesIO()
        PIL.Image.fromarray(draw.integers(0, 255, (side, side, 3), dtype=np.uint8)).save(stream, "PNG")
        pictures.append(stream.getvalue())
    return pictures


def distinct(picture: bytes, number: int) -> bytes:
    """Return the picture with a text chunk of its own before its end."""
    body = b"tEXtrow\0" + str(number).encode()
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return picture[:-12] + chunk + picture[-12:]


def write_tsv(path: Path) -> int:
    pictures = make_pictures(20)
    with path.open("w") as file:
        file.write("index\timage\tquestion\thint\tA\tB\tC\tD\tanswer\tcategory\n")
        for number in range(ROWS):
            text = base64.b64encode(distinct(pictures[number % 20], number)).decode()
            options = "\t".join(f"thing {number} {letter}" for letter in "abcd")
            file.write(
                f"{number}\t{text}\tWhat is shown in {number}?\t\t{options}\t{'ABCD'[number % 4]}\tc{number % 7}\n"
            )
    return path.stat().st_size


def write_plain(path: Path) -> None:
    with path.open("w") as file:
        for number in range(200_000):
            row = {
                "id": str(number),
                "question": f"What is shown in {number}?",
                "options": ["a cat", "a dog", "a bird", "a fish"],
            }
            file.write(json.dumps({**row, "answer": "ABCD"[number % 4]}) + "\n")


def write_card(path: Path) -> None:
    pictures = make_pictures(20)
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        file.write("index\timage\tquestion\tanswer\n")
        for number in range(CARD_ROWS):
            text = base64.b64encode(distinct(pictures[number % 20], number)).decode()
            answers = json.dumps([f"word {number}"] * 10).replace('"', "'")
            file.write(f"{number}\t{text}\tWhat is written in {number}?\t{answers}\n")


def verdict(text: str, passed: bool) -> bool:
    print(f"{'PASS' if passed else 'FAIL'} {text}", flush=True)
    return passed


def measure_tsv(folder: Path) -> list[bool]:
    size = write_tsv(folder / "rows.tsv")
    trials, images, seen, decoded, planned, cpu, again, mb = child(PLAN, folder / "rows.tsv", folder / "run")
    share = ROWS / 100_000
    print(f"{trials:,.0f} rows, {size / 1e9:.2f} GB, {images:,.0f} pictures; read again in {again:.1f} s")
    return [
        verdict(
            f"planned in {planned:.1f} s, {cpu:.1f} s of CPU (bar {PLAN_S * share:.0f})", planned <= PLAN_S * share
        ),
        verdict(f"resident {mb:.0f} MB (bar {RESIDENT_MB:.0f})", mb <= RESIDENT_MB),
        verdict(
            f"{decoded:,.0f} decodings of {images:,.0f} pictures in two passes (bar: one each)",
            decoded == images == seen,
        ),
    ]


def measure_plain(folder: Path) -> list[bool]:
    write_plain(folder / "plain.jsonl")
    (best,) = child(PLAIN, folder / "plain.jsonl")
    return [verdict(f"plain rows: {best:,.0f} a second of CPU (bar {PLAIN_A_SECOND:,})", best >= PLAIN_A_SECOND)]


def measure_card(folder: Path) -> list[bool]:
    """The clock includes what is read for the first time: a user waits for that, too."""
    write_card(folder / "data" / "textvqa" / "TextVQA_VAL.tsv")
    trials, images, planned, cpu = child(CARD, folder / "data", folder / "card-run")
    told = f"{trials:,.0f} rows of a card planned in {planned:.1f} s, {cpu:.1f} s of CPU (bar {CARD_S:.0f} s of CPU)"
    return [verdict(told, trials == images == CARD_ROWS and cpu <= CARD_S)]


def main() -> int:
    parts = {"plain": measure_plain, "tsv": measure_tsv, "card": measure_card}
    wanted = sys.argv[1:] or list(parts)
    with tempfile.TemporaryDirectory() as name:
        os.environ["SNELLEN_CACHE_DIR"] = f"{name}/cache"
        results = [passed for part in wanted for passed in parts[part](Path(name))]
    return 0 if all(results) else 1


if __name__ == "__main__":
    started = time.monotonic()
    code = main()
    print(f"{time.monotonic() - started:.0f} s in all")
    sys.exit(code)
