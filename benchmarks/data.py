"""Data: building choices with hard negatives, streaming a huge prepared file, prompts per second.

python benchmarks/data.py            # all bars (writes a 2 GB file to the temporary folder)
python benchmarks/data.py --small    # the same shapes at a twentieth of the size
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WORDS = [
    a + b
    for a in ("ba", "co", "di", "fu", "ga", "he", "jo", "ka", "lu", "mi", "no", "pe")
    for b in ("ron", "lt", "sk", "mer", "ck", "nd", "ppel", "st")
]


def write_questions(root: Path, count: int) -> None:
    """Questions and annotations in VQA v2's own form: 60 kinds, 4000 answers with a long tail."""
    draw = random.Random(1)
    answers = [
        " ".join(draw.sample(WORDS, 1 + place % 2)) + (str(place) if place > 500 else "") for place in range(4000)
    ]
    asked, labels = [], []
    for number in range(count):
        kind = f"what {WORDS[number % 60]}"
        answer = (
            ("yes", "no")[number % 2]
            if number % 3 == 0
            else str(number % 9)
            if number % 10 == 1
            else answers[int(draw.paretovariate(0.6)) % 4000]
        )
        asked.append({"image_id": number // 3, "question": f"{kind} is in picture {number}?", "question_id": number})
        given = [{"answer": answer, "answer_confidence": "yes", "answer_id": place} for place in range(10)]
        labels.append(
            {
                "question_id": number,
                "image_id": number // 3,
                "question_type": kind,
                "answer_type": "other",
                "multiple_choice_answer": answer,
                "answers": given,
            }
        )
    (root / "v2_OpenEnded_mscoco_val2014_questions.json").write_text(json.dumps({"questions": asked}))
    (root / "v2_mscoco_val2014_annotations.json").write_text(json.dumps({"annotations": labels}))


def build(root: Path, limit: int) -> int:
    from snellen.core.protocols import LoadContext
    from snellen.data.catalog import Catalog
    from snellen.kits.reform.card_loader import load

    task = Catalog().task("reform/vqa-v2", [("dataset.source", "raw"), ("dataset.path", str(root))])
    return sum(len(sample.options) > 1 for sample in load(task, LoadContext()))


def write_prepared(path: Path, size_bytes: int) -> None:
    """Records of about 400 kB of base64 each, as the hub holds them: 200 different pictures."""
    draw = random.Random(2)
    pictures = [base64.b64encode(b"\x89PNG\r\n\x1a\n" + draw.randbytes(300_000)).decode() for _ in range(200)]
    with path.open("w") as stream:
        stream.write('{"version": "2.0", "split": "COCO_val2014", "data": [')
        number = 0
        while stream.tell() < size_bytes:
            record = {
                "question_id": number,
                "image_id": pictures[number % 200],
                "question": f"what {number}?",
                "answer": "cat",
                "answer_options": ["dog", "cat", "cow", "pig"],
            }
            stream.write((", " if number else "") + json.dumps(record))
            number += 1
        stream.write("]}")


def stream(root: Path, limit: int) -> int:
    from snellen.core.protocols import LoadContext
    from snellen.data.catalog import Catalog
    from snellen.kits.reform.card_loader import load

    task = Catalog().task("reform/vqa-v2", [("dataset.source", "prepared"), ("dataset.path", str(root))])
    return sum(1 for _ in load(task, LoadContext(workdir=root / "work")))


def prompts(root: Path, limit: int) -> int:
    from snellen.core.tasks import Task
    from snellen.core.types import Form, Image, Sample
    from snellen.data.catalog import Catalog
    from snellen.prompt.build import Prompter

    catalog = Catalog()
    task = catalog.task("reform/vqa-v2")
    prompter = Prompter(Task("t", {}), catalog.prompt(task), 0)
    samples = [
        Sample(
            str(place),
            "d",
            Form.CHOICE,
            f"what is in {place}?",
            (Image("/x.png"),),
            ("dog", "cat", "cow", "pig"),
            ("cat",),
        )
        for place in range(1000)
    ]
    variants = [f"wording={place}" for place in range(5)]
    start = time.perf_counter()
    for number in range(limit):
        prompter.build(samples[number % 1000], variants[number % 5])
    spent = time.perf_counter() - start
    shuffled = time.perf_counter()
    for number in range(limit // 4):
        prompter.build(samples[number % 1000], f"wording={number % 5}&order={number % 5}")
    print(
        f"  with option orders drawn: {limit // 4 / (time.perf_counter() - shuffled):,.0f} prompts/s", file=sys.stderr
    )
    return int(limit / spent)


def measure(job: str, root: Path, limit: int) -> dict[str, float]:
    """Run one job in a process of its own: result, seconds, peak memory."""
    command = [sys.executable, __file__, "--job", job, "--root", str(root), "--limit", str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout)


def peak_mb() -> float:
    """Peak resident memory of this process; getrusage would count what the parent had before the fork."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


JOBS: dict[str, Callable[[Path, int], int]] = {"build": build, "stream": stream, "prompts": prompts}


def bar(text: str, good: bool) -> None:
    print(f"{'PASS' if good else 'FAIL'}  {text}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--job")
    parser.add_argument("--root", type=Path)
    parser.add_argument("--limit", type=int, default=0)
    told = parser.parse_args()
    if told.job:
        start = time.perf_counter()
        result = JOBS[told.job](told.root, told.limit)
        seconds = time.perf_counter() - start
        print(json.dumps({"result": result, "seconds": seconds, "peak_mb": peak_mb()}))
        return
    share = 0.05 if told.small else 1.0
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        items = int(100_000 * share)
        write_questions(root, items)
        made = measure("build", root, items)
        per_100k = made["seconds"] / made["result"] * 100_000
        bar(
            f"build {made['result']:,.0f} choices in {made['seconds']:.1f} s ({per_100k:.1f} s for 100,000; bar 60)",
            per_100k <= 60,
        )
        bar(f"build peak memory {made['peak_mb']:.0f} MB (bar 500)", made["peak_mb"] <= 500)
        big = root / "huggingface_data/VQA_v2/vqa_val_10p.json"
        big.parent.mkdir(parents=True)
        write_prepared(big, int(2e9 * share))
        size_mb = big.stat().st_size / 1e6
        read = measure("stream", root, 0)
        rate = f"{read['result']:,.0f} records: {size_mb / read['seconds']:,.0f} MB/s"
        bar(f"stream {size_mb:,.0f} MB, {rate}, peak {read['peak_mb']:.0f} MB (bar 300)", read["peak_mb"] <= 300)
        stored = len(list((root / "work/images").iterdir()))
        bar(
            f"pictures stored {stored} of {min(200, int(read['result']))} different ones",
            stored == min(200, int(read["result"])),
        )
        spoken = measure("prompts", root, int(200_000 * share))
        bar(f"prompts {spoken['result']:,.0f} per second on one core (bar 20,000)", spoken["result"] >= 20_000)


if __name__ == "__main__":
    main()
