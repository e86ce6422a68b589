"""Formulas compared by what is drawn, where the programs that draw are stand-ins with a known layout.

The recorded figures of the originals need pdflatex and Chromium; these tests say the same of our part on any machine.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("pypdfium2")

from snellen.core.errors import EnvironmentProblem
from snellen.kits import parsing
from snellen.kits.parsing import cdm

LATEX = r"""
import re
from pathlib import Path

drawn, at = [], 20
for part in re.finditer(r"\\color\[RGB\]\{(\d+),(\d+),(\d+)\}|\\quad", Path("formula.tex").read_text("utf-8")):
    if part[1] is None:
        at += 60
        continue
    colour = " ".join(f"{int(value) / 255:.6f}" for value in part.groups())
    drawn.append(f"{colour} rg {at} 200 14 10 re f")
    at += 30
content = "\n".join(drawn)
parts = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 420] /Contents 4 0 R >>",
    f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
]
text, places = "%PDF-1.4\n", []
for number, part in enumerate(parts, 1):
    places.append(len(text))
    text += f"{number} 0 obj\n{part}\nendobj\n"
rows = "".join(f"{place:010} 00000 n \n" for place in places)
text += f"xref\n0 5\n0000000000 65535 f \n{rows}trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n{len(text)}\n%%EOF"
if drawn:
    Path("formula.pdf").write_text(text)
"""
"""Sets every coloured token as a box of 14 x 10 pt, 30 pt from the next; `\\quad` is 60 pt more. Nothing coloured: no file."""

CHROMIUM = r"""
import html, json, re, sys
from pathlib import Path
from urllib.parse import unquote, urlparse

page = Path(unquote(urlparse(sys.argv[-1]).path)).read_text("utf-8")
formulas = json.loads(re.search(r"for \(const formula of (\[.*\])\)", page)[1])
with Path(sys.argv[0] + ".started").open("a") as file:
    file.write("x")
if "silence" not in formulas:
    drawn = [
        {"error": "unknown"} if "bad" in one
        else {"mathml": f"<math>{one}</math>", "glyphs": [["\u200b", 0, 0, 9, 9], [one, 10, 20, 10 * len(one), 8]]}
        for one in formulas
    ]
    print('<html><body><pre id="drawn">' + html.escape(json.dumps(drawn)) + "</pre></body></html>")
