"""Run folders to comparisons: which tasks and metrics are shared, what is refused and by which words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from made_runs import make_run, make_task
from snellen.core.errors import UsageError
from snellen.scoring.compare.run_pairs import compare_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, skill in (("weak", 0.2), ("strong", 0.95)):
        make_run(folder / name, model=f"openai/{name}", skill=skill, count=40)
    make_run(folder / "other", count=10, task=make_task("colours"))
    make_run(folder / "unscored", count=10, score=False)
    return folder


def test_every_pair_on_the_shared_task(runs: Path) -> None:
    compared = compare_runs([runs / "weak", runs / "strong"])
    assert set(compared) == {"shapes"}
    (accuracy,) = [row for row in compared["shapes"] if row.metric == "accuracy"]
    assert (accuracy.first, accuracy.second, accuracy.paired) == ("weak", "strong", 40)
    assert accuracy.difference == pytest.approx(accuracy.second_value - accuracy.first_value)
    assert accuracy.difference > 0.4 and accuracy.ci95[0] > 0 and accuracy.p < 0.01
    (turned,) = [row for row in compare_runs([runs / "strong", runs / "weak"])["shapes"] if row.metric == "accuracy"]
    assert turned.difference == pytest.approx(-accuracy.difference)
    assert len(turned.better) == len(accuracy.worse)


def test_a_run_is_not_compared_with_itself(runs: Path) -> None:
    with pytest.raises(UsageError, match=r"weak and .*weak are one run, which differs in nothing from itself"):
        compare_runs([runs / "weak", runs / "other" / ".." / "weak"])


def test_three_runs_make_three_pairs_of_one_metric(runs: Path) -> None:
    shutil.copytree(runs / "weak", runs / "again" / "weak")
    rows = compare_runs([runs / "weak", runs / "strong", runs / "again" / "weak"], metric="accuracy")["shapes"]
    assert len(rows) == 3
    paths = [str(runs / name) for name in ("weak", "strong", "again/weak")]
    assert {name for row in rows for name in (row.first, row.second)} == set(paths), (
        "folders of one name go by their paths"
    )


@pytest.mark.parametrize(
    ("names", "more", "words"),
    [
        (("weak",), {}, "at least two run folders"),
        (("weak", "strong"), {"task": "shape"}, "has no task 'shape'.*did you mean 'shapes'"),
        (("weak", "other"), {}, "share no task .*weak: shapes; other: colours"),
        (("weak", "strong"), {"metric": "acuracy"}, "no metric 'acuracy' in all runs.*did you mean 'accuracy'"),
        (("weak", "unscored"), {}, "unscored has no scores of task 'shapes': score it first"),
    ],
)
def test_what_cannot_be_compared_is_named(runs: Path, names: tuple[str, ...], more: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compare_runs([runs / name for name in names], **more)
