"""Tools on a real vLLM server: what its flags, its chat template and its parser do with them, as far as random weights show.

Random weights call nothing by themselves: a call is forced by naming the tool, which vLLM holds the reply to.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import run_command
from engine_questions import COLOURS, NAME, records_of, write_rows
from engine_servers import free_port, serving, vllm_command
from line_doubles import ask
from snellen.core.errors import FailureKind, ModelError
from snellen.core.types import Image, Params, Prediction, Request, ToolCall, TrialKey, Turn
from snellen.kits.looks.calls import read_arguments
from snellen.kits.looks.inferencer import CONTEXT_LIMIT, PICTURE_LIMIT
from snellen.kits.looks.tools import Terms, describe
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create
from snellen.prompt.tool_results import Result, native_results
from tiny_checkpoints import CHAT

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
TEMPLATE = "{% if tools %}<|turn|>system\n{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|end|>\n{% endif %}"
FLAGS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
ROOM, PICTURES = 1024, 2
ZOOM = describe(("zoom",), Terms("0-1000"))
QUESTION = Turn("user", "What is it?", (Image(str(COLOURS / "red.png")),))


@pytest.fixture(scope="module")
def with_tools(wide_checkpoint: Path, environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose template writes tools into the prompt and whose parser reads calls."""
    folder, port = tmp_path_factory.mktemp("tools"), free_port()
    (folder / "chat.jinja").write_text(TEMPLATE + CHAT)
    more = [*FLAGS, "--chat-template", str(folder / "chat.jinja"), "--limit-mm-per-prompt", f'{{"image": {PICTURES}}}']
    command = vllm_command(wide_checkpoint, port)
    command[command.index("--max-model-len") + 1] = str(ROOM)
    with serving([*command, *more], port, folder / "log") as running:
        yield running.url


def tools_probe(server: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return what `serve-check` says of tools."""
    run_command(["serve-check", server, "--json", "--within", "60"])
    facts = json.loads(capsys.readouterr().out)
    (probe,) = (one for one in facts["probes"] if one["what"] == "tools")
    return dict(probe)


def reply_to(server: str, *turns: Turn, tools: Any = ZOOM) -> Prediction:
    """Ask as a run asks, and let the model go."""

    async def go() -> Prediction:
        model = create(NAME, ModelOptions(base_url=server))
        try:
            key = TrialKey("t", "1")
            return await ask(
                model, Request(key, (QUESTION, *turns), Params(max_tokens=4, temperature=0.0), tools=tools)
            )
        finally:
            await model.close()

    return asyncio.run(go())


def test_serve_check_tells_whether_tools_reach_the_model(server, with_tools, capsys):
    without, with_them = tools_probe(server, capsys), tools_probe(with_tools, capsys)
    with capsys.disabled():
        print(f"\nwithout flags: {without}\nwith flags: {with_them}")
    assert not without["ok"] and "--enable-auto-tool-choice" in without["text"]
    assert not with_them["ok"] and "not called" in with_them["text"], "random weights call nothing"


def test_a_run_with_tools_sends_them_through_the_template(with_tools, tmp_path, capsys):
    rows = write_rows(tmp_path, 2)
    asked = ["--model", f"openai/{NAME}", "--base-url", with_tools, "--temperature", "0", "--max-tokens", "4"]
    more = ["--tools", "zoom", "--tool-arms", "base,plain", "--no-cache", "--quiet"]
    assert run_command(["run", rows, *asked, *more, "-o", tmp_path / "run"]) == 0
    records = records_of(tmp_path / "run")
    tokens = {one["variant"]: one["usage"]["input_tokens"] for one in records}
    with capsys.disabled():
        print(f"\ninput tokens: {tokens}")
    assert tokens["base"] > tokens["look=plain"] + 100, "the schema of zoom stands in the prompt"


def test_a_forced_call_is_read_and_its_result_goes_back(with_tools, capsys):
    function = {"name": "zoom", "description": ZOOM[0].description, "parameters": ZOOM[0].schema}
    body = {
        "model": NAME, "max_tokens": 256, "temperature": 0, "messages": [{"role": "user", "content": "Look."}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "zoom"}},
    }  # fmt: skip
    told = urllib.request.Request(
        f"{with_tools}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(told, timeout=120) as response:
        (choice,) = json.load(response)["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "zoom"
    arguments, _ = read_arguments(call["function"]["arguments"])
    assert arguments is None or set(arguments) <= {"picture", "box"}, "no object is `malformed`, as any model's"
    made = ToolCall("c1", "zoom", '{"picture": 1, "box": [0, 0, 500, 500]}')
    said, shown = Turn("assistant", "", calls=(made,)), Image(str(COLOURS / "blue.png"))
    seen = {}
    for carry in ("user", "tool"):
        reply = reply_to(with_tools, said, *native_results([Result("c1", "Picture 2.", (shown,))], carry))
        seen[carry] = reply.usage.input_tokens if reply.usage else None
    bare = reply_to(with_tools, said, *native_results([Result("c1", "Picture 2.")], "user"))
    with capsys.disabled():
        print(f"\nforced call: {call['function']}, {choice['finish_reason']}\nresults: {seen}, without: {bare.usage}")
    assert bare.usage is not None and bare.usage.input_tokens is not None
    assert all(count is not None and count > bare.usage.input_tokens for count in seen.values()), (
        "both show the picture"
    )


def test_its_refusals_tell_the_limits_that_looks_end_by(with_tools, capsys):
    many = Turn("user", "And these?", (Image(str(COLOURS / "blue.png")), Image(str(COLOURS / "green.png"))))
    with pytest.raises(ModelError) as crowded:
        reply_to(with_tools, many)
    with pytest.raises(ModelError) as long:
        reply_to(with_tools, Turn("user", "how many lines? " * ROOM))
    with capsys.disabled():
        print(f"\npictures: {crowded.value}\ncontext: {long.value}")
    pictures, context = PICTURE_LIMIT.search(str(crowded.value)), CONTEXT_LIMIT.search(str(long.value))
    assert pictures is not None and int(pictures[1]) == PICTURES
    assert long.value.kind is FailureKind.TOO_LONG and context is not None
    assert int(context[1] or context[2]) == ROOM
