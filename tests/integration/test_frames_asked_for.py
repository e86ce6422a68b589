"""A film from a table to a server that asks for more of its frames, and back to the viewer's pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.core.looks import end_of
from snellen.core.types import TrialKey
from snellen.kits.looks.trial_page import picture_places
from snellen.store.reader import RunReader
from video_files import write_video
from video_server import ReadingServer, reading_server


@pytest.mark.parametrize("arms", [(), ("base", "plain", "grey")])
def test_a_model_that_asks_for_the_right_moment_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arms: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    write_video(tmp_path / "a.mp4", 40, fps=10)
    row = {"id": "a", "video": "a.mp4", "question": "Which number is at 2.5 s?", "answer": "25"}
    (tmp_path / "films.jsonl").write_text(json.dumps(row))
    with reading_server() as server:
        read = ReadingServer.answer

        def answer(body: dict[str, Any]) -> str:
            if "<tools>" in json.dumps(body) and "<tool_response>" not in json.dumps(body["messages"][2:]):
                return '<tool_call>{"name": "frame", "arguments": {"seconds": 2.5}}</tool_call>'
            return read(server, body).split()[-1]

        monkeypatch.setattr(server, "answer", answer)
        more: dict[str, Any] = {"tool_arms": arms} if arms else {}
        result = snellen.run(
            str(tmp_path / "films.jsonl"), "openai/m", base_url=server.base_url, output_dir=tmp_path / "run",
            tools=("frame",), tool_dialect="text", **more,
        )  # fmt: skip
    (metrics,) = (task["metrics"] for task in result.results["tasks"].values())
    assert next(iter(metrics.values()))["value"] == 1.0
    with RunReader(tmp_path / "run") as reader:
        (task,) = reader.header().tasks
        key = TrialKey(task.name, "a")
        turns = reader.turns(key)
        trial = next(one for one in reader.trials(task.name) if one.prediction.key == key)
    assert (end_of(trial.prediction) or pytest.fail()).looks == 1
    ((look,),) = (turn.looks for turn in turns if turn.looks)
    assert look.image is not None and look.image.frame is not None and look.image.frame.index == 25
    shown = [image for turn in trial.request.messages for image in turn.images]
    assert shown[picture_places(turns)[id(look)]] == look.image and len(trial.prediction.images) == len(shown)
