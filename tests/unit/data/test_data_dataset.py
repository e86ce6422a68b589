"""A dataset is kept when it is small and light, and read again when it is not; pictures are named as a Path names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import snellen.data.dataset as module
from snellen.core.errors import DataError
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Form, Image, Sample
from snellen.data.dataset import Dataset, survey


class CountingLoader:
    """Gives the same samples and counts how often it is asked."""

    def __init__(self, *samples: Sample) -> None:
        self.samples, self.calls = samples, 0

    def __call__(self, task: Task, context: LoadContext) -> Iterator[Sample]:
        self.calls += 1
        return iter(self.samples)


def sample(number: int, ref: str = "", **fields: object) -> Sample:
    return Sample(str(number), "d", Form.OPEN, "Why?", (Image(ref),) if ref else (), **fields)  # type: ignore[arg-type]


def reads(*samples: Sample) -> int:
    loader = CountingLoader(*samples)
    dataset = Dataset(Task("t", {}), loader, LoadContext())
    assert list(dataset) == list(dataset) == list(samples)
    return loader.calls


def test_small_data_is_read_once() -> None:
    assert reads(sample(1), sample(2), sample(3)) == 1


def test_many_samples_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_SAMPLES", 2)
    assert reads(sample(1), sample(2)) == 1
    assert reads(sample(1), sample(2), sample(3)) == 2


@pytest.mark.parametrize(
    "heavy", [sample(1, "data:image/png;base64," + "A" * 900), sample(1, meta={"context": "word " * 200})]
)
def test_heavy_samples_are_read_again(monkeypatch: pytest.MonkeyPatch, heavy: Sample) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 1500)
    assert reads(heavy, sample(2)) == 1
    assert reads(heavy, heavy) == 2


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ((sample(1), sample(2), sample(3, answers=("no",))), "row '3' changed after the run was planned"),
        ((sample(2), sample(1), sample(3)), "row '2' changed"),
        ((sample(1), sample(2), sample(3), sample(4)), "row '4' changed"),
        ((sample(1), sample(2)), "2 of 3 rows are left"),
        ((), "0 of 3 rows are left"),
    ],
)
def test_data_that_changed_after_its_survey_is_refused_by_its_first_row(
    later: tuple[Sample, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_SAMPLES", 2)
    loader = CountingLoader(sample(1), sample(2), sample(3))
    dataset = Dataset(Task("t", {}), loader, LoadContext())
    survey(dataset)
    dataset = replace(dataset, tagged=True)
    assert [each.id for each in dataset] == ["1", "2", "3"]
    loader.samples = later
    with pytest.raises(DataError, match=said):
        list(dataset)


def test_half_a_pass_keeps_nothing() -> None:
    loader = CountingLoader(sample(1), sample(2))
    dataset = Dataset(Task("t", {}), loader, LoadContext())
    assert next(iter(dataset)).id == "1"
    assert [each.id for each in dataset] == ["1", "2"]


def test_pictures_count_by_name_wherever_they_lie(tmp_path: Path) -> None:
    def found(ref: str) -> module.Survey:
        whole = survey(Dataset(Task("t", {}), CountingLoader(sample(1, ref)), LoadContext()))
        return msgspec.structs.replace(whole, examples=())

    file = tmp_path / "a.png"
    file.write_bytes(b"x")
    for same in (f"{file}/", f"{file}/.", f"{tmp_path}//a.png"):
        assert found(same) == found(str(file))
        assert not found(same).missing_count
    assert found("/elsewhere/a.png").fingerprint == found(str(file)).fingerprint != found("b.png").fingerprint
    assert [found(ref).missing_count for ref in ("b.png", str(tmp_path), "A" * 5000, "a\0b", "data:,x")] == [
        1,
        1,
        1,
        1,
        0,
    ]
