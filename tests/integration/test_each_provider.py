"""Every own dialect and ten cards against a server that speaks as they do: the same answers, streams, limits and failures."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import PIL.Image
import pytest

import snellen
from emulator import emulator
from forked import forge
from snellen.api.plan import make_plan
from snellen.api.run_cost import estimate_run
from snellen.core.secret import Secret
from snellen.core.types import Prediction, Usage
from snellen.engine.limits import Policy
from snellen.kits.mock.ask import AnswerBook, Entry
from snellen.kits.mock.faults import parse_fault
from snellen.kits.mock.readers import parse_reader
from snellen.kits.mock.server import MockOptions
from snellen.kits.mock.wire import IMAGE_TOKENS, Pace
from snellen.store.reader import RunReader
from waiting import stored_trials, wait_until

OWN = {
    "openai/mock": "openai",
    "openai-responses/mock": "openai",
    "azure/mock": "azure",
    "mistral/mock": "mistral",
    "anthropic/mock": "anthropic",
    "gemini/mock": "gemini",
    "vertex/gemini-mock": "vertex",
    "vertex/claude-mock": "vertex",
    "bedrock/maker.mock-v1:0": "bedrock",
}
CARDS = (
    "openrouter",
    "xai",
    "groq",
    "together",
    "fireworks",
    "deepinfra",
    "dashscope",
    "zhipu",
    "moonshot",
    "vllm-server",
)
MODELS = {**OWN, **{f"{card}/mock": "openai" for card in CARDS}}
ROWS = 6
SHOWN_BY = {
    "an answer, whole and streamed; several pictures": "test_it_answers_whole_and_streamed_with_several_pictures",
    "reasoning kept apart, whole and streamed": "test_reasoning_is_kept_apart",
    "a refused parameter": "test_a_refused_parameter_is_left_out_once_and_said",
    "a prompt that is too long; the content filter; cut while reasoning": "test_too_long_filtered_and_cut_while_reasoning_are_typed",
    "a picture that is too large": "test_a_picture_that_is_too_large_is_typed_and_says_its_fix",
    "a rate limit": "test_a_rate_limit_is_waited_for",
    "a wrong key": "test_a_wrong_key_stops_at_once",
    "the estimate of the plan within 10 % of the bill": "test_the_estimate_is_within_a_tenth_of_the_bill",
    "killed and continued": "test_a_killed_run_goes_on",
}
"""What is shown of every model here, by which test: a table of the page Providers."""
WORDS = "Which of the shapes in the picture has the longest side, and how often does it appear beside a green one? "


@pytest.fixture(autouse=True)
def own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example-secret-of-nobody")
    monkeypatch.setenv("VERTEX_ACCESS_TOKEN", "ya29.example")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Make six questions with two pictures each."""
    for number in range(2):
        PIL.Image.new("RGB", (40, 30), (number * 90, 0, 0)).save(tmp_path / f"{number}.png")
    lines = [
        {
            "id": str(n),
            "question": f"What is {n}?",
            "options": ["one", "two"],
            "answer": "B",
            "images": ["0.png", "1.png"],
        }
        for n in range(ROWS)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def options(model: str, **more: Any) -> MockOptions:
    return MockOptions(dialect=MODELS[model], **{"answer": "B", "models": (model.partition("/")[2],), **more})


def run(rows: Path, model: str, server: MockOptions, folder: Path, **more: Any) -> list[Prediction]:
    """Run against a server with these options and return what is stored."""
    with emulator(server) as running:
        settings = {"tasks": (str(rows),), "model": model, "base_url": running.base_url, "cache": False, **more}
        snellen.run(snellen.RunSettings(**settings, output_dir=folder))
        assert running.server.stats["status_404"] == 0
    return stored(folder)


def stored(folder: Path) -> list[Prediction]:
    with RunReader(folder) as reader:
        return sorted((trial.prediction for trial in reader.trials("rows")), key=lambda one: one.key.sample)


def failures(predictions: list[Prediction]) -> set[str]:
    return {prediction.failure.kind.value for prediction in predictions if prediction.failure}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_it_answers_whole_and_streamed_with_several_pictures(
    model: str, stream: bool, rows: Path, tmp_path: Path
) -> None:
    found = run(rows, model, options(model), tmp_path / "run", stream=stream)
    assert [prediction.text for prediction in found] == ["B"] * ROWS
    assert {prediction.finish for prediction in found} == {"stop"}
    for prediction in found:
        assert prediction.usage is not None and prediction.usage.output_tokens == 1
        assert (prediction.usage.input_tokens or 0) > 2 * IMAGE_TOKENS and len(prediction.images) == 2
        assert prediction.timing is not None and (prediction.timing.first_token is not None) is stream


def without_pictures(rows: Path) -> Path:
    whole = [json.loads(line) for line in rows.read_text().splitlines()]
    rows.write_text("\n".join(json.dumps({name: row[name] for name in row if name != "images"}) for row in whole))
    return rows


def thinking(model: str) -> MockOptions:
    """Return a server that thinks before it answers, and says what."""
    entries = [Entry(f"What is {n}?", "two", options=("one", "two")) for n in range(ROWS)]
    return options(model, answers=AnswerBook(entries), reader=parse_reader("perfect+thinking:field=1"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_reasoning_is_kept_apart(model: str, stream: bool, rows: Path, tmp_path: Path) -> None:
    found = run(without_pictures(rows), model, thinking(model), tmp_path / "run", stream=stream)
    for prediction in found:
        assert prediction.reasoning, "what it thought is there"
        assert prediction.text and prediction.reasoning not in prediction.text
        usage = prediction.usage or Usage()
        assert (usage.output_tokens or 0) > len(prediction.text.split()), "thoughts are counted"


@pytest.mark.parametrize("model", MODELS)
def test_a_refused_parameter_is_left_out_once_and_said(model: str, rows: Path, tmp_path: Path) -> None:
    found = run(rows, model, options(model, refuses=("temperature",)), tmp_path / "run", temperature=0.0)
    assert [prediction.text for prediction in found] == ["B"] * ROWS
    assert all("temperature" in "".join(prediction.detail["adjusted"]) for prediction in found)


@pytest.mark.parametrize("model", MODELS)
def test_too_long_filtered_and_cut_while_reasoning_are_typed(model: str, rows: Path, tmp_path: Path) -> None:
    assert failures(run(rows, model, options(model, max_context=20), tmp_path / "long")) == {"too_long"}
    filtered = run(rows, model, options(model, filters=("What is 3?",)), tmp_path / "filtered")
    assert failures(filtered) == {"refused"} and sum(one.failure is not None for one in filtered) == 1
    cut = run(without_pictures(rows), model, thinking(model), tmp_path / "cut", max_tokens=3)
    assert failures(cut) == {"truncated"} and all(one.failure and "reasoning" in one.failure.message for one in cut)


@pytest.mark.parametrize("model", MODELS)
def test_a_rate_limit_is_waited_for(model: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policy, "backoff_of", lambda policy, attempt: 0.01)  # seconds of it are tested elsewhere
    faults = (parse_fault("429:retry_after=0.05@first1"),)
    found = run(rows, model, options(model, faults=faults), tmp_path / "run")
    assert [prediction.text for prediction in found] == ["B"] * ROWS
    with RunReader(tmp_path / "run") as reader:
        kinds = {row[0] for row in reader.rows("SELECT kind FROM attempts", ())}
    assert kinds == {"rate"}


@pytest.mark.parametrize("model", MODELS)
def test_a_wrong_key_stops_at_once(model: str, rows: Path, tmp_path: Path) -> None:
    with (
        emulator(options(model, api_key="right")) as running,
        pytest.raises(snellen.SnellenError, match=r"401|API key"),
    ):
        settings = {"tasks": (str(rows),), "model": model, "base_url": running.base_url, "api_key": Secret("wrong-key")}
        snellen.run(snellen.RunSettings(**settings, output_dir=tmp_path / "run", cache=False))
    assert running.server.stats["requests"] <= 1


@pytest.mark.parametrize("model", MODELS)
def test_a_picture_that_is_too_large_is_typed_and_says_its_fix(model: str, rows: Path, tmp_path: Path) -> None:
    found = run(rows, model, options(model, max_body_bytes=200), tmp_path / "run")
    assert failures(found) == {"payload"}
    assert all(one.failure is not None and "--image-max-side" in one.failure.message for one in found)


@pytest.mark.parametrize("model", MODELS)
def test_the_estimate_is_within_a_tenth_of_the_bill(model: str, rows: Path, tmp_path: Path) -> None:
    """The server counts words, and 256 tokens a picture: so says the card; how each dialect tells its counts is its own."""
    longer = [json.loads(line) for line in rows.read_text().splitlines()]
    longer = [row | {"question": WORDS * (1 + number % 3)} for number, row in enumerate(longer)]
    rows.write_text("\n".join(map(json.dumps, longer)))
    mock = (Path(snellen.__file__).parent / "catalog" / "models" / "mock.toml").read_text()
    (tmp_path / "cards" / "models").mkdir(parents=True)
    (tmp_path / "cards" / "models" / "one.toml").write_text(mock.replace("openai/mock", model))
    with emulator(options(model)) as running:
        settings = {"tasks": (str(rows),), "model": model, "base_url": running.base_url, "cache": False}
        asked = snellen.RunSettings(**settings, catalogs=(tmp_path / "cards",), output_dir=tmp_path / "run")
        estimate = estimate_run(make_plan(asked), asked).cost()
        results = snellen.run(asked).results
        stats = running.server.stats
    bill = (0.5 * stats["prompt_tokens"] + 1.5 * stats["completion_tokens"]) / 1e6
    assert estimate == pytest.approx(bill, rel=0.10)
    assert results["cost"]["value"] == pytest.approx(bill)


def test_every_line_of_the_table_is_shown_for_every_model() -> None:
    for name in SHOWN_BY.values():
        marks = {mark.args[0]: mark.args[1] for mark in globals()[name].pytestmark if mark.name == "parametrize"}
        assert marks["model"] is MODELS, name


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with forge(tmp_path_factory.mktemp("forge") / "said") as starts:
        yield starts


@pytest.mark.crash
@pytest.mark.parametrize("model", MODELS)
def test_a_killed_run_goes_on(model: str, rows: Path, tmp_path: Path, starter: Any) -> None:
    folder = tmp_path / "run"
    server = options(model, pace=Pace(0.05))
    with emulator(server) as running:
        command = ["run", rows, "--model", model, "--base-url", running.base_url, "-o", folder, "--no-cache", "--quiet"]
        pid = starter.start([*command, "--max-workers", 1], **dict(os.environ))
        wait_until(lambda: stored_trials(folder) >= 2, "two trials")
        os.kill(pid, signal.SIGKILL)
        starter.wait()
        before = {msgspec.json.encode(one) for one in stored(folder)}
        starter.run(command, **dict(os.environ))
        asked = running.server.stats["requests"]
    found = stored(folder)
    assert [prediction.text for prediction in found] == ["B"] * ROWS
    assert before <= {msgspec.json.encode(one) for one in found}, "what was stored stays as it was"
    assert asked <= ROWS + 1, "at most the one in flight was asked twice"
