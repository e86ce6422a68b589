"""A question with tools is asked turn by turn, in all its arms, and goes on where it was broken off."""

from __future__ import annotations

import asyncio
import json
from math import inf
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from look_doubles import ask_all, box_call, chat, look_task, picture, sample, without_time
from snellen.core.errors import EnvironmentProblem, FailureKind, SnellenError
from snellen.core.jobs import Item
from snellen.core.looks import end_of
from snellen.core.tasks import Prompt
from snellen.core.types import Prediction, Request, TrialKey
from snellen.kits.looks.inferencer import LOOK, with_others
from snellen.prompt.build import Prompter
from snellen.store.reader import RunReader

pytestmark = pytest.mark.usefixtures("drawn_here")
ARMS = ("base", "plain", "none", "grey", "elsewhere", "whole")


def two_looks(body: dict[str, Any], number: int) -> Any:
    """Zoom twice, the second time into the first crop, then answer."""
    results = sum(message["role"] == "tool" for message in body["messages"])
    if "tools" not in body or results == 2:
        return chat("a cat")
    return chat(None, [box_call(0, 0, 500, 500, picture=results + 1)])


def test_a_trial_with_two_looks_is_stored_turn_by_turn(tmp_path: Path) -> None:
    asked = ask_all(tmp_path / "run", two_looks, look_task({}), [sample(tmp_path)])
    assert len(asked.bodies) == 3 and asked.state.input_tokens == 30
    with RunReader(tmp_path / "run") as reader:
        (trial,) = reader.trials("t")
        turns = reader.turns(TrialKey("t", "0"))
    end = end_of(trial.prediction)
    assert end is not None and (end.end, end.turns, end.calls, end.looks, end.classes) == ("answered", 3, 2, 2, {})
    assert trial.prediction.text == "a cat" and trial.prediction.usage is not None
    assert trial.prediction.usage.input_tokens == 30 and end.tokens == (30, 6)
    looks = [look for turn in turns for look in turn.looks]
    assert [(look.turn, look.picture, look.shown, look.region) for look in looks] == [
        (0, 1, 2, (0, 0, 200, 150)),
        (1, 2, 3, (0, 0, 100, 75)),
    ]
    assert looks[1].image is not None and looks[1].image.edits == ("region:0,0,100,75", "resize:400x300:lanczos")
    last = asked.bodies[2]["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "tool", "user", "assistant", "tool", "user"]
    assert last[1]["tool_calls"][0]["id"] == last[2]["tool_call_id"]


def test_arms_share_the_first_turn_and_differ_in_nothing_but_the_picture(tmp_path: Path) -> None:
    asked = ask_all(tmp_path / "run", two_looks, look_task({}, ARMS), [sample(tmp_path)])
    assert len(asked.bodies) == 1 + 1 + 5 * 2  # plain, the shared turn, and two more an arm
    with RunReader(tmp_path / "run") as reader:
        trials = {trial.prediction.key.variant: trial for trial in reader.trials("t")}
        turns = {arm: reader.turns(TrialKey("t", "0", variant)) for arm, variant in zip(ARMS, _variants(), strict=True)}
    assert set(trials) == set(_variants())
    assert turns["plain"] == []
    told = {arm: [look.told for turn in turns[arm] for look in turn.looks] for arm in ARMS if arm != "plain"}
    assert len({json.dumps(one) for one in told.values()}) == 1
    shown = {arm: [look.image for turn in turns[arm] for look in turn.looks] for arm in ARMS if arm != "plain"}
    assert shown["none"] == [None, None]
    assert all(image is not None and image.edits[-1] == "grey:mean" for image in shown["grey"])
    assert len({json.dumps([one and one.edits for one in images]) for images in shown.values()}) == 5
    end = end_of(trials["look=grey"].prediction)
    assert end is not None and end.shared == 1 and end.turns == 3 and end.tokens == (30, 6)
    assert trials["look=grey"].prediction.usage.input_tokens == 20  # type: ignore[union-attr]


def _variants() -> list[str]:
    return ["base", *(f"look={arm}" for arm in ARMS[1:])]


def test_without_a_call_the_arms_are_copies_and_nothing_more_is_sent(tmp_path: Path) -> None:
    asked = ask_all(tmp_path / "run", lambda body, number: chat("a cat"), look_task({}, ARMS), [sample(tmp_path)])
    assert len(asked.bodies) == 2
    with RunReader(tmp_path / "run") as reader:
        trials = list(reader.trials("t"))
    assert len(trials) == 6 and {trial.prediction.text for trial in trials} == {"a cat"}
    copies = [trial.prediction for trial in trials if trial.prediction.cached]
    assert len(copies) == 4 and all((end_of(one) or pytest.fail()).shared == 1 for one in copies)
    again = ask_all(tmp_path / "run", lambda body, number: (500, {}), look_task({}, ARMS), [sample(tmp_path)])
    assert again.bodies == [] and again.state.resumed == 6


class Killed(Exception):
    """Stands for kill -9: nothing after it is written."""


def dying_after(commits: float, counted: list[int]) -> Any:
    """Return what makes a writer write so many rows and no more; what it wrote is counted."""

    def prepare(writer: Any) -> None:
        insert = writer._insert

        def insert_until(group: Any) -> None:
            if counted[0] >= commits:
                raise Killed
            counted[0] += len(group)
            insert(group)

        writer._insert = insert_until

    return prepare


def test_cut_off_at_every_commit_it_ends_byte_by_byte_as_an_unbroken_run(tmp_path: Path) -> None:
    """The writer dies after its n-th commit, for every n; whoever goes on asks no stored turn again."""
    task, samples, counted = look_task({}, ("base", "plain", "grey")), [sample(tmp_path)], [0]
    whole = ask_all(tmp_path / "whole", two_looks, task, samples, stop_after=dying_after(inf, counted))
    wanted = stored(tmp_path / "whole")
    assert counted[0] == len(whole.bodies) == 6  # plain, the shared turn, two more an arm
    for cut in range(counted[0]):
        folder = tmp_path / f"cut{cut}"
        with pytest.raises(EnvironmentProblem, match="cannot write"):
            ask_all(folder, two_looks, task, samples, stop_after=dying_after(cut, [0]))
        again = ask_all(folder, two_looks, task, samples)
        assert stored(folder) == wanted
        assert len(again.bodies) == len(whole.bodies) - cut  # what was in flight is asked again, and nothing else


def stored(folder: Path) -> tuple[list[Any], list[Any]]:
    """Return trials and turns as they are stored, but for when they came."""
    with RunReader(folder) as reader:
        trials = [(t.request, without_time(t.prediction)) for t in reader.trials("t")]
        keys = sorted({trial[1].key for trial in trials})
        turns = [
            (key, t.number, t.digest, t.request, without_time(t.prediction), t.looks)
            for key in keys
            for t in reader.turns(key)
        ]
    return trials, turns


def whole_picture(body: dict[str, Any], number: int) -> Any:
    """Look at all of the last picture, so that no place elsewhere is left, then answer."""
    looked = any(message["role"] == "tool" for message in body["messages"])
    pictures = sum(
        isinstance(part, dict) and part["type"] == "image_url"
        for message in body["messages"]
        for part in message["content"] or ()
    )
    return chat("a cat") if looked else chat(None, [box_call(0, 0, 1000, 1000, picture=pictures)])


def test_a_question_without_a_gold_region_has_no_gold_arm(tmp_path: Path) -> None:
    task = look_task({}, ("base", "grey", "gold"))
    known, unknown = sample(tmp_path, 0, meta={"box": [10, 10, 30, 30]}), sample(tmp_path, 1)
    ask_all(tmp_path / "run", whole_picture, task, [known, unknown])
    with RunReader(tmp_path / "run") as reader:
        gold = [one.prediction for one in reader.trials("t") if one.prediction.key.variant == "look=gold"]
    assert gold[0].text == "a cat" and gold[0].failure is None
    assert gold[1].failure is not None and gold[1].failure.kind is FailureKind.SKIPPED
    assert "`box`" in gold[1].failure.message


def test_the_gold_region_is_that_of_the_first_picture_whichever_was_looked_at(tmp_path: Path) -> None:
    first, second = picture(tmp_path, "first.png"), picture(tmp_path, "second.png", (300, 900))
    two = replace(sample(tmp_path), images=(first, second), meta={"box": [100, 100, 140, 140]})
    ask_all(tmp_path / "run", whole_picture, look_task({}, ("base", "gold")), [two])
    with RunReader(tmp_path / "run") as reader:
        (look,) = [look for turn in reader.turns(TrialKey("t", "0", "look=gold")) for look in turn.looks]
    assert look.picture == 2 and look.image is not None
    assert look.image.ref == first.ref and "region:80,80,160,160" in look.image.edits


def test_where_no_place_is_free_elsewhere_is_another_picture_for_every_question(tmp_path: Path) -> None:
    same = [sample(tmp_path, number) for number in range(2)]
    shown = [replace(same[0], id="a"), replace(same[0], id="b"), same[1], replace(same[1], id="c")]
    ask_all(tmp_path / "run", whole_picture, look_task({}, ("base", "elsewhere")), shown)
    with RunReader(tmp_path / "run") as reader:
        for one in shown:
            (look,) = [look for turn in reader.turns(TrialKey("t", one.id, "look=elsewhere")) for look in turn.looks]
            assert look.image is not None and look.image.ref != one.images[0].ref, one.id
            assert "grey:mean" not in look.image.edits


def test_questions_that_share_one_picture_or_have_none_are_asked_in_their_order(tmp_path: Path) -> None:
    one = sample(tmp_path)
    items = [Item(place, replace(one, id=str(place))) for place in range(200)]
    drawn = with_others(iter(items))
    assert [item.position for item, other in drawn] == list(range(200))


def test_whoever_only_tries_a_job_need_not_know_of_turns(tmp_path: Path) -> None:
    """The plan tries jobs with a reply of its own to learn what they cost: no turn may be asked for ever."""
    asked: list[Request] = []

    async def ask(item: Item, request: Request, settled: Prediction | None = None, **_: Any) -> Prediction:
        if settled is None:
            asked.append(request)
        return settled or Prediction(request.key, text="a cat")

    task = look_task({}, ("base", "plain", "grey"))
    prompter = Prompter(task, Prompt(template="{question}"), seed=0)
    for job in LOOK.plan(task, [Item(0, sample(tmp_path))], prompter):
        asyncio.run(asyncio.wait_for(job.run(ask), 10))
    assert len(asked) == 2


def test_a_picture_that_cannot_be_opened_fails_its_arms_and_nothing_else(tmp_path: Path) -> None:
    broken = sample(tmp_path, 1)
    (tmp_path / "1.png").write_bytes(b"no picture")
    task = look_task({}, ("base", "grey"))
    ask_all(tmp_path / "run", two_looks, task, [broken, sample(tmp_path, 2)])
    with RunReader(tmp_path / "run") as reader:
        failures = {(t.prediction.key.sample, bool(t.prediction.failure)) for t in reader.trials("t")}
    assert failures == {("1", True), ("2", False)}


@pytest.mark.parametrize(
    "options",
    [{"tools": ["paint"]}, {"dialect": "morse"}, {"max_turns": 1}, {"dialect": "deepeyes", "tools": ["turn"]}],
)
def test_options_that_cannot_be_are_refused_before_anything_is_asked(options: dict[str, Any]) -> None:
    with pytest.raises(SnellenError):
        LOOK.read_options(look_task(options))


@pytest.mark.parametrize(
    ("preset", "call"),
    [
        (
            "qwen3-vl",
            '<tool_call>{"name": "image_zoom_in_tool", "arguments": {"bbox_2d": [0, 0, 500, 500], "label": "x", "img_idx": 0}}</tool_call>',
        ),
        (
            "deepeyes",
            '<tool_call>{"name": "image_zoom_in_tool", "arguments": {"bbox_2d": [0, 0, 200, 150]}}</tool_call>',
        ),
        ("mini-o3", '<grounding>{"bbox_2d": [0, 0, 0.5, 0.5], "source": "original_image"}</grounding>'),
        (
            "pixel-reasoner",
            '<tool_call>{"name": "crop_image_normalized", "arguments": {"bbox_2d": [0, 0, 0.4, 0.4], "target_image": 1}}</tool_call>',
        ),
    ],
)
def test_presets_are_asked_and_read_in_their_own_words(tmp_path: Path, preset: str, call: str) -> None:
    def says(body: dict[str, Any], number: int) -> Any:
        return chat("a cat" if number else call)

    asked = ask_all(tmp_path / "run", says, look_task({"dialect": preset}), [sample(tmp_path)])
    assert "tools" not in asked.bodies[0] and "bbox_2d" in asked.bodies[0]["messages"][0]["content"]
    with RunReader(tmp_path / "run") as reader:
        (look,) = [look for turn in reader.turns(TrialKey("t", "0")) for look in turn.looks]
    assert look.problem == "" and look.region == (0, 0, 200, 150)
    shown = asked.bodies[1]["messages"][-1]["content"]
    words = [part.get("text", "").strip() for part in shown if part["type"] == "text"]
    own = {"mini-o3": ["observation_1:"], "pixel-reasoner": ["Picture 2:"]}.get(preset, [])
    assert "".join(words) == "".join(("<tool_response>", *own, "</tool_response>")), "numbers are those of its calls"
