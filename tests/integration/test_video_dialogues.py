"""A video of a first round stays in the history of the rounds after it: a server that reads its frames is asked for them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.api.load import load_run
from snellen.core.errors import DataError
from video_files import write_video
from video_server import ReadingServer, reading_server

SEEN = [(2 * place + 1) * 60 // 16 for place in range(8)]
LATER = [(2 * place + 1) * 40 // 16 for place in range(8)]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[ReadingServer]:
    with reading_server() as running:
        yield running


def asks(number: int, seen: list[int], **more: Any) -> dict[str, Any]:
    """Return a round whose right option lists what a server sees that is shown all of the dialogue."""
    options = [f"{seen[0] + number}, none", ", ".join(map(str, seen))]
    question = f"Round {number}: which?"
    return {
        "id": f"d_{number}",
        "group": "d",
        "round": number,
        "question": question,
        "options": options,
        "answer": "B",
    } | more


def talk(folder: Path, rows: list[dict[str, Any]], server: ReadingServer, **settings: Any) -> Any:
    table = folder / "talks.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)))
    settings = {"infer_method": "every", **settings}
    return snellen.run(str(table), "openai/m", base_url=server.base_url, output_dir=folder / "run", **settings)


def accuracy(result: Any) -> tuple[float, int]:
    metric = result.results["tasks"]["talks"]["metrics"]["accuracy"]
    return metric["value"], metric["n"]


def kinds(body: dict[str, Any]) -> list[tuple[str, int]]:
    """Return who says what in a request: how many pictures or videos stand in each message."""
    found = []
    for message in body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else []
        found.append((message["role"], sum(part["type"] != "text" for part in parts)))
    return found


@pytest.mark.parametrize("again", [False, True])
def test_later_rounds_see_the_frames_in_the_history_and_nowhere_else(
    tmp_path: Path, server: ReadingServer, again: bool
) -> None:
    write_video(tmp_path / "a.mp4", 60)
    later = {"video": "a.mp4"} if again else {}
    rows = [asks(0, SEEN, video="a.mp4"), asks(1, SEEN, **later), asks(2, SEEN, **later)]
    result = talk(tmp_path, rows, server)
    assert accuracy(result) == (1.0, 3)
    by_length = sorted(server.bodies, key=lambda body: len(body["messages"]))
    assert [kinds(body) for body in by_length] == [
        [("user", 8)],
        [("user", 8), ("assistant", 0), ("user", 0)],
        [("user", 8), ("assistant", 0), ("user", 0), ("assistant", 0), ("user", 0)],
    ]
    with load_run(result.folder) as run:
        records = {t.prediction.key.sample: t.prediction.detail["videos"] for t in run.trials("talks")}
    assert [records[f"d_{number}"][0]["indices"] for number in range(3)] == [SEEN] * 3


def test_native_sends_the_file_in_the_history_too(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 6)
    every = [0, 1, 2, 3, 4, 5]
    rows = [asks(0, every, video="a.mp4"), asks(1, every)]
    result = talk(tmp_path, rows, server, overrides=(("prompt.video.route", "native"),))
    assert accuracy(result) == (1.0, 2)
    last = max(server.bodies, key=lambda body: len(body["messages"]))
    assert last["messages"][0]["content"][0]["type"] == "video_url"
    assert kinds(last) == [("user", 1), ("assistant", 0), ("user", 0)]


def test_a_second_video_stands_in_its_own_round_where_its_marker_does(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 60)
    write_video(tmp_path / "b.mp4", 40)
    second = asks(1, SEEN + LATER, video="b.mp4") | {"question": "And in <video>: which?"}
    rows = [asks(0, SEEN, video="a.mp4"), second, asks(2, SEEN + LATER)]
    assert accuracy(talk(tmp_path, rows, server)) == (1.0, 3)
    last = max(server.bodies, key=lambda body: len(body["messages"]))
    assert kinds(last)[::2] == [("user", 8), ("user", 8), ("user", 0)]
    assert last["messages"][2]["content"][0] == {"type": "text", "text": "And in "}


def test_variants_and_controls_reach_the_history(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 60)
    rows = [asks(0, SEEN, video="a.mp4"), asks(1, SEEN)]
    result = talk(tmp_path, rows, server, variants=("frames=2", "frames=2&perturb=jpeg:2", "control=none"))
    with load_run(result.folder) as run:
        shown = {
            (t.prediction.key.sample, t.prediction.key.variant): t.request.messages[0].images
            for t in run.trials("talks")
        }
    assert [image.frame.index for image in shown["d_1", "frames=2"] if image.frame] == [15, 45]
    both = [shown[name, "frames=2&perturb=jpeg:2"] for name in ("d_0", "d_1")]
    assert both[0] == both[1], "every round sees the same pixels"
    assert all(image.edits for image in both[1])
    assert shown["d_1", "control=none"] == ()


@pytest.mark.parametrize("way", ["column", "marked column", "part", "data url"])
def test_rows_of_messages_keep_their_video(tmp_path: Path, server: ReadingServer, way: str) -> None:
    film = write_video(tmp_path / "a.mp4", 60)
    first: Any = "<video>\nWhat is it?" if way == "marked column" else "What is it?"
    if way in ("part", "data url"):
        url = "data:video/mp4;base64," + base64.b64encode(film.read_bytes()).decode() if way == "data url" else "a.mp4"
        first = [{"type": "video_url", "video_url": {"url": url}}, {"type": "text", "text": "What is it?"}]
    messages = [
        {"role": "user", "content": first},
        {"role": "assistant", "content": "A film."},
        {"role": "user", "content": "Which?"},
    ]
    row = asks(0, SEEN) | {"messages": messages} | ({"video": "a.mp4"} if "column" in way else {})
    del row["question"], row["group"], row["round"]
    result = talk(tmp_path, [row], server, infer_method=None)
    assert accuracy(result) == (1.0, 1)
    assert kinds(server.bodies[-1]) == [("user", 8), ("assistant", 0), ("user", 0)]


def test_messages_and_videos_that_do_not_fit_are_refused(tmp_path: Path, server: ReadingServer) -> None:
    write_video(tmp_path / "a.mp4", 10)
    said = {"role": "assistant", "content": "A film."}
    two = {"id": "1", "video": "a.mp4", "messages": [{"role": "user", "content": "<video> and <video>?"}, said]}
    with pytest.raises(DataError, match="2 × <video> in its messages and 1 videos in its columns"):
        talk(tmp_path, [two], server, infer_method=None)
    part = {"type": "video_url", "video_url": {"url": "a.mp4"}}
    both = two | {"messages": [{"role": "user", "content": [part, {"type": "text", "text": "?"}]}, said]}
    with pytest.raises(DataError, match="videos in its messages and in a column"):
        talk(tmp_path, [both], server, infer_method=None)
    wrong = {"id": "1", "messages": [{"role": "user", "content": [part | {"video_url": {"url": "a.txt"}}]}, said]}
    with pytest.raises(DataError, match="is no video"):
        talk(tmp_path, [wrong], server, infer_method=None)
    own = {"id": "1", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [part]}]}
    with pytest.raises(DataError, match="the assistant's and brings a video"):
        talk(tmp_path, [own], server, infer_method=None)


def test_a_missing_video_of_an_earlier_round_is_named(tmp_path: Path, server: ReadingServer) -> None:
    rows = [asks(0, SEEN, video="gone.mp4"), asks(1, SEEN)]
    with pytest.raises(DataError, match=r"2 videos missing \(d_0: .*gone\.mp4; d_1: .*gone\.mp4\)"):
        talk(tmp_path, rows, server)
