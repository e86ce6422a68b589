"""Exports: every trial once, in the form others expect, and scored the same when it comes back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import snellen
from made_runs import make_run, make_task
from payloads import PAYLOADS
from snellen.api.look import outputs as look
from snellen.core.errors import UsageError
from snellen.report.exports.seed_files import EXPORTS, _stem, export_run
from snellen.report.exports.trial_files import COLUMNS, csv_lines, flat_records, frame, jsonl_lines
from snellen.scoring.outside.predictions import score_predictions
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


def test_frame_without_pandas_is_a_list(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    rows = frame(run)
    assert isinstance(rows, list)
    assert rows[0]["expected"] == "red"


def test_reform_file_scores_the_same_when_it_comes_back(single: Path, tmp_path: Path) -> None:
    (file,) = export_run(single, "reform", tmp_path)
    assert file.name == "shapes_SingleChoice_generation_small.json"
    records = json.loads(file.read_text())
    assert len(records) == 80
    answered = [record for record in records if record["prediction"] is not None]
    file.write_text(json.dumps(answered))
    again = score_predictions(file, "SingleChoice", profile="snellen")
    scored = [row for row in flat_records(RunReader(single)) if row["outcome"] != "failed"]
    assert len(scored) == len(answered)
    right = sum(row["value"] or 0.0 for row in scored)
    value = again.metrics["accuracy"].value
    assert value is not None
    assert value * again.metrics["accuracy"].n == pytest.approx(right)


def test_flageval_file_keeps_every_inference_at_its_index(run: Path, tmp_path: Path) -> None:
    (file,) = export_run(run, "flageval", tmp_path)
    records = json.loads(file.read_text())
    assert len(records) == 40
    assert all(len(record["multiple_raw_answers"]) == 2 for record in records)


def test_aisbench_files_split_successes_from_failures(run: Path, tmp_path: Path) -> None:
    files = {
        file.name: [json.loads(line) for line in file.read_text().splitlines()]
        for file in export_run(run, "aisbench", tmp_path)
    }
    failed = [row for row in flat_records(RunReader(run)) if row["outcome"] == "failed"]
    assert len(files["shapes.jsonl"]) == 80 - len(failed)
    assert len(files.get("shapes_failed.jsonl", [])) == len(failed)
    assert len({record["uuid"] for record in files["shapes.jsonl"]}) == 80 - len(failed)
    assert files["shapes.jsonl"][0]["gold"] in "ABCD"


@pytest.mark.parametrize("form", ["mc", "niah"])
def test_document_forms_hold_every_trial(run: Path, tmp_path: Path, form: str) -> None:
    files = export_run(run, form, tmp_path)
    told = json.loads(files[0].read_text())
    assert told
    assert EXPORTS.keys() == {"flageval", "reform", "mc", "niah", "aisbench"}


@pytest.mark.parametrize("name", [*PAYLOADS[::11], "../../x", "/etc/passwd", "a/b", "..\\x"])
def test_file_names_stay_in_their_folder(name: str) -> None:
    assert not set(_stem(name)) & set("/\\\0")
    assert _stem(name) not in (".", "..")


def test_a_name_of_dots_is_refused() -> None:
    with pytest.raises(UsageError):
        _stem("...")


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
    from snellen.report.exports.trial_files import _column

    assert _column(pyarrow, [1, None, 2**63]).to_pylist() == [1.0, None, float(2**63)]
    assert _column(pyarrow, [1, None]).to_pylist() == [1, None]


def test_a_run_by_likelihood_has_its_values_in_the_files_of_aisbench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    rows = [{"id": n, "question": "?", "options": ["a", "a longer one"], "answer": "B"} for n in range(3)]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    snellen.run(str(tmp_path / "d.jsonl"), "blind/longest", infer_method="likelihood", output_dir=tmp_path / "run")
    (file,) = export_run(tmp_path / "run", "aisbench", tmp_path / "out")
    for record in map(json.loads, file.read_text().splitlines()):
        assert [entry["label"] for entry in record["ppl_list"]] == ["A", "B"]
        assert record["prediction"] == "B" == min(record["ppl_list"], key=lambda entry: entry["ppl"])["label"]
