"""Pictures leave the house only as planned: from the data's folder, unchanged while a run lasts, and counted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from command_line import run_command
from snellen.core.errors import DataError, RunMismatch
from snellen.core.types import Form, Image, ImageSent, Sample
from snellen.data.dataset import SampleFiles
from snellen.store.database import open_for_writing
from snellen.store.picture_ledger import PictureLedger


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


def draw(path: Path, shade: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (40, 30), (shade, 255 - shade, 7 * shade % 256)).save(path, "PNG")
    return path


def table(folder: Path, pictures: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": str(n), "question": f"What is it, {n}?", "image": name, "answer": "x"} for n, name in enumerate(pictures)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder / "rows.jsonl"


def ask(path: Path, server: Any, folder: Path, **settings: Any) -> Any:
    told = {"base_url": server.base_url, "output_dir": folder, "cache": False}
    return snellen.run(str(path), "openai/mock", **told, **settings)


def outside(tmp_path: Path, kind: str) -> Path:
    """Return a table that names a picture outside its folder."""
    data, secret = tmp_path / "data", draw(tmp_path / "home" / "passport.png", 9)
    draw(data / "in.png", 1)
    if kind == "symlink":
        (data / "link.png").symlink_to(secret)
    if kind == "linked folder":
        (data / "more").symlink_to(secret.parent)
    names = {
        "absolute": str(secret),
        "dots": "../home/passport.png",
        "symlink": "link.png",
        "linked folder": "more/passport.png",
    }
    return table(data, ["in.png", names[kind]])


KINDS = pytest.mark.parametrize("kind", ["absolute", "dots", "symlink", "linked folder"])


@KINDS
def test_a_picture_outside_the_datas_folder_is_not_sent(
    kind: str, tmp_path: Path, mock_server: Callable[..., Any]
) -> None:
    path, server = outside(tmp_path, kind), mock_server("--log", tmp_path / "log.jsonl")
    with pytest.raises(
        DataError, match=r"1 pictures lie outside .*data \(1: .*\) and would go to http.*--allow-outside"
    ):
        ask(path, server, tmp_path / "run")
    assert not (tmp_path / "log.jsonl").exists() or not (tmp_path / "log.jsonl").read_text()
    assert ask(path, server, tmp_path / "run", allow_outside=True).state.done == 2


def test_a_folder_that_was_named_is_the_datas_folder_too(tmp_path: Path, mock_server: Callable[..., Any]) -> None:
    path, named = outside(tmp_path, "absolute"), (("dataset.image_root", str(tmp_path / "home")),)
    path.write_text(path.read_text().replace('"in.png"', json.dumps(str(tmp_path / "data" / "in.png"))))
    assert ask(path, mock_server(), tmp_path / "run", overrides=named).state.done == 2


def test_what_stays_on_this_machine_is_told_and_not_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = outside(tmp_path, "absolute")
    assert run_command(["run", path, "--model", "blind/first", "-o", tmp_path / "run"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "of picture files stay on this machine" in said
    assert f"1 pictures lie outside {tmp_path}/data: 1: {tmp_path}/home/passport.png" in said


def test_the_plan_says_how_many_bytes_go_where(
    tmp_path: Path, mock_server: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path, server = table(tmp_path / "data", ["a.png", "b.png"]), mock_server()
    size = sum(draw(tmp_path / "data" / name, n).stat().st_size for n, name in enumerate(("a.png", "b.png"), 3))
    command = ["run", path, "--model", "openai/mock", "--base-url", server.base_url, "-o", tmp_path / "run"]
    assert run_command([*command, "--num-infers", "2", "--strip-metadata"]) == 0
    assert f"{2 * size} bytes of picture files go to {server.base_url} without" in " ".join(
        capsys.readouterr().err.split()
    )


def test_files_of_a_hubs_snapshot_are_links_and_lie_inside(tmp_path: Path) -> None:
    repository = tmp_path / "datasets--x--y"
    blob = draw(repository / "blobs" / "abc", 3)
    snapshot = repository / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    (snapshot / "a.png").symlink_to(os.path.relpath(blob, snapshot))
    files = SampleFiles([str(snapshot)])
    for name in ("a.png", "lost.png"):
        files.add(Sample(name, "d", Form.OPEN, "?", (Image(str(snapshot / name)),)))
    assert [missing.partition(":")[0] for missing in files.first_missing] == ["lost.png"]
    assert (files.leaving().outside, files.leaving().size_bytes) == (0, blob.stat().st_size)


def forget(run: Path, samples: tuple[str, ...]) -> None:
    database = open_for_writing(run / "run.db")
    for sample in samples:
        database.execute("DELETE FROM predictions WHERE sample = ?", (sample,))
    database.close()


@pytest.mark.parametrize("finished", ["the same picture", "another picture"])
def test_a_picture_that_changed_between_two_starts_is_refused_by_name(
    finished: str, tmp_path: Path, mock_server: Callable[..., Any]
) -> None:
    data, server = tmp_path / "data", mock_server("--log", tmp_path / "log.jsonl")
    names = ["a.png", "a.png"] if finished == "the same picture" else ["a.png", "b.png"]
    path = table(data, names)
    draw(data / "a.png", 3), draw(data / "b.png", 4)
    run = tmp_path / "run"
    ask(path, server, run)
    forget(run, ("1",))
    before = (data / "a.png").read_bytes()
    draw(data / "a.png", 200)
    sent = (tmp_path / "log.jsonl").read_text()
    with pytest.raises(
        RunMismatch, match=r"picture .*a\.png changed since this run began .*put it back, choose another"
    ):
        ask(path, server, run)
    assert (tmp_path / "log.jsonl").read_text() == sent
    (data / "a.png").write_bytes(before)
    assert ask(path, server, run).state.done == 1


def test_a_picture_that_is_gone_hinders_only_who_needs_it(tmp_path: Path, mock_server: Callable[..., Any]) -> None:
    data, server = tmp_path / "data", mock_server()
    path = table(data, ["a.png", "b.png"])
    draw(data / "a.png", 3), draw(data / "b.png", 4)
    ask(path, server, tmp_path / "run")
    forget(tmp_path / "run", ("1",))
    (data / "a.png").unlink()
    result = ask(path, server, tmp_path / "run", allow_missing_images=True)
    assert (result.state.done, result.state.resumed) == (1, 1)


def test_a_ledger_knows_edits_of_one_file_apart() -> None:
    plain, cut = Image("/data/a.png"), Image("/data/a.png", edits=("crop:0,0,0.5,1",))
    ledger = PictureLedger([])
    ledger._keep([plain, cut], [_sent("11"), _sent("22")])
    ledger.check_sent([(plain, _sent("11")), (cut, _sent("22")), (Image("/data/new.png"), _sent("33"))])
    ledger._keep([Image("/data/1.png"), Image("/data/2.png")], [_sent("44")])  # the vote of one part of a document
    ledger._keep([Image("data:image/png;base64,AAAA")], [_sent("55")])
    assert (len(ledger), len(ledger.some)) == (3, 2)
    with pytest.raises(RunMismatch, match=r"/data/a\.png"):
        ledger.check_sent([(cut, _sent("11"))])


def _sent(start: str) -> ImageSent:
    return ImageSent(start * 32, "image/png", 1, 1, 1)
