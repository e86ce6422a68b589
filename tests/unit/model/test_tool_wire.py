"""Tools, calls and their results on the wire of four APIs: what is sent, and what is read, whole and streamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from look_doubles import ask_all, look_task, sample
from snellen.core.looks import end_of
from snellen.store.reader import RunReader

BOX = {"picture": 1, "box": [0, 0, 500, 500]}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
PART = {"functionCall": {"id": "f1", "name": "zoom", "args": BOX}, "thoughtSignature": "sig"}


def responses(body: dict[str, Any], number: int) -> Any:
    call = {"type": "function_call", "call_id": "c1", "name": "zoom", "arguments": json.dumps(BOX)}
    text = {"type": "message", "content": [{"type": "output_text", "text": "a cat"}]}
    return {
        "status": "completed",
        "output": [SEALED, call] if not number else [text],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }


def anthropic(body: dict[str, Any], number: int) -> Any:
    use = {"type": "tool_use", "id": "u1", "name": "zoom", "input": BOX}
    content = [THOUGHT, {"type": "text", "text": "Let me see."}, use, use | {"id": "u2", "input": {}}]
    if number:
        return {
            "content": [{"type": "text", "text": "a cat"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 1},
        }
    return {"content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 1}}


def gemini(body: dict[str, Any], number: int) -> Any:
    part = PART if not number else {"text": "a cat"}
    return {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}, part]}, "finishReason": "STOP"}]}


def own_code(body: dict[str, Any], number: int) -> Any:
    """Gemini runs code of its own before it calls, and before it answers."""
    ran = [{"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"output": "1"}}]
    parts = [*ran, PART if not number else {"text": "a cat"}]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}


def own_search(body: dict[str, Any], number: int) -> Any:
    told = anthropic(body, number)
    block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    return told | {"content": [block, {"type": "web_search_tool_result", "content": []}, *told["content"]]}


def own_interpreter(body: dict[str, Any], number: int) -> Any:
    told = responses(body, number)
    return told | {"output": [{"type": "code_interpreter_call", "id": "ci", "status": "completed"}, *told["output"]]}


def sse(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {event.get('type', 'x')}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def anthropic_stream(body: dict[str, Any], number: int) -> Any:
    start = {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 3}}}
    end = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn" if number else "tool_use"}},
        {"type": "message_stop"},
    ]
    if number:
        text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a cat"}}
        return sse(start, text, *end)
    told = json.dumps(BOX)
    return sse(
        start,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "u1", "name": "zoom", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": told[:20]}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": told[20:]}},
        *end,
    )


def responses_stream(body: dict[str, Any], number: int) -> Any:
    call = {"type": "function_call", "call_id": "c1", "name": "zoom", "arguments": json.dumps(BOX)}
    items = [SEALED, call] if not number else []
    events = [{"type": "response.output_item.done", "item": item} for item in items]
    text = [] if not number else [{"type": "response.output_text.delta", "delta": "a cat"}]
    return sse(*events, *text, {"type": "response.completed", "response": {"status": "completed", "output": []}})


def asked(tmp_path: Path, script: Any, provider: str, **more: Any) -> list[dict[str, Any]]:
    """Ask one question with one look and return what was sent."""
    params = more.pop("params", {})
    task = look_task({"carry": "tool", **more.pop("options", {})}, **params)
    found = ask_all(tmp_path / "run", script, task, [sample(tmp_path)], provider=provider, **more)
    with RunReader(tmp_path / "run") as reader:
        (trial,) = reader.trials("t")
    end = end_of(trial.prediction)
    assert end is not None and end.end in ("answered", "forced") and end.looks == 1 and trial.prediction.text == "a cat"
    return found.bodies


@pytest.mark.parametrize(("script", "params"), [(responses, {}), (responses_stream, {"stream": True})])
def test_responses_take_results_with_pictures_and_sealed_thoughts_back(
    tmp_path: Path, script: Any, params: Any
) -> None:
    first, second = asked(tmp_path, script, "openai-responses", params=params)
    assert first["tools"][0]["name"] == "zoom" and first["include"] == ["reasoning.encrypted_content"]
    *_, thought, call, result = second["input"]
    assert thought == SEALED and (call["type"], call["call_id"]) == ("function_call", "c1")
    assert (result["type"], result["call_id"]) == ("function_call_output", "c1")
    assert [part["type"] for part in result["output"]] == ["input_text", "input_image"]


def test_anthropic_has_one_user_message_that_begins_with_a_result_for_every_call(tmp_path: Path) -> None:
    first, second = asked(tmp_path, anthropic, "anthropic")
    assert first["tools"][0]["input_schema"]["required"] == ["picture", "box"]
    said, results = second["messages"][1:]
    assert [block["type"] for block in said["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert said["content"][0] == THOUGHT and said["content"][2]["input"] == BOX
    assert [block["tool_use_id"] for block in results["content"]] == ["u1", "u2"]
    assert [part["type"] for part in results["content"][0]["content"]] == ["text", "image"]
    assert results["content"][1]["is_error"] is True and "is_error" not in results["content"][0]


def test_anthropics_stream_brings_the_same_call_and_the_signed_thought(tmp_path: Path) -> None:
    _, second = asked(tmp_path, anthropic_stream, "anthropic", params={"stream": True})
    assert second["messages"][1]["content"] == [THOUGHT, {"type": "tool_use", "id": "u1", "name": "zoom", "input": BOX}]


@pytest.mark.parametrize(("name", "inside"), [("gemini-3-pro", True), ("gemini-2.5-flash", False)])
def test_gemini_gets_its_parts_back_as_they_came_and_pictures_where_it_takes_them(
    tmp_path: Path, name: str, inside: bool
) -> None:
    first, second = asked(tmp_path, gemini, "gemini", name=name)
    assert first["tools"][0]["functionDeclarations"][0]["name"] == "zoom"
    said, result = second["contents"][1:]
    assert said == {"role": "model", "parts": [{"text": "hm", "thought": True}, PART]}
    response = result["parts"][0]["functionResponse"]
    assert (response["name"], response["id"]) == ("zoom", "f1") and "output" in response["response"]
    assert ("parts" in response) == inside and len(result["parts"]) == (1 if inside else 2)


def test_the_last_turn_allows_no_call_in_every_api(tmp_path: Path) -> None:
    choices = {"openai-responses": responses, "anthropic": anthropic, "gemini": gemini}
    found = {}
    for provider, script in choices.items():
        options = {"max_turns": 2}
        _, second = asked(tmp_path / provider, script, provider, options=options)
        found[provider] = second.get("tool_choice") or second.get("toolConfig")
    assert found["openai-responses"] == "none" and found["anthropic"] == {"type": "none"}
    assert found["gemini"] == {"functionCallingConfig": {"mode": "NONE"}}


@pytest.mark.parametrize(
    ("provider", "script"), [("gemini", own_code), ("anthropic", own_search), ("openai-responses", own_interpreter)]
)
def test_tools_that_the_server_runs_itself_are_counted_and_are_no_looks(
    tmp_path: Path, provider: str, script: Any
) -> None:
    asked(tmp_path, script, provider)
    with RunReader(tmp_path / "run") as reader:
        (trial,) = reader.trials("t")
    end = end_of(trial.prediction)
    assert end is not None and (end.foreign, end.looks, end.turns) == (2, 1, 2)
