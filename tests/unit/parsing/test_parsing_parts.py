"""The parts that pages are measured with: trees, assignments, readers of blocks and formulas, states."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("bs4")

from snellen.core.errors import DataError
from snellen.kits.parsing import katex, olmocr
from snellen.kits.parsing.blocks import MOST_CHARACTERS, Kind, formula_tokens, read_gold, read_page
from snellen.kits.parsing.omnidoc import cell_text
from snellen.kits.parsing.omnidoc_formulas import match_formulas
from snellen.kits.parsing.omnidoc_lines import formula_lines
from snellen.kits.parsing.omnidoc_match import Gold
from snellen.kits.parsing.omnidoc_reading import Piece
from snellen.kits.parsing.omnidoc_reading import read_page as read_omnidoc
from snellen.kits.parsing.page_score import compare_tables, in_order, score_page
from snellen.kits.parsing.pairing import assign, pair_blocks
from snellen.kits.parsing.states import State, loop_length, state_of
from snellen.kits.parsing.teds import Node, TableTooLarge, postorder, teds, tree_distance


@given(st.integers(1, 7), st.integers(1, 7), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_an_assignment_is_the_one_that_scipy_takes_ties_included(rows: int, columns: int, draw) -> None:
    from scipy.optimize import linear_sum_assignment

    costs = np.array([[draw.randrange(4) / 3 for _ in range(columns)] for _ in range(rows)])
    assert assign(costs) == list(zip(*(side.tolist() for side in linear_sum_assignment(costs)), strict=True))


def _brute(first: list[Node], second: list[Node]) -> float:
    """Edit distance of two forests by definition: the last root is deleted, inserted, or one becomes the other."""
    if not first or not second:
        return float(sum(len(postorder(tree)[0]) for tree in (*first, *second)))
    one, other = first[-1], second[-1]
    renamed = float(one.label != other.label) * 0.4
    return min(
        _brute([*first[:-1], *one.children], second) + 1,
        _brute(first, [*second[:-1], *other.children]) + 1,
        _brute(one.children, other.children) + _brute(first[:-1], second[:-1]) + renamed,
    )


_trees = st.recursive(
    st.builds(Node, st.sampled_from("ab")),
    lambda children: st.builds(Node, st.sampled_from("ab"), st.lists(children, max_size=2)),
    max_leaves=4,
)


@given(_trees, _trees)
@settings(max_examples=40, deadline=None)
def test_the_distance_of_trees_is_that_of_the_definition(first: Node, second: Node) -> None:
    (ours, shape), (theirs, other) = postorder(first), postorder(second)
    costs = np.array([[0.4 * (a.label != b.label) for b in theirs] for a in ours])
    assert tree_distance(costs, shape, other) == pytest.approx(_brute([first], [second]))


def _table(rows: int, columns: int) -> str:
    cells = ("".join(f"<td>{r * 7 % 13}.{c}</td>" for c in range(columns)) for r in range(rows))
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def test_a_table_of_sixty_by_ten_is_compared_in_little_time() -> None:
    documents = [f"<html><body>{_table(rows, 10)}</body></html>" for rows in (60, 58)]
    start = time.process_time()
    found = teds(*documents)
    assert time.process_time() - start < 2.0  # 0.3 s on a quiet machine: benchmarks/parsing.py
    assert 0.9 < found.teds < 1.0 and found.structure == pytest.approx(1 - 22 / 660)


def test_tables_beyond_comparing_are_refused_by_the_originals_rule_and_lined_up_by_ours() -> None:
    huge = _table(400, 10)
    with pytest.raises(TableTooLarge):
        teds(f"<html><body>{huge}</body></html>", f"<html><body>{huge}</body></html>")
    blocks = read_page(huge).blocks
    found = compare_tables(0, 0, blocks, blocks)
    assert (found.teds, found.structure, found.exact) == (1.0, 1.0, False)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("# A\n\ntext\n\n$$x$$", [Kind.TEXT, Kind.TEXT, Kind.FORMULA]),
        ("a | b\n--- | ---\n1 | 2", [Kind.TABLE]),
        ("before <TABLE><TR><TD>x", [Kind.TEXT, Kind.TABLE]),
        (r"\begin{tabular}{ll}a & b \\ c & d\end{tabular}", [Kind.TABLE]),
        ("```\ncode $x$ <table>\n```", [Kind.TEXT]),
        (r"\begin{equation}a=b\end{equation}", [Kind.FORMULA]),
        ("", []),
        ("![a picture](x.png)", []),
    ],
)
def test_a_page_is_read_into_its_blocks(text: str, kinds: list[Kind]) -> None:
    assert [block.kind for block in read_page(text).blocks] == kinds


def test_what_is_taken_off_a_reply_is_told() -> None:
    found = read_page("Here is the page:\n```markdown\n# A\n```")
    assert found.removed == ("Here is the page:", "```markdown")
    assert [(block.text, block.level) for block in found.blocks] == [("A", 1)]
    code = read_page("```python\nprint(1)\n```")
    assert code.removed == () and code.blocks[0].text == "print(1)"


def test_money_is_no_formula_and_spans_that_are_no_numbers_are_one() -> None:
    assert read_page("It costs $5 and $6.").blocks[0].text == "It costs $5 and $6."
    rows = read_page('<table><tr><td rowspan="two" colspan="99999999999">x</td></tr></table>').blocks[0].rows
    assert (rows[0][0].rows, rows[0][0].columns) == (1, 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("v^{2}", "v^2"),
        (r"\frac{a}{b}", r"{a \over b}"),
        (r"\left(a\right)", "(a)"),
        (r"\alpha \le \beta", r"α \leq β"),
        ("x_i^2", "x^2_i"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a = b c = d"),
        (r"\sin x \tag{3}", r"\mathrm{sin} x"),
    ],
)
def test_formulas_that_are_drawn_alike_have_the_same_tokens(first: str, second: str) -> None:
    assert formula_tokens(first) == formula_tokens(second)


@pytest.mark.parametrize(
    ("first", "second"), [("mc^2", "mc_2"), ("3.14159", "3.14195"), (r"\mathbb{R}", "R"), ("X", "x")]
)
def test_formulas_that_are_drawn_otherwise_have_not(first: str, second: str) -> None:
    assert formula_tokens(first) != formula_tokens(second)


def test_neighbours_stand_together_for_one_block_on_either_side() -> None:
    long = "one two three four five six seven eight nine ten"
    gold = read_gold(
        [{"category": "text_block", "text": long}, {"category": "text_block", "text": "another line here"}]
    )
    split = read_page("one two three four\n\nfive six seven\n\neight nine ten\n\nanother line here").blocks
    assert [match[:2] for match in pair_blocks(gold, split)] == [((0,), (0, 1, 2)), ((1,), (3,))]
    joined = read_page(f"{long} another line here").blocks
    assert [match[:2] for match in pair_blocks(gold, joined)] == [((0, 1), (0,))]


def test_the_order_of_places_is_the_share_of_pairs_that_ascend() -> None:
    assert (in_order([1, 2, 3]), in_order([3, 2, 1]), in_order([1, 3, 2]), in_order([1])) == (1.0, 0.0, 2 / 3, None)


@pytest.mark.parametrize(
    ("text", "finish", "state"),
    [
        ("", "stop", State.EMPTY),
        ("", "length", State.TRUNCATED),
        ("I'm sorry, but I can't help with reading this image.", "stop", State.REFUSED),
        ("A page about harbours.", "stop", State.READ),
        ("A page about harb", "length", State.TRUNCATED),
        ("Start. " + "the lamp is lit " * 40, "length", State.LOOP),
        ("| a | b |\n" * 3, "stop", State.READ),
        ("-" * 500, "stop", State.READ),
    ],
)
def test_what_became_of_a_reply_is_told(text: str, finish: str, state: State) -> None:
    assert state_of(text, finish) is state


def test_a_loop_is_as_long_as_what_is_repeated() -> None:
    assert loop_length("x" + "abc " * 100) == pytest.approx(396, abs=5)
    assert loop_length("no loop at all here") == 0


BOMBS = {
    "nested tables": "<table><tr><td>" * 3000,
    "spans": "<table>" + '<tr><td rowspan="100000" colspan="100000">x</td></tr>' * 300 + "</table>",
    "ten megabytes": "word and word " * 750_000,
    "stars": "*" * 100_000,
    "dollars": "$" * 100_001,
    "brackets": "\\[" * 90_000 + "\\(" * 9_000,
    "begins": "\\begin{equation}" * 10_000,
    "comments": "<!--" * 40_000 + "![" * 9_000,
    "braces": "$$" + "{" * 50_000 + "$$",
    "null": "a\0b\x07c",
    "surrogate": "a \ud800 b <table><tr><td>\udfff</td></tr></table>",
    "entities": "&" * 50_000,
    "pipes": "|" * 30_000 + "\n" + "|-" * 15_000,
    "quotes": ">" * 20_000 + " a",
    "lists": "- " * 5_000 + "a",
    "overs": "$$" + r"{a \over " * 1000 + "$$",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bad_input_is_bounded_and_scored(name: str) -> None:
    gold = read_gold("# A page\n\nwith some words on it.\n\n<table><tr><td>a</td><td>b</td></tr></table>")
    start = time.process_time()
    reading = read_page(BOMBS[name])
    found = score_page(gold, reading)
    assert 0 <= found.page < 60
    assert time.process_time() - start < 6.0
    assert reading.unread == max(0, len(BOMBS[name].replace("\0", "")) - MOST_CHARACTERS)


def test_omnidocbench_cuts_formulas_into_lines_and_matches_them() -> None:
    lines = formula_lines(r"$$\begin{aligned} a &= b \\ c &= d \end{aligned}$$")
    assert [line.content for line in lines] == ["a &= b", "c &= d"]
    assert formula_lines("$$a = b$$") == []
    gold = [Gold("equation_isolated", "$$a = b$$", 1), Gold("equation_isolated", "$$c = d$$", 2)]
    found = match_formulas(gold, [Piece("equation_isolated", r"\[c = d\]", 0, 9)], [])
    assert {pair.gold: bool(pair.reply) for pair in found} == {(0,): False, (1,): True}


def test_omnidocbench_reads_pipes_formulas_and_texts() -> None:
    pieces = read_omnidoc("# A\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n$$x=1$$\n\nsee $y^2+1=z$ there")
    assert {piece.category for piece in pieces} >= {
        "text_block",
        "md2html_table",
        "equation_isolated",
        "equation_inline",
    }
    assert cell_text("a - $\\alpha$") == "a—α"


def test_an_unknown_unit_test_is_an_error_not_a_failure() -> None:
    with pytest.raises(DataError, match="colour"):
        olmocr.run_test({"type": "colour"}, "x")


def test_a_missing_browser_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(katex, "FOLDERS", ())
    monkeypatch.setenv("SNELLEN_KATEX", "/nowhere")
    katex._programs.cache_clear()
    assert "KaTeX" in (katex.missing_reason() or "")
    monkeypatch.undo()
    katex._programs.cache_clear()
