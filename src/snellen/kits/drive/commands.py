"""`snellen serve`, `mcp`, `ctl` and `skill`: each a few lines around the workbench."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Any

import click

from ...cli.options import COUNT, FILE, FROM_ZERO, PATH, add_options, defaulted, flag, json_flag, print_either
from ...core.errors import MissingExtra, UsageError

RUNS = click.option(
    "--runs", type=PATH, default=Path("runs"), show_default=True, help="Folder of the runs; nothing outside is touched."
)
BENCH = add_options(
    RUNS,
    click.option(
        "--models",
        type=FILE,
        help="The models that may be asked: a TOML table each (model, base_url, api_key_env, price …).",
    ),
    click.option("--data", type=PATH, help="Folder of data files that are tasks by their names."),
    flag(
        "--allow-run", "allow_run", help="Let runs be started and stopped; without it nothing but looking is offered."
    ),
    click.option("--max-cost", type=FROM_ZERO, help="What all runs together may spend; needed with --allow-run."),
)
TOKEN = "SNELLEN_SERVE_TOKEN"  # noqa: S105 - the name of a variable


def _bench(runs: Path, models: Path | None, data: Path | None, allow_run: bool, max_cost: float | None) -> Any:
    from .workbench import Workbench

    if allow_run and max_cost is None:
        raise UsageError(
            "--allow-run needs --max-cost: what all runs together may spend (0: only models that cost nothing)"
        )
    if max_cost is not None and not allow_run:
        raise UsageError("--max-cost belongs to --allow-run: without it nothing is spent")
    if data is not None and not data.is_dir():
        raise UsageError(f"--data {data} is no folder")
    return Workbench(runs, models=models, data=data, allow_run=allow_run, max_cost=max_cost or 0.0)


@click.command()
@BENCH
@defaulted("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 takes a free one.")
@defaulted(
    "--host", default="127.0.0.1", help="Address to listen at; another than this machine's own is your decision."
)
def serve(*, port: int, host: str, **settings: Any) -> None:
    """Take jobs over HTTP: plan, start, status, results, cancel; one run at a time. Needs the extra `view`.

    The token is that of SNELLEN_SERVE_TOKEN, else a new one, printed once. GET /openapi.json lists all addresses.

    \b
    snellen serve --runs runs --data benchmarks
    snellen serve --allow-run --max-cost 5 --models models.toml --port 8700
    curl -H "Authorization: Bearer TOKEN" http://127.0.0.1:8700/tasks
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("view", "snellen serve") from None
    import socket

    from .job_server import JobServer

    bench = _bench(**settings)
    own = os.environ.get(TOKEN)
    token = own or secrets.token_urlsafe(24)
    local = host in ("127.0.0.1", "localhost", "::1")
    app = JobServer(bench, token) if local else JobServer(bench, token, hosts=())
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        click.echo(f"http://{host}:{listener.getsockname()[1]}  token {'of ' + TOKEN if own else token}")
        sys.stdout.flush()
        quiet = {"log_level": "warning", "lifespan": "off", "server_header": False, "access_log": False}
        uvicorn.Server(uvicorn.Config(app, **quiet)).run(sockets=[listener])
    finally:
        listener.close()
        bench.close()


@click.command()
@BENCH
def mcp(**settings: Any) -> None:
    """Be a Model Context Protocol server over stdin and stdout: list tasks, plan with price, status, results, wrong
    answers, compare; with --allow-run also start and stop, within --max-cost.

    \b
    snellen mcp --runs runs
    snellen mcp --runs runs --allow-run --max-cost 2 --models models.toml
    """
    from .mcp_server import McpServer

    bench = _bench(**settings)
    sink, sys.stdout = sys.stdout.buffer, sys.stderr  # what a library prints must not stand between messages
    try:
        McpServer(bench).serve(sys.stdin.buffer, sink)
    finally:
        bench.close()


@click.group(invoke_without_command=False)
@click.argument("run", type=PATH)
@click.pass_context
def ctl(context: click.Context, run: Path) -> None:
    """Tell a run that goes on to pause, to resume, to send slower or with fewer workers.

    \b
    snellen ctl runs/demo pause
    snellen ctl runs/demo resume
    snellen ctl runs/demo rate 2.5
    snellen ctl runs/demo workers 4
    """
    context.obj = run


def _steer(run: Path, as_json: bool, **wish: Any) -> None:
    from .steering import steer

    state = steer(run, **wish)
    rate = f"{state['rate']:g} requests a second" if state.get("rate") else "as many requests a second as go"
    word = "paused" if state["paused"] else "going on"
    word = f"{state['parts']} parts {word}" if "parts" in state else word
    shown = (
        f"{run}: {word}; {state['workers']} of {state['most_workers']} workers, {rate}; {state['in_flight']} in flight"
    )
    print_either(state, shown, as_json)


@ctl.command()
@json_flag(help="Print how things stand as JSON.")
@click.pass_obj
def pause(run: Path, as_json: bool) -> None:
    """Send nothing more until `resume`; what is in flight comes back and is kept."""
    _steer(run, as_json, paused=True)


@ctl.command()
@json_flag(help="Print how things stand as JSON.")
@click.pass_obj
def resume(run: Path, as_json: bool) -> None:
    """Go on."""
    _steer(run, as_json, paused=False)


@ctl.command()
@click.argument("per_second", type=FROM_ZERO)
@json_flag(help="Print how things stand as JSON.")
@click.pass_obj
def rate(run: Path, per_second: float, as_json: bool) -> None:
    """Send so many requests a second; 0 is as many as go."""
    _steer(run, as_json, rate=per_second)


@ctl.command()
@click.argument("count", type=COUNT)
@json_flag(help="Print how things stand as JSON.")
@click.pass_obj
def workers(run: Path, count: int, as_json: bool) -> None:
    """Keep so many requests in flight, at most as many as the run began with."""
    _steer(run, as_json, workers=count)


@click.command()
@click.option(
    "--into", type=PATH, help="Write SKILL.md below this folder instead of printing it, as .assistant/skills."
)
def skill(into: Path | None) -> None:
    """Print the skill file: how a coding assistant uses Snellen well; --into writes it where yours looks for skills."""
    from importlib.resources import files

    text = (files("snellen") / "catalog" / "skills" / "snellen" / "SKILL.md").read_text("utf-8")
    if into is None:
        click.echo(text)
        return
    place = into / "snellen" / "SKILL.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, "utf-8")
    click.echo(str(place))
