"""A recipe is checked before anything is loaded, and its paths are beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from snellen.core.errors import ConfigError
from snellen.kits.train.recipe import DataSource, Feedback, Recipe, Training, check_recipe, read_recipe


def made(**changes: object) -> Recipe:
    table = {"model": "hf/x", "data": (DataSource("a.jsonl"),), "output": "out", **changes}
    return Recipe(**table)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (made(model="openai/x"), "only weights of this machine can be trained"),
        (made(data=()), "no data"),
        (made(training=Training(trainer="dpo")), "use stage feedback"),
        (made(stage="feedback"), "control, dpo or grpo"),
        (made(training=Training(batch_size=0)), "training.batch_size = 0: must be at least 1"),
        (made(training=Training(steps=0)), "training.steps = 0"),
        (made(training=Training(learning_rate=0.0)), "must be above 0"),
        (made(stage="feedback", training=Training(trainer="dpo"), feedback=Feedback(judge="pairs")), "needs a judge"),
        (made(stage="feedback", training=Training(trainer="dpo"), feedback=Feedback(samples=1)), "at least 2"),
    ],
)
def test_what_cannot_work_is_refused(recipe: Recipe, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_recipe(recipe)


def test_rates_are_gentle_by_default() -> None:
    assert made().rate == 1e-4
    assert made(training=Training(weights="full")).rate == 1e-5
    assert made(stage="feedback", training=Training(trainer="dpo")).rate == 1e-5
    assert made(training=Training(learning_rate=3e-3)).rate == 3e-3


def test_paths_of_a_file_are_beside_it(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "r.toml").write_text(
        'model = "hf/base"\noutput = "out"\n[[data]]\npath = "a.jsonl"\nweight = 2\n[training]\nsteps = 3\n'
    )
    recipe = read_recipe(tmp_path / "r.toml")
    assert recipe.model == f"hf/{tmp_path / 'base'}" and recipe.folder == tmp_path / "out"
    assert recipe.data == (DataSource(str(tmp_path / "a.jsonl"), 2.0),)


def test_an_unknown_field_is_named_with_a_near_one(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('model = "hf/base"\noutput = "out"\nsead = 3\n[[data]]\npath = "a"\n')
    with pytest.raises(ConfigError, match=r"unknown key 'sead' .did you mean 'seed'"):
        read_recipe(tmp_path / "r.toml")
