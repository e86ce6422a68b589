"""`sight.recipe`: the composed prescription, followed for observers whose shrinking is known."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from test_fits import CANVASES, measured

from exam_observer import Observer, sit
from snellen.api.load import load_run
from snellen.sight.advice import prescribe
from snellen.sight.recipe import page_recipe
from snellen.sight.recipe_round import line_interval
from snellen.sight.special import resolution_result

SQUARES = {name: size for name, size in CANVASES.items() if size[0] == size[1]}
KINDS = [
    ("none", 1.0),
    ("halving", 1.0),
    ("fixed size", 336.0),
    ("fixed size", 448.0),
    ("fixed size", 896.0),
    ("long side", 1092.0),
    ("short side", 768.0),
    ("area", 1092.0),
]


def sat(kind: tuple[str, float], canvases: dict[str, Any], spread: float = 0.07) -> tuple[dict[str, Any], Any]:
    """The results of an observer that reads letters of 6 px when it sees them, 1.9 times larger surely."""
    observer = Observer(shrink=kind)
    letters = measured(6.0 * observer.loss((672, 672)), canvas=[672, 672], chance=0.1)
    rows = {name: measured(6.0 * observer.loss(size), spread) for name, size in canvases.items()}
    return letters, resolution_result(rows, canvases)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("canvases", [CANVASES, SQUARES, {}], ids=["six", "squares", "unknown"])
def test_letters_of_the_recipe_are_seen_as_large_as_is_safe(kind: tuple[str, float], canvases: dict[str, Any]) -> None:
    letters, resolution = sat(kind, canvases)
    recipe = page_recipe(letters, resolution)
    assert recipe is not None
    seen = recipe.capital_px / Observer(shrink=kind).loss(recipe.part_px)
    assert seen >= 0.99 * 6.0 * 1.9
    assert recipe.accuracy == pytest.approx(0.1 + 0.88 * 0.95, abs=1e-3)


@pytest.mark.parametrize("side", [336.0, 448.0, 896.0])
@pytest.mark.parametrize("spread", [0.13, 0.075, 0.03])
@pytest.mark.parametrize("canvases", [CANVASES, SQUARES], ids=["six", "squares"])
def test_one_size_for_all_is_told_though_several_rules_say_it(
    side: float, spread: float, canvases: dict[str, Any]
) -> None:
    letters, resolution = sat(("fixed size", side), canvases, spread)
    lines = {line.id: line.sentence for line in prescribe({"acuity": letters}, resolution)}
    assert "one size" in lines["size-fixed"]
    assert "dpi" not in lines["text-height"] and "as sent" in lines["text-height"]


def test_squares_alone_tell_a_limit_though_not_by_which_side() -> None:
    _, resolution = sat(("long side", 1092.0), SQUARES)
    line = next(line for line in prescribe({}, resolution) if line.id == "size")
    assert "not known" in line.sentence and resolution["limit_px"] == pytest.approx(1092, rel=0.1)


@pytest.mark.parametrize("kind", [("none", 1.0), ("halving", 1.0)])
def test_who_brings_every_picture_to_half_is_told_of_no_limit_not_that_nothing_is_shrunk(
    kind: tuple[str, float],
) -> None:
    line = next(line for line in prescribe({}, sat(kind, CANVASES)[1]) if line.id.startswith("size"))
    assert line.id == "size-any" and "shr" not in line.sentence and "3,584 px" in line.sentence


def test_no_more_pixels_are_advised_than_are_seen() -> None:
    letters, resolution = sat(("long side", 1092.0), CANVASES)
    recipe = page_recipe(letters, resolution)
    assert recipe is not None and recipe.columns * recipe.rows > 1
    assert max(recipe.part_px) <= 1.15 * 1092


def test_letters_that_no_part_makes_large_enough_get_no_recipe() -> None:
    letters, resolution = sat(("fixed size", 336.0), CANVASES)
    huge = letters | {"x95_upper90": 95.0, "x95": 90.0}
    assert page_recipe(huge, resolution) is None
    line = prescribe({"acuity": huge}, resolution)[0]
    assert line.id == "recipe" and "larger print" in line.sentence


@pytest.mark.parametrize("bound", [0.31, 0.5, 0.666, 0.9])
def test_a_faint_scan_is_never_faded(bound: float) -> None:
    result = measured(0.9 * bound, x95=0.95 * bound, x95_upper90=bound, axis=[0.004, 1.0], drawn_px=25.0)
    lines = {line.id: line.sentence for line in prescribe({"contrast": result}, None)}
    factor = float(lines["contrast-stretch"].rsplit(" ", 1)[1].rstrip("."))
    assert factor >= bound / 0.25 > 1 and factor == pytest.approx(bound / 0.25, rel=0.01)
    assert "25 px" in lines["contrast"], "the height that it was measured at"


def test_every_line_of_a_threshold_says_on_what_it_was_measured() -> None:
    for test in ("acuity", "contrast", "crowding", "rotation", "blur", "noise", "vernier", "junction"):
        result = measured(0.4, axis=[0.004, 1.0], canvas=[672, 672], drawn_px=25.0)
        lines = [line for line in prescribe({test: result}, None) if line.id != "recipe"]
        assert lines and all("672" in line.evidence for line in lines), test


def test_an_exam_of_a_model_with_one_size_composes_what_it_reads(tmp_path: Path) -> None:
    observer = Observer(shrink=("fixed size", 448.0), slope=4.5)
    tests = ("acuity", "resolution-448", "resolution-896", "resolution-1792")
    exam = sit(tmp_path, observer, mode="quick", seed=1, tests=(*tests, "recipe")).exam
    lines = {line["id"]: line["sentence"] for line in exam["prescription"]}
    assert "one size" in lines["size-fixed"] and "parts" in lines["recipe"]
    recipe = page_recipe(exam["tests"]["acuity"], exam["resolution"])
    assert recipe is not None
    reach = math.log(recipe.capital_px / (8.0 * observer.loss(recipe.part_px)))
    assert 0.5 * math.erfc(-reach * 4.5 / math.sqrt(2)) > 0.95
    asked = exam["tests"]["recipe"]
    assert asked["recipe"]["part_px"] == list(recipe.part_px) and asked["trials"] == 12
    assert asked["ci95"][0] <= asked["value"] <= asked["ci95"][1] and asked["kept"]
    assert "promised" not in lines["recipe"], "what was reached is said, not what was hoped"
    with load_run(tmp_path) as run:
        files = [Path(trial.sample.images[0].ref).read_bytes() for trial in run.trials("exam-recipe")]
    sizes = {PIL.Image.open(io.BytesIO(file)).size for file in files}
    assert sizes == {tuple(recipe.part_px)}


def test_a_recipe_that_full_pages_do_not_keep_is_not_relied_on(tmp_path: Path) -> None:
    observer = Observer(on_pages=0.5, slope=4.5)
    exam = sit(tmp_path, observer, mode="quick", seed=1, tests=("acuity", "recipe")).exam
    asked, line = exam["tests"]["recipe"], exam["prescription"][0]
    assert asked["ci95"][1] < asked["promised"] and not asked["kept"]
    assert line["id"] == "recipe" and "do not rely" in line["sentence"]


def test_the_interval_of_lines_covers_what_they_would_reach() -> None:
    draw, inside = np.random.default_rng(3), 0
    for share, together in ((0.97, 0.0), (0.97, 0.05), (0.9, 0.15), (0.995, 0.02)):
        weight = (1 - together) / max(together, 1e-3)
        lines = draw.beta(share * weight, (1 - share) * weight, (200, 24))
        for right in draw.binomial(30, lines if together else share, (200, 24)).astype(float):
            low, high = line_interval(right, np.full(24, 30.0), together)[1]
            inside += low <= share <= high
    assert inside / 800 >= 0.92


def test_letters_without_a_threshold_ask_no_recipe(tmp_path: Path) -> None:
    exam = sit(tmp_path, Observer(random=True), mode="quick", tests=("acuity", "recipe")).exam
    asked = exam["tests"]["recipe"]
    assert asked["trials"] == 0 and asked["value"] is None and asked["reason"]
