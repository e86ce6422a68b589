"""The table of trials: pictures made once within a budget, questions told apart, rows that are links."""

from __future__ import annotations

import html
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgi import call
from made_runs import POLITE_PLUGIN, make_run, make_task, scored
from snellen.api.view import make_viewer
from snellen.core.builtins import default_registry
from snellen.core.errors import DataError
from snellen.core.types import Image
from snellen.report.files import write_results

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.report.viewer import app as thumbs
from snellen.report.viewer.browse_page import tell_apart
from snellen.report.viewer.guard import cookie_name
from snellen.report.viewer.run_library import RunLibrary

LONG = "You are shown one page of a long document and are asked to read it with care. "
COOKIE = {"cookie": f"{cookie_name('key')}=key"}


def picture(path: Path, colour: str = "red", side: int = 600) -> Image:
    PIL.Image.new("RGB", (side, side), colour).save(path)
    return Image(str(path), "image/png")


class TestThumbs:
    def test_made_once_and_anew_when_the_file_changed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[str] = []
        real = thumbs.thumbnail
        monkeypatch.setattr(thumbs, "thumbnail", lambda image, side: (made.append(image.ref), real(image, side))[1])
        image, kept = picture(tmp_path / "a.png"), thumbs.Thumbs()
        first = kept.small(image)
        assert kept.small(image) is first
        assert len(made) == 1
        picture(tmp_path / "a.png", "blue", side=601)
        assert kept.small(image) != first
        assert len(made) == 2

    def test_edits_are_another_picture(self, tmp_path: Path) -> None:
        image, kept = picture(tmp_path / "a.png"), thumbs.Thumbs()
        cut = Image(image.ref, image.mime, edits=("crop:0,0,0.5,1",))
        assert kept.small(image) != kept.small(cut)

    def test_budget_holds_and_what_was_used_last_stays(self, tmp_path: Path) -> None:
        images = [picture(tmp_path / f"{n}.png", colour) for n, colour in enumerate(("red", "green", "blue"))]
        size = max(len(thumbs.Thumbs().small(image)) for image in images)
        kept = thumbs.Thumbs(most_bytes=2 * size)
        first, second = kept.small(images[0]), kept.small(images[1])
        assert kept.small(images[0]) is first
        kept.small(images[2])
        assert kept._size <= 2 * size
        assert kept._size == sum(map(len, kept._kept.values()))
        assert kept.small(images[0]) is first
        assert kept.small(images[1]) is not second

    def test_a_place_is_remembered_until_its_picture_changes(self, tmp_path: Path) -> None:
        image, kept = picture(tmp_path / "a.png"), thumbs.Thumbs()
        assert kept.again("here") is None
        first = kept.small(image, "here")
        assert kept.again("here") is first
        assert kept.again("there") is None
        picture(tmp_path / "a.png", "blue", side=601)
        assert kept.again("here") is None
        assert kept.small(image, "here") == kept.again("here") != first

    def test_places_are_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(thumbs, "MOST_PLACES", 2)
        image, kept = picture(tmp_path / "a.png"), thumbs.Thumbs()
        for place in range(3):
            kept.small(image, place)
        assert [kept.again(place) is not None for place in range(3)] == [False, True, True]

    def test_missing_picture_is_refused_each_time(self, tmp_path: Path) -> None:
        kept = thumbs.Thumbs()
        for _ in range(2):
            with pytest.raises(DataError):
                kept.small(Image(str(tmp_path / "none.png")))


class TestQuestions:
    def test_what_all_share_is_said_once(self) -> None:
        apart = tell_apart(
            [f"{LONG}What is on line {n}? Answer with one word, and with nothing else at all." for n in "123"]
        )
        assert apart.begin == f"{LONG}What is on line"
        assert apart.cells()[0] == "… 1? …"
        assert LONG.strip() in str(apart.note())
        assert "nothing else at all" in str(apart.note())

    def test_same_question_needs_no_column_and_a_neighbour_is_not_repeated(self) -> None:
        assert tell_apart(["What is it?"] * 3).all_same
        assert tell_apart(["a?", "a?", "b?", "a?"]).cells() == ["a?", "as above", "b?", "a?"]
        assert tell_apart(["one"]).cells() == ["one"]
        assert tell_apart(["", ""]).note() is None

    @given(st.text("ab ", max_size=60), st.lists(st.text("ab ", max_size=12), max_size=5), st.text("ab ", max_size=60))
    def test_nothing_is_lost(self, begin: str, middles: list[str], end: str) -> None:
        whole = [begin + middle + end for middle in middles]
        apart = tell_apart(whole)
        for text, rest in zip(whole, apart.rest, strict=True):
            assert "".join(text.split()) == "".join((apart.begin + rest + apart.end).split())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str, str]:
    from snellen.api.view import make_viewer

    folder = tmp_path_factory.mktemp("table")
    make_run(folder / "run", count=12, task=make_task(repeats=2))
    app, run = make_viewer([folder], "key"), RunLibrary([folder]).runs()[0]
    return app, run.key, str(call(app, f"/run/{run.key}/trials", headers=COOKIE).text)


