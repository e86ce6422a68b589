"""Videos cut and flipped at random: each is read exactly, or refused by name; nothing hangs, nothing crashes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from snellen.core.errors import DataError
from snellen.core.types import Frame
from snellen.data.video.decoder import VideoDecoder
from video_files import read_numbers, write_video

ROUNDS = 40


@pytest.mark.parametrize(("name", "codec"), [("a.mp4", "libx264"), ("a.mkv", "libx264"), ("a.webm", "libvpx-vp9")])
def test_a_broken_video_is_read_or_refused(tmp_path: Path, name: str, codec: str) -> None:
    whole = write_video(tmp_path / name, 30, codec=codec).read_bytes()
    draw, decoder = random.Random(7), VideoDecoder()
    outcomes = {"read": 0, "refused": 0}
    try:
        for number in range(ROUNDS):
            path = tmp_path / f"{number}-{name}"
            path.write_bytes(_broken(whole, draw))
            try:
                reel = decoder.facts(str(path))
                read_numbers(decoder.picture(str(path), Frame(reel.pts[len(reel.pts) // 2], 0, 0.0)))
                outcomes["read"] += 1
            except DataError as refused:
                assert path.name in str(refused)
                assert "\n" not in str(refused)
                assert "took more than" not in str(refused), "damage is an error at once, not a wait"
                outcomes["refused"] += 1
        sound = tmp_path / name
        reel = decoder.facts(str(sound))
        assert read_numbers(decoder.picture(str(sound), Frame(reel.pts[9], 9, 0.0))) == 9, (
            "and the next is as good as new"
        )
    finally:
        decoder.close()
    assert outcomes["refused"] > 0


def _broken(whole: bytes, draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        return whole[: draw.randrange(1, len(whole))]
    data = bytearray(whole)
    for _ in range(draw.choice((1, 4, 64))):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)
