"""The viewer for tests that look at its pages with a real browser."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENSHOTS = Path(__file__).resolve().parents[1] / "docs" / "screenshots"


class ServedViewer:
    """A viewer in a thread of its own."""

    def __init__(self, folder: Path, *, may_write: bool = False, plugins: Sequence[Path] = ()) -> None:
        from snellen.api.view import _listen, make_viewer
        from snellen.report.viewer.guard import cookie_name

        uvicorn = pytest.importorskip("uvicorn", reason="the extra `view` is not installed")
        self.listener = _listen(0)
        host = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.base, self.address = f"{host}/{cookie_name('secret')}", f"{host}/?token=secret"
        app = make_viewer([folder], "secret", may_write=may_write, plugins=plugins)
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)
        self.listener.close()


@contextmanager
def watched_page(browser: Any, viewer: ServedViewer) -> Iterator[Any]:
    """Open a viewer in a page of its own; what the page complains of by the end is a failure."""
    context = browser.new_context(viewport={"width": 1200, "height": 860})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(viewer.address)
    yield page
    assert problems == []
    context.close()


def keep_screenshot(page: Any, name: str, *, whole: bool = False) -> None:
    """Keep a picture for the docs; few colours and no more than a screen or two, so that the project stays small.

    Pictures that are there are drawn anew only when asked for (SNELLEN_SCREENSHOTS=1): a test run leaves no changes behind.
    """
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    picture = PIL.Image.open(io.BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    picture = picture.crop((0, 0, picture.width, min(picture.height, 1500)))
    small = picture.quantize(96, method=PIL.Image.Quantize.FASTOCTREE, dither=PIL.Image.Dither.NONE)
    assert len(small.getcolors() or ()) > 8, "a page was drawn"
    if os.environ.get("SNELLEN_SCREENSHOTS") or not (SCREENSHOTS / f"{name}.png").is_file():
        small.save(SCREENSHOTS / f"{name}.png", optimize=True)


def axe_script(folder: Path) -> str:
    """Return axe-core, which finds faults of accessibility; it is installed below a folder unless AXE_FOLDER has it."""
    folder = Path(os.environ.get("AXE_FOLDER") or folder)
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        if shutil.which("npm") is None:
            pytest.skip("axe-core needs npm, which is not installed")
        done = subprocess.run(
            ["npm", "install", "axe-core", "--no-audit", "--no-fund"],
            cwd=folder,
            capture_output=True,
            timeout=120,
            check=False,
        )
        if done.returncode or not script.is_file():
            pytest.skip("axe-core could not be installed (no network?)")
    return script.read_text(encoding="utf-8")


def serious_faults(page: Any, axe: str) -> list[Any]:
    """Return the serious and critical faults of a page."""
    page.evaluate(axe)
    found = page.evaluate(
        "async () => (await axe.run()).violations.map(v => [v.id, v.impact, v.nodes.length, v.nodes[0].html.slice(0, 200)])"
    )
    return [fault for fault in found if fault[1] in ("serious", "critical")]
