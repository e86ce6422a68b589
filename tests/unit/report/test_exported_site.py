"""A run exported as a folder: every link leads to a file, pictures are those the model saw, foreign folders are left alone."""

from __future__ import annotations

import functools
import html
import io
import json
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen

import numpy as np
import PIL.Image
import pytest

from command_line import run_command
from hostile_run import make_hostile_run
from made_runs import make_run, make_task
from snellen.core.errors import UsageError

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.api.view import export_view
from snellen.report.viewer import site as sites
from snellen.report.viewer.run_library import RunLibrary
from snellen.report.viewer.site import MARKER, export_site

ADDRESS = re.compile(r' (?:href|src)="([^"]*)"')


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "run"
    return make_run(folder, count=14, task=make_task(variants=("base", "perturb=jpeg:1"), repeats=2))


@pytest.fixture(scope="module")
def folder(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "new"
    done = export_view(run_folder, folder)
    assert (done.trials, done.of_trials, done.left_out) == (56, 56, 0)
    assert done.bytes == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert done.pages == len(list(folder.rglob("*.html"))) == 56 + 2
    return folder


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_every_link_leads_to_a_file(served: str, folder: Path) -> None:
    waiting, seen = [served + "index.html"], set()
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        assert address.startswith(served), "nothing leads out of the folder"
        with urlopen(address) as answer:
            assert answer.status == 200
            body = answer.read()
        if address.endswith(".html"):
            found = (html.unescape(one) for one in ADDRESS.findall(body.decode()))
            assert b'="/' not in body, "links are relative: the folder may lie anywhere"
            waiting += [urljoin(address, one.partition("#")[0]) for one in found if not one.startswith("#")]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {address.removeprefix(served) for address in seen} == files - {MARKER}, "and every file is led to"


def test_the_list_of_trials_agrees_with_their_pages(folder: Path) -> None:
    rows = json.loads((folder / "rows-1.js").read_text().removeprefix("window.SNELLEN_ROWS = ").rstrip().rstrip(";"))
    assert len(rows) == 56
    table = (folder / "trials-1.html").read_text()
    linked = [int(number) for number in re.findall(r'<th scope="row"><a href="trial/(\d+)\.html"', table)]
    assert [row[0] for row in rows] == linked, "the n-th row of the table is the n-th of the list"
    assert "as above" not in table, "the row above may be hidden"
    for number, outcome, _, _, _, groups, _ in rows:
        page = (folder / f"trial/{number}.html").read_text()
        assert f'class="tag {outcome}"' in page
        shape = next(group.partition("=")[2] for group in groups if group.startswith("shape="))
        assert f"&quot;shape&quot;:&quot;{shape}&quot;" in page


def test_pictures_are_those_the_model_saw(folder: Path, run_folder: Path) -> None:
    page = (folder / "trial/1.html").read_text()
    found = re.search(r'<img src="\.\./(pictures/\w+\.png)" alt="Picture 1', page)
    assert found is not None
    with PIL.Image.open(folder / found[1]) as here, PIL.Image.open(run_folder / "images" / "0.png") as there:
        assert np.array_equal(np.asarray(here.convert("RGB")), np.asarray(there.convert("RGB")))
    linked = {one for path in folder.rglob("*.html") for one in re.findall(r"pictures/\w+\.\w+", path.read_text())}
    assert linked == {f"pictures/{path.name}" for path in (folder / "pictures").iterdir()}, "no other picture is copied"


def test_metadata_of_pictures_stays_at_home(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", count=1)
    for path in (run / "images").iterdir():
        picture = PIL.Image.open(path).convert("RGB")
        exif = PIL.Image.Exif()
        exif[0x010E] = "home address"
        picture.save(path, exif=exif)
    export_view(run, tmp_path / "site")
    for path in (tmp_path / "site" / "pictures").iterdir():
        assert b"home address" not in path.read_bytes()
        assert PIL.Image.open(io.BytesIO(path.read_bytes())).size[0] > 0


def test_no_place_of_this_machine_is_told(folder: Path, run_folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert str(run_folder.parent).encode() not in path.read_bytes(), path


def test_a_foreign_folder_is_refused_and_an_own_one_is_made_again(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "index.html").write_text("mine")
    with pytest.raises(UsageError, match="theirs"):
        export_view(run_folder, tmp_path / "theirs")
    assert (tmp_path / "theirs" / "index.html").read_text() == "mine"
    with pytest.raises(UsageError, match="itself"):
        export_view(run_folder, run_folder)
    export_view(run_folder, tmp_path / "own")
    (tmp_path / "own" / "CNAME").write_text("kept")
    (tmp_path / "own" / "trial" / "9999.html").write_text("of an earlier export")
    export_view(run_folder, tmp_path / "own")
    assert (tmp_path / "own" / "CNAME").read_text() == "kept"
    assert not (tmp_path / "own" / "trial" / "9999.html").exists()


def test_one_run_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / "runs" / name, count=2)
    for wrong in ("runs", "."):
        with pytest.raises(UsageError, match="2 runs"):
            export_view(tmp_path / wrong, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_of_a_judged_run_the_run_is_exported_and_not_its_votes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", count=2)
    make_run(run / "judge-correctness", count=3)
    assert export_view(run, tmp_path / "site").of_trials == 2
    (run / "run.db").write_bytes(b"damaged")
    with pytest.raises(UsageError, match="no run that can be read"):
        export_view(run, tmp_path / "other")


def test_of_too_many_trials_those_that_are_not_right_come_first(run_folder: Path, tmp_path: Path) -> None:
    run = RunLibrary([run_folder]).runs()[0]
    wrong = int(np.count_nonzero(np.asarray(run.columns("shapes").outcome) != 0))
    assert 0 < wrong < 40
    done = export_site(run, tmp_path / "site", most=wrong + 3)
    assert (done.trials, done.of_trials) == (wrong + 3, 56)
    rows = json.loads((tmp_path / "site" / "rows-1.js").read_text().partition("= ")[2].rstrip().rstrip(";"))
    assert sum(row[1] == "right" for row in rows) == 3
    page = (tmp_path / "site" / "trials-1.html").read_text()
    assert f"{wrong + 3} of 56 trials" in page
    assert re.search(r'Right <span class="count">3</span>', page), "buttons count what is here"


def test_pictures_beyond_the_most_bytes_are_left_out_and_counted(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "MOST_PICTURE_BYTES", 4_000)
    done = export_view(run_folder, tmp_path / "site")
    assert done.left_out > 0
    size = sum(path.stat().st_size for path in (tmp_path / "site" / "pictures").iterdir())
    assert 0 < size <= 4_000
    assert any("no picture: " in path.read_text() for path in (tmp_path / "site" / "trial").iterdir())


def test_a_hostile_run_leads_nowhere(tmp_path: Path) -> None:
    make_hostile_run(tmp_path / "run")
    export_view(tmp_path / "run", tmp_path / "site")
    for path in (tmp_path / "site").rglob("*.html"):
        page = path.read_text()
        found = [html.unescape(one) for one in ADDRESS.findall(page)]
        assert all(re.match(r"#|(\.\./)?(index|trials-1|rows-1|trial/|static/|pictures/)", one) for one in found), path
        assert len(re.findall("<script", page)) <= 3


def test_the_command_says_what_it_wrote(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["view", run_folder, "--export", tmp_path / "site"]) == 0
    told = capsys.readouterr().err
    assert "58 pages, 56 trials" in told and "MB" in told
    assert run_command(["view", "--export", tmp_path / "site"]) == 2


def test_a_run_that_is_not_over_is_exported_as_far_as_it_is(tmp_path: Path) -> None:
    make_run(tmp_path / "run", count=20, stop_after=5, score=False)
    assert export_view(tmp_path / "run", tmp_path / "site").trials == 5
    page = (tmp_path / "site" / "index.html").read_text()
    assert "5 of 20 trials stored" in page
    assert "data-live" not in page, "nobody writes it any further"


def test_a_picture_that_is_gone_is_told_by_its_name(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", count=3)
    (run / "images" / "1.png").unlink()
    assert export_view(run, tmp_path / "site").left_out == 1
    pages = [path.read_text() for path in (tmp_path / "site").rglob("*.html")]
    assert any("no picture: " in page and "1.png" in page for page in pages)
    assert not any(str(tmp_path) in page for page in pages)
