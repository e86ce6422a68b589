"""`sight.fits`, `sight.special` and `sight.advice`: figures that are no single threshold, and the sentences made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from snellen.sight.advice import advice_rules, prescribe, words_of
from snellen.sight.board import chroma_of, lab_to_rgb
from snellen.sight.cards import exam_cards
from snellen.sight.fits import field_groups, fit_ellipse, fit_field, fit_hinge, numerosity
from snellen.sight.special import coordinate_witness, resolution_result, token_witness

CANVASES = {name: card.canvas for name, card in exam_cards().items() if name.startswith("resolution-")}


def measured(value: float, spread: float = 0.07, **more: Any) -> dict[str, Any]:
    """A result as exam.json holds it, with a normal posterior."""
    places = math.log(value) + 0.04 * np.arange(-10, 11)
    mass = np.exp(-0.5 * ((places - math.log(value)) / spread) ** 2)
    posterior = {"x": float(places[0]), "step": 0.04, "mass": (mass / mass.sum()).tolist()}
    ends = [value * math.exp(-1.96 * spread), value * math.exp(1.96 * spread)]
    figures: dict[str, Any] = {"title": "Letters", "unit": "px", "verdict": "measured", "value": value, "ci95": ends}
    figures |= {
        "x95": 1.6 * value,
        "x95_upper90": 1.9 * value,
        "reason": "",
        "trials": 40,
        "axis": [2.0, 100.0],
        "right": 30.0,
        "wrong": 10.0,
        "retest": None,
        "bound": None,
    }
    return figures | {"posterior": posterior, "slope": 6.0, "lapse": 0.02} | more


@pytest.mark.parametrize("rule", ["none", "long side", "short side", "area"])
def test_a_resizing_server_is_told_from_thresholds_on_several_canvases(rule: str) -> None:
    sides = {"long side": max, "short side": min, "area": lambda size: math.sqrt(size[0] * size[1])}
    losses = {name: max(1.0, sides[rule](size) / 1092) if rule != "none" else 1.0 for name, size in CANVASES.items()}
    told = resolution_result({name: measured(6.0 * loss) for name, loss in losses.items()}, CANVASES)
    assert told is not None and told["rule"] == rule and told["probability"] > 0.8
    if rule != "none":
        assert told["limit_px"] == pytest.approx(1092, rel=0.1)
        line = next(line for line in prescribe({}, told) if line.test == "resolution")
        assert f"by {rule}" in line.sentence and "canvases" in line.evidence


def test_a_model_with_one_size_for_all_is_told() -> None:
    told = resolution_result({name: measured(6.0 * max(size) / 448) for name, size in CANVASES.items()}, CANVASES)
    assert told is not None and told["rule"] == "fixed size" and told["limit_px"] is None


def test_few_canvases_tell_nothing() -> None:
    assert resolution_result({"resolution-448": measured(6.0)}, CANVASES) is None


def test_tokens_and_coordinates_are_witnesses() -> None:
    squares = {name: size for name, size in CANVASES.items() if size[0] == size[1]}
    tokens = {448: 300.0, 896: 1100.0, 1792: 1600.0, 3584: 1610.0}
    results = {name: measured(6.0, input_tokens=tokens[size[0]]) for name, size in squares.items()}
    told = token_witness(results, squares, 1092.0)
    assert told is not None and told["stop_growing_after"] == 1792
    assert coordinate_witness({"card": "sent-pixels side=1120"}, 1100.0) == {"side_px": 1120.0, "agrees": True}
    assert coordinate_witness({"card": "sent-pixels area=1000000"}, 2000.0) == {"side_px": 1000.0, "agrees": False}
    assert coordinate_witness({"card": "0-1000"}, 1100.0) is None


def counted_tokens(limit: float, words: float, patch: int = 28) -> dict[str, dict[str, Any]]:
    """Results of a server whose tokens follow its limit, sides in whole patches."""
    squares = {name: size for name, size in CANVASES.items() if size[0] == size[1]}
    sides = {name: math.floor(min(size[0], limit) / patch) for name, size in squares.items()}
    return {name: measured(6.0, input_tokens=words + side**2) for name, side in sides.items()}


@pytest.mark.parametrize("words", [0.0, 90.0, 400.0])
@pytest.mark.parametrize("limit", [560, 768, 980, 1092, 1254, 1344, 1568, 2048, 2240, 2576])
def test_tokens_that_stop_at_the_limit_agree(limit: float, words: float) -> None:
    squares = {name: size for name, size in CANVASES.items() if size[0] == size[1]}
    told = token_witness(counted_tokens(limit, words), squares, 1.08 * limit)
    few = limit < 600 and words > 300  # they hardly grow: no witness, and no accusation
    assert told is not None and told["agrees"] is (None if few else True)


@pytest.mark.parametrize(
    ("limit", "found"), [(1e6, 1092.0), (1e6, 2048.0), (1092, 2576.0), (2576, 1092.0), (560, 1568.0)]
)
def test_tokens_that_stop_elsewhere_do_not(limit: float, found: float) -> None:
    squares = {name: size for name, size in CANVASES.items() if size[0] == size[1]}
    told = token_witness(counted_tokens(limit, 90.0), squares, found)
    assert told is not None and told["agrees"] is False


def test_an_ellipse_has_the_radius_and_the_axis_that_made_the_replies() -> None:
    draw = np.random.default_rng(2)
    hue = draw.integers(0, 8, 400) * 45.0
    level = np.exp(draw.normal(np.log(6), 0.6, 400))
    turn = np.radians(hue)
    threshold = 6 / np.sqrt(np.cos(turn) ** 2 / 2.5 + np.sin(turn) ** 2 * 2.5)
    share = 0.25 + 0.74 / (1 + np.exp(-6 * np.log(level / threshold)))
    found = fit_ellipse(level, hue, (draw.random(400) < share).astype(float))
    assert found.interval[0] < 6 < found.interval[1]
    assert found.axis == "red–green" and found.ratio_low > 1.3


def test_an_even_field_is_even() -> None:
    draw = np.random.default_rng(4)
    cell = np.tile(np.arange(25), 6).astype(float)
    x = np.full(150, math.log(9.0))
    share = 0.1 + 0.88 / (1 + np.exp(-6 * (x - math.log(8))))
    field = fit_field(x, cell, draw.binomial(4, share).astype(float), 4, (math.log(8), 6.0, 0.02))
    assert field.even > 0.8 and len(field.factor) == 5


def sat_field(worse: np.ndarray, factor: float, seed: int) -> Any:
    """A field of 150 groups of four letters, whose `worse` cells need letters `factor` times larger."""
    draw = np.random.default_rng([21, seed])
    cell = np.tile(np.arange(25), 6)
    x = math.log(8) + draw.choice((0.07, 0.29), 150)
    shift = np.where(worse[cell], math.log(factor), 0.0)
    share = 0.1 + 0.88 / (1 + np.exp(-6 * (x - math.log(8) - shift) - draw.normal(0, 0.8, 150)))
    return fit_field(x, cell.astype(float), draw.binomial(4, share).astype(float), 4, (math.log(8), 6.0, 0.02))


def test_a_worse_column_is_found_uneven_and_named() -> None:
    column = np.arange(25) % 5 == 4
    found = [sat_field(column, 1.6, seed) for seed in range(25)]
    assert sum(field.even < 0.4 for field in found) >= 24
    assert sum(field.evenness.line == "right column" for field in found) >= 24
    assert np.mean([field.evenness.line_factor for field in found]) == pytest.approx(1.6, rel=0.12)


def test_even_fields_stay_even() -> None:
    assert sum(sat_field(np.zeros(25, bool), 1.0, seed).even > 0.8 for seed in range(25)) >= 23


@pytest.mark.parametrize("name", ["seams at the halves", "seams at the thirds", "border"])
def test_seams_of_tiles_and_the_border_are_told_from_columns(name: str) -> None:
    assert sat_field(field_groups()[name], 1.6, 3).evenness.line == name


def test_no_limit_is_named_where_all_thresholds_are_equal() -> None:
    places = np.arange(0.2, 6.0, 0.01)
    mass = [np.exp(-0.5 * ((places - 1.9) / 0.07) ** 2) for _ in range(4)]
    hinge = fit_hinge([(448, 448), (896, 896), (1792, 1792), (3584, 3584)], places, mass)
    assert hinge.rule == "none" and hinge.limit is None


def test_numbers_said_are_counted() -> None:
    told = numerosity([(10, 10), (20, 18), (30, 30), (40, 30)])
    assert told["replies"] == {"10": 1, "18": 1, "30": 2} and told["bias_ln"] < 0


def test_colours_go_there_and_back() -> None:
    rgb = np.array([lab_to_rgb(62.0, 12.0, -20.0)])
    assert chroma_of(rgb)[0] == pytest.approx((12.0, -20.0), abs=0.6)


def test_advice_rests_on_the_upper_bound_and_says_so() -> None:
    lines = prescribe({"acuity": measured(8.0)}, None)
    assert [line.id for line in lines] == ["recipe", "text-height"]
    assert "at least 16 px" in lines[1].sentence and "half at 8 px" in lines[1].evidence


def test_an_undecided_bound_is_no_advice() -> None:
    wide = measured(8.0, x95_upper90=60.0, x95_ci95=[9.0, 70.0])
    lines = prescribe({"acuity": wide}, None)
    assert [line.id for line in lines] == ["open-acuity"] and "--fine --tests acuity" in lines[0].sentence
    inconsistent = measured(8.0, retest={"consistent": False})
    assert all(line.id.startswith("open") for line in prescribe({"acuity": inconsistent}, None))


def test_every_rule_speaks_of_a_test_there_is_and_of_words_there_are() -> None:
    everything = measured(8.0, bound=2.0, ellipse={"axis": "red–green", "ratio": 2.0}, mirrored={"share": 0.6}) | {
        "frame": "sent-pixels",
        "in_words": "pixels of the picture",
        "least_target_px": 24,
        "line": {"name": "border", "factor": 1.4},
        "turns": {"90": {"verdict": "not read"}},
    }
    words = words_of(everything)
    for rule in advice_rules():
        assert rule.test in exam_cards(), rule.id
        assert rule.sentence.format(**words)
    assert len({rule.id for rule in advice_rules()}) == len(advice_rules())
