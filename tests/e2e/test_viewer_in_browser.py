"""The viewer and report.html in a real browser: they work, look right, are usable by all, and run nothing that is not ours."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from exam_observer import Observer, sit
from hostile_run import make_hostile_run
from judge_doubles import ask_about, judge_model
from made_runs import POLITE_PLUGIN, make_run, make_task
from made_trainings import make_training, step_line
from payloads import CALLS, PAYLOADS, SHAPES
from snellen.scoring.judges.judge_card import read_judge
from viewer_pages import CHROMIUM, ServedViewer, axe_script, keep_screenshot, serious_faults, watched_page
from waiting import CEILING_S

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
VARIANTS = (
    "base",
    "perturb=jpeg:1",
    "perturb=jpeg:3",
    "perturb=jpeg:5",
    "perturb=blur:1",
    "perturb=blur:3",
    "perturb=blur:5",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, skill in (("small", 0.62), ("large", 0.8), ("quick", 0.78)):
        make_run(
            folder / name, model=f"openai/{name}", skill=skill, count=60, task=make_task(variants=VARIANTS, repeats=2)
        )
    return folder


@pytest.fixture(scope="module")
def served(runs: Path) -> Iterator[ServedViewer]:
    viewer = ServedViewer(runs)
    yield viewer
    viewer.close()


@pytest.fixture
def page(browser: Any, served: ServedViewer) -> Iterator[Any]:
    with watched_page(browser, served) as page:
        yield page


def _key(page: Any, name: str) -> str:
    home = "/".join(page.url.split("/")[:4])
    page.goto(home + "/")
    return _path(page.get_by_role("link", name=name, exact=True))


def _path(link: Any) -> str:
    """Return where a link leads to, without the place below which the viewer's cookie holds."""
    return "/" + str(link.get_attribute("href")).split("/", 2)[2]


def test_newcomer_finds_runs_run_trials_and_trial(page: Any, served: ServedViewer) -> None:
    assert page.get_by_role("heading", name="Runs").is_visible()
    keep_screenshot(page, "runs")
    page.get_by_role("link", name="small", exact=True).click()
    assert page.get_by_text("What degradation does").first.is_visible()
    keep_screenshot(page, "run", whole=True)
    page.get_by_role("link", name=re.compile(r"^Wrong \d+$")).click()
    assert page.locator("tbody td .tag.right").count() == 0
    assert page.locator("tbody td .tag.wrong").count() == 50
    decoded = "pictures => Promise.all(pictures.slice(0, 8).map(picture => picture.decode().then(() => picture.naturalWidth)))"
    assert min(page.locator("tbody img").evaluate_all(decoded)) > 0
    keep_screenshot(page, "trials")
    page.locator("tbody th a").first.click()
    assert page.locator("mark").count() >= 1, "the part that decided the answer is marked"
    assert page.locator("img").first.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") > 0
    keep_screenshot(page, "trial", whole=True)


def test_a_page_of_a_training_follows_it(browser: Any, tmp_path: Path) -> None:
    folder = make_training(tmp_path / "tuned", trainer="dpo", events=["continued from checkpoint-20"])
    viewer = ServedViewer(tmp_path)
    with watched_page(browser, viewer) as page:
        page.get_by_role("link", name="tuned", exact=True).click()
        page.get_by_text("running: 25 of 40 steps").wait_for()
        assert page.locator("figure svg polyline").count() == 6, "loss, two rewards, accuracy, learning rate, gradient"
        keep_screenshot(page, "training", whole=True)
        with page.expect_response(re.compile("/state")):  # what the page compares with is known from here on
            pass
        with (folder / "metrics.jsonl").open("ab") as stream:
            stream.write(msgspec.json.encode(step_line(26, trainer="dpo")) + b"\n")
        page.get_by_text("running: 26 of 40 steps").wait_for(timeout=1000 * CEILING_S)
    viewer.close()


