"""Exports: every trial once, in the form others expect, and scored the same when it comes back."""

from __future__ import annotations

import csv
import io
import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import snellen
from made_runs import make_run, make_task
from payloads import PAYLOADS
from snellen import score_predictions
from snellen.api import outputs as look
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.report.exported_run import file_stem, listed
from snellen.report.trial_files import (
    COLUMNS,
    as_frame,
    csv_lines,
    flat_records,
    frame,
    jsonl_lines,
    parquet_bytes,
    plain_rows,
)
from snellen.store.reader import RunReader


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("export"), count=40, task=make_task(repeats=2))


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("single"), count=80)


def test_csv_has_every_trial_and_nothing_that_runs(run: Path) -> None:
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(RunReader(run))))))
    assert len(rows) == 80
    assert tuple(rows[0]) == COLUMNS
    assert {row["outcome"] for row in rows} <= {"scored", "unscored", "failed"}
    assert not [value for row in rows for value in row.values() if value.startswith(("=", "@"))]


def test_jsonl_equals_records_jsonl(run: Path) -> None:
    assert "".join(jsonl_lines(RunReader(run))) == (run / "records.jsonl").read_text()


def test_frame_is_one_row_a_trial(run: Path) -> None:
    table = snellen.frame(run)
    assert len(table) == 80
    assert float(table[table["outcome"] == "scored"]["value"].mean()) == pytest.approx(
        sum(row["value"] for row in flat_records(RunReader(run)) if row["value"] is not None)
        / sum(row["value"] is not None for row in flat_records(RunReader(run)))
    )


ODD = ([None], [None, 1], [1, 2**62 + 1], [2**64, 3, None], ["a", "é", None], [0.5, None], [True, None], ["x", 1])


@pytest.mark.parametrize("seed", range(25))
def test_a_frame_made_of_columns_is_that_of_its_rows(seed: int) -> None:
    import pandas

    draw = random.Random(seed)
    names = (*COLUMNS[:-1], "accuracy", "page")
    pools = {name: draw.choice(ODD) for name in names}
    rows = [
        {name: draw.choice(pools[name]) for name in names if name in COLUMNS or draw.random() < 0.7}
        for _ in range(draw.choice([0, 1, 9]))
    ]
    columns = list(dict.fromkeys((*COLUMNS[:-1], *(name for row in rows for name in row))))
    pandas.testing.assert_frame_equal(as_frame(iter(rows)), pandas.DataFrame(rows, columns=columns))


