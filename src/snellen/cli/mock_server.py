"""`snellen mock-server`: arguments -> a running mock server, one JSON line when it is ready, an end on SIGTERM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from ..core.errors import UsageError


@click.command("mock-server")
@click.option(
    "--write-answers", "task", metavar="TASK", help="Write the answer file of a task to --answers FILE and end."
)
@click.option("--limit", type=click.IntRange(1), help="With --write-answers: this many samples.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port on 127.0.0.1; 0 picks a free one."
)
@click.option(
    "--answers", type=click.Path(path_type=Path), help="Answer file (JSONL), found by question and image bytes."
)
@click.option(
    "--reader",
    default="perfect",
    show_default=True,
    help="SIGHT[:k=v,…][+STYLE]: perfect noisy lost-middle; plain verbose thinking refusing off-format.",
)
@click.option("--drafter", help="Draft items for `snellen curate`: good, sloppy, malformed or artefact.")
@click.option("--answer", default="A", show_default=True, help="Reply to a question that is not in the answer file.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="KIND[:k=v,…][@WHEN]",
    help="Scripted fault, e.g. 429:retry_after=2@5-9, reset@0.05, hang@first1. Repeatable.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of noise and of faults by probability.")
@click.option("--ttft-ms", type=float, default=0.0, show_default=True, help="Time to the first token, in ms.")
@click.option("--itl-ms", type=float, default=0.0, show_default=True, help="Time between tokens, in ms.")
@click.option("--tokens", type=click.IntRange(1), help="Stretch or cut every reply to this many tokens.")
@click.option("--chunk-tokens", type=click.IntRange(1), default=1, show_default=True, help="Tokens per streamed event.")
@click.option("--slots", type=click.IntRange(1), help="Requests in service at once; the others queue.")
@click.option("--max-concurrency", type=click.IntRange(1), help="Requests admitted at once; 429 above.")
@click.option("--tokens-per-minute", type=float, help="Token quota; 429 above.")
@click.option("--requests-per-minute", type=float, help="Request quota; 429 above.")
@click.option(
    "--retry-after",
    type=click.Choice(["seconds", "date", "none"]),
    default="seconds",
    show_default=True,
    help="Retry-After of the limits' 429.",
)
@click.option("--max-context", type=click.IntRange(1), help="Tokens that fit; 400 context_length_exceeded above.")
@click.option("--max-body-bytes", type=click.IntRange(1), help="Largest body; 413 above.")
@click.option("--api-key", help="Require this key; 401 without it.")
@click.option(
    "--model-name",
    "models",
    multiple=True,
    default=("mock",),
    show_default=True,
    help="Names that /v1/models lists. Repeatable.",
)
@click.option("--strict-model", is_flag=True, help="404 for a model that is not listed.")
@click.option(
    "--logprobs",
    type=click.Choice(["ok", "shifted", "none", "error"]),
    default="ok",
    show_default=True,
    help="Log-probabilities: right, off by one, ignored, refused.",
)
@click.option("--log", type=click.Path(path_type=Path), help="Append one JSON line per request.")
@click.option("--trivial", is_flag=True, help="Answer one constant with the least work (for benchmarks).")
@click.option("--json", "as_json", is_flag=True, help="Accepted for uniformity: the ready line is always JSON.")
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