def test_filters_sort_and_paging_have_their_own_addresses(page: Any, served: ServedViewer) -> None:
    run = _key(page, "small")
    page.goto(f"{served.base}{run}/trials")
    page.get_by_role("link", name=re.compile(r"^Unread \d+$")).click()
    page.wait_for_url("**outcome=unread**")
    kept = page.url
    shown = page.locator("tbody tr").count()
    assert 0 < shown < 50
    page.goto(served.base)
    page.goto(kept)
    assert page.locator("tbody tr").count() == shown, "a permalink shows the same again"
    page.goto(f"{served.base}{run}/trials?text=clearly+visible")
    replies = page.locator("tbody td.c-reply").all_inner_texts()
    assert replies
    assert all("clearly visible" in reply for reply in replies)
    page.goto(f"{served.base}{run}/trials")
    page.get_by_role("link", name="seconds").click()
    seconds = [float(text) for text in page.locator("tbody tr td.n:nth-last-child(2)").all_inner_texts() if text]
    assert seconds == sorted(seconds)
    page.get_by_role("link", name="Next →").first.click()
    assert "page=2" in page.url


def test_a_regular_expression_is_a_filter_like_the_others(page: Any, served: ServedViewer) -> None:
    run = _key(page, "small")
    page.goto(f"{served.base}{run}/trials?outcome=wrong")
    page.get_by_label("text in question, id or reply").fill(r"^shape-0000[12]$")
    page.get_by_label("a regular expression").check()
    page.get_by_role("button", name="Filter").click()
    assert "regex=1" in page.url and "outcome=wrong" in page.url
    names = page.locator("tbody th a").all_inner_texts()
    assert names and set(names) <= {"shape-00001", "shape-00002"}
    page.locator("tbody th a").first.click()
    assert page.get_by_text("/^shape-0000[12]$/").first.is_visible(), "the walk tells its filter"
    page.goto(f"{served.base}{run}/trials?text=(.|.)*%C2%A7&regex=1")
    assert "was ended after" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("a regular expression").is_checked()


def test_keys_and_zoom(page: Any, served: ServedViewer) -> None:
    page.goto(f"{served.base}{_key(page, 'small')}/trials")
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/trial?**", wait_until="load")
    first = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first, wait_until="load")
    page.keyboard.press("k")
    page.wait_for_url(first, wait_until="load")
    stage = page.locator("[data-zoom]").first
    # What moves while a picture comes in is no place to click at.
    stage.locator("img").evaluate("picture => picture.decode()")
    stage.click()
    page.wait_for_selector("[data-zoom].zoomed")
    stage.press("Enter")
    assert "zoomed" not in str(stage.get_attribute("class"))


def test_keys_walk_through_what_was_filtered_and_back(page: Any, served: ServedViewer) -> None:
    page.goto(f"{served.base}{_key(page, 'small')}/trials?outcome=unparsed&sort=latency&order=down")
    listed = page.locator("tbody th a").all_inner_texts()
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/trial?**", wait_until="load")
    for name in listed[1:6]:
        before = page.url
        page.keyboard.press("j")
        page.wait_for_url(lambda url, before=before: url != before, wait_until="load")
        assert f"sample={name}" in page.url
        assert page.locator(".tag").first.inner_text() == "? unread"
    page.locator(".crumbs").get_by_role("link", name="unread").click()
    page.wait_for_url("**/trials?**outcome=unread**sort=latency**order=down**")
    assert page.locator("tbody th a").all_inner_texts() == listed


def test_rows_are_links_with_thumbnails_and_whole_words(page: Any, served: ServedViewer) -> None:
    page.goto(f"{served.base}{_key(page, 'small')}/trials?outcome=wrong")
    first = page.locator("tbody tr").first
    picture = first.locator("img")
    assert 0 < picture.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") <= 220
    split = """cells => cells.flatMap(cell => [...cell.querySelectorAll('.clamp')].flatMap(part => {
      const text = part.firstChild;
      if (!text || text.nodeType !== Node.TEXT_NODE) return [];
      return [...text.data.matchAll(/\\S+/g)].filter(word => {
        const range = document.createRange();
        range.setStart(text, word.index); range.setEnd(text, word.index + word[0].length);
        const lines = [...range.getClientRects()].filter(box => box.width > 0).map(box => Math.round(box.top));
        return new Set(lines).size > 1 && !word[0].includes('-');
      }).map(word => word[0]);
    }))"""
    assert page.locator("tbody td.text").evaluate_all(split) == []
    heights = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert max(heights) < 100, "a screen shows many trials"
    box = first.locator("td.c-outcome").bounding_box()
    page.mouse.click(box["x"] + 3, box["y"] + 3)
    page.wait_for_url("**/trial?**outcome=wrong**")


