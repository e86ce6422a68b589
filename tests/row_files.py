"""Small files of rows as people have them, made in a folder of a test."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

Row = dict[str, Any]


def lines(*rows: Row, name: str = "rows.jsonl") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
        return path

    return make


def whole(value: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "rows.json"
        path.write_text(json.dumps(value), "utf-8")
        return path

    return make


def table(*rows: Row, name: str = "rows.tsv", **options: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        with path.open("w", newline="", encoding=options.pop("encoding", "utf-8")) as stream:
            writer = csv.DictWriter(stream, list(rows[0]), **({"delimiter": "\t"} | options))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return make


def parquet(*rows: Row) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), folder / "rows.parquet")
        return folder / "rows.parquet"

    return make


def text(content: str | bytes, name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        return folder / name

    return make
