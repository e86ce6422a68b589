"""A real OpenAI-compatible server process (`transformers serve`) with a tiny vision model: pictures, streaming, probing."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from extras import needs

needs("transformers", "fastapi")

from line_doubles import ask as ask_model
from snellen.core.errors import StopRun
from snellen.core.types import Image, Params, Request, TrialKey, Turn
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create
from tiny_checkpoints import checkpoint

pytestmark = pytest.mark.slow
PICTURE = Image(ref=str(Path(__file__).resolve().parents[2] / "examples" / "colours" / "red.png"))
START_S = 120


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    """The address and the model's name."""
    model = str(checkpoint("idefics3"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).parent / "transformers")
    command = [program, "serve", model, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(process, f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1", model
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.skip("transformers serve does not start here")
        try:
            with urllib.request.urlopen(url, timeout=2) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)  # another process is starting: there is no clock to inject
    pytest.fail("transformers serve did not answer in time")


def ask(server, *requests):
    address, name = server

    async def run():
        model = create(name, ModelOptions(base_url=address, timeout_s=60))
        try:
            return [await ask_model(model, request) for request in requests]
        finally:
            await model.close()

    return asyncio.run(run())


def question(images=(PICTURE,), **params):
    return Request(
        TrialKey("t", "s"), (Turn("user", "What colour is the truck?", images),), Params(max_tokens=6, **params)
    )


def test_chat_with_a_picture_whole_and_streamed_says_the_same(server):
    whole, streamed = ask(server, question(temperature=0.0), question(temperature=0.0, stream=True))
    assert whole.text
    # random weights speak broken UTF-8; the server's stream keeps back an unfinished last character
    assert streamed.text.rstrip("\ufffd") == whole.text.rstrip("\ufffd")
    assert whole.finish in ("length", "stop")
    assert whole.images[0].width == 64
    assert streamed.timing.first_token is not None
    assert streamed.timing.sent < streamed.timing.first_token <= streamed.timing.done


def test_a_picture_is_more_prompt_than_none(server):
    seen, blind = ask(server, question(temperature=0.0), question(images=(), temperature=0.0))
    assert seen.usage.input_tokens > blind.usage.input_tokens


def test_likelihood_is_probed_and_its_absence_is_named(server):
    scored = Request(TrialKey("t", "s"), (Turn("user", "What colour?", (PICTURE,)),), choices=("red", "blue"))
    with pytest.raises(StopRun, match=r"gives no log-probabilities of these candidates \(chat-prompt-logprobs: "):
        ask(server, scored)


def test_serve_check_finds_out_what_it_can_do(server: tuple[str, str]) -> None:
    """It streams, takes pictures, lists models without the one it was started with, and gives no log-probabilities."""
    from snellen.api.server_probes import look_at_server

    url, model = server
    facts = look_at_server(url, model, within_s=120.0)
    can = {probe.what: probe.ok for probe in facts.probes}
    assert (can["chat"], can["pictures"], can["likelihood"]) == (True, True, False), facts
    assert "--infer-method" not in " ".join(facts.flags)
