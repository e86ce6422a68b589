"""What comes out of a video is exactly the frame that was meant: numbers drawn in the pictures say which it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from snellen.core.errors import DataError
from snellen.core.types import Frame, Image, Showing, Video
from snellen.data.images.decode import open_image
from snellen.data.video import av_child
from snellen.data.video.decoder import VideoDecoder, read_frame
from snellen.data.video.unfold import FRAMES, REELS, unfold
from video_files import draw_number, read_number, read_numbers, write_folder, write_video


def seen(video: Video) -> list[int]:
    """Return the numbers that the pictures of a video show."""
    return [read_number(open_image(piece)) for piece in unfold(video, FRAMES).pieces if isinstance(piece, Image)]


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("a.mp4", "libx264"), ("a.mkv", "libx264"), ("a.ts", "libx264"), ("a.mov", "mpeg4"), ("a.avi", "mpeg4"),
        ("a.webm", "libvpx-vp9"), ("b.webm", "libvpx"), ("b.mp4", "libx265"), ("c.mp4", "libsvtav1"), ("a.flv", "flv"),
    ],
)  # fmt: skip
def test_every_frame_of_every_container_is_found_by_its_timestamp_in_any_order(
    tmp_path: Path, name: str, codec: str
) -> None:
    priority = os.sched_getscheduler(0)
    path = str(write_video(tmp_path / name, 60, codec=codec))
    assert os.sched_getscheduler(0) == priority
    reel = REELS.of_file(path, scenes=False)
    assert len(reel.pts) == 60
    assert reel.duration == pytest.approx(2.0, abs=0.04)
    order = [0, 59, 30, 31, 32, 5, 11, 12, 13, 58, 1]
    found = [read_numbers(read_frame(path, Frame(reel.pts[index], index, 0.0))) for index in order]
    assert found == order


def test_a_variable_frame_rate_is_followed_by_its_times_and_not_by_its_average(tmp_path: Path) -> None:
    times = [0, 0.1, 0.2, 1.0, 1.05, 3.0, 3.5, 3.6, 6.0, 6.04]
    video = str(write_video(tmp_path / "vfr.mp4", 10, times=times))
    reel = REELS.of_file(video, scenes=False)
    assert reel.seconds == pytest.approx(times, abs=1e-3)
    shown = Showing(frames="times:0;0.15;0.99;2.9;3;5.9;6.04")
    assert seen(Video(video, showing=shown)) == [0, 1, 2, 4, 5, 7, 9]
    assert seen(Video(video, showing=Showing(frames="fps:1"))) == [0, 3, 4, 5, 7, 8]


@pytest.mark.parametrize(("rotation", "size"), [(90, (96, 192)), (180, (192, 96)), (-90, (96, 192))])
def test_a_rotated_video_is_shown_upright(tmp_path: Path, rotation: int, size: tuple[int, int]) -> None:
    path = str(write_video(tmp_path / "turned.mp4", 12, rotation=rotation))
    reel = REELS.of_file(path, scenes=False)
    assert (reel.width, reel.height) == size
    picture = open_image(Image(path, frame=Frame(reel.pts[7], 7, 0.0)))
    assert picture.size == size
    assert read_number(picture.rotate(-rotation, expand=True)) == 7


def test_sound_is_ignored_and_a_part_of_a_video_is_only_that_part(tmp_path: Path) -> None:
    path = str(write_video(tmp_path / "loud.mp4", 60, audio=True))
    assert seen(Video(path, showing=Showing(frames="uniform:3"))) == [10, 30, 50]
    part = Video(path, start=1.0, end=1.5, showing=Showing(frames="all"))
    assert seen(part) == list(range(30, 46))
    assert unfold(part, FRAMES).record["indices"] == list(range(30, 46))
    assert unfold(part, FRAMES).record["seconds"][0] == pytest.approx(1.0)
    with pytest.raises(DataError, match=r"no frame from 9 s to 12 s: the video is 2\.000 s long"):
        unfold(Video(path, start=9, end=12), FRAMES)


def test_frames_are_made_small_in_proportion_and_written_as_told(tmp_path: Path) -> None:
    path = str(write_video(tmp_path / "a.mp4", 5))
    pts = REELS.of_file(path, scenes=False).pts[3]
    small = read_frame(path, Frame(pts, 3, 0.1, side=96, encoding="png"))
    assert small.startswith(b"\x89PNG")
    picture = open_image(Image(path, frame=Frame(pts, 3, 0.1, side=96, encoding="png")))
    assert picture.size == (96, 48)
    assert read_frame(path, Frame(pts, 3, 0.1)).startswith(b"\xff\xd8")


def test_a_folder_of_frames_is_a_video_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "clip", range(12))
    assert seen(Video(str(folder), fps=2.0, showing=Showing(frames="fps:1"))) == [0, 2, 4, 6, 8, 10]
    with pytest.raises(DataError, match="needs its frames a second"):
        unfold(Video(str(folder)), FRAMES)


def test_what_is_no_video_or_a_broken_one_is_refused_by_name(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "whole.mp4", 90, options={"movflags": "faststart"}).read_bytes()
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    headless = tmp_path / "headless.mp4"
    headless.write_bytes(write_video(tmp_path / "w2.mp4", 90).read_bytes()[:2000])
    text = tmp_path / "playlist.m3u8"
    text.write_text("#EXTM3U\n/etc/passwd\n")
    empty = tmp_path / "empty.mp4"
    empty.write_bytes(b"")
    words = {cut: "cut off", headless: "damaged or cut off", text: "not a video of a known kind", empty: "0 bytes"}
    for path, expected in words.items():
        with pytest.raises(DataError, match=expected) as raised:
            unfold(Video(str(path)), FRAMES)
        assert path.name in str(raised.value)
        assert "\n" not in str(raised.value)
    with pytest.raises(DataError, match="does not exist"):
        unfold(Video(str(tmp_path / "none.mp4")), FRAMES)


def test_a_cut_matroska_file_is_refused_too(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "whole.mkv", 150).read_bytes()
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut off"):
        unfold(Video(str(cut)), FRAMES)


def test_too_many_pixels_are_refused_before_one_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(write_video(tmp_path / "a.mp4", 4))
    monkeypatch.setattr(av_child, "MOST_PIXELS", 192 * 96 - 1)
    monkeypatch.setattr(av_child.Opened, "_make_index", lambda self: pytest.fail("it was read"))
    with pytest.raises(av_child.VideoError, match="has 192×96 pixels; the limit is"):
        av_child.Opened(path)


def test_a_codec_that_is_not_on_the_list_is_refused_by_name(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.avi", 4, codec="ffvhuff")
    with pytest.raises(DataError, match=r"a\.avi.*has codec 'ffvhuff'; accepted: .*h264"):
        unfold(Video(str(path)), FRAMES)


def test_a_decoder_that_takes_too_long_is_given_up_and_the_next_video_is_read(tmp_path: Path) -> None:
    path = str(write_video(tmp_path / "a.mp4", 30))
    slow = VideoDecoder(facts_s=0.0001, frame_s=30)
    with pytest.raises(DataError, match=r"took more than 0\.0001 s to decode and was given up"):
        slow.facts(path)
    pts = REELS.of_file(path, scenes=False).pts
    assert read_numbers(slow.picture(path, Frame(pts[4], 4, 0.0))) == 4
    slow.close()


def test_a_decoder_that_dies_costs_one_answer(tmp_path: Path) -> None:
    path = str(write_video(tmp_path / "a.mp4", 30))
    decoder = VideoDecoder()
    reel = decoder.facts(path)
    assert decoder._process is not None
    decoder._process.kill()
    decoder._process.wait()
    assert read_numbers(decoder.picture(path, Frame(reel.pts[9], 9, 0.0))) == 9
    decoder.close()


def test_the_numbers_drawn_survive_a_jpeg() -> None:
    assert [read_number(draw_number(number)) for number in (0, 1, 1023, 4095)] == [0, 1, 1023, 4095]
