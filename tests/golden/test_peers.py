"""Verdicts and prompts recorded by running other tools' own code, held against what we give under their names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from peer_cases import Agreement, agreement, made_prompt, pairs, prompt_cases

MOST_OF_A_PAIR = 0.02
MOST_OF_ALL = 0.005
CASES = {case["id"]: case for case in prompt_cases()}
UNLIKE = {
    "mathverse|lmms-eval": {"max_tokens"},  # recorded of a task of one version of the problems; the card is all of them
    "lvbench|lmms-eval": {"text"},  # it shows the list of options twice where a table has both; here once
    "perceptiontest|lmms-eval": {
        "text",
        "max_tokens",
    },  # recorded of the task that compares likelihoods; the card generates
}
"""What of a recorded prompt is not ours, and why."""


@pytest.fixture(scope="module")
def agreements(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Agreement]:
    folder = tmp_path_factory.mktemp("peers")
    return {pair: agreement(pair, folder) for pair in pairs()}


@pytest.mark.parametrize("pair", pairs())
def test_a_verdict_under_a_tools_name_is_the_tools(pair: str, agreements: dict[str, Agreement]) -> None:
    found = agreements[pair]
    told = "\n".join(map(str, found.unlike[:5]))
    assert found.share <= MOST_OF_A_PAIR, (
        f"{len(found.unlike)} of {found.verdicts} verdicts are not the tool's:\n{told}"
    )


def test_of_all_verdicts_at_most_one_in_two_hundred_is_not_the_tools(agreements: dict[str, Agreement]) -> None:
    verdicts = sum(found.verdicts for found in agreements.values())
    unlike = sum(len(found.unlike) for found in agreements.values())
    assert len(agreements) == 97
    assert verdicts > 15_000
    assert unlike / verdicts <= MOST_OF_ALL


@pytest.mark.parametrize("name", CASES)
def test_a_prompt_under_a_tools_name_is_the_tools(name: str, tmp_path: Path) -> None:
    case, allowed = CASES[name], UNLIKE.get(name, set())
    made = made_prompt(case, tmp_path)
    same = hashlib.sha256(made.text.encode()).hexdigest() == case["sha256"]
    assert same == ("text" not in allowed), made.text
    if case["order"] != "?":
        assert made.order == case["order"]
    for field in ("max_tokens", "temperature"):
        if case["protocol"] == "lmms-eval" and field not in allowed:  # VLMEvalKit leaves both to its models
            assert getattr(made, field) == case[field], field
