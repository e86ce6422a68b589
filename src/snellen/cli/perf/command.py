"""`snellen perf`: load a server with a task, search for objectives, summarize timelines, explain the metrics."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Column, Table

from ...api.perf import SYNTHETIC, LoadPlan, PerfReport, PerfSettings, Sweep, Synthetic, sweep_table
from ...api.timelines import explain_metrics, parse_objectives, read_trace
from ...core.errors import UsageError
from ...report.console import WholeConsole
from ...report.pages.perf_page import value_words
from ...report.terminal import plain
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
    print_json,
    setting_options,
)
from ..run import make_settings

LATENCIES = ("TTFT", "TTFTScheduled", "TPOT", "ITL", "E2EL", "E2ELScheduled", "QueueTime")
FIGURES = {
    "requests ok": "Success Requests",
    "failed": "Failed Requests",
    "cancelled": "Cancelled Requests",
    "requests/s": "Request Throughput",
    "output tokens/s": "Output Token Throughput",
    "input tokens/s": "Input Token Throughput",
    "mean in flight": "Concurrency",
    "goodput, requests/s": "Goodput",
    "goodput share": "Goodput Share",
}
SHOWN_STATS = ("Average", "Median", "P90", "P99", "P99.9", "N")


def print_summary(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a summary."""
    if as_json:
        print_json(summary)
        return
    console = WholeConsole()
    console.print(_metrics_table(summary))
    figures = Table("load", "", "unit")
    for name, value in summary["common"].items():
        figures.add_row(name, _number(value), summary["units"].get(name, ""))
    console.print(figures)
    for note in summary["notes"]:
        console.print(plain(f"note: {note}"))


def _metrics_table(summary: Mapping[str, Any]) -> Table:
    known: dict[str, float] = next(iter(summary["metrics"].values()), {})
    stats = [stat for stat in SHOWN_STATS if stat in known] if len(known) > len(SHOWN_STATS) else list(known)
    table = Table(Column("metric", no_wrap=True), *stats, title=f"{summary['profile']}, {summary['stage']}")
    for name, row in summary["metrics"].items():
        unit = summary["units"].get(name, "")
        scale, unit = (1000, "ms") if unit == "s" else (1, unit)
        label = name if unit.startswith("token") else f"{name}, {unit}"
        table.add_row(label, *(_number(row[stat] * (1 if stat == "N" else scale)) for stat in stats))
    return table


def _number(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.1f}" if abs(value) < 10_000 else f"{value:,.0f}"


def print_report(report: PerfReport, *, as_json: bool) -> None:
    """Print a measurement: one line a level, then what must be known to trust it."""
    if as_json:
        print_json(report)
        return
    console = WholeConsole()
    measured = [level for level in report.levels if level.get("total")]
    table = Table("", *(level["level"] for level in measured), title=f"{report.task} · {report.model}")
    for row in (*_figures(measured), *_latencies(measured)):
        table.add_row(*row)
    console.print(table)
    for level in report.levels:
        for line in _remarks(level):
            console.print(plain(f"{level['level']}: {line}"))
    if report.interrupted:
        console.print(plain("stopped by hand: the report holds what was measured until then"))
    console.print(plain(f"report {report.folder / 'perf.json'}"))


def _remarks(level: Mapping[str, Any]) -> Iterator[str]:
    yield from level.get("notes", ())
    for kind, count in ((level.get("total") or {}).get("errors") or {}).items():
        yield f"{count} × {kind}"
    if level.get("value"):
        told = {name: value for name, value in level["value"].items() if value not in (None, "")}
        yield ", ".join(f"{name} {value_words(name, value) or _number(value)}" for name, value in told.items())


