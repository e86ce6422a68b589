"""AISBench's own numbers, to their printed precision, from its recorded timelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.perf.files import read_timeline
from snellen.perf.metrics import summarize
from snellen.perf.profile_aisbench import summarize_aisbench

GOLDEN = Path(__file__).parent / "data" / "perf"
CASES = sorted(GOLDEN.glob("p*.json"))
STAGES = {"total": "default", "stable": "stable"}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_every_number_is_equal(path: Path, stage: str) -> None:
    expected = json.loads(path.read_text())[STAGES[stage]]
    timeline = read_timeline(path)
    if "exception" in expected:
        with pytest.raises(DataError, match="no stable stage"):
            summarize_aisbench(timeline, stage)
        return
    found = summarize_aisbench(timeline, stage)
    assert found["metrics"] == {name: row[stage] for name, row in expected["metrics_seconds"].items()}
    assert {name: found["common"][name] for name in expected["common"]} == {
        name: row.get(stage) for name, row in expected["common"].items()
    }


def test_our_steady_state_has_no_edge_bias() -> None:
    """Four slots, a cycle of 1.001 s: the true rate is 3.996/s; AISBench reports 5.30/s."""
    path = GOLDEN / "p03_closed_loop_c4_5waves.json"
    ours: dict[str, Any] = summarize(read_timeline(path), "stable")
    assert ours["common"]["Request Throughput"] == pytest.approx(4 / 1.001, rel=1e-9)
    assert summarize_aisbench(read_timeline(path), "stable")["common"]["Request Throughput"] == 5.3015


def test_one_token_replies_have_no_time_per_token() -> None:
    """AISBench averages zeros in (25 ms); the requests that decode need 50 ms a token."""
    path = GOLDEN / "p09_one_token_outputs_mixed.json"
    assert summarize(read_timeline(path))["metrics"]["TPOT"]["Average"] == pytest.approx(0.05, abs=1e-12)
    assert summarize_aisbench(read_timeline(path))["metrics"]["TPOT"]["Average"] == 0.025
