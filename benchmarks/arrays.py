"""A thousand parts: how long does `snellen show` take, how long and how much memory joining a million trials?

`python benchmarks/arrays.py [trials] [parts] [folder]`; the logs are written as parts write them, without asking anybody.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.types import Prediction, TrialKey
from snellen.store.database import seal
from snellen.store.part_log import FORMAT, HEADER, META, PLAN, SAMPLE, TRIAL, encode_line
from snellen.store.part_progress import Owner, Progress

COMMAND = [sys.executable, "-c", "from snellen.cli.main import main; main()"]
SHOW_S, MERGE_S, MERGE_MB = 2.0, 180.0, 500.0


def write_parts(folder: Path, trials: int, parts: int) -> None:
    """Write the logs and progress of a run of so many trials, every part complete."""
    row = {"question": "How many legs has it?", "options": ["two", "four", "six"], "answer": "four"}
    source = folder.parent / "legs.jsonl"
    source.write_text(json.dumps({"id": "q"} | row))
    plan = make_plan(RunSettings(tasks=(str(source),), model="blind/longest", output_dir=folder))
    planned = plan.tasks[0]
    sample, name = next(iter(planned.dataset)), planned.task.name
    request = planned.prompter.build(sample)
    header = msgspec.structs.replace(plan.header, planned={name: trials}, counted={})
    (folder / "run.d").mkdir(parents=True)
    (folder / PLAN).write_bytes(seal(msgspec.json.encode(header)))
    encode, replace, owner = msgspec.json.encode, msgspec.structs.replace, Owner.me()
    for index in range(parts):
        first, last = trials * index // parts, trials * (index + 1) // parts
        lines = [encode_line(HEADER, (FORMAT, f"{index:016x}", seal(encode(header))))]
        lines.append(encode_line(META, ("reading", encode({"profile": "snellen"}))))
        for number in range(first, last):
            key = TrialKey(name, f"q{number:07}")
            body = encode(replace(sample, id=key.sample))
            lines.append(encode_line(SAMPLE, (name, key.sample, number, seal(body, f"{name}\0{key.sample}\0{number}"))))
            reply = encode(Prediction(key, text=f"The answer is {'ABC'[number % 3]}."))
            digest = f"{number:032x}"
            row_of = (name, key.sample, "base", 0, 0, digest, seal(encode(replace(request, key=key))))
            lines.append(encode_line(TRIAL, (*row_of, seal(reply, f"0\0{digest}"))))
        log = folder / "run.d" / f"{index:04}-of-{parts:04}.a0.log"
        log.write_bytes(b"".join(lines))
        progress = Progress(owner, "complete", planned=last - first, done=last - first)
        log.with_suffix(".json").write_bytes(encode(progress))


def measure(*arguments: str) -> tuple[float, float, float]:
    """Run a command and return seconds by the clock, seconds of the processor and peak memory in MB."""
    began = time.monotonic()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(COMMAND[0], [*COMMAND, *arguments], os.environ, file_actions=silent)
    _, status, used = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, arguments
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def bench(trials: int, parts: int, place: Path) -> None:
    """Print the figures and whether they are within what was asked."""
    folder = place / "run"
    write_parts(folder, trials, parts)
    size = sum(path.stat().st_size for path in (folder / "run.d").iterdir()) / 2**20
    print(f"{parts:,} parts, {trials:,} trials, {size:,.0f} MB of logs, load {os.getloadavg()[0]:.1f}")
    clock, cpu, memory = measure("show", str(folder))
    print(f"show   {clock:6.1f} s by the clock, {cpu:6.1f} s of CPU, {memory:,.0f} MB (asked: {SHOW_S:g} s)")
    clock, cpu, memory = measure("merge", str(folder), "--json")
    results = json.loads((folder / "results.json").read_bytes())
    metric = results["tasks"]["legs"]["metrics"]["accuracy"]
    assert metric["n"] == trials and abs(metric["value"] - 1 / 3) < 1e-3, metric  # every third reply is right
    told = f"(asked: {MERGE_S:g} s, {MERGE_MB:g} MB)"
    print(f"merge  {clock:6.1f} s by the clock, {cpu:6.1f} s of CPU, {memory:,.0f} MB {told}")
    clock, cpu, memory = measure("show", str(folder))
    print(f"show   {clock:6.1f} s by the clock, {cpu:6.1f} s of CPU, {memory:,.0f} MB, merged")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    place = Path(tempfile.mkdtemp(dir=given.get(3)))
    try:
        bench(int(given.get(1, 1_000_000)), int(given.get(2, 1_000)), place)
    finally:
        shutil.rmtree(place)
