"""Limits that are known, from a card or an earlier refusal, end a trial before a request that would be refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from look_doubles import ask_all, box_call, chat, look_task, sample
from snellen.core.looks import LookEnd, end_of
from snellen.store.reader import RunReader

pytestmark = pytest.mark.usefixtures("drawn_here")
FULL = {"error": {"message": "This model's maximum context length is 1,000 tokens.", "code": "context_length_exceeded"}}


def pictures_of(body: dict[str, Any]) -> int:
    return str(body["messages"]).count("'image_url': {")


def looker(context: int = 10**9, pictures: int = 10**9) -> Any:
    """Return a server that looks for ever, and refuses what passes its limits.

    Each turn adds 300 tokens to the prompt: 290 of its reply and 10 of the result.
    """

    def says(body: dict[str, Any], number: int) -> Any:
        shown = pictures_of(body)
        if shown > pictures:
            return 400, {"error": {"message": f"At most {pictures} image(s) may be provided in one prompt."}}
        given = 300 * shown - 200
        if given + (body.get("max_tokens") or body.get("max_completion_tokens") or 0) > context:
            return 400, FULL
        usage = {"prompt_tokens": given, "completion_tokens": 290}
        if body.get("tool_choice") == "none":
            return chat("a cat", usage=usage)
        return chat(None, [box_call(0, 0, 1000 - 100 * shown, 500)], usage=usage)

    return says


def ends(folder: Path) -> list[LookEnd | None]:
    with RunReader(folder) as reader:
        return [end_of(trial.prediction) for trial in reader.trials("t")]


@pytest.mark.parametrize(
    ("server", "known", "end", "asked"),
    [
        ({"pictures": 3}, {"pictures": 3}, "pictures", 4),
        ({"pictures": 3}, {}, "pictures", 5),
        ({"context": 1000}, {"context": 1000}, "context", 4),
        ({"context": 1000}, {}, "context", 5),
        ({}, {"context": 10**6, "pictures": 100}, "forced", 6),
    ],
)
def test_a_known_limit_ends_the_looks_with_its_class_and_nothing_is_refused(
    tmp_path: Path, server: dict[str, int], known: dict[str, int], end: str, asked: int
) -> None:
    """One refused request is the difference between what was known and what had to be learnt."""
    task = look_task({"max_turns": 6, **known}, max_tokens=50)
    told = ask_all(tmp_path / "run", looker(**server), task, [sample(tmp_path)])
    (found,) = ends(tmp_path / "run")
    assert found is not None and found.end == end
    assert len(told.bodies) == asked


@pytest.mark.parametrize(("server", "end"), [({"pictures": 3}, "pictures"), ({"context": 1000}, "context")])
def test_what_one_trial_learnt_spares_the_others_the_refusal(tmp_path: Path, server: dict[str, int], end: str) -> None:
    task, questions = look_task({"max_turns": 9}, max_tokens=50), [sample(tmp_path, number) for number in range(4)]
    told = ask_all(tmp_path / "run", looker(**server), task, questions)
    assert [found and found.end for found in ends(tmp_path / "run")] == [end] * 4
    assert len(told.bodies) == 5 + 3 * 4
