"""Result files of vLLM and guidellm become timelines; what they do not hold is not invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snellen.core.errors import DataError
from snellen.perf.files import read_timeline
from snellen.perf.metrics import summarize

VLLM: dict[str, Any] = {
    "duration": 3.0, "completed": 2, "request_throughput": 0.66, "max_concurrency": 2, "num_prompts": 3,
    "input_lens": [10, 20, 5], "output_lens": [3, 2, 0], "ttfts": [0.5, 0.25, 0.0], "itls": [[0.1, 0.2], [0.3], []],
    "start_times": [100.0, 101.0, 102.0], "errors": ["", "", "Service Unavailable"],
}  # fmt: skip


def guidellm_request(start: float, **fields: Any) -> dict[str, Any]:
    timings = {
        "targeted_start": start - 0.25,
        "request_start": start,
        "first_token_iteration": start + 0.5,
        "last_token_iteration": start + 1.0,
    }
    return {
        "request_id": f"r{start}",
        "prompt_tokens": 8,
        "output_tokens": 6,
        "info": {"timings": {**timings, "request_end": start + 1.1}},
        **fields,
    }


def read(tmp_path: Path, data: dict[str, Any]) -> Any:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(data))
    return read_timeline(path)


def test_vllm(tmp_path: Path) -> None:
    timeline = read(tmp_path, VLLM)
    summary = summarize(timeline)
    assert summary["metrics"]["TTFT"]["Max"] == pytest.approx(0.5)
    assert summary["metrics"]["TPOT"]["Max"] == pytest.approx(0.3)
    assert summary["metrics"]["ITL"]["N"] == 3
    assert summary["common"]["Failed Requests"] == 1
    assert timeline.requests[2].message == "Service Unavailable"
    assert summary["common"]["Max Concurrency"] == 2


def test_vllm_without_send_moments_uses_its_duration_and_says_so(tmp_path: Path) -> None:
    summary = summarize(read(tmp_path, {key: value for key, value in VLLM.items() if key != "start_times"}))
    assert summary["common"]["Benchmark Duration"] == 3.0
    assert summary["common"]["Request Throughput"] == pytest.approx(2 / 3.0)
    assert any("send moments are unknown" in note for note in summary["notes"])


@pytest.mark.parametrize(
    ("change", "message"),
    [({"ttfts": None, "itls": None}, "--save-detailed"), ({"input_lens": [1]}, "do not fit together")],
)
def test_vllm_without_detail_says_how_to_get_it(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    data = {key: value for key, value in {**VLLM, **change}.items() if value is not None}
    with pytest.raises(DataError, match=message):
        read(tmp_path, data)


def test_guidellm(tmp_path: Path) -> None:
    requests = {
        "successful": [guidellm_request(10.0), guidellm_request(11.0)],
        "errored": [guidellm_request(12.0)],
        "incomplete": [],
    }
    timeline = read(
        tmp_path,
        {"benchmarks": [{"requests": requests, "config": {"strategy": {"type_": "concurrent", "streams": 2}}}]},
    )
    summary = summarize(timeline)
    assert summary["metrics"]["TTFT"]["Average"] == pytest.approx(0.5)
    assert summary["metrics"]["E2ELScheduled"]["Average"] == pytest.approx(1.25)
    assert summary["metrics"]["TPOT"]["Average"] == pytest.approx(0.1)
    assert "ITL" not in summary["metrics"]
    assert summary["errors"] == {"server": 1}


def test_an_older_guidellm_with_flat_times(tmp_path: Path) -> None:
    flat = {"start_time": 5.0, "end_time": 6.0, "time_to_first_token_ms": 250.0, "prompt_tokens": 3, "output_tokens": 4}
    timeline = read(tmp_path, {"benchmarks": [{"requests": {"successful": [flat]}}]})
    assert timeline.requests[0].first_content == 5.25


@pytest.mark.parametrize(
    ("benchmarks", "message"),
    [
        ([{}, {}], "2 benchmarks"),
        ([{}], "no `requests`"),
        ([{"requests": {"successful": [{}]}}], "no start or end time"),
    ],
)
def test_wrong_guidellm_reports(tmp_path: Path, benchmarks: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, {"benchmarks": benchmarks})
