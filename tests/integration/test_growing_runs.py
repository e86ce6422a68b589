"""A folder grows: more inferences or variants ask only what is new; anything else is still refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.api.load import load_run
from snellen.core.errors import RunMismatch
from snellen.store.difference import growth


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    path = write(tmp_path, make_rows(8))
    return lambda **settings: snellen.run(str(path), "blind/random", output_dir=tmp_path / "run", **settings)


def make_rows(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "question": f"Q{n}?", "options": ["x", "y", "z"], "answer": "A"} for n in range(count)]


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def replies(result: Any) -> dict[Any, Any]:
    with load_run(result.folder) as run:
        return {trial.prediction.key: trial.prediction.text for trial in run.trials("t")}


def test_more_inferences_ask_only_the_new_ones(ask: Any, tmp_path: Path) -> None:
    first = replies(ask(num_infers=3))
    result = ask(num_infers=5)
    assert (result.state.resumed, result.state.done) == (24, 16)
    grown = replies(result)
    assert len(grown) == 40
    assert first.items() <= grown.items()
    assert result.results["status"]["planned"] == {"t": 40}
    with load_run(result.folder) as run:
        (step,) = run.meta("grown")
    assert step["what"] == ["t: 3 → 5 inferences"]


def test_more_variants_ask_only_the_new_ones(ask: Any) -> None:
    ask(variants=("base",))
    result = ask(variants=("base", "order=1"))
    assert (result.state.resumed, result.state.done) == (8, 8)


@pytest.mark.parametrize(
    "settings", [{"num_infers": 2}, {"num_infers": 3, "seed": 1}, {"num_infers": 5, "max_tokens": 9}]
)
def test_anything_else_is_refused_with_the_difference(settings: dict[str, Any], ask: Any) -> None:
    ask(num_infers=3)
    with pytest.raises(RunMismatch, match="holds another configuration"):
        ask(**settings)


def test_a_run_of_another_calibration_is_not_continued_with_new_pictures(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as old:  # a run of 0.2 stated no calibration
        old.setattr("snellen.api.header.calibrated_variant", lambda variant: variant)
        ask(variants=("base", "perturb=jpeg:3"))
    with pytest.raises(RunMismatch, match="jpeg:3@3"):
        ask(variants=("base", "perturb=jpeg:3"))


def test_degraded_variants_are_growth(ask: Any) -> None:
    ask(variants=("base",))
    result = ask(variants=("base", "perturb=jpeg:3"))
    assert (result.state.resumed, result.state.done) == (8, 8)


def test_what_differs_elsewhere_is_no_growth() -> None:
    task = {"repeats": 1, "variants": ["base"], "data": "x"}
    stored = {"seed": 0, "tasks": {"t": task}}
    assert growth(stored, {"seed": 0, "tasks": {"t": {**task, "repeats": 2}}}) == ["t: 1 → 2 inferences"]
    assert growth(stored, {"seed": 1, "tasks": {"t": {**task, "repeats": 2}}}) == []
    assert growth(stored, {"seed": 0, "tasks": {"t": {**task, "repeats": 2, "data": "y"}}}) == []
    assert growth(stored, {"seed": 0, "tasks": {"t": task, "u": task}}) == []
    majority = {**task, "infer_options": {"majority": True}}
    assert growth({"tasks": {"t": majority}}, {"tasks": {"t": {**majority, "repeats": 2}}}) == []


def test_appended_rows_ask_only_the_new_ones(ask: Any, tmp_path: Path) -> None:
    first = replies(ask())
    write(tmp_path, make_rows(11))
    result = ask()
    assert (result.state.resumed, result.state.done) == (8, 3)
    grown = replies(result)
    assert len(grown) == 11
    assert first.items() <= grown.items()
    assert result.results["status"]["planned"] == {"t": 11}
    with load_run(result.folder) as run:
        (step,) = run.meta("grown")
    assert step["what"] == ["t: 8 → 11 rows"]
    again = ask()
    assert (again.state.resumed, again.state.done) == (11, 0)


def test_rows_and_inferences_grow_together(ask: Any, tmp_path: Path) -> None:
    ask(num_infers=2)
    write(tmp_path, make_rows(9))
    result = ask(num_infers=3)
    assert (result.state.resumed, result.state.done) == (16, 11)
    with load_run(result.folder) as run:
        assert run.meta("grown")[0]["what"] == ["t: 8 → 9 rows", "t: 2 → 3 inferences"]


def test_a_higher_limit_asks_only_the_new_rows(ask: Any) -> None:
    ask(limit=3)
    result = ask(limit=5)
    assert (result.state.resumed, result.state.done) == (3, 2)
    whole = ask()
    assert (whole.state.resumed, whole.state.done) == (5, 3)
    with pytest.raises(RunMismatch, match="3 rows that were asked are gone"):
        ask(limit=5)
    assert ask(limit=100).state.done == 0, "the same rows are the same run, whatever the limit"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda rows: [{**rows[0], "question": "Another?"}, *rows[1:]],
            r"row '0': question was 'Q0\?', now 'Another\?'",
        ),
        (lambda rows: [*rows[:-1], {**rows[-1], "answer": "B"}], r"row '8': answers was"),
        (lambda rows: rows[1:], r"1 row that was asked is gone \('0'\)"),
        (lambda rows: rows[::-1], r"tasks\.t\.data was"),
    ],
)
def test_changed_rows_are_refused_by_name(change: Any, said: str, ask: Any, tmp_path: Path) -> None:
    write(tmp_path, make_rows(9))
    ask()
    write(tmp_path, change(make_rows(9)) + make_rows(12)[9:])
    with pytest.raises(RunMismatch, match=said):
        ask()
    write(tmp_path, make_rows(9))
    assert ask().state.done == 0, "nothing of the stored run was touched"


def test_examples_drawn_from_the_rows_do_not_let_them_grow(ask: Any, tmp_path: Path) -> None:
    shots = {"shots": {"retriever": "random", "count": 2}}
    ask(prompt=shots)
    write(tmp_path, make_rows(11))
    with pytest.raises(RunMismatch, match="holds another configuration"):
        ask(prompt=shots)
