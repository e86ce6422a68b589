"""The documentation site is built without network, fetches nothing, and can be searched."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import snellen
from documentation import ROOT

pytestmark = pytest.mark.nightly  # thirteen seconds; `make docs` builds the same site, as strictly
CHROMIUM = Path("/usr/bin/chromium")
OFFLINE = """
import socket, sys

def refuse(*arguments):
    raise OSError("this build has no network")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--quiet", "--site-dir", sys.argv[1]])
"""
FETCHED = re.compile(
    r'<(?:script|link|img|iframe|source|video|audio|object)\b[^>]*?\s(?:src|href|data)="?((?:https?:)?//[^"\s>]+)'
)
IN_STYLE = re.compile(r"(?:url\(|@import\s)\s*[\"']?((?:https?:)?//[^)\"']+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    pages, styles = list(site.rglob("*.html")), list(site.rglob("*.css"))
    assert len(pages) > 60 and styles
    fetched = [(page.name, address) for page in pages for address in FETCHED.findall(page.read_text(encoding="utf-8"))]
    fetched += [
        (file.name, address) for file in styles for address in IN_STYLE.findall(file.read_text(encoding="utf-8"))
    ]
    assert not fetched
    # The theme's script would fetch these, but only for pages that have such elements.
    texts = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert 'class="mermaid"' not in texts and 'data-md-component="source"' not in texts


@pytest.mark.browser
def test_a_browser_asks_nobody_else_and_the_search_answers(site: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed")
    with serve(site) as address, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)  # a ceiling for busy machines, not an expectation
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in ("index.html", "reference.html", "view.html", "adr/index.html"):
            page.goto(f"{address}/{name}", wait_until="load")
        query = "input[data-md-component=search-query]"
        page.click(query)  # as a person does: the search wakes when its field is entered
        page.type(query, "McNemar")
        page.wait_for_selector(
            ".md-search-result__link[href*='statistics.html'], .md-search-result__link[href*='0017']"
        )
        browser.close()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def test_the_reference_shows_every_public_name_with_its_contract(site: Path) -> None:
    page = (site / "reference.html").read_text(encoding="utf-8")
    places = set(re.findall(r'<h3 id="snellen\.(?:\w+\.)*(\w+)"', page))
    assert set(snellen.__all__) <= places
    assert "the same call again continues an unfinished run" in page


def test_the_search_finds_pages_and_leaves_decisions_out(site: Path) -> None:
    places = {
        entry["location"].partition("#")[0]
        for entry in json.loads((site / "search/search_index.json").read_text())["docs"]
    }
    assert {"index.html", "statistics.html", "own-data.html"} <= places
    assert not [place for place in places if place.startswith("adr/")]
    assert (site / "adr" / "store.html").is_file()
