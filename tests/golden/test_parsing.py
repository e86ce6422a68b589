"""Scores of parsed pages recorded by running the originals' own code, held against our rules under their names."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("bs4")

from snellen.kits.parsing import ccocr, cdm, katex, ocrbench, olmocr, omnidoc
from snellen.kits.parsing.blocks import read_gold, read_page
from snellen.kits.parsing.omnidoc_match import edit
from snellen.kits.parsing.omnidoc_text import normal_formula
from snellen.kits.parsing.page_score import score_page
from snellen.kits.parsing.teds import teds

DATA = Path(__file__).parent / "data" / "parsing"
PAGES = sorted(path.stem for path in DATA.glob("page_*.json"))
CLOSE = 1.5e-6  # recorded to six decimals
DRAWS = pytest.mark.skipif(katex.missing_reason() is not None, reason="no KaTeX or no Chromium")


@cache
def recorded(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def gold_of(page: dict[str, Any]) -> list[omnidoc.Gold]:
    return [omnidoc.Gold(block["category"], block["text"], n) for n, block in enumerate(page["blocks"], start=1)]


def test_all_recorded_cases_are_here() -> None:
    assert sum(len(recorded(name)["cases"]) for name in PAGES) == 257
    assert (len(recorded("tables")["pairs"]), len(recorded("formulas")["pairs"])) == (29, 21)


@pytest.mark.parametrize("name", PAGES)
def test_omnidocbench_gives_the_originals_values(name: str) -> None:
    page = recorded(name)
    for case in page["cases"]:
        found = omnidoc.score_page(gold_of(page["page"]), case["prediction"]).parts()
        assert found == pytest.approx(case["verdicts"]["omnidocbench"], abs=CLOSE), case["id"]


@pytest.mark.parametrize("name", PAGES)
def test_cc_ocr_and_ocrbench_documents_give_the_originals_values(name: str) -> None:
    page = recorded(name)
    gold = page["page"]["markdown"]
    subset = {"simplified_chinese": "zh", "other": "Arabic"}.get(page["page"]["language"], "")
    for case in page["cases"]:
        reply, verdicts = case["prediction"], case["verdicts"]
        found = {
            "ocrbench_v2_document_parsing": ocrbench.score_document(reply, gold),
            "cc_ocr_text_f1": ccocr.score_words(reply, gold, subset),
        }
        if "cc_ocr_doc" in verdicts:
            found["cc_ocr_doc"] = ccocr.score_document(reply, gold)
        assert found == pytest.approx({key: verdicts[key] for key in found}, abs=CLOSE), case["id"]


def _has_wordnet() -> bool:
    from snellen.core.errors import EnvironmentProblem
    from snellen.kits.parsing.ocrbench import find_wordnet

    try:
        find_wordnet()
    except EnvironmentProblem:
        return False
    return True


@pytest.mark.skipif(not _has_wordnet(), reason="no WordNet")
def test_ocrbench_full_pages_give_the_originals_values() -> None:
    pytest.importorskip("nltk")
    pytest.importorskip("jieba")
    for name in PAGES:
        page = recorded(name)
        for case in page["cases"]:
            parts = case["verdicts"].get("ocrbench_v2_parts")
            if parts:
                found = ocrbench.score_page(case["prediction"], page["page"]["markdown"])
                assert found._asdict() == pytest.approx(parts, abs=CLOSE), case["id"]
                assert found.value == pytest.approx(case["verdicts"]["ocrbench_v2_full_page"], abs=CLOSE)


@pytest.mark.parametrize(
    "kind", ["present", "absent", "order", "table", "baseline", "format", pytest.param("math", marks=DRAWS)]
)
def test_olmocr_gives_the_originals_verdicts(kind: str) -> None:
    cases = [
        (case["prediction"], one["test"], one["passed"], case["id"])
        for name in PAGES
        for case in recorded(name)["cases"]
        for one in case["verdicts"].get("olmocr", ())
        if one["test"]["type"] == kind
    ]
    cases += [
        (pair["prediction"], one["test"], one["passed"], pair["name"])
        for pair in recorded("tables")["pairs"]
        for one in pair["scores"].get("olmocr", ())
        if one["test"]["type"] == kind
    ]
    if kind == "math":
        cases += [
            (
                f"$${pair['prediction']}$$",
                {"type": "math", "math": pair["gold"]},
                pair["scores"]["olmocr_math"],
                pair["name"],
            )
            for pair in recorded("formulas")["pairs"]
        ]
        katex.draw([f for reply, test, _, _ in cases for f in (test["math"], *olmocr.formulas_of(reply))])
    assert len(cases) > 15
    unlike = [name for reply, test, passed, name in cases if olmocr.run_test(test, reply).passed != passed]
    assert unlike == []


@pytest.mark.parametrize("pair", recorded("tables")["pairs"], ids=lambda pair: pair["name"])
def test_tables_have_the_originals_teds(pair: dict[str, Any]) -> None:
    gold, reply, scores = pair["gold"], pair["prediction"], pair["scores"]
    wrapped = f"<html><body>{reply}</body></html>", f"<html><body>{gold}</body></html>"
    rules = {
        "pubtabnet_teds": lambda: teds(*wrapped).teds,
        "pubtabnet_teds_s": lambda: teds(*wrapped).structure,
        "ocrbench_v2_html": lambda: ocrbench.score_html_table(reply, gold),
        "cc_ocr_table": lambda: ccocr.score_table(reply, gold),
    }
    for name, rule in rules.items():
        if isinstance(scores[name], str):  # the original fails; so do we, by name
            with pytest.raises(ValueError, match="two"):
                rule()
        else:
            assert rule() == pytest.approx(scores[name], abs=CLOSE), name
    page = omnidoc.score_page([omnidoc.Gold("table", gold, 1)], reply)
    if isinstance(scores["omnidocbench_teds"], str):
        assert "two" in page.tables[0].problem
        return
    names = {
        "omnidocbench_teds": "table_teds",
        "omnidocbench_teds_s": "table_teds_s",
        "omnidocbench_edit": "table_edit",
    }
    assert {key: page.parts()[ours] for key, ours in names.items()} == pytest.approx(
        {key: scores[key] for key in names}, abs=CLOSE
    )


@pytest.mark.parametrize("pair", recorded("formulas")["pairs"], ids=lambda pair: pair["name"])
def test_formulas_have_the_originals_scores(pair: dict[str, Any]) -> None:
    gold, reply, scores = pair["gold"], pair["prediction"], pair["scores"]
    norms = [normal_formula(gold), normal_formula(reply)]
    assert norms == pair["normalised"]
    found = {
        "omnidocbench_edit": edit(*norms),
        "ocrbench_v2_en": ocrbench.score_formula(reply, gold),
        "ocrbench_v2_cn": ocrbench.score_formula(reply, gold, chinese=True),
        "cc_ocr_formula": ccocr.score_formula(reply, gold),
    }
    assert found == pytest.approx({name: scores[name] for name in found}, abs=CLOSE)


FEW = {"same", "over", "swap", "tag"}


@pytest.mark.skipif(cdm.missing_reason() is not None, reason="no pdflatex")
@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(one, marks=() if one["name"] in FEW else pytest.mark.nightly, id=one["name"])
        for one in recorded("formulas")["pairs"]
    ],
)
def test_formulas_have_the_originals_cdm(pair: dict[str, Any]) -> None:
    found = cdm.cdm(pair["prediction"], pair["gold"])
    assert found.f1 == pytest.approx(pair["scores"]["cdm"]["F1_score"], abs=0.02)


def test_cdm_is_refused_with_a_reason_without_latex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    cdm.check.cache_clear()
    assert "pdflatex" in (cdm.missing_reason() or "")
    monkeypatch.undo()
    cdm.check.cache_clear()


def test_the_facts_about_olmocr_are_those_recorded() -> None:
    fails = []
    for length in range(10, 61):
        text = ("abcdefghij" * 7)[:length]
        reply = text[: length // 2] + "Z" + text[length // 2 + 1 :]
        if not olmocr.run_test({"type": "present", "text": text, "max_diffs": 1}, reply).passed:
            fails.append(length)
    assert fails == recorded("facts")["olmocr"]["max_diffs_1_one_substitution_fails_at_lengths"]
    assert olmocr.run_test({"type": "present", "text": "two words"}, "\n").passed
    assert not olmocr.run_test({"type": "present", "text": "two words"}, "").passed


@pytest.mark.parametrize("name", PAGES)
def test_our_rule_keeps_the_laws_on_the_recorded_replies(name: str) -> None:
    page = recorded(name)["page"]
    gold = read_gold(page["blocks"])
    perfect = {"gold", "fenced", "fenced_bare", "crlf", "trailing_space", "md_table", "brackets", "multiline_dollars"}
    perfect |= {"setext", "star_list", "single_newline", "code_barefence", "raw_amp", "split_equations", "inline_paren"}
    nothing = {"empty", "newline_only", "refusal", "wrong"}
    costs = {"drop_first", "drop_last", "drop_formula", "reversed", "hallucinated_tail", "loop", "doubled", "truncated"}
    assert score_page(gold, read_page(page["markdown"])).page == pytest.approx(100)
    for case in recorded(name)["cases"]:
        kind = case["id"].partition("/")[2]
        value = score_page(gold, read_page(case["prediction"])).page
        if kind in perfect:
            assert value == pytest.approx(100, abs=0.1), case["id"]
        if kind in nothing:
            assert value == pytest.approx(0, abs=0.1), case["id"]
        if kind in costs:
            assert value < 100 - 0.1, case["id"]
