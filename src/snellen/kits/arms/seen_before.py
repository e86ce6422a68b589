"""A stored run with changed forms of its questions to tests of whether the published ones were seen before.

Three of them: the published order of options against drawn ones; the published question against twins of it; the
option that was published next against the others, told from memory. A drop is a drop: what it means is for people, and
for reference models that cannot have seen the test.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ...core.errors import UsageError
from ...core.tasks import Task
from ...core.twins import AXIS as TWIN
from ...core.types import BASE_VARIANT, Prediction, Request, Sample
from ...core.variants import RECALL
from ...scoring.aggregates.headline import main_metric, quoted_metric
from ...scoring.aggregates.means import axes_of
from ...stats.confidence import softmax
from ...stats.exchange import ALPHA, FEWEST, Exchange, beside_references, exchange_test, order_test
from ...stats.intervals import holm
from ...store.reader import RunReader, Trial

ORDER, TWINS, NEXT = "order of options", "twins", "next option from memory"
ALARM = ALPHA
"""A drop is called one where its 95 % interval lies above 0."""
DROP, NO_DROP, TOO_FEW, ABOVE = "drop", "no drop found", "too few questions", "larger than in the references"
_WORD = re.compile(r"\w+")


class SeenTest(Struct, frozen=True):
    """One test with its verdict, and what it could have found."""

    test: str
    result: Exchange
    left_out: dict[str, int]
    p_holm: float | None = None
    verdict: str = TOO_FEW
    references: tuple[float, ...] = ()

    @property
    def says(self) -> str:
        """Return the verdict as a sentence that tells what could have been found; never that a model is clean."""
        found = self.result
        if self.verdict == TOO_FEW or found.drop is None or found.detectable is None:
            return f"{found.questions} questions can be compared: at least {FEWEST} are needed for a verdict"
        power = f"a true drop of {found.detectable * 100:.1f} points would be found 9 times in 10"
        if self.verdict == NO_DROP:
            return f"no drop found at this number of questions; {power}"
        against = f" than in {len(self.references)} references" if self.references else ""
        larger = "a larger drop" if self.references else "a drop"
        return f"{larger}{against}: {found.drop * 100:+.1f} points, p = {self.p_holm:.2g}; {power}"


class Form(NamedTuple):
    """One form of a question as it was answered."""

    value: float
    place: int
    """Where the right answer stood; 0 where nothing stood anywhere."""


Forms = Mapping[str, Mapping[str, Form]]
"""Sample -> variant -> form."""


def seen_tests(reader: RunReader, task: Task, references: Sequence[RunReader] = ()) -> list[SeenTest]:
    """Return the tests that a task's variants allow, p-values adjusted for their number (Holm)."""
    found = _plain_tests(reader, task)
    adjusted = holm([one.result.p if one.result.questions >= FEWEST else None for one in found])
    beside = [{one.test: one for one in _plain_tests(other, task)} for other in references]
    return [
        _beside(_judged(one, p), [tests[one.test] for tests in beside if one.test in tests])
        for one, p in zip(found, adjusted, strict=True)
    ]


def _judged(one: SeenTest, p: float | None) -> SeenTest:
    if p is None:
        return one
    return SeenTest(one.test, one.result, one.left_out, p, DROP if p <= ALARM else NO_DROP)


def _beside(one: SeenTest, references: Sequence[SeenTest]) -> SeenTest:
    """Return a test set against the drops of reference models: honest ones drop too, where a change is harder."""
    drops = tuple(other.result.drop for other in references if other.result.drop is not None)
    if not drops or one.p_holm is None or one.result.drop is None or one.result.ci95 is None:
        return one
    error = (one.result.ci95[1] - one.result.ci95[0]) / 3.92
    p, detectable = beside_references(one.result.drop, error, drops)
    fields = {name: getattr(one.result, name) for name in Exchange.__struct_fields__}
    result = Exchange(**{**fields, "p": p, "detectable": detectable})
    return SeenTest(one.test, result, one.left_out, p, ABOVE if p <= ALARM else NO_DROP, drops)


