"""Places and looking again: ScreenSpot-Pro under its protocol of tools, answered by an agent that looks before it clicks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import snellen
from benchmark_rows import tier2_fixtures
from snellen.core import builtins
from snellen.core.protocols import Capability, EncodedImages, ImagePolicy
from snellen.core.types import Prediction, Request, Usage
from snellen.report.pages.ranking import Entry, kind_of_figure
from snellen.store.reader import RunReader

LOOK = '<tool_call>{"name": "zoom", "arguments": {"picture": 1, "box": [200, 200, 600, 800]}}</tool_call>'
"""Of a screen of 800 x 400 px: from (160, 80) to (480, 320)."""


class Agent:
    """Looks closer once, then says where to click."""

    name = "agent/looks"
    capabilities = frozenset({Capability.GENERATE, Capability.IMAGES})
    image_policy = ImagePolicy()
    cacheable = False

    def __init__(self, reply: str) -> None:
        self.reply = reply

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        looked = sum(turn.role == "assistant" for turn in request.messages)
        return Prediction(request.key, text=self.reply if looked else LOOK, usage=Usage(10, 5), finish="stop")

    async def check(self) -> None:
        pass

    def identity(self) -> Mapping[str, Any]:
        return {"model": self.name, "reply": self.reply}

    async def close(self) -> None:
        pass


def sat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str, **settings: Any) -> tuple[dict[str, Any], Any]:
    fixture = next(one for one in tier2_fixtures() if one.card == "screenspot-pro")
    path = fixture.write(tmp_path / "data")
    monkeypatch.setitem(builtins.MODELS, "agent", lambda name, options: Agent(reply))
    more = settings.pop("overrides", ())
    result = snellen.run(
        "screenspot-pro",
        "agent/looks",
        protocol="zoom",
        overrides=(("dataset.path", str(path)), *more),
        output_dir=tmp_path / "run",
        cache=False,
        **settings,
    )
    with RunReader(result.folder) as run:
        trials = list(run.trials("screenspot-pro"))
        header = run.header()
    assert header.tasks[0].infer == "look" and header.tasks[0].protocol == "zoom"
    return result.results["tasks"]["screenspot-pro"]["metrics"], trials


def test_a_click_after_a_look_is_of_the_whole_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, trials = sat(tmp_path, monkeypatch, "The button is at (375, 700).")
    assert metrics["accuracy"]["value"] == 1.0
    assert all(trial.prediction.detail["look"]["looks"] == 1 for trial in trials)
    assert metrics["other_picture"]["value"] == 1.0, "of the part it is (280, 248) px, on the button too"


def test_an_agent_that_speaks_of_the_part_is_seen_in_the_other_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # (700, 500) is right of the button on the screen; of the part it is (384, 200) px, on the button.
    metrics, _ = sat(tmp_path, monkeypatch, "(700, 500)")
    assert (metrics["accuracy"]["value"], metrics["other_picture"]["value"]) == (0.0, 1.0)


def test_replies_may_be_declared_to_speak_of_the_last_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = (("score_options.reply_picture", "last"),)
    metrics, _ = sat(tmp_path, monkeypatch, "(700, 500)", overrides=told)
    assert (metrics["accuracy"]["value"], metrics["other_picture"]["value"]) == (1.0, 0.0)


def test_tools_beside_a_protocol_make_another_one_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of a card's protocol are without tools: a run with them says so wherever it names its protocol."""
    fixture = next(one for one in tier2_fixtures() if one.card == "screenspot-pro")
    monkeypatch.setitem(builtins.MODELS, "agent", lambda name, options: Agent("[0.5, 0.5]"))
    told = {"overrides": (("dataset.path", str(fixture.write(tmp_path / "data"))),), "cache": False}
    found = {}
    for name, tools in {"plain": (), "looking": ("zoom",)}.items():
        run = snellen.run(
            "screenspot-pro", "agent/looks", protocol="official", tools=tools, output_dir=tmp_path / name, **told
        )
        found[name] = run.results["tasks"]["screenspot-pro"]["protocol"]["name"]
    assert found == {"plain": "official", "looking": "official, with zoom"}
    entries = [stored_entry(tmp_path / name) for name in found]
    first, second = (kind_of_figure(entry, "screenspot-pro") for entry in entries)
    assert (first[1], second[1]) == ("generation", "with zoom"), "ranked apart"


def stored_entry(folder: Path) -> Entry:
    with RunReader(folder) as run:
        return Entry(folder.name, run.header(), json.loads((folder / "results.json").read_bytes()))
