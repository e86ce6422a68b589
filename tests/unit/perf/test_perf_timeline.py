"""Timeline files: round trip, leniency where it is safe, one-line errors where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import ConfigError, DataError
from snellen.perf.files import read_timeline
from snellen.perf.timeline import RequestRecord, Timeline, timeline_from_dict, write_timeline


def read(tmp_path: Path, data: Any) -> Timeline:
    path = tmp_path / "t.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return read_timeline(path)


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    record = RequestRecord(
        "a", 1.0, 2.0, scheduled=0.9, chunks=(1.5, 2.0), first_content=1.5, failure=None, input_tokens=3, images=2
    )
    failed = RequestRecord("b", 1.0, 1.2, failure="server", status=500, message="HTTP 500: no")
    timeline = Timeline(
        requests=(record, failed), max_concurrency=4, planned=2, load={"plan": {"rate": 2}}, watch={"limited": ""}
    )
    write_timeline(tmp_path / "t.json", timeline)
    assert read_timeline(tmp_path / "t.json") == timeline


def test_the_plain_form_and_json_lines_are_read(tmp_path: Path) -> None:
    lines = '{"start": 0, "chunks": [0.5, 1.0], "output_tokens": 2}\n{"id": 7, "start": 1, "chunks": [2]}\n'
    timeline = read(tmp_path, lines)
    assert [record.id for record in timeline.requests] == ["0", "7"]
    assert timeline.requests[0].done == 1.0


def test_texts_stand_in_for_missing_counts_and_say_so(tmp_path: Path) -> None:
    timeline = read(
        tmp_path, {"requests": [{"start": 0, "chunks": [1], "output_tokens": 0, "output_text": "three small words"}]}
    )
    assert (timeline.requests[0].output_tokens, timeline.requests[0].counted_by) == (3, "words")


@pytest.mark.parametrize("mark", [{"success": False}, {"error": "boom"}, {"chunks": []}])
def test_failures_are_kept(tmp_path: Path, mark: dict[str, Any]) -> None:
    record = read(tmp_path, {"requests": [{"start": 0, "chunks": [1.0], **mark}]}).requests[0]
    assert not record.ok
    assert record.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("not json", "neither JSON nor JSON lines"),
        ("3", "object with `requests`"),
        ({"requests": 3}, "no list `requests`"),
        ({"requests": [3]}, "request 0 is a int"),
        ({"requests": [{"start": 0, "chunks": [2, 1]}]}, "must not run backwards"),
        ({"requests": [{"start": 5, "chunks": [1]}]}, "request 0: chunk 0 at 1"),
        ({"requests": [{"chunks": [1]}]}, "missing required field `start`"),
        ({"requests": [{"start": 0, "chunks": [1], "output_tokens": -1}]}, "negative"),
        ({"requests": [], "max_concurrency": "many"}, "max_concurrency"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)


def test_infinite_moments_are_refused() -> None:
    with pytest.raises(DataError, match="finite"):
        timeline_from_dict({"requests": [{"start": 0.0, "chunks": [float("inf")]}]}, "x")


def test_a_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_timeline(tmp_path / "none.json")
