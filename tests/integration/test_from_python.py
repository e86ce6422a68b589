"""Snellen from Python: in a notebook's event loop, with paths as texts, with results that can be looked at."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import snellen
from snellen.cli.help_groups import OTHERS, RUN_GROUPS
from snellen.cli.run import run as run_command
from snellen.core.event_loop import run_to_end
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
    with snellen.load_run(result.folder) as run:
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


def test_every_option_of_run_stands_in_one_group_of_its_help() -> None:
    grouped = [name for names in RUN_GROUPS.values() for name in names]
    options = {option.name for option in run_command.params if option.param_type_name == "option"}
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == options - {"help"}
    assert OTHERS not in RUN_GROUPS


@pytest.mark.parametrize(("count", "text"), [(0, "0 images"), (1, "1 image"), (2000, "2,000 images")])
def test_plurals(count: int, text: str) -> None:
    assert plural(count, "image") == text
