"""Pickles read as data: equal to Python's own reader on plain data, and never run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.kits.reform.corpus import read_pickled

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5) | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(value=PLAIN, protocol=st.integers(3, 5))
def test_plain_data(tmp_path_factory: pytest.TempPathFactory, value: Any, protocol: int) -> None:
    path = tmp_path_factory.mktemp("pickled") / "x.p"
    path.write_bytes(pickle.dumps(value, protocol))
    assert read_pickled(path) == value


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_old_protocols(tmp_path: Path, protocol: int) -> None:
    value = [{"sent": "the left cät", "ids": [1, 2**40, -3], "box": (1.5, 2.0), "none": None}] * 2
    (tmp_path / "x.p").write_bytes(pickle.dumps(value, protocol))
    assert read_pickled(tmp_path / "x.p") == value


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch run-me",)


def test_code_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.p").write_bytes(pickle.dumps([1, Evil()]))
    with pytest.raises(DataError, match="can run code"):
        read_pickled(tmp_path / "x.p")
    assert not (tmp_path / "run-me").exists()


def test_cut_files(tmp_path: Path) -> None:
    whole = pickle.dumps([{"a": "b" * 50}])
    for length in (0, 5, len(whole) - 1):
        (tmp_path / "x.p").write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"x\.p is cut off"):
            read_pickled(tmp_path / "x.p")
