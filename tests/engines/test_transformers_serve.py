"""A real `transformers serve` with a small vision model: its words are those of `hf/`, and what it ignores is found out."""

from __future__ import annotations

import json

import pytest

from command_line import run_command
from engine_questions import (
    answers_of,
    greedily,
    questions,
    records_of,
    several_pictures,
    to_generate,
    whole_texts,
    write_rows,
)
from engine_servers import free_port, serving, transformers_command
from extras import needs
from snellen.core.errors import StopRun
from snellen.model.local.transformers import create as create_local
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create as create_served

needs("fastapi")  # of the environment of `make engines`
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries


@pytest.fixture(scope="module")
def running(wide_checkpoint, tmp_path_factory):
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log"
    hidden = {"SNELLEN_SHIM_HIDES_TORCHVISION": "1"}
    with serving(transformers_command(wide_checkpoint, port), port, log, **hidden) as server:
        yield server.url


@pytest.fixture(scope="module")
def requests():
    return greedily(to_generate() + several_pictures())


@pytest.fixture(scope="module")
def served(running, wide_checkpoint, requests):
    return answers_of(create_served, str(wide_checkpoint), ModelOptions(base_url=running), requests)


def run(running, wide_checkpoint, rows, folder, *more):
    model = ["--model", f"openai/{wide_checkpoint}", "--base-url", running, "--temperature", "0", "--max-tokens", "8"]
    return run_command(["run", rows, *model, "-o", folder, "--no-cache", *more])


def test_greedy_replies_with_one_picture_and_several_are_those_of_hf(served, wide_checkpoint, requests):
    options = ModelOptions(arguments={"dtype": "float32", "device": "cpu"})
    local = answers_of(create_local, str(wide_checkpoint), options, requests)
    same = [one == other for one, other in zip(whole_texts(served), whole_texts(local), strict=True)]
    assert all(same[:-1]), "two pictures that are one and the same may end otherwise: seen, the cause is not known"
    for name in ("input_tokens", "output_tokens"):
        assert [getattr(reply.usage, name) for reply in served] == [getattr(reply.usage, name) for reply in local]
    print(f"transformers serve and hf/: {sum(same)} of {len(same)} greedy replies the same, token counts of all")


def test_streamed_replies_say_the_same(running, wide_checkpoint, requests, served):
    streaming = [*greedily(requests, stream=True)]
    streamed = answers_of(create_served, str(wide_checkpoint), ModelOptions(base_url=running), streaming)
    assert whole_texts(streamed) == whole_texts(served)
    assert [reply.usage for reply in streamed] == [reply.usage for reply in served]
    assert all(reply.timing.sent < reply.timing.first_token <= reply.timing.done for reply in streamed)


def test_a_run_on_the_command_line(running, wide_checkpoint, tmp_path):
    assert run(running, wide_checkpoint, write_rows(tmp_path, 4), tmp_path / "run", "--quiet") == 0
    assert not any(record["error"] for record in records_of(tmp_path / "run"))


def test_no_likelihood_is_said_and_none_is_made_up(running, wide_checkpoint):
    with pytest.raises(StopRun, match="gives no log-probabilities of these candidates"):
        answers_of(create_served, str(wide_checkpoint), ModelOptions(base_url=running), questions()[:1])


def test_options_it_does_not_keep_to_stop_the_run(running, wide_checkpoint, tmp_path, capfd):
    """It takes the field, warns in its own log, and answers freely: no such reply is counted."""
    more = ["--constrain", "options"]
    assert run(running, wide_checkpoint, write_rows(tmp_path, 4), tmp_path / "run", *more) == 3
    assert "does not keep to --constrain options" in capfd.readouterr().err


def test_a_wrong_models_name_is_one_line(running, wide_checkpoint, tmp_path, capfd):
    code = run(running, f"{wide_checkpoint}-not", write_rows(tmp_path, 4), tmp_path / "run")
    (line,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert code == 3
    assert "check the name" in line


def test_serve_check_says_what_is_true_of_it(running, wide_checkpoint, capsys):
    assert run_command(["serve-check", running, "--model", wide_checkpoint, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    can = {probe["what"]: probe["ok"] for probe in facts["probes"]}
    wanted = {"chat": True, "pictures": True, "several pictures": True, "streaming": True}
    assert can | wanted | {"likelihood": False, "options": False} == can, facts


def test_perf_counts_what_hf_counts(running, wide_checkpoint, tmp_path):
    rows = write_rows(tmp_path, 4)
    asked = ["perf", rows, "--model", f"openai/{wide_checkpoint}", "--base-url", running, "--max-tokens", "8"]
    load = ["--concurrency", "2", "-n", "8", "--warmup", "0", "--temperature", "0", "-o", tmp_path / "perf"]
    assert run_command([*asked, *load]) == 0
    assert run(running, wide_checkpoint, rows, tmp_path / "run", "--quiet") == 0
    (level,) = json.loads((tmp_path / "perf" / "perf.json").read_text())["levels"]
    usages = [record["usage"] for record in records_of(tmp_path / "run")]
    common = level["total"]["common"]
    assert common["Success Requests"] == 8
    assert common["Total Input Tokens"] == 2 * sum(usage["input_tokens"] for usage in usages)
    assert common["Total Generated Tokens"] == 2 * sum(usage["output_tokens"] for usage in usages)
