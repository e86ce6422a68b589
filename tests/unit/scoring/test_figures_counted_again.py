"""Figures of cards against the same figures counted in plain Python, on drawn trials: read, unread, failed, tagged or not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import groupby
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from snellen.core.tasks import Figure, Task
from snellen.core.types import Estimate
from snellen.scoring.aggregates.quoted_figures import figures, figures_left_out
from snellen.scoring.tables.table_builder import TableBuilder
from snellen.stats.intervals import wilson


class Asked(NamedTuple):
    """A trial as it is drawn; `value` is None where the reply was not read, `lost` where there is none."""

    value: float | None
    said: str
    tags: dict[str, str]
    lost: bool = False


def scored(trials: Sequence[Asked], *wanted: Figure) -> SimpleNamespace:
    builder = TableBuilder()
    builder.add_samples([(f"s{at}", None, one.tags) for at, one in enumerate(trials)])
    builder.add_trials([(f"s{at}", "base", 0, "server" if one.lost else None, at) for at, one in enumerate(trials)])
    builder.add_scores(
        [
            (
                f"s{at}",
                "base",
                0,
                "accuracy",
                one.value,
                one.said or None,
                "rule",
                None if one.value is not None else "no",
            )
            for at, one in enumerate(trials)
            if not one.lost
        ]
    )
    task = Task("t", {"loader": "table"}, figures=wanted)
    return SimpleNamespace(task=task, tables=builder.tables())


def found(trials: Sequence[Asked], *wanted: Figure) -> dict[str, Estimate]:
    return figures(scored(trials, *wanted), {})  # type: ignore[arg-type]


VIEWS: dict[str, Callable[[Asked], bool]] = {
    "": lambda one: not one.lost,
    "_read": lambda one: not one.lost and one.value is not None,
    "_strict": lambda one: True,
}


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def positives(trials: Sequence[Asked], positive: str) -> dict[str, float | None]:
    both = said = real = 0
    for one in trials:
        read = one.value is not None and not one.lost
        right = read and one.value == 1.0
        is_said = read and one.said.strip().lower() == positive
        if "gold" in one.tags:
            is_real = one.tags["gold"].strip().lower() == positive
        else:
            is_real = right if is_said else read and not right
        both, said, real = both + (is_said and right), said + is_said, real + is_real
    return {
        "precision": share(both, said),
        "recall": share(both, real),
        "f1": share(2 * both, said + real),
        "yes-ratio": share(said, len(trials)),
        "label-ratio": share(real, len(trials)),
    }


def drawn(seed: int, *, tagged: bool) -> list[Asked]:
    draw = random.Random(seed)
    trials = []
    for _ in range(12):
        gold, said = draw.choice(["yes", "no"]), draw.choice(["yes", " YES ", "No", "no", ""])
        value = None if not said else float(said.strip().lower() == gold)
        tags = {"gold": draw.choice([gold, gold.upper()])} if tagged else {}
        trials.append(Asked(value, said, tags, draw.random() < 0.15))
    return trials


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("positive", ["yes", "no"])
def test_figures_of_a_positive_answer_are_those_counted_by_hand(tagged: bool, positive: str) -> None:
    names = list(positives([], positive))
    for seed in range(6):
        trials = drawn(seed, tagged=tagged)
        ours = found(trials, *(Figure(name, name, positive=positive) for name in names))
        for suffix, belongs in VIEWS.items():
            seen = [one for one in trials if belongs(one)]
            for name, value in positives(seen, positive).items():
                one = ours[f"{name}{suffix}"]
                assert one.value == pytest.approx(value), (seed, name, suffix)
        own, strict = ours["f1"], ours["f1_strict"]
        read = sum(VIEWS["_read"](one) for one in trials)
        lost = sum(one.lost for one in trials)
        assert (own.n + own.unscored, own.failed) == (len(trials) - lost, lost)
        assert (strict.n, strict.unscored, strict.failed) == (len(trials), 0, 0)
        assert own.read is not None
        assert own.read.n == read


def test_the_harmonic_mean_over_the_answerable_is_that_counted_by_hand() -> None:
    for seed in range(6):
        draw = random.Random(seed)
        trials = [
            Asked(
                draw.choice([0.0, 0.4, 1.0, None]),
                draw.choice(["12", "Not answerable", " not answerable. ", "unclear"]),
                draw.choice([{"answerable": "yes"}, {"answerable": "True"}, {"answerable": "1"}, {"answerable": "no"}]),
            )
            for _ in range(14)
        ]
        trials = [one if one.value is not None else one._replace(said="") for one in trials]
        ours = found([*trials, Asked(1.0, "x", {"answerable": "yes"})], Figure("f1", "answerable-f1"))
        for suffix, belongs in VIEWS.items():
            seen = [one for one in [*trials, Asked(1.0, "x", {"answerable": "yes"})] if belongs(one)]
            has = [one.tags["answerable"].lower() in ("yes", "true", "1") for one in seen]
            points = sum((one.value or 0.0) * own for one, own in zip(seen, has, strict=True))
            answered = sum(one.said.strip().rstrip(".").lower() != "not answerable" for one in seen)
            assert ours[f"f1{suffix}"].value == pytest.approx(2 * points / (answered + sum(has))), (seed, suffix)


def test_means_sums_and_groups_are_those_counted_by_hand() -> None:
    for seed in range(6):
        draw = random.Random(seed)
        trials = [
            Asked(
                draw.choice([0.0, 0.25, 1.0, None]),
                "",
                {"g": draw.choice("ab"), "h": draw.choice("xyz")},
                draw.random() < 0.1,
            )
            for _ in range(15)
        ]
        trials = [one._replace(value=None) if one.lost else one for one in trials]
        where = Figure("some", where={"g": ("a",), "h": ("x", "y")})
        ours = found(
            trials,
            *(Figure("mean", scale=100), Figure("total", "sum"), where),
            *(Figure("macro", "mean-of-groups", by=("g",)), Figure("pairs", "mean-of-groups", by=("g", "h"))),
            Figure("all", "all-of-group", by=("g", "h")),
            Figure("worst", "worst-of-group", by=("h",)),
        )
        for suffix, belongs in VIEWS.items():
            seen = [one for one in trials if belongs(one)]
            values = [one.value or 0.0 for one in seen]
            assert ours[f"mean{suffix}"].value == pytest.approx(100 * sum(values) / len(values))
            assert ours[f"total{suffix}"].value == pytest.approx(sum(values))
            chosen = [one.value or 0.0 for one in seen if one.tags["g"] == "a" and one.tags["h"] in "xy"]
            assert ours[f"some{suffix}"].value == pytest.approx(share(sum(chosen), len(chosen)))
            # A group in which nothing counts has no mean, and then there is no mean of means.
            for name, by in (("macro", "g"), ("pairs", "gh")):
                groups = [[one.value or 0.0 for one in group if belongs(one)] for group in grouped(trials, by)]
                means = [sum(group) / len(group) for group in groups if group]
                mean = sum(means) / len(means) if len(means) == len(groups) else None
                assert ours[f"{name}{suffix}"].value == pytest.approx(mean), (seed, name, suffix)
        for name, by, worth in (("all", "gh", lambda value: float(value >= 1.0)), ("worst", "h", float)):
            groups = grouped(trials, by)
            strict = [min(worth(one.value or 0.0) for one in group) for group in groups]
            assert ours[f"{name}_strict"].value == pytest.approx(sum(strict) / len(strict)), (seed, name)
            assert ours[f"{name}_strict"].n == len(groups)


def grouped(trials: Sequence[Asked], by: str) -> list[list[Asked]]:
    def label(one: Asked) -> tuple[str, ...]:
        return tuple(one.tags[tag] for tag in by)

    return [list(group) for _, group in groupby(sorted(trials, key=label), key=label)]


def test_a_tag_that_one_sample_lacks_is_silent_for_that_sample_alone() -> None:
    tagged = [Asked(1.0, "yes", {"gold": "yes"}), Asked(0.0, "yes", {"gold": "no"})]
    wrong_no, right_yes = Asked(0.0, "no", {}), Asked(1.0, "yes", {})
    assert found([*tagged, wrong_no], Figure("recall", "recall"))["recall"].value == pytest.approx(1 / 2)
    assert found([*tagged, right_yes], Figure("recall", "recall"))["recall"].value == 1.0
    assert found([*tagged, right_yes], Figure("labels", "label-ratio"))["labels"].value == pytest.approx(2 / 3)
    answers = [Asked(1.0, "12", {"answerable": "yes"}), Asked(0.0, "13", {})]
    assert found(answers, Figure("f1", "answerable-f1"))["f1"].value == pytest.approx(1 / 2)


@pytest.mark.parametrize("right", [0.0, 1.0])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_shares_that_are_all_equal_have_wilsons_interval_at_their_scale(right: float, scale: float) -> None:
    one = found([Asked(right, "", {}) for _ in range(9)], Figure("share", scale=scale))["share"]
    assert one.value == right * scale
    assert one.ci95 == pytest.approx([scale * edge for edge in wilson(right, 9)])


def test_two_halves_that_are_all_right_count_by_their_weights() -> None:
    trials = [*(Asked(1.0, "", {"g": "a"}) for _ in range(4)), *(Asked(1.0, "", {"g": "b"}) for _ in range(12))]
    halves = [Figure(name, where={"g": (name,)}) for name in "ab"]
    both = found(trials, *halves, Figure("both", "mean-of", of=("a", "b")))["both"]
    assert both.ci95 == pytest.approx(wilson(1.0, 1 / (0.25 / 4 + 0.25 / 12)))
    points = found([Asked(3.0, "", {}) for _ in range(9)], Figure("points"))["points"]
    assert points.ci95 is None or points.ci95[0] == points.ci95[1] == 3.0, "points have no edge"


def test_a_figure_that_cannot_be_made_says_what_it_lacks() -> None:
    trials = [Asked(1.0, "", {"g": "a"}), Asked(0.0, "", {"g": "b"})]
    wanted = {
        "whole": Figure("whole"),
        "untagged": Figure("untagged", "mean-of-groups", by=("h",)),
        "unasked": Figure("unasked", "gain", against="control=no-video"),
        "three": Figure("three", "mean-of-groups", by=("g",), groups=3),
        "two": Figure("two", "mean-of-groups", by=("g",), groups=2),
    }
    said = list(figures_left_out(scored(trials, *wanted.values())))  # type: ignore[arg-type]
    assert [line.split()[0] for line in said] == ["untagged", "unasked", "three"]
    assert [word in line for word, line in zip(("h", "control=no-video", "2 of 3"), said, strict=True)] == [True] * 3
    ours = found(trials, *wanted.values())
    assert {"untagged", "unasked"}.isdisjoint(ours)
    assert (ours["three"].value, ours["two"].value, ours["three"].n, ours["three"].unscored) == (None, 0.5, 0, 2)
