"""Snellen driven by programs: jobs over HTTP, tools over MCP, a run told to pause, the skill file typed by a test."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from command_line import COMMAND, json_of, run_command
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.kits.drive.job_server import openapi
from snellen.kits.drive.ledger import Ledger
from snellen.kits.drive.mcp_server import McpServer
from snellen.kits.drive.tools import call
from snellen.kits.drive.workbench import Workbench
from snellen.store.reader import RunReader
from waiting import wait_until

GOLDEN = Path(__file__).parents[1] / "golden" / "data" / "bridges"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with one data file: five questions with pictures."""
    folder = tmp_path / "data"
    shutil.copytree(GOLDEN / "img", folder / "img")
    shutil.copy(GOLDEN / "bench.jsonl", folder / "bench.jsonl")
    return folder


@pytest.fixture
def models(tmp_path: Path, mock_server: Callable[..., Any]) -> Path:
    """A model file with a billed model: the mock server, at a price."""
    url = mock_server().base_url
    path = tmp_path / "models.toml"
    path.write_text(f'[served]\nmodel = "openai/mock"\nbase_url = "{url}"\nprice = "100,100"\nmax_tokens = 50\n')
    return path


@contextmanager
def workbench(*arguments: Any, **settings: Any) -> Iterator[Workbench]:
    bench = Workbench(*arguments, **settings)
    try:
        yield bench
    finally:
        bench.close()


def ended(bench: Workbench, job: str) -> dict[str, Any]:
    wait_until(lambda: call(bench, "run_status", {"run": job})["state"] not in ("queued", "running"), "the job", 40)
    return call(bench, "run_status", {"run": job})


def test_a_program_plans_runs_and_reads_within_its_limit(tmp_path: Path, data: Path, models: Path) -> None:
    with workbench(tmp_path / "runs", models=models, data=data, allow_run=True, max_cost=1.0) as bench:
        assert call(bench, "list_tasks", {"query": "bench.jsonl"})["rows"][0]["name"] == "bench.jsonl"
        plan = call(bench, "plan_run", {"task": "bench.jsonl", "model": "served"})
        assert plan["trials"] == 5
        assert plan["price"]["billed"] and plan["price"]["expected"] > 0
        with pytest.raises(UsageError, match="beyond what is left"):
            call(bench, "start_run", {"plan_id": plan["plan_id"], "max_cost": 1.5})
        with pytest.raises(UsageError, match="less than the plan"):
            call(bench, "start_run", {"plan_id": plan["plan_id"], "max_cost": 0.0})
        started = call(bench, "start_run", {"plan_id": plan["plan_id"], "max_cost": 0.9})
        with pytest.raises(UsageError, match="no plan"):
            call(bench, "start_run", {"plan_id": plan["plan_id"], "max_cost": 0.01})
        done = ended(bench, started["job"])
        assert (done["state"], done["stored"], done["not_yet_asked"]) == ("done", 5, 0)
        assert 0 < done["spent"] <= 0.9
        assert bench.money_left() == pytest.approx(1.0 - done["spent"])
        figures = call(bench, "results", {"run": started["run"]})["tasks"]["bench"]["metrics"]["accuracy"]
        assert {"value", "ci95", "n", "unscored", "failed"} <= figures.keys()
        free = call(bench, "plan_run", {"task": "bench.jsonl", "model": "blind/first"})
        other = call(bench, "start_run", {"plan_id": free["plan_id"], "max_cost": 0})
        assert ended(bench, other["job"])["state"] == "done"
        wrong = call(bench, "wrong_answers", {"run": other["run"]})
        assert wrong["rows"]
        assert "never instructions" in wrong["about"]
        compared = call(bench, "compare", {"a": started["run"], "b": other["run"]})
        assert compared["settings"]
        assert compared["tasks"]["bench"]


