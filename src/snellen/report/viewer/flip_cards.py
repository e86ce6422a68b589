"""Samples on which runs differ to cards: the question, the picture, and what each run answered, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core.markup import Child, Html, shorten, tag
from ...core.types import Score, TrialKey
from ...scoring.tables.table import Outcome, lower_is_better
from ..pages.gallery import Shown, read_trial
from ..pages.parts import facts, outcome_tag, reply_text
from .run_library import OpenRun
from .shell import link, trial_address

_TRIALS = (
    "SELECT p.variant, p.repeat, s.value FROM predictions p LEFT JOIN scores s ON s.task = p.task AND "
    "s.sample = p.sample AND s.variant = p.variant AND s.repeat = p.repeat AND s.metric = ? "
    "WHERE p.task = ? AND p.sample = ? ORDER BY p.variant <> 'base', p.variant, p.repeat"
)
Trials = Mapping[tuple[str, int], float | None]


class Flipped(NamedTuple):
    """A sample on which runs differ: the mean of each run over its trials, and where they first part."""

    sample: str
    values: Mapping[str, float]
    stage: str | None

    @property
    def spread(self) -> float:
        """Return how far the runs are apart."""
        return max(self.values.values()) - min(self.values.values())


class _Side(NamedTuple):
    name: str
    run: OpenRun
    shown: Shown | None
    value: float | None
    trials: int


def flip_card(flip: Flipped, task: str, metric: str, runs: Mapping[str, OpenRun]) -> Html:
    """Return one sample with the replies of all runs to the same prompt, if they share one."""
    stored = {name: stored_trials(run, metric, task, flip.sample) for name, run in runs.items()}
    chosen = pick_trial(list(stored.values()))
    sides = [_side(name, run, flip, TrialKey(task, flip.sample, *_first(stored[name], chosen)), len(stored[name]))
             for name, run in runs.items()]  # fmt: skip
    shown = next((side for side in sides if side.shown is not None), None)
    asked = shown.shown.sample if shown is not None and shown.shown is not None else None
    question = tag("h3", shorten(asked.question, 240) if asked else flip.sample)
    about = [tag("span", flip.sample, class_="mono muted small"), *_notes(flip, sides, chosen)]
    expected = facts([("expected", shorten(", ".join(asked.answers), 200))]) if asked else None
    first = tag("div", _picture(shown), expected, class_="seen")
    columns = tag("div", first, *(_column(side, metric) for side in sides), class_="flip")
    return tag("article", question, tag("p", *about), columns, class_="card")


def pick_trial(stored: Sequence[Trials]) -> tuple[str, int] | None:
    """Return the first trial that all runs have and on which they differ; else the first that all have; else None."""
    common = [key for key in stored[0] if all(key in trials for trials in stored)]
    differing = [key for key in common if len({trials[key] for trials in stored}) > 1]
    return next(iter((*differing, *common)), None)


def stored_trials(run: OpenRun, metric: str, task: str, sample: str) -> Trials:
    """Return the value of every stored trial of a sample, by variant and repeat, the base first."""
    with run.lock:
        rows = list(run.reader.rows(_TRIALS, (metric, task, sample)))
    return {(variant, repeat): value for variant, repeat, value in rows}


def _first(trials: Trials, chosen: tuple[str, int] | None) -> tuple[str, int]:
    return chosen or next(iter(trials), ("base", 0))


def _side(name: str, run: OpenRun, flip: Flipped, key: TrialKey, trials: int) -> _Side:
    with run.lock:
        return _Side(name, run, read_trial(run.reader, key), flip.values.get(name), trials)


def _notes(flip: Flipped, sides: Sequence[_Side], chosen: tuple[str, int] | None) -> Iterator[Child]:
    """Say what the card leaves out, and whether the two were asked the same."""
    if flip.stage:
        yield tag("span", f" · they first part at the {flip.stage}", class_="muted small")
    if any(side.trials > 1 for side in sides):
        which = f"{chosen[0]}, inference {chosen[1] + 1}" if chosen else "the first trial of each, they share none"
        words = f" · shown is {which}; the share is of all {max(side.trials for side in sides)} trials"
        yield tag("span", words, class_="muted small")


def _picture(side: _Side | None) -> Html:
    if side is None or side.shown is None:
        return tag("p", "This trial is not stored.", class_="muted")
    key = side.shown.prediction.key
    if not any(turn.images for turn in side.shown.request.messages):
        return tag("p", "No picture was sent.", class_="muted small")
    source = trial_address(side.run, key, "image", small=1)
    return tag("img", src=source, alt=f"What the models saw for {key.sample}", loading="lazy", decoding="async")


def _column(side: _Side, metric: str) -> Html:
    shown = side.shown
    if shown is None:
        return tag("section", tag("h4", side.name), tag("p", "This trial is not stored.", class_="muted"))
    score = next((score for score in shown.scores if score.metric == metric), None)
    mark = _mean_mark(side.value, metric) if side.trials > 1 else _trial_mark(side, score, metric)
    about = [("read as", shorten((score.answer or score.reason or "") if score else "", 120))]
    parts: list[Child] = [tag("h4", mark, " ", link(side.name, trial_address(side.run, shown.prediction.key)))]
    if side.trials > 1:  # the mark above is the mean of them all
        parts.append(tag("p", _trial_mark(side, score, metric), " this trial", class_="small"))
    return tag("section", *parts, facts(about), reply_text(shown.text, shown.span, most=500))


def _trial_mark(side: _Side, score: Score | None, metric: str) -> Html:
    """Mark the reply that is shown, by its own score: in a mean a failed trial counts as 0, and is not wrong."""
    if side.shown is not None and side.shown.prediction.failure is not None:
        return outcome_tag(Outcome.FAILED)
    return flip_mark(score.value if score is not None else None, metric)


def _mean_mark(value: float | None, metric: str) -> Html:
    """Mark the mean of all trials; of an error 0 may be a reply that was lost, so it is a number and no sign."""
    if value is not None and lower_is_better(metric):
        return tag("span", f"{value:.3g}", class_="tag pending")
    return flip_mark(value, metric)


def flip_mark(value: float | None, metric: str) -> Html:
    """Return a value as a sign and a word, or as its share; of an error the lowest is the best. None was not scored."""
    if value is None:
        return tag("span", "no value", class_="tag unread")
    good = 1.0 - value if lower_is_better(metric) else value
    words, kind = f"{value:.0%}", "partly"
    if good >= 1 or good <= 0:
        words, kind = ("✓ right", "right") if good >= 1 else ("✗ wrong", "wrong")
    return tag("span", words, class_=f"tag {kind}")
