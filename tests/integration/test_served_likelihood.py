"""Likelihood over HTTP: the route is found by test, a server that is off by one is not believed, one without log-probabilities is named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from line_doubles import ask as ask_model
from snellen.core.errors import ModelError, StopRun, UsageError
from snellen.core.types import Image, Likelihood, Request, TrialKey, Turn
from snellen.kits.mock.ask import AnswerBook, Entry
from snellen.kits.mock.server import MockOptions, start
from snellen.kits.mock.tokens import log_probability, tokenize
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create
from snellen.model.served.post import HttpResponse
from snellen.model.served.served_model import ServedModel
from snellen.scoring.scorers.option_likelihood import choose

QUESTION = "Which animal is it?"
PICTURE = Image(ref=str(Path(__file__).resolve().parents[2] / "examples" / "colours" / "red.png"))
CHOICES = ("a cat", "a dog", "two dogs")


def ask(choices=CHOICES, images=(), text=QUESTION, **changes):
    return Request(TrialKey("t", "s"), (Turn("user", text, images),), choices=choices, **changes)


def predict(requests, mode="ok", **arguments):
    """Ask a mock server whose log-probabilities are right, shifted, ignored or refused."""

    async def run():
        book = AnswerBook([Entry(QUESTION, "a dog", options=CHOICES)])
        server = await start(MockOptions(answers=book, logprobs=mode))
        model = create("mock", ModelOptions(base_url=server.base_url, arguments=arguments))
        try:
            return [await ask_model(model, request) for request in requests]
        finally:
            await model.close()
            await server.close()

    return asyncio.run(run())


@pytest.mark.parametrize("route", ["chat-prompt-logprobs", "text-prompt-logprobs", "echo"])
def test_every_route_finds_the_right_answer_with_the_servers_own_numbers(route):
    (reply,) = predict([ask()], likelihood=route)
    assert choose(reply.loglikelihoods).likeliest == (1,)
    assert reply.detail["route"] == route
    assert reply.detail["tokens"] == [2, 2, 2]
    assert reply.detail["bytes"] == [5, 5, 8]
    before = f"<|user|>{QUESTION}\n<|assistant|>" if route == "chat-prompt-logprobs" else QUESTION
    gap = "" if route == "chat-prompt-logprobs" else " "
    expected = 0.0
    for token in tokenize(gap + "two dogs"):
        expected += log_probability(token, before[-64:], None)
        before += token
    assert reply.loglikelihoods[2] == pytest.approx(expected)


def test_the_first_working_route_is_taken_and_images_go_along():
    plain, seen = predict([ask(), ask(images=(PICTURE,))])
    assert plain.detail["route"] == seen.detail["route"] == "chat-prompt-logprobs"
    assert choose(plain.loglikelihoods).likeliest == (1,)


def test_a_server_that_is_off_by_one_is_not_believed():
    with pytest.raises(StopRun, match=r"not aligned.*--candidates letters"):
        predict([ask()], mode="shifted")
    (letters,) = predict(
        [ask(choices=("A", "B", "C"), text=f"{QUESTION}\nA. a cat\nB. a dog\nC. two dogs")], mode="shifted"
    )
    assert letters.detail["route"] == "letters"


def test_letters_come_from_the_likeliest_first_tokens():
    text = f"{QUESTION}\nA. a cat\nB. a dog\nC. two dogs"
    (reply,) = predict([ask(choices=("A", "B", "C"), text=text, images=())], likelihood="letters")
    assert choose(reply.loglikelihoods).likeliest == (1,)
    assert reply.detail["tokens"] == [1, 1, 1]


@pytest.mark.parametrize(
    ("mode", "message"), [("none", "no log-probabilities"), ("error", "logprobs are not supported")]
)
def test_a_server_without_log_probabilities_ends_the_run_by_name(mode, message):
    with pytest.raises(StopRun, match=message) as caught:
        predict([ask()], mode=mode)
    assert "--infer-method generation" in str(caught.value)


def test_priors_and_the_prompts_own_values():
    (reply,) = predict(
        [ask(likelihood=Likelihood(baseline=(Turn("user", "Answer:"),), with_prompt=True, reduction="prompt-mean"))]
    )
    assert len(reply.detail["priors"]) == 3
    assert reply.detail["priors"] != list(reply.loglikelihoods)
    assert len(reply.detail["prompt_logprobs"]) == len(tokenize(f"<|user|>{QUESTION}\n<|assistant|>")) - 1
    with pytest.raises(ModelError, match="prompt-mean needs"):
        text = f"{QUESTION}\nA. a cat\nB. a dog\nC. two dogs"
        predict([ask(choices=("A", "B"), text=text, likelihood=Likelihood(with_prompt=True))], likelihood="letters")


def test_empty_candidates_and_unknown_routes_are_refused():
    with pytest.raises(ModelError, match="candidate '' has no tokens"):
        predict([ask(choices=("a cat", ""))])
    with pytest.raises(UsageError, match="did you mean 'echo'"):
        create("mock", ModelOptions(arguments={"likelihood": "ecko"}))


def test_generation_is_as_before():
    (reply,) = predict([Request(TrialKey("t", "s"), (Turn("user", QUESTION),))])
    assert (reply.text, reply.loglikelihoods, reply.finish) == ("a dog", None, "stop")


class Recorder:
    """An HTTP client that answers from a function and remembers what was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    async def send(self, url, body, headers, timeout_s):
        self.asked.append((url.rpartition("/v1")[2], json.loads(b"".join(body))))
        return HttpResponse(200, {}, json.dumps(self.answer(*self.asked[-1])).encode())

    async def close(self):
        pass


