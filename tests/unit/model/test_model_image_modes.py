"""How pages reach a server: inline, with their content hash as uuid, or as files of a shared disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from snellen.api.chosen_model import create_model
from snellen.api.settings import RunSettings
from snellen.core.builtins import default_registry
from snellen.core.errors import UsageError
from snellen.core.protocols import EncodedImage
from snellen.core.types import Image, ImageSent, Request, TrialKey, Turn
from snellen.data.images.encode import encode_moving
from snellen.model.served.dialect import build_body
from snellen.model.served.openai import OpenAI

KEPT = EncodedImage(b"QUJD", ImageSent("aa" * 32, "image/png", 8, 8, 3))
SHRUNK = EncodedImage(b"REVG", ImageSent("bb" * 32, "image/png", 4, 4, 3, (8, 8)))


def parts(mode: str, *images: tuple[Image, EncodedImage]) -> list[dict[str, Any]]:
    request = Request(
        TrialKey("t", "s"), (Turn("system", "be brief"), Turn("user", "what?", tuple(image for image, _ in images)))
    )
    body = build_body(OpenAI(mode), "m", request, dict(images))
    content = json.loads(b"".join(body))["messages"][1]["content"]
    assert content[-1] == {"type": "text", "text": "what?"}  # pages first, question last
    return content[:-1]


def test_inline_is_the_default() -> None:
    (part,) = parts("inline", (Image("/p/d_page_001.png"), KEPT))
    assert part == {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}


def test_the_uuid_is_the_hash_of_the_bytes_never_the_name() -> None:
    first, second = parts("uuid", (Image("/a/d_page_001.png"), KEPT), (Image("/b/d_page_001.png"), SHRUNK))
    assert (first["uuid"], second["uuid"]) == ("aa" * 32, "bb" * 32)
    assert second["image_url"]["url"].endswith("REVG")


def test_files_are_named_where_they_leave_unchanged_and_sent_where_not() -> None:
    plain, edited, shrunk, data = parts(
        "file",
        (Image("/p/one.png"), KEPT),
        (Image("/p/two.png", edits=("perturb:jpeg:3:1",)), KEPT),
        (Image("/p/three.png"), SHRUNK),
        (Image("data:image/png;base64,QUJD"), KEPT),
    )
    assert plain["image_url"]["url"] == "file:///p/one.png"
    assert [part["image_url"]["url"].rpartition(",")[2] for part in (edited, shrunk, data)] == ["QUJD", "REVG", "QUJD"]


def test_a_picture_that_is_drawn_again_is_sent_and_not_named_though_its_size_stays(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 3  # upside down
    PIL.Image.new("RGB", (8, 6), "red").save(tmp_path / "turned.jpg", exif=exif)
    PIL.Image.new("RGB", (8, 6), "red").save(tmp_path / "plain.jpg")
    images = [Image(str(tmp_path / name)) for name in ("turned.jpg", "plain.jpg")]
    turned, plain = parts("file", *((image, encode_moving(image, OpenAI.image_policy)) for image in images))
    assert turned["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert plain["image_url"]["url"] == f"file://{tmp_path}/plain.jpg"


@pytest.mark.parametrize("model", ["openai/m", "vllm-server/m"])
def test_files_that_the_server_reads_itself_cannot_be_stripped(model: str) -> None:
    with pytest.raises(UsageError, match="--strip-metadata changes what is sent"):
        settings = {"model": model, "base_url": "http://h/v1", "model_arguments": {"images": "file"}}
        create_model(RunSettings(tasks=(), strip_metadata=True, **settings), default_registry())


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'uuid'"):
        OpenAI("uid")