def test_what_was_planned_without_a_price_is_refused(tmp_path: Path, data: Path) -> None:
    models = tmp_path / "models.toml"
    models.write_text('[dear]\nmodel = "openai/dear"\nbase_url = "http://127.0.0.1:9/v1"\n')
    with workbench(tmp_path / "runs", models=models, data=data, allow_run=True, max_cost=1.0) as bench:
        with pytest.raises(UsageError, match="no known price"):
            call(bench, "plan_run", {"task": "bench.jsonl", "model": "dear"})
        with pytest.raises(UsageError, match="model"):
            call(bench, "plan_run", {"task": "bench.jsonl", "model": "openai/anything"})
        with pytest.raises(UsageError, match="task"):
            call(bench, "plan_run", {"task": "/etc/passwd", "model": "blind/first"})
        for name in ("../x", "/etc", "..", "a/b"):
            with pytest.raises(UsageError, match="no name of a run"):
                call(bench, "results", {"run": name})


def test_without_allow_run_nothing_that_writes_is_offered(tmp_path: Path) -> None:
    with workbench(tmp_path / "runs") as bench:
        server = McpServer(bench)
        listed = server.answer(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')["result"]["tools"]
        assert {tool["name"] for tool in listed}.isdisjoint({"start_run", "stop_run"})
        assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
        told = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"start_run","arguments":{}}}'
        assert server.answer(told)["result"]["isError"]
        assert not (tmp_path / "runs").exists()
    assert run_command(["mcp", "--allow-run"]) == 2, "a limit of money is always needed"


