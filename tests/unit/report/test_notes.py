"""Notes and marks beside a run: kept, taken back, exported; and a second headline without wrong gold answers."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi import call
from made_runs import make_run, make_task, page_of
from snellen.core.errors import DataError, UsageError
from snellen.core.types import TrialKey
from snellen.report.pages.ledger import (
    FILE,
    Note,
    add_notes,
    exported_notes,
    notes_on,
    read_notes,
    run_note,
    trial_note,
    wrong_gold,
)
from snellen.report.pages.report_page import second_headline, without_samples
from snellen.scoring.stored import read_columns
from snellen.store.reader import RunReader

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.api.view import make_viewer
from snellen.report.viewer.guard import cookie_name

KEY = TrialKey("shapes", "shape-00001", "wording=1", 2)


def test_the_last_note_about_a_thing_counts_and_can_be_taken_back(tmp_path: Path) -> None:
    add_notes(tmp_path, [trial_note("flag", KEY), trial_note("note", KEY, "blurred")])
    add_notes(tmp_path, [trial_note("note", KEY, "very blurred"), run_note("tag", "paper"), run_note("tag", "old")])
    assert [(note.kind, note.text) for note in read_notes(tmp_path)] == [
        ("flag", ""),
        ("note", "very blurred"),
        ("tag", "paper"),
        ("tag", "old"),
    ]
    add_notes(tmp_path, [trial_note("flag", KEY, off=True), run_note("tag", "old", off=True)])
    assert [note.kind for note in read_notes(tmp_path)] == ["note", "tag"]
    assert len((tmp_path / FILE).read_text().splitlines()) == 7, "nothing is ever rewritten"


def test_a_gold_answer_is_marked_for_the_sample_a_reading_for_the_trial(tmp_path: Path) -> None:
    add_notes(tmp_path, [trial_note("wrong_gold", KEY), trial_note("wrong_reading", KEY)])
    notes = read_notes(tmp_path)
    assert wrong_gold(notes, "shapes") == {"shape-00001"}
    assert wrong_gold(notes, "other") == frozenset()
    assert [note.kind for note in notes_on(notes, TrialKey("shapes", "shape-00001"))] == ["wrong_gold"]
    assert [note.kind for note in notes_on(notes, KEY)] == ["wrong_gold", "wrong_reading"]


def test_a_torn_line_was_never_kept_and_a_foreign_one_is_refused_by_number(tmp_path: Path) -> None:
    add_notes(tmp_path, [run_note("hidden")])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"at": "2026", "kin')
    assert len(read_notes(tmp_path)) == 1
    add_notes(tmp_path, [run_note("tag", "x")])
    assert [note.kind for note in read_notes(tmp_path)] == ["hidden", "tag"]
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"nonsense\n")
    with pytest.raises(DataError, match=r"notes\.jsonl line 3 is not a note"):
        read_notes(tmp_path)


def test_what_is_no_mark_is_refused() -> None:
    for wrong in (lambda: trial_note("praise", KEY), lambda: run_note("tag", " "), lambda: run_note("flag")):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="at most"):
        trial_note("note", KEY, "x" * 4001)


@given(st.lists(st.tuples(st.sampled_from(["flag", "wrong_gold", "wrong_reading"]), st.integers(0, 2), st.booleans())))
@settings(max_examples=60, deadline=None)
def test_any_clicks_leave_what_the_last_of_each_said(clicks: list[tuple[str, int, bool]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        for kind, sample, off in clicks:
            add_notes(Path(name), [trial_note(kind, TrialKey("t", str(sample)), off=off)])
        wanted = {(kind, sample): off for kind, sample, off in clicks}
        found = {(note.kind, int(note.sample)) for note in read_notes(Path(name))}
        assert found == {about for about, off in wanted.items() if not off}
        lines = [msgspec.json.decode(line, type=Note) for line in exported_notes(Path(name)).splitlines()]
        assert lines == read_notes(Path(name))


def test_the_second_headline_counts_as_the_first_does_and_leaves_marked_samples_out(tmp_path: Path) -> None:
    make_run(tmp_path, count=40, task=make_task(repeats=2))
    results = msgspec.json.decode((tmp_path / "results.json").read_bytes())["tasks"]["shapes"]
    with RunReader(tmp_path) as reader:
        columns = read_columns(reader, reader.header().tasks[0])
    same = without_samples(columns, ())["accuracy"]
    assert {name: same[name] for name in ("value", "ci95", "n", "failed", "unscored")} == {
        name: results["metrics"]["accuracy"][name] for name in ("value", "ci95", "n", "failed", "unscored")
    }
    wrong = sorted({columns.key(row).sample for row in range(len(columns)) if columns.value[row] < 1})
    perfect = without_samples(columns, wrong)["accuracy"]
    assert perfect["value"] == 1.0
    assert perfect["n"] == 2 * (40 - len(wrong))
    assert second_headline(results, (), lambda _: columns) is None
    words = str(second_headline(results, frozenset(wrong[:1]), lambda _: columns))
    assert "Without 1 sample marked as having a wrong gold answer: accuracy" in words


class TestInTheViewer:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return make_run(tmp_path / "run", count=20)

    def read(self, app: object, path: str) -> str:
        return call(app, path, headers={"cookie": f"{cookie_name('key')}=key"}).text

    def mark(self, app: object, run: str, **said: str) -> int:
        told = {"task": "shapes", "sample": "shape-00003", "variant": "base", "repeat": "0", **said}
        headers = {"cookie": f"{cookie_name('key')}=key", "origin": "http://127.0.0.1:1"}
        body = urlencode(told).encode()
        return call(app, f"/run/{run}/marks", method="POST", headers=headers, body=body).status

    def test_marks_are_made_shown_filtered_and_downloaded(self, folder: Path) -> None:
        app = make_viewer([folder.parent], "key", may_write=True)
        run = re.findall(r'href="/run/(\w+)"', self.read(app, "/"))[0]
        trial = f"/run/{run}/trial?task=shapes&sample=shape-00003"
        assert "Mark this trial" in self.read(app, trial)
        assert self.mark(app, run, wrong_gold="1", note="<b>it is blue</b>") == 303
        page = self.read(app, trial)
        assert "the gold answer is wrong" in page and "&lt;b&gt;it is blue&lt;/b&gt;" in page
        assert "Without 1 sample marked" in self.read(app, f"/run/{run}")
        assert "1 of 20 trials" in self.read(app, f"/run/{run}/trials?marked=wrong_gold")
        assert "0 of 20 trials" not in self.read(app, f"/run/{run}/trials?marked=any")
        lines = self.read(app, f"/run/{run}/notes").splitlines()
        assert [msgspec.json.decode(line)["kind"] for line in lines] == ["wrong_gold", "note"]
        assert "it is blue" in page_of(folder), "a report shows them too"
        assert "Without 1 sample marked" in page_of(folder)
        assert self.mark(app, run, note="") == 303
        assert read_notes(folder) == []

    def test_a_mark_leads_back_to_its_page_and_nowhere_else(self, folder: Path) -> None:
        app = make_viewer([folder.parent], "key", may_write=True)
        run = re.findall(r'href="/run/(\w+)"', self.read(app, "/"))[0]
        headers = {"cookie": f"{cookie_name('key')}=key", "origin": "http://127.0.0.1:1"}
        for back, wanted in (
            (f"/run/{run}/trial?task=shapes&sample=shape-00003", f"/run/{run}/trial?task=shapes&sample=shape-00003"),
            ("//evil.invalid/x", f"/run/{run}"),
            ("http://evil.invalid/", f"/run/{run}"),
            (f"/run/{run}/x\r\nset-cookie: a=b", f"/run/{run}"),
        ):
            told = {"task": "shapes", "sample": "shape-00003", "flag": "1", "back": back}
            body = urlencode(told).encode()
            answer = call(app, f"/run/{run}/marks", method="POST", headers=headers, body=body)
            assert answer.headers["location"] == wanted

    def test_only_a_viewer_that_may_write_marks_and_only_trials_that_exist(self, folder: Path) -> None:
        app = make_viewer([folder.parent], "key")
        run = re.findall(r'href="/run/(\w+)"', self.read(app, "/"))[0]
        assert self.mark(app, run, flag="1") == 400
        assert "Mark this trial" not in self.read(app, f"/run/{run}/trial?task=shapes&sample=shape-00003")
        writing = make_viewer([folder.parent], "key", may_write=True)
        assert self.mark(writing, run, sample="no-such", flag="1") == 400
        assert not (folder / FILE).exists()

    def test_a_damaged_file_of_notes_is_told_and_hides_no_trial(self, folder: Path) -> None:
        (folder / FILE).write_text("nonsense\n")
        app = make_viewer([folder.parent], "key", may_write=True)
        assert "Notes and marks are left out" in page_of(folder)
        home = self.read(app, "/")
        assert "line 1 is not a note" in home
        run = re.findall(r'href="/run/(\w+)"', home)[0]
        page = self.read(app, f"/run/{run}/trial?task=shapes&sample=shape-00003")
        assert "The notes of this run cannot be read" in page and "What it answered" in page
        for path in (f"/run/{run}", f"/run/{run}/trials"):
            page = self.read(app, path)
            assert "line 1 is not a note" in page
            assert "All metrics" in page or "20 of 20 trials" in page, "numbers do not hang on notes"
        assert self.mark(app, run, flag="1") == 400
        assert (folder / FILE).read_text() == "nonsense\n", "nothing is written over what cannot be read"
