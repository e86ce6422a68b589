"""ReForm-Eval's prompt functions, one by one: option strings, prompt assembly, what a reply puts into the history."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Sample, Turn
from snellen.extract.choice import chosen_text
from snellen.infer.dialogue import most_common
from snellen.prompt.build import Prompter
from snellen.prompt.history import say_answer, say_question
from snellen.prompt.place import make_marks
from snellen.prompt.styles import Speech, Style, load_style

GOLDEN = Path(__file__).parent / "data" / "reform"

LAYOUT = Prompt(
    template="{question} {options}",
    option_format="({mark}) {text}",
    option_separator="; ",
    options_format="Options: {options}.",
)
OLD_LIMIT = {"number": 9, "upper": 26}


@cache
def rows(name: str) -> list[dict[str, Any]]:
    return list(json.loads((GOLDEN / name).read_text(encoding="utf-8"))["rows"])


def build(question: str, options: tuple[str, ...], marks: str, seed: int = 0) -> str:
    prompter = Prompter(Task("t", {}), msgspec.structs.replace(LAYOUT, marks=marks), seed)
    sample = Sample("1", "d", Form.CHOICE, question, options=options, answers=options[:1])
    return prompter.build(sample).messages[-1].text


@pytest.mark.parametrize("row", rows("fn_question_with_options.json"), ids=str)
def test_question_with_options(row: dict[str, Any]) -> None:
    item = row.get("item") or {"question": "q", "answer_options": [f"o{k}" for k in range(row["n_options"])]}
    options, marks = tuple(item.get("answer_options") or ()), row["option_mark"] or "random"
    if "error" in row["out"]:  # theirs ran out of labels; ours go on
        ours = build(item["question"], options, marks)
        assert ours.count("(") == len(options)
    elif marks == "random":
        known = {build(item["question"], options, style) for style in ("upper", "lower", "number")}
        drawn = {build(item["question"], options, "random", seed) for seed in range(40)}
        assert row["out"]["ok"] in known
        assert drawn == known
    elif options:
        assert build(item["question"], options, marks) == row["out"]["ok"]
    else:  # theirs leaves an empty "Options: "
        assert build(item["question"], options, marks) == item["question"]


def style_of(row: dict[str, Any]) -> Style:
    """The same separators, roles and tags as data."""
    told, kind = row["kwargs"], row["class"]
    end, end2 = told.get("sep"), told.get("sep2")
    if kind == "SingleChoiceProcessor":
        return msgspec.structs.replace(load_style("question_answer"), roles=tuple(told["roles"]), ends=(end, end2))
    if kind == "BaseProcessor":
        return msgspec.structs.replace(load_style("plain"), ends=(end, end2))
    if kind == "MMGPTSingleChoiceProcessor":
        ends = (end, end if told["sep_style"] == "one" else end2)
        return msgspec.structs.replace(
            load_style("alpaca"), ends=ends, opening="{system}" + end + "Image:\n<image>" + ends[1]
        )
    name = told.get("sep_style", "two")
    changes: dict[str, Any] = {
        "roles": tuple(told.get("roles", ("Question", "Answer"))),
        "image_tag": row["first_query_prefix"] or "",
    }
    changes["turns"] = tuple(tuple(turn) for turn in told.get("init_conv") or ())
    if name in ("one", "two"):
        changes |= {"ends": (end, end if name == "one" else end2), "opening": "{system}" + end}
    return msgspec.structs.replace(load_style(name), system=told.get("system_msg") or "", **changes)


ASSEMBLED = [
    row
    for row in rows("fn_preprocessors.json")
    if "item" in row and "ok" in row["out"] and row["item"] != "no_question"
]


def test_prompt_assembly() -> None:
    items = json.loads((GOLDEN / "fn_preprocessors.json").read_text(encoding="utf-8"))["items"]
    assert len(ASSEMBLED) > 250
    for row in ASSEMBLED:
        item, style = items[row["item"]], style_of(row)
        hidden = row["infer_method"] == "likelihood" or not style.shows_options
        options = [] if hidden else item.get("answer_options") or []
        query = say_question(LAYOUT, row["option_mark"], item["question"], options)
        history = tuple(
            Turn("user" if turn["from"] == "human" else "assistant", turn["value"]) for turn in item.get("history", [])
        )
        prefix = "" if row["infer_method"] == "likelihood" else row["kwargs"].get("response_prefix") or ""
        assert (
            style.speak(Speech(query, instruction=item.get("instruct", ""), history=history, prefix=prefix))
            == row["out"]["ok"]
        ), row["processor"]


def test_catalog_styles_are_the_recorded_ones() -> None:
    """The styles in the catalog as they come, not only what can be made of them."""
    recorded = {
        "lynx": "one",
        "llama_2": "llama_2",
        "otter": "otter",
        "llama_adapter2": "llama_adapter2",
        "visualglm": "visualglm",
        "blip2": "question_answer",
        "mmgpt": "alpaca",
    }
    items = json.loads((GOLDEN / "fn_preprocessors.json").read_text(encoding="utf-8"))["items"]
    seen = set()
    for row in ASSEMBLED:
        if (
            row["processor"] not in recorded
            or row["item"] != "history"
            or row["infer_method"] != "generation"
            or row["option_mark"] != "upper"
        ):
            continue
        item = items["history"]
        history = tuple(
            Turn("user" if turn["from"] == "human" else "assistant", turn["value"]) for turn in item["history"]
        )
        query = say_question(LAYOUT, "upper", item["question"], item["answer_options"])
        speech = Speech(
            query, instruction=item["instruct"], history=history, prefix=row["kwargs"].get("response_prefix") or ""
        )
        assert load_style(recorded[row["processor"]]).speak(speech) == row["out"]["ok"]
        seen.add(row["processor"])
    assert seen == set(recorded)


def test_answers_in_the_history() -> None:
    checked = 0
    for row in rows("fn_preprocessors.json"):
        if (
            "process_qa" not in row
            or "ok" not in row["out"]
            or row["infer_method"] != "generation"
            or row["processor"] not in ("lynx", "llama_2", "readme_example")
        ):
            continue
        question, options, answer = row["process_qa"]
        prompt = msgspec.structs.replace(LAYOUT, prefix="The answer is")
        text = options[answer] if isinstance(answer, int) else answer
        said = [
            say_question(prompt, row["option_mark"], question, options),
            say_answer(prompt, row["option_mark"], text, options),
        ]
        assert said == row["out"]["ok"]
        checked += 1
    assert checked > 5


def test_replies_to_history() -> None:
    for row in rows("fn_pred_to_history.json"):
        for reply, options, (_, expected) in zip(
            row["predictions"], row["batch"]["answer_options"], row["out"]["ok"], strict=True
        ):
            if isinstance(reply, int):
                continue  # a likelihood index: read from the stored log-likelihoods
            assert chosen_text(reply, make_marks("upper", len(options)), options) == expected


def test_majority_of_equals_is_the_first() -> None:
    assert most_common(["b", "a", "a", "b"]) == "b"
