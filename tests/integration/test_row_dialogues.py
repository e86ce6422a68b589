"""Dialogues of one's own: every round goes out with the rounds before it, or the run is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import snellen
from snellen.core.errors import DataError, UsageError


class Recorder:
    """A chat server that keeps the messages of every request and answers `reply N`."""

    def __init__(self) -> None:
        self.bodies: list[list[dict[str, Any]]] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send({"data": [{"id": "m"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bodies.append(body["messages"])
                message = {"role": "assistant", "content": f"said to {body['messages'][-1]['content'].split()[0]}"}
                self._send({"choices": [{"message": message, "finish_reason": "stop"}]})

            def _send(self, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def of(self, word: str) -> list[str]:
        """Return what was said, in order, in the request that ends with a question that begins so."""
        (found,) = [body for body in self.bodies if body[-1]["content"].startswith(word)]
        return [message["content"].split("\n")[0] for message in found]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Recorder]:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    found = Recorder()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


ROWS = [
    {
        "id": f"{group}{number}",
        "group": group,
        "round": number,
        "question": f"{group}{number} ask?",
        "answer": f"g{number}",
    }
    for number in (2, 1, 3)
    for group in "ab"
]
TURNS = {
    "id": "t",
    "turns": [
        {"role": role, "content": f"{role[0]}{number} text"} for number in (1, 2, 3) for role in ("user", "assistant")
    ],
}


def run(path: Path, rows: list[dict[str, Any]], recorder: Recorder, **settings: Any) -> Any:
    path.write_text("\n".join(map(json.dumps, rows)))
    return snellen.run(
        str(path), "openai/m", base_url=recorder.url, output_dir=path.with_suffix(""), cache=False, **settings
    )


def test_every_round_brings_the_models_own_answers(recorder: Recorder, tmp_path: Path) -> None:
    result = run(tmp_path / "d.jsonl", ROWS, recorder, infer_method="every")
    assert len(recorder.of("a1")) == 1
    assert recorder.of("a3") == ["a1 ask?", "said to a1", "a2 ask?", "said to a2", "a3 ask?"]
    assert len(recorder.bodies) == 6
    assert result.results["status"]["complete"]


def test_right_answers_as_history(recorder: Recorder, tmp_path: Path) -> None:
    run(tmp_path / "d.jsonl", ROWS, recorder, infer_method="every_with_gt")
    assert recorder.of("b3") == ["b1 ask?", "g1", "b2 ask?", "g2", "b3 ask?"]
    assert len(recorder.bodies) == 6


def test_the_last_round_alone_brings_all_before_it(recorder: Recorder, tmp_path: Path) -> None:
    run(tmp_path / "d.jsonl", ROWS, recorder, infer_method="last")
    assert recorder.of("a3") == ["a1 ask?", "g1", "a2 ask?", "g2", "a3 ask?"]
    assert len(recorder.bodies) == 2


@pytest.mark.parametrize("column", ["turns", "messages", "conversations"])
@pytest.mark.parametrize("method", ["every", "every_with_gt", "last"])
def test_a_list_in_one_row_is_a_dialogue(column: str, method: str, recorder: Recorder, tmp_path: Path) -> None:
    row = {"id": "t", column: TURNS["turns"]}
    run(tmp_path / "l.jsonl", [row], recorder, infer_method=method)
    own = ["said to u1", "said to u2"] if method == "every" else ["a1 text", "a2 text"]
    assert recorder.of("u3") == ["u1 text", own[0], "u2 text", own[1], "u3 text"]
    assert len(recorder.bodies) == (1 if method == "last" else 3)


@pytest.mark.parametrize("method", ["every", "every_with_gt", "last"])
def test_without_a_dialogue_the_method_is_refused(method: str, recorder: Recorder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"has no dialogues, which --infer-method {method} needs: rows with group"):
        run(tmp_path / "n.jsonl", [{"question": "What?", "answer": "x"}], recorder, infer_method=method)
    assert not recorder.bodies


def test_pictures_of_the_first_round_are_seen_in_all(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("\n".join(json.dumps(row) for row in [{**ROWS[2], "image": "x.png"}, ROWS[0]]))
    samples = list(load(tmp_path / "d.jsonl", "every_with_gt"))
    assert [[image.ref for image in sample.images] for sample in samples] == [[str(tmp_path / "x.png")]] * 2


def test_rounds_with_pictures_of_their_own_show_each_its_own(tmp_path: Path) -> None:
    rows = [{**ROWS[2], "image": "x.png"}, {**ROWS[0], "image": "y.png"}]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    first, second = load(tmp_path / "d.jsonl", "every_with_gt")
    assert [[Path(image.ref).name for image in sample.images] for sample in (first, second)] == [["x.png"], ["y.png"]]
    assert not first.turns
    assert [Path(image.ref).name for image in second.turns[0].images] == ["x.png"]
    assert second.question == f"<image 1>\n{ROWS[0]['question']}"


def test_a_picture_marked_in_a_later_round_is_shown_there_and_where_it_was_before(tmp_path: Path) -> None:
    rows = [{**ROWS[2], "image": "x.png"}, {**ROWS[0], "image": "x.png", "question": "What is left in <image 1>?"}]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    first, second = load(tmp_path / "d.jsonl", "every_with_gt")
    assert (len(first.images), len(second.turns[0].images), len(second.images)) == (1, 1, 1)
    assert second.question == "What is left in <image 1>?"


MESSAGES = {
    "placeholders": {
        "images": ["x.png", "y.png", "z.png"],
        "conversations": [
            {"from": "human", "value": "<image>\nWhat is it?"},
            {"from": "gpt", "value": "a cat"},
            {"from": "human", "value": "Is <image> older than <image>?"},
            {"from": "gpt", "value": "yes"},
        ],
    },
    "parts": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": "x.png"}, {"type": "text", "text": "What is it?"}],
            },
            {"role": "assistant", "content": "a cat"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Is "},
                    {"type": "image_url", "image_url": {"url": "y.png"}},
                    {"type": "text", "text": " older than "},
                    {"type": "image_url", "image_url": "z.png"},
                    {"type": "text", "text": "?"},
                ],
            },
            {"role": "assistant", "content": "yes"},
        ]
    },
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages_keep_their_pictures_where_they_stand(kind: str, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text(json.dumps(MESSAGES[kind]))
    first, second = load(tmp_path / "d.jsonl", "every_with_gt")
    assert (first.question, [Path(image.ref).name for image in first.images]) == ("What is it?", ["x.png"])
    assert second.question == "Is <image 1> older than <image 2>?"
    assert [Path(image.ref).name for image in second.images] == ["y.png", "z.png"]
    assert [Path(image.ref).name for image in second.turns[0].images] == ["x.png"]


def load(path: Path, infer: str) -> Any:
    from snellen.core.protocols import LoadContext
    from snellen.data.catalog import Catalog
    from snellen.data.loaders import table

    return table.load(Catalog().task(str(path), [("infer", infer)]), LoadContext())


BAD = {
    "round 1 twice": [{**ROWS[2]}, {**ROWS[2], "id": "again"}, ROWS[0]],
    "message 2 is the assistant's and brings a picture": [
        {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": [{"type": "image_url", "image_url": "x.png"}]},
            ]
        }
    ],
    "2 × <image> in its messages and 1 pictures": [
        {"image": "x.png", "conversations": [{"from": "human", "value": "<image> or <image>?"}], "answer": "x"}
    ],
    "no answer to put into the history": [{**ROWS[2], "answer": None}, ROWS[0]],
    "round 'x' is not a whole number": [{**ROWS[2], "round": "x"}],
    "must take turns": [{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}],
    "has no answer; add one": [{"messages": TURNS["turns"][:3]}],
    "nothing that the user says": [{"messages": [{"role": "system", "content": "a"}]}],
    "has no role": [{"messages": [{"content": "a"}]}],
    "has no content": [{"messages": [{"role": "user"}]}],
    "must be an object": [{"messages": ["a"]}],
    "a part of a message is 'audio'": [{"messages": [{"role": "user", "content": [{"type": "audio"}]}], "answer": "x"}],
    "and 0 pictures in its columns": [{"conversations": [{"from": "human", "value": "<image> a"}], "answer": "x"}],
}


@pytest.mark.parametrize("message", BAD)
def test_a_dialogue_that_cannot_be_told_is_refused_by_name(message: str, tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text("\n".join(map(json.dumps, BAD[message])))
    with pytest.raises(DataError, match=message):
        list(load(path, "every_with_gt"))
