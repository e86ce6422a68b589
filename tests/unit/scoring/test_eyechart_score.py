"""Reading scores: bounds, alignment, and acuity recovered from readers with a known threshold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.types import Form, Prediction, Request, Sample, Score, TrialKey, Turn
from snellen.scoring.aggregates.acuity import acuity, condition_of, curve_of, score
from snellen.scoring.scorers.chart_rows import Shape, glyphs_of, read_rows

TRUTH = ["KDHS", "NRVZC", "OHSNDK"]
SLOAN = Shape("CDHKNORSVZ", 0.1)
glyphs = st.text("CDHKNORSVZ", min_size=1, max_size=10)


def read_per_line(truths: list[str], reply: str) -> list[int]:
    return [row.right for row in read_rows(truths, reply, SLOAN)[0]]


def test_a_perfect_reading_counts_fully_whatever_its_dress() -> None:
    assert read_per_line(TRUTH, "KDHS\nNRVZC\nOHSNDK") == [4, 5, 6]
    assert read_per_line(TRUTH, "Here you go:\n\nk d h s\nN R V Z C\n**OHSNDK**\n") == [4, 5, 6]
    assert read_per_line(TRUTH, "KDHS NRVZC OHSNDK") == [4, 5, 6]


def test_missing_wrong_and_extra_lines() -> None:
    assert read_per_line(TRUTH, "KDHS\nOHSNDK") == [4, 0, 6]
    assert read_per_line(TRUTH, "KDXS\nNRVZ\n?") == [3, 4, 0]
    assert read_per_line(TRUTH, "") == [0, 0, 0]
    assert read_per_line(TRUTH, "OHSNDK\nKDHS\nNRVZC\nZZZ") == [4, 5, 0]


def test_one_line_asked() -> None:
    assert read_per_line(["KDHS"], "Line 1 says:\nKDHS") == [4]
    assert read_per_line(["KDHS"], "KDHS\nNRVZC\nOHSNDK\nZZZ") == [0]


@given(st.lists(glyphs, min_size=1, max_size=8), st.text(max_size=200))
def test_read_is_between_nothing_and_everything(truths: list[str], reply: str) -> None:
    read = read_per_line(truths, reply)
    assert all(0 <= count <= len(truth) for count, truth in zip(read, truths, strict=True))


@given(st.lists(glyphs, min_size=2, max_size=8))
def test_the_truth_reads_fully_and_more_lines_never_hurt(truths: list[str]) -> None:
    assert read_per_line(truths, "\n".join(truths)) == [len(truth) for truth in truths]
    part = sum(read_per_line(truths, "\n".join(truths[:-1]) + "\n-\n0"))
    assert part <= sum(map(len, truths))


def test_glyphs_of_normalises_width_and_case() -> None:
    assert glyphs_of("７k-３ 日!") == "7K3日"


def row_of(height: float, contrast: float, asked: int, right: int) -> tuple[float, ...]:
    return height, contrast, asked, right, asked - right, 0.0


def chart(
    index: int, threshold: float, draw: np.random.Generator, axis: str = "base", level: float = 0.0
) -> tuple[Sample, Score]:
    heights = np.geomspace(40, 2, 12) * draw.uniform(0.9, 1.1)
    chances = 1 / (1 + np.exp(-5 * np.log(heights / threshold)))
    rows = [row_of(float(h), 1.0, 8, int(draw.binomial(8, p))) for h, p in zip(heights, chances, strict=True)]
    tags = {"axis": axis, "level": level, "script": "letters"}
    sample = Sample(f"{axis}{level}-{index}", "eyechart", Form.OCR, "?", tags=tags)
    value = float(np.mean([row[3] / row[2] for row in rows]))
    return sample, Score(TrialKey("eyechart", sample.id), "read", value, detail={"lines": rows})


def test_acuity_recovers_a_known_threshold_and_its_interval_covers_it() -> None:
    covered = 0
    for trial in range(20):
        draw = np.random.default_rng(trial)
        estimate = acuity([chart(index, 6.0, draw) for index in range(8)], {})["acuity_px"]
        assert estimate.value == pytest.approx(6.0, rel=0.2)
        assert estimate.ci95 is not None
        covered += estimate.ci95[0] <= 6.0 <= estimate.ci95[1]
    assert covered >= 17


def test_conditions_get_their_own_threshold() -> None:
    draw = np.random.default_rng(0)
    pairs = [chart(index, 5.0, draw) for index in range(6)] + [
        chart(index, 12.0, draw, "blur", 2.0) for index in range(6)
    ]
    estimates = acuity(pairs, {})
    assert set(estimates) == {"acuity_px", "acuity_px/blur=2"}
    assert estimates["acuity_px/blur=2"].value == pytest.approx(12.0, rel=0.25)
    assert condition_of(pairs[-1][0]) == ("blur", "blur=2")


def test_contrast_threshold() -> None:
    tags = {"axis": "contrast", "level": 0.0, "script": "letters"}
    rows = [row_of(16.0, contrast, 10, 10 if contrast > 0.1 else 0) for contrast in (1.0, 0.5, 0.2, 0.05, 0.02)]
    pairs = []
    for index in range(3):
        sample = Sample(f"c{index}", "eyechart", Form.OCR, "?", tags=tags)
        pairs.append((sample, Score(TrialKey("eyechart", sample.id), "read", 0.6, detail={"lines": rows})))
    value = acuity(pairs, {})["contrast_threshold"].value
    assert value is not None
    assert 0.05 < value < 0.2


def test_choices_are_corrected_for_guessing() -> None:
    draw = np.random.default_rng(5)
    pairs = []
    for index in range(400):
        height = float(draw.uniform(2, 40))
        chance = 0.25 + 0.75 / (1 + np.exp(-5 * np.log(height / 8)))
        meta = {"lines": [{"text": "HK", "height_px": height, "contrast": 1.0}]}
        sample = Sample(
            f"s{index}", "e", Form.CHOICE, "?", options=("a", "b", "c", "d"), group=f"g{index % 20}", meta=meta
        )
        pairs.append((sample, Score(TrialKey("e", sample.id), "accuracy", float(draw.random() < chance))))
    assert acuity(pairs, {})["acuity_px"].value == pytest.approx(8.0, rel=0.25)


@pytest.mark.parametrize("read", [0, 8])
def test_no_threshold_where_all_or_nothing_is_read(read: int) -> None:
    sample = Sample("s", "e", Form.OCR, "?")
    item = Score(
        TrialKey("e", "s"), "read", read / 8, detail={"lines": [row_of(10.0, 1.0, 8, read), row_of(5.0, 1.0, 8, read)]}
    )
    estimate = acuity([(sample, item)], {})["acuity_px"]
    assert (estimate.value, estimate.ci95, estimate.n) == (None, None, 1)


def test_the_scorer() -> None:
    key = TrialKey("eyechart", "s")
    meta = {"lines": [{"text": "KDHS", "height_px": 20.0, "contrast": 1.0}, {"text": "NR VZ", "height_px": 10.0}]}
    sample = Sample("s", "eyechart", Form.OCR, "?", meta=meta)
    request = Request(key, (Turn("user", "?"),))
    (unstated,) = score(sample, request, Prediction(key, text="KDHS\nNRXX"), {})
    assert unstated.value is None
    assert "chance" in (unstated.reason or "")
    stated = Sample("s", "eyechart", Form.OCR, "?", meta={**meta, "chance": 0.1, "alphabet": "CDHKNORSVZ"})
    (result,) = score(stated, request, Prediction(key, text="KDHS\nNRZV"), {})
    assert result.metric == "read"
    assert [line[:5] for line in result.detail["lines"]] == [(20.0, 1.0, 4, 4, 0), (10.0, 1.0, 4, 2, 2)]
    (nothing,) = score(Sample("s", "e", Form.OCR, "?"), request, Prediction(key, text="x"), {})
    assert (nothing.value, nothing.reason) == (None, "the sample holds no chart lines")


def test_curve_points_rise_from_small_to_large() -> None:
    draw = np.random.default_rng(1)
    points, fitted = curve_of([chart(index, 6.0, draw) for index in range(6)])
    assert fitted is not None
    assert len(points) <= 14
    assert points[0][1] < 0.2 < 0.8 < points[-1][1]
