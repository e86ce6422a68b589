"""Replies as Markdown and LaTeX mean them: what decided stays marked, and nothing of a hostile one becomes markup."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest

pytest.importorskip("latex2mathml", reason="the extra `view` is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

from payloads import PAYLOADS
from snellen.report.viewer.rendered_reply import ATTRIBUTES, ELEMENTS, MOST, formula, rendered_reply

OURS = {"div", "p", "br", "hr", "ul", "ol", "li", "blockquote", "strong", "em", "s", "code", "pre", "mark", "span"}
OURS |= {"table", "thead", "tbody", "tr", "th", "td"}
OURS_TOLD = {"class", "title", "start", "scope", "tabindex"}


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.made: list[str] = []
        self.told: set[str] = set()
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.made.append(tag)
        self.told |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words += data


def marked(page: str | None) -> str:
    return "".join(re.findall(r"<mark[^>]*>(.*?)</mark>", page or ""))


def test_markdown_becomes_what_it_means() -> None:
    page = rendered_reply("# Sum\n\n- **one**\n- `two`\n\n| a | b |\n|--|-:|\n| 1 | 2 |\n\n```py\nx < 1\n```\n> said")
    made = Seen(str(page)).made
    assert made.count("li") == 2 and made.count("td") == 2
    assert {"strong", "code", "table", "pre", "blockquote"} <= set(made)
    assert "h1" not in made, "the outline of the page is its own"
    assert "x &lt; 1" in str(page)


@pytest.mark.parametrize(
    "latex",
    [
        r"$\frac{1}{2}$",
        r"\(\frac{1}{2}\)",
        "$$\n\\frac{1}{2}\n$$",
        "\\[\n\\frac{1}{2}\n- 3\n\\]",
        r"so \[ \frac{1}{2} \].",
    ],
)
def test_formulas_in_all_four_pairs_of_signs(latex: str) -> None:
    made = Seen(str(rendered_reply(latex))).made
    assert made.count("math") == 1 and "mfrac" in made
    assert "li" not in made, "a minus in a formula begins no list"


def test_prices_are_no_formulas() -> None:
    assert rendered_reply("It costs $5 and that one $10.") is None
    assert rendered_reply("costs 5$ or 7$ each") is None


def test_plain_text_is_left_to_the_text_as_it_came() -> None:
    assert rendered_reply("B") is None
    assert rendered_reply("Two lines\nof plain text.") is None
    assert rendered_reply("**x** " * MOST) is None, "too long to render"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("The answer is **A. red**.", "A. red"),
        ("So $x$ gives **B**", "B"),
        ("Thus **Answer: C**\n\n- D", "Answer: C"),
        ("- one\n- two **x**", "one"),
        ("## 42\n\n**sure**", "42"),
    ],
)
def test_what_decided_is_marked(text: str, part: str) -> None:
    start = text.index(part)
    assert marked(rendered_reply(text, (start, start + len(part)))) == part


def test_a_formula_that_decided_is_marked_whole() -> None:
    text = r"It is $\boxed{42}$ **sure**"
    page = rendered_reply(text, (text.index("42"), text.index("42") + 2))
    assert "42" in marked(page) and "menclose" in marked(page)


def test_a_span_over_several_elements_is_marked_in_each() -> None:
    text = "I say **A** and *B* now"
    assert marked(rendered_reply(text, (2, len(text)))) == "say A and B now"


@pytest.mark.parametrize("span", [(3, 1), (0, 10**6), (-4, 2), ("a", "b")])
def test_a_span_that_is_none_marks_nothing(span: tuple[int, int]) -> None:
    page = rendered_reply("**bold**", span if isinstance(span[0], int) else None)
    assert page is not None and marked(page) == ""


def assert_harmless(page: str | None) -> None:
    if page is not None:
        seen = Seen(page)
        assert set(seen.made) <= OURS | ELEMENTS
        assert seen.told <= OURS_TOLD | ATTRIBUTES


def test_no_payload_becomes_markup() -> None:
    shapes = (
        "**x** {}",
        "$\\text{{{}}}$ *y*",
        "[{}](http://evil.invalid) `{}`",
        "![{}]({})",
        "# {}\n",
        "| {} |\n|--|\n| {} |",
        "```{}\n{}\n```",
        "\\[ {} \\]",
    )
    for payload in PAYLOADS:
        for shape in shapes:
            assert_harmless(rendered_reply(shape.replace("{}", payload).replace("{{", "{").replace("}}", "}"), (0, 9)))


@pytest.mark.parametrize(
    "latex",
    [
        r"\href{javascript:fired()}{x}",
        r"\style{background:url(//evil.invalid)}{x}",
        r"\class{a}{b}",
        r"\text{<img src=x onerror=fired()>}",
        r"\text{&lt;script&gt;}",
        r"\color{url(x)}{y}",
    ],
)
def test_formulas_lead_nowhere_and_load_nothing(latex: str) -> None:
    assert_harmless(formula(latex))


def test_links_and_pictures_of_a_reply_are_told_not_made() -> None:
    seen = Seen(str(rendered_reply("[here](https://a.invalid/x) ![cat](https://a.invalid/c.png) **z**")))
    assert "a" not in seen.made and "img" not in seen.made
    assert "https://a.invalid/x" in seen.words and "https://a.invalid/c.png" in seen.words


def test_a_formula_that_is_not_understood_stays_as_it_came() -> None:
    page = str(rendered_reply(r"**x** $a_1_2$ and $\frac{$"))
    assert "<code>a_1_2</code>" in page


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="*_`[]()!<>#|-$\\{}^&;:/ab\n \ue000\ue001", max_size=120), st.integers(0, 60))
def test_any_text_is_harmless(text: str, start: int) -> None:
    page = rendered_reply(text, (start, min(len(text), start + 20)))
    assert_harmless(page)
    assert "\ue000" not in (page or "") and "\ue001" not in (page or "")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="*_#>-abc. \n", max_size=120), st.integers(0, 60))
def test_no_letter_is_lost_and_a_mark_changes_no_word(text: str, start: int) -> None:
    page = rendered_reply(text, (start, min(len(text), start + 20)))
    if page is not None:
        assert re.sub("[^abc]", "", Seen(page).words) == re.sub("[^abc]", "", text)
        assert Seen(page).words == Seen(str(rendered_reply(text))).words


def test_texts_made_to_be_slow_are_not() -> None:
    bombs = (
        "[" * MOST,
        "$a" * (MOST // 2),
        "\\[" * (MOST // 2),
        "> " * (MOST // 2),
        "![[](" * (MOST // 5),
        "*_" * (MOST // 2),
    )
    table = "|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n" + "|\n" * 9000
    nested = "$" + "{" * 900 + "x" + "}" * 900 + "$"
    began = time.process_time()
    for bomb in (*bombs, table, nested):
        rendered_reply(bomb[:MOST], (3, 9))
    assert time.process_time() - began < 10
