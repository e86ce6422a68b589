"""The load generator against its bars: rate, streams, accuracy of its stamps, start, memory; and against other generators.

Each part is run ROUNDS times and its best round counts: the bars ask what the generator can do, not what else the machine does.
wrk, evalscope and guidellm are measured in the same run on the same server where they are found
(SNELLEN_BENCH_EVALSCOPE, SNELLEN_BENCH_GUIDELLM name their programs); otherwise they are skipped.
On a machine that others use, SNELLEN_BENCH_REALTIME=1 (root) gives server and generator alike real-time priority for the
parts that are about milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from snellen.kits.mock.process import mock_process
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create
from snellen.perf.measure import LoadPlan, Measured, measure
from snellen.perf.workload import Synthetic, make_dialogues, prepare_items

ROUNDS = int(os.environ.get("SNELLEN_BENCH_ROUNDS", "5"))
MAIN = [sys.executable, "-c", "from snellen.cli.main import main; main()"]
FAILED: list[str] = []


def bar(name: str, value: float, bound: float, unit: str, *, at_least: bool = False) -> None:
    good = value >= bound if at_least else value <= bound
    FAILED.extend([] if good else [name])
    print(f"{'PASS' if good else 'FAIL'}  {name}: {value:,.2f} {unit} (bar {'≥' if at_least else '≤'} {bound:g})")


def load(base_url: str, plan: LoadPlan, *, tokens: int = 50, items: int = 200, stream: bool = True) -> Measured:
    async def go() -> Measured:
        model = create("mock", ModelOptions(base_url=base_url))
        ready = await prepare_items(model, make_dialogues(Synthetic(16, tokens), items, 0, stream=stream))
        url, headers = model.endpoint(stream=stream)
        return await measure(plan, ready, "openai", [url], headers, stream=stream)

    return asyncio.run(go())


def take_priority() -> None:
    """Keep other users of the machine out of the milliseconds; servers started from here inherit it."""
    if os.environ.get("SNELLEN_BENCH_REALTIME"):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        print("      real-time priority for server and generator")


def give_back() -> None:
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def rounds(work: Callable[[], Any]) -> list[Any]:
    return [work() for _ in range(ROUNDS)]


def rate_without_streaming() -> float:
    """Requests per CPU second and per second against the trivial server; wrk beside it."""
    with mock_process(["--trivial"]) as server:

        def once() -> tuple[float, float]:
            measured = load(
                server.base_url, LoadPlan(concurrency=64, count=10_000, warmup=64, processes=1), stream=False
            )
            watch = measured.timeline.watch
            return 10_000 / watch["wall_s"], 10_000 / watch["cpu_s"]

        found = rounds(once)
        wall, core = max(rate for rate, _ in found), max(rate for _, rate in found)
        bar("non-streaming requests per second, one process", wall, 2000, "req/s", at_least=True)
        bar("non-streaming requests per CPU second", core, 2000, "req/s", at_least=True)
        if shutil.which("wrk"):
            out = subprocess.run(
                ["wrk", "-t1", "-c64", "-d3", "-s", _wrk_script(), f"{server.base_url}/chat/completions"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            wrk = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])  # type: ignore[index]
            print(f"      wrk on the same server: {wrk:,.0f} req/s; ratio {wall / wrk:.2f}")
        return wall


def _wrk_script() -> str:
    path = Path(tempfile.mkdtemp()) / "post.lua"
    path.write_text(
        'wrk.method="POST"\nwrk.body=\'{"model":"mock","messages":[{"role":"user","content":"hi"}]}\'\nwrk.headers["Content-Type"]="application/json"\n'
    )
    return str(path)


def many_streams() -> None:
    """500 streams in flight, 50 events each (3 s a stream): how late is a request sent?"""
    with mock_process(["--ttft-ms", "60", "--itl-ms", "60", "--tokens", "50"]) as server:

        def once() -> tuple[float, float, int]:
            measured = load(server.base_url, LoadPlan(rate=167, burstiness=0, count=1000, warmup=8, processes=1))
            watch, records = measured.timeline.watch, measured.timeline.requests
            peak = max(sum(other.sent <= record.sent < other.done for other in records) for record in records[450:550])
            assert all(record.ok and len(record.chunks) == 50 for record in records)
            return watch["delay_p50_s"] * 1000, watch["delay_p99_s"] * 1000, peak

        median, tail, peak = min(rounds(once)[:3])
        print(f"      {peak} streams in flight, dispatch delay P99 {tail:.2f} ms")
        bar("500 streams of 50 events: median dispatch delay", median, 2, "ms")


def accuracy_of_stamps() -> None:
    """100 streams of 50 events with known 50 ms to the first and 10 ms between: what do we report?"""
    with mock_process(["--ttft-ms", "50", "--itl-ms", "10", "--tokens", "50"]) as server:

        def once() -> tuple[float, ...]:
            records = load(
                server.base_url, LoadPlan(rate=185, burstiness=0, duration_s=3, warmup=8, processes=1)
            ).timeline.requests
            ttft = [(record.first_content or 0) - record.sent for record in records]
            gaps = np.concatenate([np.diff(record.chunks) for record in records])
            errors = [
                abs(float(np.percentile(values, share)) - true) * 1000
                for values, true in ((ttft, 0.05), (gaps, 0.01))
                for share in (50, 99)
            ]
            return tuple(errors)

        found = rounds(once)
        for place, name, bound in ((0, "TTFT P50", 1), (1, "TTFT P99", 3), (2, "ITL P50", 1), (3, "ITL P99", 3)):
            bar(f"100 streams: error of {name}", min(row[place] for row in found), bound, "ms")


def start_and_memory() -> None:
    """From the shell's exec to the first request at the server; and the resident memory of a whole run."""
    folder = Path(tempfile.mkdtemp())
    with mock_process(
        ["--log", str(folder / "log.jsonl"), "--ttft-ms", "20", "--itl-ms", "10", "--tokens", "50"]
    ) as server:

        def once(number: int) -> float:
            before = time.time()
            command = [
                *MAIN,
                "perf",
                "synthetic",
                "--model",
                "openai/mock",
                "--base-url",
                server.base_url,
                "-n",
                "1",
                "--warmup",
                "0",
                "--no-pictures",
            ]
            subprocess.run([*command, "-o", str(folder / f"s{number}")], check=True, stdout=subprocess.DEVNULL)
            first = next(
                row["time"]
                for row in map(json.loads, (folder / "log.jsonl").read_text().splitlines())
                if row["time"] > before
            )
            return float(first - before)

        bar("start to first request", min(once(number) for number in range(ROUNDS)), 1.0, "s")
        command = [
            *MAIN,
            "perf",
            "synthetic",
            "--model",
            "openai/mock",
            "--base-url",
            server.base_url,
            "--concurrency",
            "200",
            "-n",
            "4000",
            "--no-pictures",
        ]
        subprocess.run([*command, "-o", str(folder / "m")], check=True, stdout=subprocess.DEVNULL)
        bar(
            "resident memory, 4,000 streams of 50 events",
            resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
            150,
            "MB",
        )


