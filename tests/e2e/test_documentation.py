"""Documentation is run: every command and every piece of Python in README and docs/*.md, page by page, as it is printed.

A reader's placeholders are filled in (NAME, URL, FOLDER …) and a mock server answers; long measurements are cut short
(SHORTER). What only installs is checked instead: `pip install '.[x]'` names an extra there is, `make x` a target.
A block that cannot run here says so on the page: `<!-- needs: a GPU -->` on the line before its fence.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.request
import warnings
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from documentation import PAGES, ROOT, SHOWN, WORLDS, Block, blocks_of, commands_of
from emulator import mock_thread
from snellen.cli.main import main

COMMAND = [sys.executable, "-c", "from snellen.cli.main import main; main()"]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
BLOCKS = {page.name: blocks_of(page.name, page.read_text(encoding="utf-8")) for page in PAGES}
RUNNABLE = ("bash", "console", "python")

SHORTER = [
    (r"^snellen run eyechart", "--limit 2"),
    (r"^snellen run (niah|reform)", "--limit 2"),
    (r"^snellen exam --model reader", "--tests acuity --budget 12"),
    (r"^snellen exam --model(?! reader)(?!.*--plugin)", "--tests acuity,orientation --budget 60"),
    (r"^snellen run cure", "--limit 4 --max-tokens 8"),
    (r"^snellen train evaluate", "--limit 4 -p params.max_tokens=4"),
    (r"^snellen niah(?!.*--base)", "--base-url URL"),
    (r"^snellen docs needle", "--lengths 1k --depths 2"),
    (r"^snellen perf (eyechart|my.jsonl|synthetic)", "-n 4 --warmup 1 --no-pictures"),
    (r"^snellen perf .*--duration", "--duration 0.5"),
    (r"^snellen perf sweep", "--start 20 --ceiling 20 --duration 0.5 --warmup 1 --no-pictures"),
    (r"^snellen perf .*--rate", "--rate 20"),
    (r"^snellen perf .*--concurrency", "--concurrency 1,2"),
]
"""What makes a long command short: a pattern, and flags that are added (the last flag wins)."""
PLACEHOLDERS = {
    "hf/FOLDER_OR_HUB_ID": "hf/CHECKPOINT",
    "hf/FOLDER": "hf/CHECKPOINT",
    "plugin/NAME": "plugin/name_colour",
    "dataset.path=FILE": "dataset.path=cot_consistency_eval.jsonl",
    "dataset.image_root=DIR": "dataset.image_root=pictures",
    "snellen run reform ": "snellen run reform/dialogue ",  # of the suite of 61 datasets one dimension
    "openai/NAME": "openai/mock",
    "--model …": "--model openai/mock --base-url URL",
    "openai/mock …": "openai/mock --base-url URL",
}
ADDRESSES = re.compile(r"http://(?:localhost|127\.0\.0\.1):8000/v1|\bURL\b")
ENDS = {"--write-answers", "--export"}
"""With these a command that serves writes a file instead, and ends."""
MISSING = {"reader/tesseract": "tesseract", "ptb": "java"}
"""What a command needs from the system: without the program it is left out, as the tests for it are."""


STARTS_JAVA = "--tokenizer ptb"
"""Such commands are left to `make nightly`: what they start needs ten seconds."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with mock_thread(["--drafter", "good"]) as server:
        yield server.base_url


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SNELLEN_DATA", raising=False)
    return tmp_path


class Reader:
    """Someone who types in a page from top to bottom."""

    def __init__(self, address: str, java: bool = False) -> None:
        self.address, self.java = address, java
        self.servers: list[subprocess.Popen[str]] = []

    def read(self, block: Block) -> None:
        """Run one block."""
        if block.kind == "python":
            run_python(block)
            return
        for command in commands_of(block):
            self.type_in(command, block)

    def type_in(self, command: str, block: Block) -> None:
        """Run one command and check its exit code, or what stands for it."""
        words = shlex.split(self.fill_in(command), comments=True)
        if any(mark in command and not shutil.which(program) for mark, program in MISSING.items()):
            return
        if STARTS_JAVA in command and not self.java:
            return
        if words[0] == "pip":
            named = re.findall(r"\[([\w,-]+)\]", command)
            assert all(extra in EXTRAS for names in named for extra in names.split(",")), (block.name, command)
        elif words[0] == "make":
            assert words[1] in TARGETS, (block.name, command)
        elif words[0] == "python":
            done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (block.name, command, done.stderr[-2000:])
        elif words[:2] in (["snellen", "view"], ["snellen", "mock-server"]) and not ENDS.intersection(words):
            self.start(words[1:])
        elif words[:3] == ["snellen", "curate", "review"]:
            review(self.start(words[1:]))
        else:
            assert words[0] == "snellen", (block.name, command, "neither a command we know nor marked")
            with warnings.catch_warnings():
                if words[1] == "train":  # what trainers warn of is not ours to mend
                    warnings.simplefilter("ignore")
                code = run_command(words[1:])
            assert code == 0, (block.name, command, code)

    def fill_in(self, command: str) -> str:
        """Replace what a reader replaces, and make it short."""
        command = command.partition("   #")[0].replace("~/", f"{Path.home()}/")
        added = [flags for pattern, flags in SHORTER if re.search(pattern, command)]
        for placeholder, value in PLACEHOLDERS.items():
            command = command.replace(placeholder, value)
        if "CHECKPOINT" in command:
            command = command.replace("CHECKPOINT", tiny_checkpoint())
        command = re.sub(r"runs/\S*…\S*", lambda match: newest(match[0].replace("…", "*")), command)
        return ADDRESSES.sub(self.address, " ".join([command, *added]))

    def start(self, words: list[str]) -> str:
        """Start what serves until it is stopped; return the line in which it says where."""
        words = [word for word in words if word not in ("--port", "8000", "--open")]
        server = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.servers.append(server)
        assert server.stdout is not None
        line = next((line for line in server.stdout if "http://" in line), "")
        assert line, (words, "did not say where it answers")
        if words[0] == "mock-server":
            self.address = re.search(r"http://[\w.:]+/v1", line)[0]  # type: ignore[index]
        return line

    def close(self) -> None:
        for server in self.servers:
            server.terminate()
            server.wait(timeout=20)
            if server.stdout is not None:
                server.stdout.close()


