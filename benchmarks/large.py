"""How a very large run is scored and looked at: made, scored by two processes, opened in the viewer, each with its bar.

The run is written by the store's own writer, many trials at a time, with cheap replies: no model is asked, no picture is sent. Everything after
that is what users type: `snellen score --executor processes --replicas 2`, `snellen view`. Seconds are by the clock, so a busy machine misses
bars that it meets alone; CPU is printed beside them. `python benchmarks/large.py [--trials 10000000] [--folder DIR]`; a folder is left, and a
run that lies in it is not made again.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from view import Client, bar  # noqa: E402

from made_runs import COLOURS, make_header, make_task  # noqa: E402
from snellen.core.process import rare_collections  # noqa: E402
from snellen.core.types import Failure, FailureKind, Form, Prediction, Request, Sample, Timing, TrialKey, Usage  # noqa: E402
from snellen.report.viewer.run_library import MOST_TRIALS  # noqa: E402
from snellen.store.writer import RunWriter  # noqa: E402

TASK = make_task(variants=("base", "wording=1"))
AT_ONCE = 4_096
PAGE_S, OPEN_S, VIEWER_MB = 2.0, 15.0, 1_536
SCORE_S, SCORE_MB = 300.0, 2_048
COMMAND = (sys.executable, "-c", "from snellen.cli.main import main; main()")
Put = tuple[int, Sample, Request, Prediction]


def made_trials(count: int) -> Iterator[Put]:
    """Yield trials: two variants of each sample, three in four right, some unreadable, a few failed."""
    for number in range(count // 2):
        sample = Sample(
            f"s{number:08d}", "shapes", Form.CHOICE, f"Which colour has shape {number}?", (), COLOURS, (COLOURS[number % 4],), group=f"doc-{number // 8}", tags={"page": number % 7}
        )  # fmt: skip
        for place, variant in enumerate(TASK.variants):
            key, draw = TrialKey("shapes", sample.id, variant), (number * 2_654_435_761 + place * 40_503) % 1_000
            took = Timing(0.0, 0.2 + draw / 500)
            request = Request(key, (), marks=tuple("ABCD"), shown=COLOURS)
            if draw == 999:
                yield (
                    number,
                    sample,
                    request,
                    Prediction(key, failure=Failure(FailureKind.TIMEOUT, "none"), timing=took),
                )
                continue
            mark = "ABCD"[(number + (draw > 750)) % 4]
            text = f"The answer is {mark}." if draw % 3 else mark
            text = "I am not sure." if draw > 980 else text
            yield number, sample, request, Prediction(key, text=text, usage=Usage(400, draw % 40), timing=took)


@rare_collections()
def write_run(folder: Path, count: int) -> None:
    """Store so many trials."""

    async def put() -> None:
        writer, every = RunWriter(folder, make_header(TASK, "openai/large", count)), made_trials(count)
        while some := list(islice(every, AT_ONCE)):
            await writer.put_all(some, "0" * 16)
        writer.close()

    asyncio.run(put())


class Watched:
    """A command with the memory of all its processes together, looked at every half second."""

    def __init__(self, *words: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        before, self.started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        self._process = subprocess.Popen([*COMMAND, *words], env=environment, stdout=subprocess.DEVNULL)
        self.peak_mb, watcher = 0.0, threading.Thread(target=self._watch)
        watcher.start()
        code = self._process.wait()
        watcher.join()
        assert code == 0, (words, code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds = time.perf_counter() - self.started
        self.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def _watch(self) -> None:
        while self._process.poll() is None:
            self.peak_mb = max(self.peak_mb, sum(_resident_mb(one) for one in _family(self._process.pid)))
            time.sleep(0.5)


def _family(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        below = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return [pid]
    return [pid, *(one for child in below for one in _family(child))]


def _resident_mb(pid: int) -> float:
    """Return what a process holds; what several share (the code of libraries) counts once in their sum."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def score(folder: Path, count: int) -> bool:
    """Score by two processes; the bars are those of ten million trials, smaller runs have their share of the time."""
    found = Watched("score", str(folder), "--executor", "processes", "--replicas", "2")
    print(f"      scored: {found.cpu_s:.1f} s CPU")
    in_time = bar(f"{count:,} trials scored", found.seconds, SCORE_S * count / 10_000_000, "s")
    return bar("memory of all scoring processes", found.peak_mb, SCORE_MB, "MB") and in_time


class Reader:
    """Someone who looks at the run, page after page."""

    def __init__(self, client: Client) -> None:
        self.client, self.met = client, True

    def look(self, name: str, path: str, limit: float = PAGE_S) -> str:
        """Fetch a page and print what it took."""
        before = self.client.core_seconds()
        seconds, body = self.client.get(path)
        print(f"      {self.client.core_seconds() - before:.2f} s CPU, peak {self.client.memory_mb():.0f} MB")
        self.met &= bar(name, seconds, limit, "s")
        return body.decode()


def first_trial(page: str) -> str:
    """Return the address of the first trial of a list."""
    return html.unescape(re.findall(r'href="(/run/[^"]*/trial\?[^"]*)"', page)[0])


def view(folder: Path) -> bool:
    """Open the viewer and go through what people do."""
    client = Client(folder)
    reader = Reader(client)
    try:
        client.get(client.address.replace("/?", "/state?"))
        key = client.get("/state")[1].decode().partition(":")[0]
        reader.look("list of runs", "/", OPEN_S)
        assert "accuracy" in reader.look("opening the run", f"/run/{key}", OPEN_S)
        reader.look("the run's page again", f"/run/{key}")
        trials = f"/run/{key}/trials?task=shapes"
        reader.look("list of trials", trials)
        for query in (
            "group=variant%3Dbase", "rule=cue", "group=page%3D3&outcome=right", "group=group%3Ddoc-17", "outcome=unparsed", "outcome=failed",
            "flipped=1", "slower=2", "sort=value", "sort=latency&order=down", "text=shape+1234", "text=not+sure", "text=answer+is+b", "page=1000",
        ):  # fmt: skip
            reader.look(f"filter {query}", f"{trials}&{query}")
        wrong = reader.look("filter outcome=wrong", f"{trials}&outcome=wrong")
        at = first_trial(wrong)
        for step in range(3):
            page = reader.look(f"wrong answer {step + 1}", at)
            way = re.search(r'href="([^"]*)"[^>]*>Next trial', page)
            assert way is not None
            at = html.unescape(way[1])
        reader.look("one trial", at.partition("&outcome")[0])
        return bar("memory of the viewer", client.memory_mb(), VIEWER_MB, "MB") and reader.met
    finally:
        client.close()


def main(folder: Path, count: int) -> int:
    """Do all of it and return 1 if a bar was missed."""
    print(f"      load of this machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if not (folder / "run.db").exists():
        started, cpu = time.perf_counter(), time.process_time()
        write_run(folder, count)
        taken = f"{time.perf_counter() - started:.0f} s, {time.process_time() - cpu:.0f} s CPU"
        print(f"      {count:,} trials written in {taken}; run.db {(folder / 'run.db').stat().st_size / 2**30:.2f} GB")
    met = [score(folder, count)]
    if count <= MOST_TRIALS:  # more are not opened in a browser
        met.append(view(folder))
    return 0 if all(met) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    told = parser.parse_args()
    if told.folder is not None:
        sys.exit(main(told.folder, told.trials))
    with tempfile.TemporaryDirectory() as name:
        sys.exit(main(Path(name), told.trials))
