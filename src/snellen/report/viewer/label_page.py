"""A judged reply to the page on which people label it; the judge's verdict and our reading are never shown here."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.markup import Child, Html, shorten, tag
from ...core.types import TrialKey
from ...scoring.judges.judge_card import WORD, Judge
from ...scoring.judges.labels import (
    LONGEST_NAME,
    DrawnTasks,
    Labels,
    asked_judges,
    check_person,
    kept_labels,
    marked_options,
)
from ...scoring.scorers.replies import answer_text
from ...stats.prediction_powered import FEWEST_LABELS
from ..pages.gallery import Shown, read_trial
from ..pages.parts import facts, reply_text
from .run_library import OpenRun
from .shell import address, link, run_crumbs, shell
from .stage import pictures_part
from .video_line import videos_of

REPLY_SHOWN = 30_000
READ_ONLY = "This viewer only reads: start it with `snellen view --write` to label replies."


def label_page(
    run: OpenRun, judge: str, corrected: TrialKey | None = None, *, by: str = "", may_write: bool = False
) -> Html:
    """Return the page of the next reply to label for a judge, or of one whose label is corrected.

    Labels of other people than `by` are not shown: they would sway.
    """
    by = check_person(by)
    crumbs = run_crumbs(run, "labels")
    known = asked_judges(run.folder)
    if judge not in known:
        return shell(f"Labels on {run.name}", list(_choice(run, known)), crumbs=crumbs)
    drawn = run.drawn(judge)
    labels = kept_labels(run.folder, drawn.judge, by)
    key = corrected if corrected in labels else drawn.next_key(labels)
    parts: list[Child] = [tag("h1", f"Label replies that {judge} judged"), *_standing(run, drawn, labels, by)]
    if not may_write:
        parts.append(tag("p", READ_ONLY, class_="notice"))
    else:
        parts.append(_name_form(run, judge, by))
    shown = read_trial(run.reader, key) if key is not None else None
    parts += _reply(run, drawn.judge, shown, labels, by, may_write=may_write) if shown else [_all_done()]
    if may_write:
        parts.append(_score_form(run, drawn.judge, labels))
    return shell(f"Labels on {run.name}", parts, crumbs=crumbs)


def label_links(run: OpenRun) -> Html | None:
    """Return the ways to the labels of the judges that were asked about a run; None where none was."""
    known = asked_judges(run.folder)
    if not known:
        return None
    ways = [link(f"label for {name}", _address(run, name), class_="button quiet") for name in known]
    return tag("p", tag("b", "People correct a judge "), *ways, class_="bar-of-buttons")


def _address(run: OpenRun, judge: str, **more: object) -> str:
    return address(f"/run/{run.key}/label", judge=judge, **more)


def _choice(run: OpenRun, known: list[str]) -> Iterator[Child]:
    yield tag("h1", "Label judged replies")
    if not known:
        words = "No judge was asked about this run: `snellen score RUN --judge NAME --judge-model …` asks one."
        yield tag("p", words, class_="notice")
    yield label_links(run)


def _standing(run: OpenRun, drawn: DrawnTasks, labels: Labels, by: str) -> Iterator[Child]:
    """Yield how many replies have labels, and the way back to the last of them."""
    rows = []
    for task, keys in drawn.order.items():
        have = sum(key in labels for key in keys)
        rows.append(
            (task, f"{have:,} of {len(keys):,} judged replies have a label; {FEWEST_LABELS} at least are needed")
        )
    yield facts(rows)
    yield tag(
        "p", "Replies come in an order that the run draws: stop anywhere, and what is labelled is a random sample."
    )
    last = list(labels)[-1] if labels else None
    if last is not None:
        names: dict[str, object] = {"task": last.task, "sample": last.sample, "variant": last.variant}
        names |= {"repeat": last.repeat} | ({"by": by} if by else {})
        yield tag("p", link(f"Correct the last label ({last.sample})", _address(run, drawn.judge.name, **names)))


def _name_form(run: OpenRun, judge: str, by: str) -> Html:
    """Return the form by which whoever labels says a name: labels of several people are kept side by side."""
    fields = [tag("input", type="hidden", name="judge", value=judge)]
    name = tag("input", name="by", value=by, maxlength=LONGEST_NAME, class_="short")
    fields.append(tag("label", "labels are kept under the name ", name))
    return tag("form", *fields, tag("button", "Change name"), action=f"/run/{run.key}/label", class_="filters")


def _reply(run: OpenRun, judge: Judge, shown: Shown, labels: Labels, by: str, *, may_write: bool) -> Iterator[Child]:
    sample, key = shown.sample, shown.prediction.key
    asked = [("question", sample.question), ("options", "\n".join(marked_options(shown.request)))]
    asked.append(("right answer", "\n".join(sample.answers)))
    left = tag("div", tag("h2", "What it saw"), *videos_of(run, shown), pictures_part(run, shown))
    right: list[Child] = [
        tag("h2", "What was asked"),
        facts([(name, shorten(text, 8000)) for name, text in asked]),
        tag("h2", "What it answered"),
        reply_text(answer_text(shown.prediction) or "", most=REPLY_SHOWN, tall=True),
    ]
    if may_write:
        right += [tag("h2", "Your label"), _form(run, judge, key, labels.get(key), by)]
    yield tag("div", left, tag("div", *right), class_="two")


def _form(run: OpenRun, judge: Judge, key: TrialKey, label: float | None, by: str) -> Html:
    """Return the form of one label: a button a verdict, or a number of the judge's scale."""
    told: dict[str, str | int] = {"judge": judge.name, "task": key.task, "sample": key.sample}
    told |= {"variant": key.variant, "repeat": key.repeat}
    if by:
        told["by"] = by
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in told.items()]
    fields = _buttons(judge, label) if judge.verdict == WORD else _number(judge, label)
    return tag("form", *hidden, *fields, method="post", action=f"/run/{run.key}/label", class_="filters markform")


def _buttons(judge: Judge, label: float | None) -> list[Html]:
    return [
        tag("button", word, name="label", value=word, aria_pressed="true" if value == label else None)
        for word, value in judge.choices.items()
    ]


def _number(judge: Judge, label: float | None) -> list[Html]:
    (low, high), text = judge.bounds(), "" if label is None else f"{label:g}"
    field = tag("input", type="number", name="label", min=low, max=high, step="any", value=text, required=True)
    return [tag("label", f"from {low:g} to {high:g} ", field), tag("button", "Keep label")]


def _score_form(run: OpenRun, judge: Judge, labels: Labels) -> Html | None:
    if not labels:
        return None
    hidden = [
        tag("input", type="hidden", name=name, value=value) for name, value in (("judge", judge.name), ("score", "1"))
    ]
    words = tag("p", f"The run's {judge.metric}_calibrated takes the labels in when the run is scored.")
    button = tag("button", "Score the run with these labels")
    return tag("form", *hidden, words, button, method="post", action=f"/run/{run.key}/label", class_="markform")


def _all_done() -> Html:
    return tag("p", "Every judged reply has a label: nothing is left to do.", class_="notice calm")