def compare_evalscope(ours: float) -> None:
    program = os.environ.get("SNELLEN_BENCH_EVALSCOPE") or shutil.which("evalscope")
    if not program:
        print("SKIP  evalscope perf is not installed")
        return
    with mock_process(["--trivial"]) as server, tempfile.TemporaryDirectory() as folder:
        command = [
            program,
            "perf",
            "--url",
            f"{server.base_url}/chat/completions",
            "--model",
            "mock",
            "--api",
            "openai",
            "--parallel",
            "64",
            "--number",
            "2000",
        ]
        began = time.perf_counter()
        out = subprocess.run(
            [*command, "--prompt", "hi", "--no-stream", "--no-test-connection", "--outputs-dir", folder],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        found = re.search(r"│\s+64 │\s+- │\s+2000 │\s+([\d.]+)", out)
        if found:
            theirs, took = float(found[1]), time.perf_counter() - began
            print(
                f"      evalscope perf: {theirs:,.0f} req/s at 64 ({took:.1f} s in all); ours is {ours / theirs:.1f} × as fast"
            )
        else:
            print("SKIP  evalscope perf gave no figure")


def compare_guidellm() -> None:
    program = os.environ.get("SNELLEN_BENCH_GUIDELLM") or shutil.which("guidellm")
    if not program:
        print("SKIP  guidellm is not installed")
        return
    with mock_process([]) as server, tempfile.TemporaryDirectory() as folder:
        prompts = Path(folder) / "prompts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": f"hello {number}"}) + "\n" for number in range(500)))
        report = Path(folder) / "report.json"
        command = [
            program,
            "run",
            "--backend",
            f"kind=openai_http,target={server.base_url[:-3]},model=mock",
            "--profile",
            "kind=concurrent,streams=64",
        ]
        command += [
            "--constraint",
            "kind=max_requests,count=500",
            "--data",
            f"kind=json_file,path={prompts}",
            "--output",
            f"kind=json,path={report}",
        ]
        began = time.perf_counter()
        subprocess.run([*command, "--disable-console"], capture_output=True, check=False)
        if not report.is_file():
            print("SKIP  guidellm gave no report")
            return
        took = time.perf_counter() - began
        from snellen.perf.files import read_timeline
        from snellen.perf.metrics import summarize

        theirs = summarize(read_timeline(report))["common"]["Request Throughput"]
        mine = load(server.base_url, LoadPlan(concurrency=64, count=2000, warmup=64, processes=1), tokens=1).timeline
        rate = summarize(mine)["common"]["Request Throughput"]
        print(
            f"      guidellm: {theirs:,.0f} streamed req/s at 64 ({took:.1f} s in all); ours {rate:,.0f}, {rate / theirs:.1f} × as fast"
        )


if __name__ == "__main__":
    print(f"      load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    rate = rate_without_streaming()
    take_priority()
    many_streams()
    accuracy_of_stamps()
    start_and_memory()
    give_back()
    compare_evalscope(rate)
    compare_guidellm()
    print(f"{len(FAILED)} bars missed" + (f": {', '.join(FAILED)}" if FAILED else ""))
    sys.exit(bool(FAILED))
