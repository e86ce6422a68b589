"""Times the viewer and report.html against their bars: a run of 100,000 trials, a report of 2,000, a live run, galleries, six runs at once."""

from __future__ import annotations

import asyncio
import html
import http.client
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from made_runs import answer, ask, make_header, make_run, make_samples, make_task, trials  # noqa: E402
from snellen.api import outputs  # noqa: E402
from snellen.report.viewer.guard import cookie_name  # noqa: E402
from snellen.store.writer import RunWriter  # noqa: E402

TRIALS = int(os.environ.get("TRIALS", "100000"))
QUERIES = (
    "outcome=wrong", "outcome=flipped&sort=latency", "rule=cue&sort=tokens&order=down", "group=shape%3Dcircle", "text=clearly+visible",
    "outcome=wrong&text=shape-0123&sort=value", "sort=latency&order=down", "outcome=unparsed", "group=variant%3Dbase&sort=sample", "text=middle&outcome=right&page=7",
)  # fmt: skip


class Client:
    """The viewer in a process of its own, and someone who asks it."""

    def __init__(self, folder: Path) -> None:
        script = "from snellen.cli.main import main; main()"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, "view", str(folder), "--json"], stdout=subprocess.PIPE, env=environment
        )
        assert self.process.stdout is not None
        self.address = json.loads(self.process.stdout.readline())["address"]
        self.host, _, token = self.address.partition("/?token=")
        self.home = f"/{cookie_name(token)}"
        self._jar, self._kept = CookieJar(), threading.local()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))

    def get(self, path: str) -> tuple[float, bytes]:
        """Return seconds and body."""
        started = time.perf_counter()
        below = path if path.startswith(self.home) else self.home + path
        with self.opener.open(path if path.startswith("http") else self.host + below) as answer:
            body = answer.read()
        return time.perf_counter() - started, body

    def keep(self, path: str) -> bytes:
        """Return what a browser gets that keeps its connections: one a thread."""
        if not hasattr(self._kept, "line"):
            self._kept.line = http.client.HTTPConnection(self.host.partition("//")[2])
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._jar)
        self._kept.line.request("GET", path, headers={"cookie": cookies})
        answer = self._kept.line.getresponse()
        body: bytes = answer.read()
        assert answer.status == 200, (path, answer.status)
        return body

    def memory_mb(self) -> float:
        """Return the peak resident memory of the viewer."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024

    def core_seconds(self) -> float:
        """Return the processor time the viewer has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the viewer."""
        self.process.terminate()
        self.process.wait()


def bar(name: str, value: float, limit: float, unit: str) -> bool:
    """Print one line and return whether the bar was met."""
    print(f"{'PASS' if value <= limit else 'FAIL'}  {name}: {value:.3g} {unit} (bar {limit:g} {unit})")
    return value <= limit


def large(folder: Path) -> bool:
    """A run of 100,000 trials: opening, filtering, memory."""
    task = make_task(variants=("base", "wording=1"), repeats=5)
    started = time.perf_counter()
    make_run(folder / "large", count=TRIALS // 10, task=task, pictures=200)
    print(f"      made and scored {TRIALS:,} trials in {time.perf_counter() - started:.0f} s")
    client = Client(folder / "large")
    try:
        client.get(client.address.replace("/?", "/state?"))
        key = client.get("/state")[1].decode().partition(":")[0]
        before = client.core_seconds()
        opened, _ = client.get(f"/run/{key}")
        spent = client.core_seconds() - before
        print(
            f"      opening took {opened:.2f} s and {spent:.2f} core seconds; load of this machine {os.getloadavg()[0]:.1f}"
        )
        first, _ = client.get(f"/run/{key}/trials?text=zebra")
        pattern, _ = client.get(f"/run/{key}/trials?text=answer+is+%5Bbc%5D&regex=1")
        times = sorted(client.get(f"/run/{key}/trials?{query}")[0] for query in QUERIES * 6)
        page, _ = client.get(f"/run/{key}/figures")
        again, _ = client.get(f"/run/{key}")
        print(
            f"      first text search {first * 1000:.0f} ms, a new pattern {pattern * 1000:.0f} ms, median query {statistics.median(times) * 1000:.0f} ms, "
            f"figures {page:.2f} s, run page again {again * 1000:.0f} ms"
        )
        return all(
            [
                bar(f"open a run of {TRIALS:,} trials", opened, 0.7, "s"),
                bar("filter and sort, p95", times[int(len(times) * 0.95)] * 1000, 100, "ms"),
                bar("memory of the viewer, peak", client.memory_mb(), 300, "MB"),
                *pictures(client, key),
            ]
        )
    finally:
        client.close()


def pictures(client: Client, key: str) -> list[bool]:
    """A gallery of 200 thumbnails as a browser fetches it: over six connections; every picture another file."""
    page = client.get(f"/run/{key}/trials?view=gallery&sort=sample")[1].decode()
    addresses = [html.unescape(source) for source in re.findall(r'<img src="([^"]*)"', page)]
    assert len(addresses) == 200
    taken, spent = [], []
    for _ in range(2):
        started, before = time.perf_counter(), client.core_seconds()
        with ThreadPoolExecutor(6) as browser:
            assert all(browser.map(client.keep, addresses))
        taken.append(time.perf_counter() - started)
        spent.append(client.core_seconds() - before)
    print(f"      the viewer used {spent[0]:.2f} core seconds for the first gallery, {spent[1]:.2f} for the second")
    return [
        bar("gallery of 200 thumbnails, the first time", taken[0], 1, "s"),
        bar("gallery of 200 thumbnails, again", taken[1] * 1000, 150, "ms"),
    ]


def several(folder: Path) -> bool:
    """Six runs of 100,000 trials: the matrix, one sample across all of them, memory."""
    for number in range(6):
        (folder / "six" / f"run{number}").mkdir(parents=True)
        for name in ("run.db", "results.json"):
            (folder / "six" / f"run{number}" / name).hardlink_to(folder / "large" / name)
    client = Client(folder / "six")
    try:
        client.get(client.address.replace("/?", "/state?"))
        keys = [part.partition(":")[0] for part in client.get("/state")[1].decode().split()]
        runs = "&".join(f"run={key}" for key in keys)
        first, body = client.get(f"/matrix?{runs}")
        addresses = [html.unescape(to) for to in re.findall(r'href="([^"]*/sample\?[^"]*)"', body.decode())][:40]
        again, _ = client.get(f"/matrix?{runs}")
        times = sorted(client.get(address)[0] for address in addresses)
        print(f"      matrix of six runs {first:.1f} s the first time, {again * 1000:.0f} ms again")
        return all(
            [
                bar("one sample across six runs, p95", times[int(len(times) * 0.95)] * 1000, 150, "ms"),
                bar("memory with six such runs open, peak", client.memory_mb(), 350, "MB"),
            ]
        )
    finally:
        client.close()


def report(folder: Path) -> bool:
    """report.html of 2,000 trials: size, and how long Chromium takes to open it."""
    make_run(folder / "report", count=2000)
    started = time.perf_counter()
    path = outputs.report(folder / "report")
    print(f"      written in {time.perf_counter() - started:.2f} s")
    met = bar("report.html of 2,000 trials", path.stat().st_size / 2**20, 5, "MB")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("SKIP  opening in Chromium: playwright is not installed")
        return met
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto("about:blank")
        started = time.perf_counter()
        page.goto(path.as_uri())
        met = bar("report.html opens in Chromium", time.perf_counter() - started, 2, "s") and met
        browser.close()
    return met


def live(folder: Path) -> bool:
    """A run that grows: how far the page is behind the last commit."""
    task, samples = make_task(), make_samples(folder / "live", 400)
    every = list(trials(task, samples))
    lags: list[float] = []

    async def grow() -> None:
        writer = RunWriter(folder / "live", make_header(task, "openai/live", len(every)))
        position, sample, key = every[0]
        await writer.put(position, sample, ask(sample, key), answer(sample, key, 0.7, "m"), "0")
        client = await asyncio.to_thread(Client, folder / "live")
        await asyncio.to_thread(client.get, client.address)
        state = (await asyncio.to_thread(client.get, "/state"))[1]
        run = state.decode().partition(":")[0]
        try:
            for step in range(1, 6):
                for position, sample, key in every[step * 60 : step * 60 + 60]:
                    await writer.put(position, sample, ask(sample, key), answer(sample, key, 0.7, "m"), "0")
                written, wanted = time.perf_counter(), f"{1 + step * 60:,} of"
                while wanted.encode() not in (await asyncio.to_thread(client.get, f"/run/{run}"))[1]:
                    await asyncio.sleep(0.02)
                lags.append(time.perf_counter() - written)
        finally:
            client.close()
            writer.close()

    asyncio.run(grow())
    return bar("live page behind the run (1 s of polling included)", max(lags) + 1.0, 2, "s")


def main() -> int:
    """Run all and return 1 if a bar was missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        met = [report(folder), live(folder), large(folder), several(folder)]
    print(
        f"      peak memory of this benchmark itself {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
