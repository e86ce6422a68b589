"""Files of predictions in the shapes of other harnesses, written by hand from the facts of their formats."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard

from workbooks import write_workbook

ZSTANDARD = 93
Rows = Sequence[Mapping[str, Any]]


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def write_lines(path: Path, rows: Rows, *, end: str = "\n", mark: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = end.join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_bytes((mark + text + end).encode("utf-8"))
    return path


def write_sheet(path: Path, rows: Rows) -> Path:
    """Write rows as the one sheet of a workbook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return write_workbook(path, Sheet1=[names, *([row.get(name, "") for name in names] for row in rows)])


def write_tsv(path: Path, rows: Rows, *, end: str = "\n", mark: str = "") -> Path:
    """Write rows as VLMEvalKit does: every cell quoted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    quoted = ("\t".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in cells)
    path.write_bytes((mark + end.join(quoted) + end).encode("utf-8"))
    return path


def write_archive(path: Path, members: Sequence[tuple[str, Any]], *, method: int = ZSTANDARD) -> Path:
    """Write a ZIP whose members are compressed as told, by Zstandard in two frames; names may occur twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole, central = bytearray(), bytearray()
    for name, value in members:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        packed, encoded = _packed(data, method), name.encode()
        sizes = (zlib.crc32(data), len(packed), len(data), len(encoded))
        here = len(whole)
        whole += struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, method, 0, 0x21, *sizes, 0) + encoded + packed
        fields = (20, 20, 0, method, 0, 0x21, *sizes, 0, 0, 0, 0, 0, here)
        central += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *fields) + encoded
    count = min(len(members), 0xFFFF)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, len(central), len(whole), 0)
    path.write_bytes(bytes(whole + central) + end)
    return path


def _packed(data: bytes, method: int) -> bytes:
    if method == ZSTANDARD:
        half = len(data) // 2
        return b"".join(zstandard.ZstdCompressor().compress(part) for part in (data[:half], data[half:]))
    if method == zipfile.ZIP_DEFLATED:
        compressor = zlib.compressobj(wbits=-15)
        return compressor.compress(data) + compressor.flush()
    return data


def inspect_sample(number: Any, reply: str, **fields: Any) -> dict[str, Any]:
    """Return a sample of inspect's log: a choice of two animals, the second right."""
    sample = {
        "id": number,
        "epoch": 1,
        "input": "Which animal?",
        "choices": ["a cat", "a dog"],
        "target": "B",
        "messages": [{"role": "user", "content": "Which animal?\n\nA) a cat\nB) a dog"}],
        "output": {"completion": reply, "choices": [{"stop_reason": "stop"}], "usage": {"input_tokens": 9, "output_tokens": 2}},
        "scores": {"choice": {"value": "C" if "B" in reply else "I", "answer": reply[-1:]}},
        "metadata": {"subfield": "zoo"},
        "error": None,
    }  # fmt: skip
    return sample | fields


def inspect_header(total: int, accuracy: float) -> dict[str, Any]:
    """Return the header of a finished log."""
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "inspect_evals/mmmu_multiple_choice", "model": "openai/small", "dataset": {"samples": total}},
        "plan": {"steps": [{"solver": "multiple_choice", "params": {}}]},
        "results": {
            "total_samples": total,
            "scores": [{"name": "choice", "metrics": {"accuracy": {"name": "accuracy", "value": accuracy}}}],
        },
    }


def mcq(index: Any, prediction: Any, answer: str = "B", **more: Any) -> dict[str, Any]:
    """Return a row of VLMEvalKit: a choice of three animals."""
    row = {"index": index, "question": f"Which animal is it, {index}?", "A": "a cat", "B": "a dog", "C": "a horse"}
    return row | {"answer": answer, "category": "animals", "prediction": prediction} | more
