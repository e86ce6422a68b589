"""Perplexity over HTTP, from the command line to another tool's file, against an independent sum of the server's values."""

from __future__ import annotations

import json

import pytest

from command_line import run_command
from snellen.kits.mock.tokens import sequence_log_probabilities, tokenize

ROWS = [
    {"id": "1", "question": "Which animal barks?", "options": ["a cat", "a dog"], "answer": "a dog"},
    {"id": "2", "question": "Which animal purrs?", "options": ["a cat", "a dog"], "answer": "a cat"},
]
TASK = """
name = "animals"
infer = "perplexity"
[dataset]
loader = "table"
path = "rows.jsonl"
[infer_options.templates.A]
prompt = "{question}"
answer = "{A}"
[infer_options.templates.B]
prompt = "{question} Surely not {A}."
answer = "{B}"
"""


@pytest.fixture
def files(tmp_path, mock_server, monkeypatch):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "animals.toml").write_text(TASK)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    server = mock_server()
    run, out = tmp_path / "run", tmp_path / "out"
    model = ["--model", "openai/mock", "--base-url", server.base_url, "--no-cache", "--quiet"]
    assert run_command(["run", tmp_path / "animals.toml", *model, "-o", run]) == 0
    assert run_command(["report", run, "--export", "aisbench", "-o", out]) == 0
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    return records, [json.loads(line) for line in (out / "animals.jsonl").read_text().splitlines()]


def mean_of(prompt, answer):
    """The mean negative log-likelihood of a whole text, as the server's own toy model has it."""
    values = sequence_log_probabilities(tokenize(f"<|user|>{prompt}\n<|assistant|>{answer}"), ("A",))[1:]
    return -sum(values) / len(values)


def test_every_label_is_listed_with_the_mean_of_its_whole_text(files):
    _, lines = files
    for row, line in zip(ROWS, lines, strict=True):
        first, second = row["options"]
        wanted = {"A": mean_of(row["question"], first), "B": mean_of(f"{row['question']} Surely not {first}.", second)}
        assert {entry["label"]: entry["ppl"] for entry in line["ppl_list"]} == pytest.approx(wanted)
        assert line["prediction"] == min(wanted, key=wanted.__getitem__)
        assert line["gold"] in wanted


def test_the_trials_are_scored_by_the_same_choice(files):
    records, lines = files
    for record, line in zip(records, lines, strict=True):
        assert record["outcome"] == "scored"
        assert record["rule"] == "likelihood:prompt-mean"
        assert record["value"] == float(line["prediction"] == line["gold"])