def run_command(words: list[str]) -> Any:
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code


def newest(pattern: str) -> str:
    return str(max(Path().glob(pattern), key=lambda path: path.stat().st_mtime))


def tiny_checkpoint() -> str:
    pytest.importorskip("torch")
    from tiny_checkpoints import checkpoint

    return str(checkpoint("llava"))


def run_python(block: Block) -> None:
    """Import the code as a module of its own; an expression followed by `# literal` has that value."""
    path = Path(f"block_{block.line}.py")
    path.write_text(block.code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
        for expression, said in re.findall(r"^([a-z].*?\S) +# ('[^']*'|[\d.]+)$", block.code, re.MULTILINE):
            assert eval(expression, vars(module)) == ast.literal_eval(said), (block.name, expression)
    finally:
        del sys.modules[path.stem]


def review(line: str) -> None:
    """Accept every item, as a reviewer with a browser does."""
    link = re.search(r"http://\S+", line)[0].rstrip("\",'}")  # type: ignore[index]
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    base = browser.open(link).geturl().split("?")[0].rstrip("/")  # each link has an address of its own
    for number in range(200):
        item = json.loads(browser.open(f"{base}/api/next").read())
        if not item.get("item"):
            return
        body = {"mode": "review", "item": item["item"]["id"], "action": "accept", "ticket": f"t{number}"}
        headers = {"Content-Type": "application/json", "X-Snellen": "1"}
        browser.open(urllib.request.Request(f"{base}/api/decide", json.dumps(body).encode(), headers)).read()


def test_every_block_is_run_or_shown_or_marked() -> None:
    blocks = [block for page in BLOCKS.values() for block in page]
    assert not [block.name for block in blocks if block.kind not in RUNNABLE + SHOWN], (
        "give the fence a kind: bash, console or python is run, text, toml and json are shown;"
        " what cannot run here gets <!-- needs: … --> before it"
    )
    for block in blocks:
        if block.kind == "toml":
            tomllib.loads(block.code)


def test_no_fence_escapes_the_reader() -> None:
    fences = {page.name: re.findall(r"^[ >]*```", page.read_text("utf-8"), re.MULTILINE) for page in PAGES}
    assert not [name for name, found in fences.items() if len(found) != 2 * len(BLOCKS[name])], (
        "a fence inside a list or a quote is not run: begin it at the margin"
    )


def test_a_page_is_read_as_blocks_with_their_marks() -> None:
    page = "a\n```\nx\n```\n<!-- needs: a GPU -->\n```bash\nb \\\n  c\n# d\n```\n```console\n$ e\nf\n```\n"
    blocks = blocks_of("p.md", page)
    assert [(block.line, block.kind, block.needs) for block in blocks] == [
        (2, "", ""),
        (6, "bash", "a GPU"),
        (11, "console", ""),
    ]
    assert [commands_of(block) for block in blocks[1:]] == [["b    c"], ["e"]]


@pytest.mark.parametrize(
    "command", ["snelen run x", "snellen run no-such-task --model blind/first", "pip install '.[nix]'", "make nix"]
)
def test_a_command_that_does_not_work_is_noticed(command: str, home: Path) -> None:
    with pytest.raises(AssertionError):
        Reader("http://127.0.0.1:9/v1").type_in(command, Block("p.md", 1, "bash", command, ""))


@pytest.mark.parametrize("page", [name for name, blocks in BLOCKS.items() if any(b.kind in RUNNABLE for b in blocks)])
def test_a_page_works_as_it_is_printed(page: str, home: Path, address: str, capfd: pytest.CaptureFixture[str]) -> None:
    read_page(page, Reader(address))


@pytest.mark.nightly
def test_what_starts_java_works_as_it_is_printed(home: Path, address: str) -> None:
    pages = [page for page, blocks in BLOCKS.items() if any(STARTS_JAVA in block.code for block in blocks)]
    assert pages
    for page in pages:
        read_page(page, Reader(address, java=True))


def read_page(page: str, reader: Reader) -> None:
    WORLDS.get(page, lambda: None)()
    try:
        for block in BLOCKS[page]:
            if block.kind in RUNNABLE and not block.needs:
                reader.read(block)
    finally:
        reader.close()
