"""`snellen mock-server`: arguments -> a running mock server, one JSON line when it is ready, an end on SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
from click import option

from ..core.errors import UsageError

PATH = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)


@click.command("mock-server")
@option("--write-answers", "task", metavar="TASK", help="Write the answer file of a task to --answers FILE and end.")
@option("--limit", type=COUNT, help="With --write-answers: this many samples.")
@option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port on 127.0.0.1; 0 picks a free one."
)
@option("--answers", type=PATH, help="Answer file (JSONL), found by question and image bytes.")
@option(
    "--reader",
    default="perfect",
    show_default=True,
    help="SIGHT[:k=v,…][+STYLE]: perfect noisy lost-middle; plain verbose thinking refusing off-format.",
)
@option("--drafter", help="Draft items for `snellen curate`: good, sloppy, malformed or artefact.")
@option("--answer", default="A", show_default=True, help="Reply to a question that is not in the answer file.")
@option(
    "--fault",
    "faults",
    multiple=True,
    metavar="KIND[:k=v,…][@WHEN]",
    help="Scripted fault, e.g. 429:retry_after=2@5-9, reset@0.05, hang@first1. Repeatable.",
)
@option("--seed", type=int, default=0, show_default=True, help="Seed of noise and of faults by probability.")
@option("--ttft-ms", type=float, default=0.0, show_default=True, help="Time to the first token, in ms.")
@option("--itl-ms", type=float, default=0.0, show_default=True, help="Time between tokens, in ms.")
@option("--tokens", type=COUNT, help="Stretch or cut every reply to this many tokens.")
@option("--chunk-tokens", type=COUNT, default=1, show_default=True, help="Tokens per streamed event.")
@option("--slots", type=COUNT, help="Requests in service at once; the others queue.")
@option("--max-concurrency", type=COUNT, help="Requests admitted at once; 429 above.")
@option("--tokens-per-minute", type=float, help="Token quota; 429 above.")
@option("--requests-per-minute", type=float, help="Request quota; 429 above.")
@option(
    "--retry-after",
    type=click.Choice(["seconds", "date", "none"]),
    default="seconds",
    show_default=True,
    help="Retry-After of the limits' 429.",
)
@option("--max-context", type=COUNT, help="Tokens that fit; 400 context_length_exceeded above.")
@option("--max-body-bytes", type=COUNT, help="Largest body; 413 above.")
@option("--api-key", help="Require this key; 401 without it.")
@option(
    "--model-name",
    "models",
    multiple=True,
    default=("mock",),
    show_default=True,
    help="Names that /v1/models lists. Repeatable.",
)
@option("--strict-model", is_flag=True, help="404 for a model that is not listed.")
@option(
    "--logprobs",
    type=click.Choice(["ok", "shifted", "none", "error"]),
    default="ok",
    show_default=True,
    help="Log-probabilities: right, off by one, ignored, refused.",
)
@option("--log", type=PATH, help="Append one JSON line per request.")
@option("--trivial", is_flag=True, help="Answer one constant with the least work (for benchmarks).")
@option("--json", "as_json", is_flag=True, help="Accepted for uniformity: the ready line is always JSON.")
def mock_server(port: int, trivial: bool, as_json: bool, task: str | None, limit: int | None, **arguments: Any) -> None:
    """Serve an OpenAI-compatible model that needs no GPU: simulated readers, timing, scripted faults.

    Prints {"port", "base_url", "pid"} when ready and runs until SIGTERM or Ctrl-C.

    \b
    snellen mock-server --write-answers eyechart --answers answers.jsonl
    snellen mock-server --port 8000 --answers answers.jsonl --reader noisy:px50=8
    snellen mock-server --fault 429:retry_after=2@5-9 --fault reset@0.02 --log seen.jsonl
    """
    from ..api import mock

    if task is None:
        mock.serve_mock(port, arguments, _say, trivial=trivial)
        return
    path = arguments["answers"]
    if path is None:
        raise UsageError("--write-answers needs --answers FILE to write to")
    _say({"answers": str(path), "entries": mock.write_answer_file(task, path, arguments["seed"], limit)})


def _say(line: dict[str, Any]) -> None:
    click.echo(msgspec.json.encode(line).decode())
