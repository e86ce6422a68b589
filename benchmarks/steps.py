"""How many bytecodes of Snellen does a trial without tools take, from its prompt to its row, and how many at a commit?

Run: python benchmarks/steps.py [COMMIT, 779ad836: the last one before tools came]
Chat completions over a wire that is a function, 32 workers, no cache: 1,200 trials less 200, so that starts cancel out. The
thread that writes run.db is not counted: how many rows it commits at a time hangs on the machine, so its share of a trial
does too. What tools add there is one question a commit.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

MOST = 0.01
FEW, MANY = 200, 1200
REPLY = {"role": "assistant", "content": "a cat"}
BODY = {"model": "m", "choices": [{"index": 0, "message": REPLY, "finish_reason": "stop"}]}
CONTENT = json.dumps({**BODY, "usage": {"prompt_tokens": 10, "completion_tokens": 2}}).encode()


def count_steps(trials: int) -> Counter[str]:
    """Return how many bytecodes each module of Snellen took for so many trials."""
    from snellen.core.clock import SystemClock
    from snellen.core.jobs import Item
    from snellen.core.tasks import Prompt, RunHeader, Task
    from snellen.core.types import Form, Params, Sample
    from snellen.engine import loop
    from snellen.infer.generate import GENERATE
    from snellen.model.options import ModelOptions
    from snellen.model.served.openai import OpenAI
    from snellen.model.served.post import HttpResponse
    from snellen.model.served.served_model import ServedModel
    from snellen.prompt.build import Prompter
    from snellen.store.writer import RunWriter

    class Wire:
        async def send(self, url: str, body: Any, headers: Any, timeout_s: Any) -> HttpResponse:
            return HttpResponse(200, {}, CONTENT)

        async def close(self) -> None:
            pass

    task = Task("t", {}, Form.OPEN, params=Params())
    header = RunHeader("id", {"tasks": {}}, {"snellen": "1"}, "2026-01-01T00:00:00+00:00", model="m", tasks=[task])
    samples = [Sample(str(number), "t", Form.OPEN, "What is it?", answers=("cat",)) for number in range(trials)]

    async def ask(folder: Path) -> None:
        model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://h/v1"), http=Wire())
        with closing(RunWriter(folder, header)) as writer:
            policy = vars(loop)["Policy"](max_workers=32, max_retries=0)  # its module has moved since that commit
            engine = loop.Engine(model, writer, policy, SystemClock())
            prompter = Prompter(task, Prompt(template="{question}"), seed=0)
            await engine.run(GENERATE.plan(task, [Item(*one) for one in enumerate(samples)], prompter))

    counts: Counter[CodeType] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        trace = _tracer(counts)
        sys.settrace(trace)
        try:
            asyncio.run(ask(Path(folder) / "run"))
        finally:
            sys.settrace(None)
    found: Counter[str] = Counter()
    for code, count in counts.items():
        _, own, module = code.co_filename.rpartition("snellen/")
        if own:
            found[module.removesuffix(".py")] += count
    return found


def _tracer(counts: Counter[CodeType]) -> Any:
    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines, code = True, False, frame.f_code

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "opcode":
                counts[code] += 1
            return step

        return step

    return trace


def measured(source: Path) -> dict[str, float]:
    """Return the bytecodes of a trial by module, with the sources at a path."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    told = subprocess.run(
        [sys.executable, __file__, "--here"], env=environment, check=True, capture_output=True, text=True
    )
    return dict(json.loads(told.stdout))


def main() -> int:
    if sys.argv[1:] == ["--here"]:
        count_steps(20)  # what is made once
        few, many = count_steps(FEW), count_steps(MANY)
        print(json.dumps({name: (many[name] - few[name]) / (MANY - FEW) for name in many}))
        return 0
    root, commit = Path(__file__).resolve().parents[1], (sys.argv[1:] or ["779ad836"])[0]
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=root, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as sources:
            sources.extractall(folder, filter="data")
        before, now = measured(Path(folder) / "src"), measured(root / "src")
    for name in sorted(before.keys() | now.keys(), key=lambda name: before.get(name, 0.0) - now.get(name, 0.0)):
        old, new = before.get(name, 0.0), now.get(name, 0.0)
        if abs(new - old) >= 1.0:
            print(f"{name:32} {old:7.1f} {new:7.1f} ({new - old:+.1f})")
    old, new = sum(before.values()), sum(now.values())
    passed = new / old - 1.0 <= MOST
    print(
        f"bytecodes a trial: {old:,.0f} at {commit}, {new:,.0f} now ({new / old - 1.0:+.2%})  {'PASS' if passed else 'FAIL'}"
    )
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
