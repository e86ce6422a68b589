"""Results as a notebook or a Python prompt shows them: one line, or the tables of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.markup import join, tag
from ...core.text import plural
from ...scoring.aggregates.error_groups import ErrorGroup
from ...scoring.aggregates.headline import headline
from ...scoring.tables.table import Outcome, grade, is_unread
from ..terminal import EXAMPLES, example
from ..written import written, written_interval
from .gallery import Budget, Shown, card
from .parts import metric_table

if TYPE_CHECKING:
    from ...scoring.compare.paired import Comparison


def headline_words(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield for each task its headline metric with interval and number of trials."""
    for task, result in results["tasks"].items():
        name, estimate = headline(result)
        if name is None:
            yield f"{task}: nothing measured"
            continue
        interval = f" [{written_interval(name, estimate)}]" if estimate.get("ci95") else ""
        failed = f", {estimate['failed']} failed" if estimate["failed"] else ""
        yield f"{task} {name} {written(name, estimate)}{interval}, n {estimate['n']}{failed}{_unread(name, estimate)}"


def _unread(name: str, estimate: Mapping[str, Any]) -> str:
    """Say how far replies that were not read could move the number, where there are any."""
    low, high = estimate.get("bounds") or (0.0, 0.0)
    if low == high:
        return ""
    ends = (written(name, {**estimate, "value": end}) for end in (low, high))
    return f"; {' to '.join(ends)} if all that was not read were wrong, or right"


def results_html(results: Mapping[str, Any]) -> str:
    """Return one table a task, without any script or style of its own."""
    title = tag("p", f"{results['model']} · run {results['run']['id']}")
    tables = (metric_table(result["metrics"], task) for task, result in results["tasks"].items())
    return str(join((title, *tables)))


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [tag("tr", join(tag("td", cell) for cell in row)) for row in rows]
    return str(tag("table", join((tag("caption", title), tag("tr", join(tag("th", name) for name in head)), *cells))))


class ShownErrors(dict[str, list[ErrorGroup]]):
    """Task -> the answers that are not right, in groups that say why; a notebook shows them as tables."""

    def __repr__(self) -> str:
        lines = [
            f"{task}: {group.title} {len(group.trials):,} ({group.share:.0%}): {group.rule}"
            for task, groups in self.items()
            for group in groups
        ]
        return "\n".join(lines) or "every answer is right"

    def _repr_html_(self) -> str:
        """Return a table a task: group, share, rule, examples; without any script or style of its own."""
        head = ("why", "trials", "share", "rule", "examples")
        tables = (
            _table(
                task,
                head,
                (
                    (
                        group.title,
                        f"{len(group.trials):,}",
                        f"{group.share:.0%}",
                        group.rule,
                        "; ".join(map(example, group.trials[:EXAMPLES])),
                    )
                    for group in groups
                ),
            )
            for task, groups in self.items()
        )
        return "".join(tables)


class ShownComparison(dict[str, list["Comparison"]]):
    """Task -> the comparisons of two runs, one a metric; a notebook shows them as a table with a verdict."""

    def __repr__(self) -> str:
        return "\n".join(f"{task} {one.metric}: {_line(one)}" for task, found in self.items() for one in found)

    def _repr_html_(self) -> str:
        """Return one table: values, difference with interval, test, verdict; without any script or style of its own."""
        rows = ((task, one.metric, *_cells(one)) for task, found in self.items() for one in found)
        return _table("", ("task", "metric", "A", "B", "B − A [95 %]", "p (Holm)", "verdict"), rows)


def _cells(one: Comparison) -> tuple[str, ...]:
    from .comparison import figure_as_it_is, p_value, reads_in_percent, verdict_line  # a run has none to show

    share = reads_in_percent(one)

    def show(value: float | None, *, sign: bool = False) -> str:
        if value is None or not share:
            return figure_as_it_is(value, sign=sign)
        return f"{value * 100:{'+' if sign else ''}.1f} %"

    interval = f" [{show(one.ci95[0], sign=True)}, {show(one.ci95[1], sign=True)}]" if one.ci95 else ""
    change = show(one.difference, sign=True) + interval
    verdict = verdict_line(one).strip().removeprefix("verdict: ")
    return show(one.first_value), show(one.second_value), change, p_value(one.p_adjusted), verdict


def _line(one: Comparison) -> str:
    first, second, change, p, verdict = _cells(one)
    return f"{one.first} {first}, {one.second} {second}, difference {change}, p {p}: {verdict}"


class ShownTrials(Sequence[Shown]):
    """The trials of one sample: a list of them for programs, pictures and replies for a notebook."""

    def __init__(self, trials: Sequence[Shown]) -> None:
        self._trials = list(trials)

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, place: Any) -> Any:
        return self._trials[place]

    def __repr__(self) -> str:
        first = self._trials[0]
        lines = [f"{first.sample.id}: {first.sample.question}", f"expected: {', '.join(first.sample.answers)}"]
        lines += [f"{trial.prediction.key.variant} #{trial.prediction.key.repeat + 1}: {trial.text}" for trial in self]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return picture, question, reply and score of each trial, without any script or style of its own."""
        budget = Budget(PICTURE_BYTES)
        cards = [card(trial, *_outcome(trial), budget) for trial in self._trials]
        return str(join((tag("p", f"{plural(len(cards), 'trial')} of {self._trials[0].sample.id}"), *cards)))


PICTURE_BYTES = 4_000_000
"""How much pictures may add to a notebook."""


def _outcome(trial: Shown) -> tuple[int, float]:
    if trial.prediction.failure is not None:
        return Outcome.FAILED, 0.0
    score = trial.scores[0] if trial.scores else None
    if score is None or score.value is None:
        unread = Outcome.UNREAD if score and is_unread(score.reason) else Outcome.UNJUDGED
        return unread if score else Outcome.PENDING, 0.0
    return int(grade(np.array([score.value]), score.metric)[0]), score.value
