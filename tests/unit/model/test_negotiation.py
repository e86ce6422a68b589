"""A refused parameter is sent otherwise, once, and said; what decides the question is never dropped."""

from __future__ import annotations

from typing import Any

import pytest

from snellen.core.errors import ModelError
from snellen.core.types import FailureKind
from snellen.model.served.negotiation import MOST_CHANGES, Quirks, parameter_rules
from snellen.model.served.replies import status_error

SEEN = [case for _, rule in parameter_rules() for case in rule.seen]
CLOCK: Any = None


def refusal(body: str, status: int = 400) -> ModelError:
    return status_error(status, {}, body.encode(), CLOCK)


@pytest.mark.parametrize("case", SEEN, ids=[case["change"] + "-" + case["body"][:50] for case in SEEN])
def test_every_refusal_that_was_seen_changes_one_thing(case: dict[str, Any]) -> None:
    quirks = Quirks()
    assert quirks.learn(refusal(case["body"]), {"messages": [], case["sent"]: case.get("value", 1)}) == case["change"]
    assert len(quirks.learned) == 1


def test_the_body_is_sent_as_it_was_learned() -> None:
    quirks = Quirks()
    quirks.rename["max_tokens"] = "max_completion_tokens"
    quirks.drop.add("temperature")
    quirks.most["max_completion_tokens"] = 64
    quirks.system_role = "developer"
    body = {"messages": [{"role": "system"}, {"role": "user"}], "max_tokens": 99, "temperature": 0, "top_p": 1}
    sent = quirks.apply(body)
    assert sent == {"messages": [{"role": "developer"}, {"role": "user"}], "max_completion_tokens": 64, "top_p": 1}
    assert body["max_tokens"] == 99, "the request itself is never changed"


def test_parameters_of_gemini_stand_one_level_down() -> None:
    quirks = Quirks(drop={"topP"})
    assert quirks.apply({"contents": [], "generationConfig": {"topP": 1, "seed": 2}}, "generationConfig") == {
        "contents": [],
        "generationConfig": {"seed": 2},
    }


@pytest.mark.parametrize("name", ["messages", "max_tokens", "response_format", "logprobs", "tools", "reasoning_effort"])
def test_what_decides_the_question_is_never_dropped(name: str) -> None:
    body = f'{{"error":{{"message":"Unsupported parameter: \'{name}\' is not supported with this model."}}}}'
    assert Quirks().learn(refusal(body), {name: 1}) is None


def test_a_renamed_parameter_may_be_dropped_by_its_new_name() -> None:
    quirks = Quirks()
    quirks.learn(refusal("{\"message\":\"[{'loc': ('body', 'seed')}]\"}"), {"seed": 1})
    assert quirks.rename == {"seed": "random_seed"}
    body = '{"error":{"message":"`random_seed` is not supported with this model"}}'
    assert quirks.learn(refusal(body), {"random_seed": 1}) == "drop random_seed"
    assert quirks.apply({"seed": 1}) == {}


def test_learning_ends() -> None:
    quirks = Quirks(learned=["x"] * MOST_CHANGES)
    assert quirks.learn(refusal(SEEN[0]["body"]), {SEEN[0]["sent"]: 1}) is None


@pytest.mark.parametrize("status", [500, 429, 401])
def test_only_a_refusal_of_the_request_is_learned_from(status: int) -> None:
    assert (
        Quirks().learn(ModelError(FailureKind.SERVER, str(SEEN[0]["body"]), status=status), {"max_tokens": 1}) is None
    )


def test_a_parameter_that_was_not_sent_is_not_to_blame() -> None:
    assert Quirks().learn(refusal(SEEN[0]["body"]), {"messages": []}) is None
