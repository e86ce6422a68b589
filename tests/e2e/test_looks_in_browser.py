"""The page of a trial with tools in a real browser: regions lie where they were looked at, every crop is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from look_agents import ask
from look_runs import WIDTH, make_look_run, make_questions
from viewer_pages import CHROMIUM, ServedViewer, keep_screenshot, watched_page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
COUNT = 12


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run in all arms."""
    folder = tmp_path_factory.mktemp("looks")
    make_look_run(folder / "looks", count=COUNT)
    return folder


@pytest.fixture(scope="module")
def browser(runs: Path) -> Iterator[Any]:  # after the runs: it keeps a loop running in this thread
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def test_what_was_looked_at_lies_on_the_original_and_every_crop_is_drawn(
    runs: Path, browser: Any, tmp_path: Path
) -> None:
    found = np.random.default_rng(2).random(COUNT) < 0.8
    called = ask(np.random.default_rng(1), 1.0, COUNT).called
    place = next(number for number in range(COUNT) if found[number] and called[number] and number % 5 == 0)
    region = make_questions(tmp_path, COUNT, found.tolist())[place].region
    viewer = ServedViewer(runs)
    try:
        with watched_page(browser, viewer) as page:
            page.locator('a[href*="/run/"]').first.click()
            run = page.url.split("?")[0]
            page.goto(f"{run}/trial?task=squares&sample=square-{place:04d}&variant=base&repeat=0")
            crops = page.locator(".look-cards img")
            for number in range(crops.count()):
                crops.nth(number).scroll_into_view_if_needed()  # they are loaded when they are looked at
            page.wait_for_load_state("networkidle")
            assert all(crops.nth(number).evaluate("i => i.naturalWidth > 0") for number in range(crops.count()))
            picture = page.locator("#picture-0 img").bounding_box()
            drawn = page.locator("#picture-0 rect.looked").bounding_box()
            scale = picture["width"] / WIDTH
            assert drawn["x"] - picture["x"] == pytest.approx(region[0] * scale, abs=3)
            assert drawn["y"] - picture["y"] == pytest.approx(region[1] * scale, abs=3)
            assert page.locator("#picture-0 text.looked").text_content() == "1a"
            page.set_viewport_size({"width": 1200, "height": 1400})
            page.evaluate("() => document.querySelectorAll('.look-cards').forEach(one => one.scrollTo(0, 0))")
            page.evaluate("() => window.scrollTo(0, 0)")
            keep_screenshot(page, "trial-looks")
    finally:
        viewer.close()