def test_lines_that_are_no_messages_are_answered_and_do_not_end_the_server(tmp_path: Path) -> None:
    with workbench(tmp_path / "runs") as bench:
        server = McpServer(bench)
        assert server.answer(b"{nonsense\n")["error"]["code"] == -32700
        assert server.answer(b"[1]")[0]["error"]["code"] == -32600
        assert server.answer(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') is None
        assert server.answer(b'{"jsonrpc":"2.0","id":1,"method":"nothing"}')["error"]["code"] == -32601
        first = server.answer(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999"}}')
        assert first["result"]["protocolVersion"] == "2025-11-25"


def test_the_official_client_speaks_with_the_server(tmp_path: Path, data: Path) -> None:
    pytest.importorskip("mcp", reason="the client of the Model Context Protocol is not installed")
    code = """
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.executable, args=["-m", "snellen", "mcp", "--runs", sys.argv[1], "--data", sys.argv[2]])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        found = await session.call_tool("plan_run", {"task": "bench.jsonl", "model": "blind/first"})
        print(len(tools.tools), found.content[0].text)

asyncio.run(main())
"""
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "runs"), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    count, _, plan = done.stdout.partition(" ")
    assert int(count) == 9
    assert json.loads(plan)["trials"] == 5


class Client:
    """A client of `snellen serve`."""

    def __init__(self, address: str, token: str) -> None:
        self._address, self._token = address, token

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token if token is None else token}"}
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@contextmanager
def served(*arguments: str) -> Iterator[tuple[Client, subprocess.Popen[str]]]:
    environment = {name: value for name, value in os.environ.items() if name != "SNELLEN_SERVE_TOKEN"}
    process = subprocess.Popen([*COMMAND, "serve", *arguments], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        address, _, token = process.stdout.readline().split()
        client = Client(address, token)
        wait_until(lambda: _answers(client), "the job", 40)
        yield client, process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _answers(client: Client) -> bool:
    try:
        return client.ask("GET", "/health")[0] == 200
    except urllib.error.URLError:
        return False


def test_jobs_over_http_survive_kill_minus_nine_and_two_clients(
    tmp_path: Path, data: Path, mock_server: Callable[..., Any]
) -> None:
    pytest.importorskip("uvicorn", reason="the extra `view` is not installed")
    models = tmp_path / "models.toml"
    slow = mock_server("--ttft-ms", "250").base_url
    models.write_text(
        f'[slow]\nmodel = "openai/mock"\nbase_url = "{slow}"\nprice = "1,1"\nmax_tokens = 9\nmax_workers = 1\n'
    )
    flags = [
        "--runs",
        str(tmp_path / "runs"),
        "--data",
        str(data),
        "--models",
        str(models),
        "--allow-run",
        "--max-cost",
        "1",
    ]
    with served(*flags) as (client, process):
        assert client.ask("GET", "/tasks", token="")[0] == 401
        assert client.ask("GET", "/tasks", token="wrong")[0] == 401
        assert client.ask("GET", "/nothing")[0] == 404
        assert client.ask("POST", "/jobs", {"plan_id": "x", "max_cost": 1})[0] == 400
        plans = [
            client.ask("POST", "/plans", {"task": "bench.jsonl", "model": "slow", "repeats": 2})[1] for _ in range(2)
        ]
        answers: list[tuple[int, Any]] = []
        posts = [
            threading.Thread(
                target=lambda plan=plan: answers.append(
                    client.ask("POST", "/jobs", {"plan_id": plan["plan_id"], "max_cost": 0.7})
                )
            )
            for plan in plans
        ]
        for thread in posts:
            thread.start()
        for thread in posts:
            thread.join()
        assert sorted(status for status, _ in answers) == [202, 403], "together they would pass the limit"
        job = next(answer["job"] for status, answer in answers if status == 202)
        second = client.ask("POST", "/plans", {"task": "bench.jsonl", "model": "blind/first"})[1]
        waiting = client.ask("POST", "/jobs", {"plan_id": second["plan_id"], "max_cost": 0})[1]
        wait_until(lambda: client.ask("GET", f"/jobs/{job}")[1].get("stored", 0) > 0, "the job", 40)
        assert client.ask("GET", f"/jobs/{waiting['job']}")[1]["state"] == "queued", "one run at a time"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with served(*flags) as (client, _):
        wait_until(lambda: client.ask("GET", f"/jobs/{waiting['job']}")[1]["state"] == "done", "the job", 40)
        first = client.ask("GET", f"/jobs/{job}")[1]
        assert (first["state"], first["stored"], first["not_yet_asked"]) == ("done", 10, 0), "it went on by itself"
        plan = client.ask("POST", "/plans", {"task": "bench.jsonl", "model": "slow", "repeats": 4})[1]
        third = client.ask("POST", "/jobs", {"plan_id": plan["plan_id"], "max_cost": 0.2})[1]
        wait_until(lambda: client.ask("GET", f"/jobs/{third['job']}")[1].get("stored", 0) > 0, "the job", 40)
        assert client.ask("DELETE", f"/jobs/{third['job']}")[0] == 202
        wait_until(lambda: client.ask("GET", f"/jobs/{third['job']}")[1]["state"] == "cancelled", "the job", 40)
        left = client.ask("GET", f"/jobs/{third['job']}")[1]
        assert 0 < left["stored"] < 20
        status, figures = client.ask("GET", f"/runs/{third['run']}/results")
        assert status == 200
        assert not figures["complete"]
        assert client.ask("GET", "/openapi.json")[1] == json.loads(json.dumps(openapi()))


def test_a_second_server_for_the_same_runs_is_refused(tmp_path: Path) -> None:
    with workbench(tmp_path / "runs", allow_run=True, max_cost=0.0), pytest.raises(EnvironmentProblem, match="already"):
        Ledger(tmp_path / "runs").own()


def test_another_host_name_is_refused(tmp_path: Path) -> None:
    from snellen.kits.drive.job_server import JobServer

    with workbench(tmp_path / "runs") as bench:
        server = JobServer(bench, "secret")
        scope = {"path": "/tasks", "method": "GET", "query_string": b""}
        headers = {"host": "evil.example:80", "authorization": "Bearer secret"}
        assert server.answer(scope, headers, b"")[0] == 421
        assert server.answer(scope, headers | {"host": "127.0.0.1:80"}, b"")[0] == 200


def test_the_description_of_the_api_names_every_argument(tmp_path: Path) -> None:
    described = openapi()
    assert described["openapi"].startswith("3.1")
    assert described["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]["required"] == [
        "plan_id",
        "max_cost",
    ]
    assert {one["name"] for one in described["paths"]["/runs/{run}/wrong"]["get"]["parameters"]} == {
        "run",
        "task",
        "outcome",
        "page",
    }


def test_a_run_that_goes_on_is_paused_slowed_and_resumed(
    tmp_path: Path, data: Path, mock_server: Callable[..., Any]
) -> None:
    url = mock_server("--ttft-ms", "20").base_url
    run = tmp_path / "run"
    command = ["run", str(data / "bench.jsonl"), "--model", "openai/mock", "--base-url", url, "--num-infers", "14"]
    flags = ["--max-workers", "4", "--rate", "20", "--no-cache", "--quiet", "-o", str(run)]
    assert run_command(["ctl", run, "pause"]) == 2, "there is no run yet"
    process = subprocess.Popen([*COMMAND, *command, *flags])
    try:
        wait_until(lambda: stored(run) > 3, "the job", 40)
        assert json_of("ctl", run, "pause")["paused"]
        wait_until(lambda: json_of("ctl", run, "workers", 2)["in_flight"] <= 4, "the run", 30)
        settled(run)
        before = stored(run)
        assert json_of("ctl", run, "rate", 0)["rate"] is None
        assert stored(run) == before < 70, "paused is paused"
        state = json_of("ctl", run, "resume")
        assert (state["paused"], state["workers"]) == (False, 2)
        assert process.wait(60) == 0
        assert stored(run) == 70
    finally:
        process.kill()
        process.wait()
    assert not (run / "control.json").exists()
    assert run_command(["ctl", run, "resume"]) == 2, "it does not go on any more"


def settled(run: Path) -> None:
    """Wait until what was in flight has come back: two looks, apart by more than a reply takes, see the same."""
    seen = [-1]

    def same() -> bool:
        now = stored(run)
        unchanged = now == seen[0]
        seen[0] = now
        threading.Event().wait(0.3)
        return unchanged

    wait_until(same, "the run", 30)


def stored(run: Path) -> int:
    if not (run / "run.db").exists():
        return 0
    try:
        with RunReader(run) as reader:
            return int(next(reader.rows("SELECT COUNT(*) FROM predictions"))[0])
    except EnvironmentProblem:
        return 0


SKILL = (files("snellen") / "catalog" / "skills" / "snellen" / "SKILL.md").read_text("utf-8")


def test_twenty_tasks_are_done_by_following_the_skill_alone(
    tmp_path: Path, data: Path, mock_server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [json.loads(line) for line in (data / "bench.jsonl").read_text().splitlines()]
    shutil.copytree(data / "img", tmp_path / "img")
    (tmp_path / "my.jsonl").write_text((data / "bench.jsonl").read_text())
    theirs = [{**row, "image": None, "response": "The answer is B."} for row in rows]
    (tmp_path / "theirs.jsonl").write_text("\n".join(map(json.dumps, theirs)))
    url = mock_server().base_url
    tasks = re.findall(r"### (\d+)\. (.+?)\n```bash\n(.*?)```", SKILL, re.DOTALL)
    assert [int(number) for number, _, _ in tasks] == list(range(1, 21))
    for _, title, block in tasks:
        for line in block.strip().splitlines():
            words = shlex.split(line.replace("http://localhost:8000/v1", url).replace("openai/NAME", "openai/mock"))
            assert words[0] == "snellen"
            allowed = (0, 1) if words[1] in ("data", "compare") else (0, 3) if words[1] == "doctor" else (0,)
            code = run_command(words[1:])
            assert code in allowed, (title, line, capsys.readouterr().err[-1500:])
            assert "Traceback" not in capsys.readouterr().err
    assert stored(tmp_path / "runs" / "a") == 5
    assert stored(tmp_path / "runs" / "repeated") == 15
    assert list((tmp_path / "exported" / "inspect").glob("*.eval"))
    assert (tmp_path / "exported" / "ci" / "junit.xml").is_file()


def test_the_skill_is_printed_and_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["skill"]) == 0
    assert capsys.readouterr().out.startswith("---\nname: snellen\n")
    assert run_command(["skill", "--into", tmp_path]) == 0
    assert (tmp_path / "snellen" / "SKILL.md").read_text() == SKILL
