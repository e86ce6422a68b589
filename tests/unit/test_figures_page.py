"""The tables of docs/reliability.md: a row is written once, in its place, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from figures import HEAD, ROOT, note_figure, with_row

PAGE = f"before\n<!-- figures of make crash -->\n{HEAD}| a | 1 | d | c |\n| b | 2 | d | c |\n<!-- end of make crash -->\nafter\n"


def test_a_row_takes_the_place_of_its_former_figure_and_a_new_one_comes_last() -> None:
    again = with_row(PAGE, "crash", "a", "| a | 9 | e | f |")
    assert again == PAGE.replace("| a | 1 | d | c |", "| a | 9 | e | f |")
    more = with_row(again, "crash", "c", "| c | 3 | e | f |")
    assert more == again.replace("| b | 2 | d | c |\n", "| b | 2 | d | c |\n| c | 3 | e | f |\n")


def test_figures_are_written_only_when_a_command_asks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.delenv("SNELLEN_FIGURES", raising=False)
    note_figure("crash", "a", "9")
    assert (tmp_path / "page.md").read_text() == PAGE
    monkeypatch.setenv("SNELLEN_FIGURES", str(tmp_path / "page.md"))
    note_figure("crash", "a", "9")
    assert "| a | 9 | 20" in (tmp_path / "page.md").read_text()


def test_the_page_has_a_table_for_each_command() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    for command in ("crash", "fault", "soak"):
        assert with_row(page, command, "x", "| x | 1 | d | c |").count("| x | 1 |") == 1
