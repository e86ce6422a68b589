"""One sample across two to six runs to a page: the picture, the replies, what was read, how the prompts differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ...core.errors import UsageError
from ...core.markup import Child, Html, join, shorten, tag
from ...core.types import Form, Request, TrialKey
from ..pages.gallery import Shown, read_trial
from ..pages.parts import facts, head, numbers, reply_text, row
from .compare_page import Comparer, pick_trial, score_by, stored_trials, trial_mark
from .rendered_reply import explain_score
from .run_library import OpenRun, run_titles
from .shell import address, link, pager, shell, trial_address, whole_number

MOST_LINES, MOST_CHARACTERS = 400, 20_000
LONG = 60
"""An expected answer from so many characters on is a text, not a word."""


def reply_difference(shown: Shown) -> Iterator[Child]:
    """Yield how a reply differs from the expected text, where that is a text: a page read, a long answer."""
    expected, reply = (shown.sample.answers or ("",))[0], shown.prediction.text
    if not reply or not expected or not (shown.sample.form is Form.OCR or "\n" in expected or len(expected) >= LONG):
        return
    yield tag("h3", "Expected and read, line by line")
    if len(expected) + len(reply) > 2 * MOST_CHARACTERS:
        yield tag("p", f"Too long to be compared here: more than {2 * MOST_CHARACTERS:,} characters.", class_="muted")
        return
    yield line_difference(expected, reply)


def line_difference(before: str, after: str) -> Html:
    """Return two texts as one: lines that only the first has, lines that only the second has, changes inside lines."""
    first, second = before.splitlines(), after.splitlines()
    if max(len(first), len(second)) > MOST_LINES:
        return tag("p", f"Too long to be compared here: more than {MOST_LINES} lines.", class_="muted")
    rows: list[Html] = []
    for kind, a0, a1, b0, b1 in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if kind == "equal":
            rows += [tag("div", line or " ", class_="same") for line in first[a0:a1]]
        else:
            rows += _changed(first[a0:a1], second[b0:b1])
    key = tag("p", tag("del", "missing"), " ", tag("ins", "added"), class_="small muted")
    return join((tag("div", *rows, class_="difference mono", tabindex=0, role="group", aria_label="Difference"), key))


def _changed(old: Sequence[str], new: Sequence[str]) -> list[Html]:
    shared = min(len(old), len(new))
    rows = [tag("div", word_difference(a, b), class_="both") for a, b in zip(old, new, strict=False)]
    rows += [tag("div", tag("del", line or " ")) for line in old[shared:]]
    return rows + [tag("div", tag("ins", line or " ")) for line in new[shared:]]


def word_difference(before: str, after: str) -> Html:
    """Return one line with the words that were taken out and those that were put in."""
    old, new = (re.findall(r"\s+|\w+|[^\w\s]", text)[:2000] for text in (before, after))
    parts: list[Child] = []
    for kind, a0, a1, b0, b1 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = "".join(old[a0:a1]), "".join(new[b0:b1])
        if kind == "equal":
            parts.append(gone)
        else:
            parts += [tag("del", gone) if gone else None, tag("ins", come) if come else None]
    return join(parts)


MOST_PROMPT = 20_000


class _Column(NamedTuple):
    title: str
    run: OpenRun
    shown: Shown | None
    metric: str
    trials: int


def sample_page(runs: Sequence[OpenRun], comparer: Comparer, task: str, sample: str, at: str = "") -> Html:
    """Return one sample side by side; `at` is its place in the matrix, from which one walks on."""
    columns = _columns(runs, task, sample)
    first = next((column.shown for column in columns if column.shown is not None), None)
    if first is None:
        raise UsageError(f"none of these runs has a trial of sample {sample!r} in task {task!r}")
    sections = [_section(column, first) for column in columns]
    about = facts([("expected", shorten("\n".join(first.sample.answers), 400)), ("sample", sample), ("task", task)])
    parts: list[Child] = [
        tag("div", tag("h1", shorten(first.sample.question, 240)), class_="title"),
        _around(runs, comparer, TrialKey(task, sample), at),
        tag("div", _picture(columns), tag("div", about, *_note(columns)), class_="two"),
        tag("div", *sections, class_="same-sample"),
    ]
    keys = [run.key for run in runs]
    crumbs = [link("Runs", "/"), link("matrix", address("/matrix", run=keys, task=task)), sample]
    return shell(f"{sample} in {len(runs)} runs", parts, crumbs=crumbs)


def _columns(runs: Sequence[OpenRun], task: str, sample: str) -> list[_Column]:
    metrics = []
    for run in runs:
        with run.held():
            metrics.append(_metric(run, task))
    stored = [stored_trials(run, metric, task, sample) for run, metric in zip(runs, metrics, strict=True)]
    chosen = pick_trial([trials for trials in stored if trials] or [{}])
    made = []
    for title, run, metric, trials in zip(run_titles(runs), runs, metrics, stored, strict=True):
        place = chosen if chosen in trials else next(iter(trials), ("base", 0))
        with run.lock:
            shown = read_trial(run.reader, TrialKey(task, sample, *(place or ("base", 0))))
        made.append(_Column(title, run, shown, metric, len(trials)))
    return made


def _metric(run: OpenRun, task: str) -> str:
    query = "SELECT metric FROM scores WHERE +task = ? ORDER BY rowid LIMIT 1"
    found = next(run.reader.rows(query, (task,)), None)
    return str(found[0]) if found else ""


def _note(columns: Sequence[_Column]) -> Iterator[Child]:
    shown = [column.shown.prediction.key for column in columns if column.shown is not None]
    if any(column.trials > 1 for column in columns):
        same = len({(key.variant, key.repeat) for key in shown}) == 1
        which = f"{shown[0].variant}, inference {shown[0].repeat + 1}" if same else "not the same trial in every run"
        yield tag("p", f"Of several trials of this sample, shown is {which}.", class_="muted")


def _picture(columns: Sequence[_Column]) -> Html:
    for column in columns:
        if column.shown is not None and any(turn.images for turn in column.shown.request.messages):
            key = column.shown.prediction.key
            source = trial_address(column.run, key, "image", n=0)
            picture = tag("img", src=source, alt=f"What the models saw for {key.sample}", loading="lazy")
            pane = tag("div", tag("div", picture, class_="frame"), class_="pane")
            return tag(
                "div", pane, class_="stage", tabindex=0, role="group", aria_label="Picture, enlargeable", data_zoom=True
            )
    return tag("p", "No picture was sent.", class_="muted")


def _section(column: _Column, first: Shown) -> Html:
    shown = column.shown
    if shown is None:
        return tag("section", tag("h3", column.title), tag("p", "This run does not have the sample.", class_="muted"))
    explained = explain_score(shown)
    score = score_by(shown, column.metric)
    title = tag(
        "h3", trial_mark(shown, column.metric), " ", link(column.title, trial_address(column.run, shown.prediction.key))
    )
    read = facts([("read as", shorten((score.answer or score.reason or "") if score else "", 200))])
    why = tag("p", explained.sentence, class_="small why") if explained.sentence else None
    parts = (title, read, why, reply_text(shown.text, explained.span, most=1500), _scores(shown))
    return tag("section", *parts, *_prompt(shown, first), class_="card")


def _scores(shown: Shown) -> Html | None:
    if not shown.scores:
        return None
    rows = [row(one.metric, *numbers(["–" if one.value is None else f"{one.value:.3g}"])) for one in shown.scores]
    return tag("table", head("metric", ("value", "n")), tag("tbody", *rows))


def _prompt(shown: Shown, first: Shown) -> Iterator[Child]:
    """Yield how this run's prompt differs from the first run's."""
    if shown is first:
        yield tag("p", "The prompts of the others are compared with this one.", class_="muted small")
        return
    before, after = _asked(first.request), _asked(shown.request)
    pictures = [
        [image.sha256 or image.ref for turn in one.request.messages for image in turn.images] for one in (first, shown)
    ]
    if pictures[0] != pictures[1]:
        yield tag("p", "It was shown other pictures than the first.", class_="notice")
    if before == after:
        yield tag("p", "Asked the same as the first.", class_="muted small")
    elif len(before) + len(after) > 2 * MOST_PROMPT:
        yield tag("p", "Asked otherwise than the first; the prompts are too long to be compared here.", class_="muted")
    else:
        yield tag("details", tag("summary", "Asked otherwise than the first"), line_difference(before, after))


def _asked(request: Request) -> str:
    return "\n".join([*(f"{turn.role}: {turn.text}" for turn in request.messages), request.prefix])


def _around(runs: Sequence[OpenRun], comparer: Comparer, key: TrialKey, at: str) -> Html | None:
    """Return the way to the samples before and after it in the matrix."""
    place = whole_number(at, -1)
    if place < 0:
        return None
    samples = comparer.samples(runs, key.task)
    if place >= len(samples) or samples[place].sample != key.sample:
        return None
    keys = [run.key for run in runs]

    def to(step: int) -> str:
        return address("/sample", run=keys, task=key.task, sample=samples[step].sample, at=str(step))

    before = ("← Previous sample", to(place - 1)) if place else None
    after = ("Next sample →", to(place + 1)) if place + 1 < len(samples) else None
    return pager(
        before, f"sample {place + 1:,} of {len(samples):,}, those furthest apart first", after, label="Samples"
    )
