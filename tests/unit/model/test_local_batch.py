"""The batch size grows while memory is free, shrinks when it is not, and the run goes on."""

from __future__ import annotations

import pytest

from snellen.core.errors import ModelError
from snellen.core.types import FailureKind
from snellen.model.local.batch_size import BatchSizer, is_out_of_memory, read_free_share


class OutOfMemoryError(RuntimeError):
    pass


def worker(capacity, seen):
    def work(batch):
        if len(batch) > capacity:
            raise OutOfMemoryError("CUDA out of memory")
        seen.append(len(batch))
        return [item * 2 for item in batch]

    return work


def test_it_doubles_until_memory_says_no_and_then_stays_below():
    seen, full = [], []
    sizer = BatchSizer(None, 64, lambda: 0.9, lambda: full.append(1))
    assert sizer.run(list(range(100)), worker(10, seen)) == [item * 2 for item in range(100)]
    assert seen[:2] == [4, 8]
    assert full == [1]
    assert max(seen) == 8
    assert sizer.size == 8
    sizer.run(list(range(40)), worker(10, seen))
    assert max(seen) == 8, "what did not fit once is not tried again"


def test_it_does_not_grow_when_memory_is_short():
    seen = []
    BatchSizer(None, 64, lambda: 0.3).run(list(range(20)), worker(99, seen))
    assert set(seen) == {4}


def test_a_fixed_size_never_grows_but_still_shrinks():
    seen = []
    sizer = BatchSizer(16, 64, lambda: 1.0)
    sizer.run(list(range(40)), worker(5, seen))
    assert max(seen) == 4
    seen.clear()
    BatchSizer(3, 64, lambda: 1.0).run(list(range(9)), worker(99, seen))
    assert seen == [3, 3, 3]


def test_one_request_that_does_not_fit_is_a_typed_failure():
    with pytest.raises(ModelError) as caught:
        BatchSizer(None, 64, lambda: 1.0).run([1], worker(0, []))
    assert caught.value.kind is FailureKind.PAYLOAD


def test_other_errors_pass_through():
    def work(batch):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        BatchSizer(None, 64, lambda: 1.0).run([1, 2], work)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CUDA out of memory. Tried", True),
        ("DefaultCPUAllocator: can't allocate memory", True),
        ("shape mismatch", False),
    ],
)
def test_out_of_memory_is_recognised(text, expected):
    assert is_out_of_memory(RuntimeError(text)) is expected


def test_free_share_is_read_from_the_machine_and_zero_where_unknown(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n")
    assert read_free_share(meminfo) == 0.25
    assert read_free_share(tmp_path / "absent") == 0.0
