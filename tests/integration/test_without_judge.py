"""A number that a rule gives where a benchmark asks a judge: every page says that it is not the official one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from asgi import call
from atlas_fixtures import FIXTURES, run_card
from command_line import run_command
from judge_doubles import ask_about, judge_model
from snellen.api.judges import load_judge
from snellen.api.view import make_viewer
from snellen.core.builtins import default_registry
from snellen.data.catalog import Catalog
from snellen.kits.bridges.scored_files import score_file
from snellen.report.pages.finish import finish_run
from snellen.report.viewer.guard import cookie_name
from snellen.report.written import protocol_lines

JUDGED = {
    "mm-vet": "MM-Vet",
    "charxiv-reasoning": "CharXiv",
    "charxiv-descriptive": "CharXiv",
    "mathverse": "MathVerse",
}
ASK = "a judge gives that, `snellen score RUN --judge {} --judge-model …`."


@pytest.mark.parametrize("card", JUDGED)
@pytest.mark.parametrize("protocol", ["official", "lmms-eval", "vlmevalkit"])
def test_every_protocol_says_whom_to_ask(card: str, protocol: str, tmp_path: Path) -> None:
    task = run_card(tmp_path, card, "tsv", protocol)["results"]["tasks"][card]
    needed = task["protocol"]["needs_judge"]
    assert (needed["metric"], needed["judge"]) == (task["headline"], card)
    assert needed["why"].endswith(ASK.format(card)) and "\n" not in needed["why"]
    assert f"not the official number of {JUDGED[card]}" in needed["why"]
    assert load_judge(card).metric != task["headline"]


def test_the_line_stands_on_the_page_in_the_report_and_in_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("starlette", reason="the extra `view` is not installed")
    run_card(tmp_path, "mm-vet", "tsv", "official")
    folder = tmp_path / "run"
    line = ASK.format("mm-vet")
    assert line in (folder / "report.html").read_text(encoding="utf-8")
    cookie = {"cookie": f"{cookie_name('key')}=key"}
    app = make_viewer([folder], "key")
    page = re.findall(r'href="(/run/\w+)"', call(app, "/", headers=cookie).text)[0]
    assert line in call(app, page, headers=cookie).text
    capsys.readouterr()
    assert run_command(["score", folder]) == 0
    assert line in " ".join(capsys.readouterr().out.split())


def test_once_the_judge_was_asked_the_line_points_to_its_number(tmp_path: Path) -> None:
    run_card(tmp_path, "mm-vet", "tsv", "official")
    ask_about(tmp_path / "run", load_judge("mm-vet"), judge_model(lambda request, answer: {"verdict": 0.5}))
    task = finish_run(tmp_path / "run", default_registry())["tasks"]["mm-vet"]
    [line] = [line for line in protocol_lines(task) if "not the official number" in line]
    assert line.endswith("that is the judge's, mm_vet by scripted/judge.")
    assert task["metrics"]["mm_vet"]["value"] == 0.5
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "judged by scripted/judge; published numbers were judged by openai/gpt-4-0613: not comparable" in page


def test_rows_scored_from_a_file_say_it_first(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    row = {"index": 1, "question": "What?", "answer": "x=2", "category": "ocr", "prediction": "x=2"}
    file.write_text(json.dumps(row) + "\n")
    found = score_file(file, task="mm-vet", output=tmp_path / "run")
    assert found["notes"][0].endswith(ASK.format("mm-vet"))


def test_a_number_that_a_rule_gives_officially_says_nothing_of_judges() -> None:
    for card in FIXTURES:
        task = Catalog().task(card, protocol="official")
        assert (card in JUDGED) == ("judge" in task.score_options), card
        assert (card in JUDGED) == str(task.headline or task.score_options.get("metric", "")).endswith("_without_judge")
