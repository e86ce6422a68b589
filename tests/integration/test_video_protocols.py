"""Every protocol of every video card on rows of its source's shape: the figures are those counted by hand."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from atlas_fixtures import figure_of_read
from command_line import run_command
from snellen.data.atlas.protocols import about_card, protocol_texts
from snellen.data.catalog import Catalog
from snellen.scoring.protocols.peer_scores import draw_letter
from video_files import write_video
from video_protocol_rows import FOUR, GOLDS, VIDEO_FIXTURES, index_of, run_video_card

CASES = [(card, protocol) for card, fixture in VIDEO_FIXTURES.items() for protocol in fixture.expected]
COUNTS = ("n", "unscored", "failed")


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_video(tmp_path_factory.mktemp("film") / "x.mp4", 4)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize(("card", "protocol"), CASES)
def test_a_protocol_gives_the_figures_counted_by_hand(card: str, protocol: str, film: Path, tmp_path: Path) -> None:
    fixture = VIDEO_FIXTURES[card]
    result = run_video_card(tmp_path, card, protocol, film).results["tasks"][card]
    metrics = result["metrics"]
    for name, value in fixture.expected[protocol].items():
        found = metrics[f"{fixture.counted}_read"][name] if name in COUNTS else figure_of_read(metrics, name)
        assert found == pytest.approx(value), name
    assert result["protocol"]["name"] == protocol


@pytest.mark.parametrize("card", list(VIDEO_FIXTURES))
def test_every_protocol_of_a_card_has_figures_by_hand_and_says_what_is_from_memory(card: str) -> None:
    table = Catalog().task_table(card)
    assert set(protocol_texts(table)) == set(VIDEO_FIXTURES[card].expected)
    about = about_card(table, card)
    assert about.marks, "where its facts were seen"
    assert "licence" in about.from_memory
    harnesses = {"lmms-eval", "vlmevalkit"} & set(protocol_texts(table))
    assert harnesses == {"lmms-eval", "vlmevalkit"} or any("VLMEvalKit has no" in text for text in about.missing)


def test_every_card_of_the_suite_has_protocols() -> None:
    assert set(Catalog().expand("video-quoted")) == set(VIDEO_FIXTURES)


def test_official_is_what_a_card_is_asked_in_and_a_report_names_it(film: Path, tmp_path: Path) -> None:
    done = run_video_card(tmp_path, "mvbench", None, film)
    assert done.results["tasks"]["mvbench"]["protocol"]["name"] == "official"
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Protocol official, quoted by" in page
    assert done.results["tasks"]["mvbench"]["protocol"]["peer"] is None, "our reader: no tool prints that"


def test_the_number_of_the_tool_stands_beside_ours_with_a_sentence(film: Path, tmp_path: Path) -> None:
    done = run_video_card(tmp_path, "mvbench", "vlmevalkit", film)
    peer = done.results["tasks"]["mvbench"]["protocol"]["peer"]
    assert peer["value"] == pytest.approx(5 / 7)
    assert "prints 71.43 where ours is 50.00: it counts what its rule lets pass" in peer["why"]
    assert "2 unread and 1 failed of 7 trials" in peer["why"]


def test_a_random_letter_is_drawn_with_a_seed_beside_our_number(film: Path, tmp_path: Path) -> None:
    done = run_video_card(tmp_path, "longvideobench", "lmms-eval", film)
    drawn = [draw_letter(FOUR, f"x_{at}") == FOUR[index_of(GOLDS[at])] for at in (2, 3, 4, 6)]
    peer = done.results["tasks"]["longvideobench"]["protocol"]["peer"]
    assert peer["value"] == pytest.approx((3 + sum(drawn)) / 7)
    assert "it draws an option at random (here with a seed)" in peer["why"]


def scored_file(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    source = Path(str(arguments[0]))
    where = () if source.is_dir() else ("-o", Path(tempfile.mkdtemp(dir=source.parent), "run"))
    code = run_command(["score", *arguments, "--json", *where])
    printed = capsys.readouterr()
    assert code == 0, printed.out + printed.err
    found: dict[str, Any] = json.loads(printed.out)
    return found


@pytest.mark.parametrize(("card", "protocol"), [case for case in CASES if case[0] not in ("mvbench", "perceptiontest")])
def test_a_file_of_replies_is_scored_in_every_protocol_without_a_video(
    card: str, protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fixture = VIDEO_FIXTURES[card]
    rows = [{**row, "response": reply} for row, reply in zip(fixture.rows, fixture.replies, strict=True)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = scored_file(capsys, tmp_path / "rows.jsonl", "--task", card, "--protocol", protocol)
    for name, value in fixture.expected[protocol].items():
        metrics = found["metrics"]
        shown = metrics[f"{fixture.counted}_read"][name] if name in COUNTS else figure_of_read(metrics, name)
        assert shown == pytest.approx(value), name


def test_rows_of_letters_alone_are_scored_as_the_tool_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = ["C", "", "(", None]
    rows = [{"id": str(at), "options": FOUR, "answer": "a cow", "response": reply} for at, reply in enumerate(replies)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = scored_file(capsys, tmp_path / "rows.jsonl", "--task", "mvbench", "--protocol", "vlmevalkit")
    assert (found["value"], found["scored"], found["unread"], found["failed"]) == (pytest.approx(1 / 3), 1, 2, 1)
    assert found["peer"]["value"] == 1.0, "all four count as right there"


def test_a_run_is_read_in_another_protocol_and_the_board_keeps_them_apart(
    film: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_video_card(tmp_path, "video-mme", "official", film)
    found = scored_file(capsys, tmp_path / "run", "--protocol", "vlmevalkit")
    task = found["tasks"]["video-mme"]
    assert task["metrics"]["accuracy_read"]["value"] == pytest.approx(2 / 3)
    assert task["protocol"]["name"] == "vlmevalkit, asked in official"
    assert run_command(["score", tmp_path / "run", "--protocol", "reform"]) == 2
    assert "has no protocol 'reform'" in capsys.readouterr().err
