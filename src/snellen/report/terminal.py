"""Results to the terminal: tables with their intervals, mistakes and imports in lines, foreign text made harmless."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from ..core.counting import lower_is_better
from ..core.markup import shorten
from ..core.text import plural, show_text
from ..scoring.aggregates.headline import MACRO, SIDE_METRICS, headline, is_side_metric
from .written import RESTS_ON, percent_metric, read_share, rests_on, written, written_interval, written_share

if TYPE_CHECKING:
    from ..data.catalog import Catalog
    from ..scoring.aggregates.error_groups import ErrorGroup, Mistake

BLIND = "_blind"
"""Figures of blind rules have a table of their own."""
VARIANCE = "_variance_"
"""Parts of the variance: said in words below the table."""
ALWAYS = ("n", "read", "failed")
AT_TIMES = ("unscored", "not_yet_asked", "left_out")
"""Counts of an estimate; the last ones have a column where some are not 0."""


def plain(text: str) -> Text:
    """Return foreign text as it may be shown: no control bytes, no markup."""
    return Text(show_text(text))


def _table(title: str, names: Sequence[str], numbers: Sequence[str], style: str = "bold") -> Table:
    """Return an empty table: `names` head columns of words, `numbers` columns of figures."""
    table = Table(title=plain(title), title_justify="left", title_style=style)
    for name in names:
        table.add_column(plain(name))
    for name in numbers:
        table.add_column(plain(name), justify="right")
    return table


def results_table(name: str, result: Mapping[str, Any]) -> Table:
    """Return one task's metrics with their 95 % intervals and counts."""
    metrics = result["metrics"]
    metrics = {
        name: estimate for name, estimate in metrics.items() if VARIANCE not in name and not name.endswith(BLIND)
    }
    counts = (*ALWAYS, *told_counts(metrics.values(), AT_TIMES))
    columns = ("value", "95 % interval", "bounds", *(count.replace("_", " ") for count in counts))
    table = _table(name, ["metric"], columns)
    main = [metric for metric in metrics if not is_side_metric(metric)]
    side = [metric for metric in metrics if is_side_metric(metric) and tells_more(metric, metrics)]
    for metric in main:
        table.add_row(*estimate_cells(metric, metrics[metric], counts))
    for metric in side:
        table.add_row(*estimate_cells(metric, metrics[metric], counts), style="dim")
    return table


def tells_more(metric: str, metrics: Mapping[str, Any]) -> bool:
    """Tell whether a side metric says something its main metric does not: a rate above 0, a value that differs."""
    value = metrics[metric]["value"]
    if metric.endswith("_rate"):
        return bool(value)
    of = metric.split(MACRO, maxsplit=1)[0]
    for ending in SIDE_METRICS:
        of = of.removesuffix(ending)
    beside = metrics.get(of, {"value": None})["value"]
    return MACRO not in metric and value is not None and (beside is None or abs(value - beside) > 1e-9)


