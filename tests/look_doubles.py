"""A server that is a function, real dialects before it and a real store behind: for tests of looking again."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
from msgspec.structs import replace

from fake_clock import FakeClock
from snellen.core.jobs import Item
from snellen.core.looks import in_look_arms
from snellen.core.tasks import Prompt, RunHeader, Task
from snellen.core.types import Form, Image, Params, Sample
from snellen.engine.limits import Limits, Policy
from snellen.engine.loop import Engine
from snellen.kits.looks.inferencer import LOOK
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai_responses import Responses
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import ServedModel
from snellen.prompt.build import Prompter
from snellen.store.writer import RunWriter

DIALECTS: dict[str, Callable[[], Any]] = {
    "openai": OpenAI,
    "openai-responses": Responses,
    "anthropic": Anthropic,
    "gemini": Gemini,
}
Answer = tuple[int, Any]
Script = Callable[[dict[str, Any], int], Answer | dict[str, Any] | bytes]


class Wire:
    """An HTTP client whose server is a function of the body and of how many bodies came before."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.bodies: list[dict[str, Any]] = []

    def answer(self, body: Any) -> tuple[int, bytes]:
        sent = json.loads(b"".join(body))
        self.bodies.append(sent)
        answer = self._script(sent, len(self.bodies) - 1)
        status, content = answer if isinstance(answer, tuple) else (200, answer)
        return status, content if isinstance(content, bytes) else json.dumps(content).encode()

    async def send(self, url: str, body: Any, headers: Any, timeout_s: Any) -> HttpResponse:
        status, content = self.answer(body)
        return HttpResponse(status, {}, content)

    @asynccontextmanager
    async def stream(self, url: str, body: Any, headers: Any, timeout_s: Any) -> AsyncIterator[Any]:
        status, content = self.answer(body)

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        yield type("Stream", (), {"status": status, "headers": {}, "chunks": chunks()})()

    async def close(self) -> None:
        pass


class Asked(NamedTuple):
    """What was asked, and who counted."""

    bodies: list[dict[str, Any]]
    state: Any
    limits: Limits


def picture(folder: Path, name: str = "a.png", size: tuple[int, int] = (400, 300)) -> Image:
    """Draw a picture of which no two pixels are alike."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if not path.exists():
        path.write_bytes(_drawn(path.suffix, size))
    return Image(str(path))


@lru_cache(maxsize=16)
def _drawn(suffix: str, size: tuple[int, int]) -> bytes:
    y, x = np.indices(size[::-1])
    pixels = np.stack([x % 256, y % 256, np.minimum((x // 256) * 16 + y // 256, 255)], axis=-1).astype(np.uint8)
    stream = io.BytesIO()
    PIL.Image.fromarray(pixels).save(stream, PIL.Image.registered_extensions()[suffix])
    return stream.getvalue()


def sample(folder: Path, number: int = 0, **told: Any) -> Sample:
    """Return a question about a picture of its own."""
    shown = picture(folder, f"{number}.png", told.pop("size", (400, 300)))
    return Sample(str(number), "t", Form.OPEN, told.pop("question", "What is it?"), (shown,), answers=("cat",), **told)


def look_task(options: dict[str, Any], arms: tuple[str, ...] = (), repeats: int = 1, **params: Any) -> Task:
    """Return a task that looks again."""
    own = {"dialect": "native", **options}
    variants = in_look_arms(("base",), arms)
    return Task(
        "t", {}, Form.OPEN, infer="look", infer_options=own, variants=variants, repeats=repeats, params=Params(**params)
    )


def ask_all(
    folder: Path,
    script: Script,
    task: Task,
    samples: Iterable[Sample],
    *,
    provider: str = "openai",
    name: str = "m",
    limits: Limits | None = None,
    workers: int = 1,
    retries: int = 0,
    stop_after: Callable[[RunWriter], None] | None = None,
) -> Asked:
    """Ask all of a task into a folder, as a run does."""
    wire = Wire(script)
    header = RunHeader("id", {"tasks": {}}, {"snellen": "1"}, "2026-01-01T00:00:00+00:00", model="m", tasks=[task])

    async def go() -> Asked:
        options = ModelOptions(base_url="http://h/v1", clock=FakeClock())
        model = ServedModel(DIALECTS[provider](), name, options, http=wire)
        with closing(RunWriter(folder, header)) as writer:
            if stop_after is not None:
                stop_after(writer)
            policy = Policy(max_workers=workers, max_retries=retries)
            engine = Engine(model, writer, policy, FakeClock(), limits=limits)
            prompter = Prompter(task, Prompt(template="{question}"), seed=0)
            items = [Item(place, one) for place, one in enumerate(samples)]
            await engine.run(LOOK.plan(task, items, prompter))
            return Asked(wire.bodies, engine.state, engine._limits)

    return asyncio.run(go())


def chat(text: str | None = None, calls: Any = (), finish: str = "", **more: Any) -> dict[str, Any]:
    """Return a chat completion; calls are (name, arguments) or whole rows."""
    rows = [
        one
        if isinstance(one, dict)
        else {"id": f"c{place}", "type": "function", "function": {"name": one[0], "arguments": one[1]}}
        for place, one in enumerate(calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text, **({"tool_calls": rows} if rows else {})}
    finish = finish or ("tool_calls" if rows else "stop")
    usage = more.pop("usage", {"prompt_tokens": 10, "completion_tokens": 2})
    return {"model": "m", "choices": [{"index": 0, "message": message | more, "finish_reason": finish}], "usage": usage}


def box_call(*box: float, picture: Any = 1) -> tuple[str, str]:
    """Return a call of zoom."""
    return "zoom", json.dumps({"picture": picture, "box": list(box)})


def without_time(prediction: Any) -> Any:
    """Return a prediction without when it came and how long it took."""
    detail = dict(prediction.detail)
    if "look" in detail:
        detail["look"] = {key: value for key, value in detail["look"].items() if key != "seconds"}
    return replace(prediction, at=None, timing=None, detail=detail)
