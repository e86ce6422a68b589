"""A whole video in the words of each provider; a frame is a picture everywhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from snellen.core.errors import DataError
from snellen.core.protocols import ImagePolicy
from snellen.core.types import Frame, Image, Request, TrialKey, Turn
from snellen.data.images.encode import ImageDoor
from snellen.model.served.dialect import Dialect, build_body
from snellen.model.served.gemini import Gemini
from snellen.model.served.openai import OpenAI
from video_files import write_video


def body_of(dialect: Dialect, image: Image) -> dict[str, object]:
    request = Request(TrialKey("t", "1"), (Turn("user", "What?", (image,)),))
    images = asyncio.run(ImageDoor().encode_all(request, dialect.image_policy))
    decoded: dict[str, object] = msgspec.json.decode(b"".join(build_body(dialect, "m", request, images)))
    return decoded


def test_a_whole_video_is_a_video_part(tmp_path: Path) -> None:
    film = Image(str(write_video(tmp_path / "a.mp4", 5)), "video/mp4")
    openai = msgspec.json.encode(body_of(OpenAI(), film)).decode()
    assert '{"type":"video_url","video_url":{"url":"data:video/mp4;base64,' in openai
    gemini = msgspec.json.encode(body_of(Gemini(), film)).decode()
    assert '{"inlineData":{"mimeType":"video/mp4","data":"' in gemini


def test_a_frame_never_goes_out_as_the_file_it_is_of(tmp_path: Path) -> None:
    path = str(write_video(tmp_path / "a.mp4", 5))
    from snellen.data.video.unfold import REELS

    frame = Image(path, frame=Frame(REELS.of_file(path, scenes=False).pts[2], 2, 0.0))
    written = msgspec.json.encode(body_of(OpenAI("file"), frame)).decode()
    assert "file://" not in written
    assert "data:image/jpeg;base64," in written


def test_a_video_larger_than_the_model_takes_is_refused_and_never_cut(tmp_path: Path) -> None:
    film = Image(str(write_video(tmp_path / "a.mp4", 5)), "video/mp4")
    with pytest.raises(DataError, match=r"as a file the model takes 0\.0 MB: use -p prompt\.video\.route=frames"):
        asyncio.run(ImageDoor().encode(film, ImagePolicy(max_bytes=100)))
