"""The page of a trial with a video in a real browser: the film plays, and its time has the frames, the needle, the words."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from video_files import draw_number, read_number, write_video
from video_server import reading_server
from viewer_pages import CHROMIUM, ServedViewer, keep_screenshot, watched_page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
FRAMES = 6
"""Shown of each film."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: a drawn film with a needle, and a table with a picture, a film and its subtitles."""
    import snellen

    folder = tmp_path_factory.mktemp("films")
    draw_number(777).save(folder / "still.png")
    write_video(folder / "a.webm", 60, codec="libvpx-vp9", draw=lambda number: draw_number(number).resize((384, 192)))
    (folder / "a.srt").write_text(
        "1\n00:00:00,400 --> 00:00:00,900\n<i>first</i> words &lt;b&gt; --&gt; done\n\n2\n00:00:01,500 --> 00:00:01,900\nlast words\n"
    )
    row = {"id": "talk", "image": "still.png", "video": "a.webm", "subtitles": "a.srt", "answer": "B"}
    row |= {"question": "<image 1> and then <video>: which?", "options": ["one", "two"]}
    (folder / "talks.jsonl").write_text(json.dumps(row))
    shown = ("prompt.video.frames", f"uniform:{FRAMES}")
    grid = (("dataset.lengths", [8]), ("dataset.levels", [2]), ("dataset.depths", [0.5]), shown)
    before = os.environ.get("SNELLEN_CACHE_DIR")
    os.environ["SNELLEN_CACHE_DIR"] = str(folder / "cache")
    try:
        with reading_server() as server:
            more = {"base_url": server.base_url, "max_workers": 1}
            snellen.run("video-needle", "openai/m", output_dir=folder / "runs" / "needle", overrides=grid, **more)
            words = (("prompt.video.subtitles", "all"), shown)
            snellen.run(
                str(folder / "talks.jsonl"), "openai/m", output_dir=folder / "runs" / "talks", overrides=words, **more
            )
    finally:
        os.environ.pop("SNELLEN_CACHE_DIR") if before is None else os.environ.update(SNELLEN_CACHE_DIR=before)
    return folder / "runs"


@pytest.fixture(scope="module")
def browser(runs: Path) -> Iterator[Any]:  # after the runs: it keeps a loop running in this thread
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any, runs: Path) -> Iterator[Any]:
    viewer = ServedViewer(runs)
    with watched_page(browser, viewer) as page:
        yield page
    viewer.close()


def open_trial(page: Any, run: str) -> None:
    page.get_by_role("link", name=run, exact=True).first.click()
    page.get_by_role("link", name="Every trial").click()
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/trial?**", wait_until="load")
    # A function, not an expression: the page's policy forbids to evaluate a text a second time.
    page.wait_for_function("() => document.querySelector('.film video').readyState >= 1")


def test_the_film_plays_and_ticks_stand_where_the_frames_are(page: Any) -> None:
    open_trial(page, "needle")
    length = page.locator(".film video").evaluate("film => film.duration")
    assert length == pytest.approx(8.0, abs=0.2)
    ticks = page.locator(".timeline a[data-second]")
    assert ticks.count() == FRAMES
    line = page.locator(".timeline .axis").bounding_box()
    for place in range(FRAMES):
        second = float(ticks.nth(place).get_attribute("data-second"))
        assert second == pytest.approx((2 * place + 1) * 8 / (2 * FRAMES), abs=0.1), "middles of equal parts"
        box = ticks.nth(place).locator(".tick").bounding_box()
        across = (box["x"] + box["width"] / 2 - line["x"]) / line["width"]
        assert across == pytest.approx(second / 8, abs=0.01)
    needle, band = page.locator(".timeline .needle"), page.locator(".timeline .needle").bounding_box()
    assert needle.locator("title").text_content().startswith("The answer is shown from 3.00 s to 5.00 s")
    assert (band["x"] - line["x"]) / line["width"] == pytest.approx(3 / 8, abs=0.01)
    assert band["width"] / line["width"] == pytest.approx(2 / 8, abs=0.01)
    keep_screenshot(page, "trial-video", whole=True)


def test_a_tick_leads_to_its_picture_and_moves_the_film_there(page: Any) -> None:
    open_trial(page, "talks")
    ticks = page.locator(".timeline a[data-second]")
    assert ticks.count() == FRAMES
    middles = [(2 * place + 1) * 60 // (2 * FRAMES) for place in range(FRAMES)]
    for place in (0, FRAMES - 1):
        ticks.nth(place).focus()  # by keys: pictures that load late move what a mouse would aim at
        page.keyboard.press("Enter")
        there = f"() => Math.abs(document.querySelector('.film video').currentTime - {middles[place] / 30}) < 0.02"
        page.wait_for_function(there)
        stage = page.locator(page.url[page.url.index("#") :])
        stage.locator("img").evaluate("picture => picture.decode()")
        data = page.request.get("/".join(page.url.split("/")[:3]) + stage.locator("img").get_attribute("src")).body()
        assert read_number(PIL.Image.open(io.BytesIO(data))) == middles[place], (
            "its own frame, not the picture before it"
        )
    said = page.locator(".timeline .said")
    assert said.count() == 2
    line = page.locator(".timeline .axis").bounding_box()
    first = said.first.bounding_box()
    assert (first["x"] - line["x"]) / line["width"] == pytest.approx(0.4 / 2, abs=0.01)
    page.get_by_text("2 subtitles shown").click()
    assert page.locator(".film details li").first.is_visible()


def test_subtitles_are_a_track_of_the_player_and_their_text_is_only_text(page: Any) -> None:
    open_trial(page, "talks")
    shown = "const track = document.querySelector('.film video').textTracks[0];"
    page.wait_for_function(f"() => {{ {shown} return track && track.cues && track.cues.length === 2 }}")
    track = page.locator(".film video").evaluate(
        "film => [...film.textTracks[0].cues].map(cue => [cue.startTime, cue.endTime, cue.getCueAsHTML().textContent])"
    )
    assert track == [[0.4, 0.9, "first words <b> --> done"], [1.5, 1.9, "last words"]]
    inside = "film => film.textTracks[0].cues[0].getCueAsHTML().querySelector('*')"
    assert page.locator(".film video").evaluate(inside) is None, "nothing of it became markup"
    assert page.locator(".film video").evaluate("film => film.textTracks[0].mode") == "showing"
    page.locator(".film video").evaluate("film => { film.currentTime = 0.6 }")
    page.wait_for_function(f"() => {{ {shown} return track.activeCues.length === 1 }}")
    keep_screenshot(page, "trial-video-subtitles", whole=True)


def test_the_report_has_a_strip_of_frames_with_their_times(browser: Any, runs: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 860})
    page.goto((runs / "needle" / "report.html").as_uri())
    strip = page.get_by_role("group", name=f"{FRAMES} frames were shown").first
    assert strip.locator("img").count() == FRAMES
    widths = strip.locator("img").evaluate_all(
        "pictures => Promise.all(pictures.map(picture => picture.decode().then(() => picture.naturalWidth)))"
    )
    assert min(widths) > 0
    assert strip.locator("figcaption").all_inner_texts()[0] == "0.7 s"
    strip.scroll_into_view_if_needed()
    page.close()