@pytest.mark.parametrize("part", [1, 7, 80])
def test_parquet_is_the_same_file_however_many_rows_are_held_at_once(
    run: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    whole = parquet_bytes(RunReader(run))
    monkeypatch.setattr("snellen.report.trial_files.PART_ROWS", part)
    assert parquet_bytes(RunReader(run)) == whole


@pytest.mark.parametrize("records", [[], [{}], [{"a": ["x\ny", {"b": []}], "c": None}, {"a": "\u2028"}, 3]])
def test_a_list_written_record_by_record_is_laid_out_as_a_whole_one(records: list[object]) -> None:
    whole = msgspec.json.format(msgspec.json.encode(records), indent=2) + b"\n"
    assert b"".join(listed(iter(records))) == whole


def test_scores_that_fit_no_trial_are_refused_and_not_passed_over(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "odd", count=4)
    with sqlite3.connect(folder / "run.db") as database:
        sample = database.execute("SELECT sample FROM predictions ORDER BY rowid LIMIT 1").fetchone()[0]
        database.execute("DELETE FROM predictions WHERE sample = ?", (sample,))
    with pytest.raises(EnvironmentProblem, match=rf"from sample '{sample}' on: `snellen score"):
        list(jsonl_lines(RunReader(folder)))


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_that_is_stopped_leaves_what_was_there(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    (tmp_path / f"trials.{form}").write_text("of before\n")

    def stopped(_: object) -> Iterator[str]:
        yield "half a table\n"
        raise KeyboardInterrupt

    monkeypatch.setattr(f"snellen.report.trial_files.{form}_lines", stopped)
    with pytest.raises(KeyboardInterrupt):
        look.export(run, form, tmp_path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(f"trials.{form}", "of before\n")]


def test_an_export_that_cannot_be_written_is_not_answered_with_scoring(run: Path, tmp_path: Path) -> None:
    (tmp_path / "trials.csv").mkdir()
    with pytest.raises(
        EnvironmentProblem, match=r"cannot write .*trials\.csv: Is a directory; the run itself is safe$"
    ):
        look.export(run, "csv", tmp_path)


def test_a_frame_without_pandas_says_what_to_install(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(EnvironmentProblem, match="pandas"):
        frame(run)
    assert plain_rows(run)[0]["expected"] == "red"


def test_reform_file_scores_the_same_when_it_comes_back(single: Path, tmp_path: Path) -> None:
    (file,), _ = look.export(single, "reform", tmp_path)
    assert file.name == "shapes_SingleChoice_generation_small.json"
    records = json.loads(file.read_text())
    assert len(records) == 80
    answered = [record for record in records if record["prediction"] is not None]
    file.write_text(json.dumps(answered))
    again = score_predictions(file, "SingleChoice", profile="snellen")
    scored = [row for row in flat_records(RunReader(single)) if row["outcome"] != "failed"]
    assert len(scored) == len(answered)
    right = sum(row["value"] or 0.0 for row in scored)
    value, n = (again["metrics"]["accuracy"][name] for name in ("value", "n"))
    assert value * n == pytest.approx(right)


def test_flageval_file_keeps_every_inference_at_its_index(run: Path, tmp_path: Path) -> None:
    (file, _), _ = look.export(run, "flageval", tmp_path)
    records = json.loads(file.read_text())
    assert len(records) == 40
    assert all(len(record["multiple_raw_answers"]) == 2 for record in records)


def test_aisbench_files_split_successes_from_failures(run: Path, tmp_path: Path) -> None:
    files = {
        file.name: [json.loads(line) for line in file.read_text().splitlines()]
        for file in look.export(run, "aisbench", tmp_path)[0]
    }
    failed = [row for row in flat_records(RunReader(run)) if row["outcome"] == "failed"]
    assert len(files["shapes.jsonl"]) == 80 - len(failed)
    assert len(files.get("shapes_failed.jsonl", [])) == len(failed)
    assert len({record["uuid"] for record in files["shapes.jsonl"]}) == 80 - len(failed)
    assert files["shapes.jsonl"][0]["gold"] in "ABCD"


@pytest.mark.parametrize("form", ["mc", "niah"])
def test_document_forms_hold_every_trial(run: Path, tmp_path: Path, form: str) -> None:
    files, _ = look.export(run, form, tmp_path)
    told = json.loads(files[0].read_text())
    assert told


@pytest.mark.parametrize("name", [*PAYLOADS[::11], "../../x", "/etc/passwd", "a/b", "..\\x"])
def test_file_names_stay_in_their_folder(name: str) -> None:
    assert not set(file_stem(name)) & set("/\\\0")
    assert file_stem(name) not in (".", "..")


def test_a_name_of_dots_is_refused() -> None:
    with pytest.raises(UsageError):
        file_stem("...")


def test_plots_have_their_data_beside_them(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra `plots` is not installed")
    make_run(tmp_path / "run", count=20)
    files = look.plots(tmp_path / "run", tmp_path / "plots")
    figures, endings = ("confusion", "latency", "positions"), ("csv", "png", "svg", "vl.json")
    wanted = [f"shapes-{figure}.{ending}" for figure in figures for ending in endings]
    assert sorted(file.name for file in files) == wanted
    assert all(file.stat().st_size > 100 for file in files)


def test_counts_beyond_64_bits_do_not_end_a_parquet_export() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from snellen.report.trial_files import _column

    assert _column(pyarrow, [1, None, 2**63]).to_pylist() == [1.0, None, float(2**63)]
    assert _column(pyarrow, [1, None]).to_pylist() == [1, None]


def test_a_run_by_likelihood_has_its_values_in_the_files_of_aisbench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    rows = [{"id": n, "question": "?", "options": ["a", "a longer one"], "answer": "B"} for n in range(3)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    snellen.run(str(tmp_path / "d.jsonl"), "blind/longest", infer_method="likelihood", output_dir=tmp_path / "run")
    (file,), _ = look.export(tmp_path / "run", "aisbench", tmp_path / "out")
    for record in map(json.loads, file.read_text().splitlines()):
        assert [entry["label"] for entry in record["ppl_list"]] == ["A", "B"]
        assert record["prediction"] == "B" == min(record["ppl_list"], key=lambda entry: entry["ppl"])["label"]