def fake_vllm(path, body):
    """Chat prompt_logprobs over a text of words; the greedy reply is `sky blue`, each word worth minus its length."""
    words = [word for message in body["messages"] for word in message["content"].split()]
    rows = [None, *({word: {"logprob": -float(len(word))}} for word in words)]
    content = [{"token": word, "logprob": -float(len(word)), "top_logprobs": []} for word in ("sky", "blue")]
    return {
        "choices": [{"message": {"content": "sky blue"}, "logprobs": {"content": content}}],
        "prompt_logprobs": rows,
    }


def test_the_prompt_is_scored_once_and_the_test_is_made_once():
    from snellen.model.served.openai import OpenAI

    http = Recorder(fake_vllm)
    model = ServedModel(OpenAI(), "m", ModelOptions(base_url="http://x/v1"), http=http)

    async def run():
        return [await model.predict(ask(choices=("cat", "big dog")), {}) for _ in range(2)]

    first, second = asyncio.run(run())
    assert first.loglikelihoods == second.loglikelihoods == (-3.0, -6.0)
    paths = [path for path, _ in http.asked]
    assert paths == ["/chat/completions"] * (3 + 2 * 3)
    assert all(body["temperature"] == 0 for _, body in http.asked)


def test_a_confident_server_that_is_off_by_one_is_found_out_by_rivals_of_its_first_word():
    """All it says itself is certain, so its neighbours' values agree; what it could have said instead is not."""
    from snellen.model.served.openai import OpenAI

    truth = {"cat": -5.0, "dog": -1.0}

    def answer(path, body):
        words = [word for message in body["messages"] for word in message["content"].split()]
        values = [0.0, *(truth.get(word, -0.01) for word in words)]
        rows = [None, *({word: {"logprob": value}} for word, value in zip(words, values[:-1], strict=True))]
        rivals = [{"token": word, "logprob": truth.get(word, -0.01)} for word in ("The", "cat", "dog")]
        said = [{"token": word, "logprob": -0.01, "top_logprobs": rivals} for word in ("The", "sky")]
        choice = {"message": {"content": "The sky"}, "logprobs": {"content": said}}
        return {"choices": [choice], "prompt_logprobs": rows}

    options = ModelOptions(base_url="http://x/v1", arguments={"likelihood": "chat-prompt-logprobs"})
    model = ServedModel(OpenAI(), "m", options, http=Recorder(answer))
    with pytest.raises(StopRun, match=r"not aligned: 'cat' has -5\.00 as generated and -0\.01 as scored"):
        asyncio.run(model.predict(ask(choices=("cat", "dog")), {}))