def test_every_row_has_a_lazy_picture_of_the_same_origin(page: tuple[Any, str, str]) -> None:
    app, key, text = page
    sources = re.findall(r'<td class="c-picture"><img src="([^"]*)" alt="" loading="lazy"', text)
    assert len(sources) == 24
    assert all(source.startswith(f"/run/{key}/image?") for source in sources)
    answer = call(app, html.unescape(sources[0]), headers=COOKIE)
    assert answer.status == 200
    assert len(answer.body) < 20_000
    assert text.count("as above") == 12, "the second inference asks the same"


def test_run_without_pictures_has_no_column_for_them(tmp_path: Path) -> None:
    from snellen.api.view import make_viewer

    make_run(tmp_path / "run", count=4, pictures=0)
    key = RunLibrary([tmp_path]).runs()[0].key
    text = str(call(make_viewer([tmp_path], "key"), f"/run/{key}/trials", headers=COOKIE).text)
    assert "<img" not in text
    assert 'class="h-picture"' not in text


def test_a_run_with_the_scorer_of_a_plug_in_is_shown_live_and_scored_again(tmp_path: Path) -> None:
    import msgspec

    from snellen.api.view import make_viewer

    (tmp_path / "plugin.py").write_text(POLITE_PLUGIN)
    task = msgspec.structs.replace(make_task(), scorers=("polite",))
    make_run(tmp_path / "runs" / "one", count=6, task=task, score=False)
    cookie = {"cookie": f"{cookie_name('key')}=key"}
    without = make_viewer([tmp_path / "runs"], "key")
    key = call(without, "/state", headers=cookie).text.partition(":")[0]
    assert "unknown scorer" in call(without, f"/run/{key}", headers=cookie).text, "as before: it says what is missing"
    app = make_viewer([tmp_path / "runs"], "key", plugins=[tmp_path / "plugin.py"])
    assert "politeness" in call(app, f"/run/{key}", headers=cookie).text
    assert "0.0 %" in call(app, "/", headers=cookie).text
    assert call(app, f"/run/{key}/again?profile=reform", headers=cookie).status == 200


def test_other_scorers_are_columns_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(POLITE_PLUGIN)
    task = msgspec.structs.replace(make_task(), scorers=("choice", "polite"))
    make_run(tmp_path / "runs" / "one", count=4, task=task, score=False)
    registry = default_registry([tmp_path / "plugin.py"])
    write_results(tmp_path / "runs" / "one", scored(tmp_path / "runs" / "one", registry))
    app = make_viewer([tmp_path / "runs"], "key", plugins=[tmp_path / "plugin.py"])
    key = RunLibrary([tmp_path / "runs"], registry).runs()[0].key
    page = call(app, f"/run/{key}/trials", headers=COOKIE).text
    assert re.search(r'<th scope="col" class="n h-score"><a href="[^"]*metric=politeness"', page)
    assert len(re.findall(r'<td class="n">0</td>', page)) == 4, "nobody said please"
    fewer = call(app, f"/run/{key}/trials?columns=outcome&columns=score:politeness", headers=COOKIE).text
    assert "h-score" in fewer and "h-reply" not in fewer
    other = call(app, f"/run/{key}/trials?metric=politeness", headers=COOKIE).text
    assert "metric=accuracy" in other, "then the first one is the other"
    assert "h-score" not in call(app, f"/run/{key}/trials?columns=outcome", headers=COOKIE).text


@pytest.mark.parametrize("written", [True, False])
def test_a_record_that_is_none_is_told_as_damage(tmp_path: Path, written: bool) -> None:
    """Whoever makes a page need not know what decoding our own rows may raise."""
    make_run(tmp_path / "one", count=10)
    if not written:
        (tmp_path / "one" / "results.json").unlink()
    with closing(sqlite3.connect(tmp_path / "one" / "run.db")) as database:
        database.execute("UPDATE samples SET body = CAST('{' AS BLOB) WHERE position = 3")
        database.commit()
    key = RunLibrary([tmp_path]).runs()[0].key
    answer = call(make_viewer([tmp_path], "key"), f"/run/{key}", headers=COOKIE)
    assert answer.status == 400
    assert "run.db cannot be read, it is damaged" in answer.text
