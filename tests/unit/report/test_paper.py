"""Tables and figures for papers: LaTeX compiles whatever names hold, figures are whole files, comparisons one page."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest

from command_line import run_command
from made_runs import make_run, make_task
from snellen.api import outputs
from snellen.report.pages.sheet import Sheet, to_latex
from snellen.report.paper.run_files import LATEX_FRAME, run_sheets

NASTY = r"a_b & 50 % $x^2$ #1 {y} ~ \z – … − ± × ≤ → <|> é ß 视力 🦉 ş α"
HAS_TEX = (
    shutil.which("pdflatex") and subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True, check=False).stdout
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, skill in (("a", 0.4), ("b", 0.6), ("c", 0.9)):
        make_run(folder / name, model=f"openai/{name}_x", skill=skill, count=60, task=make_task(repeats=2))
    return folder


def compiled(path: Path) -> str:
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", path.name],
        cwd=path.parent, capture_output=True, text=True, errors="replace", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert path.with_suffix(".pdf").stat().st_size > 1000
    return done.stdout


@pytest.mark.skipif(not HAS_TEX, reason="no LaTeX with booktabs: Debian's texlive-latex-recommended")
def test_latex_of_a_run_and_of_a_comparison_compiles(runs: Path, tmp_path: Path) -> None:
    for names in (("a",), ("a", "b", "c")):
        files = outputs.tables([runs / name for name in names], "latex", tmp_path / "-".join(names))
        assert [file.name for file in files] == ["tables.tex", "tables-alone.tex"]
        compiled(files[1])


@pytest.mark.skipif(not HAS_TEX, reason="no LaTeX with booktabs: Debian's texlive-latex-recommended")
def test_latex_compiles_whatever_names_hold(tmp_path: Path) -> None:
    odd = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA0, 0x180)]))
    sheet = Sheet(NASTY, (NASTY, "n"), ((NASTY, "1"), (odd, "2"), ("tab\tnew\nline\x00\x1b", "3")))
    (tmp_path / "t.tex").write_text(to_latex(sheet), encoding="utf-8")
    (tmp_path / "alone.tex").write_text(LATEX_FRAME % "t.tex", encoding="utf-8")
    compiled(tmp_path / "alone.tex")


def test_latex_names_what_it_has_no_letter_for() -> None:
    made = to_latex(Sheet("t", ("视",), (("é <a>",),)))
    assert "[U+89C6]" in made
    assert r"é \textless{}a\textgreater{}" in made


def test_tables_hold_what_results_hold(runs: Path, tmp_path: Path) -> None:
    results = msgspec.json.decode((runs / "a" / "results.json").read_bytes())
    sheets = run_sheets(results)
    assert [row[0] for row in sheets[0].rows] == list(results["tasks"]["shapes"]["metrics"])
    assert {sheet.title for sheet in sheets[1:]} == {"shapes: accuracy by page", "shapes: accuracy by shape"}
    (path,) = outputs.tables([runs / "a"], "markdown", tmp_path)
    value = results["tasks"]["shapes"]["metrics"]["accuracy"]["value"]
    assert f"| accuracy | {value * 100:.1f} % |" in path.read_text()
    (path,) = outputs.tables([runs / "a"], "csv", tmp_path)
    assert path.name == "tables.csv"
    results["tasks"]["other"] = results["tasks"]["shapes"]
    assert run_sheets(results)[0].title == "openai/a_x: all tasks"


def test_figures_are_whole_svg_files_with_their_data(runs: Path, tmp_path: Path) -> None:
    files = outputs.figures(runs / "a", tmp_path / "figures")
    drawn = [file for file in files if file.suffix == ".svg"]
    assert {file.stem for file in drawn} == {
        "shapes-by-group",
        "shapes-confusion",
        "shapes-positions",
        "shapes-latency",
    }
    for file in drawn:
        root = ElementTree.parse(file).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(root.attrib["width"]) > 100
        assert "var(" not in file.read_text(), "colours of its own"
        assert file.with_suffix(".csv").read_text().count("\n") > 2


def test_a_comparison_is_one_page_with_pictures_and_replies(runs: Path, tmp_path: Path) -> None:
    folders = [runs / name for name in "abc"]
    assert run_command(["report", "--compare", *folders, "--tables", "csv", "-o", tmp_path]) == 0
    page = (tmp_path / "comparison.html").read_text()
    assert "a against b against c" in page
    assert page.count("data:image/webp") >= 10
    assert page.count('class="flip"') == 40
    assert "the 40 furthest apart shown" in page
    assert "<script" not in page
    assert (tmp_path / "tables.csv").is_file()


def test_a_report_stands_beside_its_baseline_and_sums_up_its_tasks(runs: Path) -> None:
    page = outputs.report(runs / "c", baseline=runs / "a").read_text()
    assert "Beside the baseline" in page
    assert "c is better" in page
    assert "What could not be read" in page, "unparsed replies have cards of their own"
    assert "Beside the baseline" not in outputs.report(runs / "c").read_text()


def test_what_would_be_left_aside_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        ((str(runs / "a"), str(runs / "b")), "add --compare"),
        (("--compare", str(runs / "a")), "at least two runs"),
        (("--compare", str(runs / "a"), str(runs / "b"), "--figures"), "leave out --figures"),
        ((str(runs / "a"), "--baseline", str(runs / "b"), "--tables", "csv"), "--baseline belongs to report.html"),
    ):
        assert run_command(["report", *arguments]) == 2
        assert words in re.sub(r"\s+", " ", capsys.readouterr().err)
