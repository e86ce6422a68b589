"""Snellen from Python: in a notebook's event loop, with paths as texts, with results that can be looked at."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import snellen
from snellen.api.load import load_run
from snellen.core.process import run_to_end
from snellen.core.text import plural


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "my.jsonl"
    records = [
        {"id": str(n), "question": "Which?", "options": ["aa", "b"], "answer": "A", "topic": "x", "value": n}
        for n in range(4)
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


def test_a_run_inside_a_running_event_loop(rows: str, tmp_path: Path) -> None:
    async def notebook_cell() -> snellen.RunResult:
        return snellen.run(rows, "blind/first", output_dir=str(tmp_path / "run"))

    result = asyncio.run(notebook_cell())
    assert result.folder == tmp_path / "run"
    assert result.results["tasks"]["my"]["metrics"]["accuracy"]["value"] == 1.0


def test_what_goes_wrong_inside_a_running_event_loop_is_raised_there() -> None:
    async def wrong() -> None:
        raise snellen.SnellenError("no")

    async def stopped() -> None:
        raise KeyboardInterrupt

    async def cell(work: object) -> None:
        run_to_end(work())  # type: ignore[operator]

    with pytest.raises(snellen.SnellenError, match="no"):
        asyncio.run(cell(wrong))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell(stopped))


def test_a_result_and_a_stored_run_say_what_they_are(rows: str, tmp_path: Path) -> None:
    result = snellen.run(rows, "blind/first", output_dir=tmp_path / "run")
    assert repr(result).startswith(f"<RunResult {tmp_path / 'run'}: my accuracy 100.0 %")
    assert not hasattr(result, "count")
    assert "<table" in result._repr_html_()
    with load_run(result.folder) as run:
        assert repr(run) == f"<RunReader {tmp_path / 'run'}: blind/first on my>"


def test_a_frame_has_a_column_for_every_metric_and_tag(rows: str, tmp_path: Path) -> None:
    result = snellen.run(rows, "blind/first", output_dir=tmp_path / "run")
    table = snellen.frame(result.folder)
    assert list(table["accuracy"]) == [1.0] * 4
    assert list(table["topic"]) == ["x"] * 4
    assert list(table["tag_value"]) == [0, 1, 2, 3], "`value` is the score: a tag of that name keeps out of its way"


def test_runs_are_compared_from_python(rows: str, tmp_path: Path) -> None:
    first = snellen.run(rows, "blind/first", output_dir=tmp_path / "a").folder
    last = snellen.run(rows, "blind/shortest", output_dir=tmp_path / "b").folder
    (comparison,) = snellen.compare(first, last)["my"]
    assert comparison.difference == -1.0


@pytest.mark.parametrize(("count", "text"), [(0, "0 images"), (1, "1 image"), (2000, "2,000 images")])
def test_plurals(count: int, text: str) -> None:
    assert plural(count, "image") == text


@pytest.mark.parametrize(
    ("noun", "many"),
    [("reply", "replies"), ("retry", "retries"), ("day", "days"), ("batch", "batches"), ("class", "classes")],
)
def test_plurals_of_odd_nouns(noun: str, many: str) -> None:
    assert (plural(1, noun), plural(2, noun), plural(0, noun)) == (f"1 {noun}", f"2 {many}", f"0 {many}")


def test_a_result_is_looked_into_from_python(tmp_path: Path) -> None:
    from made_runs import make_run

    one = snellen.RunResult.load(make_run(tmp_path / "one", model="openai/one", skill=0.5, count=30))
    two = snellen.RunResult.load(str(make_run(tmp_path / "two", model="openai/two", skill=0.9, count=30)))
    assert repr(one).startswith(f"<RunResult {tmp_path / 'one'}: shapes accuracy ")
    assert len(repr(one)) < 300
    accuracy = one.metrics["shapes"]["accuracy"]
    assert isinstance(accuracy, snellen.Estimate)
    wrong = one.wrong()
    assert 0 < len(wrong) == accuracy.read.n - round(accuracy.value * accuracy.n)
    assert set(wrong["value"]) == {0.0}
    assert len(one.frame()) == 30
    (comparison,) = one.compare(two)["shapes"][:1]
    assert comparison.difference == pytest.approx(snellen.compare(one.folder, two.folder)["shapes"][0].difference)
    with pytest.raises(snellen.SnellenError, match="no task 'x'"):
        one.wrong("x")


def test_a_sample_is_shown_with_its_picture(tmp_path: Path) -> None:
    from made_runs import make_run

    shown = snellen.RunResult.load(make_run(tmp_path / "one", count=3)).show("shape-00001")
    assert len(shown) == 1
    assert shown[0].sample.id == "shape-00001"
    assert repr(shown).startswith("shape-00001: Which colour has shape number 1?\nexpected: green\nbase #1: ")
    page = shown._repr_html_()
    assert "data:image/webp;base64," in page
    assert "<script" not in page
    with pytest.raises(snellen.SnellenError, match="no such trial"):
        snellen.RunResult.load(tmp_path / "one").show("shape-9")


def test_a_leaderboard_from_python_takes_one_folder_or_many(tmp_path: Path) -> None:
    from made_runs import make_run

    folders = [
        make_run(tmp_path / name, model=f"openai/{name}", skill=skill, count=40)
        for name, skill in (("a", 0.3), ("b", 0.9))
    ]
    board, problems = snellen.leaderboard(str(tmp_path))
    assert [line.model for line in board.lines] == ["openai/b", "openai/a"]
    assert problems == {}
    assert snellen.leaderboard(folders)[0] == board


def test_a_frame_is_polars_where_there_is_no_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from made_runs import make_run

    polars = pytest.importorskip("polars")
    result = snellen.RunResult.load(make_run(tmp_path / "one", count=10))
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = result.frame()
    assert isinstance(table, polars.DataFrame)
    assert set(table["shape"]) == {"circle", "square", "triangle"}
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(snellen.SnellenError, match="pip install pandas"):
        result.frame()
    assert len(result.rows()) == 10
    assert result.wrong() == [row for row in result.rows() if row["value"] == 0.0]


def test_a_stored_run_is_what_run_returned(rows: str, tmp_path: Path) -> None:
    made = snellen.run(rows, "blind/first", output_dir=tmp_path / "run")
    loaded = snellen.load(tmp_path / "run")
    assert type(loaded) is type(made)
    assert (loaded.metrics, loaded.rows()) == (made.metrics, made.rows())
    with pytest.warns(DeprecationWarning, match=r"snellen\.load"), snellen.load_run(tmp_path / "run") as reader:
        assert reader.header().model == "blind/first"


def test_errors_and_comparisons_show_themselves(tmp_path: Path) -> None:
    from made_runs import make_run

    one = snellen.load(make_run(tmp_path / "one", model="openai/one", skill=0.3, count=60))
    two = snellen.load(make_run(tmp_path / "two", model="openai/two", skill=0.95, count=60))
    groups = one.errors()
    accuracy = one.metrics["shapes"]["accuracy"]
    assert sum(len(group.trials) for group in groups["shapes"]) == accuracy.n - round(accuracy.value * accuracy.n)
    assert all(group.title in repr(groups) and group.title in groups._repr_html_() for group in groups["shapes"])
    compared = one.compare(two)
    assert compared["shapes"][0].difference == snellen.compare(one.folder, two.folder)["shapes"][0].difference
    assert "two is better" in repr(compared)
    assert "two is better" in compared._repr_html_() and "<script" not in compared._repr_html_()
