"""`snellen mock-server`: arguments -> a running mock server, one JSON line when it is ready, an end on SIGTERM."""

from __future__ import annotations

import asyncio
import signal
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
    if task is not None:
        write_answer_file(task, arguments["answers"], arguments["seed"], limit)
        return
    asyncio.run(_serve(port, trivial, build_options(arguments)))


def write_answer_file(task: str, path: Path | None, seed: int, limit: int | None) -> None:
    """Write what a simulated reader may know about the samples of a task, and say how many there are."""
    from ..api.load import load_dataset
    from ..mock.answers import write_answers

    if path is None:
        raise UsageError("--write-answers needs --answers FILE to write to")
    count = write_answers(load_dataset(task, seed=seed, limit=limit), path)
    click.echo(msgspec.json.encode({"answers": str(path), "entries": count}).decode())


def build_options(arguments: dict[str, Any]) -> Any:
    """Turn the command's arguments into MockOptions; a wrong one is a UsageError that names it."""
    from ..mock.answers import AnswerBook
    from ..mock.drafter import check_style
    from ..mock.faults import parse_fault
    from ..mock.readers import parse_reader
    from ..mock.server import MockOptions
    from ..mock.wire import Pace

    values = dict(arguments)
    values["drafter"] = check_style(values["drafter"])
    answers = values.pop("answers")
    if answers is not None and not answers.is_file():
        raise UsageError(f"--answers {answers}: no such file")
    pace = Pace(values.pop("ttft_ms") / 1e3, values.pop("itl_ms") / 1e3, values.pop("chunk_tokens"))
    retry_after = values.pop("retry_after")
    return MockOptions(
        answers=AnswerBook.read(answers) if answers else None,
        reader=parse_reader(values.pop("reader")),
        faults=tuple(parse_fault(spec) for spec in values.pop("faults")),
        pace=pace,
        retry_after=None if retry_after == "none" else retry_after,
        **values,
    )


async def _serve(port: int, trivial: bool, options: Any) -> None:
    import os

    from ..mock.server import start

    running = await start(options, port, trivial=trivial)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    ready = {"port": running.port, "base_url": running.base_url, "pid": os.getpid()}
    click.echo(msgspec.json.encode(ready).decode())
    await stop.wait()
    await running.close()
