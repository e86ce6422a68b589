"""Pictures are made as small as a model's card says, and what requests share is kept by the provider and billed as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from emulator import emulator
from snellen.api.plan import make_plan
from snellen.api.run_cost import describe_cost, estimate_run
from snellen.core.types import Usage
from snellen.kits.mock.server import MockOptions
from snellen.kits.mock.wire import IMAGE_TOKENS
from snellen.store.reader import RunReader

QUESTIONS = 6


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Make six questions about the same two pages."""
    for number in range(2):
        PIL.Image.new("RGB", (200, 100), (number * 90, 0, 0)).save(tmp_path / f"{number}.png")
    rows = [
        {
            "id": str(n),
            "question": f"What is {n}?",
            "options": ["one", "two"],
            "answer": "A",
            "images": ["0.png", "1.png"],
        }
        for n in range(QUESTIONS)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def card_folder(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "cards"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "own.toml").write_text(text)
    return folder


def run(page: Path, tmp_path: Path, model: str, base_url: str, **more: Any) -> snellen.RunResult:
    settings = {"tasks": (str(page),), "model": model, "base_url": base_url, "cache": False, "max_workers": 1}
    return snellen.run(snellen.RunSettings(**settings, output_dir=tmp_path / "run", **more))


def test_what_a_provider_keeps_is_marked_counted_and_billed(page: Path, tmp_path: Path) -> None:
    prices = "[prices]\ninput_per_million = 1000000.0\noutput_per_million = 0.0\ncached_per_million = 100000.0\n"
    text = f'model = "anthropic/mock"\n{prices}cache_write_per_million = 1250000.0\ncurrency = "EUR"\n'
    with emulator(MockOptions(dialect="anthropic")) as server:
        folder = card_folder(tmp_path, text)
        result = run(page, tmp_path, "anthropic/mock", server.base_url, prompt_cache=True, catalogs=(folder,))
    with RunReader(tmp_path / "run") as reader:
        usages = [trial.prediction.usage for trial in reader.trials("rows")]
    kept = 2 * IMAGE_TOKENS
    assert sorted(usage.cached_tokens or 0 for usage in usages if usage) == [0] + [kept] * (QUESTIONS - 1)
    assert sorted(usage.written_tokens or 0 for usage in usages if usage) == [0] * (QUESTIONS - 1) + [kept]
    whole = sum(usage.input_tokens or 0 for usage in usages if usage)
    fresh = whole - QUESTIONS * kept
    assert result.results["cost"]["value"] == pytest.approx(fresh + 1.25 * kept + 0.1 * kept * (QUESTIONS - 1))
    assert result.results["cost"]["cached_tokens"] == kept * (QUESTIONS - 1)


def test_nothing_is_marked_unasked(page: Path, tmp_path: Path) -> None:
    with emulator(MockOptions(dialect="anthropic")) as server:
        run(page, tmp_path, "anthropic/mock", server.base_url)
    with RunReader(tmp_path / "run") as reader:
        assert not any((trial.prediction.usage or Usage()).cached_tokens for trial in reader.trials("rows"))


def test_pictures_are_made_as_small_as_the_card_says_and_that_is_recorded(page: Path, tmp_path: Path) -> None:
    with emulator(MockOptions()) as server:
        folder = card_folder(tmp_path, 'model = "openai/mock"\nmax_side = 64\nmax_images = 1\n')
        run(page, tmp_path, "openai/mock", server.base_url, catalogs=(folder,))
        settings = snellen.RunSettings(
            tasks=(str(page),),
            model="openai/mock",
            base_url=server.base_url,
            catalogs=(folder,),
            output_dir=tmp_path / "r",
        )
        plan = make_plan(settings)
        words = "\n".join(describe_cost(plan, estimate_run(plan, settings)))
    with RunReader(tmp_path / "run") as reader:
        sent = [image for trial in reader.trials("rows") for image in trial.prediction.images]
    assert {(image.width, image.height, image.original) for image in sent} == {(64, 32, (200, 100))}
    assert f"{QUESTIONS} prompts show more than the 1 pictures the model takes" in words


def test_a_policy_of_ones_own_wins(page: Path, tmp_path: Path) -> None:
    from snellen.core.protocols import ImagePolicy

    folder = card_folder(tmp_path, 'model = "openai/mock"\nmax_side = 64\n')
    place = {"tasks": (str(page),), "model": "openai/mock", "base_url": "http://127.0.0.1:9/v1", "catalogs": (folder,)}
    own = snellen.RunSettings(**place, output_dir=tmp_path / "r", image_policy=ImagePolicy(max_side=100))
    assert make_plan(own).model.image_policy.max_side == 100
