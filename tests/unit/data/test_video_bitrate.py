"""Compression by bitrate: a real encode and decode, frame for frame, at the rate that was said, within bounds."""

from __future__ import annotations

import io
from pathlib import Path

import av
import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError, DataError
from snellen.core.types import Frame, Image, Showing, Video
from snellen.data.images.decode import open_image
from snellen.data.video import recompress, squeezed
from snellen.data.video.av_child import Opened
from snellen.data.video.decoder import VideoDecoder, read_frame
from snellen.data.video.frame_rules import KBPS, disturb, kbps_of
from snellen.data.video.squeezed import make_room, read_film_frame, squeeze
from snellen.data.video.unfold import FILE, FRAMES, JOINED, REELS, unfold
from video_files import draw_number, read_number, write_folder, write_video

SIZE = (320, 160)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def draw_busy(number: int) -> PIL.Image.Image:
    """Return a picture that costs many bits: its number above noise that is another one in every frame."""
    noise = np.random.default_rng(number).integers(0, 255, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
    picture = PIL.Image.fromarray(noise)
    picture.paste(draw_number(number).crop((0, 0, 192, 16)).resize((SIZE[0], 27)), (0, 0))
    return picture


def both(path: Path, index: int, kbps: int) -> tuple[PIL.Image.Image, PIL.Image.Image]:
    """Return a frame as it is and as it is after compression."""
    pts = REELS.of_file(str(path), scenes=False).pts[index]
    plain = read_frame(str(path), Frame(pts, index, 0.0, encoding="png"))
    shown = read_film_frame(str(path), Frame(pts, index, 0.0, encoding="png", kbps=kbps))
    return PIL.Image.open(io.BytesIO(plain)).convert("RGB"), PIL.Image.open(io.BytesIO(shown)).convert("RGB")


def distance(first: PIL.Image.Image, second: PIL.Image.Image) -> float:
    return float(np.abs(np.asarray(first).astype(int) - np.asarray(second)).mean())


def test_severities_are_kilobits_a_second_and_leave_the_frames_alone() -> None:
    assert (
        [kbps_of(f"bitrate:{severity}") for severity in range(1, 6)] == [1000, 500, 250, 125, 60] == list(KBPS.values())
    )
    assert kbps_of("drop:3") == kbps_of("") == 0
    with pytest.raises(ConfigError, match="severity from 1 to 5"):
        kbps_of("bitrate:6")


@given(st.lists(st.integers(0, 99), min_size=1, max_size=20).map(sorted), st.integers(1, 5), st.integers(0, 2**32))
def test_the_same_frames_are_seen(chosen: list[int], severity: int, seed: int) -> None:
    assert disturb(f"bitrate:{severity}", chosen, 100, seed) == chosen


def test_the_lower_the_rate_the_further_from_the_film_and_the_rate_is_what_was_said(tmp_path: Path) -> None:
    film = write_video(tmp_path / "busy.mp4", 60, draw=draw_busy)
    rates, distances = [], []
    for kbps in (4000, 1000, 250):
        made = squeeze(str(film), kbps)
        with av.open(made.file) as container:
            written = sum(packet.size for packet in container.demux(video=0)) * 8 / 1000 / 2.0
        assert made.kbps == pytest.approx(written, rel=0.01), "what is recorded is what was written"
        rates.append(made.kbps / kbps)
        distances.append(distance(*both(film, 30, kbps)))
    assert distances == sorted(distances)
    assert distances[-1] > 2 * distances[0]
    assert 0.5 < rates[0] < 1.5
    assert 0.5 < rates[1] < 1.5


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("a.mp4", {}), ("a.webm", {"codec": "libvpx-vp9"}), ("b.webm", {"codec": "libvpx"}), ("a.ts", {}),
        ("a.avi", {"codec": "mpeg4"}), ("vfr.mp4", {"times": [n * n / 100 for n in range(20)]}),
        ("turned.mp4", {"rotation": 90}), ("loud.mp4", {"audio": True}),
    ],
)  # fmt: skip
def test_each_frame_is_still_the_one_that_was_meant(tmp_path: Path, name: str, more: dict[str, object]) -> None:
    film = write_video(tmp_path / name, 20, **more)  # type: ignore[arg-type]
    for index in (0, 19, 7, 8, 12):
        plain, shown = both(film, index, 250)
        assert shown.size == plain.size
        assert read_number(shown.rotate(-90, expand=True) if "rotation" in more else shown) == index
        assert distance(plain, shown) < 1.5, "a still picture needs few bits: its colours stay"


def test_odd_sizes_are_kept(tmp_path: Path) -> None:
    pictures = [draw_number(number, (193, 97)) for number in range(8)]
    pictures[0].save(tmp_path / "odd.gif", save_all=True, append_images=pictures[1:], duration=100)
    plain, shown = both(tmp_path / "odd.gif", 5, 1000)
    assert shown.size == plain.size == (193, 97)
    assert read_number(shown) == 5


