"""The page jobs as library calls: styles, degraded variants, families."""

from __future__ import annotations

from pathlib import Path

import pytest

from snellen.core.errors import ConfigError, UsageError
from snellen.kits.pages.library import change_style, degrade_pages, list_families, make_style, render_pages


def test_the_line_height_follows_a_font_size_that_is_set_alone() -> None:
    assert make_style("seed", size_pt=14.0).leading_pt == 15.0
    assert make_style("seed", size_pt=14.0, leading_pt=20.0).leading_pt == 20.0
    style = make_style("seed", "300x400", dpi=None)
    assert (style.width_pt, style.height_pt, style.leading_pt) == (300.0, 400.0, 12.0)
    assert change_style(style, {"size_pt": 7.0}, "here").leading_pt == 8.0
    with pytest.raises(ConfigError, match="--variant 'x'"):
        change_style(style, {"colour": "red"}, "--variant 'x'")


def test_pages_are_rendered_and_degraded_each_into_its_folder(tmp_path: Path) -> None:
    text = tmp_path / "book.txt"
    text.write_text("One line.\nAnother line.\n", encoding="utf-8")
    style = make_style("seed", "160x120", font="built-in", dpi=72.0)
    clean = render_pages(text, tmp_path / "clean", style, tokenizer="chars/4")
    assert (clean["documents"], clean["pages"], clean["missing_glyphs"]) == (1, 1, {})
    (blurred,) = degrade_pages(tmp_path / "clean", tmp_path / "blurred", ["blur:2", "jpeg:1"])
    assert blurred["folder"] == str(tmp_path / "blurred")
    assert blurred["text_tokens"] == clean["text_tokens"]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('families = ["jpeg"]\nseverities = [1, 3]\n', encoding="utf-8")
    made = list(degrade_pages(tmp_path / "clean", tmp_path / "many", recipe=recipe))
    assert [Path(summary["folder"]).name for summary in made] == ["jpeg_1", "jpeg_3"]
    assert all((Path(summary["folder"]) / "manifest.json").is_file() for summary in made)


def test_one_way_of_naming_the_degradation_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name one of"):
        list(degrade_pages(tmp_path, tmp_path / "out"))
    with pytest.raises(UsageError, match="name one of"):
        list(degrade_pages(tmp_path, tmp_path / "out", ["jpeg:1"], recipe=tmp_path / "recipe.toml"))


def test_families_are_listed_with_five_levels_each() -> None:
    families = list_families()
    assert all(len(levels) == 5 for levels in families["perturb"].values())
    assert {"page_shuffle", "dpi_render", "kv-number", "qwen2.5-vl"} <= {
        name for key in ("pages", "render", "needles", "models") for name in families[key]
    }
