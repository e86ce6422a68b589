"""The walks through the code that docs/architecture.md describes are those that the commands take."""

from __future__ import annotations

import asyncio
import html
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from PIL import Image

from asgi import call
from command_line import run_command
from snellen.cli.main import main
from snellen.kits.mock.server import MockOptions, start
from snellen.report.viewer.guard import cookie_name

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
KEY = "the-key"


def walk_of(command: str) -> list[str]:
    section = PAGE.read_text("utf-8").partition(f"\n### The walk of `snellen {command} ")[2]
    return re.findall(r"^\d+\. `([\w.]+:[\w.]+)` ", re.split(r"\n##+ ", section)[0], re.MULTILINE)


def entered_by(command: Callable[[], Any]) -> list[str]:
    """Return the functions of snellen that a command enters, each where it is entered first."""
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            module = str(frame.f_globals.get("__name__", ""))
            if module.startswith("snellen."):
                entered.setdefault(f"{module.removeprefix('snellen.')}:{frame.f_code.co_qualname}")

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        command()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return list(entered)


def typed(*arguments: str) -> list[str]:
    """Return what a command enters that ends well."""

    def command() -> None:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        assert end.value.code == 0, arguments

    return entered_by(command)


@contextmanager
def server_in_a_thread() -> Iterator[str]:
    """A server on a loop of its own, so that it starts in no time."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(start(MockOptions(models=("x",))), loop).result()
    try:
        yield running.base_url
    finally:
        asyncio.run_coroutine_threadsafe(running.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def look_at_a_run(server: Any, sockets: Any) -> None:
    """Ask the viewer for its pages as a browser does, instead of serving them until interrupted."""

    def page(address: str) -> str:
        answer = call(server.config.app, address, headers={"cookie": f"{cookie_name(KEY)}={KEY}"})
        assert answer.status == 200, address
        return html.unescape(answer.text)

    run = re.findall(r'href="(/run/\w+)"', page("/"))[0]
    page(run)
    page(re.findall(r'href="(/run/\w+/trial\?[^"]+)"', page(f"{run}/trials"))[0])


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the four commands enter: one tiny run, scored again and looked at, and the easy round of an exam."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra `view` is not installed")
    folder = tmp_path_factory.mktemp("walks")
    with pytest.MonkeyPatch.context() as patch, server_in_a_thread() as address:
        patch.chdir(folder)
        patch.setenv("SNELLEN_CACHE_DIR", str(folder / "cache"))
        Image.new("RGB", (32, 32), (200, 0, 0)).save("red.png")
        row = {"question": "Which colour?", "image": "red.png", "options": ["red", "blue"], "answer": "A"}
        Path("my.jsonl").write_text(json.dumps(row))
        run = typed("run", "my.jsonl", "--model", "openai/x", "--base-url", address, "--price", "1,2", "-o", "run")
        score = typed("score", "run")
        exam = typed("exam", "--model", "blind/first", "--quick", "--tests", "orientation", "-o", "exam")
        patch.setattr("secrets.token_urlsafe", lambda size: KEY)
        patch.setattr(uvicorn.Server, "run", look_at_a_run)
        view = typed("view", "run")
    return {"run": run, "score": score, "exam": exam, "view": view}


@pytest.mark.parametrize("command", ["run", "score", "exam", "view"])
def test_a_command_enters_the_functions_of_the_page_in_its_order(taken: dict[str, list[str]], command: str) -> None:
    walk, entered = walk_of(command), taken[command]
    assert 15 <= len(walk) <= 30
    missing = [name for name in walk if name not in entered]
    assert not missing, f"never entered: {missing}"
    assert [name for name in entered if name in walk] == walk


MOST_IMPORTED = {"--help": 34, "show": 64, "score": 175, "run": 255}
"""Modules of ours that a command may import, and those before it. Who must go beyond asks first what hangs on it."""
COUNT = """
import json, sys
from snellen.cli.main import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["snellen", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
    print(words[0], sum(name.partition(".")[0] == "snellen" for name in sys.modules), file=sys.stderr)
"""


def test_a_command_imports_what_it_needs(tmp_path: Path) -> None:
    """A start is the price of every command: what a flag, a judge, a harness or HTTP needs comes with it, not before."""
    row = {"question": "Which is right?", "options": ["red", "green"], "answer": "green"}
    (tmp_path / "my.jsonl").write_text(json.dumps(row), "utf-8")
    run = ["run", "my.jsonl", "--model", "blind/longest", "--no-cache", "-o"]
    assert run_command(["run", tmp_path / "my.jsonl", *run[2:], tmp_path / "first"]) == 0
    words = [["--help"], ["show", "first"], ["score", "first"], [*run, "second"]]
    command = [sys.executable, "-c", COUNT, json.dumps(words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {name: int(count) for name, count in re.findall(r"^(\S+) (\d+)$", done.stderr, re.MULTILINE)}
    assert found.keys() == MOST_IMPORTED.keys()
    assert not {name: count for name, count in found.items() if count > MOST_IMPORTED[name]}, found


@pytest.mark.parametrize("command", ["run", "score"])
def test_a_command_of_the_core_asks_no_kit_for_names(taken: dict[str, list[str]], command: str) -> None:
    assert not [name for name in taken[command] if name.startswith("kits.") and name.endswith(":register")]
