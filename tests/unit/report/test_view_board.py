"""The leaderboard: ranks, ties, missing tasks, directions and bands."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Form
from snellen.report.pages.ranking import Entry, board_sheets, make_board
from snellen.report.viewer.app import board_page


def entry(
    name: str,
    *,
    dimension: dict[str, str] | None = None,
    metric: str = "accuracy",
    infer: str = "generate",
    reading: str = "snellen",
    variants: tuple[str, ...] = ("base",),
    data: str = "",
    waiting: int = 0,
    stopped: bool = False,
    lost: int = 3,
    **values: float | None,
) -> Entry:
    tasks = {}
    for task, value in values.items():
        bounds = None if value is None else [max(0.0, value - 0.05), value + 0.05]
        estimate: dict[str, Any] = {
            "value": value,
            "stderr": 0.0255,
            "ci95": bounds,
            "n": 100,
            "unscored": 0,
            "failed": lost,
        }
        tasks[task] = {"metrics": {metric: estimate, f"{metric}_strict": estimate}, "groups": {}}
    asked = {"infer": infer, "variants": variants}
    told = [Task(task, {}, Form.CHOICE, dimension=(dimension or {}).get(task, ""), **asked) for task in values]
    config = {"tasks": {task: {"data": data} for task in values}} if data else {}
    header = RunHeader("id", config, {}, "2026", model=f"model/{name}", tasks=told, planned={})
    status = {
        "complete": stopped or not waiting,
        "planned": dict.fromkeys(values, 1000),
        "not_yet_asked": dict.fromkeys(values, waiting),
    }
    return Entry(name, header, {"tasks": tasks, "run": {"reading": {"name": reading}}, "status": status})


def test_best_first_with_average_rank_over_tasks() -> None:
    board = make_board([entry("low", a=0.2, b=0.9), entry("high", a=0.8, b=0.91)])
    assert [line.name for line in board.lines] == ["high", "low"]
    assert [line.average_rank for line in board.lines] == [1.0, 2.0]
    assert board.lines[0].mean == (0.8 + 0.91) / 2


def test_equal_values_share_their_rank() -> None:
    board = make_board([entry("x", a=0.5), entry("y", a=0.5), entry("z", a=0.1)])
    assert [line.average_rank for line in board.lines] == [1.5, 1.5, 3.0]


def test_errors_rank_upwards() -> None:
    board = make_board([entry("bad", metric="wer", a=0.9), entry("good", metric="wer", a=0.1)])
    assert board.lines[0].name == "good"
    assert board.lines[0].mean is None, "an error rate is no share to average"


def test_without_a_mean_bands_compare_the_tasks_themselves() -> None:
    names = ("far", "near", "best")
    board = make_board(
        [entry(name, metric="wer", a=value) for name, value in zip(names, (0.9, 0.13, 0.1), strict=True)]
    )
    assert [(line.name, line.band) for line in board.lines] == [("best", 1), ("near", 1), ("far", 2)]


def test_runs_of_different_tasks_are_never_ranked_against_each_other() -> None:
    board = make_board([entry("both", a=0.5, b=0.5), entry("one", a=0.9)])
    assert [(line.name, line.block, line.band) for line in board.lines] == [("both", 1, 1), ("one", 2, 1)]
    first, second = board_sheets(board)
    assert first.head[-2:] == ("a", "b") and second.head[-1] == "a" and len(first.rows) == len(second.rows) == 1
    assert second.title == "Leaderboard 2 of 2: a"


def test_bands_join_what_cannot_be_told_apart() -> None:
    board = make_board([entry("a", t=0.80), entry("b", t=0.79), entry("c", t=0.5)])
    assert [line.band for line in board.lines] == [1, 1, 2]
    assert [row[0] for row in board_sheets(board)[0].rows] == ["1", "1=", "2"]


def test_dimensions_are_means_of_their_tasks() -> None:
    told = {"a": "text", "b": "text", "c": "scene"}
    board = make_board([entry("x", dimension=told, a=0.2, b=0.4, c=0.9)])
    assert board.dimensions == ("scene", "text")
    assert board.lines[0].dimensions["scene"] == 0.9
    assert abs(board.lines[0].dimensions["text"] - 0.3) < 1e-12


def test_a_run_without_values_stands_last() -> None:
    board = make_board([entry("none", a=None), entry("some", a=0.1)])
    assert [line.name for line in board.lines] == ["some", "none"]
    assert board.lines[1].average_rank is None
    assert [row[0] for row in board_sheets(board)[0].rows] == ["1", "–"]


def test_a_run_of_which_nothing_was_measured_is_never_first() -> None:
    board = make_board([entry("none", a=None), entry("void", a=None)])
    assert [row[0] for row in board_sheets(board)[0].rows] == ["–", "–"]
    assert "<b>1</b>" not in str(board_page(board, {}))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_ranks_always_add_up(values: list[float]) -> None:
    board = make_board([entry(f"m{i}", a=value) for i, value in enumerate(values)])
    count = len(values)
    assert abs(sum(line.average_rank or 0 for line in board.lines) - count * (count + 1) / 2) < 1e-9
    shown = [line.tasks["a"].value or 0.0 for line in board.lines]
    assert shown == sorted(shown, reverse=True)


def test_what_is_measured_otherwise_is_ranked_apart() -> None:
    board = make_board(
        [
            entry("said", a=0.5),
            entry("likely", infer="likelihood", a=0.9),
            entry("also-likely", infer="every_by_likelihood", a=0.8),
            entry("theirs", reading="reform", a=0.7),
        ]
    )
    columns = ["a (generation, reform)", "a (generation, snellen)", "a (likelihood, snellen)"]
    assert list(board.tasks) == columns
    ranks = {line.name: (line.block, line.average_rank) for line in board.lines}
    assert ranks == {"theirs": (1, 1.0), "said": (2, 1.0), "likely": (3, 1.0), "also-likely": (3, 2.0)}


def test_means_over_other_variants_are_ranked_apart() -> None:
    blurred = ("base", "perturb=blur:5")
    many = tuple(f"wording={n}" for n in range(9))
    board = make_board(
        [
            entry("clear", a=0.9),
            entry("blurred", variants=blurred, a=0.5),
            entry("too", variants=blurred[::-1], a=0.6),
            entry("many", variants=many, a=0.4),
        ]
    )
    assert len({line.block for line in board.lines}) == 3
    assert board.tasks[1:] == ("a (base + perturb=blur:5)", "a (base)")
    assert board.tasks[0].startswith("a (9 variants, ")
    ranks = {line.name: line.average_rank for line in board.lines}
    assert ranks == {"clear": 1.0, "blurred": 2.0, "too": 1.0, "many": 1.0}


def test_runs_of_other_rows_and_unfinished_ones_are_no_rivals() -> None:
    board = make_board(
        [
            entry("whole", data="1111aaaa", a=0.6),
            entry("too", data="1111aaaa", a=0.7),
            entry("few", data="2222bbbb", a=0.99),
            entry("begun", data="1111aaaa", waiting=990, a=1.0),
            entry("narrow", data="1111aaaa", waiting=500, stopped=True, a=0.5),
        ]
    )
    ranks = {line.name: line.average_rank for line in board.lines}
    assert ranks == {"too": 1.0, "whole": 2.0, "narrow": 3.0, "few": 1.0, "begun": 1.0}
    assert len({line.block for line in board.lines}) == 3
    assert "a (rows 1111aaaa, unfinished: 10 of 1,000 asked)" in board.tasks


def test_what_was_lost_stands_beside_the_value() -> None:
    rows = board_sheets(make_board([entry("half", a=0.9, lost=50), entry("whole", a=0.9, lost=0)]))
    cells = {row[2]: row[-1] for row in rows[0].rows}
    assert cells == {"half": "90.0 (85.0–95.0, 50 of 150 lost)", "whole": "90.0 (85.0–95.0)"}
    assert "Lost:" in rows[0].note


def test_a_board_of_0_or_100_percent_has_intervals_with_a_width() -> None:
    whole = entry("all", a=1.0, b=1.0)
    for task in whole.results["tasks"].values():
        task["metrics"]["accuracy"] |= {"stderr": 0.0, "ci95": [0.72, 1.0]}
    (line,) = make_board([whole]).lines
    assert line.mean == 1.0 and line.ci95 is not None
    assert abs(line.ci95[0] - (1 - (2 * 0.28**2) ** 0.5 / 2)) < 1e-12 and line.ci95[1] == 1.0


def test_a_cider_below_1_is_no_percentage() -> None:
    board = make_board([entry("low", metric="cider", a=0.95), entry("high", metric="cider", a=1.05)])
    assert [(line.name, line.mean) for line in board.lines] == [("high", None), ("low", None)]
    assert {row[2]: row[-1].split(" ")[0] for row in board_sheets(board)[0].rows} == {"low": "0.95", "high": "1.05"}
    mixed = make_board([entry("x", metric="points", a=0.9), entry("y", metric="points", a=1300.0)])
    assert [(line.name, line.mean) for line in mixed.lines] == [("y", None), ("x", None)]


def test_a_task_without_a_value_gives_no_mean_of_the_others_and_no_better_place() -> None:
    board = make_board([entry("lost", a=0.9, b=None), entry("full", a=0.9, b=0.5)])
    assert [line.name for line in board.lines] == ["full", "lost"]
    assert [line.mean for line in board.lines] == [(0.9 + 0.5) / 2, None], "0.9 of one task is no mean of two"
    assert [line.average_rank for line in board.lines] == [1.25, 1.75]
    assert [line.band for line in board.lines] == [1, 2]


def test_only_what_can_be_ranked_has_a_table() -> None:
    board = make_board([entry("one", a=0.5), entry("two", a=0.6), entry("alone", b=0.9)])
    page = str(board_page(board, {}))
    assert page.count("<table") == 1
    assert "Not ranked: 1 run " in page and page.index("<details") < page.index("alone")
    nothing = str(board_page(make_board([entry("alone", b=0.9)]), {}))
    assert "<table" not in nothing and "Nothing can be ranked" in nothing


def test_repeats_of_one_model_with_the_same_settings_have_no_order() -> None:
    first, again = entry("x", a=0.5), entry("x", a=0.6)
    again = msgspec.structs.replace(again, name="x-again")
    assert "<table" not in str(board_page(make_board([first, again]), {}))
    other = msgspec.structs.replace(again.header, id="other settings")
    assert "<table" in str(board_page(make_board([first, msgspec.structs.replace(again, header=other)]), {}))


def test_tables_of_one_line_become_one_list() -> None:
    board = make_board([entry("one", a=0.5), entry("two", a=0.6), entry("alone", b=0.9), entry("lonely", c=0.2)])
    ranked, rest = board_sheets(board)
    assert ranked.title == "Leaderboard" and len(ranked.rows) == 2
    assert [row[1] for row in rest.rows] == ["alone", "lonely"]
