"""Files of others become chains: who said what, which picture stands where, and what cannot be read is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import DataError
from snellen.kits.train.chains import Chain, mark_control, message_of, read_chains


def chains_of(folder: Path, *rows: dict[str, Any]) -> list[Chain]:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(read_chains(path))


LLAVA = {
    "id": "1",
    "image": "a.png",
    "conversations": [
        {"from": "human", "value": "<image>\nWhat is it?"},
        {"from": "gpt", "value": "I see fur. So a cat."},
        {"from": "human", "value": "Is it old?"},
        {"from": "gpt", "value": "Its face is grey. So yes."},
    ],
}


def test_a_conversation_gives_one_chain_a_reply_each_with_what_was_said_before(tmp_path: Path) -> None:
    first, second = chains_of(tmp_path, LLAVA)
    assert [turn.role for turn in first.turns] == ["user"] and first.reply == "I see fur. So a cat."
    assert [turn.role for turn in second.turns] == ["user", "assistant", "user"]
    assert second.turns[1].text == first.reply and second.reply == "Its face is grey. So yes."
    assert [image.ref for image in second.pictures] == [str(tmp_path / "a.png")]


@pytest.mark.parametrize(
    "row",
    [
        {"images": ["a.png"], "messages": [{"role": "user", "content": "<image>What?"}, {"role": "assistant", "content": "A. B."}]},
        {"image": "a.png", "conversations": [{"from": "human", "value": "What?"}, {"from": "gpt", "value": "A. B."}]},
        {"images": ["a.png"], "prompt": "What?", "completion": "A. B."},
        {"image": "a.png", "question": "What?", "rationale": "A. B."},
        {"messages": [{"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "What?"}]},
                      {"role": "assistant", "content": [{"type": "text", "text": "A. B."}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a.png"}}, {"type": "text", "text": "What?"}]},
                      {"role": "assistant", "content": "A. B."}]},
    ],
)  # fmt: skip
def test_every_form_gives_the_same_chain(tmp_path: Path, row: dict[str, Any]) -> None:
    (chain,) = chains_of(tmp_path, row)
    assert chain.reply == "A. B." and chain.turns[-1].text == "What?"
    assert [image.ref for image in chain.pictures] == [str(tmp_path / "a.png")]
    content = message_of(chain.turns[-1])["content"]
    assert content == [{"type": "image"}, {"type": "text", "text": "What?"}]


def test_several_pictures_stand_where_their_markers_do(tmp_path: Path) -> None:
    row = {
        "images": ["a.png", "b.png"],
        "messages": [
            {"role": "user", "content": "First <image> then <image>, same?"},
            {"role": "assistant", "content": "No."},
        ],
    }
    (chain,) = chains_of(tmp_path, row)
    kinds = [part.get("text", "IMAGE") for part in message_of(chain.turns[0])["content"]]
    assert kinds == ["First ", "IMAGE", " then ", "IMAGE", ", same?"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"images": ["a.png"], "messages": [{"role": "user", "content": "<image><image>x"}, {"role": "assistant", "content": "y"}]}, "more <image> markers than pictures (1)"),
        ({"images": ["a.png", "b.png"], "messages": [{"role": "user", "content": "<image>x"}, {"role": "assistant", "content": "y"}]}, "2 pictures and 1 <image> markers"),
        ({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": " "}]}, "reply 1 of the model is empty"),
        ({"messages": [{"role": "assistant", "content": "y"}]}, "answers nothing that a user said"),
        ({"messages": [{"role": "user", "content": "x"}]}, "nothing the model should reply"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "unknown speaker 'bot'"),
        ({"messages": ["x"]}, "turn 1: a turn is an object"),
        ({"caption": "x"}, "no conversation; known fields"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "not 'audio'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_by_record(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=r"rows.jsonl record 2"):
        chains_of(tmp_path, {"prompt": "a", "completion": "b"}, row)
    with pytest.raises(DataError) as error:
        chains_of(tmp_path, row)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_preference_keeps_its_worse_reply(tmp_path: Path) -> None:
    (chain,) = chains_of(tmp_path, {"prompt": "x", "chosen": "good", "rejected": "bad"})
    assert (chain.reply, chain.rejected) == ("good", "bad")


@given(st.lists(st.sampled_from(["<image>", "word ", "more "]), min_size=1, max_size=8))
def test_every_marker_shows_one_picture_and_no_text_is_lost(pieces: list[str]) -> None:
    from snellen.kits.train.chains import Finder

    text = "".join(pieces)
    count = text.count("<image>")
    finder = Finder({"images": [f"{n}.png" for n in range(count)], "prompt": text}, Path("/p"), "here")
    turn = finder.turn("user", text)
    finder.check_all_used()
    assert len(turn.images) == count
    assert "".join("<image>" if not isinstance(part, str) else part for part in turn.arrange([0] * count)) == text


def test_a_control_word_stands_before_what_the_user_says(tmp_path: Path) -> None:
    from msgspec.structs import replace

    (chain,) = chains_of(tmp_path, {"images": ["a.png"], "prompt": "<image>What?", "completion": "A. B."})
    good, bad = (mark_control(replace(chain, good=verdict), ("<good>", "<bad>")) for verdict in (True, False))
    assert good.turns[-1].text == "<good> What?" and bad.turns[-1].text == "<bad> What?"
    assert message_of(good.turns[-1])["content"] == [{"type": "image"}, {"type": "text", "text": "<good> What?"}]
