"""`snellen serve-check`: what a server can do, and which flags to use."""

from __future__ import annotations

from pathlib import Path

import click

from .options import ABOVE_ZERO, API_KEY, KEYS, MACHINE, defaulted, print_json

EXAMPLE = "\b\nExample:\n  snellen serve-check http://localhost:8000/v1"


@click.command(name="serve-check", epilog=EXAMPLE)
@click.argument("url")
@click.option("--model", help="NAME, anthropic/NAME, gemini/NAME.  [default: the only one that is served]")
@KEYS
@API_KEY
@defaulted("--within", "within_s", type=ABOVE_ZERO, default=10.0, help="Seconds for everything.")
@MACHINE
def serve_check(
    *,
    url: str,
    model: str | None,
    api_key_env: str | None,
    api_key_file: Path | None,
    api_key: str | None,
    within_s: float,
    as_json: bool,
) -> int:
    """Ask the server at URL for chat, pictures, streaming and likelihoods, and say what to give `snellen run`.

    Exit 3 if it answers no question at all.
    """
    from ..api.server_probes import look_at_server
    from .run import read_key

    facts = look_at_server(url, model, read_key(api_key, api_key_env, api_key_file), within_s)
    if as_json:
        print_json(facts._asdict() | {"probes": [probe._asdict() for probe in facts.probes]})
    else:
        for probe in facts.probes:
            click.echo(f"{'ok ' if probe.ok else ' – '} {probe.what:16} {probe.text}")
        if facts.flags:
            click.echo(f"\nsnellen run TASK {' '.join(facts.flags)}")
    return 0 if any(probe.what == "chat" and probe.ok for probe in facts.probes) else 3
