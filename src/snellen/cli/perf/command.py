"""`snellen perf`: load a server with a task, search for objectives, summarize timelines, explain the metrics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..options import (
    ABOVE_ZERO,
    COUNT,
    FROM_ZERO,
    NOT_NEGATIVE,
    PATH,
    SettingsCommand,
    add_options,
    defaulted,
    flag,
    json_flag,
    setting_options,
)

PREFIXES = click.Choice(["as-is", "off", "on"])
RAMPS = click.Choice(["none", "linear", "exponential"])
EXPORTS = click.Choice(["json", "csv", "requests-csv", "prometheus"])
FINENESS, MAJORITY = click.FloatRange(0.01, 1.0), click.FloatRange(0.5, 1.0)
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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the options of `snellen perf TASK` too: they are what one looks for."""
        super().format_options(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("And of `snellen perf TASK`:")
        self.commands["run"].format_options(ctx, formatter)


@click.group("perf", cls=PerfGroup, invoke_without_command=True, epilog=EXAMPLE)
@flag("--explain", help="Print the definition of every metric and how other tools differ.")
@json_flag(help="With --explain: print the definitions as JSON.")
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


_LOAD_OPTIONS = add_options(
    click.option("-n", "--requests", "count", type=COUNT, help="Items to ask; data shorter than that goes round."),
    click.option(
        "--duration", "duration_s", type=ABOVE_ZERO, help="Seconds to send for; what is in flight may finish."
    ),
    click.option("--burstiness", type=FROM_ZERO, help="Gamma shape: 1 Poisson, <1 bursts, >1 more even, 0 constant."),
    defaulted("--arrivals", type=click.Choice(["poisson", "constant", "gamma"]), default="poisson"),
    defaulted("--warmup", type=NOT_NEGATIVE, default=8, help="Requests before the measurement, thrown away."),
    defaulted("--processes", type=NOT_NEGATIVE, default=0, help="Processes of the generator; 0 = as needed."),
    defaulted("--prefix-cache", type=PREFIXES, default="as-is", help="Salt prompts to miss or share."),
    flag("--multi-turn", help="Samples of one group are turns of one dialogue, with the model's own replies."),
    defaulted("--think", "think_s", type=FROM_ZERO, default=0.0, help="Seconds between a reply and the next turn."),
    click.option("--slo", help="Objectives, e.g. ttft=500ms,tpot=40ms: gives goodput."),
    defaulted("--input-tokens", type=COUNT, default=128, help="synthetic: words a prompt."),
    defaulted("--output-tokens", type=COUNT, default=64, help="synthetic: max_tokens."),
    defaulted("--images", type=NOT_NEGATIVE, default=0, help="synthetic: pictures a request."),
    defaulted("--image-size", default="512x512", metavar="WxH", help="synthetic: pixels."),
    defaulted("--turns", type=COUNT, default=1, help="synthetic: turns a dialogue."),
    flag("--ignore-eos", help="synthetic: ask the server (vLLM) for exactly --output-tokens."),
    click.option(
        "--pictures/--no-pictures", "draw", default=None, help="Draw SVGs (default: if the extra `plots` is installed)."
    ),
    setting_options(
        "perf",
        base_url={"help": "Where the server answers. Repeat it to spread the load over several."},
        stream={"help": "Stream replies (default); without it there is no TTFT, TPOT or ITL."},
        output_dir={"help": "Folder for timeline, replies, report and pictures."},
    ),
    json_flag(help="Print the report as JSON on stdout."),
)


@perf.command("run", cls=SettingsCommand, honours="perf", hidden=True, epilog=EXAMPLE)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK|FILE|synthetic")
@click.option("--concurrency", help="Closed loop: so many in flight; several as 1,4,16. With --rate: the cap.")
@click.option("--rate", help="Open loop: requests per second; several as 1,2,5.")
@defaulted("--ramp", type=RAMPS, default="none", help="Let the rate grow to --rate.")
@click.option("--ramp-from", type=FROM_ZERO, default=0.0, help="The rate a ramp starts from.")
@click.option("--pressure", "pressure_s", type=ABOVE_ZERO, help="Keep --concurrency in flight for so many seconds.")
@click.option("--trace", type=PATH, help="Replay: one send moment a line (seconds), or JSON lines with `timestamp`.")
@defaulted("--replay-speed", type=ABOVE_ZERO, default=1.0)
@_LOAD_OPTIONS
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


@perf.command("sweep", cls=SettingsCommand, honours="perf", epilog=EXAMPLE)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK|FILE|synthetic")
@defaulted("--by", type=click.Choice(["rate", "concurrency"]), default="rate", help="What to raise.")
@defaulted("--start", "first", type=ABOVE_ZERO, default=1.0, help="The lowest load.")
@defaulted("--ceiling", type=ABOVE_ZERO, default=4096.0, help="The highest load.")
@defaulted("--precision", type=FINENESS, default=0.05, help="Stop when the answer is known to this share.")
@defaulted("--attainment", type=MAJORITY, default=0.9, help="Share of requests that must meet all objectives.")
@_LOAD_OPTIONS
def sweep(as_json: bool, by: str, **flags: Any) -> int:
    """Find the highest load that meets the objectives, and draw the latency-throughput curve."""
    from ...api.perf import SweepSettings, run_sweep
    from .output import print_sweep
    from .settings import sweep_settings

    how = SweepSettings(by == "rate", *(flags.pop(name) for name in ("first", "ceiling", "precision", "attainment")))
    result, folder = run_sweep(sweep_settings(**flags), how)
    print_sweep(result, folder, as_json=as_json)
    return 130 if result.note.startswith("stopped") else 0


@perf.command("summarize")
@click.argument("file", type=PATH)
@defaulted("--profile", type=click.Choice(["snellen", "aisbench"]), default="snellen", help="Whose definitions.")
@defaulted("--stage", type=click.Choice(["total", "stable"]), default="total", help="Whole run or steady state.")
@click.option("--stats", help="Statistics, e.g. Average,Median,P99,P99.9.")
@click.option("--slo", help="Objectives for goodput, e.g. ttft=500ms,tpot=40ms.")
@click.option("--export", "export_as", type=EXPORTS, help="Print in another format.")
@click.option("--pictures", "pictures_dir", type=PATH, help="Folder to draw the pictures into (SVG).")
@json_flag(help="Print JSON on stdout.")
def summarize(file: Path, export_as: str | None, pictures_dir: Path | None, as_json: bool, **how: Any) -> int:
    """Compute all metrics of a timeline file (ours, guidellm's, vLLM's) or of a run folder.

    \b
    snellen perf summarize timeline.json --json --profile aisbench --stage stable
    snellen perf summarize runs/NAME --export prometheus
    """
    from ...api.look.timelines import export, read_any, summary_of
    from .output import print_summary

    timeline = read_any(file)
    summary = summary_of(timeline, **how)
    if pictures_dir is not None:
        from ...api.perf import draw

        pictures_dir.mkdir(parents=True, exist_ok=True)
        draw(pictures_dir, timeline)
    if export_as:
        sys.stdout.write(export(export_as, summary, timeline))
    else:
        print_summary(summary, as_json=as_json)
    return 0
