"""vLLM's offline engine behind the seam: the real code against a stand-in engine with the library's names and shapes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import pytest

from snellen.core.errors import ConfigError, MissingExtra, ModelError, UsageError
from snellen.core.protocols import BatchModel, Capability
from snellen.core.types import FailureKind, Image, Likelihood, Params, Request, TrialKey, Turn
from snellen.model.local.vllm import create
from snellen.model.options import ModelOptions

PICTURE = Image(ref=str(Path(__file__).resolve().parents[3] / "examples" / "colours" / "red.png"))
ids = {}


def token(word):
    return ids.setdefault(word, len(ids))


class LLM:
    """Words are tokens; a word's log-probability is minus its length; a picture is the token <image>."""

    made: ClassVar[list[LLM]] = []

    def __init__(self, **arguments):
        if arguments["model"] == "broken":
            raise ValueError("no such checkpoint\nmore")
        self.arguments, self.calls = arguments, []
        LLM.made.append(self)

    def chat(self, messages, sampling_params, *, add_generation_prompt, continue_final_message, use_tqdm):
        assert add_generation_prompt is not continue_final_message
        assert use_tqdm is False
        self.calls.append(len(messages))
        return [
            self._one(each, params, continue_final_message)
            for each, params in zip(messages, sampling_params, strict=True)
        ]

    def _one(self, messages, params, continued):
        words = ["<s>"]
        for message in messages:
            parts = (
                message["content"]
                if isinstance(message["content"], list)
                else [{"type": "text", "text": message["content"]}]
            )
            for part in parts:
                words += ["<image>"] if part["type"] == "image_pil" and part["image_pil"].size else part["text"].split()
            words += [f"<{message['role']}>"] if message["role"] != "assistant" else []
        if len(words) > 20:
            raise ValueError("The decoder prompt (length 21) is longer than the maximum model length of 20.")
        numbers = [token(word) for word in words]
        logprobs = [None, *({token(word): SimpleNamespace(logprob=-float(len(word)))} for word in words[1:])]
        answer = f"{params.given.get('temperature')} {params.given['max_tokens']} {params.given.get('seed', 0) > 0}"
        made = SimpleNamespace(text=answer, token_ids=[1, 2], finish_reason="stop")
        return SimpleNamespace(
            outputs=[made],
            prompt_token_ids=numbers,
            prompt_logprobs=logprobs if params.given.get("prompt_logprobs") == 0 else None,
        )


class SamplingParams:
    def __init__(self, **given):
        self.given = given


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, SamplingParams
    monkeypatch.setitem(sys.modules, "vllm", module)
    LLM.made.clear()


def ask(text="What is it?", name="s", **changes):
    return Request(TrialKey("t", name), (Turn("user", text, (PICTURE,)),), **changes)


def predict(model, *requests):
    return asyncio.run(model.predict_batch(list(requests), {}))


def test_text_with_pictures_and_parameters_in_one_call():
    model = create("some/checkpoint", ModelOptions(arguments={"half": True, "engine": {"enforce_eager": True}}))
    assert isinstance(model, BatchModel)
    assert Capability.LIKELIHOOD in model.capabilities
    first, second = predict(model, ask(params=Params(temperature=0.5, max_tokens=9)), ask(name="2"))
    assert (first.text, second.text) == ("0.5 9 True", "None 512 True")
    assert first.usage.output_tokens == 2
    (engine,) = LLM.made
    assert engine.calls == [2]
    assert engine.arguments == {
        "model": "some/checkpoint",
        "dtype": "half",
        "trust_remote_code": False,
        "tensor_parallel_size": 1,
        "enforce_eager": True,
    }


def test_candidates_are_what_comes_after_the_prompt():
    model = create("m", ModelOptions())
    (reply,) = predict(model, ask(choices=("a dog", "cat")))
    assert reply.loglikelihoods == (-4.0, -3.0)
    assert reply.detail["token_logprobs"] == [[-1.0, -3.0], [-3.0]]
    assert reply.detail["route"] == "vllm"
    assert LLM.made[0].calls == [1, 2], "the prompt once, then all candidates"


def test_priors_prefix_and_the_prompts_own_values():
    likelihood = Likelihood(baseline=(Turn("user", "Answer:"),), with_prompt=True)
    (reply,) = predict(
        create("m", ModelOptions()), ask(choices=("a dog", "cat"), likelihood=likelihood, prefix="It is")
    )
    assert reply.loglikelihoods == (-4.0, -3.0)
    assert reply.detail["priors"] == [-4.0, -3.0]
    assert reply.detail["prompt_logprobs"] == [-7.0, -4.0, -2.0, -3.0, -6.0, -2.0, -2.0]


def test_a_request_that_is_refused_fails_alone():
    replies = predict(
        create("m", ModelOptions()),
        ask(name="good"),
        ask("long " * 30, name="long"),
        ask(name="empty", choices=("", "x")),
        Request(TrialKey("t", "broken"), (Turn("user", "?", (Image(ref="/no.png"),)),)),
    )
    assert [reply.failure.kind if reply.failure else None for reply in replies] == [
        None,
        FailureKind.TOO_LONG,
        FailureKind.REQUEST,
        FailureKind.DECODE,
    ]
    with pytest.raises(ModelError, match="maximum model length"):
        asyncio.run(create("m", ModelOptions()).predict(ask("long " * 30), {}))


def test_what_is_wrong_is_named(monkeypatch):
    with pytest.raises(ConfigError, match="did you mean 'dtype'"):
        create("m", ModelOptions(arguments={"dtyp": "half"}))
    with pytest.raises(ConfigError, match="revision=COMMIT"):
        create("m", ModelOptions(arguments={"trust_remote_code": True}))
    with pytest.raises(UsageError, match="PATH_OR_ID"):
        create("", ModelOptions())
    with pytest.raises(Exception, match="vLLM cannot load broken: no such checkpoint"):
        asyncio.run(create("broken", ModelOptions()).check())
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtra, match=r"snellen\[vllm\]"):
        asyncio.run(create("m", ModelOptions()).check())


def test_the_engine_is_let_go():
    model = create("m", ModelOptions())
    predict(model, ask())
    asyncio.run(model.close())
    assert model._engine is None
