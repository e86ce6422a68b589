"""Frames as pictures and as one video through a checkpoint's own processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import local_videos
from snellen.core.errors import ModelError
from snellen.core.types import Frame, Image, Turn
from snellen.model.local.inputs import Clip, check_places, video_arguments, write_content
from torchvision_shim import has_torchvision


def frame(video: str, index: int, *, joined: bool = True) -> Image:
    return Image(video, frame=Frame(index, index, index / 2, joined=joined))


def test_frames_of_one_video_are_one_part_and_pictures_stay_pictures() -> None:
    images = (frame("/a.mp4", 0), frame("/a.mp4", 1), frame("/b.mp4", 0), Image("/c.png"), frame("/a.mp4", 2))
    kinds = [part["type"] for part in write_content(Turn("user", "What?", images))]
    assert kinds == ["video", "video", "image", "video", "text"]
    loose = tuple(frame("/a.mp4", place, joined=False) for place in range(2))
    assert [part["type"] for part in write_content(Turn("user", "What?", loose))] == ["image", "image", "text"]


def test_the_processor_is_told_not_to_sample_again_and_when_frames_are_shown() -> None:
    told = video_arguments([[Clip((), (0.0, 0.5, 1.0))], []])
    assert told["do_sample_frames"] is False
    assert told["video_metadata"] == [{"fps": 2.0, "frames_indices": [0, 1, 2], "total_num_frames": 3}]
    assert video_arguments([[], []]) == {}


def test_a_template_without_a_place_for_videos_is_refused() -> None:
    with pytest.raises(ModelError, match="no place for videos"):
        check_places("What?", "<|video_pad|>", [Clip((), (0.0,))])
    check_places("<|video_pad|>What?", "<|video_pad|>", [Clip((), (0.0,))])


@pytest.mark.skipif(not has_torchvision(), reason="the processors of Qwen-VL need torchvision")
def test_a_tiny_qwen2vl_is_shown_a_video_by_both_routes(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    child = [sys.executable, str(Path(local_videos.__file__)), str(tmp_path)]
    environment = {**os.environ, "SNELLEN_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(child, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["frames"]["failure"], found["native"]["failure"]) == (None, None)
    assert found["frames"]["record"][0]["indices"] == found["native"]["record"][0]["indices"] == [5, 15, 25, 35]
    assert (found["frames"]["record"][0]["route"], found["native"]["record"][0]["route"]) == ("frames", "joined")
    assert found["native"]["text"] != found["frames"]["text"], "the same frames, told otherwise"
    for route, rounds in found["talks"].items():
        assert [one["failure"] for one in rounds] == [None, None], route
        assert [one["record"][0]["indices"] for one in rounds] == [[5, 15, 25, 35]] * 2, "the second round sees it too"
        assert rounds[1]["tokens"] > rounds[0]["tokens"]
    assert found["by_hand"]["same"]
    assert found["by_hand"]["grid"][0][0] == 2
