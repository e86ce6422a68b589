"""A key appears in none of the outputs: not in files, logs, tracebacks or process lists, not after a crash, whoever quotes it."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from command_line import run_command
from figures import note_figure
from waiting import CEILING_S, wait_until
from workshop_fixtures import write_sources

CANARY = "sk-canary-0815/4711+zebra"
FORMS = (CANARY, quote(CANARY, safe=""), base64.b64encode(CANARY.encode()).decode(), "canary-0815")
COMMAND = [sys.executable, "-X", "faulthandler", "-c", "from snellen.cli.main import main; main()"]


class Parrot(BaseHTTPRequestHandler):
    """Quotes the key it was given in every error, reply and header, in all the forms a server might."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": "mock"}], "object": "list"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1  # type: ignore[attr-defined]
        key = (self.headers.get("Authorization") or "").removeprefix("Bearer ").removeprefix("Basic ")
        told = f"A. You sent {key}, that is {quote(key, safe='')} or {base64.b64encode(key.encode()).decode()}"
        turn = self.server.asked % 5  # type: ignore[attr-defined]
        if turn < 2:
            message = {"role": "assistant", "content": told, "reasoning_content": told}
            self.answer(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": told})
        elif turn == 2:
            self.answer(400, {"error": {"message": told, "code": key, "type": told}})
        elif turn == 3:
            self.answer(500, {"error": told, "detail": [key]})
        else:
            self.send(502, f"<html>{told}</html>".encode(), "text/html")

    def answer(self, status: int, content: dict[str, Any]) -> None:
        self.send(status, json.dumps(content).encode(), "application/json")

    def send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("X-Key", self.headers.get("Authorization") or "")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def parrot() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Parrot) as server:
        server.asked = 0  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def ways(home: Path, port: int) -> dict[str, tuple[list[str], dict[str, str]]]:
    """How a key may be given: arguments and environment."""
    (home / "secret").mkdir()
    (home / "secret" / "key.txt").write_text(CANARY + "\n")
    plain = f"http://127.0.0.1:{port}/v1"
    return {
        "environment": (["--base-url", plain, "--api-key-env", "MY_KEY"], {"MY_KEY": CANARY}),
        "usual variable": (["--base-url", plain], {"OPENAI_API_KEY": CANARY}),
        "file": (["--base-url", plain, "--api-key-file", str(home / "secret" / "key.txt")], {}),
        "argument": (["--base-url", plain, "--api-key", CANARY], {}),
        "userinfo": (["--base-url", f"http://user:{quote(CANARY, safe='')}@127.0.0.1:{port}/v1"], {}),
        "query": (["--base-url", f"{plain}?api_key={quote(CANARY, safe='')}"], {}),
        "model argument": (["--base-url", plain, "--model-arg", f"api_key={CANARY}"], {}),
    }


REFUSED = ("query", "model argument")


def commands(home: Path) -> dict[str, list[str]]:
    rows = [{"id": str(n), "question": f"Is it {n}?", "options": ["yes", "no"], "answer": "A"} for n in range(12)]
    (home / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    few = ["--max-workers", "2", "--max-retries", "1", "--model", "openai/mock"]
    return {
        "run": ["run", str(home / "data.jsonl"), *few, "-o", "OUT"],
        "stream": ["run", str(home / "data.jsonl"), *few, "-o", "OUT", "--stream", "--json"],
        "draft": ["curate", "draft", str(write_sources(home, 3)), "OUT", "--max-workers", "2", "--model", "openai/mock"],
        "perf": ["perf", str(home / "data.jsonl"), "--concurrency", "2", "--no-pictures", "--model", "openai/mock", "-o", "OUT"],
    }  # fmt: skip


def said(home: Path, name: str, arguments: list[str], extra: dict[str, str], capfd: pytest.CaptureFixture[str]) -> int:
    """Run a command; what it prints goes to files beside its folder."""
    folder = home / name.replace(" ", "-")
    told = [str(folder) if argument == "OUT" else argument for argument in arguments]
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in {**extra, "SNELLEN_CACHE_DIR": f"{folder}-cache"}.items():
            patch.setenv(variable, value)
        code = run_command(told)
    for ending, text in zip(("out", "err"), capfd.readouterr(), strict=True):
        Path(f"{folder}.{ending}").write_text(text)
    return code


def leaks(home: Path) -> list[str]:
    """Return every file below a folder that shows the key, but for the one that holds it."""
    found = []
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.parent.name != "secret":
            content = path.read_bytes().decode("latin-1")
            found += [f"{path.relative_to(home)}: {form}" for form in FORMS if form in content]
    return found


def test_no_file_of_any_command_shows_the_key(
    parrot: ThreadingHTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told, files = commands(tmp_path), 0
    for way, (flags, extra) in ways(tmp_path, parrot.server_port).items():
        for name, arguments in told.items():
            if way not in ("environment", "userinfo", "argument") and name != "run":
                continue  # the ways meet before the commands part
            if (name, way) == ("draft", "argument"):
                continue  # it takes no key on its command line
            code = said(tmp_path, f"{way} {name}", [*arguments, *flags], extra, capfd)
            assert (code == 2) == (way in REFUSED), (way, name, code)
    assert parrot.asked > 50, "the server was asked, and quoted the key"  # type: ignore[attr-defined]
    assert leaks(tmp_path) == []
    files = sum(1 for path in tmp_path.rglob("*") if path.is_file())
    assert files > 60
    note_figure(
        "fault",
        "a key given in 7 ways to a server that quotes it in every reply",
        f"{files} files of run, perf and draft: 0 hits in 4 forms; refused where it would be stored",
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGINT])
def test_no_crash_shows_the_key(mock_server: Any, tmp_path: Path, number: int) -> None:
    server = mock_server("--ttft-ms", 50, "--api-key", CANARY.replace("canary", "c" + "anary"))
    words = ["perf", "synthetic", "--model", "openai/mock", "--base-url", server.base_url, "--api-key-env", "MY_KEY"]
    words += ["--concurrency", "4", "--processes", "2", "--duration", "600", "--warmup", "0", "--no-pictures"]
    environment = {**os.environ, "MY_KEY": CANARY}
    with (tmp_path / "said.txt").open("wb") as both:
        told = [*COMMAND, *words, "-o", str(tmp_path / "out")]
        process = subprocess.Popen(told, stdout=both, stderr=both, env=environment, cwd=tmp_path)
        try:
            wait_until(lambda: any((tmp_path / "out").glob("timeline.partial*")), "the first requests")
            assert not [line for line in command_lines(process.pid) if any(form in line for form in FORMS)]
            process.send_signal(number)
            process.wait(CEILING_S)
        finally:
            process.kill()
    if number == signal.SIGABRT:
        assert "Fatal Python error: Aborted" in (tmp_path / "said.txt").read_text()
    assert leaks(tmp_path) == []


def command_lines(parent: int) -> list[str]:
    """Return the command lines of a process and of those it started."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                above = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                if parent in (int(folder.name), int(above)):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("latin-1"))
            except OSError:
                continue
    assert len(found) >= 2
    return found
