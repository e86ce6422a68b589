"""One training to its page, and all of them to the table beside the runs; followed while they train as runs are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from ...core.errors import SnellenError
from ...core.markup import Child, Html, shorten, tag
from ...core.text import plural
from ...report.pages.draw import Axis, Point, Series, plot
from ...report.pages.figures import Figure
from ...report.pages.parts import captioned, facts, figure_card, head, numbers, row, scrolled
from ...report.run_briefs import run_key
from ...report.viewer.liveness import last_written
from ...report.viewer.run_library import NotFound, RunLibrary
from ...report.viewer.shell import address, link, shell
from .training_folder import (
    CHECKPOINTS,
    FILES,
    FINISHED,
    INTERRUPTED,
    LOSS,
    METRICS,
    NO_NUMBER,
    RECORD,
    RUNNING,
    STEP,
    Line,
    OpenTraining,
    TrainingLook,
    is_training,
    plain_number,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_POINTS = 400
"""Points of a curve beyond which several steps are drawn as their mean: a screen has no more."""
DOTTED = 30
"""Points up to which each is drawn as a dot."""
Curve = list[tuple[float, float]]


class Charted(NamedTuple):
    """One figure of a training: its title and the columns it draws."""

    name: str
    title: str
    columns: tuple[str, ...]
    percent: bool = False


CHARTS = (
    Charted("loss", "Loss", ("loss",)),
    Charted("reward", "Reward", ("reward",)),
    Charted("rewards", "Rewards of both replies", ("rewards/chosen", "rewards/rejected")),
    Charted("preferred", "Preferences judged right", ("rewards/accuracies",), percent=True),
    Charted("tokens", "Tokens foretold", ("mean_token_accuracy",), percent=True),
    Charted("learning-rate", "Learning rate", ("learning_rate",)),
    Charted("gradient", "Norm of the gradient", ("grad_norm",)),
)


def training_figures(lines: Sequence[Line]) -> list[Figure]:
    """Return the figures whose columns the lines of steps have."""
    return [figure for chart in CHARTS if (figure := _figure(chart, lines)) is not None]


def column_of(lines: Sequence[Line], name: str) -> Curve:
    """Return a column by step; what is no number is left out, and told elsewhere."""
    found = ((float(line[STEP]), plain_number(line.get(name))) for line in lines)
    return [(step, value) for step, value in found if value is not None]


def thinned(curve: Curve, most: int = MOST_POINTS) -> tuple[Curve, int]:
    """Return at most so many points, each the mean of as many steps as are told, at the middle of them."""
    of = -(-len(curve) // most) if len(curve) > most else 1
    parts = [curve[start : start + of] for start in range(0, len(curve), of)] if of > 1 else []
    means = [(fmean(step for step, _ in part), fmean(value for _, value in part)) for part in parts]
    return means or curve, of


def _figure(chart: Charted, lines: Sequence[Line]) -> Figure | None:
    columns = {name: column_of(lines, name) for name in chart.columns}
    whole = {name: curve for name, curve in columns.items() if curve}
    if not whole:
        return None
    drawn = {name: thinned(curve) for name, curve in whole.items()}
    caption = _caption(whole, max(of for _, of in drawn.values()))
    drawing = _drawing(chart, {name: curve for name, (curve, _) in drawn.items()}, caption)
    rows = [{"step": step, "series": name, "value": value} for name, curve in whole.items() for step, value in curve]
    return Figure(chart.name, chart.title, caption, drawing, rows, series=tuple(whole))


def _drawing(chart: Charted, curves: dict[str, Curve], caption: str) -> Html:
    points = [point for curve in curves.values() for point in curve]
    across = Axis("step", min(points)[0], max(points)[0])
    series = [_series(name, curve) for name, curve in curves.items()]
    return plot(series, across, _upwards(points, chart), label=f"{chart.title} by step. {caption}")


def _upwards(points: Curve, chart: Charted) -> Axis:
    """Return the axis of values: it holds nothing, so that a curve falls as far as it seems to."""
    values = [value for _, value in points]
    high = 1.0 if chart.percent else max(0.0, *values)
    low = min(0.0, *values)
    return Axis(chart.title, low, high if high > low else low + 1.0, percent=chart.percent)


def _series(name: str, curve: Curve) -> Series:
    dots = [Point(*point) for point in curve] if len(curve) <= DOTTED else []
    return Series(name, dots, curve)


def _caption(whole: dict[str, Curve], of: int) -> str:
    ends = (
        f"{'' if len(whole) == 1 else f'{name}: '}{curve[0][1]:.4g} at step {curve[0][0]:,.0f}, "
        f"{curve[-1][1]:.4g} at step {curve[-1][0]:,.0f}"
        for name, curve in whole.items()
    )
    told = "; ".join(ends)
    return f"{told}." if of == 1 else f"{told}. Each point is the mean of {of:,} lines."


SAMPLE, COUNTS = "sample.txt", "feedback/preferences.json"
LAST_LINES, MOST_COLUMNS = 10, 14
MOST_TEXT = 20_000
"""Characters of a sample or of a list of counts; more is counted, not shown."""
WHOLE = 1e15
"""Whole numbers up to this are exact."""
GOES_ON = "the same command goes on"


def training_page(training: OpenTraining, runs: Sequence[tuple[str, str]] = ()) -> Html:
    """Return the page of one training; `runs` are names and addresses of what was sampled for it."""
    look = training.look()
    recipe = look.record.recipe
    chips = (f"stage {recipe.stage}", f"trainer {recipe.training.trainer}", f"base {look.record.base_name}")
    parts: list[Child] = [
        tag("h1", training.name),
        tag("ul", *(tag("li", chip, class_="chip") for chip in (*chips, look.steps)), class_="chips"),
        state_bar(training, look),
        _warnings(look),
        *_curves(training, look),
        *_last_lines(look.metrics.lines),
        *_sample(training.folder / SAMPLE),
        *_preferences(training.folder / COUNTS, runs),
        *_data(look),
        tag("h2", "Made with"),
        tag("div", facts(_facts(training, look)), class_="card"),
    ]
    live = None if look.state == FINISHED else address(f"/training/{training.key}/state")
    return shell(training.name, parts, crumbs=[link("Runs", "/"), training.name], live=live)


def state_bar(training: OpenTraining, look: TrainingLook) -> Html:
    """Return how far a training is and whether somebody trains it."""
    words, planned = look.steps, look.record.planned_steps
    bar = tag("progress", value=min(look.done, planned), max=planned, aria_label=words) if planned else None
    if look.state == FINISHED:
        done = tag("span", "✓ finished", class_="tag right")
        return tag("div", done, tag("span", f" {words}", class_="small"), role="status", class_="progress")
    if look.state == RUNNING:
        return tag("div", tag("span", f"running: {words}", class_="live"), bar, role="status", class_="progress")
    stopped = tag("span", f"■ {look.state}", class_="tag failed")
    told = tag("span", f" {_why(training, look)}", class_="small")
    return tag("div", stopped, told, bar, role="status", class_="progress stopped")


def _why(training: OpenTraining, look: TrainingLook) -> str:
    """Return how a training ended that is not over."""
    if look.state == INTERRUPTED:
        return f"{look.steps}, {look.record.events[-1]}: {GOES_ON}"
    if look.state == NO_NUMBER:
        return f"{look.steps}, {look.metrics.no_numbers[-1]}: lower the learning rate, or look at the rows of this step"
    return f"killed or failed after {look.steps}; last written {last_written(training.folder, FILES)}: {GOES_ON}"


def _warnings(look: TrainingLook) -> Html | None:
    """Return what a reader of the figures should know, what happened on the way first."""
    bad = look.metrics.no_numbers
    more = [f"and {len(bad) - 3:,} lines more whose loss or gradient is no number"] if len(bad) > 3 else []
    told = [*look.record.events, *bad[:3], *more, *look.metrics.problems]
    told += [f"{plural(look.record.data.missing, 'picture')} missing, left out"] if look.record.data.missing else []
    return tag("div", tag("ul", *(tag("li", shorten(one, 400)) for one in told)), class_="notice") if told else None


def _curves(training: OpenTraining, look: TrainingLook) -> Iterator[Child]:
    figures = training_figures(look.metrics.steps)
    if not figures:
        yield tag("p", "No step with a loss is written yet.", class_="muted")
        return
    yield tag("div", *(figure_card(figure) for figure in figures), class_="grid")
    yield tag("p", link("metrics.jsonl", f"/training/{training.key}/metrics", class_="button quiet"))


def _last_lines(lines: Sequence[Line]) -> Iterator[Child]:
    last = lines[-LAST_LINES:]
    if not last:
        return
    names = list(dict.fromkeys(name for line in last for name in line))
    shown = names[:MOST_COLUMNS]
    rest = f", {len(names) - len(shown):,} further columns in the file" if len(names) > len(shown) else ""
    caption = f"The last {plural(len(last), 'line')} of {len(lines):,}{rest}"
    body = [tag("tr", *numbers(_cell_text(line.get(name)) for name in shown)) for line in reversed(last)]
    table = captioned(caption, head(*((name, "n") for name in shown)), body)
    yield tag("div", table, class_="card")


def _cell_text(value: object) -> str:
    """Return a number to four digits, a whole one in full: steps and tokens are counted."""
    number = plain_number(value)
    if number is None:
        return "" if value is None else shorten(str(value), 60)
    return f"{number:,.0f}" if number.is_integer() and abs(number) < WHOLE else f"{number:.4g}"


def _sample(path: Path) -> Iterator[Child]:
    text = _text_of(path)
    if text:
        yield tag("h2", "What is learnt of one sample")
        yield tag("p", "Its tokens as the trainer sees them; those between ⟦ and ⟧ are learnt.", class_="muted small")
        yield tag("pre", shorten(text, MOST_TEXT), class_="reply", tabindex=0)


def _text_of(path: Path) -> str:
    """Return the beginning of a text file, whatever is in it; empty where there is none."""
    try:
        with path.open("rb") as stream:
            return stream.read(4 * MOST_TEXT).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _preferences(path: Path, runs: Sequence[tuple[str, str]]) -> Iterator[Child]:
    """Yield what preferences were made of: counts, and the runs with every sampled reply."""
    counts = _counts(path)
    if counts or runs:
        yield tag("h2", "Preferences")
    if counts:
        yield tag("div", facts(counts), class_="card")
    if runs:
        links = [link(name, to, class_="button quiet") for name, to in runs]
        yield tag("p", "Every sampled reply: ", *links, class_="bar-of-buttons")


def _counts(path: Path) -> list[tuple[str, object]]:
    text = _text_of(path)
    try:
        told: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return [(path.name, "cannot be read")]
    found = told.items() if isinstance(told, dict) else [(path.name, "is no list of counts")]
    return [(name.replace("_", " "), shorten(_spelt(value), 400)) for name, value in found]


def _spelt(value: object) -> str:
    return ", ".join(f"{n} {name}" for name, n in value.items()) or "none" if isinstance(value, dict) else str(value)


def _data(look: TrainingLook) -> Iterator[Child]:
    data = look.record.data
    words = (
        f"{plural(data.rows, 'row')} an epoch, {data.rationales:,} with a rationale, {plural(data.pictures, 'picture')}"
    )
    names = ("weight", "records", "rows", "rationales")
    body = [
        row(Path(one.path).name, *numbers(_cell_text(getattr(one, name)) for name in names)) for one in data.sources
    ]
    table = captioned(words, head("source", *((name, "n") for name in names)), body)
    yield tag("h2", "Data")
    yield tag("div", table, class_="card")


def _facts(training: OpenTraining, look: TrainingLook) -> list[tuple[str, object]]:
    record, how = look.record, look.record.recipe.training
    checkpoints = _checkpoints(training.folder / CHECKPOINTS)
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return [
        ("folder", training.folder),
        ("weights", "a LoRA adapter" if how.weights == "lora" else how.weights),
        ("batch", f"{how.batch_size} × {how.accumulate} portions"),
        ("seed", record.recipe.seed),
        ("base", ", ".join(f"{name} {value}" for name, value in record.base.items())),
        ("checkpoints", ", ".join(checkpoints)),
        ("snellen", record.snellen),
        ("versions", versions),
    ]


def _checkpoints(folder: Path) -> list[str]:
    try:
        names = [path.name for path in folder.iterdir() if path.name.startswith("checkpoint-")]
    except OSError:
        return []
    return sorted(names, key=lambda name: (len(name), name))


KNOWN: WeakKeyDictionary[RunLibrary, dict[str, OpenTraining]] = WeakKeyDictionary()
"""The trainings of every library by their keys: kept, so that a line of metrics is read once."""


def trainings_of(library: RunLibrary) -> dict[str, OpenTraining]:
    """Return the trainings seen when runs were last looked for, by their keys."""
    known = KNOWN.get(library, {})
    found = {run_key(folder): folder for folder in library.folders_with(RECORD) if is_training(folder)}
    made = {key: known.get(key) or OpenTraining(key, library.name_of(folder), folder) for key, folder in found.items()}
    KNOWN[library] = made
    return made


def training_in(library: RunLibrary, request: Request) -> OpenTraining:
    """Return the training that an address names. Raises NotFound."""
    key = request.path_params["key"]
    if key not in trainings_of(library):
        library.listed()
    found = trainings_of(library).get(key)
    if found is None:
        raise NotFound("there is no such training here")
    return found


def training(library: RunLibrary, request: Request) -> Html:
    """One training, with the ways to the runs in its folder."""
    found = training_in(library, request)
    below = [run for run in library.listed() if run.folder.is_relative_to(found.folder)]
    return training_page(found, [(run.name, f"/run/{run.key}") for run in below])


def state(library: RunLibrary, request: Request) -> Response:
    """A text that changes when a training has grown."""
    from starlette.responses import Response

    return Response(training_in(library, request).version(), media_type="text/plain")


def metrics(library: RunLibrary, request: Request) -> Response:
    """The metrics of a training as they are written."""
    from starlette.responses import FileResponse

    found = training_in(library, request)
    path = found.folder / METRICS
    if not path.is_file():
        raise NotFound("this training has written no metrics yet")
    return FileResponse(path, media_type="application/x-ndjson", filename=f"{found.key}-{METRICS}")


def listed(library: RunLibrary, text: str) -> tuple[Html | None, bool]:
    """Return the table of trainings in whose names a text is, the one written last first, and whether one is not over;
    one that cannot be read is a problem of the library."""
    rows, unfinished = [], False
    trainings = sorted(trainings_of(library).values(), key=lambda one: one.written, reverse=True)
    for training in trainings:
        try:
            look = training.look()
        except SnellenError as error:
            library.problems[f"training {training.name}"] = str(error)
            continue
        recipe = look.record.recipe
        names = " ".join((training.name, recipe.stage, recipe.training.trainer, look.record.base_name)).lower()
        if all(word in names for word in text.lower().split()):
            rows.append(_row(training, look))
            unfinished = unfinished or look.state != FINISHED
    if not rows:
        return None, False
    columns = head("training", "stage", "trainer", "base", ("last loss", "n"), "written")
    table = scrolled("Trainings", tag("caption", plural(len(rows), "training")), columns, tag("tbody", *rows))
    return tag("section", tag("h2", "Trainings"), tag("div", table, class_="card runs")), unfinished


def _row(training: OpenTraining, look: TrainingLook) -> Html:
    losses = [value for line in look.metrics.steps if (value := line[LOSS]) is not None]
    name = link(training.name, f"/training/{training.key}")
    recipe = look.record.recipe
    return tag(
        "tr",
        tag("th", name, state_bar(training, look), scope="row"),
        *(tag("td", words) for words in (recipe.stage, recipe.training.trainer, look.record.base_name)),
        tag("td", _cell_text(losses[-1]) if losses else "–", class_="n"),
        tag("td", last_written(training.folder, FILES), class_="nowrap muted"),
        class_="row",
    )
