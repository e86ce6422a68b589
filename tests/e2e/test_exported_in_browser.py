"""Replies as they are read, raw requests, and an exported run: in a real browser, served and from the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import made_runs
from hostile_run import make_hostile_run
from made_runs import make_run, make_task
from viewer_pages import CHROMIUM, ServedViewer, axe_script, keep_screenshot, serious_faults, watched_page

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
SOLUTION = (
    "## Solution\n\nThe side is $s = 4$, so\n\n\\[\nA = s^2\n= \\frac{{32}}{{2}}\n\\]\n\n"
    "| option | fits |\n|---|---|\n| {text} | yes |\n\n**Answer: {mark}**"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_script(tmp_path_factory.mktemp("axe"))


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "solved"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_runs, "REPLIES", (SOLUTION,))
        return make_run(folder, count=120, skill=0.4, task=make_task())


@pytest.fixture(scope="module")
def site(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from snellen.api.view import export_view

    return export_view(run_folder, tmp_path_factory.mktemp("exported") / "site").folder


@pytest.fixture
def page(browser: Any, run_folder: Path) -> Iterator[Any]:
    viewer = ServedViewer(run_folder.parent)
    with watched_page(browser, viewer) as page:
        page.get_by_role("link", name="solved", exact=True).click()
        yield page
    viewer.close()


def test_wrong_answers_one_after_the_other_by_the_keyboard(page: Any) -> None:
    page.get_by_role("link", name="Wrong").click()
    page.wait_for_url("**/trials?**", wait_until="load")
    listed = page.url
    page.keyboard.press("o")
    page.wait_for_url("**/trial?**", wait_until="load")
    seen: list[str] = []
    for number in range(1, 16):
        assert page.get_by_text(f"trial {number} of ").first.is_visible()
        short = page.locator("p.inshort")
        box = short.bounding_box()
        assert box["y"] + box["height"] < 400, "what was expected and read is in sight without scrolling"
        expected, read = (short.locator("b").nth(place).inner_text() for place in (0, 1))
        assert expected != read
        seen.append(page.url)
        page.keyboard.press("j")
        page.wait_for_url(lambda url: url != seen[-1], wait_until="load")
    assert len(set(seen)) == 15
    page.keyboard.press("u")
    page.wait_for_url(listed, wait_until="load")
    page.keyboard.press("o")
    page.wait_for_url("**/trial?**", wait_until="load")
    page.locator("p.inshort a").click()
    page.wait_for_url("**/trials?**why=**")


def test_a_reply_is_rendered_and_the_choice_of_how_is_kept(page: Any) -> None:
    page.get_by_role("link", name="Right").or_(page.get_by_role("link", name="Every trial")).first.click()
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/trial?**", wait_until="load")
    rendered, plain, raw = (page.locator(f".p-{name}") for name in ("rendered", "text", "raw"))
    assert rendered.is_visible() and not plain.is_visible() and not raw.is_visible()
    assert rendered.locator("math mfrac").count() == 1 and rendered.locator("table td").count() == 2
    assert rendered.locator("math").last.bounding_box()["height"] > 20, "a fraction is drawn as one"
    assert "Answer" in rendered.locator("mark").inner_text()
    keep_screenshot(page, "trial-rendered")
    page.keyboard.press("r")
    assert plain.is_visible() and not rendered.is_visible()
    assert "**Answer:" in plain.inner_text()
    here = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != here, wait_until="load")
    assert plain.is_visible(), "the next trial is shown the same way"
    page.get_by_text("Raw request and reply").click()
    assert raw.is_visible() and '"finish": "stop"' in raw.inner_text()
    page.keyboard.press("r")
    assert rendered.is_visible()


def test_a_run_opens_from_the_disk_and_is_filtered_there(browser: Any, site: Path) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 860})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(site.as_uri()) else problems.append(request.url))
    page.on("requestfailed", lambda request: None if "ABORTED" in request.failure else problems.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="Wrong").click()
    page.wait_for_url("**trials-1.html#outcome=wrong")
    lines = page.locator(".trials tbody tr:visible")
    wrong = lines.count()
    assert 50 < wrong < 120 and lines.locator(".c-outcome .tag.wrong").count() == wrong
    page.locator("select:has(option[value='shape=circle'])").select_option("shape=circle")
    circles = lines.count()
    assert 0 < circles < wrong and f"{circles} of 120 trials" in page.locator(".trials caption").inner_text()
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("o")
    page.wait_for_url("**/trial/*.html#outcome=wrong&group=shape%3Dcircle", wait_until="load")
    assert (
        page.locator(".stage img").first.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") == 320
    )
    for number in range(2, circles + 1):
        page.keyboard.press("j")
        page.get_by_text(f"trial {number} of {circles}").wait_for()
        assert page.locator(".tag").first.inner_text() == "✗ wrong"
    assert page.locator("a[rel=next]").count() == 0, "the last one of the filter"
    page.locator(".crumbs a").last.click()
    page.wait_for_url("**trials-1.html#outcome=wrong&group=shape%3Dcircle")
    page.keyboard.press("/")
    page.keyboard.type("shape-00")
    assert 0 < lines.count() <= circles
    page.locator(".crumbs a").last.click()
    page.wait_for_url("**/index.html")
    assert problems == []
    context.close()


def test_a_script_less_reader_still_gets_everything(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "trials-1.html").as_uri())
    assert page.locator(".trials tbody tr:visible").count() == 120
    assert not page.locator("form[data-site]").is_visible(), "what only a script can do is not offered"
    page.locator("tbody th a").first.click()
    page.get_by_role("link", name="Next trial").click()
    assert page.url.endswith("trial/2.html")
    page.get_by_text("As it came", exact=True).click()
    assert page.locator(".p-text").is_visible()
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_new_pages_have_no_serious_accessibility_fault(
    browser: Any, axe: str, site: Path, scheme: str, width: int
) -> None:
    # The evaluation of axe is itself a script that the pages' own rules forbid.
    context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    for name in ("index.html", "trials-1.html#outcome=wrong", "trial/1.html"):
        page.goto(f"{site.as_uri()}/{name}")
        assert serious_faults(page, axe) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width + 1, name
    for label in ("As it came", "Raw request and reply"):
        page.get_by_text(label, exact=True).click()
        assert serious_faults(page, axe) == [], label
    context.close()


def test_a_hostile_export_fires_nothing(browser: Any, tmp_path: Path) -> None:
    from snellen.api.view import export_view

    make_hostile_run(tmp_path / "run")
    site = export_view(tmp_path / "run", tmp_path / "site").folder
    context = browser.new_context()
    page = context.new_page()
    fired: list[str] = []
    page.on("dialog", lambda dialog: (fired.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: None if request.url.startswith(site.as_uri()) else fired.append(request.url))
    page.expose_function("fired", lambda: fired.append("call"))
    pages = [site / "index.html", site / "trials-1.html", *sorted((site / "trial").iterdir())[::12]]
    for path in pages:
        page.goto(path.as_uri())
        page.mouse.move(300, 300)
    assert fired == []
    assert len(pages) > 20
    context.close()
