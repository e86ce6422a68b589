"""Sixty replies and refusals that a loop with tools meets: each has its class and its end, and the counts add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from look_doubles import ask_all, box_call, chat, look_task, sample
from snellen.core.builtins import default_registry
from snellen.core.errors import FailureKind, ModelError
from snellen.core.looks import CALL_CLASSES, ENDS, LookEnd, end_of
from snellen.core.types import TrialKey
from snellen.kits.looks.figures import DROPPED_NOTE
from snellen.report.pages.finish import finish_run
from snellen.store.reader import RunReader

pytestmark = pytest.mark.usefixtures("drawn_here")
CAT = chat("a cat")
BOX = {"picture": 1, "box": [0, 0, 500, 500]}
NATIVE: dict[str, Any] = {}
TEXT = {"dialect": "text"}


class Case(Struct, frozen=True):
    """What a server says, turn by turn, and what must come of it."""

    name: str
    says: Any
    """Replies in order, the last again and again; or a function of the body and the number."""
    end: str = "answered"
    classes: dict[str, int] = {}
    looks: int = 0
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    provider: str = "openai"
    failure: str = ""
    limit: str = ""
    told: dict[str, Any] = {}
    """Of the sample: its size, its question."""
    params: dict[str, Any] = {}
    arms: tuple[str, ...] = ()
    retries: int = 0


def native(arguments: Any, name: str = "zoom") -> dict[str, Any]:
    return chat(None, [(name, arguments)])


def zoomed(**change: Any) -> dict[str, Any]:
    return native(json.dumps(BOX | change))


def tagged(body: str, before: str = "", after: str = "") -> dict[str, Any]:
    return chat(f"{before}<tool_call>{body}</tool_call>{after}")


CALL = json.dumps({"name": "zoom", "arguments": BOX})


def events(*deltas: dict[str, Any], finish: str | None = "tool_calls") -> bytes:
    rows = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    rows += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}] if finish else []
    lines = [f"data: {json.dumps(row)}\n\n" for row in rows] + (["data: [DONE]\n\n"] if finish else [])
    return "".join(lines).encode()


def piece(index: int, arguments: str, name: str = "", ident: str = "") -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function} | ({"id": ident} if ident else {})]}


STREAM_CAT = events({"content": "a cat"}, finish="stop")
SPLIT = events(piece(0, '{"pic', "zoom", "a"), piece(0, 'ture": 1, "b'), piece(0, 'ox": [0, 0, 500, 500]}'))
MIXED = events(
    piece(1, '{"picture": 1, "box": [500, 500, ', "zoom", "b"),
    piece(0, json.dumps(BOX), "zoom", "a"),
    piece(1, "900, 900]}"),
)
OTHER = json.dumps(BOX | {"box": [500, 500, 900, 900]})
ALL_AT_0 = events(piece(0, json.dumps(BOX), "zoom", "a"), piece(0, OTHER, "zoom", "b"))
WITHOUT_INDEX = events(
    *({"tool_calls": [{"function": {"name": "zoom", "arguments": told}}]} for told in (json.dumps(BOX), OTHER))
)
NAMED_IN_EVERY_PIECE = events(
    piece(0, '{"pic', "zoom", "a"),
    piece(0, 'ture": 1, "b', "zoom", "b"),
    piece(0, 'ox": [0, 0, 500, 500]}', "zoom", "c"),
)
CUT = events(piece(0, '{"picture": 1, "bo', "zoom", "a"), finish=None)


def for_ever(*calls: tuple[str, str]) -> Callable[[dict[str, Any], int], Any]:
    """Return a model that calls the same again and again, and answers where it must."""

    def says(body: dict[str, Any], number: int) -> Any:
        return CAT if body.get("tool_choice") == "none" else chat(None, [calls[number % len(calls)]])

    return says


def after_looks(count: int, refusal: Any) -> Callable[[dict[str, Any], int], Any]:
    """Return a server that takes requests with so many results at most."""

    def says(body: dict[str, Any], number: int) -> Any:
        results = sum(message["role"] == "tool" for message in body["messages"])
        if results > count:
            return refusal
        if body.get("tool_choice") == "none":
            return CAT
        return chat(None, [box_call(0, 0, 900 - 100 * results, 500)])

    return says


def gemini_reply(body: dict[str, Any], number: int) -> Any:
    if number:
        return 400, {"error": {"code": 400, "message": "Function call is missing a thought_signature in functionCall"}}
    part = {"functionCall": {"name": "zoom", "args": BOX}, "thoughtSignature": "s"}
    return {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}


def anthropic_reply(body: dict[str, Any], number: int) -> Any:
    if number:
        message = "messages.2: unexpected `tool_use_id` found in `tool_result` blocks"
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    block = {"type": "tool_use", "id": "u", "name": "zoom", "input": BOX}
    return {"content": [block], "stop_reason": "tool_use", "usage": {"input_tokens": 5, "output_tokens": 5}}


def same_length(body: dict[str, Any], number: int) -> Any:
    return chat("a cat", usage={"prompt_tokens": 77, "completion_tokens": 2})


def busy_once(body: dict[str, Any], number: int) -> Any:
    return (zoomed(), (429, {"error": {"message": "slow down"}}), CAT)[min(number, 2)]


def times_out(body: dict[str, Any], number: int) -> Any:
    if number:
        raise ModelError(FailureKind.TIMEOUT, "no answer within 5 s")
    return zoomed()


STREAM = {"stream": True}
LIMIT_4 = (400, {"error": {"message": "At most 4 image(s) may be provided in one prompt.", "type": "BadRequestError"}})
FULL = (
    400,
    {"error": {"message": "This model's maximum context length is 4096 tokens.", "code": "context_length_exceeded"}},
)
CASES = (
    Case("1 bad JSON", [native('{"picture": 1, "box": [1, 2'), CAT], classes={"malformed": 1}),
    Case("2 trailing comma", [native('{"picture": 1, "box": [0, 0, 500, 500,],}'), CAT], looks=1, notes=("loose",)),
    Case("3 single quotes", [native("{'picture': 1, 'box': [0, 0, 500, 500]}"), CAT], looks=1, notes=("loose",)),
    Case("4 arguments as object", [native(BOX), CAT], looks=1),
    Case("5 twice encoded", [native(json.dumps(json.dumps(BOX))), CAT], looks=1, notes=("loose",)),
    Case("6 no arguments", [native(""), CAT], classes={"schema": 1}),
    Case("7 null content", [chat(None, finish="stop")], failure="decode"),
    Case("8 content and call", [chat("Let me see.", [box_call(0, 0, 500, 500)]), CAT], looks=1),
    Case("9 empty tool_calls", [chat("a cat", tool_calls=[])]),
    Case("10 finish stop with calls", [chat(None, [box_call(0, 0, 500, 500)], "stop"), CAT], looks=1),
    Case("11 finish tool_calls without", [chat(None, finish="tool_calls")], "no-answer"),
    Case("12 no id", [chat(None, [{"function": {"name": "zoom", "arguments": json.dumps(BOX)}}]), CAT], looks=1),
    Case(
        "13 same id twice",
        [
            chat(
                None,
                [
                    {"id": "x", "function": {"name": "zoom", "arguments": json.dumps(BOX)}},
                    {
                        "id": "x",
                        "function": {"name": "zoom", "arguments": json.dumps(BOX | {"box": [500, 0, 900, 500]})},
                    },
                ],
            ),
            CAT,
        ],
        looks=2,
    ),
    Case(
        "14 five calls",
        [chat(None, [box_call(0, 0, 200 * n, 500) for n in range(1, 6)]), CAT],
        looks=3,
        classes={"too-many": 2},
    ),
    Case("15 stream split inside a key", [SPLIT, STREAM_CAT], looks=1, params=STREAM),
    Case("16 stream indices out of order", [MIXED, STREAM_CAT], looks=2, params=STREAM),
    Case("17 stream cut in a call", [CUT], failure="network", params=STREAM),
    Case("18 unknown tool", [native(json.dumps(BOX), "paint"), CAT], classes={"unknown-tool": 1}),
    Case("19 near name", [native(json.dumps(BOX), "functions.Zoom"), CAT], looks=1, notes=("renamed",)),
    Case("20 tool of another preset", [native(json.dumps(BOX), "image_zoom_in_tool"), CAT], classes={"not-offered": 1}),
    Case("21 call in thinking", [tagged(CALL, "<think>", "</think>a cat")], classes={"in-thought": 1}, options=TEXT),
    Case("22 unclosed tag", [chat(f"<tool_call>{CALL}"), CAT], classes={"unclosed": 1}, options=TEXT),
    Case("23 nested tags", [tagged(f"<tool_call>{CALL}</tool_call>"), CAT], looks=1, options=TEXT),
    Case("24 fenced call", [tagged(f"```json\n{CALL}\n```"), CAT], looks=1, options=TEXT),
    Case(
        "25 call quoted after the answer", [tagged(CALL, "It is a cat. I would call ", "."), CAT], looks=1, options=TEXT
    ),
    Case(
        "26 XML form",
        [
            tagged(
                "<function=zoom><parameter=picture>1</parameter><parameter=box>[0, 0, 500, 500]</parameter></function>"
            ),
            CAT,
        ],
        looks=1,
        options=TEXT,
    ),
    Case(
        "27 arg_key form",
        [
            tagged(
                "zoom\n<arg_key>picture</arg_key><arg_value>1</arg_value>"
                "<arg_key>box</arg_key><arg_value>[0, 0, 500, 500]</arg_value>"
            ),
            CAT,
        ],
        looks=1,
        options=TEXT,
    ),
    Case("28 three numbers", [zoomed(box=[1, 2, 3]), CAT], classes={"schema": 1}),
    Case("29 strings as numbers", [zoomed(box=["0", "0", "500", "500"]), CAT], looks=1),
    Case(
        "30 NaN, 1e999",
        [native('{"picture": 1, "box": [NaN, 0, 1, 1]}'), native('{"picture": 1, "box": [0, 0, 1e999, 1]}'), CAT],
        classes={"schema": 2},
    ),
    Case("31 swapped corners", [zoomed(box=[500, 500, 0, 0]), CAT], looks=1, notes=("swapped",)),
    Case("32 negative", [zoomed(box=[-300, 0, 500, 500]), CAT], classes={"frame": 1}),
    Case("33 pixels where 0-1000", [zoomed(box=[900, 900, 1900, 1400]), CAT], classes={"frame": 1}),
    Case(
        "34 fractions where pixels",
        [zoomed(box=[0.1, 0.1, 0.5, 0.5]), CAT],
        looks=1,
        notes=("grown",),
        options={"frame": "pixels"},
    ),
    Case("35 zero area", [zoomed(box=[300, 300, 300, 500]), CAT], classes={"empty": 1}),
    Case("36 one pixel", [zoomed(box=[500, 500, 501, 501]), CAT], looks=1, notes=("grown",)),
    Case("37 aspect", [zoomed(box=[0, 0, 1000, 1000]), CAT], classes={"aspect": 1}, told={"size": (8000, 16)}),
    Case("38 whole picture", [zoomed(box=[0, 0, 1000, 1000]), CAT], looks=1),
    Case(
        "39 picture 0, 99, first",
        [chat(None, [box_call(0, 0, 500, 500, picture=one) for one in (0, 99, "first")]), CAT],
        classes={"picture": 3},
    ),
    Case("40 crop of a crop", [zoomed(), zoomed(picture=2), CAT], looks=2),
    Case("41 same box for ever", for_ever(box_call(0, 0, 500, 500)), "forced", {"repeat": 2}, 1, limit="repeat"),
    Case(
        "42 alternating boxes",
        for_ever(box_call(0, 0, 500, 500), box_call(500, 500, 900, 900)),
        "forced",
        {"repeat": 2},
        2,
        limit="repeat",
    ),
    Case(
        "43 call in the forced turn",
        [zoomed(), zoomed(box=[500, 500, 900, 900])],
        "no-answer",
        {"not-offered": 1},
        1,
        options={"max_turns": 2},
        limit="max-turns",
    ),
    Case("44 empty final", [zoomed(), chat("")], "no-answer", looks=1),
    Case("45 answer and call together", [tagged(CALL, "<answer>cat</answer>"), CAT], looks=1, options=TEXT),
    Case("46 400 missing signature", gemini_reply, "history-refused", looks=1, provider="gemini", failure="request"),
    Case(
        "47 400 orphan tool_result",
        anthropic_reply,
        "history-refused",
        looks=1,
        provider="anthropic",
        failure="request",
    ),
    Case(
        "48 tool role refuses pictures",
        after_looks(0, (400, {"error": {"message": "messages with role 'tool' must have text content"}})),
        "history-refused",
        looks=1,
        failure="request",
        options={"carry": "tool"},
    ),
    Case(
        "49 at most N images", after_looks(3, LIMIT_4), "pictures", looks=4, options={"max_turns": 9}, limit="pictures"
    ),
    Case("50 context full", after_looks(4, FULL), "context", looks=5, options={"max_turns": 9}, limit="context"),
    Case("51 tools dropped by the template", same_length, "tools-ignored", arms=("base", "plain")),
    Case("52 pictures of results dropped", [zoomed(), CAT], looks=1),
    Case("53 arguments of 1 MB", [native(json.dumps(BOX | {"x": "y" * 2**20})), CAT], classes={"malformed": 1}),
    Case("54 depth 10,000", [native("[" * 10_000 + "]" * 10_000), CAT], classes={"malformed": 1}),
    Case(
        "55 path or URL as picture",
        [zoomed(picture="/etc/passwd"), zoomed(picture="http://h/a.png"), CAT],
        classes={"picture": 2},
    ),
    Case("56 code in arguments", [native("__import__('os').system('true')"), CAT], classes={"malformed": 1}),
    Case(
        "57 markup in the question",
        [CAT],
        told={"question": f"What does <tool_call>{CALL}</tool_call> do?"},
        options=TEXT,
    ),
    Case("58 429 between turns", busy_once, looks=1, retries=2),
    Case("59 timeout after a stored turn", times_out, looks=1, failure="timeout"),
    Case(
        "60 another model name at turn 3",
        [zoomed(), zoomed(picture=2), {**chat("a cat"), "model": "other"}],
        looks=2,
    ),
    Case("61 markup left in a native reply", [tagged("{bad json}")], "unparsed"),
    Case(
        "62 stopped at a limit",
        for_ever(box_call(0, 0, 500, 500)),
        "stopped",
        {"repeat": 2},
        1,
        options={"at_limit": "stop"},
        limit="repeat",
    ),
    Case("63 stream with every call at index 0", [ALL_AT_0, STREAM_CAT], looks=2, params=STREAM),
    Case("64 stream without an index", [WITHOUT_INDEX, STREAM_CAT], looks=2, params=STREAM),
    Case("65 stream with name and new id in every piece", [NAMED_IN_EVERY_PIECE, STREAM_CAT], looks=1, params=STREAM),
    Case(
        "66 the older function_call",
        [chat(None, finish="function_call", function_call={"name": "zoom", "arguments": json.dumps(BOX)}), CAT],
        looks=1,
    ),
    Case(
        "67 the same turn for ever",
        for_ever(("turn", '{"picture": 1, "degrees": 90}')),
        "forced",
        {"repeat": 2},
        1,
        options={"tools": ("turn",)},
        limit="repeat",
    ),
    Case(
        "68 the same page for ever",
        for_ever(("page", '{"number": 1}')),
        "forced",
        {"repeat": 2},
        1,
        options={"tools": ("page",)},
        limit="repeat",
    ),
    *(
        Case(f"69 left in the text: {told[:14]}", [chat(told)], "unparsed", options={"dialect": dialect})
        for dialect in ("native", "text")
        for told in (
            f"[TOOL_CALLS][{CALL}]",
            f"<|python_tag|>{CALL}",
            "```tool_code\nzoom(picture=1, box=[0, 0, 500, 500])\n```",
            "[zoom(picture=1, box=[0, 0, 500, 500])]",
            CALL,
            f"```json\n{CALL}\n```",
        )
    ),
    Case("70 an answer that only looks like a call", [chat("[click(x=3, y=4)]")]),
    Case("71 an answer in JSON", [chat('{"name": "zoom lens", "arguments": []}')]),
)


def scripted(says: Any) -> Callable[[dict[str, Any], int], Any]:
    return says if callable(says) else lambda body, number: says[min(number, len(says) - 1)]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_case_has_its_class_and_its_end(case: Case, tmp_path: Path) -> None:
    task = look_task(case.options, case.arms, **case.params)
    shown = sample(tmp_path, **case.told)
    ask_all(tmp_path / "run", scripted(case.says), task, [shown], provider=case.provider, retries=case.retries)
    with RunReader(tmp_path / "run") as reader:
        trials = {trial.prediction.key.variant: trial.prediction for trial in reader.trials("t")}
        looks = [look for turn in reader.turns(TrialKey("t", "0")) for look in turn.looks]
    reply = trials["base"]
    assert (reply.failure.kind.value if reply.failure else "") == case.failure
    end = end_of(reply)
    if case.failure and case.end == "answered":
        assert end is None
        return
    assert isinstance(end, LookEnd)
    assert (end.end, end.classes, end.looks, end.limit) == (case.end, case.classes, case.looks, case.limit)
    assert end.calls == end.looks + sum(end.classes.values())
    assert end.end in ENDS and set(end.classes) <= set(CALL_CLASSES)
    assert {note for look in looks for note in look.notes} >= set(case.notes)


def test_a_trial_that_timed_out_goes_on_at_its_turn(tmp_path: Path) -> None:
    shown = [sample(tmp_path)]
    first = ask_all(tmp_path / "run", times_out, look_task({}), shown)
    again = ask_all(tmp_path / "run", scripted([CAT]), look_task({}), shown)
    assert (len(first.bodies), len(again.bodies)) == (2, 1)
    with RunReader(tmp_path / "run") as reader:
        (trial,) = reader.trials("t")
        turns = reader.turns(TrialKey("t", "0"))
    assert trial.prediction.text == "a cat" and [turn.number for turn in turns] == [0, 1]


def test_ids_of_one_reply_are_told_apart_and_every_call_has_its_answer(tmp_path: Path) -> None:
    twice = next(case for case in CASES if case.name.startswith("13"))
    asked = ask_all(tmp_path / "run", scripted(twice.says), look_task({}), [sample(tmp_path)])
    calls = asked.bodies[1]["messages"][1]["tool_calls"]
    answers = [message["tool_call_id"] for message in asked.bodies[1]["messages"] if message["role"] == "tool"]
    assert [call["id"] for call in calls] == answers == ["x", "call_1"]


@pytest.mark.parametrize("dropped", [True, False])
def test_arms_tell_where_the_server_drops_pictures_of_results(tmp_path: Path, dropped: bool) -> None:
    """Case 52 within a run: a server that counts tokens of words, and of pictures where it takes them."""

    def says(body: dict[str, Any], number: int) -> Any:
        parts = [part for message in body["messages"] for part in message["content"] or () if isinstance(part, dict)]
        text = sum(len(str(message["content"])) for message in body["messages"] if isinstance(message["content"], str))
        text += sum(len(part.get("text", "")) for part in parts)
        pictures = 0 if dropped else sum(part["type"] == "image_url" for part in parts)
        usage = {"prompt_tokens": text // 4 + 100 * pictures, "completion_tokens": 5}
        looked = any(message["role"] == "tool" for message in body["messages"])
        return chat("a cat", usage=usage) if looked else {**zoomed(), "usage": usage}

    ask_all(tmp_path / "run", says, look_task({}, ("base", "none")), [sample(tmp_path, number) for number in range(3)])
    found = finish_run(tmp_path / "run", default_registry(), report=False)
    assert (DROPPED_NOTE in found["tasks"]["t"]["looks"]["notes"]) is dropped
