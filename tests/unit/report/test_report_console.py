"""The console never cuts a name or a number, whatever the width."""

from __future__ import annotations

import io
import os

import pytest
from rich.table import Table

from snellen.report.console import WholeConsole
from snellen.report.pages.notebook import headline_words, results_html
from snellen.report.pages.sheet import Sheet, to_latex, to_terminal
from snellen.report.pages.vega import to_csv
from snellen.report.terminal import group_tables, plain, results_table

NAME = "reform/tdiuc-counting-by-a-very-long-name"
ESTIMATE = {"value": 0.741, "ci95": [0.7, 0.78], "n": 100_000, "unscored": 12_345, "failed": 0}


def printed(thing: object, *, width: int, tty: bool) -> str:
    console = WholeConsole(file=io.StringIO(), force_terminal=tty, color_system=None, width=width)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("tty", [True, False])
def test_no_name_and_no_number_of_a_table_is_cut(width: int, tty: bool) -> None:
    metrics = {NAME: ESTIMATE, "accuracy": ESTIMATE | {"value": 12345.678}}
    text = printed(results_table(NAME, {"metrics": metrics}), width=width, tty=tty)
    assert "…" not in text
    for cell in ("100,000", "12,345", "12345.7", "74.1 %", "70.0 – 78.0"):
        assert cell in text
    letters = "".join(line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│"))
    assert NAME in letters


def test_a_wide_enough_terminal_folds_nothing_and_a_narrow_one_folds_words_first() -> None:
    def table() -> Table:
        table = Table("task", "what it measures")
        table.add_row("short", "a long sentence of many words that can well be folded into several lines")
        return table

    narrow = printed(table(), width=60, tty=True)
    assert max(map(len, narrow.splitlines())) <= 60
    assert "short" in narrow
    assert len(printed(table(), width=60, tty=False).splitlines()) == 5, "a pipe gets one line a row"


def test_lines_stay_whole_without_a_terminal() -> None:
    path = "results " + "/very/long/folder" * 20
    assert printed(plain(path), width=80, tty=False) == path + "\n"


def test_boards_for_a_terminal_keep_their_cells() -> None:
    sheet = Sheet("board", ("model", "accuracy"), ((NAME * 2, "74.123"),))
    text = to_terminal(sheet, width=30)
    assert "…" not in text
    assert "74.123" in text


def test_a_tag_called_n_is_told_from_the_count() -> None:
    result = {"groups": {"n": {"odd": {"accuracy": ESTIMATE}, "even": {"accuracy": ESTIMATE}}}}
    (table,) = group_tables(result)
    assert [str(column.header) for column in table.columns] == ["n", "accuracy", "trials", "unscored"]


def test_latex_holds_no_character_that_latex_does_not_know() -> None:
    text = to_latex(Sheet("A − B", ("x", "y"), (("−1.0 … ± 2", "a → b · c × d"),)))
    assert text.isascii()


def test_the_figures_of_the_viewer_defuse_formulas() -> None:
    assert (
        to_csv([{"=tag": '=HYPERLINK("x")', "n": -3, "share": 0.5}]) == '\'=tag,n,share\n"\'=HYPERLINK(""x"")",-3,0.5\n'
    )


def test_a_result_in_one_line_and_in_a_notebook() -> None:
    results = {
        "model": "m<b>",
        "run": {"id": "1"},
        "tasks": {"my": {"metrics": {"accuracy": ESTIMATE | {"failed": 3}}}},
    }
    assert list(headline_words(results)) == ["my accuracy 74.1 % [70.0 – 78.0], n 100000, 3 failed"]
    assert list(headline_words({**results, "tasks": {"my": {"metrics": {}}}})) == ["my: nothing measured"]
    page = results_html(results)
    assert "<table" in page
    assert "m&lt;b&gt;" in page


def test_a_reader_who_has_seen_enough_is_no_failure() -> None:
    """`snellen show RUN | head -1` exited with 1, which says that something was lost."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as raw:
        console = WholeConsole(file=io.TextIOWrapper(raw, write_through=True))
        with pytest.raises(BrokenPipeError):
            console.print("x")
