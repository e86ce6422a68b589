"""What a model is told of tools, in each dialect: descriptions, results, and how others' tools are named and drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ...core.message_parts import assemble_turn
from ...core.types import Image, Tool, Turn
from ...prompt.tool_results import NO_PICTURE, Result
from .tools import TOOLS, Terms
from .views import CallError, ZoomRules

NATIVE, TEXT = "native", "text"
FORCED = "No more calls are possible. Answer now with what you have seen."
NOT_RUN = "not run: at most {most} calls in one turn"


class Preset(NamedTuple):
    """How one project's model names its tool, counts coordinates and pictures, and draws a region."""

    frame: str
    rules: ZoomRules
    tool: str
    box: str
    picture: str = ""
    """The argument that names a picture; empty: there is none."""
    addressable: str = "all"
    counted_from: int = 1
    calls_a_turn: int = 3
    max_turns: int = 0
    max_looks: int = 0
    """Its own limits; 0: those of the run."""
    open_tag: str = "<tool_call>"
    close_tag: str = "</tool_call>"
    shows: str = ""
    """What stands before a result's picture, with `number` among all pictures and `made` among results; our words
    would count pictures otherwise than its calls do."""

    def terms(self, longest: int) -> Terms:
        """Return the terms of its calls."""
        return Terms(self.frame, self.rules, longest, self.addressable, self.counted_from)

    def told(self, number: int, first: int) -> str:
        """Return what a result says of the picture of this number; `first` pictures belong to the question."""
        return self.shows.format(number=number, made=number - first)

    def arguments(self, told: Mapping[str, Any], first: int) -> dict[str, Any]:
        """Return a call's arguments as ours are; `first` pictures belong to the question."""
        picture = told.get(self.picture, self.counted_from) if self.picture else self.counted_from
        if self.picture == "source":
            picture = _observation(picture, first)
        return {"box": told.get(self.box), "picture": picture}


def _observation(name: object, first: int) -> int:
    """Return the number of `original_image` or `observation_N`."""
    if name == "original_image":
        return 1
    kind, _, number = str(name).rpartition("_")
    if kind != "observation" or not number.isdigit():
        raise CallError("picture", f"there is no {str(name)[:40]!r}: original_image or observation_1 …")
    return first + int(number) if int(number) else 1


_QWEN = ZoomRules(
    least=32, aspect=1e9, rounding="nearest", kernel="bicubic", grid=32, least_pixels=256 * 32 * 32, strict=False
)
_DEEPEYES = ZoomRules(
    least=28,
    rounding="nearest",
    kernel="bicubic",
    grid=28,
    least_pixels=4 * 28 * 28,
    most_pixels=16384 * 28 * 28,
    strict=False,
)
_MINI_O3 = ZoomRules(least=28, aspect=200.0, to_original=True)
_PIXEL_REASONER = ZoomRules(least=28, refuse_small=True, aspect=1e9, rounding="down", enlarge=0, pad=0.1, strict=False)
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "qwen3-vl": Preset(
            "0-1000", _QWEN, "image_zoom_in_tool", "bbox_2d", "img_idx", "question", 0, max_turns=21, max_looks=20
        ),
        "deepeyes": Preset(
            "pixels", _DEEPEYES, "image_zoom_in_tool", "bbox_2d", "", "first", max_turns=11, max_looks=33
        ),
        "mini-o3": Preset(
            *("0-1", _MINI_O3, "grounding", "bbox_2d", "source"),
            max_turns=13,
            max_looks=12,
            open_tag="<grounding>",
            close_tag="</grounding>",
            shows="observation_{made}:",
        ),
        "pixel-reasoner": Preset(
            *("0-1 or pixels", _PIXEL_REASONER, "crop_image_normalized", "bbox_2d", "target_image"),
            shows="Picture {number}:",
        ),
    }
)
DIALECTS = (NATIVE, TEXT, *PRESETS)
OTHERS_TOOLS = frozenset({*TOOLS, *(preset.tool for preset in PRESETS.values())})
"""Names of tools that exist somewhere: one that was not offered is told apart from one that nobody knows."""


def preset_tool(preset: Preset) -> Tool:
    """Return a preset's tool as it is described."""
    numbers = {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4}
    fields: dict[str, Any] = {preset.box: numbers | {"description": "left, top, right, bottom"}}
    if preset.tool == "image_zoom_in_tool":
        fields["label"] = {"type": "string", "description": "what is looked for"}
    if preset.picture:
        fields[preset.picture] = {"type": "string" if preset.picture == "source" else "number"}
    words = {
        "0-1000": "Coordinates count from 0 to 1000 along each side.",
        "pixels": "Coordinates are pixels of the picture.",
    }.get(preset.frame, "Coordinates are shares of the picture from 0 to 1.")
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return Tool(preset.tool, f"Look closer at a region of a picture. {words}", schema)


def tool_text(tools: Sequence[Tool], preset: Preset | None) -> str:
    """Return the description of tools for a model that writes its calls into its text."""
    start, end = (preset.open_tag, preset.close_tag) if preset else ("<tool_call>", "</tool_call>")
    lines = [
        json.dumps(
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.schema}}
        )
        for t in tools
    ]
    call = '{"bbox_2d": [0.1, 0.2, 0.5, 0.6], "source": "original_image"}'
    if preset is None or preset.picture != "source":
        call = '{"name": NAME, "arguments": {…}}'
    return "\n".join(
        (
            "You may call tools while you work on the question. Each line describes one:",
            *("<tools>", *lines, "</tools>"),
            f"To call one, write its JSON between tags and end your turn: {start}{call}{end}",
            "The result comes with the next message. When you know the answer, give it without a call.",
        )
    )


def with_system(messages: Sequence[Turn], text: str) -> tuple[Turn, ...]:
    """Return the messages with a text at the end of the system's, or before them all."""
    if messages and messages[0].role == "system":
        return (Turn("system", f"{messages[0].text}\n\n{text}"), *messages[1:])
    return (Turn("system", text), *messages)


def text_results(results: Sequence[Result]) -> list[Turn]:
    """Return the message that answers calls written in a text."""
    pieces: list[str | Image] = []
    for result in results:
        pieces += ["<tool_response>", *([f"{result.told}\n"] if result.told else [])]
        pieces += [image or NO_PICTURE for image in result.images]
        pieces.append("</tool_response>\n")
    return [assemble_turn("user", pieces)]
