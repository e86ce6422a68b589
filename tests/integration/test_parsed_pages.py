"""Pages turned into text, end to end: rows, drawn pages, benchmarks' files, states, audits and second opinions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

pytest.importorskip("bs4")

from command_line import json_of, run_command
from snellen.core.protocols import LoadContext
from snellen.data.catalog import Catalog
from snellen.kits.parsing import drawn_pages, page_bench
from snellen.kits.parsing.blocks import read_gold, read_page
from snellen.kits.parsing.laws import LAWS, RULES, audit
from snellen.kits.parsing.laws import drawn_pages as law_pages
from snellen.kits.parsing.page_score import score_page
from snellen.kits.parsing.parsed_page import block_rows, rendered
from snellen.kits.parsing.scorers import olmocr_figures

PAGE = "# Cargo\n\nThe office counts every boat.\n\n<table><tr><td>Boat</td><td>Tons</td></tr><tr><td>Heron</td><td>12</td></tr></table>\n\n$$E = mc^{2}$$"
REPLIES = {
    "perfect": PAGE,
    "fenced": f"```markdown\n{PAGE}\n```",
    "invented": PAGE + "\n\nA festival with fireworks was held for every visitor.",
    "refused": "I'm sorry, but I can't help with reading this image.",
    "loop": PAGE + "\n\n" + "the lamp is lit " * 40,
    "empty": "",
}
PLUGIN = """
import json, pathlib
REPLIES = json.loads(pathlib.Path({path!r}).read_text())

def replay(request):
    return REPLIES[request.key.sample]
