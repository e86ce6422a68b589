"""What an LLM replies: used, repaired by rule, asked again, or set aside with the reason."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.config import convert
from snellen.core.errors import DataError, UsageError
from snellen.core.jobs import Item
from snellen.core.types import Prediction, Request
from snellen.data.catalog import Catalog
from snellen.kits.curate.draft import CHAIN, WRONG, Draft, Drafting, DraftJob, DraftPrompt, plan_drafts, read_draft
from snellen.kits.curate.library import read_sources
from snellen.kits.curate.records import SetAside, Source, shuffled
from snellen.kits.curate.replies import UnusableReplyError, read_candidates, read_chain
from snellen.kits.mock.drafter import STYLES, check_style, draft_reply

GOOD_CHAIN = json.dumps(
    {
        "steps": [
            {"question": "What is it?", "answer": "a red lamp"},
            {"question": "Whose is it?", "answer": "a miner's"},
        ]
    }
)
FIVE = ["one", "two", "three", "four", "five"]
GOOD_WRONG = json.dumps({"steps": [FIVE, FIVE], "inference": FIVE})


def drafting() -> Drafting:
    return Drafting(convert(Catalog().card("curate", "draft"), DraftPrompt, "draft"), 0)


def steps(count: int) -> str:
    return json.dumps({"steps": [{"question": f"q{i}?", "answer": f"a{i}"} for i in range(count)]})


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I cannot see the picture.", "no JSON object"),
        (GOOD_CHAIN[:-10], "the JSON does not fit"),  # cut: only an inner object is whole
        ("{}", "missing required field `steps`"),
        (steps(0), "0 steps"),
        (steps(9), "9 steps"),
        (json.dumps({"steps": [{"question": "q?", "answer": "a"}] * 2}), "same question"),
        (
            json.dumps({"steps": [{"question": "q?", "answer": " "}, {"question": "r?", "answer": "a"}]}),
            "step 1 has no answer",
        ),
        (json.dumps({"steps": "none"}), "does not fit"),
        ("{" * 2000, "no JSON object"),
    ],
)
def test_a_chain_that_cannot_be_used_says_why(reply: str, reason: str) -> None:
    with pytest.raises(UnusableReplyError, match=reason):
        read_chain(reply)


def test_prose_and_fences_around_the_json_do_not_matter() -> None:
    assert read_chain(f"Sure!\n```json\n{GOOD_CHAIN}\n```\nDone.") == read_chain(GOOD_CHAIN)


def test_repeats_and_copies_of_the_right_answer_are_taken_out_first() -> None:
    told = json.dumps({"steps": [["Lamp.", "one", "ONE.", *FIVE[1:]]], "inference": [*FIVE, "six"]})
    found = read_candidates(told, ["lamp"], "it burns")
    assert found.steps == (("one", "two", "three", "four", "five"),) and found.inference == tuple(FIVE)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"steps": [["one", "two", "two ", "Two."]], "inference": FIVE}, "step 1 has 2 distinct wrong candidates"),
        ({"steps": [], "inference": FIVE}, "candidates for 0 steps"),
        ({"steps": [FIVE], "inference": ["It burns", *FIVE[1:]]}, "the inference has 4 distinct"),
    ],
)
def test_too_few_candidates_say_where(told: object, reason: str) -> None:
    with pytest.raises(UnusableReplyError, match=reason):
        read_candidates(json.dumps(told), ["lamp"], "it burns")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert 2 <= len(read_chain(text).steps) <= 4
    except UnusableReplyError as error:
        assert str(error)


@given(st.lists(st.text(min_size=1, max_size=5), min_size=6, max_size=6, unique=True), st.integers(0, 99))
def test_shuffling_keeps_the_answer(texts: list[str], seed: int) -> None:
    question = shuffled("q", texts[0], texts[1:], seed)
    assert (
        question.answer == texts[0]
        and sorted(question.candidates) == sorted(texts)
        and set(question.wrong) == set(texts[1:])
    )


def ask_with(replies: list[str]) -> tuple[list[Request], dict[tuple[str, int], Prediction], DraftJob]:
    source = Source("s1", "none.png", "a red lamp", "a miner works here")
    [job] = plan_drafts([source], drafting())
    asked: list[Request] = []
    stored: dict[tuple[str, int], Prediction] = {}

    async def ask(item: Item, request: Request) -> Prediction:
        asked.append(request)
        prediction = Prediction(request.key, text=replies[len(asked) - 1])
        stored[request.key.variant, request.key.repeat] = prediction
        return prediction

    asyncio.run(job.run(ask))
    return asked, stored, job


def test_an_unusable_reply_is_asked_again_with_the_reason() -> None:
    asked, stored, job = ask_with(
        ["no idea", GOOD_CHAIN, json.dumps({"steps": [FIVE[:2], FIVE], "inference": FIVE}), GOOD_WRONG]
    )
    assert [(request.key.variant, request.key.repeat) for request in asked] == [
        (CHAIN, 0),
        (CHAIN, 1),
        (WRONG, 0),
        (WRONG, 1),
    ]
    assert "no JSON object" in asked[1].messages[-1].text and "step 1 has 2 distinct" in asked[3].messages[-1].text
    assert asked[0].params.seed != asked[1].params.seed
    assert {request.key for request in asked} <= set(job.keys)
    draft = read_draft(job.item.sample, stored, drafting(), "m")
    assert isinstance(draft, Draft) and draft.provenance == {"model": "m", "chain_attempts": 2, "candidate_attempts": 2}
    assert draft.inference.answer == "a miner works here" and draft.steps[0].answer == "a red lamp"


def test_after_the_last_attempt_it_is_set_aside_with_the_reason() -> None:
    asked, stored, job = ask_with(["no", "no", steps(9)])
    assert len(asked) == 3
    aside = read_draft(job.item.sample, stored, drafting(), "m")
    assert isinstance(aside, SetAside) and "9 steps" in aside.reason and "after 3 attempts" in aside.reason


def test_what_was_not_asked_yet_waits() -> None:
    _, stored, job = ask_with([GOOD_CHAIN, GOOD_WRONG])
    del stored[WRONG, 0]
    aside = read_draft(job.item.sample, stored, drafting(), "m")
    assert isinstance(aside, SetAside) and "run the same command again" in aside.reason


def test_sources_that_cannot_be_used_are_set_aside_by_name(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    rows = [
        {"id": "ok", "image": "a.png", "box": [30, 20, 30, 30], "clue": "c", "inference": "i"},
        {"id": "dead", "image": "http://example.org/gone.png", "box": None, "clue": "c", "inference": "i"},
        {"id": "mute", "image": "a.png", "clue": "c", "inference": " "},
        {"id": "odd", "image": "a.png", "box": [1, 2], "clue": "c", "inference": "i"},
        {"id": "ok", "image": "a.png", "clue": "c", "inference": "again"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    good, *bad = read_sources(path)
    assert isinstance(good, Source) and good.box == (30, 20, 10, 10) and (good.width, good.height) == (40, 30)
    reasons = [each.reason for each in bad if isinstance(each, SetAside)]
    assert len(reasons) == 4
    for reason, part in zip(
        reasons, ("does not exist", "inference is missing", "not left, top, width, height", "occurs twice"), strict=True
    ):
        assert part in reason
    with pytest.raises(DataError, match=r"no column 'clues'.*did you mean 'clue'"):
        list(read_sources(path, columns={"clue": "clues"}))
    with pytest.raises(DataError, match="no such field"):
        list(read_sources(path, columns={"hint": "clue"}))


def test_the_mock_drafter_writes_what_it_says() -> None:
    sample = plan_drafts(
        [Source("s", "x.png", "a red circle near the left side", "a baker waits here with the circle")], drafting()
    )
    prompt = drafting().request(next(iter(sample)).item.sample, CHAIN, 0, None, "").messages[-1].text
    for style in STYLES:
        assert draft_reply(prompt, style, 0) == draft_reply(prompt, style, 0)
    read_chain(draft_reply(prompt, "good", 0))
    unusable = 0
    for seed in range(40):
        try:
            read_chain(draft_reply(prompt, "malformed", seed))
        except UnusableReplyError:
            unusable += 1
    assert 10 < unusable < 35
    assert draft_reply("What is in the picture?", "good", 0) is None
    with pytest.raises(UsageError, match="did you mean 'sloppy'"):
        check_style("slopy")
