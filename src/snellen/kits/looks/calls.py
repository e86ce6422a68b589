"""A reply to the tools that it calls: markup of open models, arguments that are nearly JSON. Nothing is executed."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from ...core.types import ToolCall
from ...extract.reply_text import answer_start

MOST_BYTES = 65_536
"""No arguments are longer; what is, is no call."""
DEEPEST = 32
MARKUP = re.compile(
    r"</?tool_call>|</?grounding>|</?function_calls?>|<function=\w|<arg_key>"
    r"|<[|｜](?:tool[_▁]call|python_tag|action_start)|\[TOOL_CALLS\]|```tool_code",
    re.IGNORECASE,
)
"""Signs of a call, in the spellings of many models: a text that holds one is no answer."""
_BARE = re.compile(
    r"\A\s*(?:```\w*\s)?\s*\[?\s*(?:print\()?"
    r"""(?:\{\s*["'](?:name|function)["']\s*:\s*["']([\w.-]+)["']\s*,\s*["'](?:arguments|parameters)["']|([\w.]+)\(\w+\s*=)"""
)
_CALL = re.compile(r"<(tool_call|grounding)>(.*?)</\1>", re.DOTALL)
_OPENED = re.compile(r"<(tool_call|grounding)>(?!.*</\1>)", re.DOTALL)
_XML = re.compile(r"\A\s*<function=([\w.-]+)>(.*?)(?:</function>)?\s*\Z", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>(.*?)</parameter>", re.DOTALL)
_PAIRS = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_TRAILING = re.compile(r",(\s*[}\]])")


class CallsRead(NamedTuple):
    """What a text reply holds."""

    calls: tuple[ToolCall, ...]
    text: str
    """The reply without its calls and its thinking: the answer, where there are no calls."""
    in_thought: int = 0
    """Calls inside thinking: not run."""


def read_text_calls(text: str, turn: int) -> CallsRead:
    """Read the calls of a reply that writes them into its text; each bad one is a call with its class."""
    start = answer_start(text)
    thought, said = (text, "") if start is None else (text[:start], text[start:])
    hidden = len(_CALL.findall(thought))
    calls = [_one(found[1], found[2], f"t{turn}c{number}") for number, found in enumerate(_CALL.finditer(said))]
    rest = _CALL.sub("", said)
    if opened := _OPENED.search(rest):
        calls.append(ToolCall(f"t{turn}c{len(calls)}", "", rest[opened.end() :][:MOST_BYTES], "unclosed"))
        rest = rest[: opened.start()]
    return CallsRead(tuple(calls), rest.strip(), hidden)


def _one(tag: str, body: str, ident: str) -> ToolCall:
    """Return the call that stands between two tags, in any of the known spellings."""
    if len(body.encode("utf-8", "replace")) > MOST_BYTES:
        return ToolCall(ident, "", body[:200], "malformed")
    inner = body.rpartition("<tool_call>")[2]  # a tag in a tag: the inner call is meant
    if tag == "grounding":
        return ToolCall(ident, "grounding", inner.strip())
    xml, pairs = _XML.match(inner), _PAIRS.findall(inner)
    if xml is not None:
        values = {name: _value(told) for name, told in _PARAMETER.findall(xml[2])}
        return ToolCall(ident, xml[1], json.dumps(values))
    if pairs:
        name = inner[: inner.index("<arg_key>")].strip()
        return ToolCall(ident, name, json.dumps({key.strip(): _value(told) for key, told in pairs}))
    value, _ = read_json(_unfenced(inner))
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return ToolCall(ident, "", inner.strip(), "malformed")
    arguments = value.get("arguments", value.get("parameters", {}))
    return ToolCall(ident, value["name"], arguments if isinstance(arguments, str) else json.dumps(arguments))


def _unfenced(text: str) -> str:
    text = text.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2] if "\n" in text else text.strip("`")
    return text.removesuffix("```").strip()


def _value(text: str) -> Any:
    """Return a parameter as JSON has it; one that is none is a text."""
    value, _ = read_json(text.strip())
    return text.strip() if value is None else value


def read_json(text: str) -> tuple[Any, bool]:
    """Return a JSON value and whether it was nearly JSON: a comma at the end, single quotes. None: it is neither."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES or _depth(text) > DEEPEST:
        return None, False
    try:
        return json.loads(text), False
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(_TRAILING.sub(r"\1", text)), True
    except (ValueError, RecursionError):
        pass
    try:  # a literal of Python (single quotes); it is read, never run
        return ast.literal_eval(text), True
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None, False


def _depth(text: str) -> int:
    deepest = depth = 0
    for sign in re.findall(r"[\[{\]}]", text):
        depth += 1 if sign in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def read_arguments(text: str) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """Return the arguments of a call and what was mended; None where they are no object."""
    if not text.strip():
        return {}, ()
    value, loose = read_json(text)
    if isinstance(value, str):  # encoded twice
        value, loose = read_json(value)[0], True
    return (value, ("loose",) if loose else ()) if isinstance(value, dict) else (None, ())


def holds_markup(text: str, tools: Collection[str] = ()) -> bool:
    """Tell whether call markup stands in a text, or a bare call of one of the tools is what it begins with."""
    if MARKUP.search(text) is not None:
        return True
    bare = _BARE.match(text) if tools else None
    return bare is not None and (bare[1] or bare[2]).rpartition(".")[2] in tools