def _figures(levels: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the figures of the load: one line a figure, one cell a level."""
    common = [level["total"]["common"] for level in levels]
    steady = [(level.get("steady") or {}).get("common", {}).get("Request Throughput") for level in levels]
    for label, name in FIGURES.items():
        if any(name in table for table in common):
            yield [label, *(_number(table.get(name)) for table in common)]
    yield ["requests/s, steady state", *map(_number, steady)]


def _latencies(levels: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield median and P99 of every latency, in milliseconds."""
    for name, (label, stat) in product(LATENCIES, (("p50", "Median"), ("p99", "P99"))):
        values = [level["total"]["metrics"].get(name, {}).get(stat) for level in levels]
        if any(value is not None for value in values):
            yield [f"{name} {label}, ms", *(_number(None if value is None else value * 1000) for value in values)]


def print_sweep(sweep: Sweep, folder: Path, *, as_json: bool) -> None:
    """Print the points of a sweep and its answer."""
    if as_json:
        print_json({**msgspec.to_builtins(sweep), "folder": str(folder)})
        return
    console = WholeConsole()
    rows = sweep_table(sweep)
    headings = list(rows[-1]) if rows else []
    table = Table(*(f"{key} ms" if " " in key else key for key in headings), title=f"load in {sweep.unit}")
    for row in rows:
        table.add_row(*(_cell(key, row.get(key)) for key in headings))
    console.print(table)
    for line in _conclusion(sweep):
        console.print(plain(line))
    console.print(plain(f"report {folder / 'sweep.json'}"))


def _conclusion(sweep: Sweep) -> Iterator[str]:
    bounds = ", ".join(f"{name} ≤ {bound * 1000:g} ms" for name, bound in sweep.objectives.items())
    best = f"{sweep.best:.4g} {sweep.unit}" if sweep.best is not None else "no load"
    yield f"{best} meets {bounds} for {sweep.attainment:.0%} of requests"
    if sweep.note:
        yield f"note: {sweep.note}"


def _cell(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value * 1000 if " " in key and value is not None else value)


def print_definitions(*, as_json: bool) -> None:
    """Print what every metric means."""
    meanings = explain_metrics()
    if as_json:
        print_json(meanings)
        return
    console = WholeConsole()
    for title, key in (("of each request", "metrics"), ("of the load", "common")):
        _print_rows(console, Table("metric", "unit", "meaning", title=title), meanings[key])
    console.print(plain(meanings["steady"]))
    console.print(plain(meanings["file"]))
    heading = "how its figure differs from ours (--profile aisbench gives its own)"
    _print_rows(console, Table("AISBench", heading), meanings["aisbench"])


def _print_rows(console: WholeConsole, table: Table, rows: Iterable[Mapping[str, str]]) -> None:
    for row in rows:
        table.add_row(*row.values())
    console.print(table)


DEFAULT_COUNT = 200
CAN_DRAW = importlib.util.find_spec("vl_convert") is not None


def load_settings(**flags: Any) -> PerfSettings:
    """Return the settings of `snellen perf TASK`."""
    levels = _levels(flags, flags.pop("concurrency"), flags.pop("rate"), flags.pop("trace"))
    return _settings(flags, levels)


def _levels(
    flags: dict[str, Any], concurrency: str | None, rate: str | None, trace: Path | None
) -> tuple[LoadPlan, ...]:
    """Return one plan a level: several rates, or several concurrencies; without either one request at a time."""
    extra = {name: flags.pop(name) for name in ("ramp", "ramp_from", "pressure_s", "replay_speed")}
    slots = [int(number) for number in parse_numbers(concurrency, "--concurrency")]
    rates: list[float] = parse_numbers(rate, "--rate")
    if not rates and trace is None:
        return tuple(_level(flags, extra, concurrency=number) for number in slots or [1])
    if len(slots) > 1:
        raise UsageError("--rate or --trace with several --concurrency: give one cap")
    extra |= {"concurrency": next(iter(slots), None)}
    if trace is not None:
        extra |= {"trace": read_trace(trace), "rate": next(iter(rates), None)}
        return (_level(flags, extra),)
    return tuple(_level(flags, extra, rate=number) for number in rates)


def sweep_settings(**flags: Any) -> PerfSettings:
    """Return the settings of `snellen perf sweep`; a point lasts `--duration` seconds (10) unless -n says otherwise."""
    if flags["duration_s"] is None and flags["count"] is None:
        flags["duration_s"] = 10.0
    return _settings(flags, (_level(flags, {}, concurrency=1),))


def _level(flags: dict[str, Any], extra: dict[str, Any], **what: Any) -> LoadPlan:
    burstiness = {"constant": 0.0, "poisson": 1.0}.get(flags["arrivals"], flags["burstiness"])
    if flags["arrivals"] == "gamma" and flags["burstiness"] is None:
        raise UsageError("--arrivals gamma needs --burstiness (below 1: bursts, above 1: more even)")
    if flags["arrivals"] != "gamma" and flags["burstiness"] is not None:
        burstiness = flags["burstiness"]
    same = {name: flags[name] for name in ("count", "duration_s", "warmup", "processes")}
    same |= {name: flags[name] for name in ("timeout_s", "seed") if flags[name] is not None}
    return LoadPlan(burstiness=burstiness, **(same | extra | what))


def _settings(flags: dict[str, Any], levels: tuple[LoadPlan, ...]) -> PerfSettings:
    tasks = tuple(flags["tasks"])
    is_synthetic = tasks == (SYNTHETIC,)
    run = make_settings("perf", {**flags, "tasks": () if is_synthetic else tasks})
    urls = (run.base_url, *run.more_urls) if run.base_url else ()
    return PerfSettings(
        run=msgspec.structs.replace(run, more_urls=()),
        levels=levels,
        base_urls=urls,
        synthetic=_synthetic(flags) if is_synthetic else None,
        synthetic_count=flags["limit"] or min(flags["count"] or DEFAULT_COUNT, 2000),
        objectives=parse_objectives(flags["slo"]) if flags["slo"] else {},
        draw=CAN_DRAW if flags["draw"] is None else flags["draw"],
        **{name: flags[name] for name in ("multi_turn", "think_s", "prefix_cache")},
    )


def _synthetic(flags: dict[str, Any]) -> Synthetic:
    width, cross, height = flags["image_size"].partition("x")
    if not (cross and width.isdigit() and height.isdigit()):
        raise UsageError(f"--image-size {flags['image_size']!r} is not WIDTHxHEIGHT, as in 512x512")
    sizes = {name: flags[name] for name in ("input_tokens", "output_tokens", "images", "turns", "ignore_eos")}
    return Synthetic(width=int(width), height=int(height), **sizes)


def parse_numbers(text: str | None, flag: str) -> list[float]:
    """Parse `1,2,4`, every number above zero; no text gives no numbers."""
    if text is None:
        return []
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{flag} {text!r} is not a list of numbers such as 1,2,4") from None
    if min(numbers) <= 0:
        raise UsageError(f"{flag} {text!r}: every number must be above zero")
    return numbers


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
    from ...api.timelines import export, read_any, summary_of

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