def told_counts(estimates: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the counts among `names` that are not 0 for some estimate; unknown is not 0."""
    found = list(estimates)
    return [name for name in names if any(estimate.get(name, 0) != 0 for estimate in found)]


def read_text(estimate: Mapping[str, Any]) -> str:
    """Return which share of what an estimate counts was read; of figures that do not tell, and of nothing, a dash."""
    share = read_share(estimate)
    return "–" if share is None else written_share(share)


def count_text(count: int | None) -> str:
    """Return a count, or a question mark where it is not known."""
    return "?" if count is None else f"{count:,}"


def estimate_cells(metric: str, estimate: Mapping[str, Any], counts: Sequence[str] = ALWAYS) -> list[Text | str]:
    """Return one row: name, value, interval, bounds and counts."""
    counted = (read_text(estimate) if name == "read" else count_text(estimate.get(name, 0)) for name in counts)
    ends = (written_interval(metric, estimate), written_interval(metric, estimate, "bounds"))
    return [plain(metric), written(metric, estimate), *ends, *counted]


def said_share(estimate: Mapping[str, Any]) -> str:
    """Return a share in per cent with its interval."""
    if estimate["value"] is None:
        return "–"
    ends = estimate["ci95"]
    interval = f" [{ends[0] * 100:.1f} – {ends[1] * 100:.1f}]" if ends else ""
    return f"{estimate['value'] * 100:.1f} %{interval}"


def said_points(estimate: Mapping[str, Any] | None) -> str:
    """Return a paired difference in points of a hundred with its interval; a dash where there is none."""
    if estimate is None or estimate["value"] is None:
        return "–"
    ends = estimate["ci95"]
    interval = f" [{ends[0] * 100:+.1f}, {ends[1] * 100:+.1f}]" if ends else " (no interval)"
    return f"{estimate['value'] * 100:+.1f}{interval}"


SURENESS = (
    "answers",
    "mean confidence",
    "right",
    "calibration error",
    "risk area",
    "error of the surest half",
    "of 80 %",
)
"""What is told of a source of confidence."""


def sureness_cells(one: Mapping[str, Any]) -> list[str]:
    """Return a source of confidence as cells: how sure, how right, how far apart, what is risked."""
    risk = {round(share, 1): error for share, error in one["risk"]}
    shares = [f"{value * 100:.1f} %" for value in (one["confidence"], one["accuracy"])]
    figures = [said_share(one["ece"]), said_share(one["aurc"])]
    return [count_text(one["n"]), *shares, *figures, *(f"{risk[share] * 100:.1f} %" for share in (0.5, 0.8))]


def sureness_tables(result: Mapping[str, Any]) -> Iterator[Table]:
    """Yield how sure and how right answers were; nothing where nobody told how sure."""
    if not result.get("sureness"):
        return
    table = Table(title="how sure, and how right", title_justify="left", title_style="dim")
    table.add_column("by")
    for column in SURENESS:
        table.add_column(column, justify="right")
    for one in result["sureness"]:
        table.add_row(one["source"], *sureness_cells(one))
    yield table


def group_tables(result: Mapping[str, Any], most: int = 12) -> Iterator[Table]:
    """Yield one table for each key that has a few groups."""
    for key, groups in result.get("groups", {}).items():
        if 2 <= len(groups) <= most:
            yield _group_table(key, groups)


def _group_table(key: str, groups: Mapping[str, Mapping[str, Any]]) -> Table:
    metrics = [metric for metric in next(iter(groups.values())) if not metric.endswith(SIDE_METRICS)]
    first = [estimates[metrics[0]] for estimates in groups.values()]
    unread = any(read_share(estimate) not in (None, 1.0) for estimate in first)
    counts = ("n", *(["read"] if unread else []), *told_counts(first, ("failed", *AT_TIMES)))
    told_as = ["trials" if name == "n" else name.replace("_", " ") for name in counts]  # a tag may be called "n"
    table = _table(f"by {key}", [key], [*metrics, *told_as], "dim")
    for value, estimates in groups.items():
        shown = [with_interval(metric, estimates[metric]) for metric in metrics]
        one = estimates[metrics[0]]
        told = (read_text(one) if name == "read" else count_text(one.get(name, 0)) for name in counts)
        table.add_row(plain(value), *shown, *told)
    return table


def summary_table(results: Mapping[str, Any]) -> Table:
    """Return one line a task: its headline with the interval, on how many trials it rests, and how many were lost."""
    table = Table(title="all tasks", title_justify="left", title_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("metric", overflow="fold")
    for name in ("value", "95 % interval", *RESTS_ON):
        table.add_column(name, justify="right", no_wrap=True)
    for task, result in results["tasks"].items():
        metric, estimate = headline(result)
        cells = (written(metric or "", estimate), written_interval(metric or "", estimate))
        table.add_row(plain(task), plain(metric or "–"), *cells, *map(count_text, rests_on(estimate)))
    return table


def dimension_means(
    tasks: Mapping[str, Mapping[str, Any]], dimensions: Mapping[str, str]
) -> dict[str, tuple[float, int]]:
    """Return dimension -> (mean of its tasks' headlines, number of tasks); every task weighs the same.

    Tasks whose headline is better when lower (pixels, error rates) or no share (CIDEr, points) are left out: they have
    no place in a mean.
    """
    values: dict[str, list[float]] = {}
    for task, result in tasks.items():
        name, estimate = headline(result)
        if name is None or estimate["value"] is None or not dimensions.get(task):
            continue
        if percent_metric(name, {"value": estimate["value"]}) and not lower_is_better(name):
            values.setdefault(dimensions[task], []).append(estimate["value"])
    return {dimension: (fmean(of_tasks), len(of_tasks)) for dimension, of_tasks in values.items()}


def dimension_table(means: Mapping[str, tuple[float, int]]) -> Table:
    """Return one row a dimension, and their mean."""
    table = Table("dimension", "tasks", "mean", title="by dimension", title_justify="left", title_style="bold")
    for dimension, (mean, count) in means.items():
        table.add_row(plain(dimension), str(count), f"{mean * 100:.1f} %")
    average = sum(mean for mean, _ in means.values()) / len(means)
    table.add_row("average of dimensions", "", f"{average * 100:.1f} %", style="bold")
    return table


def with_interval(metric: str, estimate: Mapping[str, Any]) -> str:
    """Return a value as it is written, with its interval where it has one."""
    interval = f" [{written_interval(metric, estimate)}]" if estimate.get("ci95") else ""
    return written(metric, estimate) + interval


class Published(Struct, frozen=True, forbid_unknown_fields=True):
    """A card of catalog/published: figures in per cent, for orientation; without a card, no rows."""

    title: str = ""
    metrics: tuple[str, ...] = ("Rh", "Rcot", "Ro", "Cf", "Cb")
    rows: list[dict[str, Any]] = []
    source: str = ""
    convention: str = ""
    note: str = ""


def published_for(catalog: Catalog, task: str, metrics: Mapping[str, Any]) -> Published | None:
    """Return the card of a task or of its family (`cure-cot` belongs to `cure`); None where there is nothing."""
    families = sorted(catalog.names("published"), key=len, reverse=True)
    name = next((family for family in families if task == family or task.startswith(f"{family}-")), None)
    if name is None:
        return Published() if any(metric.endswith(BLIND) for metric in metrics) else None
    from ..core.config import convert  # few tasks have a card

    return convert(catalog.card("published", name), Published, f"published card {name!r}")


def comparison_rows(
    metrics: Mapping[str, Any], card: Published, model: str
) -> list[tuple[str, dict[str, float | None]]]:
    """Return (name, metric -> per cent): the model first, then blind rules, then the published rows."""
    own = {name: _per_cent(metrics.get(name)) for name in card.metrics}
    rules: dict[str, dict[str, float | None]] = {}
    for key in metrics:
        if key.endswith(BLIND):
            name, _, rule = key.removesuffix(BLIND).partition("_")
            rules.setdefault(f"rule {rule}, blind", {})[name] = _per_cent(metrics[key])
    published = [(f"{row['name']} (published)", {name: row.get(name) for name in card.metrics}) for row in card.rows]
    return [(model, own), *rules.items(), *published]


def comparison_table(metrics: Mapping[str, Any], card: Published, model: str) -> Table:
    """Return the rows as a table, with what must be said about them below."""
    convention = f" ({card.convention})" if card.convention else ""
    table = Table(title=plain(f"beside it, in per cent{convention}"), title_justify="left", title_style="dim")
    if card.rows:
        table.caption, table.caption_justify = plain(f"{card.note} Published: {card.source}."), "left"
    table.add_column("")
    for name in card.metrics:
        table.add_column(plain(name), justify="right")
    for name, values in comparison_rows(metrics, card, model):
        table.add_row(
            plain(name), *("–" if (value := values.get(metric)) is None else f"{value:.1f}" for metric in card.metrics)
        )
    return table


def _per_cent(estimate: Mapping[str, Any] | None) -> float | None:
    value = estimate["value"] if estimate else None
    return None if value is None else 100.0 * value


NAMED = 3
"""Groups that the line after a run names."""
EXAMPLES = 3
"""Trials that a group shows."""


def error_line(groups: Sequence[ErrorGroup]) -> str:
    """Return the largest groups in one line; nothing where every answer is right, or nothing explains them."""
    if not any(group.kind != "other" for group in groups):
        return ""
    total = sum(len(group.trials) for group in groups)
    named = [f"{group.title} {len(group.trials):,}" for group in groups[:NAMED]]
    rest = total - sum(len(group.trials) for group in groups[:NAMED])
    return f"{total:,} not right: {' · '.join([*named, *([f'more {rest:,}'] if rest else [])])}"


def next_step(groups: Sequence[ErrorGroup]) -> str:
    """Return what to do about the largest group for which something can be done, if it holds a tenth of all."""
    return next((f"{group.title}: {group.step}" for group in groups if group.step and group.share >= 0.1), "")


def error_table(task: str, groups: Sequence[ErrorGroup]) -> Table:
    """Return the groups of a task with their rule, share and first examples."""
    total = sum(len(group.trials) for group in groups)
    table = Table(title=f"{task}: why {plural(total, 'answer')} {'is' if total == 1 else 'are'} not right")
    for name in ("group", "trials", "share", "when a trial is in it, and examples"):
        table.add_column(name, justify="right" if name in ("trials", "share") else "left")
    for group in groups:
        shown = "\n".join([group.rule, *(f"  {example(one)}" for one in group.trials[:EXAMPLES])])
        table.add_row(group.title, f"{len(group.trials):,}", f"{group.share:.0%}", plain(shown))
    return table


def example(one: Mistake) -> str:
    """Return a trial in a line: its sample, what was expected, what was said."""
    said = one.given if one.given is not None and one.given != one.reply else one.reply
    return f"{one.key.sample}: {shorten(' | '.join(one.expected), 40)!r} expected, {shorten(said, 60)!r} given"
