"""Verdicts and prompts recorded by running other tools' own code, held against what we give under their names."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from peer_cases import agreement, made_prompt, pairs, prompt_cases

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


def test_a_verdict_under_a_tools_name_is_the_tools(tmp_path: Path) -> None:
    """Of each pair nearly all; of all together all but one in two hundred. One test: the pairs share what they read."""
    agreements = {pair: agreement(pair, tmp_path) for pair in pairs()}
    far = {pair: found.unlike[:5] for pair, found in agreements.items() if found.share > MOST_OF_A_PAIR}
    assert not far
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


def test_a_checkout_is_held_against_what_was_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "lmms_eval" / "tasks" / "countbenchqa"
    folder.mkdir(parents=True)
    (folder / "countbenchqa.yaml").write_text(
        "task: countbenchqa\ndoc_to_text: !function utils.f\ngeneration_kwargs:\n  max_new_tokens: 64\n  temperature: 0\n"
    )
    (folder / "utils.py").write_text(
        "import a_package_that_is_not_here\n\n\ndef countbenchqa_process_results(doc, results):\n"
        "    return {'acc': float(results[0] == str(doc['number']))}\n\n\n"
        "def countbenchqa_doc_to_text(doc, kwargs=None):\n    return doc['text'] + '\\n\\n' + doc['question']\n"
    )
    tool = Path(__file__).resolve().parents[2] / "tools" / "peers.py"
    done = subprocess.run(
        [sys.executable, tool, "lmms-eval", tmp_path], check=False, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 1, done.stderr
    assert "same    verdicts countbenchqa: 0 of 80" in done.stdout
    assert "changed max_tokens countbenchqa|lmms-eval: 32 was recorded, 64 now" in done.stdout
    assert "changed prompt countbenchqa|lmms-eval" in done.stdout