def _plain_tests(reader: RunReader, task: Task) -> list[SeenTest]:
    axes = {variant: axes_of(variant) for variant in task.variants}
    orders = [variant for variant, own in axes.items() if set(own) == {"order"}]
    twins = [variant for variant, own in axes.items() if set(own) == {TWIN}]
    recall = [variant for variant, own in axes.items() if own == {"control": RECALL}]
    tests: list[SeenTest] = []
    if BASE_VARIANT in axes and (orders or twins):
        forms, sorted_options = _forms(reader, task, {BASE_VARIANT, *orders, *twins})
        tests += [_order(forms, orders, sorted_options)] if orders else []
        tests += [_twins(forms, twins, task)] if twins else []
    return [*tests, *([_recalled(reader, task, recall[0])] if recall else [])]


def _forms(reader: RunReader, task: Task, variants: set[str]) -> tuple[Forms, set[str]]:
    """Return every question's forms, repeats averaged, and the questions whose options stand sorted."""
    values = _stored_values(reader, task)
    found: dict[str, dict[str, list[Form]]] = defaultdict(lambda: defaultdict(list))
    in_order: set[str] = set()
    for trial in reader.trials(task.name):
        key = trial.prediction.key
        if key.variant not in variants or trial.prediction.failure is not None:
            continue
        value = _chance_of_right(trial.sample, trial.request, trial.prediction)
        value = values.get((key.sample, key.variant, key.repeat)) if value is None else value
        if value is not None:
            found[key.sample][key.variant].append(Form(value, _place(trial)))
        if is_sorted(trial.sample.options):
            in_order.add(key.sample)
    means = {
        sample: {name: Form(float(np.mean([one.value for one in own])), own[0].place) for name, own in forms.items()}
        for sample, forms in found.items()
    }
    return means, in_order


def _stored_values(reader: RunReader, task: Task) -> dict[tuple[str, str, int], float]:
    """Return the value of every trial under the metric that the task stands for; what was not read is worth 0."""
    scores = list(reader.scores(task.name))
    metric = main_metric(tuple(dict.fromkeys(score.metric for score in scores)), quoted_metric(task))
    return {
        (one.key.sample, one.key.variant, one.key.repeat): one.value or 0.0 for one in scores if one.metric == metric
    }


def _chance_of_right(sample: Sample, request: Request, prediction: Prediction) -> float | None:
    """Return the probability of the right option where likelihoods are stored: finer than right or wrong."""
    told = prediction.loglikelihoods
    if told is None or len(told) != len(request.shown) or len(sample.answers) != 1:
        return None
    if sample.answers[0] not in request.shown:
        return None
    return float(softmax(told)[request.shown.index(sample.answers[0])])


def _place(trial: Trial) -> int:
    answers, shown = trial.sample.answers, trial.request.shown
    return shown.index(answers[0]) if answers and answers[0] in shown else 0


def is_sorted(options: Sequence[str]) -> bool:
    """Tell whether options stand in an order that a reader expects: of numbers, or of the alphabet, either way."""
    try:
        keys: list[Any] = [float(text.replace(",", "").rstrip("%")) for text in options]
    except ValueError:
        keys = [text.casefold() for text in options]
    return len(options) > 2 and (keys == sorted(keys) or keys == sorted(keys, reverse=True))


def order_forms(reader: RunReader, task: Task, chosen: Container[str]) -> tuple[Any, Any]:
    """Return what each of the chosen questions earned in its published order (first column) and in drawn ones, and
    where the right answer stood; none whose options stand sorted.
    """
    orders = [variant for variant in task.variants if set(axes_of(variant)) == {"order"}]
    forms, in_order = _forms(reader, task, {BASE_VARIANT, *orders})
    usable = [name for name, own in forms.items() if name in chosen and BASE_VARIANT in own and name not in in_order]
    return _matrix(forms, usable, [BASE_VARIANT, *orders])


