"""The eyechart loader: conditions, stable ids and files, clear refusals, options that give nothing away."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import ConfigError, EnvironmentProblem
from snellen.core.ids import rng
from snellen.core.protocols import LoadContext
from snellen.core.types import Form, Sample
from snellen.data.catalog import Catalog
from snellen.data.loaders.eyechart import ALPHABETS, find_cjk_font, load, random_text, words, wrong_readings


def samples(tmp_path: Path, name: str = "eyechart", seed: int = 0, **arguments: Any) -> list[Sample]:
    overrides = [(f"dataset.{key}", value) for key, value in {"charts": 1, "lines": 4, **arguments}.items()]
    return list(load(Catalog().task(name, overrides), LoadContext(seed=seed, workdir=tmp_path)))


def test_default_conditions_cover_every_axis(tmp_path: Path) -> None:
    loaded = samples(tmp_path)
    assert {sample.tags["axis"] for sample in loaded} == {
        "base",
        "contrast",
        "crowding",
        "blur",
        "rotation",
        "clutter",
        "position",
    }
    assert {sample.tags["script"] for sample in loaded if sample.tags["axis"] == "base"} == {
        "letters",
        "digits",
        "words",
    }
    assert len({sample.id for sample in loaded}) == len(loaded) == 14
    assert all(sample.form is Form.OCR and Path(sample.images[0].ref).is_file() for sample in loaded)


def test_heights_fall_and_answers_are_the_lines(tmp_path: Path) -> None:
    sample = samples(tmp_path, axes=["base"], lines=8)[0]
    heights = [line["height_px"] for line in sample.meta["lines"]]
    assert heights == sorted(heights, reverse=True)
    assert sample.answers == ("\n".join(line["text"] for line in sample.meta["lines"]),)
    assert "8 rows of capital letters" in sample.question


def test_contrast_charts_fade_at_one_height(tmp_path: Path) -> None:
    lines = samples(tmp_path, axes=["contrast"], lines=6)[0].meta["lines"]
    assert len({line["height_px"] for line in lines}) == 1
    assert [line["contrast"] for line in lines] == sorted((line["contrast"] for line in lines), reverse=True)


def test_equal_seeds_draw_equal_files_and_other_seeds_other_charts(tmp_path: Path) -> None:
    first, again, other = (samples(tmp_path / place, seed=seed) for place, seed in (("a", 1), ("b", 1), ("c", 2)))
    for left, right in zip(first, again, strict=True):
        assert Path(left.images[0].ref).read_bytes() == Path(right.images[0].ref).read_bytes()
        assert left.answers == right.answers
    assert not {sample.answers for sample in first} & {sample.answers for sample in other}


def test_a_drawn_chart_is_not_drawn_again(tmp_path: Path) -> None:
    path = Path(samples(tmp_path, axes=["base"])[0].images[0].ref)
    stamp = path.stat().st_mtime_ns
    samples(tmp_path, axes=["base"])
    assert path.stat().st_mtime_ns == stamp


def test_the_first_samples_cover_all_conditions(tmp_path: Path) -> None:
    loaded = samples(tmp_path, charts=2)
    assert {s.tags["condition"] for s in loaded[: len(loaded) // 2]} == {s.tags["condition"] for s in loaded}


def test_choice_form_asks_each_line(tmp_path: Path) -> None:
    loaded = samples(tmp_path, "eyechart-choice", axes=["base"], scripts=["letters"])
    assert [sample.form for sample in loaded] == [Form.CHOICE] * 4
    assert all(len(set(sample.options)) == 4 and sample.answers[0] in sample.options for sample in loaded)
    assert len({sample.group for sample in loaded}) == 1
    assert len({sample.images[0].ref for sample in loaded}) == 1


def test_the_right_option_stands_everywhere(tmp_path: Path) -> None:
    loaded = samples(tmp_path, "eyechart-choice", charts=10, axes=["base"], scripts=["letters"])
    assert {sample.options.index(sample.answers[0]) for sample in loaded} == {0, 1, 2, 3}


def test_line_form(tmp_path: Path) -> None:
    sample = samples(tmp_path, "eyechart-line", axes=["base"], scripts=["digits"])[2]
    assert "line 3" in sample.question
    assert [line["text"] for line in sample.meta["lines"]] == list(sample.answers)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axes": ["contrst"]}, "did you mean 'contrast'"),
        ({"scripts": ["greek"]}, "dataset.scripts"),
        ({"ask": "sing"}, "dataset.ask"),
        ({"chart": 3}, "unknown key 'chart'"),
        ({"smallest_px": 50}, "dataset.smallest_px"),
        ({"lines": 0}, "at least 1"),
        ({"options": 1}, "dataset.options"),
        ({"scripts": []}, "at least one name"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        samples(tmp_path, **arguments)


def test_without_a_font_cjk_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snellen.data.loaders.eyechart.FONT_FOLDERS", ())
    find_cjk_font.cache_clear()
    with pytest.raises(EnvironmentProblem, match="fonts-noto-cjk"):
        find_cjk_font()
    find_cjk_font.cache_clear()


@given(seed=st.integers(0, 10**6), glyphs=st.integers(1, 12), script=st.sampled_from([*ALPHABETS, "words"]))
def test_lines_and_wrong_readings_look_alike(seed: int, glyphs: int, script: str) -> None:
    draw = rng(seed)
    text = random_text(script, glyphs, draw)
    others = wrong_readings(text, script, 3, draw)
    assert len({text, *others}) == 4
    assert {len(other) for other in others} == {len(text)}
    if script != "words":
        assert len(text) == glyphs


def test_the_question_states_the_length_of_every_row_the_alphabet_and_what_to_do_with_the_unseen(
    tmp_path: Path,
) -> None:
    loaded = samples(tmp_path, axes=["base"], lines=4)
    for sample in loaded:
        lengths = [len(line["text"].replace(" ", "")) for line in sample.meta["lines"]]
        assert ", ".join(map(str, lengths)) in sample.question
        assert '"1: …"' in sample.question
        assert "or ? for a" in sample.question
        assert set("".join(line["text"] for line in sample.meta["lines"])) - {" "} <= set(sample.meta["alphabet"])
    assert "all from C D H K N O R S V Z" in loaded[0].question
    assert [sample.meta["chance"] for sample in loaded[:2]] == [0.1, 0.1]
    assert 1 / 26 < loaded[2].meta["chance"] < 0.1


def test_glyphs_are_drawn_independently_so_that_chance_is_exact() -> None:
    text = random_text("letters", 20_000, rng(1))
    assert sum(a == b for a, b in pairwise(text)) / len(text) == pytest.approx(0.1, abs=0.01)


def test_every_word_has_others_of_its_length() -> None:
    lengths = [len(word) for word in words()]
    assert all(lengths.count(length) >= 5 for length in lengths)
