"""The demonstration of learning (`examples/train_demo.py`): its world, its verdicts, all its stages in a few steps."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from extras import needs
from snellen.store.reader import RunReader

needs("trl")
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of the demonstration."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import train_demo
    import train_world

    return train_demo, train_world


def test_no_single_fact_tells_the_answer_and_the_careless_writer_reasons_on_what_he_wrote(parts: Any) -> None:
    _, world = parts
    for place in range(3):
        for colour in world.NAMES:
            told = [
                world.city_of(world.team_of(*seen[:2]), seen[2])
                for seen in ((a, b, c) for a in world.NAMES for b in world.NAMES for c in world.NAMES)
                if seen[place] == colour
            ]
            assert {told.count(city) for city in world.CITIES} == {6}
    draw = random.Random(1)
    for _ in range(200):
        scene = world.Scene(draw)
        words = scene.careless(draw).split()
        seen = words[1], words[4], words[7]
        assert world.tell(*seen).split() == words
        assert seen[1] == scene.colours[1]
        assert seen[0] in (scene.colours[0], world.CARELESS.get(scene.colours[0]))


def test_every_word_of_all_rows_is_known_to_the_model(parts: Any, tmp_path: Path) -> None:
    _, world = parts
    known = set(world.vocabulary())
    draw = random.Random(3)
    found = world.scenes(12, 3, "some", tmp_path)
    for one in [*world.base_rows(found, draw), *world.sft_rows(found, draw)]:
        for turn in one["messages"]:
            assert set(turn["content"].removeprefix("<image>").split()) <= known


def test_places_of_patches_are_as_loud_as_what_the_patches_say(parts: Any, tmp_path: Path) -> None:
    import torch
    import transformers

    _, world = parts
    world.write_model(tmp_path, 1)
    model = transformers.LlavaForConditionalGeneration.from_pretrained(tmp_path, dtype=torch.float32)
    seen = model.model.vision_tower.embeddings
    said = seen.patch_embedding(torch.randn(8, 3, 48, 48)).std()
    assert 0.5 < float(seen.position_embedding.weight.std() / said) < 2


def test_a_picture_of_another_size_fits(parts: Any, tmp_path: Path) -> None:
    """Or the grey picture by which `hf/` tries batches is refused, and every reply is generated alone."""
    import PIL.Image
    import transformers

    _, world = parts
    world.write_model(tmp_path, 1)
    processor = transformers.AutoProcessor.from_pretrained(tmp_path)
    made = processor(images=[PIL.Image.new("RGB", (64, 96))], text=["<image> what"], return_tensors="pt")
    assert made["pixel_values"].shape == (1, 3, 48, 48)


def test_swapped_questions_keep_all_pictures_and_none_its_own(parts: Any, tmp_path: Path) -> None:
    demo, _ = parts
    items = [{"image": {"url": f"{n}.png"}, "n": n} for n in range(4)]
    (tmp_path / "annotations.json").write_text(json.dumps(items))
    swapped = json.loads(demo.swap_pictures(tmp_path).read_text())
    assert [(one["n"], one["image"]["url"]) for one in swapped] == [
        (0, "3.png"),
        (1, "0.png"),
        (2, "1.png"),
        (3, "2.png"),
    ]


def gain(low: float | None, figure: str = "Cf") -> dict[str, Any]:
    interval = None if low is None else (low, 0.2)
    return {"from": "base", "to": "sft", "figure": figure, "gain": 0.1, "ci95": interval}


def test_a_gain_inside_its_interval_is_a_fault(parts: Any) -> None:
    demo, _ = parts
    assert demo.no_gain([gain(0.05)]) == []
    assert demo.no_gain([gain(0.05), gain(0.0), gain(None, "Ro")]) == [
        "Cf from base to sft: no gain beyond its interval",
        "Ro from base to sft: no gain beyond its interval",
    ]


def test_a_blind_model_above_chance_is_a_fault_and_luck_is_not(parts: Any) -> None:
    demo, _ = parts
    lucky = {"Rh": {"value": 0.19, "n": 800}, "Rcot": {"value": 0.01, "n": 800}}
    assert demo.above_chance(lucky) == []
    assert len(demo.above_chance(lucky | {"Rh": {"value": 0.23, "n": 800}})) == 1
    assert len(demo.above_chance(lucky | {"Rcot": {"value": 0.03, "n": 800}})) == 1
    assert demo.above_chance(lucky | {"Rcot": {"value": None, "n": 0}}) == []
    assert demo.luck(0, 10, 0.3) == pytest.approx(1)
    assert demo.luck(10, 10, 0.5) == pytest.approx(0.5**10)


@pytest.mark.slow
def test_all_stages_run_and_are_measured_in_batches(tmp_path: Path) -> None:
    words = [sys.executable, str(EXAMPLES / "train_demo.py"), str(tmp_path), "--small"]
    done = subprocess.run(words, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads((tmp_path / "seed-1" / "figures.json").read_text())
    assert all(figures[stage]["losses"] for stage in ("base", "sft", "feedback"))
    assert {one["figure"] for one in figures["gains"]} == {"Ro", "Cf"}
    with RunReader(tmp_path / "seed-1" / "measured" / "base") as reader:
        assert not any("batch" in prediction.detail for _, _, prediction, _ in reader.trials("shapes"))