def test_what_is_shown_says_its_rate_and_a_copy_is_made_once(tmp_path: Path) -> None:
    film = write_video(tmp_path / "a.mp4", 60)
    video = Video(str(film), start=1.0, showing=Showing(frames="uniform:3", tempo="bitrate:4"))
    shown = unfold(video, FRAMES)
    images = [piece for piece in shown.pieces if isinstance(piece, Image)]
    assert [read_number(open_image(image)) for image in images] == [35, 45, 55]
    assert [image.frame.kbps for image in images if image.frame] == [125] * 3
    assert shown.record["tempo"] == "bitrate:4"
    assert shown.record["bitrate"]["asked_kbps"] == 125
    assert 0 < shown.record["bitrate"]["kbps"] < 150
    assert recompress.ENCODER in shown.record["bitrate"]["encoder"]
    (copy,) = (tmp_path / "cache" / "squeezed").glob("*.mp4")
    before = copy.read_bytes(), copy.stat().st_ino
    assert unfold(video, JOINED).record["bitrate"] == shown.record["bitrate"]
    assert (copy.read_bytes(), copy.stat().st_ino) == before
    copy.unlink()
    again = squeeze(str(film), 125)
    assert Path(again.file).read_bytes() == before[0], "the same film and rate give the same bytes"


def test_a_copy_has_the_bytes_of_any_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film, copies = write_video(tmp_path / "a.mp4", 60), []
    for options in (recompress.OPTIONS, recompress.OPTIONS | {"x264-params": "asm=0"}):  # then without routines of any
        monkeypatch.setattr(recompress, "OPTIONS", options)
        assert "problem" not in recompress.recompress(Opened(str(film)), str(tmp_path / "copy.mp4"), 125)
        copies.append((tmp_path / "copy.mp4").read_bytes())
    assert copies[0] == copies[1]


def test_an_estimate_compresses_nothing(tmp_path: Path) -> None:
    film = write_video(tmp_path / "a.mp4", 10)
    shown = unfold(Video(str(film), showing=Showing(tempo="bitrate:4")), FRAMES, rough=True)
    assert "bitrate" not in shown.record
    assert not (tmp_path / "cache" / "squeezed").exists()


def test_what_has_no_bitrate_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "clip", range(4))
    squeezed_showing = Showing(tempo="bitrate:2")
    with pytest.raises(DataError, match=r"clip.*tempo=bitrate:2 needs a video file"):
        unfold(Video(str(folder), fps=2.0, showing=squeezed_showing), FRAMES)
    film = write_video(tmp_path / "a.mp4", 4)
    with pytest.raises(DataError, match="cannot be sent as its file"):
        unfold(Video(str(film), showing=squeezed_showing), FILE)
    with pytest.raises(DataError, match="does not exist"):
        squeeze(str(tmp_path / "gone.mp4"), 250)
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(film.read_bytes()[:700])
    with pytest.raises(DataError, match=r"cut\.mp4"):
        squeeze(str(cut), 250)
    assert list((tmp_path / "cache" / "squeezed").iterdir()) == [], "nothing half made stays"


def test_compression_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film = write_video(tmp_path / "a.mp4", 30)
    slow = VideoDecoder(squeeze_s=0.0001)
    monkeypatch.setattr(squeezed, "decoder_of", lambda path, work: slow)
    with pytest.raises(DataError, match=r"a\.mp4.*took more than 0\.0001 s to compress and was given up"):
        squeeze(str(film), 250)
    slow.close()
    assert list((tmp_path / "cache" / "squeezed").iterdir()) == []


def test_a_process_that_dies_with_a_request_in_its_pipe_is_closed_without_a_word(tmp_path: Path) -> None:
    decoder = VideoDecoder()
    decoder.facts(str(write_video(tmp_path / "a.mp4", 3)))
    process = decoder._process
    assert process is not None and process.stdin is not None and process.stdout is not None
    process.stdin.write(b"half a request")
    process.kill()
    process.wait()
    decoder.close()
    assert process.stdin.closed and process.stdout.closed


def test_copies_not_read_for_long_go_first(tmp_path: Path) -> None:
    import os

    for age in range(4):
        (tmp_path / f"{age}.mp4").write_bytes(b"x" * 100)
        (tmp_path / f"{age}.json").write_bytes(b"{}")
        os.utime(tmp_path / f"{age}.mp4", (age, age))
    make_room(tmp_path, tmp_path / "0.mp4", most_bytes=250)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0.json", "0.mp4", "3.json", "3.mp4"]


def test_scene_changes_in_the_first_seconds_of_a_transport_stream_are_found(tmp_path: Path) -> None:
    def draw(number: int) -> PIL.Image.Image:
        return PIL.Image.new("RGB", (192, 96), "white" if number >= 5 else "black")

    film = write_video(tmp_path / "a.ts", 40, draw=draw)
    shown = unfold(Video(str(film), showing=Showing(frames="scenes:0.5")), FRAMES)
    assert shown.record["indices"] == [0, 5]
