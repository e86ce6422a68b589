"""Cards and suites for people, and which part of a protocol moved a number."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snellen
from atlas_fixtures import FIXTURES, png, run_card, write_shape
from command_line import run_command
from documentation import docs_tool
from snellen.api.card_words import describe_card
from snellen.api.outputs import leaderboard, moved_by_protocol
from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings
from snellen.core.errors import UsageError
from snellen.data.atlas.peer_cards import versioned
from snellen.data.atlas.protocols import protocol_texts
from snellen.data.catalog import Catalog
from snellen.scoring.compare.protocol_parts import PARTS


@pytest.mark.parametrize("card", sorted(FIXTURES))
def test_a_card_says_its_protocols_pitfalls_and_where_facts_were_seen(card: str) -> None:
    page = describe_card(card)
    assert page.startswith("# ")
    harnesses = [f"`{versioned(name)}`" for name in protocol_texts(Catalog().task_table(card))]
    for words in (*harnesses, "What Snellen does.", "Where numbers part", "Seen in:"):
        assert words in page


def test_a_card_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["tasks", "show", "mmmu-pro"]) == 0
    assert "draws an option at random" in capsys.readouterr().out
    assert run_command(["tasks", "show", "mmmu-pro", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["protocols"]) == {"official", "lmms-eval", "vlmevalkit"}
    assert run_command(["tasks", "show", "eyechart"]) == 2
    assert "no card of a published benchmark" in capsys.readouterr().err
    assert run_command(["tasks", "show", "mmmu", "mmmu-pro"]) == 2
    assert "takes one name" in capsys.readouterr().err


def test_a_suite_names_members_without_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "suites").mkdir()
    made = 'title = "Mine"\nheadline = "mine"\nmembers = [{ task = "mmmu" }, { task = "nowhere", scale = 0.1 }]\n'
    (tmp_path / "suites" / "mine.toml").write_text(made)
    assert run_command(["tasks", "--suite", "mine", "--catalog", tmp_path]) == 0
    shown = capsys.readouterr().out
    assert "nowhere: no card yet" in shown
    assert run_command(["tasks", "--suite", "mine", "--catalog", tmp_path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["missing"]) == (["mmmu"], ["nowhere"])
    assert run_command(["tasks", "--suite", "openvllm"]) == 2
    assert "openvlm" in capsys.readouterr().err


def runs_in(root: Path, card: str, *protocols: str) -> list[Path]:
    folders = []
    for protocol in protocols:
        run_card(root / protocol, card, "hub", protocol)
        folders.append(root / protocol / "run")
    return folders


def test_the_reader_is_named_where_the_replies_are_the_same(tmp_path: Path) -> None:
    moved = moved_by_protocol(*runs_in(tmp_path, "blink", "official", "lmms-eval"))["blink"]
    assert (moved.first_value, moved.second_value) == (1.0, 0.75)
    assert moved.parts == {"prompt": 0.0, "reader": -0.25, "fallback": 0.0, "aggregate": 0.0}
    assert (moved.most, moved.samples) == ("reader", 3)


def test_the_aggregate_is_named_where_only_it_differs(tmp_path: Path) -> None:
    moved = moved_by_protocol(*runs_in(tmp_path, "mmstar", "official", "lmms-eval"))["mmstar"]
    assert moved.parts["reader"] == 0.0
    assert moved.parts["aggregate"] == pytest.approx(0.75 - 2 / 3)
    assert moved.most == "aggregate"


def test_the_parts_add_up_and_the_fallback_is_one_of_them(tmp_path: Path) -> None:
    moved = moved_by_protocol(*runs_in(tmp_path, "mathvista", "official", "vlmevalkit"))["mathvista"]
    changes = [moved.parts[part] or 0.0 for part in PARTS]
    assert moved.first_value is not None
    assert sum(changes) == pytest.approx((moved.second_value or 0.0) - moved.first_value)
    assert moved.parts["fallback"] == pytest.approx(-0.25)  # the nearest option, which was right


def test_compare_prints_what_moved_the_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = runs_in(tmp_path, "blink", "official", "lmms-eval")
    capsys.readouterr()
    named = [folders[0].rename(tmp_path / "a"), folders[1].rename(tmp_path / "b")]
    assert run_command(["compare", *named]) == 0
    assert (
        "moved by: prompt +0.00, reader -25.00, fallback +0.00, aggregate +0.00; most by the reader"
        in capsys.readouterr().out
    )
    assert run_command(["compare", *named, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["protocols"]["blink"]["parts"]["reader"] == -0.25


def test_two_runs_in_one_protocol_say_nothing_of_it(tmp_path: Path) -> None:
    folders = runs_in(tmp_path, "ocrbench", "official")
    assert moved_by_protocol(folders[0], folders[0]) == {}
    assert Catalog().task("ocrbench").headline == "points"


def test_the_pages_of_the_site_say_what_the_commands_print(capsys: pytest.CaptureFixture[str]) -> None:
    made = docs_tool("docs_pages").generated()
    assert run_command(["tasks", "show", "mmmu"]) == 0
    assert capsys.readouterr().out.strip() == made["cards/mmmu.md"].strip()
    assert "## snellen run\n" in made["commands.md"] and "--image-max-side" in made["commands.md"]
    assert "| `vllm-server/" in made["providers.md"]


def test_a_plan_of_five_thousand_rows_is_quick_after_the_first_read(tmp_path: Path) -> None:
    rows = [
        {"id": f"test_Art_{at}", "question": f"Who {at}? <image 1>", "options": str([f"option {one}" for one in range(10)]),
         "answer": "B", "subject": "Art", "image_1": {"bytes": png(at % 6), "path": "x.png"}}
        for at in range(5_000)
    ]  # fmt: skip
    folder = tmp_path / "mmmu-pro" / "standard (10 options)"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "test-00000-of-00001.parquet")
    settings = RunSettings(tasks=("mmmu-pro",), model="blind/first", data_root=tmp_path, output_dir=tmp_path / "run")
    make_plan(settings)
    before = time.process_time()
    assert make_plan(settings).trials == 5_000
    assert time.process_time() - before <= 3.0


def test_a_board_keeps_protocols_apart_and_pages_name_them(tmp_path: Path) -> None:
    folders = runs_in(tmp_path, "blink", "official", "lmms-eval")
    named = [folders[0].rename(tmp_path / "a"), folders[1].rename(tmp_path / "b")]
    board, _ = leaderboard(named)
    assert board.tasks == ("blink (lmms-eval)", "blink (official)")
    page = (named[1] / "report.html").read_text(encoding="utf-8")
    assert "Protocol lmms-eval@75571cf, quoted by mean_of_tasks." in page


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (
            "vlmevalkit",
            "The tool of protocol vlmevalkit@e8e78f0 prints",
        ),
        ("official", "Protocol official, quoted by accuracy."),
    ],
)
def test_a_run_says_its_protocol_its_version_and_what_the_tool_would_print(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str, said: str
) -> None:
    run_card(tmp_path, "ai2d", "hub", protocol)
    capsys.readouterr()
    arguments = ["run", "ai2d", "--data-root", tmp_path, "--model", f"replay/{tmp_path / 'replies.jsonl'}"]
    told = ["-o", tmp_path / "again", "-p", f"dataset.path={tmp_path / 'ai2d'}", "--protocol", protocol]
    assert run_command([*arguments, *told]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert ("The tool of protocol" in shown) == (protocol == "vlmevalkit"), "no tool reads with our reader"


def test_a_number_without_the_model_that_finds_the_answer_is_called_so(tmp_path: Path) -> None:
    run_card(tmp_path, "mathvista", "hub", "official")
    results = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    found = results["tasks"]["mathvista"]["protocol"]
    assert (found["extractor"]["model"], found["extractor"]["called"]) == (
        "GPT-4",
        "official reader without its extractor",
    )
    assert found["peer"] is None, "nobody knows what the tool prints"


def test_a_protocol_may_be_asked_by_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert Catalog().task("vstar", protocol="lmms-eval@75571cf").protocol == "lmms-eval"
    with pytest.raises(UsageError, match="lmms-eval@75571cf"):
        Catalog().task("vstar", protocol="lmms-eval@0000000")


def test_a_suite_is_run_and_its_number_stands_in_the_results(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    made = 'title = "Mine"\nheadline = "mine"\nmembers = [{ task = "mmmu-pro" }, { task = "mmmu-pro-vision" }]\n'
    (tmp_path / "suites" / "mine.toml").write_text(made)
    for card in ("mmmu-pro", "mmmu-pro-vision"):
        write_shape(tmp_path, card, "hub", FIXTURES[card])
    replies = [{"id": f"test_Art_{at}", "text": "Answer: B"} for at in range(3)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in replies))
    settings = RunSettings(
        tasks=("mine",), model=f"replay/{tmp_path / 'replies.jsonl'}", data_root=tmp_path, output_dir=tmp_path / "run",
        catalogs=(tmp_path,),
    )  # fmt: skip
    results = snellen.run(settings).results
    assert results["suites"]["mmmu-pro-overall"]["value"] == 1.0
