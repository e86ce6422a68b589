"""A load on a plug-in's own model: its pieces are timed as a server's are, whole replies as whole, failures as failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import json_of, run_command

PLUGIN = """
import asyncio, time
from snellen.core.errors import ModelError
from snellen.core.protocols import Capability, ImagePolicy
from snellen.core.types import FailureKind, Prediction, Usage


class Paced:
    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES, Capability.STREAM})
    image_policy = ImagePolicy()
    cacheable = False

    def __init__(self, name):
        self.name = f"mine/{name}"

    async def predict(self, request, images):
        await asyncio.sleep(0.06)
        return Prediction(request.key, text="four", usage=Usage(output_tokens=5))

    async def check(self): ...

    def identity(self):
        return {"model": self.name}

    async def close(self): ...


class Streamed(Paced):
    async def stream(self, request, images):
        if request.key.sample == "q1":
            raise ModelError(FailureKind.SERVER, "no answer here")
        await asyncio.sleep(0.05)
        for piece in ("four", " ", "legs", "!"):
            yield piece
            await asyncio.sleep(0.02)
        yield Usage(input_tokens=7, output_tokens=4)


class Loc_Interface:
    def raw_generate(self, image, prompt, temperature=0, max_new_tokens=9):
        return "four legs"

    def raw_stream(self, image, prompt, temperature=0, max_new_tokens=9):
        time.sleep(0.04)
        for piece in ("four", " legs"):
            yield piece
            time.sleep(0.02)


def register(registry):
    registry.add("model", "mine", lambda name, options: (Streamed if name == "streamed" else Paced)(name))
"""


@pytest.fixture
def place(own_folder: Path) -> Path:
    rows = [
        {"id": f"q{n}", "question": f"Legs of {n}?", "options": ["two", "four legs"], "answer": "four legs"}
        for n in range(6)
    ]
    (own_folder / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (own_folder / "prov.py").write_text(PLUGIN)
    return own_folder


def load(model: str, out: str, *more: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    told = ["--plugin", "prov.py", "--model", model, "--warmup", "0", "--no-pictures", "-o", out, "--json"]
    level = json_of("perf", "p.jsonl", *told, *more, codes=(0, 1))["levels"][0]
    return level, json.loads((Path(out) / "timeline.json").read_text())["requests"]


def test_a_model_that_streams_is_timed_piece_by_piece(place: Path) -> None:
    level, requests = load("mine/streamed", "a", "--concurrency", "3")
    good = [one for one in requests if not one.get("failure")]
    assert len(requests) == 6 and len(good) == 5
    assert [one["message"] for one in requests if one.get("failure")] == ["no answer here"]
    first = sorted(one["first_content"] - one["start"] for one in good)
    gaps = sorted(b - a for one in good for a, b in zip(one["chunks"], one["chunks"][1:], strict=False))
    assert first[0] >= 0.049 and first[2] < 0.15, "50 ms to the first piece"
    assert all(len(one["chunks"]) == 4 for one in good) and gaps[0] >= 0.019 and gaps[7] < 0.1, "20 ms between two"
    assert {one["output_tokens"] for one in good} == {4} and level["value"], "the replies are scored too"
    records = [json.loads(line) for line in (place / "a" / "records.jsonl").read_text().splitlines()]
    assert [one["value"] for one in records if one["outcome"] == "scored"] == [1.0] * 5


def test_one_that_does_not_is_timed_whole_and_an_interface_may_stream(place: Path) -> None:
    _, whole = load("mine/whole", "b", "--concurrency", "2")
    assert all(not one["streamed"] and not one.get("chunks") and one["done"] - one["start"] >= 0.059 for one in whole)
    _, local = load("plugin/Loc_Interface", "c", "--concurrency", "1")
    assert all(len(one["chunks"]) == 2 and one["first_content"] - one["start"] >= 0.039 for one in local)
    _, plain = load("plugin/Loc_Interface", "d", "--concurrency", "1", "--no-stream")
    assert all(not one["streamed"] for one in plain)


def test_what_cannot_be_loaded_is_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["perf", "p.jsonl", "--concurrency", "1", "-o", "e"]
    assert run_command([*told, "--plugin", "prov.py", "--model", "blind/first"]) == 2
    assert run_command([*told, "--plugin", "prov.py", "--model", "plugin/Nothing"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