def test_a_run_opens_with_what_it_answered_and_how_it_was_asked(page: Any, served: ServedViewer) -> None:
    page.goto(served.base + _key(page, "small"))
    names = page.get_by_role("heading").all_inner_texts()
    places = [
        names.index(name) for name in ("What is taken for what", "Does it favour a position?", "How long a reply takes")
    ]
    assert places == sorted(places), "answers come before latency"
    assert page.get_by_role("heading", name="How it was asked").is_visible()
    page.get_by_text("The first prompt as it was sent").click()
    assert page.get_by_text("Which colour has shape number").first.is_visible()
    page.get_by_role("link", name=re.compile(r"^Wrong \d+$")).click()
    page.locator("tbody th a").first.click()
    assert page.locator("p.why").first.inner_text().startswith("Why: "), "the rule is told in words"
    keep_screenshot(page, "why")


def test_a_run_scored_by_a_plug_in_is_shown_live(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(POLITE_PLUGIN)
    task = msgspec.structs.replace(make_task(), scorers=("polite",))
    make_run(tmp_path / "runs" / "one", count=6, task=task, score=False)
    viewer = ServedViewer(tmp_path / "runs", plugins=[tmp_path / "plugin.py"])
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(viewer.address)
        page.get_by_role("link", name="one", exact=True).click()
        assert page.get_by_text("politeness").first.is_visible()
    finally:
        context.close()
        viewer.close()


def test_interval_marks_are_in_sight_on_a_wide_screen(page: Any, served: ServedViewer) -> None:
    run = _key(page, "small")
    for width in (1440, 1200):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{served.base}{run}")
        hidden = """marks => marks.filter(mark => {
          const frame = mark.closest('.scroll, .card').getBoundingClientRect();
          return mark.getBoundingClientRect().right > frame.right + 1;
        }).length"""
        assert page.locator("svg.range .dot").count() > 10
        assert page.locator(".grid .scroll svg.range .dot").evaluate_all(hidden) == 0


def test_runs_are_searched_and_a_stopped_one_looks_it(browser: Any, tmp_path: Path) -> None:
    long = "a-run-of-a-long-name-2026-01-02"
    make_run(tmp_path / long, model=f"openai/{long}", count=4)
    folder = make_run(tmp_path / "half", count=40, stop_after=10, score=False)
    for path in folder.glob("run.db*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    viewer = ServedViewer(tmp_path)
    context = browser.new_context(viewport={"width": 1440, "height": 860})
    page = context.new_page()
    try:
        page.goto(viewer.address)
        stopped = page.get_by_text("■ stopped")
        assert stopped.is_visible()
        assert page.locator(".live").count() == 0
        lines = page.get_by_role("link", name=long, exact=True).evaluate("link => link.getClientRects().length")
        assert lines == 1, "a name stays on one line"
        page.keyboard.press("/")
        page.keyboard.type("long-name")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=long-name**")
        assert page.get_by_text("1 of 2 runs").is_visible()
        assert stopped.count() == 0
    finally:
        context.close()
        viewer.close()


def test_compare_leaderboard_and_other_profile(page: Any, served: ServedViewer) -> None:
    for name in ("large", "small"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Compare the chosen runs").click()
    assert page.get_by_text("large is better").or_(page.get_by_text("not distinguishable")).first.is_visible()
    card = page.locator("article").first
    assert card.locator("section .reply").count() == 2
    card.scroll_into_view_if_needed()
    assert card.locator("img").evaluate("picture => picture.decode().then(() => picture.naturalWidth)") > 0
    keep_screenshot(page, "compare")
    page.get_by_role("link", name="Leaderboard").click()
    assert page.locator("tbody tr").count() == 3
    figures = [float(cell) for cell in re.findall(r"\t([0-9.]+) %\t", page.locator("tbody").inner_text())]
    assert len(figures) == 3 and figures == sorted(figures, reverse=True)
    keep_screenshot(page, "leaderboard")
    page.goto(f"{served.base}{_key(page, 'small')}")
    page.get_by_label("read the replies as").select_option("reform")
    page.get_by_role("button", name="Score again").click()
    assert page.get_by_text("Nothing was asked, nothing was written.").is_visible()
    keep_screenshot(page, "other-profile")


def test_live_page_follows_the_run_with_its_next_looks(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "live"
    make_run(folder, count=40, stop_after=10, score=False)
    viewer = ServedViewer(tmp_path)
    context = browser.new_context()
    page = context.new_page()
    try:
        page.goto(viewer.address)
        page.get_by_role("link", name="live", exact=True).click()
        assert "10 of 40" in page.inner_text("main")
        live = str(page.locator("main").get_attribute("data-live"))
        looks: list[str] = []
        page.on("response", lambda response: looks.append(response.url) if response.url.endswith(live) else None)
        with page.expect_response(lambda response: response.url.endswith(live)):
            pass  # the page knows the state of ten trials now
        make_run(folder, count=40, stop_after=30, score=False)
        looks.clear()
        page.get_by_text("30 of 40").first.wait_for(timeout=CEILING_S * 1000)
        # One look a second: one may have been under way when the run wrote, the next one must show it.
        assert len(looks) <= 3
        make_run(folder, count=40, score=False)
        page.get_by_text("of 40 trials stored").first.wait_for(state="hidden", timeout=CEILING_S * 1000)
    finally:
        context.close()
        viewer.close()


def test_eye_chart_from_run_to_page(
    browser: Any, mock_server: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a newcomer sees: the chart, the curve, every reply."""
    import snellen
    from snellen.kits.mock.ask import write_answers

    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    answers = tmp_path / "answers.jsonl"
    write_answers(snellen.load_dataset("eyechart"), answers)
    server = mock_server("--answers", answers, "--reader", "noisy:px50=6")
    with ThreadPoolExecutor(1) as pool:  # the browser has a loop running in this thread
        run = pool.submit(
            lambda: snellen.run(
                "eyechart", "openai/mock", base_url=server.base_url, output_dir=tmp_path / "runs" / "eyechart"
            )
        )
        assert run.result().failed == 0
    viewer = ServedViewer(tmp_path / "runs")
    context = browser.new_context(viewport={"width": 1200, "height": 860})
    page = context.new_page()
    try:
        page.goto((tmp_path / "runs" / "eyechart" / "report.html").as_uri())
        assert page.get_by_text("How small can it read?").first.is_visible()
        assert page.locator("details table tbody tr").count() >= 42, "every reply is in the report of a small run"
        keep_screenshot(page, "report-eyechart", whole=True)
        page.goto(viewer.address)
        page.get_by_role("link", name="eyechart").first.click()
        page.get_by_role("link", name="Every trial").click()
        page.locator("tbody th a").first.click()
        page.wait_for_url("**/trial?**", wait_until="load")
        assert (
            page.locator(".stage img").first.evaluate("picture => picture.decode().then(() => picture.naturalWidth)")
            == 640
        )
        keep_screenshot(page, "trial-eyechart")
    finally:
        context.close()
        viewer.close()


def test_pictures_zoom_by_wheel_drag_grid_and_full_screen(page: Any, served: ServedViewer) -> None:
    page.goto(f"{served.base}{_key(page, 'small')}/trials")
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/trial?**", wait_until="load")
    stage = page.locator("[data-zoom]").first
    picture = stage.locator("img")
    picture.evaluate("picture => picture.decode()")
    width = "picture => picture.getBoundingClientRect().width"
    fitted = picture.evaluate(width)
    picture.hover()
    page.mouse.wheel(0, -400)
    assert picture.evaluate(width) == fitted, "the page scrolls until one has asked for the picture"
    stage.scroll_into_view_if_needed()
    stage.get_by_role("button", name="1:1").click()
    assert picture.evaluate(width) == 320
    picture.hover()
    page.mouse.wheel(0, -800)
    page.wait_for_function("() => document.querySelector('[data-zoom] img').getBoundingClientRect().width > 2300")
    pane = stage.locator(".pane")
    box = pane.bounding_box()
    before = pane.evaluate("pane => [pane.scrollLeft, pane.scrollTop]")
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 30, steps=4)
    page.mouse.up()
    after = pane.evaluate("pane => [pane.scrollLeft, pane.scrollTop]")
    moved = [b - a for a, b in zip(before, after, strict=True)]
    assert abs(moved[0] - 80) < 4 and abs(moved[1] - 30) < 4, (before, after)
    assert "zoomed" in str(stage.get_attribute("class")), "a drag is no click"
    stage.get_by_role("button", name="Grid").click()
    pixel = "frame => getComputedStyle(frame, '::after').backgroundSize"
    assert float(stage.locator(".frame").evaluate(pixel).split("px")[0]) > 4
    keep_screenshot(page, "trial-zoomed")
    stage.get_by_role("button", name="Full screen").click()
    page.wait_for_function("() => document.fullscreenElement !== null")
    stage.get_by_role("button", name="Full screen").click()
    page.wait_for_function("() => document.fullscreenElement === null")
    stage.get_by_role("button", name="Fit").click()
    assert picture.evaluate(width) == fitted


def test_table_fits_gallery_shows_pictures_and_groups_have_a_chart(page: Any, served: ServedViewer) -> None:
    run = _key(page, "small")
    page.goto(f"{served.base}{run}/trials?outcome=wrong")
    wider = "frames => frames.filter(frame => frame.scrollWidth > frame.clientWidth + 1).length"
    assert page.locator(".scroll").evaluate_all(wider) == 0, "no table scrolls sideways at 1,200 pixels"
    page.get_by_role("link", name="Gallery").click()
    page.wait_for_url("**view=gallery**")
    assert page.locator(".thumbs li").count() == 200
    decoded = "pictures => Promise.all(pictures.slice(0, 12).map(picture => picture.decode().then(() => picture.naturalWidth)))"
    assert min(page.locator(".thumbs img").evaluate_all(decoded)) > 0
    keep_screenshot(page, "gallery")
    page.get_by_label("group by").select_option("shape")
    page.wait_for_url("**by=shape**")
    assert page.locator(".bygroup tbody tr").count() == 4
    assert page.locator(".bygroup svg.range .dot").count() == 4
    page.get_by_role("link", name="Table").click()
    page.get_by_role("link", name="Dense").click()
    page.wait_for_url("**dense=1**")
    heights = page.locator(".trials tbody tr").evaluate_all(
        "rows => rows.map(row => row.getBoundingClientRect().height)"
    )
    assert max(heights) < 60
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="question").uncheck()
    page.get_by_role("button", name="Show these").click()
    page.wait_for_url("**columns=**")
    assert page.locator("th.h-question").count() == 0
    assert page.locator("th.h-reply").count() == 1
    assert "dense=1" in page.url and "by=shape" in page.url and "outcome=wrong" in page.url


def test_who_fails_where_and_one_sample_across_runs(page: Any, served: ServedViewer) -> None:
    for name in ("large", "small", "quick"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Matrix").click()
    page.wait_for_url("**/matrix?**")
    assert page.locator("tbody tr").count() == 60
    keep_screenshot(page, "matrix")
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/sample?**", wait_until="load")
    assert page.locator(".same-sample section").count() == 3
    assert page.locator(".stage img").evaluate("picture => picture.decode().then(() => picture.naturalWidth)") == 320
    keep_screenshot(page, "sample")
    first = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first, wait_until="load")
    assert page.get_by_text("sample 2 of 60").is_visible()


def test_marks_give_a_second_headline_and_runs_go_to_the_trash(browser: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = make_run(tmp_path / name, model=f"openai/{name}", count=30)
        for path in folder.glob("run.db*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
    viewer = ServedViewer(tmp_path, may_write=True)
    context = browser.new_context(viewport={"width": 1200, "height": 860})
    page = context.new_page()
    try:
        page.goto(viewer.address)
        page.get_by_role("link", name="one", exact=True).click()
        page.get_by_role("link", name=re.compile(r"^Wrong \d+$")).click()
        page.locator("tbody th a").first.click()
        page.wait_for_url("**/trial?**", wait_until="load")
        page.keyboard.press("m")
        page.get_by_label("the gold answer is wrong").check()
        page.get_by_label("note").fill("the picture shows two shapes")
        page.get_by_role("button", name="Keep marks").click()
        page.get_by_text("the picture shows two shapes").first.wait_for()
        assert "/trial?" in page.url and "outcome=wrong" in page.url, "one stays on the walk"
        keep_screenshot(page, "marks")
        page.locator(".crumbs").get_by_role("link", name="one").click()
        assert page.get_by_text("Without 1 sample marked as having a wrong gold answer").is_visible()
        page.goto(viewer.base)
        page.get_by_label("Compare two").check()
        page.get_by_role("button", name="Move to the trash").click()
        page.get_by_text("In the trash: 1 run").click()
        assert page.get_by_role("link", name="two", exact=True).count() == 0
        page.get_by_role("button", name="Take back").click()
        page.get_by_role("link", name="two", exact=True).wait_for()
    finally:
        context.close()
        viewer.close()


def test_people_label_judged_replies_one_after_the_other(browser: Any, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "judged", count=30)
    table = {"choices": {"RIGHT": 1.0, "WRONG": 0.0}, "prompt": "Case {case}.\n{fence}\n{answer}\n{fence}"}
    ask_about(folder, read_judge(table, "mine"), judge_model(lambda request, answer: {"verdict": "RIGHT"}))
    viewer = ServedViewer(tmp_path, may_write=True)
    context = browser.new_context(viewport={"width": 1200, "height": 860})
    page = context.new_page()
    try:
        page.goto(viewer.address)
        page.get_by_role("link", name="judged", exact=True).click()
        page.get_by_role("link", name="label for mine").click()
        assert page.locator(".stage img").first.evaluate("picture => picture.decode().then(() => picture.naturalWidth)")
        for labelled in range(1, 12):
            page.get_by_role("button", name="WRONG" if labelled % 3 else "RIGHT", exact=True).click()
            page.get_by_text(re.compile(rf"^{labelled} of \d+ judged replies have a label")).wait_for()
        page.locator(".stage img").first.evaluate("picture => picture.decode()")
        keep_screenshot(page, "label")
        page.get_by_role("button", name="Score the run with these labels").click()
        page.get_by_text("judge_calibrated").first.wait_for()
    finally:
        context.close()
        viewer.close()


def test_a_picture_that_cannot_be_shown_says_why(browser: Any, tmp_path: Path) -> None:
    make_run(tmp_path / "broken", count=4)
    for path in (tmp_path / "broken" / "images").iterdir():
        path.write_bytes(b"not a picture")
    viewer = ServedViewer(tmp_path)
    context = browser.new_context()
    page = context.new_page()
    try:
        page.goto(viewer.address)
        page.goto(f"{viewer.base}{_key(page, 'broken')}/trials")
        page.locator("tbody th a").first.click()
        page.wait_for_url("**/trial?**", wait_until="load")
        words = page.locator(".stage .nopicture").first
        words.wait_for()
        page.wait_for_function("() => document.querySelector('.stage .nopicture').textContent.length > 20")
        assert words.inner_text().startswith("no picture: ")
    finally:
        context.close()
        viewer.close()


def test_a_phone_shows_the_values_of_runs(browser: Any, tmp_path: Path) -> None:
    make_run(tmp_path / "shapes--openai-mock--b408239b", count=8)
    viewer = ServedViewer(tmp_path)
    context = browser.new_context(viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True)
    try:
        page = context.new_page()
        page.goto(viewer.address)
        hidden = page.locator(".runs").evaluate("card => card.scrollWidth - card.clientWidth")
        assert hidden == 0, "a run's name filled the screen, and its value lay beside it"
    finally:
        context.close()
        viewer.close()


def test_a_phone_shows_many_trials(browser: Any, served: ServedViewer) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(served.address)
    run = _key(page, "small")
    page.goto(f"{served.base}{run}/trials")
    heights = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert max(heights) < 130, "a row was 330 pixels high"
    lines = page.locator("tbody th a").evaluate_all("links => links.map(link => link.getClientRects().length)")
    assert set(lines) == {1}, "names of trials were split"
    assert page.locator("tbody tr").first.bounding_box()["y"] < 800, "filters filled the first screen"
    assert not page.get_by_label("tokens, at least").is_visible()
    page.get_by_text("Filters", exact=True).tap()
    assert page.get_by_label("tokens, at least").is_visible()
    page.reload()
    keep_screenshot(page, "phone")
    page.goto(f"{served.base}{run}/trials?longer=2")
    assert page.get_by_label("tokens, at least").is_visible(), "what is filtered is seen"
    trial = _path(page.locator("tbody th a").first)
    runs = "&".join(f"run={_key(page, name).split('/')[-1]}" for name in ("small", "large", "quick"))
    several = ("/leaderboard", f"/matrix?{runs}", f"/compare?{runs}")
    for path in ("/", run, f"{run}/trials", f"{run}/trials?view=gallery", trial, *several):
        page.goto(served.base + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 391, path
        edges = page.locator("caption").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
        assert all(edge <= 391 for edge in edges), f"a caption of {path} is cut"
    page.goto(served.base + "/")
    box = page.locator("tbody tr").first.get_by_text("%").first.bounding_box()
    assert box and box["x"] + box["width"] < 391, "the number of a run is in sight"
    page.goto(served.base + run)
    sizes = page.locator("svg.plot text").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert min(sizes) > 7, "words of a figure can be read"
    context.close()


def test_report_in_light_dark_and_print(browser: Any, runs: Path, tmp_path: Path) -> None:
    from snellen.api.outputs import report

    path = report(runs / "small")
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport={"width": 1200, "height": 860}, color_scheme=scheme)
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(path.as_uri())
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == [], "a report loads nothing"
        assert page.locator("script").count() == 0
        assert (
            page.locator(".shot img").first.evaluate("picture => picture.decode().then(() => picture.naturalWidth)") > 0
        )
        ink = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ink == "rgb(20, 22, 27)") == (scheme == "dark")
        keep_screenshot(page, f"report-{scheme}", whole=True)
        context.close()
    page = browser.new_page()
    page.goto(path.as_uri())
    assert len(page.pdf()) > 20_000
    page.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    make_hostile_run(folder / "one")
    make_hostile_run(folder / "two", model=PAYLOADS[20])
    return folder


def _one_of_each_shape(paths: list[str]) -> list[str]:
    """Return a trial's page for each shape that a payload has, and a sample's page for every fifth; what they call takes turns."""
    chosen: dict[tuple[str, int], str] = {}
    for path in paths:
        call, shape = divmod(PAYLOADS.index(parse_qs(urlsplit(path).query)["sample"][0]), len(SHAPES))
        page = urlsplit(path).path
        if call == shape % len(CALLS) and (page != "/sample" or shape % 5 == 0):
            chosen.setdefault((page, shape), path)
    return list(chosen.values())


def test_120_payloads_in_every_field_fire_nothing(browser: Any, hostile: Path) -> None:
    from snellen.api.outputs import report

    viewer = ServedViewer(hostile)
    context = browser.new_context()
    page = context.new_page()
    fired: list[str] = []
    page.on("dialog", lambda dialog: (fired.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: fired.append(request.url) if "evil" in request.url.partition("?")[0] else None)
    page.expose_function("fired", lambda: fired.append("call"))
    try:
        page.goto(viewer.address)
        keys = [
            str(link.get_attribute("href")).rpartition("/")[2]
            for link in page.get_by_role("link").all()
            if "/run/" in str(link.get_attribute("href"))
        ]
        one, two = list(dict.fromkeys(key.partition("?")[0] for key in keys))[:2]
        pages = [
            f"/run/{one}",
            f"/run/{one}/trials",
            f"/run/{one}/trials?text=%3Cscript%3E",
            "/leaderboard",
            f"/compare?run={one}&run={two}",
            f"/run/{one}/again?profile=reform",
            f"/run/{one}/trials?view=gallery",
            f"/run/{one}/trials?by=group",
            f"/matrix?run={one}&run={two}",
        ]
        pages += [f"/run/{one}/trials?page={number}" for number in range(2, 6)]
        trials: list[str] = []
        for path in pages:
            assert page.goto(viewer.base + path).status == 200, path
            page.mouse.move(300, 300)
            trials += [_path(link) for link in page.locator("tbody th a.mono").all()]
        chosen = _one_of_each_shape(trials)
        assert len(chosen) >= len(SHAPES), "every shape of a payload has a page of its own"
        assert any(path.startswith("/sample?") for path in chosen), "also one sample across runs"
        for path in chosen:
            assert page.goto(viewer.base + path).status == 200
        for folder in ("one", "two"):
            page.goto(report(hostile / folder).as_uri())
        assert fired == []
        assert page.evaluate("typeof fired") == "function", "the trap itself was set"
    finally:
        context.close()
        viewer.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_script(tmp_path_factory.mktemp("axe"))


def _files(runs: Path, folder: Path) -> list[str]:
    """Write the pages that are files: a report, a comparison, a load."""
    from snellen.api.outputs import comparison_report, report
    from snellen.api.perf import describe_level
    from snellen.perf.timeline import RequestRecord, Timeline
    from snellen.report.pages.perf_page import render_page

    requests = tuple(
        RequestRecord(str(n), n * 0.1, n * 0.1 + 0.3, chunks=(n * 0.1 + 0.2, n * 0.1 + 0.3), output_tokens=2)
        for n in range(20)
    )
    levels = [{"level": f"rate-{n}", **describe_level(Timeline(requests=requests), None)} for n in (1, 2)]
    (folder / "perf.html").write_text(render_page("A load", levels, {}), encoding="utf-8")
    compared = comparison_report([runs / "small", runs / "large"], folder / "comparison.html")
    return [path.as_uri() for path in (report(runs / "small"), compared, folder / "perf.html")]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_no_serious_accessibility_fault(
    browser: Any, served: ServedViewer, runs: Path, axe: str, scheme: str, width: int, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
    page = context.new_page()
    page.goto(served.address)
    run = _key(page, "small")
    page.goto(f"{served.base}{run}/trials")
    trial = _path(page.locator("tbody th a").first)
    several = "&".join(f"run={_key(page, name).rpartition('/')[2]}" for name in ("small", "large"))
    addresses = [
        served.base + path
        for path in (
            "/",
            run,
            f"{run}/figures",
            f"{run}/trials",
            f"{run}/trials?dense=1&longer=2",
            f"{run}/trials?text=(&regex=1",
            trial,
            "/leaderboard",
            f"/compare?{several}",
            f"{run}/again?profile=reform",
            f"{run}/trials?view=gallery&by=shape",
            f"/matrix?{several}",
            f"/sample?{several}&task=shapes&sample=shape-00001",
            "/nowhere",
        )
    ]
    faults = []
    for address in [*addresses, *_files(runs, tmp_path)]:
        page.goto(address)
        faults += [(address.rpartition("/")[2], *fault) for fault in serious_faults(page, axe)]
    context.close()
    assert faults == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_an_exam_has_no_serious_accessibility_fault(
    browser: Any, axe: str, tmp_path_factory: pytest.TempPathFactory, scheme: str, width: int
) -> None:
    folder = tmp_path_factory.mktemp("exam")
    tests = ("acuity", "quarter-turns", "count")
    with ThreadPoolExecutor(1) as apart:  # the browser's own loop runs in this thread
        apart.submit(sit, folder / "run", Observer(), mode="quick", tests=tests).result()
    viewer = ServedViewer(folder)
    context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
    try:
        page = context.new_page()
        page.goto(viewer.address)
        run = _path(page.locator("tbody a[href*='/run/']").first)
        opened = [f"{viewer.base}{run}?task=exam-{test}" for test in tests]
        for address in (*opened, (folder / "run/prescription.html").as_uri()):
            page.goto(address)
            assert page.locator("svg").count() > 0
            assert serious_faults(page, axe) == [], address
    finally:
        context.close()
        viewer.close()


def test_what_can_be_marked_has_no_serious_accessibility_fault(browser: Any, axe: str, tmp_path: Path) -> None:
    make_run(tmp_path / "own", count=6)
    viewer = ServedViewer(tmp_path, may_write=True)
    context = browser.new_context(viewport={"width": 1200, "height": 860})
    try:
        page = context.new_page()
        page.goto(viewer.address)
        run = _key(page, "own")
        page.goto(f"{viewer.base}{run}/trials")
        trial = _path(page.locator("tbody th a").first)
        for path in ("/", run, trial):
            page.goto(viewer.base + path)
            assert serious_faults(page, axe) == [], path
    finally:
        context.close()
        viewer.close()
