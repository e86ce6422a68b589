"""`snellen perf` against a real vLLM server: its counts are those the server keeps of itself."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest

from command_line import run_command
from engine_questions import NAME, write_rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
COUNTED = {
    "Total Input Tokens": "vllm:prompt_tokens_total",
    "Total Generated Tokens": "vllm:generation_tokens_total",
    "Success Requests": "vllm:request_success_total",
}


def counters(server):
    """What the server has counted since it started, all reasons of an end together."""
    with urllib.request.urlopen(server.removesuffix("/v1") + "/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    found = [re.fullmatch(r"(\S+?)(?:\{.*\})? (\S+)", line) for line in lines if not line.startswith("#")]
    pairs = [(match[1], float(match[2])) for match in found if match]
    return {ours: sum(value for name, value in pairs if name == theirs) for ours, theirs in COUNTED.items()}


@pytest.mark.parametrize("load", ["synthetic", "rows"])
@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_what_is_counted_is_what_the_server_counts(server, tmp_path, load, stream):
    shape = ["--input-tokens", "40", "--output-tokens", "12", "--images", "1", "--image-size", "64x64"]
    what = ["synthetic", *shape] if load == "synthetic" else [write_rows(tmp_path, 8), "--max-tokens", "8"]
    before = counters(server)
    arguments = ["perf", *what, "--model", f"openai/{NAME}", "--base-url", server, "-o", tmp_path / "perf", stream]
    assert run_command([*arguments, "--concurrency", "4", "-n", "16", "--warmup", "0", "--temperature", "0"]) == 0
    after = counters(server)
    (level,) = json.loads((tmp_path / "perf" / "perf.json").read_text())["levels"]
    common = level["total"]["common"]
    assert {name: common[name] for name in COUNTED} == {name: after[name] - before[name] for name in COUNTED}
    assert common["Success Requests"] == 16
    assert ("TTFT" in level["total"]["metrics"]) is (stream == "--stream")
    tokens = f"{common['Total Input Tokens']:.0f} input and {common['Total Generated Tokens']:.0f} output tokens"
    print(f"perf {load} {stream}: 16 requests, {tokens}, as the server counts")
