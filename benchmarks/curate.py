"""Bars of the workshop: 10,000 drafts through all gates in 60 s, and a review page that answers within 100 ms at p95.

python benchmarks/curate.py [--drafts 10000] [--items 50000] [--reviewers 10] [--decisions 60]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy as np
import PIL.Image

from snellen.core.ids import rng
from snellen.data.files.records import write_lines
from snellen.kits.curate.gates import run_gates
from snellen.kits.curate.records import Draft, Gated, Source, shuffled
from snellen.kits.mock.drafter import POOLS

GATES_S, PAGE_MS = 60.0, 100.0


def make_drafts(count: int, image: str) -> list[Draft]:
    drafts = []
    for number in range(count):
        draw = rng("bench", number)

        def text(draw=draw, person: str = "") -> str:
            words = [draw.choice(pool) for pool in POOLS]
            return "a " + " ".join([*words[:3], person or words[3], words[4]]) + f" {draw.randrange(100, 1000)}"

        seen, shown = text(), text()
        answers = [seen, text(), text(person=shown.split()[4])]
        source = Source(f"{number:06d}", image, seen, shown, (10.0, 10.0, 30.0, 30.0), 64, 64, url=f"{number}.png")
        steps = tuple(
            shuffled(f"What stands at place {place}?", answer, [text() for _ in range(5)], number, place)
            for place, answer in enumerate(answers)
        )
        drafts.append(
            Draft(
                source.id,
                source,
                steps,
                shuffled("What can be inferred?", shown, [text() for _ in range(5)], number, "h"),
            )
        )
    return drafts


def bench_gates(drafts: list[Draft]) -> bool:
    started = time.perf_counter()
    kept, aside, _ = run_gates(drafts)
    taken = time.perf_counter() - started
    print(
        f"gates: {len(drafts)} drafts, {len(kept)} kept, {len(aside)} set aside, in {taken:.1f} s ({len(drafts) / taken:.0f}/s)"
    )
    passed = taken <= GATES_S * len(drafts) / 10_000
    print(
        f"bar: 10,000 drafts through gates in ≤ {GATES_S:.0f} s: {taken * 10_000 / len(drafts):.1f} s: {'PASS' if passed else 'FAIL'}"
    )
    return passed


async def review(link: str, decisions: int, times: list[float], number: int) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        base = str((await session.get(link)).url).rstrip("/")
        answer = await (await session.get(f"{base}/api/next?mode=review")).json()
        for turn in range(decisions):
            item = answer["item"]["id"]
            action = ("accept", "reject")[rng("act", number, turn).random() < 0.2]
            body = {"mode": "review", "item": item, "action": action, "reason": "bench", "ticket": f"{number}-{turn}"}
            started = time.perf_counter()
            response = await session.post(
                f"{base}/api/decide",
                data=json.dumps(body),
                headers={"Content-Type": "application/json", "X-Snellen": "1"},
            )
            answer = await response.json()
            times.append(time.perf_counter() - started)
            assert "saved" in answer, answer
            for path in (f"/image/{answer['item']['id']}", "/api/state", "/api/next?mode=settle"):
                started = time.perf_counter()
                response = await session.get(base + path)
                await response.read()
                times.append(time.perf_counter() - started)
                assert response.status == 200
            await asyncio.sleep(0.02)


async def review_all(links: list[str], decisions: int) -> list[float]:
    times: list[float] = []
    await asyncio.gather(*(review(link, decisions, times, number) for number, link in enumerate(links)))
    return times


def bench_page(folder: Path, drafts: list[Draft], reviewers: int, decisions: int) -> bool:
    write_lines(folder / "gated.jsonl", (Gated(draft) for draft in drafts))
    names = [word for number in range(reviewers) for word in ("--reviewer", f"r{number}")]
    code = "from snellen.cli.main import main; main()"
    command = [sys.executable, "-c", code, "curate", "review", str(folder), *names, "--overlap", "0.5", "--json"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        ready = json.loads(process.stdout.readline())
        print(f"review: {len(drafts)} items, {reviewers} reviewers, ready after {time.perf_counter() - started:.1f} s")
        times = np.array(asyncio.run(review_all(list(ready["links"].values()), decisions))) * 1e3
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait()
    p50, p95, p99 = np.percentile(times, [50, 95, 99])
    print(
        f"page: {len(times)} requests (a quarter of them saves), p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms"
    )
    print(f"bar: review page ≤ {PAGE_MS:.0f} ms at p95: {p95:.1f} ms: {'PASS' if p95 <= PAGE_MS else 'FAIL'}")
    return bool(p95 <= PAGE_MS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("drafts", 10_000), ("items", 50_000), ("reviewers", 10), ("decisions", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        image = Path(place) / "picture.png"
        PIL.Image.new("RGB", (64, 64), "white").save(image)
        drafts = make_drafts(max(told.drafts, told.items), str(image))
        passed = [
            bench_gates(drafts[: told.drafts]),
            bench_page(Path(place), drafts[: told.items], told.reviewers, told.decisions),
        ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
