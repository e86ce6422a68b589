"""Whoever answers changes between two commands: the second one's replies are all of the second, or it says why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web

import snellen
from figures import note_figure
from snellen.core.errors import RunMismatch
from snellen.core.secret import Secret
from twofaced_server import TwoFaced, twofaced

ROWS = 6


class Change(NamedTuple):
    """What the second command has otherwise than the first: settings of it, or of the server, or a file."""

    first: dict[str, Any]
    second: dict[str, Any]
    server: Callable[[TwoFaced], object] = lambda faces: None


def _turned(faces: TwoFaced) -> None:
    faces.answer = lambda request, body: "B"


def _says(**said: Any) -> Callable[[TwoFaced], object]:
    return lambda faces: (_turned(faces), faces.said.update(said))


def _lists(**listed: Any) -> Callable[[TwoFaced], object]:
    return lambda faces: (_turned(faces), faces.listed.update(listed))


def _header(which: str) -> dict[str, Any]:
    return {"headers": {"X-Variant": Secret(which)}}


SERVED = {
    "query": Change({"query": {"deployment": "a"}}, {"query": {"deployment": "b"}}),
    "query that was not there": Change({}, {"query": {"deployment": "b"}}),
    "header": Change(_header("a"), _header("b")),
    "body": Change({"extra_body": {"face": "a"}}, {"extra_body": {"face": "b"}}),
    "system prompt": Change({}, {"overrides": (("prompt.system", "face b"),)}),
    "listed checkpoint": Change({}, {}, _lists(root="/ckpt-200")),
    "listed date": Change({}, {}, _lists(created=1_700_000_000)),
    "listed length": Change({}, {}, _lists(max_model_len=8192)),
    "model in replies": Change({}, {}, _says(model="m-2")),
    "fingerprint in replies": Change({}, {}, _says(system_fingerprint="fp2")),
}


def face(request: web.Request, body: dict[str, Any]) -> str:
    told = (request.query.get("deployment"), request.headers.get("X-Variant"), body.get("face"))
    return "B" if "b" in told or "face b" in json.dumps(body["messages"]) else "A"


PLUGIN = """
import json, os
import sibling_of_mine
class Mine:
    {mark} = 1
    def __init__(self, config):
        with open(config) as file:
            self.shift = json.load(file)["shift"] + sibling_of_mine.SHIFT + int(os.environ.get("MY_OWN_SHIFT", "0"))
    def raw_batch_predict(self, image, prompt, candidates, likelihood_reduction="sum"):
        return [(self.shift + {own} + (likelihood_reduction == "mean")) % len(each) for each in candidates]
"""
FILES = {
    "mine.py": (PLUGIN.format(mark="a", own=0), PLUGIN.format(mark="b", own=1)),
    "sibling_of_mine.py": ("SHIFT = 0\n", "SHIFT = 1  # edited\n"),
    "config.json": ('{"shift": 0}', '{"shift": 1}'),
}
LOADED = [*FILES, "$MY_OWN_SHIFT", "reduction"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = [{"id": n, "question": f"Which of {n}?", "options": ["x", "y"], "answer": "A"} for n in range(ROWS)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    yield tmp_path
    sys.modules.pop("sibling_of_mine", None)


def replies(folder: str) -> set[bool]:
    """Return which of both answered in a run: whether replies are right, which only the first one's are."""
    rows = map(json.loads, Path(folder, "records.jsonl").read_text().splitlines())
    return {row["value"] == 1.0 for row in rows}


def second_alone(folder: str, command: Callable[[], object]) -> bool:
    """Tell whether a command was refused by name, or left nothing of the first in its run."""
    try:
        command()
    except RunMismatch:
        return True
    return replies(folder) == {False}


def served(name: str) -> bool:
    """Change who answers over HTTP: a new run with the cache, and the same folder continued; tell that none is mixed."""
    change, faces = SERVED[name], TwoFaced(face)
    with twofaced(faces) as url:

        def run(folder: str, settings: dict[str, Any], **more: Any) -> object:
            return snellen.run("t.jsonl", "openai/m", base_url=url, output_dir=Path(folder), **settings, **more)

        run(f"{name} 1", change.first, limit=ROWS // 2)
        run(f"{name} 2", change.first)
        assert replies(f"{name} 2") == {True}
        change.server(faces)
        continued = second_alone(f"{name} 1", lambda: run(f"{name} 1", change.second, limit=None))
        return second_alone(f"{name} 3", lambda: run(f"{name} 3", change.second)) and continued


@contextmanager
def changed(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Change what a plug-in loads; yields the settings of the second command."""
    sys.modules.pop("sibling_of_mine", None)
    if name in FILES:
        Path(name).write_text(FILES[name][1])
    with monkeypatch.context() as patch:
        if name.startswith("$"):
            patch.setenv(name[1:], "1")
        yield {"likelihood_reduction": "mean"} if name == "reduction" else {}


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Change what a plug-in loads, in the same two ways."""
    how: dict[str, Any] = {"plugins": (Path("mine.py"),), "model_arguments": {"config": "config.json"}}

    def run(folder: str, **more: Any) -> object:
        return snellen.run("t.jsonl", "plugin/Mine", infer_method="likelihood", output_dir=Path(folder), **how, **more)

    for file, (content, _) in FILES.items():
        Path(file).write_text(content)
    sys.modules.pop("sibling_of_mine", None)
    run(f"{name} 1", limit=ROWS // 2)
    run(f"{name} 2")
    assert replies(f"{name} 2") == {True}
    with changed(name, monkeypatch) as settings:
        continued = second_alone(f"{name} 1", lambda: run(f"{name} 1", **settings))
        return second_alone(f"{name} 3", lambda: run(f"{name} 3", **settings)) and continued


def test_whoever_answers_is_never_mixed_with_another_unseen(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {name: served(name) for name in SERVED} | {name: loaded(name, monkeypatch) for name in LOADED}
    mixed = [name for name, alone in told.items() if not alone]
    note_figure(
        "fault",
        "who answers changes between two commands: a new run with the cache, and one that is continued",
        f"{len(told)} changes, both ways: {len(mixed)} mixed or answered by the former unseen",
    )
    assert not mixed
