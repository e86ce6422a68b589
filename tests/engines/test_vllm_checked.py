"""`snellen serve-check` of a real vLLM server: all that is true of it, within the ten seconds that were promised."""

from __future__ import annotations

import json
import time

import pytest

from command_line import run_command
from engine_questions import NAME

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the engine warns of its own libraries
WITHIN_S = 10.0


def test_everything_it_can_do_is_said(server, capsys):
    begun = time.monotonic()
    assert run_command(["serve-check", server, "--json", "--within", f"{WITHIN_S:g}"]) == 0
    took = time.monotonic() - begun
    facts = json.loads(capsys.readouterr().out)
    told = {probe["what"]: probe for probe in facts["probes"]}
    assert [what for what, probe in told.items() if not probe["ok"]] == ["tools"], "it was started without their flags"
    assert "512 tokens fit" in told["models"]["text"]
    assert "by chat-prompt-logprobs" in told["likelihood"]["text"]
    wanted = {f"--model vllm-server/{NAME}", "--stream", "[--infer-method likelihood]", "[--constrain options]"}
    assert wanted <= set(facts["flags"]), facts["flags"]
    assert took <= WITHIN_S + 5, "loading the program is not asking"
    with capsys.disabled():
        print(f"\nserve-check of vLLM's server: {len(told) - 1} of {len(told)} lines ok in {took:.1f} s")
