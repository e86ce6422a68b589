"""One number by every route: a run, its file scored as rows, its pages, and its replies read in another protocol."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import snellen
from atlas_fixtures import FIXTURES, figure_of_read, run_card, write_shape
from command_line import run_command
from snellen.core.errors import UsageError
from snellen.data.catalog import Catalog
from snellen.kits.bridges.scored_files import score_file
from snellen.scoring.protocols.readings import Reading, read_in
from snellen.scoring.stored import live_tables
from snellen.store.database import seal
from snellen.store.reader import RunReader

TABLES = sorted(card for card, fixture in FIXTURES.items() if "tsv" in fixture.shapes and card != "mmmu")
"""Cards with a TSV; of MMMU's a row is left out, so that replies would not stand beside their rows."""


@pytest.mark.parametrize("card", TABLES)
def test_replies_beside_their_rows_give_the_number_of_the_run(card: str, tmp_path: Path) -> None:
    place = write_shape(tmp_path, card, "tsv", FIXTURES[card])
    with place.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    told = tmp_path / "told.jsonl"
    replies = FIXTURES[card].replies
    kept = [{**row, "prediction": reply} for row, reply in zip(rows, replies, strict=True)]
    told.write_text("".join(json.dumps(row) + "\n" for row in kept))
    for protocol in FIXTURES[card].expected:
        found = score_file(told, task=card, protocol=protocol, output=tmp_path / protocol)
        for name, value in FIXTURES[card].expected[protocol].items():
            number = (
                found["metrics"][f"{found['metric']}_read"][name]
                if name in ("n", "unscored")
                else figure_of_read(found["metrics"], name)
            )
            assert number == pytest.approx(value), (protocol, name)


def test_a_run_is_read_in_another_protocol_beside_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_card(tmp_path, "blink", "hub", "official")
    folder = tmp_path / "run"
    capsys.readouterr()
    assert run_command(["score", folder, "--protocol", "lmms-eval", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tasks"]["blink"]
    assert found["metrics"]["mean_of_tasks"]["value"] == 0.75
    assert found["protocol"]["name"] == "lmms-eval, asked in official"
    own = json.loads((folder / "results.json").read_text())
    assert own["tasks"]["blink"]["metrics"]["mean_of_tasks"]["value"] == 1.0
    assert (folder / "results-lmms-eval.json").exists()
    assert run_command(["score", folder, "--protocol", "official", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["reading"]["name"] == "snellen"
    assert run_command(["score", folder, "--protocol", "evalscope"]) == 2
    assert "has no protocol 'evalscope'" in capsys.readouterr().err


def test_tables_made_on_the_fly_read_as_the_protocol_says(tmp_path: Path) -> None:
    run_card(tmp_path, "blink", "hub", "lmms-eval")
    with RunReader(tmp_path / "run") as reader:
        (task,) = reader.header().tasks
        tables, _ = live_tables(reader, task, Reading())
        assert sorted(tables["accuracy"].value.tolist()) == [0.0, 1.0, 1.0]
        tables, _ = live_tables(reader, task, Reading(protocol="official"))
        assert tables["accuracy"].value.tolist() == [1.0, 1.0, 1.0]
        assert read_in(task, "", reader.header()) is task


def test_a_run_of_an_earlier_version_is_read_by_the_installed_card_and_says_so(tmp_path: Path) -> None:
    run_card(tmp_path, "blink", "hub", "official")
    folder = tmp_path / "run"
    part = "3 of 1,901 rows: a part of the benchmark"
    assert snellen.score(folder, protocol="lmms-eval")["tasks"]["blink"]["notes"] == [part]
    with RunReader(folder) as reader:
        header = msgspec.to_builtins(reader.header())
    del header["protocols"]  # as 0.2 wrote it
    with closing(sqlite3.connect(folder / "run.db")) as database, database:
        database.execute(
            "UPDATE meta SET value = ? WHERE key = 'header'", (seal(msgspec.json.encode(header)).decode(),)
        )
    found = snellen.score(folder, protocol="lmms-eval")["tasks"]["blink"]
    assert found["metrics"]["mean_of_tasks"]["value"] == 0.75
    assert [note for note in found["notes"] if "installed card blink" in note]
    assert snellen.score(folder)["tasks"]["blink"]["notes"] == [part], "its own reading is in the run"


def test_an_early_stop_reads_as_the_protocol_says_and_refuses_groups(tmp_path: Path) -> None:
    place = write_shape(tmp_path, "mmbench-en", "tsv", FIXTURES["mmbench-en"])
    (tmp_path / "replies.jsonl").write_text('{"id": "1", "text": "A"}\n')
    settings = snellen.RunSettings(
        tasks=("mmbench-en",), model=f"replay/{tmp_path / 'replies.jsonl'}", data_root=tmp_path, output_dir=tmp_path / "run",
        overrides=(("dataset.path", str(place)),), until_ci=5.0,
    )  # fmt: skip
    with pytest.raises(UsageError, match="--until-ci says nothing of circular: groups must be asked whole"):
        snellen.run(settings)
    assert Catalog().task("mmbench-en").headline == "circular"
