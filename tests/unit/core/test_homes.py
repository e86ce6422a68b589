"""Parts of a run: each home whole, every trial in exactly one part, the same in every process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import UsageError
from snellen.core.homes import Assignment, Part, home_of_sample, parse_part
from snellen.core.types import Form, Image, Sample


def sample(name: str, group: str | None = None, picture: str = "") -> Sample:
    images = (Image(picture),) if picture else ()
    return Sample(name, "d", Form.OPEN, "What?", images=images, group=group)


def test_a_group_comes_before_pictures_and_pictures_before_the_sample() -> None:
    assert home_of_sample("t", sample("1", "g", "/a.png")) == home_of_sample("t", sample("2", "g", "/b.png"))
    assert home_of_sample("t", sample("1", None, "/a.png")) == home_of_sample("t", sample("2", None, "/a.png"))
    assert home_of_sample("t", sample("1")) != home_of_sample("t", sample("2"))
    assert home_of_sample("t", sample("1", "g")) != home_of_sample("u", sample("1", "g"))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), min_size=1, max_size=200), st.integers(1, 70))
def test_every_home_is_in_one_part_and_parts_follow_the_plan(rows: list[tuple[int, int]], count: int) -> None:
    assignment = Assignment()
    for home, trials in rows:
        assignment.add(b"%d" % home, trials)
    parts = [assignment.part_of(b"%d" % home, count) for home, _ in rows]
    assert all(0 <= part < count for part in parts)
    firsts = [part for place, part in enumerate(parts) if rows[place][0] not in [home for home, _ in rows[:place]]]
    assert firsts == sorted(firsts)
    largest = max(sum(trials for home, trials in rows if home == one) for one, _ in rows)
    shares = [sum(trials for (_, trials), part in zip(rows, parts, strict=True) if part == k) for k in range(count)]
    assert max(shares) <= sum(shares) / count + largest


def test_another_process_with_another_hash_seed_finds_the_same_home() -> None:
    code = (
        "from snellen.core.homes import home_of_sample; from snellen.core.types import Form, Sample;"
        "print(home_of_sample('t', Sample('1', 'd', Form.OPEN, 'What?', group='g')).hex())"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert said == home_of_sample("t", sample("1", "g")).hex()


@pytest.mark.parametrize("text", ["64/64", "65/64", "0/0", "3", "3/", "-1/4", "a/b", "1.0/4"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--shard"):
        parse_part(text)
    assert parse_part("63/64") == Part(63, 64)
