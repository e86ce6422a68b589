"""Every rule says in words why it decided; the version of the rules travels with every score; the command prints both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from snellen.api.one_reply import read_reply
from snellen.cli.main import cli
from snellen.core.errors import UsageError
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.extract.choice import RULE_NAMES, extract_choice, why
from snellen.extract.extraction import RULE_SET, Extraction
from snellen.scoring.scorers.option_choice import score, score_yesno

COLOURS = ["red", "blue", "green", "yellow"]
EXAMPLES = {
    "thinking": "<think>maybe B",
    "empty": "…",
    "whole": "**b.**",
    "harness_error": "Error code: 429 - too many requests",
    "degenerate": "B " * 40,
    "boxed": "Surely \\boxed{C}",
    "tag": "<answer>D</answer> as said",
    "json": '{"why": "dark", "answer": "c"}',
    "last_line": "It seems dark.\n\nC",
    "cue": "After all the answer is B, I am sure.",
    "cue_text": "The answer is blue, I am sure.",
    "self_correction": "The answer is A. Wait, it's C.",
    "first_line": "B\n\nBecause of the sky.",
    "leading": "B: The sky",
    "labelled": "In the end **B. blue** it is, though A looks near.",
    "opening": "Blue shares the same tone as the sample. Red, on the other hand, is far too warm.",
    "refusal": "I can't see the image.",
    "undecidable": "From this angle it cannot be determined.",
    "cut_off": "Option A has the",
    "yes_no": "No, there is no dog.",
    "affirmed": "Hence B.",
    "none_of_above": "It is none of the above.",
    "closing": "Red is warm. Green and yellow are on the left. What the whole sky shows must be some kind of blue.",
    "lone_label": "Probably B",
    "final_value": "The weights give 0.6 × 0.091 + 0.4 × 0.0435 = 0.072",
    "option_text": "The sky is blue",
    "by_measure": "The force is 16,900 N in compression.",
    "ordinal": "I take the second option",
    "in_words": "Point B, which lies left, is closer to the camera.",
    "elimination": "Not A. Not C. Not D.",
    "abstain": "It is orange.",
}
OPTIONS = {
    "undecidable": ["yes", "no", "Cannot be determined"],
    "yes_no": ["yes", "no"],
    "final_value": ["9.1%", "7.2%", "5.0%"],
    "by_measure": ["12.1 kN", "16.9 kN"],
    "in_words": ["A is closer", "B is closer"],
}


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_every_rule_of_the_table_is_explained_in_one_sentence(rule: str) -> None:
    reply = EXAMPLES[rule]
    found = extract_choice(reply, OPTIONS.get(rule, COLOURS))
    assert found.rule == rule
    sentence = why(found, reply)
    assert sentence.endswith(".")
    assert "{" not in sentence.replace("{}", "")
    assert not sentence.startswith("The rule ")
    if found.letter and found.span and rule != "elimination":
        assert " ".join(reply[slice(*found.span)].split()) in sentence


@pytest.mark.parametrize(
    "reply", ["B or C", "The answer is either A or D.", "The answer is F.", "The best answer is (", '{"answer": null}']
)
def test_none_is_explained_too(reply: str) -> None:
    sentence = why(extract_choice(reply, COLOURS), reply)
    assert sentence.endswith(".")
    assert not sentence.startswith("The rule ")


def test_an_unknown_rule_is_named() -> None:
    assert "strange" in why(Extraction(None, "strange", "odd"), "x") or "profile" in why(
        Extraction("B", "first_mark", None, (0, 1)), "B"
    )


def test_scores_carry_the_version_of_the_rules() -> None:
    request = Request(TrialKey("pets", "1"), (), marks=("A", "B"), shown=("red", "blue"))
    sample = Sample("1", "pets", Form.CHOICE, question="Which?", options=("red", "blue"), answers=("blue",))
    for text in ("B", "no idea"):
        (found,) = score(sample, request, Prediction(request.key, text=text), {})
        assert found.detail["rules"] == RULE_SET
    asked = Sample("1", "pets", Form.YESNO, question="Is it?", answers=("yes",))
    for text in ("Yes.", "Hm"):
        (found,) = score_yesno(asked, Request(TrialKey("pets", "1"), ()), Prediction(request.key, text=text), {})
        assert found.detail["rules"] == RULE_SET


def test_a_reading_refuses_what_cannot_be_read() -> None:
    with pytest.raises(UsageError, match="no options"):
        read_reply("B", [])
    with pytest.raises(UsageError, match="one mark of its own"):
        read_reply("B", ["red", "blue"], marks=["A"])
    assert read_reply("2", ["red", "blue"], marks=["1", "2"]).text == "blue"
    assert read_reply("(b) blue", ["red", "blue"], profile="reform").rules == "reform"


def test_the_command_reads_an_argument_a_file_and_a_pipe(tmp_path: Path) -> None:
    options = [part for text in COLOURS for part in ("-o", text)]
    file = tmp_path / "reply.txt"
    file.write_text("So **C. green** \x1b[31m", encoding="utf-8")
    shown = CliRunner().invoke(cli, ["extract", "--file", str(file), *options]).output
    assert "answer  C (green)" in shown
    assert "⟦C. green⟧" in shown
    assert "\x1b[31m" not in shown
    by_argument = json.loads(CliRunner().invoke(cli, ["extract", "Hence B.", *options, "--json"]).output)
    piped = json.loads(CliRunner().invoke(cli, ["extract", *options, "--json"], input="Hence B.").output)
    assert by_argument == piped
    assert (piped["letter"], piped["rule"], piped["span"], piped["rules"]) == ("B", "affirmed", [6, 7], RULE_SET)
    none = CliRunner().invoke(cli, ["extract", "B or C", *options]).output
    assert "none (ambiguous)" in none


def test_the_command_takes_one_reply(tmp_path: Path) -> None:
    found = CliRunner().invoke(cli, ["extract", "B", "--file", str(tmp_path / "x"), "-o", "red"])
    assert isinstance(found.exception, UsageError)
    (tmp_path / "y").write_bytes(b"\xff\xfe\x00")
    found = CliRunner().invoke(cli, ["extract", "--file", str(tmp_path / "y"), "-o", "red"])
    assert isinstance(found.exception, UsageError)