"""


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    for name in REPLIES:
        PIL.Image.new("RGB", (60, 80), "white").save(tmp_path / f"{name}.png")
    rows = [{"id": name, "image": f"{name}.png", "markdown": PAGE} for name in REPLIES]
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "replies.json").write_text(json.dumps(REPLIES))
    return tmp_path


def _run(folder: Path, *more: str) -> dict[str, Any]:
    plugin = folder / "replay_model.py"
    plugin.write_text(PLUGIN.format(path=str(folder / "replies.json")))
    out = folder / "run0"
    told = ["run", folder / "pages.jsonl", "--model", "plugin/replay", "--plugin", plugin, "-o", out, *more]
    assert run_command(told) == 0
    return json.loads((out / "results.json").read_text())


def test_own_pages_are_scored_and_no_state_is_a_plain_zero(pages: Path) -> None:
    results = _run(pages, "--form", "parse")
    task = results["tasks"]["pages"]
    assert task["headline"] == "page"
    records = {
        one["sample"]: one for one in map(json.loads, (pages / "run0" / "records.jsonl").read_text().splitlines())
    }
    assert records["perfect"]["value"] == records["fenced"]["value"] == 1.0
    assert 0.5 < records["invented"]["value"] < 0.95
    assert (records["refused"]["value"], records["refused"]["reason"]) == (None, "refused")
    assert (records["empty"]["value"], records["empty"]["reason"]) == (None, "empty")
    assert 0 < records["loop"]["value"] < 0.5 and records["loop"]["scores"]["loop_rate"] == 1.0
    metrics = task["metrics"]
    assert metrics["loop_rate"]["value"] == pytest.approx(1 / 6)
    assert metrics["page"]["n"] == 6 and metrics["page_read"]["n"] == 4


def test_a_scorer_that_fails_says_so(pages: Path) -> None:
    from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
    from snellen.kits.parsing.scorers import score_official

    key = TrialKey("t", "1")
    cells = "<td>x</td>" * 3000
    huge = f"<table><tr>{cells}</tr></table>"
    sample = Sample("1", "t", Form.PARSE, "", answers=(huge,))
    found = score_official(sample, Request(key, ()), Prediction(key, text=huge), {"rule": "omnidocbench-1.6"})
    assert found[0].value is None and "too many" in (found[0].reason or "")


def test_cdm_is_measured_where_it_is_asked_for_and_latex_is_there() -> None:
    from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
    from snellen.kits.parsing import cdm
    from snellen.kits.parsing.scorers import score_official

    key = TrialKey("t", "1")
    sample = Sample("1", "t", Form.PARSE, "", answers=("$$E = mc^{2}$$",))
    told = {"rule": "omnidocbench-1.6", "cdm": True}
    found = score_official(sample, Request(key, ()), Prediction(key, text=r"\[E = m c^2\]"), told)
    score = next(one for one in found if one.metric == "formula_cdm")
    assert score.value == 1.0 if cdm.missing_reason() is None else "pdflatex" in (score.reason or "")


def _omnidoc(folder: Path) -> Path:
    def item(kind: str, number: int, **more: Any) -> dict[str, Any]:
        return {"category_type": kind, "order": number, "anno_id": number, "ignore": False, **more}

    dets = [
        item("title", 1, text="Cargo"),
        item("text_block", 2, text="The office counts "),
        item("text_block", 3, text="every boat."),
        item("table", 4, html=PAGE[PAGE.index("<table") : PAGE.index("</table>") + 8]),
        item("equation_isolated", 5, latex="$$E = mc^{2}$$"),
        item("abandon", 6, text="noise") | {"ignore": True},
    ]
    relation = [{"relation_type": "truncated", "source_anno_id": 2, "target_anno_id": 3}]
    about = {"image_path": "a/perfect.png", "page_attribute": {"language": "english", "data_source": "book"}}
    place = folder / "omni"
    (place / "images").mkdir(parents=True)
    (folder / "perfect.png").rename(place / "images" / "perfect.png")
    page = {"layout_dets": dets, "extra": {"relation": relation}, "page_info": about}
    (place / "OmniDocBench.json").write_text(json.dumps([page]))
    return place


def test_pages_of_omnidocbench_are_joined_and_scored_by_both_rules(pages: Path) -> None:
    place = _omnidoc(pages)
    task = Catalog().task("omnidocbench-1.6", [("dataset.path", str(place))], "official")
    sample = next(page_bench.load(task, LoadContext()))
    assert [block["text"] for block in sample.meta["blocks"] if block["category"] == "text_block"] == [
        "The office counts every boat."
    ]
    assert sample.tags == {"language": "english", "data_source": "book"}
    predictions = pages / "predictions"
    predictions.mkdir()
    (predictions / "perfect.md").write_text(PAGE + "\n\nInvented words that nobody wrote down anywhere.")
    found = json_of("second-opinion", str(predictions), "--as", "omnidocbench-1.6", "--data", str(place))
    assert found["theirs"]["edit_distance_text"]["value"] == 0.0  # what is invented costs nothing there
    assert found["theirs"]["edit_distance_order"]["value"] > 0  # nor is the first table in its order
    assert found["ours"]["page"] < 0.9
    assert "Invented words" in (Path(found["folder"]) / "second-opinion.html").read_text()


def test_a_folder_without_any_prediction_is_refused(pages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = _omnidoc(pages)
    (pages / "nothing").mkdir()
    told = ["second-opinion", pages / "nothing", "--as", "omnidocbench-1.6", "--data", place]
    assert run_command(told) != 0
    assert "none of the 1 pages" in capsys.readouterr().err


def test_unit_tests_of_olmocr_become_pages_and_its_figure_is_over_files(tmp_path: Path) -> None:
    tests = [
        {"pdf": "a.pdf", "page": 1, "id": "1", "type": "present", "text": "counts every boat"},
        {"pdf": "a.pdf", "page": 1, "id": "2", "type": "absent", "text": "page 7 of 9"},
    ]
    (tmp_path / "headers_footers.jsonl").write_text(json.dumps(tests[1]))
    (tmp_path / "multi_column.jsonl").write_text(json.dumps(tests[0]))
    task = Catalog().task("olmocr-bench", [("dataset.path", str(tmp_path))], "official")
    (sample,) = page_bench.load(task, LoadContext())
    assert [test["type"] for test in sample.meta["tests"]] == ["absent", "present", "baseline"]
    from types import SimpleNamespace

    from snellen.core.types import Prediction, Request, TrialKey
    from snellen.kits.parsing.scorers import score_official

    key = TrialKey("t", sample.id)
    scores = score_official(
        sample, Request(key, ()), Prediction(key, text="It counts no boat."), {"rule": "olmocr-bench"}
    )
    figures = olmocr_figures(SimpleNamespace(scores=lambda: [(sample, one) for one in scores]), {})
    assert figures["tests_by_file"].value == pytest.approx(2 / 3)
    assert figures["tests_multi_column"].value == 0.0


def test_other_layouts_are_read(tmp_path: Path) -> None:
    rows = [{"type": "table parsing en", "question": "as html", "answers": ["<table></table>"], "image_path": "a.png"}]
    (tmp_path / "OCRBench_v2.json").write_text(json.dumps([*rows, {"type": "math QA en"}]))
    task = Catalog().task("ocrbench-v2-parsing", [("dataset.path", str(tmp_path))], "official")
    (one,) = page_bench.load(task, LoadContext())
    assert one.tags["ability"] == "element parsing"
    (tmp_path / "doc_scan_eng").mkdir()
    (tmp_path / "doc_scan_eng" / "label.json").write_text(json.dumps({"1.jpg": "text"}))
    task = Catalog().task("cc-ocr-parsing", [("dataset.path", str(tmp_path))], "official")
    (other,) = page_bench.load(task, LoadContext())
    assert (other.tags["subset"], other.answers) == ("doc_scan_eng", ("text",))


def test_drawn_pages_are_the_same_for_a_seed_and_perfect_against_themselves(tmp_path: Path) -> None:
    task = Catalog().task("pages-own", [("dataset.count", 3)])
    first = list(drawn_pages.load(task, LoadContext(workdir=tmp_path / "a")))
    again = list(drawn_pages.load(task, LoadContext(workdir=tmp_path / "b")))
    assert [one.answers for one in first] == [one.answers for one in again]
    assert [Path(one.images[0].ref).read_bytes() for one in first] == [
        Path(one.images[0].ref).read_bytes() for one in again
    ]
    for one in first:
        assert score_page(read_gold(one.meta["blocks"]), read_page(one.answers[0])).page == pytest.approx(100)


@pytest.mark.parametrize(
    ("count", "seed"), [(10, 1), *(pytest.param(60, n, marks=pytest.mark.nightly) for n in range(2, 6))]
)
def test_our_rule_keeps_all_eighteen_laws_on_drawn_pages(count: int, seed: int) -> None:
    broken = [(one.law, one.example) for one in audit("snellen", law_pages(count, seed)) if one.broken]
    assert broken == []
    assert len(LAWS) == 18


EXPECTED = {
    "omnidocbench-1.6": {1, 6, 8, 9, 12, 13, 15, 18},
    "cc-ocr": {4, 5, 8, 9},
    "pubtabnet": {7, 8},
}
"""Laws that the recorded runs of the originals' own code broke (tests/golden/data/parsing/laws.json), and we find."""


