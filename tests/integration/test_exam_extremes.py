"""Who sees everything, and who sees letters and nothing else: every figure that is printed was shown by a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exam_observer import Observer, sit
from snellen.core.types import Sample
from snellen.sight.advice import WHOLE

EVERYTHING = ("acuity", "contrast", "jpeg", "vernier", "size", "count")
BUT_LETTERS = ("acuity", "contrast", "crowding", "blur", "resolution-896", "field", "quarter-turns", "images", "locate")


class Perfect(Observer):
    """Sees everything."""

    def seen(self, test: str, sample: Sample) -> float:
        return 1.0


def test_who_sees_everything_is_better_than_what_was_drawn_and_no_better(tmp_path: Path) -> None:
    found = sit(tmp_path / "run", Perfect(lapse=0.0), mode="quick", tests=EVERYTHING).exam
    for name in EVERYTHING:
        result: dict[str, Any] = found["tests"][name]
        hardest, easiest = result["axis"]
        read = [level for level, right, glyphs, *_ in result["levels"] if right == glyphs]
        most = min(read) if easiest > hardest else max(read)
        assert result["verdict"] == "at ceiling" and result["wrong"] == 0, name
        assert result["bound"] >= most if easiest > hardest else result["bound"] <= most, name
        assert result["bound"] == pytest.approx(most, rel=0.07), name
        assert result["unit"] not in WHOLE or result["bound"] == int(result["bound"])
    said = " ".join(line["sentence"] for line in found["prescription"])
    assert "not seen reliably" not in said and "are a guess" not in said and "reading suffers" not in said


class Letters(Observer):
    """Reads rows on an even page, and guesses at all else."""

    def seen(self, test: str, sample: Sample) -> float:
        return super().seen(test, sample) if test in ("acuity", "resolution-896") else 0.0

    def look(self, test: str, sample: Sample, draw: Any) -> str:
        return self.guess(test, sample, draw) if test == "locate" else super().look(test, sample, draw)


def test_guesses_get_no_figure_in_any_test(tmp_path: Path) -> None:
    found = sit(tmp_path / "run", Letters(), mode="quick", tests=BUT_LETTERS).exam
    measured = {name for name, result in found["tests"].items() if result["verdict"] == "measured"}
    assert measured == {"acuity", "resolution-896", "quarter-turns"}
    assert found["tests"]["quarter-turns"]["turns_read"] == 0 and found["tests"]["quarter-turns"]["ci95"][1] < 0.3
    others = [result for name, result in found["tests"].items() if name not in measured]
    assert all(result["verdict"] == "not measurable" and result["value"] is None for result in others)
    assert {line["test"] for line in found["prescription"]} == {"acuity", "quarter-turns"}
