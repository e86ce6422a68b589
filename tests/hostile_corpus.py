"""Files and replies of a stranger, made by script: bombs, liars, escapes, programs in disguise. Nothing here may run, leave or fill memory."""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from payloads import PAYLOADS

MEGA = 2**20


class Case(NamedTuple):
    """One file, and which reader it is given to."""

    reader: str
    path: Path


class Touch:
    """A pickle that would leave a mark if it were ever run."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        import os

        return os.system, (self._command,)


def write_corpus(folder: Path) -> list[Case]:
    """Write every file and return what to read; `folder/mark` must never appear."""
    folder.mkdir(parents=True, exist_ok=True)
    makers = (images, tables, matrices, pickles, settings, timelines, archives, databases)
    cases = [case for maker in makers for case in maker(folder)]
    replies(folder / "replies.jsonl", folder / "questions.jsonl")
    return cases


def put(folder: Path, reader: str, files: dict[str, bytes]) -> Iterator[Case]:
    for name, content in files.items():
        (folder / name).write_bytes(content)
        yield Case(reader, folder / name)


def images(folder: Path) -> Iterator[Case]:
    from test_poison import GIF, JPEG, PNG, REFUSED, SIZE_AS_SENT, TIFF, WEBP, chunk, png

    files = {f"image-{name}": data for name, (data, _) in SIZE_AS_SENT.items()}
    files |= {f"image-{name}": data for name, data in REFUSED.items()}
    text = zlib.compress(bytes(200 * MEGA), 9)
    files |= {
        "image-ztxt-bomb.png": png(4, 4, zlib.compress(bytes(20)), chunk(b"zTXt", b"a\0\0" + text)),
        "image-iccp-bomb.png": png(4, 4, zlib.compress(bytes(20)), chunk(b"iCCP", b"a\0\0" + text)),
        "image-idat-bomb.png": png(4, 4, zlib.compress(bytes(300 * MEGA), 9)),
        "image-many-chunks.png": png(4, 4, zlib.compress(bytes(20)), *[chunk(b"tEXt", b"k\0v")] * 20_000),
        "image-tall-bomb.png": png(1, 2**31 - 1, b""),
        "image-square-bomb.png": png(9_000, 9_000, zlib.compress(bytes(81_009_000), 9)),
        "image-tail.png": PNG + b"<script>fired()</script>" * 1000,
        "image-polyglot.jpg": JPEG + b"PK\3\4" + b"\0" * 64,
        "image-zip.gif": b"PK\3\4" + GIF,
        "image-ico.png": b"\0\0\1\0\1\0\0\0\0\0\1\0 \0" + struct.pack("<II", 2**31 - 1, 22) + PNG,
        "image-psd.png": b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 30_000, 30_000, 8, 3),
        "image-xbm.png": b"#define x_width 40000\n#define x_height 40000\nstatic char x_bits[] = {",
        "image-jp2.png": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(100),
        "image-loop.tif": TIFF[:4] + struct.pack("<I", 8) + struct.pack("<H", 0) + struct.pack("<I", 8),
        "image-far.tif": TIFF[:4] + struct.pack("<I", 2**31 - 1),
        "image-half-head.webp": WEBP[:20],
        "image-sixteen-times.gif": GIF * 16,
        "image-fork.svg": b"<?xml version='1.0'?><!DOCTYPE s [<!ENTITY a 'x'><!ENTITY b '&a;&a;'>]><svg>&b;</svg>",
        "image-elf.png": b"\x7fELF" + bytes(60),
        "image-shell.png": b"#!/bin/sh\ntouch mark\n",
    }  # fmt: skip
    for number, data in enumerate((PNG, JPEG, GIF, TIFF, WEBP)):
        for cut in range(1, 7):
            files[f"image-cut-{number}-{cut}"] = data[: len(data) * cut // 7]
    return put(folder, "image", files)


def tables(folder: Path) -> Iterator[Case]:
    row = {"id": 1, "question": "?", "options": ["a", "b"], "answer": "A"}

    def line(**more: object) -> bytes:
        return json.dumps({**row, **more}).encode() + b"\n"

    escape = "\x1b]0;owned\x07\x1b[2J\x1b[31m=cmd|' /C calc'!A0"
    files = {
        "table-deep.jsonl": b'{"a":' * 100_000,
        "table-deep-list.json": b"[" * 1_000_000,
        "table-long-line.jsonl": b'{"question": "' + b"x" * (80 * MEGA) + b'"}',
        "table-long-number.jsonl": b'{"id": ' + b"9" * 1_000_000 + b"}",
        "table-exponent.jsonl": line(value=1).replace(b'"value": 1', b'"value": 1e999999999'),
        "table-nan.jsonl": b'{"id": NaN, "question": "?"}\n',
        "table-keys.jsonl": b"{" + b",".join(b'"k%d": 1' % n for n in range(300_000)) + b"}",
        "table-same-key.jsonl": b'{"id": 1, "id": 2, "question": "a", "question": "b", "answer": "x"}\n',
        "table-escapes.jsonl": line(id=escape, question=escape, answer=escape),
        "table-surrogates.jsonl": b'{"id": "\\udc80", "question": "\\ud800"}\n',
        "table-overlong.jsonl": b'{"id": "\xc0\xaf", "question": "?"}\n',
        "table-nul.jsonl": line(question="a\0b"),
        "table-bidi.jsonl": line(question="\u202eabc\u2066", id="\u202e1"),
        "table-formula.csv": b"id,question,answer\n1,=cmd|' /C calc'!A0,@SUM(1)\n",
        "table-quotes.csv": b'id,question\n1,"' + b"x" * (20 * MEGA) + b"\n",
        "table-columns.csv": b",".join(b"c%d" % n for n in range(200_000)) + b"\n1\n",
        "table-nul.csv": b"id,question\n1,\0\n",
        "table-utf16.csv": "id,question\n1,a\n".encode("utf-16"),
        "table-utf7.csv": b"id,question\n1,+ADw-script+AD4-\n",
        "table-gzip.jsonl": b"\x1f\x8b\x08" + zlib.compress(bytes(MEGA)),
        "table-path-up.jsonl": line(image="../../../../etc/passwd"),
        "table-path-abs.jsonl": line(image="/etc/shadow"),
        "table-path-dev.jsonl": line(image="/dev/zero"),
        "table-path-proc.jsonl": line(image="/proc/self/environ"),
        "table-path-url.jsonl": line(image="http://169.254.169.254/latest/meta-data"),
        "table-path-file.jsonl": line(image="file:///etc/passwd"),
        "table-path-unc.jsonl": line(image="\\\\evil.invalid\\share\\x.png"),
        "table-data-bomb.jsonl": line(image="data:image/png;base64," + "A" * (30 * MEGA)),
        "table-options.jsonl": line(options=["o"] * 200_000),
        "table-id-object.jsonl": line(id={"$gt": ""}),
        "table-answer-list.jsonl": line(answer=[["x"] * 1000] * 100),
        "table-python.jsonl": line(question="{0.__class__.__mro__}", image="{self.__init__.__globals__}"),
        "table-template.jsonl": line(question="{{7*7}}${7*7}<%= 7*7 %>{question}{options[0].__class__}"),
        "table-yaml.json": b"!!python/object/apply:os.system ['touch mark']",
        "table-bare.parquet": b"PAR1" + bytes(100) + b"PAR1",
        "table-size.parquet": b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1",
        "table-empty.parquet": b"PAR1PAR1",
        "table-sheet.tsv": b"id\tquestion\n1\t" + b"\t" * 100_000 + b"\n",
    }
    return put(folder, "table", files)


def matrices(folder: Path) -> Iterator[Case]:
    from test_data_bombs import MATS, mat, packed

    files = {f"mat-{number}.mat": content for number, content in enumerate(MATS.values())}
    files |= {
        "mat-empty.mat": b"",
        "mat-text.mat": b"MATLAB 5.0 MAT-file" + b" " * 200,
        "mat-hdf.mat": b"\x89HDF\r\n\x1a\n" + bytes(600),
        "mat-twice-packed.mat": mat(packed(packed(packed(bytes(50 * MEGA))))),
    }
    return put(folder, "mat", files)


def pickles(folder: Path) -> Iterator[Case]:
    command = f"touch {folder / 'mark'}"
    files = {f"pickle-system-{protocol}.pkl": pickle.dumps(Touch(command), protocol) for protocol in range(6)}
    files |= {
        "pickle-global.pkl": b"cos\nsystem\n(S'" + command.encode() + b"'\ntR.",
        "pickle-inst.pkl": b"(S'" + command.encode() + b"'\nios\nsystem\n.",
        "pickle-stack-global.pkl": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
        "pickle-build.pkl": b"\x80\x02}}b.",
        "pickle-ext.pkl": b"\x80\x02\x82\x01.",
        "pickle-persistent.pkl": b"Pfile\n.",
        "pickle-memo-bomb.pkl": b"(" + b"l0" * 10 + b"".join(b"(h\0h\0l" for _ in range(100)) + b".",
        "pickle-laughs.pkl": b"\x80\x02]q\0" + b"".join(b"(h%ch%cl" % (n, n) + b"q%c" % (n + 1) for n in range(40)) + b".",
        "pickle-long.pkl": b"\x80\x02\x8b\xff\xff\xff\x7f",
        "pickle-frame.pkl": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b".",
        "pickle-unicode.pkl": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b".",
        "pickle-pops.pkl": b"\x80\x02" + b"0" * 100 + b".",
        "pickle-marks.pkl": b"(" * 500_000 + b".",
        "pickle-deep.pkl": b"]" * 200_000 + b"a" * 199_999 + b".",
        "pickle-nothing.pkl": b"",
    }  # fmt: skip
    return put(folder, "pickle", files)


def settings(folder: Path) -> Iterator[Case]:
    from test_data_bombs import TOMLS

    files = {f"card-{number}.toml": text.encode() for number, text in enumerate(TOMLS.values())}
    files |= {
        "card-deep.toml": b"a = " + b"[" * 100_000,
        "card-inline.toml": b"a = " + b"{b=" * 5_000,
        "card-tables.toml": b"".join(b"[[a%d]]\n" % n for n in range(50_000)),
        "card-number.toml": b"a = " + b"9" * 500_000,
        "card-date.toml": b"a = 9999-99-99T99:99:99Z",
        "card-bytes.toml": b"a = '\xff\xfe'",
        "card-nul.toml": b"a = '\0'",
        "card-same.toml": b"a = 1\na = 2",
        "card-import.toml": b"[dataset]\nloader = 'os:system'\n",
        "card-dunder.toml": b'[dataset]\nloader = \'__import__("os").system("touch mark")\'\n',
    }
    return put(folder, "toml", files)


def timelines(folder: Path) -> Iterator[Case]:
    files = {
        "timeline-backwards.json": b'{"requests": [{"start": 5, "chunks": [3, 2, 1]}]}',
        "timeline-nan.json": b'{"requests": [{"start": NaN}]}',
        "timeline-huge.json": b'{"requests": [{"start": 1e308, "chunks": [1e308, 1.7e308], "output_tokens": 9223372036854775807}]}',
        "timeline-negative.json": b'{"requests": [{"start": 1, "done": 2, "output_tokens": -5}]}',
        "timeline-text.json": b'{"requests": "all of them"}',
        "timeline-objects.json": b'{"requests": [[], 1, null]}',
        "timeline-vllm.json": b'{"ttfts": [1, 2], "itls": [[1]], "completed": 2, "request_throughput": 1}',
        "timeline-guidellm.json": b'{"benchmarks": [{"requests": {"successful": [{}]}}]}',
        "timeline-deep.json": b"[" * 500_000,
    }
    return put(folder, "timeline", files)


def archives(folder: Path) -> Iterator[Case]:
    """Nothing is ever unpacked: an archive under any name is no data file."""
    slip, bomb, tar = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(slip, "w") as archive:
        archive.writestr("../../mark", "x")
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.jsonl", bytes(100 * MEGA))
    with tarfile.open(fileobj=tar, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    contents = {"slip": slip.getvalue(), "bomb": bomb.getvalue(), "tar": tar.getvalue()}
    files = {f"archive-{name}{end}": content for name, content in contents.items() for end in (".zip", ".jsonl", ".json", ".csv")}  # fmt: skip
    return put(folder, "table", files)


HOSTILE_SQL = {
    "endless-view": "CREATE VIEW predictions AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT n FROM r",
    "trigger": "CREATE TABLE a(b); CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT load_extension('evil'); END",
    "nothing": "CREATE TABLE other(a)",
    "wrong-types": "CREATE TABLE meta(key, value); INSERT INTO meta VALUES ('header', x'00ff')",
    "header-number": "CREATE TABLE meta(key, value); INSERT INTO meta VALUES ('header', 7)",
    "header-deep": "CREATE TABLE meta(key, value); INSERT INTO meta VALUES ('header', '" + "[" * 100_000 + "')",
    "header-bomb": "CREATE TABLE meta(key, value); INSERT INTO meta VALUES ('header', zeroblob(200000000))",
    "virtual": "CREATE VIRTUAL TABLE predictions USING fts5(a)",
    "newer": "PRAGMA user_version=99",
    "generated": "CREATE TABLE meta(key, value AS (randomblob(100000000)))",
}


def databases(folder: Path) -> Iterator[Case]:
    for name, script in HOSTILE_SQL.items():
        run = folder / f"run-{name}"
        run.mkdir()
        database = sqlite3.connect(run / "run.db")
        try:
            database.executescript("PRAGMA user_version=1;" + script)
        except sqlite3.OperationalError:  # a module this SQLite does not have
            pass
        finally:
            database.close()
        yield Case("run", run)
    for name, content in {"text": b"no database", "empty": b"", "head": b"SQLite format 3\0" + bytes(84)}.items():
        run = folder / f"run-{name}"
        run.mkdir()
        (run / "run.db").write_bytes(content)
        yield Case("run", run)


ESCAPES = (
    "\x1b[2J\x1b[H", "\x1b]0;owned\x07", "\x1b]8;;http://evil.invalid\x1b\\x\x1b]8;;\x1b\\", "\x9b31m", "\x07\x07", "a\rb", "\x1b[6n",
    "\x1bP+q544e\x1b\\", "\x1b]52;c;aGk=\x07", "\u202egnp.exe", "a\x08\x08b", "\x1b[?1049h",
)  # fmt: skip
FORMULAS = ("=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", "\ufeff=1", "\u200b=1", "\x0b=1", "=HYPERLINK(\"http://evil.invalid\")")  # fmt: skip


def hostile_replies() -> list[str]:
    return [
        *ESCAPES,
        *FORMULAS,
        *PAYLOADS[:60],
        "A" * MEGA,
        "(" * 50_000,
        "\\boxed{" * 20_000,
        "<think>" * 20_000,
        "{" * 50_000,
    ]


def replies(path: Path, questions: Path) -> None:
    """Write questions and what a hostile model answered to each."""
    texts = hostile_replies()
    shown = [
        text[:300].replace("<img", "<i mg") for text in texts
    ]  # a row that shows a picture and has none is refused
    asked = ({"id": str(n), "question": text, "options": [text, "b"], "answer": "B"} for n, text in enumerate(shown))
    questions.write_text("\n".join(map(json.dumps, asked)))
    path.write_text("\n".join(json.dumps({"id": str(n), "prediction": text}) for n, text in enumerate(texts)))
