"""Which cells of a table are videos, and which stay what they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Form, Sample
from snellen.data.loaders.table import load, strip_marks

BASE = {"id": "1", "question": "What?", "answer": "a"}


def first(folder: Path, row: dict[str, Any], **dataset: Any) -> Sample:
    table = folder / "rows.jsonl"
    table.write_text(json.dumps(BASE | row))
    task = Task("rows", {"loader": "table", "path": str(table), **dataset}, Form.AUTO)
    (sample,) = load(task, LoadContext(workdir=folder / "work"))
    return sample


def test_a_cell_that_names_no_video_stays_a_tag(tmp_path: Path) -> None:
    for cell in ("fFjv93ACGo8", "yes", 7):
        sample = first(tmp_path, {"video": cell, "start": 3, "fps": "high"})
        assert sample.videos == ()
        assert (sample.tags["video"], sample.tags["start"], sample.tags["fps"]) == (cell, 3, "high")
        assert sample.group is None


def test_a_path_wins_over_an_id_beside_it_and_what_is_shown_is_no_tag(tmp_path: Path) -> None:
    row = {"video": "fFjv93ACGo8", "video_path": "films/a.mp4", "start": "1.5", "end": 4, "topic": "cats"}
    sample = first(tmp_path, row)
    (video,) = sample.videos
    assert (video.ref, video.start, video.end) == (str(tmp_path / "films/a.mp4"), 1.5, 4.0)
    assert sample.tags == {"topic": "cats"}
    assert sample.group == "a.mp4"


def test_several_videos_and_names_made_of_columns(tmp_path: Path) -> None:
    assert [Path(v.ref).name for v in first(tmp_path, {"videos": ["a.mp4", "b.webm"]}).videos] == ["a.mp4", "b.webm"]
    sample = first(tmp_path, {"clip": "x7"}, video="films/{clip}.mp4")
    assert sample.videos[0].ref == str(tmp_path / "films/x7.mp4")


@pytest.mark.parametrize(
    ("row", "dataset", "words"),
    [
        ({"video": "https://example.org/a.mp4"}, {}, "URLs are never fetched"),
        ({"film": "an id"}, {"columns": {"video": "film"}}, "is no video; expected a file name"),
        ({"video": "a.mp4", "start": 5, "end": 2}, {}, "from 5 s to 2 s is empty"),
        ({"video": "a.mp4", "start": "soon"}, {}, "start 'soon' is not a number of seconds"),
        ({"clip": "x"}, {"video": "{clap}.mp4"}, "names column 'clap'"),
        ({"video": "data:video/mp4;base64,%%%"}, {}, "base64"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, row: dict[str, Any], dataset: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        first(tmp_path, row, **dataset)


def test_options_lose_only_letters_that_are_their_own() -> None:
    def stripped(*options: str, answer: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        sample = strip_marks(Sample("1", "t", Form.CHOICE, "?", options=options, answers=(answer,)))
        return sample.options, sample.answers

    assert stripped("A. cat", "B. dog", answer="B. dog") == (("cat", "dog"), ("dog",))
    assert stripped("(A) cat", "(B) dog", answer="(A) cat") == (("cat", "dog"), ("cat",))
    assert stripped("A. cat", "C. dog", answer="C. dog") == (("cat", "dog"), ("dog",))
    assert stripped("S. aureus", "E. coli", answer="E. coli")[0] == ("S. aureus", "E. coli")
    assert stripped("1. cat", "2. dog", answer="1. cat")[0] == ("1. cat", "2. dog")
    assert stripped("A. same", "B. same", answer="A. same")[0] == ("A. same", "B. same")
    assert stripped("A cat", "B flat", answer="A cat")[0] == ("A cat", "B flat")


def test_rows_without_an_id_that_ask_several_things_about_one_video_are_told_apart(tmp_path: Path) -> None:
    """Sentences of Charades-STA stand in a column of another name, and so all of one video had one id."""
    table = tmp_path / "rows.jsonl"
    rows = [{"video": "a.mp4", "caption": caption, "timestamp": "x"} for caption in ("sits", "stands")]
    rows += [{"video": "a.mp4", "caption": "sits", "start": start, "end": 9, "timestamp": "x"} for start in (1, 2)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"question": "caption", "answer": "timestamp"}
    task = Task("rows", {"loader": "table", "path": str(table), "columns": columns}, Form.AUTO)
    samples = list(load(task, LoadContext(workdir=tmp_path / "work")))
    assert len({sample.id for sample in samples}) == 4
    assert {sample.group for sample in samples} == {"a.mp4"}
