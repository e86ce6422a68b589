"""Every own dialect through the engine, against answers that cost nothing: CPU a request, beside the OpenAI dialect.

Short text; one picture of 200 kB each, of which there are forty; and a picture of its own for each. What differs is how bodies are written,
signed and replies read. The median of several rounds, each against the OpenAI dialect in the same round: a loaded machine slows both. A signature of AWS hashes every byte that was not hashed before: a new picture's cannot be spared,
so what is signed has no bar there.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np
import PIL.Image

from snellen.core.clock import SystemClock
from snellen.core.jobs import Item, ReadyRequests
from snellen.core.protocols import Model
from snellen.core.tasks import RunHeader
from snellen.core.types import Form, Image, Request, Sample, TrialKey, Turn
from snellen.engine.loop import Engine
from snellen.engine.policy import Policy
from snellen.mock.server import MockOptions, MockServer
from snellen.mock.spoken.batch_book import BatchLine
from snellen.model.cloud.bedrock import Bedrock
from snellen.model.cloud.bedrock_model import BedrockModel
from snellen.model.cloud.signing import SigningClient, aws_credentials
from snellen.model.cloud.vertex_model import VertexClaude, VertexGemini
from snellen.model.options import ModelOptions
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.gemini import Gemini
from snellen.model.served.openai import OpenAI
from snellen.model.served.openai_responses import Responses, ResponsesModel
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import ServedModel
from snellen.store.writer import RunWriter

REQUESTS, ROUNDS, BAR = 1_000, 7, 1.2
PICTURES = {"text": 0, "picture": 40, "new picture": REQUESTS}
SIGNED = "bedrock, signed"
DIALECTS: dict[str, tuple[Any, str, str]] = {
    "openai": (OpenAI, "openai", "/v1/chat/completions"),
    "openai-responses": (Responses, "openai", "/v1/responses"),
    "anthropic": (Anthropic, "anthropic", "/v1/messages"),
    "gemini": (Gemini, "gemini", "/v1beta/models/m:generateContent"),
    "vertex (Gemini)": (VertexGemini, "vertex", "/v1/publishers/google/models/m:generateContent"),
    "vertex (Claude)": (VertexClaude, "vertex", "/v1/publishers/anthropic/models/m:rawPredict"),
    "bedrock, bearer": (Bedrock, "bedrock", "/model/m/converse"),
    SIGNED: (Bedrock, "bedrock", "/model/m/converse"),
}


class Constant:
    """An HTTP client that answers at once."""

    def __init__(self, reply: bytes) -> None:
        self._reply = HttpResponse(200, {}, reply)

    async def send(self, url: str, body: Any, headers: Mapping[str, str], timeout_s: float | None) -> HttpResponse:
        return self._reply

    async def close(self) -> None:
        pass


def reply_of(dialect: Any, spoken: str, path: str) -> bytes:
    """Return what the mock server answers to a short question in this dialect."""
    request = Request(TrialKey("t", "s"), (Turn("user", "hi"),))
    body = msgspec.json.encode(dialect().payload("m", request, [()]))
    _, value = MockServer(MockOptions(dialect=spoken)).answer_line(BatchLine("i", path, body))
    return msgspec.json.encode(value)


def model_of(name: str) -> Model:
    kind, spoken, path = DIALECTS[name]
    http: Any = Constant(reply_of(kind, spoken, path))
    if name == SIGNED:
        http = SigningClient(aws_credentials(), "eu-west-1", http)
    classes = {"openai-responses": ResponsesModel, "bedrock, bearer": BedrockModel, SIGNED: BedrockModel}
    return classes.get(name, ServedModel)(kind(), "m", ModelOptions(base_url="http://127.0.0.1/v1"), http)


def jobs(pictures: list[Path]) -> Iterator[ReadyRequests]:
    for number in range(REQUESTS):
        images = (Image(str(pictures[number % len(pictures)])),) if pictures else ()
        text = f"Which thing is number {number}?\nA. one\nB. two\nC. three\nD. four\nAnswer with the letter."
        key = TrialKey("t", str(number))
        sample = Sample(str(number), "t", Form.OPEN, text)
        yield ReadyRequests(Item(number, sample), (Request(key, (Turn("user", text, images),)),))


async def ask_all(name: str, pictures: list[Path], folder: Path) -> float:
    """Return the CPU milliseconds of one request, reading and encoding its picture included."""
    model = model_of(name)
    header = RunHeader(id=folder.name, created="", command="", config={}, tasks=[], versions={})
    writer = RunWriter(folder, header)
    engine = Engine(model, writer, Policy(max_workers=64, adaptive=False), SystemClock())
    gc.collect()
    started = time.process_time()
    await engine.run(jobs(pictures))
    spent = time.process_time() - started
    writer.close()
    assert engine.state.done == REQUESTS and not engine.state.failed, engine.state.last_error
    return spent / REQUESTS * 1e3


def main() -> int:
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "secret-of-nobody")
    spent: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        noise = np.random.default_rng(0)
        pictures = [Path(folder) / f"{number}.png" for number in range(max(PICTURES.values()))]
        for path in pictures:
            PIL.Image.fromarray(noise.integers(0, 256, (260, 260, 3), dtype=np.uint8)).save(path, compress_level=0)
        for turn in range(ROUNDS):
            for name in DIALECTS:
                for kind, count in PICTURES.items():
                    place = Path(folder) / f"{turn}-{name}-{kind}".replace(" ", "")
                    spent.setdefault((name, kind), []).append(asyncio.run(ask_all(name, pictures[:count], place)))
    return tell(spent)


def tell(spent: Mapping[tuple[str, str], list[float]]) -> int:
    worst = 0.0
    for name in DIALECTS:
        ratios = {kind: median(map(truediv, spent[name, kind], spent["openai", kind])) for kind in PICTURES}
        worst = max(worst, *(ratio for kind, ratio in ratios.items() if (name, kind) != (SIGNED, "new picture")))
        told = [f"{kind} {min(spent[name, kind]):.3f} ms ({ratio:.2f})" for kind, ratio in ratios.items()]
        print(f"{name:18} {', '.join(told)}")
    print(f"dearest against openai: {worst:.2f} (bar {BAR}): {'PASS' if worst <= BAR else 'FAIL'}")
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
