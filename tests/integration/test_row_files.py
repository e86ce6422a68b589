"""Rows in other files than text: workbooks, Arrow, WebDataset, ZIP archives of pictures, PDF pages, a hub's folders."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import PIL.Image
import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
from reportlab.pdfgen.canvas import Canvas

import snellen
from command_line import run_command
from snellen.api.load import load_run
from snellen.core.errors import DataError, UsageError
from snellen.data.catalog import Catalog
from workbooks import write_workbook

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "Which of these?", "options": ["x", "y"], "answer": "B"},
    {"id": "b", "question": "Which of those?", "options": ["v", "w"], "answer": "A"},
]
ANSWERS = {"a": "y", "b": "v"}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def picture(shade: int) -> bytes:
    stream = io.BytesIO()
    PIL.Image.new("RGB", (40, 30), (shade, 255 - shade, 7)).save(stream, "PNG")
    return stream.getvalue()


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


HEADER = ["id", "question", "A", "B", "answer"]
CELLS = [HEADER, ["a", "Which of these?", "x", "y", "B"], ["b", "Which of those?", "v", "w", "A"]]


def make_workbook(folder: Path) -> Path:
    return write_workbook(folder / "rows.xlsx", rows=CELLS, empty=[])


def make_stream(folder: Path) -> Path:
    table = pyarrow.Table.from_pylist(ROWS)
    with pyarrow.ipc.new_stream(folder / "rows.arrow", table.schema) as writer:
        writer.write_table(table)
    return folder / "rows.arrow"


def make_feather(folder: Path) -> Path:
    pyarrow.feather.write_feather(pyarrow.Table.from_pylist(ROWS), folder / "rows.feather", compression="zstd")
    return folder / "rows.feather"


def write_shard(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def make_shard(folder: Path) -> Path:
    members: dict[str, bytes] = {}
    for number, row in enumerate(ROWS):
        members[f"{row['id']}.json"] = json.dumps(row).encode()
        members[f"{row['id']}.png"] = picture(number)
    return write_shard(folder / "rows.tar", members)


def make_zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "pictures.zip", "w") as archive:
        archive.writestr("pictures/one.png", picture(1))
        archive.writestr("pictures/deep/two.png", picture(2))
    (folder / "three.png").write_bytes(picture(3))
    images = [["one.png", "three.png"], ["pictures/deep/two.png"]]
    return write_lines(folder / "rows.jsonl", [row | {"images": images[n]} for n, row in enumerate(ROWS)])


def write_pdf(path: Path, pages: int) -> Path:
    canvas = Canvas(str(path), pagesize=(200, 100))
    for number in range(1, pages + 1):
        canvas.drawString(20, 50, f"page {number}")
        canvas.showPage()
    canvas.save()
    return path


def make_pdf(folder: Path) -> Path:
    write_pdf(folder / "in.pdf", 5)
    return write_lines(
        folder / "rows.jsonl", [ROWS[0] | {"image": "in.pdf", "pages": "1-2,5"}, ROWS[1] | {"image": "in.pdf"}]
    )


def make_shards(folder: Path) -> Path:
    for number, row in enumerate(ROWS):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), folder / f"test-{number:05d}-of-00002.parquet")
    return folder


FILES: dict[str, tuple[Callable[[Path], Path], list[list[int]]]] = {
    "workbook": (make_workbook, [[], []]),
    "arrow stream": (make_stream, [[], []]),
    "feather": (make_feather, [[], []]),
    "webdataset": (make_shard, [[0], [1]]),
    "zip": (make_zip, [[1, 3], [2]]),
    "pdf": (make_pdf, []),
    "shards": (make_shards, [[], []]),
}
"""What makes the file, and the shades of the pictures of its rows, in order."""


def pictures_of(name: str, task: Path) -> list[list[str]]:
    if name == "pdf":
        return [
            [sha256(Path(one.ref).read_bytes()).hexdigest() for one in row.images]
            for row in snellen.load_dataset(str(task))
        ]
    return [[sha256(picture(shade)).hexdigest() for shade in shades] for shades in FILES[name][1]]


@pytest.mark.parametrize("name", FILES)
def test_rows_of_any_file_are_right_from_end_to_end(name: str, mock_server: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    task = FILES[name][0](folder)
    pictures = pictures_of(name, task)
    known = [
        {"question": row["question"], "options": row["options"], "answer": ANSWERS[row["id"]], "images": images}
        for row, images in zip(ROWS, pictures, strict=True)
    ]
    server = mock_server("--answers", write_lines(tmp_path / "answers.jsonl", known))
    result = snellen.run(str(task), "openai/mock", base_url=server.base_url, output_dir=tmp_path / "run", cache=False)
    (told,) = result.results["tasks"].values()
    accuracy = told["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"], accuracy["unscored"]) == (1.0, 2, 0)
    with load_run(result.folder) as run:
        (task_name,) = result.results["tasks"]
        trials = {trial.sample.id: trial for trial in run.trials(task_name)}
    assert [[one.sha256 for one in trials[row["id"]].prediction.images] for row in ROWS] == pictures
    assert name != "pdf" or list(map(len, pictures)) == [3, 5]


def test_pages_of_a_pdf_are_shown_in_the_order_asked_for(tmp_path: Path) -> None:
    write_pdf(tmp_path / "in.pdf", 4)
    rows = [ROWS[0] | {"image": "in.pdf", "pages": [4, 1]}, ROWS[1] | {"image": ["in.pdf"], "pages": 2}]
    first, second = snellen.load_dataset(str(write_lines(tmp_path / "t.jsonl", rows)))
    assert [image.page for image in first.images] == [4, 1]
    assert [image.page for image in second.images] == [2]
    assert len({image.ref for image in (*first.images, *second.images)}) == 3
    with PIL.Image.open(first.images[0].ref) as page:
        assert page.size == (400, 200), "144 dots an inch"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"image": "in.pdf", "pages": "3"}, "pages '3' are not among its pages 1 to 2"),
        ({"image": "in.pdf", "pages": "2-1"}, "are not among its pages"),
        ({"image": "in.pdf", "pages": "first"}, "are not written as 1-3,5"),
        ({"image": "long.pdf"}, "has 101 pages: say which are meant in a column `pages`"),
        ({"image": ["in.pdf", "in.pdf"], "pages": "1"}, "2 PDFs and one `pages`"),
    ],
)
def test_pages_that_are_not_there_are_refused_by_row(row: dict[str, Any], said: str, tmp_path: Path) -> None:
    write_pdf(tmp_path / "in.pdf", 2)
    if row["image"] == "long.pdf":
        write_pdf(tmp_path / "long.pdf", 101)
    task = write_lines(tmp_path / "t.jsonl", [ROWS[0] | row])
    with pytest.raises(DataError, match=rf"t.jsonl record 1.*{said}"):
        list(snellen.load_dataset(str(task)))


def test_a_missing_or_damaged_pdf_costs_its_own_row(tmp_path: Path) -> None:
    write_pdf(tmp_path / "in.pdf", 2)
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 and no more")
    rows = [{**ROWS[0], "id": name, "image": f"{name}.pdf"} for name in ("in", "bad", "gone")]
    task = str(write_lines(tmp_path / "t.jsonl", rows))
    with pytest.raises(DataError, match=r"1 image missing \(gone: .*gone.pdf\)"):
        snellen.run(task, "blind/first", output_dir=tmp_path / "run")
    result = snellen.run(task, "blind/first", output_dir=tmp_path / "run", allow_missing_images=True)
    accuracy = result.results["tasks"]["t"]["metrics"]["accuracy"]
    assert (accuracy["n"], accuracy["failed"]) == (1, 2)


def test_a_pdf_in_a_message_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    write_pdf(tmp_path / "in.pdf", 2)
    content = [{"type": "image_url", "image_url": {"url": "in.pdf"}}, {"type": "text", "text": "What?"}]
    row = {"messages": [{"role": "user", "content": content}], "answer": "a"}
    with pytest.raises(DataError, match="record 1: a PDF can stand in a column of pictures"):
        list(snellen.load_dataset(str(write_lines(tmp_path / "t.jsonl", [row]))))


def test_a_column_of_pages_without_a_pdf_stays_a_tag(tmp_path: Path) -> None:
    (sample,) = snellen.load_dataset(str(write_lines(tmp_path / "t.jsonl", [ROWS[0] | {"pages": 12}])))
    assert sample.tags["pages"] == 12


def test_a_picture_in_two_archives_is_not_guessed_at(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("a.png", picture(1))
    task = write_lines(tmp_path / "t.jsonl", [ROWS[0] | {"image": "a.png"}])
    with pytest.raises(DataError, match=r"record 1: picture 'a.png' is in .*one.zip: a.png and .*two.zip"):
        list(snellen.load_dataset(str(task)))


def test_an_archive_can_be_named_and_its_paths_lead_nowhere(tmp_path: Path) -> None:
    archive_path = tmp_path / "elsewhere" / "p.zip"
    archive_path.parent.mkdir()
    with zipfile.ZipFile(archive_path, "w") as archive:
        archive.writestr("../../evil.png", picture(9))
    task = write_lines(tmp_path / "t.jsonl", [ROWS[0] | {"image": "../../evil.png"}])
    own = [("dataset.image_root", str(archive_path))]
    run = snellen.run(str(task), "blind/first", output_dir=tmp_path / "run", overrides=tuple(own))
    with load_run(run.folder) as stored:
        (trial,) = stored.trials("t")
    inside = Path(trial.sample.images[0].ref)
    assert inside.is_relative_to(tmp_path / "run")
    assert inside.read_bytes() == picture(9)


def test_a_bomb_of_an_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.png", "w") as out:
        for _ in range(65):
            out.write(bytes(2**20))
    task = write_lines(tmp_path / "t.jsonl", [ROWS[0] | {"image": "a.png"}])
    with pytest.raises(DataError, match=r"record 1: a.png in .*p.zip has 65 MB; the limit is 64 MB"):
        list(snellen.load_dataset(str(task)))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"a.json": b"[1]"}, "a.json is a list, not an object"),
        ({"a.json": b"{"}, "a.json is not valid JSON"),
        ({"a.npy": b"x"}, "a.npy is nothing that is read"),
        ({"a.txt": b"\xff"}, "a.txt is no text"),
        ({"a.json": b'{"image": 3}', "a.png": b"x"}, "a has pictures and a field 'image' in its JSON"),
    ],
)
def test_a_shard_that_is_none_is_refused_by_member(members: dict[str, bytes], said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        list(snellen.load_dataset(str(write_shard(tmp_path / "s.tar", members))))


def test_a_link_or_a_cut_in_a_shard_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "s.tar", "w") as archive:
        entry = tarfile.TarInfo("a.json")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(DataError, match=r"a.json is no plain file"):
        list(snellen.load_dataset(str(tmp_path / "s.tar")))
    whole = make_shard(tmp_path).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:700])
    with pytest.raises(DataError, match="cut"):
        list(snellen.load_dataset(str(tmp_path / "cut.tar")))


def test_sheets_are_chosen_by_name_and_numbers_are_whole(tmp_path: Path) -> None:
    book = write_workbook(
        tmp_path / "b.xlsx", one=CELLS, two=[["id", "question", "answer", "level"], [7, "How many?", 3, 2.5]]
    )
    with pytest.raises(UsageError, match=r"several sheets \(one, two\): choose one with --sheet"):
        snellen.run(str(book), "blind/first", output_dir=tmp_path / "run")
    with pytest.raises(UsageError, match=r"no sheet 'tow' \(did you mean 'two'\?\)"):
        snellen.run(str(book), "blind/first", output_dir=tmp_path / "run", sheet="tow")
    result = snellen.run(str(book), "blind/first", output_dir=tmp_path / "run", sheet="two")
    with load_run(result.folder) as run:
        (trial,) = run.trials("b")
    assert (trial.sample.id, trial.sample.answers, trial.sample.tags["level"]) == ("7", ("3",), 2.5)
    with pytest.raises(UsageError, match="is no workbook"):
        snellen.run(str(write_lines(tmp_path / "t.jsonl", ROWS)), "blind/first", sheet="two")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([["question", "question"], ["a", "b"]], "two columns 'question'"),
        ([["question"], ["a", "b"]], "record 1 has more cells than the header: 'b' is in no column"),
        ([], "has no rows"),
    ],
)
def test_a_sheet_that_would_lose_a_cell_is_refused(rows: list[list[Any]], said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        list(snellen.load_dataset(str(write_workbook(tmp_path / "b.xlsx", s=rows))))


@pytest.mark.parametrize("name", ["t.xlsx", "t.arrow", "t.feather", "t.tar"])
def test_a_file_that_is_none_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"this is no table at all" * 100)
    with pytest.raises(DataError, match=name) as refused:
        list(snellen.load_dataset(str(tmp_path / name)))
    assert "\n" not in str(refused.value).strip()


def make_snapshot(folder: Path) -> Path:
    snapshot = folder / "datasets--owner--things" / "snapshots" / "0a1b"
    for config, split, count in (("easy", "test", 2), ("easy", "validation", 1), ("hard", "test", 1)):
        for number in range(count):
            row = ROWS[number] | {"topic": config}
            path = snapshot / config / f"{split}-{number:05d}-of-{count:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    (snapshot / "README.md").write_text("a card")
    (snapshot / "dataset_infos.json").write_text("{}")
    return snapshot


def test_a_snapshot_asks_for_config_and_split_by_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    snapshot = make_snapshot(tmp_path)
    common = ["run", snapshot, "--model", "blind/first", "-o", tmp_path / "run", "--quiet"]
    assert run_command(common) == 2
    assert "has several configs (easy, hard): choose one with --data-config" in capfd.readouterr().err
    assert run_command([*common, "--data-config", "easy"]) == 2
    assert "has several splits (test, validation): choose one with --split" in capfd.readouterr().err
    assert run_command([*common, "--data-config", "easy", "--split", "tset"]) == 2
    assert "has no split 'tset' (did you mean 'test'?); it has: test, validation" in capfd.readouterr().err
    assert run_command([*common, "--data-config", "easy", "--split", "test"]) == 0
    with load_run(tmp_path / "run") as run:
        assert [trial.sample.id for trial in run.trials("owner-things")] == ["a", "b"]


def test_a_missing_shard_is_refused(tmp_path: Path) -> None:
    make_shards(tmp_path)
    (tmp_path / "test-00000-of-00002.parquet").unlink()
    (tmp_path / "more.txt").write_text("")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "test-00002-of-00003.parquet")
    with pytest.raises(UsageError, match="mixes shards of 2 and 3"):
        snellen.load_dataset(str(tmp_path))
    (tmp_path / "test-00001-of-00002.parquet").unlink()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "test-00001-of-00003.parquet")
    with pytest.raises(UsageError, match=r"1 shards are missing \(number 0\)"):
        snellen.load_dataset(str(tmp_path))


def test_years_are_no_shards_and_numbers_from_nought_are(tmp_path: Path) -> None:
    years = tmp_path / "years"
    for year, row in zip((2023, 2024), ROWS, strict=True):
        write_lines(years / f"data_{year}.jsonl", [row])
    with pytest.raises(UsageError, match=r"several data files \(data_2023.jsonl, data_2024.jsonl\): name one"):
        snellen.load_dataset(str(years))
    parts = tmp_path / "parts"
    for number, row in enumerate(ROWS):
        write_lines(parts / "test" / f"{number:04d}.jsonl", [row])
    assert [sample.id for sample in snellen.load_dataset(str(parts))] == ["a", "b"]


def test_a_folder_of_the_name_of_a_task_is_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "longbench-v2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Catalog().task("longbench-v2").name == "longbench-v2"


def test_a_folder_of_flageval_tasks_is_chosen_from(tmp_path: Path) -> None:
    for task in ("Depth", "Counting"):
        path = tmp_path / "blink" / task / "val" / "data.json"
        (path.parent / "img").mkdir(parents=True)
        (path.parent / "img" / "1.png").write_bytes(picture(1))
        row = {"question_id": task, "question": "Which?\n(A) x\n(B) y", "answer": "(A)", "img_path": "img/1.png"}
        path.write_text(json.dumps([row]))
    with pytest.raises(UsageError, match=r"several configs \(Counting, Depth\)"):
        snellen.load_dataset(str(tmp_path / "blink"))
    (tmp_path / "old").mkdir()
    result = snellen.run(
        str(tmp_path / "blink"), "blind/first", data_config="Depth", output_dir=tmp_path / "blink" / "run"
    )
    again = snellen.run(
        str(tmp_path / "blink"), "blind/first", data_config="Depth", output_dir=tmp_path / "blink" / "run"
    )
    assert (result.state.done, again.state.done) == (1, 0), "a run inside the folder is no table of it"


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("question,answer,answer\na,b,c\n")
    with pytest.raises(DataError, match="two columns 'answer'"):
        list(snellen.load_dataset(str(tmp_path / "t.csv")))


def test_cells_with_and_without_quotes_are_the_same_as_csv_reads_them(tmp_path: Path) -> None:
    text = 'id\tquestion\tanswer\r\n1\tone "two" three\t\r\n\r\n2\t"first\nsecond\t\t"\t"a ""b"""\r\n3\t\u2028x\ty\n'
    with (tmp_path / "t.tsv").open("w", newline="") as stream:
        stream.write(text)
    found = [(sample.question, sample.answers) for sample in snellen.load_dataset(str(tmp_path / "t.tsv"))]
    assert found == [('one "two" three', ()), ("first\nsecond\t\t", ('a "b"',)), ("\u2028x", ("y",))]
