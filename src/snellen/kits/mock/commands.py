"""`snellen mock-server`: arguments -> a running mock server, one JSON line when it is ready, an end on SIGTERM."""

from __future__ import annotations

from typing import Any

import click
from click import option

from ...cli.options import COUNT, PATH, defaulted, flag, json_flag, print_json, repeated
from ...core.errors import UsageError

READERS = "SIGHT[:k=v,…][+STYLE]: perfect noisy lost-middle; plain verbose thinking refusing off-format."
FAULTS = "Scripted fault, e.g. 429:retry_after=2@5-9, reset@0.05, hang@first1. Repeatable."
DIALECT = "Whose words to speak: openai, azure, mistral, anthropic, gemini, vertex, bedrock."
BATCH = "How batches go: seconds=2,expire=0.3,error=0.1,reject=CODE,lose=1."
RETRY_AFTER = click.Choice(["seconds", "date", "none"])
IGNORED = ("pictures", "max_tokens", "max_completion_tokens", "stop", "temperature", "seed")
LOGPROBS = click.Choice(["ok", "shifted", "none", "error"])


@click.command("mock-server")
@option("--write-answers", "task", metavar="TASK", help="Write the answer file of a task to --answers FILE and end.")
@option("--limit", type=COUNT, help="With --write-answers: this many samples.")
@defaulted("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0 picks a free one.")
@option("--answers", type=PATH, help="Answer file (JSONL), found by question and image bytes.")
@defaulted("--reader", default="perfect", help=READERS)
@option("--drafter", help="Draft items for `snellen curate`: good, sloppy, malformed or artefact.")
@defaulted("--answer", default="A", help="Reply to a question that is not in the answer file.")
@repeated("--fault", "faults", metavar="KIND[:k=v,…][@WHEN]", help=FAULTS)
@defaulted("--seed", type=int, default=0, help="Seed of noise and of faults by probability.")
@defaulted("--ttft-ms", type=float, default=0.0, help="Time to the first token, in ms.")
@defaulted("--itl-ms", type=float, default=0.0, help="Time between tokens, in ms.")
@option("--tokens", type=COUNT, help="Stretch or cut every reply to this many tokens.")
@defaulted("--chunk-tokens", type=COUNT, default=1, help="Tokens per streamed event.")
@option("--slots", type=COUNT, help="Requests in service at once; the others queue.")
@option("--max-concurrency", type=COUNT, help="Requests admitted at once; 429 above.")
@option("--tokens-per-minute", type=float, help="Token quota; 429 above.")
@option("--requests-per-minute", type=float, help="Request quota; 429 above.")
@defaulted("--retry-after", type=RETRY_AFTER, default="seconds", help="Retry-After of the limits' 429.")
@option("--max-context", type=COUNT, help="Tokens that fit; 400 context_length_exceeded above.")
@option("--max-body-bytes", type=COUNT, help="Largest body; 413 above.")
@option("--api-key", help="Require this key; 401 without it.")
@defaulted("--model-name", "models", multiple=True, default=("mock",), help="Names that /v1/models lists. Repeatable.")
@flag("--strict-model", help="404 for a model that is not listed.")
@defaulted("--logprobs", type=LOGPROBS, default="ok", help="Log-probabilities: right, off by one, ignored, refused.")
@defaulted("--dialect", default="openai", help=DIALECT)
@repeated("--refuse", "refuses", metavar="NAME[=OTHER]", help="Refuse a parameter, as the dialect does. Repeatable.")
@repeated(
    "--ignore", "ignores", type=click.Choice(IGNORED), help="Pass over it in silence, as some servers do. Repeatable."
)
@repeated("--filter", "filters", metavar="TEXT", help="Answer requests that hold TEXT with the content filter.")
@option("--batch", "batches", metavar="KEY=VALUE,…", help=BATCH)
@option("--log", type=PATH, help="Append one JSON line per request.")
@flag("--trivial", help="Answer one constant with the least work (for benchmarks).")
@json_flag(help="Accepted for uniformity: the ready line is always JSON.")
def mock_server(port: int, trivial: bool, as_json: bool, task: str | None, limit: int | None, **arguments: Any) -> None:
    """Serve a model that needs no GPU, in any own dialect: simulated readers, timing, scripted faults, batches.

    Prints {"port", "base_url", "pid"} when ready and runs until SIGTERM or Ctrl-C.

    \b
    snellen mock-server --write-answers eyechart --answers answers.jsonl
    snellen mock-server --port 8000 --answers answers.jsonl --reader noisy:px50=8
    snellen mock-server --fault 429:retry_after=2@5-9 --fault reset@0.02 --log seen.jsonl
    """
    from . import library as mock

    if task is None:
        mock.serve_mock(port, arguments, print_json, trivial=trivial)
        return
    path = arguments["answers"]
    if path is None:
        raise UsageError("--write-answers needs --answers FILE to write to")
    print_json({"answers": str(path), "entries": mock.write_answer_file(task, path, arguments["seed"], limit)})
