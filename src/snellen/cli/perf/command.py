"""`snellen perf`: load a server with a task, search for objectives, summarize timelines, explain the metrics."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

EXAMPLE = """
\b
Examples:
  snellen perf eyechart --model openai/NAME --base-url http://localhost:8000/v1 --concurrency 1,4,16
  snellen perf synthetic --input-tokens 512 --images 1 --rate 5 --duration 60 --slo ttft=500ms,tpot=40ms --model …
  snellen perf sweep synthetic --slo ttft=500ms --model …
  snellen perf summarize timeline.json --json --stage stable
"""


class PerfGroup(click.Group):
    """A group whose first word may also be a task: `snellen perf TASK` is `snellen perf run TASK`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front of a task."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help") and "--explain" not in args:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("perf", cls=PerfGroup, invoke_without_command=True, epilog=EXAMPLE)
@click.option("--explain", is_flag=True, help="Print the definition of every metric and how other tools differ.")
@click.option("--json", "as_json", is_flag=True, help="With --explain: print the definitions as JSON.")
@click.pass_context
def perf(context: click.Context, explain: bool, as_json: bool) -> int:
    """Measure serving performance: honest load, on real tasks, in one record with accuracy.

    `snellen perf TASK` makes the load; TASK is a task, a data file, or `synthetic`.
    """
    if explain:
        from .output import print_definitions

        print_definitions(as_json=as_json)
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())
    return 0


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_MODEL_OPTIONS: tuple[Decorator, ...] = (
    click.option(
        "--model", required=True, help="provider/name of a served model: openai/NAME, anthropic/NAME, gemini/NAME."
    ),
    click.option(
        "--base-url",
        "--url",
        "base_urls",
        multiple=True,
        help="Where the server answers. Repeat it to spread the load over several.",
    ),
    click.option("--api-key-env", help="Environment variable that holds the key."),
    click.option(
        "--api-key-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="File that holds the key."
    ),
    click.option("--api-key", help="The key itself (visible in process lists: prefer --api-key-env)."),
    click.option(
        "--stream/--no-stream",
        default=True,
        show_default=True,
        help="Stream replies; without it there is no TTFT, TPOT or ITL.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=600.0,
        show_default=True,
        help="Seconds a request.",
    ),
    click.option("--max-tokens", type=click.IntRange(min=1)),
    click.option("--temperature", type=float),
)
_LOAD_OPTIONS: tuple[Decorator, ...] = (
    click.option(
        "-n", "--requests", "count", type=click.IntRange(min=1), help="Items to ask; data shorter than that goes round."
    ),
    click.option(
        "--duration",
        "duration_s",
        type=click.FloatRange(min=0, min_open=True),
        help="Seconds to send for; what is in flight may finish.",
    ),
    click.option(
        "--burstiness",
        type=click.FloatRange(min=0),
        help="Gamma shape: 1 Poisson, <1 bursts, >1 more even, 0 constant.",
    ),
    click.option(
        "--arrivals", type=click.Choice(["poisson", "constant", "gamma"]), default="poisson", show_default=True
    ),
    click.option(
        "--warmup",
        type=click.IntRange(min=0),
        default=8,
        show_default=True,
        help="Requests before the measurement, thrown away.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Processes of the generator; 0 = as needed.",
    ),
    click.option(
        "--prefix-cache",
        type=click.Choice(["as-is", "off", "on"]),
        default="as-is",
        show_default=True,
        help="Salt prompts to miss or share.",
    ),
    click.option(
        "--multi-turn",
        is_flag=True,
        help="Samples of one group are turns of one dialogue, with the model's own replies.",
    ),
    click.option(
        "--think",
        "think_s",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        help="Seconds between a reply and the next turn.",
    ),
    click.option("--slo", help="Objectives, e.g. ttft=500ms,tpot=40ms: gives goodput."),
    click.option("--limit", type=click.IntRange(min=1), help="Use the first N samples of the task."),
    click.option("--seed", type=int, default=0, show_default=True),
    click.option("-p", "overrides", multiple=True, metavar="KEY=VALUE", help="Override any field of the task."),
    click.option(
        "--catalog", "catalogs", multiple=True, type=click.Path(path_type=Path), help="Folder with further cards."
    ),
    click.option(
        "--input-tokens", type=click.IntRange(min=1), default=128, show_default=True, help="synthetic: words a prompt."
    ),
    click.option(
        "--output-tokens", type=click.IntRange(min=1), default=64, show_default=True, help="synthetic: max_tokens."
    ),
    click.option(
        "--images", type=click.IntRange(min=0), default=0, show_default=True, help="synthetic: pictures a request."
    ),
    click.option("--image-size", default="512x512", show_default=True, metavar="WxH", help="synthetic: pixels."),
    click.option(
        "--turns", type=click.IntRange(min=1), default=1, show_default=True, help="synthetic: turns a dialogue."
    ),
    click.option("--ignore-eos", is_flag=True, help="synthetic: ask the server (vLLM) for exactly --output-tokens."),
    click.option(
        "-o", "--output-dir", type=click.Path(path_type=Path), help="Folder for timeline, replies, report and pictures."
    ),
    click.option(
        "--pictures/--no-pictures", "draw", default=None, help="Draw SVGs (default: if the extra `plots` is installed)."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout."),
)


def options(*groups: tuple[Decorator, ...]) -> Decorator:
    """Return a decorator that adds groups of options in order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return add


@perf.command("run", hidden=True, epilog=EXAMPLE)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK|FILE|synthetic")
@click.option("--concurrency", help="Closed loop: so many in flight; several as 1,4,16. With --rate: the cap.")
@click.option("--rate", help="Open loop: requests per second; several as 1,2,5.")
@click.option(
    "--ramp",
    type=click.Choice(["none", "linear", "exponential"]),
    default="none",
    show_default=True,
    help="Let the rate grow to --rate.",
)
@click.option("--ramp-from", type=click.FloatRange(min=0), default=0.0, help="The rate a ramp starts from.")
@click.option(
    "--pressure",
    "pressure_s",
    type=click.FloatRange(min=0, min_open=True),
    help="Keep --concurrency in flight for so many seconds.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    help="Replay: one send moment a line (seconds), or JSON lines with `timestamp`.",
)
@click.option("--replay-speed", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@click.option(
    "--price-in", type=click.FloatRange(min=0), help="Price of a million input tokens; default: the model's card."
)
@click.option("--price-out", type=click.FloatRange(min=0), help="Price of a million output tokens.")
@options(_MODEL_OPTIONS, _LOAD_OPTIONS)
def run(as_json: bool, **flags: Any) -> int:
    """Load a server with a task and report latency, throughput and accuracy. See `snellen perf --explain`."""
    from ...api.perf import run_perf
    from .output import print_report
    from .settings import load_settings

    report = run_perf(load_settings(**flags))
    print_report(report, as_json=as_json)
    if report.interrupted:
        return 130
    return 1 if any((level.get("total") or {}).get("errors") for level in report.levels) else 0


@perf.command("sweep", epilog=EXAMPLE)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK|FILE|synthetic")
@click.option(
    "--by", type=click.Choice(["rate", "concurrency"]), default="rate", show_default=True, help="What to raise."
)
@click.option(
    "--start",
    "first",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="The lowest load.",
)
@click.option(
    "--ceiling",
    type=click.FloatRange(min=0, min_open=True),
    default=4096.0,
    show_default=True,
    help="The highest load.",
)
@click.option(
    "--precision",
    type=click.FloatRange(0.01, 1.0),
    default=0.05,
    show_default=True,
    help="Stop when the answer is known to this share.",
)
@click.option(
    "--attainment",
    type=click.FloatRange(0.5, 1.0),
    default=0.9,
    show_default=True,
    help="Share of requests that must meet all objectives.",
)
@options(_MODEL_OPTIONS, _LOAD_OPTIONS)
def sweep(as_json: bool, by: str, **flags: Any) -> int:
    """Find the highest load that meets the objectives, and draw the latency-throughput curve."""
    from ...api.perf import SweepSettings, run_sweep
    from .output import print_sweep
    from .settings import sweep_settings

    how = SweepSettings(by == "rate", *(flags.pop(name) for name in ("first", "ceiling", "precision", "attainment")))
    found, folder = run_sweep(sweep_settings(**flags), how)
    print_sweep(found, folder, as_json=as_json)
    return 130 if found.note.startswith("stopped") else 0


@perf.command("summarize")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--profile",
    type=click.Choice(["snellen", "aisbench"]),
    default="snellen",
    show_default=True,
    help="Whose definitions.",
)
@click.option(
    "--stage",
    type=click.Choice(["total", "stable"]),
    default="total",
    show_default=True,
    help="Whole run or steady state.",
)
@click.option("--stats", help="Statistics, e.g. Average,Median,P99,P99.9.")
@click.option("--slo", help="Objectives for goodput, e.g. ttft=500ms,tpot=40ms.")
@click.option(
    "--export",
    "export_as",
    type=click.Choice(["json", "csv", "requests-csv", "prometheus"]),
    help="Print in another format.",
)
@click.option(
    "--pictures", "pictures_dir", type=click.Path(path_type=Path), help="Folder to draw the pictures into (SVG)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def summarize(file: Path, export_as: str | None, pictures_dir: Path | None, as_json: bool, **how: Any) -> int:
    """Compute all metrics of a timeline file (ours, guidellm's, vLLM's) or of a run folder.

    \b
    snellen perf summarize timeline.json --json --profile aisbench --stage stable
    snellen perf summarize runs/NAME --export prometheus
    """
    from .output import print_summary, read_any, summary_of

    timeline = read_any(file)
    summary = summary_of(timeline, **how)
    if pictures_dir is not None:
        from ...api.perf import draw

        pictures_dir.mkdir(parents=True, exist_ok=True)
        draw(pictures_dir, timeline)
    if export_as:
        from ...perf.export import export

        sys.stdout.write(export(export_as, summary, timeline))
    else:
        print_summary(summary, as_json=as_json)
    return 0