def _order(forms: Forms, variants: Sequence[str], in_order: set[str]) -> SeenTest:
    usable = [sample for sample, own in forms.items() if BASE_VARIANT in own and sample not in in_order]
    values, places = _matrix(forms, usable, [BASE_VARIANT, *variants])
    result = order_test(values, places) if usable else exchange_test(np.zeros(0), np.zeros((0, 1)))
    return SeenTest(ORDER, result, {"options stand sorted": len(in_order)} if in_order else {})


def _twins(forms: Forms, variants: Sequence[str], task: Task) -> SeenTest:
    usable = [sample for sample, own in forms.items() if BASE_VARIANT in own]
    values, _ = _matrix(forms, usable, [BASE_VARIANT, *variants])
    return SeenTest(TWINS, exchange_test(values[:, 0], values[:, 1:], task.name, TWINS), {})


def _matrix(forms: Forms, samples: Sequence[str], variants: Sequence[str]) -> tuple[Any, Any]:
    nothing = Form(float("nan"), 0)
    rows = [[forms[sample].get(variant, nothing) for variant in variants] for sample in samples]
    shape = (len(samples), len(variants))
    values = np.array([[one.value for one in row] for row in rows], np.float64).reshape(shape)
    return values, np.array([[one.place for one in row] for row in rows], np.int64).reshape(shape)


def _recalled(reader: RunReader, task: Task, variant: str) -> SeenTest:
    """Compare how often the reply is the option that was published next with how often it is each of the others."""
    rows: list[list[float]] = []
    left_out: dict[str, int] = defaultdict(int)
    for trial in reader.trials(task.name):
        if trial.prediction.key.variant != variant or trial.prediction.text is None:
            continue
        options = trial.sample.options
        if len(options) < 3 or is_sorted(options):
            left_out["options stand sorted" if len(options) >= 3 else "fewer than three options"] += 1
            continue
        rows.append([float(holds(trial.prediction.text, text)) for text in options[1:]])
    width = max((len(row) for row in rows), default=2)
    forms = np.array([row + [np.nan] * (width - len(row)) for row in rows], np.float64).reshape(len(rows), width)
    return SeenTest(NEXT, exchange_test(forms[:, 0], forms[:, 1:], task.name, NEXT), dict(left_out))


def holds(reply: str, text: str) -> bool:
    """Tell whether a reply gives a text: its words, one after the other."""
    said, wanted = _words(reply), _words(text)
    size = len(wanted)
    return bool(wanted) and any(said[at : at + size] == wanted for at in range(len(said) - size + 1))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


HOW = "--variant base --variant order=1 --variant order=2 --variant order=3 --variant control=recall"


def contaminated(run: str | Path, references: Sequence[str | Path] = ()) -> dict[str, list[SeenTest]]:
    """Return, task by task, the tests of whether a model has seen its test before, each with its power.

    The run must have asked changed forms of its questions; `references` are runs of models that cannot have seen it.

    Example:
        >>> from snellen.kits.arms.seen_before import contaminated
        >>> contaminated("runs/x")["my"][0].verdict  # doctest: +SKIP
        'no drop found'
    """
    with ExitStack() as stack:
        reader = stack.enter_context(RunReader(Path(run)))
        others = [stack.enter_context(RunReader(Path(folder))) for folder in references]
        header = reader.header()
        for folder, other in zip(references, others, strict=True):
            if other.header().id == header.id:
                raise UsageError(f"--reference {folder} is the run itself: name a run of another model")
        names = [{task.name for task in other.header().tasks} for other in others]
        found = {}
        for task in header.tasks:
            beside = [other for other, own in zip(others, names, strict=True) if task.name in own]
            found[task.name] = seen_tests(reader, task, beside)
    if not any(found.values()):
        more = "and --variant twin=1 where the card has rules for twins"
        raise UsageError(f"{run} asked no changed form of its questions: ask it again with {HOW}, {more}")
    return {name: tests for name, tests in found.items() if tests}


def described(found: dict[str, list[SeenTest]]) -> dict[str, Any]:
    """Return the tests as plain data, each with its sentence."""
    return {task: [{**msgspec.to_builtins(one), "says": one.says} for one in tests] for task, tests in found.items()}
