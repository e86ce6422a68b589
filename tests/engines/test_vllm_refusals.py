"""What a real vLLM server refuses: one line, the other questions answered, nothing lost."""

from __future__ import annotations

import json

import pytest

from command_line import run_command
from engine_questions import NAME, records_of, write_rows
from engine_servers import CONTEXT

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries


def arguments(rows, server, folder, *more, name=NAME):
    model = ["--model", f"openai/{name}", "--base-url", server, "--temperature", "0"]
    return ["run", rows, *model, *more, "-o", folder, "--no-cache"]


@pytest.fixture
def one_too_long(tmp_path):
    """Four questions, one of which is longer than the context."""
    path = write_rows(tmp_path, 4)
    first, *others = map(json.loads, path.read_text().splitlines())
    first["question"] = "how many lines can you read? " * CONTEXT
    path.write_text("".join(json.dumps(row) + "\n" for row in (first, *others)))
    return path


@pytest.mark.parametrize("method", ["generation", "likelihood"])
@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_prompt_over_the_context_fails_alone_and_is_named(one_too_long, server, tmp_path, capfd, method, stream):
    if method == "likelihood" and stream:
        pytest.skip("likelihoods are not streamed")
    more = ["--infer-method", method, *stream] + (["--max-tokens", "8"] if method == "generation" else [])
    code = run_command(arguments(one_too_long, server, tmp_path / "run", *more))
    long, *others = records_of(tmp_path / "run")
    assert long["error"]["kind"] == "too_long"
    assert "does not fit this model" in long["error"]["message"]
    assert "\n" not in long["error"]["message"]
    assert not any(record["error"] for record in others)
    said = capfd.readouterr().err
    assert code == 1, said
    assert "Traceback" not in said


def test_a_longer_reply_than_there_is_room_for_is_cut_and_said(server, tmp_path):
    """The prompt fits and the reply's limit does not: the server refuses or cuts, and either is told."""
    rows = write_rows(tmp_path, 1)
    run_command(arguments(rows, server, tmp_path / "run", "--max-tokens", str(2 * CONTEXT), "--quiet"))
    (record,) = records_of(tmp_path / "run")
    if record["error"]:
        assert record["error"]["kind"] == "too_long"
    else:
        assert record["finish"] == "length"


def test_a_wrong_models_name_is_one_line_and_asks_nothing(server, tmp_path, capfd):
    code = run_command(arguments(write_rows(tmp_path, 4), server, tmp_path / "run", name="tinny"))
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert code == 2
    assert "'tinny' (did you mean 'tiny'?)" in line
    assert not (tmp_path / "run" / "records.jsonl").exists()
