"""Whoever looks at a trial with a video sees when each frame is shown, and the video itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import snellen
from asgi import call
from snellen.api.view import make_viewer
from snellen.core.types import Prediction, Request, Sample, TrialKey
from snellen.report.pages.gallery import Shown
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.video_line import describe_video, playable, records_of, time_line
from video_files import write_video
from video_server import ReadingServer, reading_server

COOKIE = {"cookie": f"{cookie_name('key')}=key"}


@pytest.fixture
def server() -> Iterator[ReadingServer]:
    with reading_server() as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, server: ReadingServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    write_video(tmp_path / "a.mp4", 60)
    (tmp_path / "a.srt").write_text("1\n00:00:00,100 --> 00:00:00,900\nfirst words\n")
    seen = ", ".join(str((2 * place + 1) * 60 // 16) for place in range(8))
    row = {"id": "1", "video": "a.mp4", "subtitles": "a.srt", "question": "Which?", "options": [seen, "none"]}
    row["answer"] = "none"  # so that it is wrong, and on the page of the worst
    (tmp_path / "films.jsonl").write_text(json.dumps(row))
    overrides = (("prompt.video.subtitles", "all"),)
    snellen.run(
        str(tmp_path / "films.jsonl"),
        "openai/m",
        base_url=server.base_url,
        output_dir=tmp_path / "run",
        overrides=overrides,
        variants=("base", "frames=20"),
    )
    return tmp_path / "run"


def test_a_trial_shows_its_frames_on_a_line_of_time_and_plays_its_video(run: Path) -> None:
    app = make_viewer([run], "key")
    (key, *_) = call(app, "/state", headers=COOKIE).text.split(":")
    page = call(app, f"/run/{key}/trial?task=films&sample=1", headers=COOKIE).text
    assert page.count('class="tick"') == 8
    assert "a.mp4: 60 frames, 2 s, 30 fps; 8 shown by uniform:8" in page
    assert "1 subtitle shown" in page
    assert "1.100 s · frame 33" in page
    address = re.search(r'<video[^>]* src="([^"]+)"', page)
    assert address is not None
    film = call(app, address[1].replace("&amp;", "&"), headers=COOKIE)
    assert film.status == 200
    assert film.body == (run.parent / "a.mp4").read_bytes()
    assert call(app, f"/run/{key}/video?task=films&sample=1&n=9", headers=COOKIE).status == 404


def test_the_report_has_a_strip_of_frames(run: Path) -> None:
    report = next(run.glob("*.html")).read_text("utf-8")
    assert 'aria-label="8 frames were shown"' in report
    assert report.count("<figcaption") >= 6


def test_only_what_begins_as_a_video_is_ever_served(tmp_path: Path) -> None:
    secret = tmp_path / "secret.mp4"
    secret.write_text("not a video")
    assert playable({"video": str(secret)}) is None
    assert playable({"video": str(tmp_path / "gone.mp4")}) is None
    assert playable({}) is None


def test_a_line_of_time_shows_the_needle_and_says_what_a_server_chose() -> None:
    record = {"video": "/x/a.mp4", "frames": 60, "fps": 30, "duration": 2.0, "route": "file"}
    assert "the frames are the server's choice" in describe_video(record)
    shown = {**record, "seconds": [0.5, 1.5], "indices": [15, 45], "policy": "uniform:2"}
    drawing = time_line(shown, [0.4, 0.6])
    assert 'class="needle"' in drawing
    assert drawing.count('class="tick"') == 2
    squeezed = {**shown, "tempo": "bitrate:4", "bitrate": {"asked_kbps": 125, "kbps": 118.2}}
    assert describe_video(squeezed).endswith("compressed to 125 kbit/s (it became 118.2)")
    assert describe_video({**shown, "tempo": "drop:2"}).endswith("disturbed by drop:2")
    key = TrialKey("t", "1")
    damaged = Shown(Sample("1", "t", "open", "?"), Request(key, ()), Prediction(key, text="", detail={"videos": 3}), [])  # type: ignore[arg-type]
    assert records_of(damaged) == []