"""
"""Draws each letter of a formula 10 px wide and 8 px high from (10, 20) on, after a mark that has no width."""


def put_program(folder: Path, name: str, code: str) -> Path:
    place = folder / name
    place.write_text(f"#!{sys.executable} -IS\n{code}", "utf-8")
    place.chmod(0o755)
    return place


@pytest.fixture
def latex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    put_program(tmp_path, "pdflatex", LATEX)
    monkeypatch.setenv("PATH", str(tmp_path))
    cdm.check.cache_clear()
    cdm.draw.cache_clear()
    yield
    cdm.check.cache_clear()
    cdm.draw.cache_clear()


@pytest.mark.usefixtures("latex")
@pytest.mark.parametrize(
    ("reply", "gold", "f1", "recall", "precision"),
    [
        ("a+b", "a+b", 1.0, 1.0, 1.0),
        (r"\[ a+b \]", "$a+b$", 1.0, 1.0, 1.0),
        ("a+c", "a+b", 0.667, 0.667, 0.667),
        ("a+b+c", "a+b", 0.75, 1.0, 0.6),
        ("", "a+b", 0.0, 0.0, 0.0),
        (r"x \leq 1", r"x \le 1", 1.0, 1.0, 1.0),
        (r"\widehat{x}", r"\hat{x}", 1.0, 1.0, 1.0),
        (r"a b c \quad d", "a b c d", 0.75, 0.75, 0.75),
        (r"\input{x} a+b", "a+b", 0.0, 0.0, 0.0),
    ],
)
def test_tokens_count_that_are_alike_and_move_together(
    reply: str, gold: str, f1: float, recall: float, precision: float
) -> None:
    assert cdm.cdm(reply, gold) == (f1, recall, precision)


@pytest.mark.usefixtures("latex")
def test_boxes_are_measured_from_the_first_ink_in_pixels() -> None:
    drawn = cdm.draw("ab")
    assert drawn.tokens == ["a", "b"]
    pixels = cdm.DPI / 72
    wanted = [[0, 0, 14 * pixels, 10 * pixels], [30 * pixels, 0, 44 * pixels, 10 * pixels]]
    assert [list(box) for box in drawn.boxes] == [pytest.approx(box, abs=2) for box in wanted]
    assert drawn.size == (drawn.boxes[:, 2].max() + 17, drawn.boxes[:, 3].max() + 17)


@pytest.mark.usefixtures("latex")
def test_a_gold_formula_of_which_nothing_is_drawn_is_not_scored() -> None:
    with pytest.raises(EnvironmentProblem, match=r"\\quad"):
        cdm.cdm("a", r"\quad")


def test_latex_that_draws_a_known_formula_unlike_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_program(tmp_path, "pdflatex", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    for cached in (cdm.check, cdm.draw):
        cached.cache_clear()
    assert cdm.missing_reason() is not None
    for cached in (cdm.check, cdm.draw):
        cached.cache_clear()


def test_every_token_has_a_colour_of_its_own_and_none_is_that_of_paper() -> None:
    text, tokens = cdm.coloured("a" * cdm.MOST_TOKENS)
    colours = re.findall(r"\\color\[RGB\]\{(\d+),(\d+),(\d+)\}", text)
    assert len(tokens) == len(set(colours)) == cdm.MOST_TOKENS
    assert {len({*colour}) > 1 or int(colour[0]) < 255 for colour in colours} == {True}
    assert all(0 <= int(value) < 256 for colour in colours for value in colour)


@pytest.mark.parametrize(
    ("latex", "tokens"),
    [
        (r"\frac12", [r"\frac", "1", "2"]),
        (r"\dfrac{1}{2}", [r"\frac", "1", "2"]),
        (r"{1 \over 2} + x", [cdm.INFIX, "1", "2", "+", "x"]),
        (r"x^2_i", ["x", "i", "2"]),
        (r"\sqrt{x} \quad y", [r"\sqrt", "x", "y"]),
        (r"\sin x", ["s", "i", "n", "x"]),
        (r"a \ldots b", ["a", ".", ".", ".", "b"]),
        ("f'", ["f", r"\prime"]),
        (r"\left( x \right)", ["(", "x", ")"]),
        (r"\mathrm{d} x", ["d", "x"]),
        (r"\begin{array}{ll} a & b \\ c \end{array}", ["a", "b", "c"]),
        (r"\overset{a}{b}", ["a", "b"]),
    ],
)
def test_tokens_are_those_that_are_seen(latex: str, tokens: list[str]) -> None:
    text, seen = cdm.coloured(latex)
    assert seen == tokens
    assert text.count(r"\color") == len(tokens) and text.count("{") == text.count("}")


@pytest.fixture
def katex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is when nothing was drawn or looked for yet."""
    for name in ("katex.min.js", "katex.min.css"):
        (tmp_path / name).write_text("", "utf-8")
    put_program(tmp_path, "chromium", CHROMIUM)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SNELLEN_KATEX", str(tmp_path))
    name = "snellen.kits.parsing.katex"
    monkeypatch.setattr(parsing, "katex", importlib.import_module(name))
    monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(name)


def test_each_letter_stands_in_the_middle_of_its_share(katex: ModuleType, tmp_path: Path) -> None:
    drawn = katex.draw(["ab", r"\bad", "ab", "a<b"])
    assert list(drawn) == ["ab", r"\bad", "a<b"]
    assert [(glyph.text, glyph.x, glyph.y) for glyph in drawn["ab"].glyphs] == [("a", 15, 24), ("b", 25, 24)]
    assert drawn["ab"].mathml == "<math>ab</math>" and not drawn["ab"].error
    assert drawn[r"\bad"].error == "unknown" and not drawn[r"\bad"].glyphs
    assert "".join(glyph.text for glyph in drawn["a<b"].glyphs) == "a<b"
    assert katex.draw(["ab"])["ab"] == drawn["ab"]
    started = tmp_path / "chromium.started"
    assert started.read_text() == "x", "what is new is drawn at once, what is known never again"
    assert set(katex.draw(["ab", "c"])) == {"ab", "c"} and started.read_text() == "xx"


def test_a_browser_that_draws_nothing_is_no_formula_without_glyphs(katex: ModuleType) -> None:
    with pytest.raises(EnvironmentProblem):
        katex.draw(["silence"])


def test_what_is_missing_to_draw_with_is_named(katex: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "chromium").unlink()
    assert "Chromium" in katex.missing_reason()
    (tmp_path / "katex.min.js").unlink()
    if not any(Path(folder, "katex.min.js").is_file() for folder in katex.FOLDERS):
        assert "SNELLEN_KATEX" in katex.missing_reason()
