"""Rh, Rcot, Ro, Cf, Cb of outside files against the recorded counts, in both conventions."""

import json
from pathlib import Path

import pytest

from snellen import score_predictions

GOLDEN = Path(__file__).parent / "data" / "cure" / "consistency.json"


@pytest.mark.parametrize(("convention", "key"), [("conditional", "conditional"), ("over-n", "over_N")])
def test_items_in_one_file(tmp_path: Path, convention: str, key: str) -> None:
    sets = json.loads(GOLDEN.read_text())["sets"]
    assert sets
    for golden in sets:
        pairs = zip(golden["ground_truth"], golden["predictions"], strict=True)
        path = tmp_path / "items.json"
        path.write_text(json.dumps([{"ground_truth": truth, "prediction": found} for truth, found in pairs]))
        result = score_predictions(path, "Consistency", convention=convention)
        assert result["metrics"]["Rh"]["n"] == golden["expected"]["N"]
        for name, value in golden["expected"][key].items():
            assert result["metrics"][name]["value"] == (None if value is None else pytest.approx(value, abs=1e-9)), (
                golden["id"],
                name,
            )
        assert result["metrics"]["step_accuracy"]["value"] == pytest.approx(
            golden["expected"]["step_accuracy"], abs=1e-9
        )
