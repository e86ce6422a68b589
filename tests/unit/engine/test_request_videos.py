"""A request's videos become what this model is shown, in their places; the rest of the message stays as it was."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from line_doubles import Scripted
from snellen.core.errors import UsageError
from snellen.core.message_parts import assemble_turn
from snellen.core.protocols import Capability
from snellen.core.types import Image, Prediction, Request, Showing, TrialKey, Turn, Video
from snellen.engine.request_videos import has_videos, unfold_videos, video_route
from video_files import write_video

KEY = TrialKey("t", "1")


def test_frames_take_the_place_of_the_video_between_texts_and_pictures(tmp_path: Path) -> None:
    film = Video(str(write_video(tmp_path / "a.mp4", 20)), showing=Showing(frames="uniform:2"))
    still = Image("/data/cat.png")
    turn = assemble_turn("user", [still, "Before: ", film, " after."])
    request = Request(KEY, (Turn("system", "Look."), turn))
    assert has_videos(request)
    shown = asyncio.run(unfold_videos(request, Scripted()))
    last = shown.request.messages[-1]
    assert not has_videos(shown.request)
    assert last.parts == (0, "Before: ", 1, 2, " after.")
    assert [image.frame.index for image in last.images if image.frame] == [5, 15]
    assert shown.request.messages[0] == Turn("system", "Look.")
    noted = shown.noted(Prediction(KEY, text="ok", detail={"model": "m"}))
    assert noted.detail["model"] == "m"
    assert noted.detail["videos"][0]["indices"] == [5, 15]


def test_a_request_without_videos_is_the_plain_one() -> None:
    assert not has_videos(Request(KEY, (Turn("user", "Hi", (Image("/a.png"),)),)))


@pytest.mark.parametrize(
    ("can", "route", "expected"),
    [
        ({Capability.IMAGES}, "frames", "frames"),
        ({Capability.IMAGES, Capability.VIDEO_FILE}, "frames", "frames"),
        ({Capability.IMAGES, Capability.VIDEO_FILE}, "native", "file"),
        ({Capability.IMAGES, Capability.VIDEO_FRAMES}, "native", "joined"),
    ],
)
def test_a_model_is_shown_a_video_as_it_can_take_it(can: set[Capability], route: str, expected: str) -> None:
    model = Scripted()
    model.capabilities = frozenset(can)
    assert video_route(model, Showing(route=route)) == expected


def test_what_a_model_cannot_take_is_refused() -> None:
    model = Scripted()
    with pytest.raises(UsageError, match="takes no videos"):
        video_route(model, Showing(route="native"))
    model.capabilities = frozenset({Capability.GENERATE})
    with pytest.raises(UsageError, match="takes no images"):
        video_route(model, Showing())
