"""Every way to a model keeps the order of a message's parts: pictures inside the text, and pictures as options."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from fake_clock import FakeClock
from snellen.core.message_parts import assemble_turn
from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Image, Likelihood, Request, Sample, TrialKey, Turn
from snellen.data.images.encode import ImageDoor
from snellen.model.local.inputs import LocalPrompter
from snellen.model.local.plugin import wrap
from snellen.model.local.vllm import converse, scoring_talks
from snellen.model.ocr.reader_model import Reader
from snellen.model.options import ModelOptions
from snellen.model.plain import plain_text
from snellen.model.served.anthropic import Anthropic
from snellen.model.served.dialect import Dialect, build_body
from snellen.model.served.gemini import Gemini
from snellen.model.served.logprob_routes import letters_request, scoring_request
from snellen.model.served.openai import OpenAI
from snellen.perf.workload import prepare_items
from snellen.prompt.build import Prompter

COLOURS = {"A": (200, 0, 0), "B": (0, 200, 0), "C": (0, 0, 200)}
MMMU = ["Is ", "A", " or ", "B", " the older map?\nA. the first\nB. the second"]
PICTURED = ["Which fits ", "A", "?\nA. ", "C", "\nB. ", "B"]


@pytest.fixture
def pictures(tmp_path: Path) -> dict[str, Image]:
    for name, colour in COLOURS.items():
        PIL.Image.new("RGB", (8, 6), colour).save(tmp_path / f"{name}.png")
    return {name: Image(str(tmp_path / f"{name}.png")) for name in COLOURS}


@pytest.fixture
def requests(pictures: dict[str, Image]) -> dict[str, Request]:
    a, b, c = pictures.values()
    texts = "Is <image 1> or <image 2> the older map?", "Which fits <image 1>?"
    mmmu = Sample("m", "t", Form.CHOICE, texts[0], (a, b), ("the first", "the second"))
    pictured = Sample("p", "t", Form.CHOICE, texts[1], (a, b, c), ("<image 3>", "<image 2>"))
    prompter = Prompter(Task("t", {"loader": "table"}), Prompt(), 0)
    return {"mmmu": prompter.build(mmmu), "pictured": prompter.build(pictured)}


WANTED = {"mmmu": MMMU, "pictured": PICTURED}
BOTH = pytest.mark.parametrize("kind", WANTED)


def encoded(request: Request, pictures: dict[str, Image]) -> tuple[Any, dict[str, str]]:
    """Return the encoded images, and by their base64 the name of each."""

    async def _encode() -> Any:
        door = ImageDoor()
        try:
            return await door.encode_all(request, OpenAI.image_policy)
        finally:
            door.close()

    images = asyncio.run(_encode())
    return images, {images[image].base64.decode(): name for name, image in pictures.items() if image in images}


def body_of(dialect: Dialect, request: Request, pictures: dict[str, Image]) -> tuple[Any, dict[str, str]]:
    images, names = encoded(request, pictures)
    return json.loads(b"".join(build_body(dialect, "m", request, images))), names


def openai_parts(body: Any, names: dict[str, str]) -> list[str]:
    parts = body["messages"][0]["content"]
    return [part["text"] if part["type"] == "text" else names[part["image_url"]["url"].split(",")[1]] for part in parts]


def anthropic_parts(body: Any, names: dict[str, str]) -> list[str]:
    parts = body["messages"][0]["content"]
    return [part["text"] if part["type"] == "text" else names[part["source"]["data"]] for part in parts]


def gemini_parts(body: Any, names: dict[str, str]) -> list[str]:
    return [
        part["text"] if "text" in part else names[part["inlineData"]["data"]] for part in body["contents"][0]["parts"]
    ]


READERS: dict[str, tuple[Dialect, Callable[[Any, dict[str, str]], list[str]]]] = {
    "openai": (OpenAI(), openai_parts),
    "uuid": (OpenAI("uuid"), openai_parts),
    "anthropic": (Anthropic(), anthropic_parts),
    "gemini": (Gemini(), gemini_parts),
}


@BOTH
@pytest.mark.parametrize("name", READERS)
def test_a_body_has_its_parts_in_order(
    name: str, kind: str, requests: dict[str, Request], pictures: dict[str, Image]
) -> None:
    dialect, read = READERS[name]
    assert read(*body_of(dialect, requests[kind], pictures)) == WANTED[kind]


@BOTH
def test_the_routes_of_likelihood_keep_the_order(
    kind: str, requests: dict[str, Request], pictures: dict[str, Image]
) -> None:
    for request in (scoring_request(requests[kind], "A"), letters_request(requests[kind])):
        assert openai_parts(*body_of(OpenAI(), request, pictures)) == WANTED[kind]


@BOTH
def test_a_load_is_sent_as_it_is_asked(kind: str, requests: dict[str, Request], pictures: dict[str, Image]) -> None:
    from snellen.model.served.openai import create

    model = create("m", ModelOptions(base_url="http://127.0.0.1:1/v1"))
    (item,) = asyncio.run(prepare_items(model, [[requests[kind]]]))
    _, names = encoded(requests[kind], pictures)
    assert openai_parts(json.loads(item.turns[0]), names) == WANTED[kind]


def name_of(picture: PIL.Image.Image) -> str:
    return next(name for name, colour in COLOURS.items() if picture.getpixel((0, 0)) == colour)


@BOTH
def test_vllm_gets_the_parts_in_order(kind: str, requests: dict[str, Request]) -> None:
    scored = Request(TrialKey("t", "s"), requests[kind].messages, choices=("A",), likelihood=Likelihood())
    for talk in (converse(requests[kind], {}), *scoring_talks(scored)):
        parts = talk.messages[0]["content"]
        assert [part.get("text") or name_of(part["image_pil"]) for part in parts] == WANTED[kind]


class Processor:
    """A processor whose chat template writes what it is given."""

    image_processor = tokenizer = object()
    image_token = "<img>"

    def __init__(self, template: str | None) -> None:
        self.chat_template = template

    def apply_chat_template(self, turns: list[dict[str, Any]], **_: Any) -> str:
        return "".join("[]" if part["type"] == "image" else part["text"] for turn in turns for part in turn["content"])


@BOTH
def test_a_checkpoint_gets_the_parts_in_order(kind: str, requests: dict[str, Request]) -> None:
    from snellen.model.local.checkpoint import IMAGE_TEXT

    prepared = LocalPrompter(Processor("x"), IMAGE_TEXT).prepare(requests[kind])
    assert prepared.text == "".join("[]" if part in COLOURS else part for part in WANTED[kind])
    assert [name_of(picture) for picture in prepared.pictures] == [part for part in WANTED[kind] if part in COLOURS]


@BOTH
def test_a_checkpoint_without_a_template_gets_tokens_in_order(kind: str, requests: dict[str, Request]) -> None:
    text = plain_text(requests[kind].messages, image_token="<img>")
    assert text == "".join("<img>" if part in COLOURS else part for part in WANTED[kind])


@BOTH
def test_a_plug_in_gets_pictures_in_order_and_is_told_where_they_stand(kind: str, requests: dict[str, Request]) -> None:
    from snellen.model.local.plugin import _prompt

    def answer(images: list[Any], prompt: str) -> str:
        return prompt

    (text,) = wrap(answer, {}).generate([requests[kind]], [[]], [_prompt(requests[kind])])  # type: ignore[misc]
    numbers = iter(range(1, 9))
    assert text == "".join(f"<image {next(numbers)}>" if part in COLOURS else part for part in WANTED[kind])


def test_the_reader_reads_the_pages_in_the_order_they_are_shown(pictures: dict[str, Image]) -> None:
    seen: list[str] = []

    class Engine:
        name = "spy"

        def version(self) -> str:
            return "1"

        def prepare(self) -> None:
            """Nothing to do."""

        def read(self, picture: PIL.Image.Image) -> list[Any]:
            seen.append(name_of(picture.convert("RGB")))
            return []

    reader = Reader("reader", Engine(), ModelOptions(clock=FakeClock()))
    a, b, c = pictures.values()
    messages = (Turn("user", "x", (c,)), Turn("assistant", "y"), assemble_turn("user", ["What in ", b, " or ", a, "?"]))
    asyncio.run(_ask_and_close(reader, Request(TrialKey("t", "s"), messages)))
    assert seen == ["C", "B", "A"]


async def _ask_and_close(reader: Any, request: Request) -> None:
    await reader.predict(request, {})
    await reader.close()
