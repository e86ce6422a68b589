"""Tables with very many columns: each name is looked at a few times, however many fields and names a map has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from snellen.core.errors import nearest_name
from snellen.data.loaders import row_map
from snellen.data.loaders.row_map import choose_map, find_places

COLUMNS = tuple(f"k {number} long" for number in range(3_000))


def test_every_column_is_folded_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    folded: Counter[str] = Counter()
    fold = row_map.fold_column.__wrapped__

    def counted(name: str) -> str:
        folded[name] += 1
        return str(fold(name))

    monkeypatch.setattr(row_map, "fold_column", counted)
    row_map._folded.cache_clear()
    rows = choose_map("", dict.fromkeys(COLUMNS, 1)).map
    places = find_places(COLUMNS, rows, offered=True)
    row_map._folded.cache_clear()
    assert not places.fields["question"]
    assert max(folded[name] for name in COLUMNS) <= 5
    assert folded.total() < 6 * len(COLUMNS)


def test_a_wrong_name_is_compared_with_some_of_very_many() -> None:
    asked: list[int] = []

    def names() -> Iterator[str]:
        for number in range(1_000_000):
            asked.append(number)
            yield f"column {number}"

    assert nearest_name("colunm 7", names()) == "column 7"
    assert len(asked) <= 2_000
