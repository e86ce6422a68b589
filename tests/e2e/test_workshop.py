"""The whole workshop on sixty items of our own: drafted, gated, reviewed by two people in a real browser, published, run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import json_of
from review_server import ReviewServer, review_server
from snellen.data.files.bundle import read_bundle
from workshop_fixtures import write_sources

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("starlette")
CHROMIUM = Path("/usr/bin/chromium")
MOVED_ON = "before => document.getElementById('facts').innerText !== before || !document.getElementById('done').hidden"


@pytest.fixture
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield found
        found.close()


class Person:
    """Someone who reviews by keyboard alone."""

    def __init__(self, browser: Any, link: str) -> None:
        self.page = browser.new_context().new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console", lambda line: self.errors.append(line.text) if "Content Security Policy" in line.text else None
        )
        self.page.goto(link)
        self.wait()

    def wait(self) -> None:
        self.page.wait_for_selector("#main:not([hidden]), #done:not([hidden])")

    @property
    def done(self) -> bool:
        return self.page.is_visible("#done")

    @property
    def item(self) -> str:
        return self.page.inner_text("#facts dd >> nth=0")

    def press(self, *keys: str) -> None:
        """Press keys and wait for the next item."""
        before = self.page.inner_text("#facts")
        for key in keys:
            self.page.keyboard.press(key)
        self.page.wait_for_function(MOVED_ON, arg=before)

    def mode(self, name: str) -> None:
        self.page.click(f"button[data-mode={name}]")
        self.page.wait_for_selector(f"button[data-mode={name}][aria-current]")
        self.wait()


def draft(mock_server: Callable[..., Any], sources: Path, folder: Path, style: str) -> dict[str, Any]:
    server = mock_server("--drafter", style)
    return json_of(
        "curate", "draft", sources, folder, "--model", "openai/mock", "--base-url", server.base_url, "--no-cache"
    )


@pytest.mark.parametrize(("style", "fewest"), [("good", 60), ("malformed", 40)])
def test_drafts_of_any_quality_are_used_or_set_aside(
    mock_server: Callable[..., Any], tmp_path: Path, style: str, fewest: int
) -> None:
    sources = write_sources(tmp_path, sherlock=True)
    made = draft(mock_server, sources, tmp_path / "shop", style)
    assert made["drafts"] + made["set_aside"] == 60 and made["drafts"] >= fewest
    assert sum(made["reasons"].values()) == made["set_aside"]
    report = json_of("curate", "gates", tmp_path / "shop")
    assert report["drafts"] == made["drafts"] and report["kept"] >= fewest - 2


def test_a_planted_artefact_is_caught_and_the_repaired_set_passes(
    mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    draft(mock_server, write_sources(tmp_path), tmp_path / "shop", "artefact")
    caught = json_of("curate", "gates", tmp_path / "shop", "--no-repair", codes=(1,))
    assert {gate["gate"] for gate in caught["gates"] if not gate["passed"]} == {"surface", "blind"}
    repaired = json_of("curate", "gates", tmp_path / "shop")
    assert repaired["kept"] == 60 and all(gate["passed"] for gate in repaired["gates"])


def test_drafting_goes_on_where_it_stopped(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    sources, log = write_sources(tmp_path, 20), tmp_path / "seen.jsonl"
    server = mock_server("--drafter", "good", "--log", log)
    flags = [
        "curate",
        "draft",
        sources,
        tmp_path / "shop",
        "--model",
        "openai/mock",
        "--base-url",
        server.base_url,
        "--no-cache",
    ]
    first = json_of(*flags, "--max-requests", 10, "--max-workers", 2, codes=(1,))
    assert first["over_budget"] and first["requests"] == 10 == len(log.read_text().splitlines())
    second = json_of(*flags)
    assert second["drafts"] == 20 and first["requests"] + second["requests"] == 40
    assert len(log.read_text().splitlines()) == 40
    assert json_of(*flags)["requests"] == 0


@pytest.mark.browser
@pytest.mark.slow
def test_the_whole_workshop(mock_server: Callable[..., Any], browser: Any, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    draft(mock_server, write_sources(tmp_path), shop, "sloppy")
    server = mock_server("--drafter", "good")
    report = json_of(
        "curate",
        "gates",
        shop,
        "--checker",
        "openai/mock",
        "--blind-model",
        "blind/longest",
        "--base-url",
        server.base_url,
        "--no-cache",
    )
    kept = report["kept"]
    assert kept >= 55 and next(gate for gate in report["gates"] if gate["gate"] == "surface")["repaired"] > 10
    people = ("--reviewer", "ana", "--reviewer", "ben", "--overlap", "0.4", "--audit", "20", "--ceiling", "8")
    with review_server(shop, *people) as first:
        ana, edited = start_reviewing(browser, first)
        first.kill()
        ana.page.keyboard.press("a")  # nobody is there to save it
        ana.page.wait_for_selector("#notice:not([hidden])")
        assert "kept here" in ana.page.inner_text("#notice")
        port = first.port
    with review_server(shop, "--port", str(port)) as second:
        ana.page.wait_for_selector("#notice", state="hidden")
        rejected = review_rest(browser, second, ana)
    check_decisions(shop, kept, edited, rejected)
    check_published(mock_server, shop, tmp_path, edited, rejected)


def start_reviewing(browser: Any, server: ReviewServer) -> tuple[Person, str]:
    """Six decisions: an edit, an undo taken back, a skip, three accepts."""
    ana = Person(browser, server.links["ana"])
    edited = ana.item
    ana.page.keyboard.press("e")
    ana.page.fill("#q0", "What lies in the red box?")
    ana.page.keyboard.press("Control+Enter")
    ana.page.wait_for_function("before => document.querySelector('#facts dd').innerText !== before", arg=edited)
    again = ana.item
    ana.press("a")
    ana.press("u")
    assert ana.item == again
    ana.press("a")
    ana.press("s")
    ana.press("a")
    return ana, edited


def review_rest(browser: Any, server: ReviewServer, ana: Person) -> set[str]:
    """Both finish their lists; ben rejects some; disputes are settled, a sample audited, and questions answered."""
    ben, rejected = Person(browser, server.links["ben"]), set()
    while not ana.done:
        ana.press("a")
    turn = 0
    while not ben.done:
        turn += 1
        if turn % 9 == 0:
            rejected.add(ben.item)
            ben.press("r", "2")
        else:
            ben.press("a")
    disputes = 0
    ana.mode("settle")  # ben's own rejections: only when ana comes round to them are they settled
    while not ana.done:
        disputes += 1
        ana.press("r", "1")
    assert disputes > 0
    for person in (ana, ben):
        person.mode("audit")
        while not person.done:
            person.press("a")
        person.mode("answer")
        while not person.done:
            person.press(*["1"] * person.page.locator(".question").count())
    numbers = ana.page.inner_text("#numbers")
    assert "Krippendorff's α" in numbers and "Cohen's κ ana–ben" in numbers
    assert ana.errors == [] and ben.errors == []
    return rejected


def check_decisions(shop: Path, kept: int, edited: str, rejected: set[str]) -> None:
    database = sqlite3.connect(shop / "review.db")
    rows = database.execute("SELECT item, reviewer, action, reason FROM decisions WHERE mode = 'review'").fetchall()
    database.close()
    assert {item for item, _, _, _ in rows} == {
        json.loads(line)["draft"]["id"] for line in (shop / "gated.jsonl").read_text().splitlines()
    }
    assert len({item for item, _, _, _ in rows}) == kept
    assert (edited, "ana", "edit", "") in rows
    assert {item for item, who, action, _ in rows if action == "reject" and who == "ben"} == rejected
    assert sum(action == "undo" for _, _, action, _ in rows) == 1


def check_published(
    mock_server: Callable[..., Any], shop: Path, tmp_path: Path, edited: str, rejected: set[str]
) -> None:
    result = json_of("curate", "publish", shop, "--licence", "CC0-1.0", "--name", "Shapes and people")
    card = result["card"]
    assert card["outcomes"] == {"open": 0, "accepted": result["items"], "rejected": len(rejected), "disputed": 0}
    assert card["audit"]["valid"] == card["audit"]["audited"] > 5 and 0.5 < card["audit"]["ci95"][0] < 1.0
    assert card["human_ceiling"]["answers"] > 0 and card["agreement"]["items_with_several_reviewers"] > 10
    out = shop / "published"
    told = (out / "README.md").read_text()
    assert "100% valid, 95 % CI" in told and "| surface |" in told and "Krippendorff" in told
    sources = [json.loads(line)["source"] for line in (out / "provenance.jsonl").read_text().splitlines()]
    assert len(sources) == result["items"] and not rejected & set(sources)
    rows = json.loads((out / "annotations.json").read_text())
    assert rows[sources.index(edited)]["cot_inference"]["chain"][0]["question"] == "What lies in the red box?"
    assert all(len(row["inference"]["candidate"]) == 6 for row in rows)
    bundle = list(read_bundle(out / "bundle"))
    assert len(bundle) == result["questions"] and all(
        Path(image.ref).is_file() for sample in bundle for image in sample.images
    )
    check_runs(mock_server, out, tmp_path, result["items"])


def check_runs(mock_server: Callable[..., Any], out: Path, tmp_path: Path, items: int) -> None:
    """The set is a task: a blind model stays near chance, a simulated reader that sees finds everything."""
    blind = json_of("run", out / "task.toml", "--model", "blind/no-period", "-o", tmp_path / "blind", "--quiet")[
        "tasks"
    ]["shapes-and-people"]["metrics"]
    assert blind["Rh"]["n"] == items and blind["Rh"]["ci95"][0] < 1 / 6 < blind["Rh"]["ci95"][1]
    answers = tmp_path / "answers.jsonl"
    plain = out / "plain.toml"  # pictures as they are: the simulated reader knows them by their bytes
    plain.write_text((out / "task.toml").read_text().replace('region = "box"', 'region = "none"'))
    json_of("mock-server", "--write-answers", plain, "--answers", answers)
    server = mock_server("--answers", answers)
    flags = ["--model", "openai/mock", "--base-url", server.base_url, "--no-cache", "--quiet"]
    seen = json_of("run", plain, *flags, "-o", tmp_path / "seen")["tasks"]["shapes-and-people"]["metrics"]
    assert {name: seen[name]["value"] for name in ("Rh", "Rcot", "Ro", "Cf", "Cb")} == dict.fromkeys(
        ("Rh", "Rcot", "Ro", "Cf", "Cb"), 1.0
    )
    assert seen["Rh_no-period_blind"]["value"] == pytest.approx(1 / 6)
