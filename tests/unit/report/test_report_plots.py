"""Specifications are plain data that draw without a display; rows keep their order and empty cells their place."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from snellen.core.vega import render_png, render_svg
from snellen.kits.pages.questions import cells, plots_of, severity_rows, variant_rows
from snellen.report.pages.vega import curves, heat_map, interval_bars, save_plot, to_csv
from snellen.scoring.tables.table import ScoreTable
from snellen.scoring.tables.table_builder import read_tables

ROWS = [
    {"length": "8000", "depth": "0%", "value": 1.0, "n": 3},
    {"length": "16000", "depth": "50%", "value": 0.25, "n": 4},
]


def test_a_heat_map_has_every_cell_in_order_and_leaves_unmeasured_ones_empty() -> None:
    spec = heat_map(ROWS, "length", "depth", title="t")
    values = {(cell["length"], cell["depth"]): cell["value"] for cell in spec["data"]["values"]}
    assert values == {("8000", "0%"): 1.0, ("8000", "50%"): None, ("16000", "0%"): None, ("16000", "50%"): 0.25}
    assert spec["encoding"]["x"]["sort"] == ["8000", "16000"]
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == [0, 1]


def test_plots_draw_headless_as_svg_and_png(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    line = [{"series": "blur", "severity": step, "value": 1 - step / 5, "low": 0.0, "high": 1.0} for step in range(6)]
    for spec in (
        heat_map(ROWS, "length", "depth"),
        curves(line, "severity"),
        interval_bars([{"variant": "a", **line[0]}], "variant"),
    ):
        assert render_png(spec, 1.0).startswith(b"\x89PNG")
        assert "<svg" in render_svg(spec)
    files = save_plot(curves(line, "severity", log_x=False), line, tmp_path / "plots" / "blur")
    assert [file.name for file in files] == ["blur.csv", "blur.vl.json", "blur.svg", "blur.png"]
    assert all(file.stat().st_size for file in files)


def test_csv_holds_all_columns_once() -> None:
    read = list(csv.DictReader(io.StringIO(to_csv([{"a": 1}, {"a": 2, "b": "x,y"}]))))
    assert read == [{"a": "1", "b": ""}, {"a": "2", "b": "x,y"}]


def table() -> ScoreTable:
    rows, samples = [], []
    for depth in ("0.0", "0.5", "1.0"):
        for length in ("900", "10000"):
            name = f"d{depth}-{length}"
            samples.append((name, name, {"depth": depth, "length": length, "row": 0.1, "column": 0.9}))
            rows += [
                (name, variant, 0, "accuracy", float(variant == "base" or depth == "0.0"), None, None, None)
                for variant in ("base", "perturb=blur:1", "perturb=blur:2")
            ]
    trials = [(row[0], row[1], 0, None) for row in rows]
    return read_tables(rows, trials, samples)["accuracy"]


def test_the_rows_of_a_run() -> None:
    found = table()
    whole = cells(found, "length", "depth")
    assert [row["length"] for row in whole[::3]] == ["900", "10000"]  # numbers in the order of numbers
    assert [row["depth"] for row in whole[:3]] == ["0%", "50%", "100%"]
    assert all(row["n"] == 3 for row in whole) and whole[0]["value"] == 1.0
    assert [row["value"] for row in severity_rows(found)] == [1.0, pytest.approx(1 / 3), pytest.approx(1 / 3)]
    assert {row["variant"] for row in variant_rows(found)} == {"base", "perturb=blur:1", "perturb=blur:2"}
    holes = cells(found.take(found.sample != 0), "length", "depth")
    assert [(row["value"], row["n"]) for row in holes].count((None, 0)) == 1 and len(holes) == 6
    names = set(plots_of(found))
    assert {"depth-length-base", "row-column-perturb_blur_1", "severity", "variants"} <= names
