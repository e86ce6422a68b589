"""Checkpoints of a known skill: each is measured once, the curve is their truth, and a fall is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import run_command
from snellen.kits.arrays.checkpoints import Watched, is_whole
from snellen.kits.arrays.curve import curve_figure, curves_below, step_of

PLUGIN = """
import json
from pathlib import Path
from snellen.core.protocols import Capability, ImagePolicy
from snellen.core.types import Prediction


class Known:
    capabilities = frozenset({Capability.GENERATE})
    image_policy = ImagePolicy()
    cacheable = False

    def __init__(self, name):
        self.name, self.skill = f"known/{name}", json.loads((Path(name) / "config.json").read_text())["skill"]

    async def predict(self, request, images):
        number = int(request.key.sample[1:])
        return Prediction(request.key, text="ABC"[(number + (number >= self.skill)) % 3])

    async def check(self): ...

    def identity(self):
        return {"model": self.name}

    async def close(self): ...


def register(registry):
    registry.add("model", "known", lambda name, options: Known(name))
"""


@pytest.fixture
def place(own_folder: Path) -> Path:
    rows = [
        {"id": f"q{n}", "question": f"Number {n}?", "options": [f"{n}-a", f"{n}-b", f"{n}-c"], "answer": "ABC"[n % 3]}
        for n in range(100)
    ]
    (own_folder / "quick.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (own_folder / "known.py").write_text(PLUGIN)
    (own_folder / "training").mkdir()
    return own_folder


def add(step: int, skill: int) -> Path:
    folder = Path("training") / f"checkpoint-{step}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"skill": skill}))
    (folder / "model.safetensors").write_bytes(b"x")
    return folder


COMMAND = ["follow", "training", "--tasks", "quick.jsonl", "-o", "curve", "--provider", "known", "--once"]
COMMAND += ["--every", "0.01", "--plugin", "known.py"]


def test_the_curve_is_the_truth_and_each_checkpoint_is_asked_once(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step, skill in ((100, 40), (200, 60), (1000, 70)):
        add(step, skill)
    assert run_command([*COMMAND]) == 0
    ((folder, (curve,)),) = curves_below(Path("curve"))
    assert folder == Path("curve") and [point.step for point in curve.points] == [100, 200, 1000]
    assert [round(point.value, 2) for point in curve.points] == [0.4, 0.6, 0.7]
    assert all(point.low < point.difference < point.high for point in curve.points[1:]) and not curve.alarms
    assert "checkpoint-1000" in capsys.readouterr().out and "<svg" in curve_figure(curve)
    before = (Path("curve") / "checkpoint-100" / "run.db").stat().st_mtime_ns
    add(2000, 20)
    assert run_command([*COMMAND, "--gate", "curve/checkpoint-100"]) == 4
    said = capsys.readouterr().out
    assert "ALARM checkpoint-2000" in said and "BELOW THE GATE" in said
    assert (Path("curve") / "checkpoint-100" / "run.db").stat().st_mtime_ns == before
    add(3000, 10)
    assert run_command([*COMMAND, "--on-alarm", "touch rang"]) == 0 and Path("rang").exists()


def test_a_checkpoint_that_is_still_written_waits(place: Path) -> None:
    folder = add(1, 5)
    watched = Watched(Path("training"), Path("curve"))
    assert watched.ready() == [] and watched.ready() == [folder]
    (folder / "more.bin").write_bytes(b"abc")
    assert watched.ready() == [] and watched.ready() == [folder]
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-2.safetensors"}}')
    assert not is_whole(folder)
    (folder / "model-2.safetensors").write_bytes(b"x")
    assert is_whole(folder) and not is_whole(folder, "done") and step_of("checkpoint-20")[0] == 20


def test_wrong_words_are_refused_in_one_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["follow", "nowhere", "--tasks", "quick.jsonl", "-o", "curve"]) == 2
    assert run_command(["follow", "training", "-o", "curve", "--once"]) == 2
    assert run_command(["follow", "training", "--tasks", "quick.jsonl", "-o", "curve", "--once", "--modl"]) == 2
    capsys.readouterr()
    broken = add(7, 1)
    (broken / "config.json").write_text('{"skill": 1}')
    Path("curve").mkdir()
    (Path("curve") / broken.name).write_text("in the way")
    assert run_command([*COMMAND]) == 0
    assert f"{broken.name} could not be measured" in capsys.readouterr().out