@pytest.mark.parametrize("name", EXPECTED)
def test_the_laws_that_the_originals_break_are_found_broken(name: str) -> None:
    verdicts = audit(name, law_pages(4))
    assert {one.law for one in verdicts if one.broken} >= EXPECTED[name]
    assert all(one.example is not None and one.example.why for one in verdicts if one.broken)


def test_the_command_prints_the_smallest_example_and_refuses_an_unknown_rule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = json_of("scorer-audit", "cc-ocr", "--pages", "3")
    fence = found["cc-ocr"][3]
    assert fence["broken"] > 0 and fence["example"]["reply"].startswith("```markdown")
    assert run_command(["scorer-audit", "omnidoc"]) != 0
    assert run_command(["scorer-audit", "snellen", "--pages", "1", "--markdown"]) == 0
    assert capsys.readouterr().out.count("holds") == 18
    assert set(RULES) >= {"snellen", "olmocr-bench", "ocrbench-v2"}


def test_what_was_read_is_shown_with_differences_and_nothing_of_it_runs() -> None:
    gold = read_gold(PAGE)
    found = score_page(
        gold, read_page(PAGE.replace("12", "13").replace("boat.", "goat.") + "\n\n<script>x</script> more")
    )
    shown = "".join(map(str, block_rows(found)))
    assert "<del>12</del>" in shown and "<ins>13</ins>" in shown and "invented" in shown
    assert "<script>" not in shown
    assert "<td" in str(rendered(gold[2]))
