"""Judges for tests: a model that reads the case number of what it is asked and says what a function tells it to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from line_doubles import Scripted
from snellen.api.judges import ask_judge
from snellen.api.settings import RunSettings
from snellen.core.types import Prediction, Request
from snellen.scoring.judge_card import Judge

CASE = re.compile(r"Case ([0-9a-f]{12})\.")
FENCED = re.compile(r"=====\[[0-9a-f]{20}\]=====\n(.*?)\n=====\[", re.DOTALL)


def judged_answer(request: Request) -> str:
    """Return the answer under judgement."""
    found = FENCED.search(request.messages[-1].text)
    assert found is not None, request.messages[-1].text
    return found[1]


def judge_model(decide: Callable[[Request, str], dict[str, Any] | str], name: str = "scripted/judge") -> Scripted:
    """Return a model that answers with the fields `decide` gives for an answer, or with its text as it is."""

    async def answer(request: Request) -> Prediction:
        case = CASE.search(request.messages[-1].text)
        assert case is not None, request.messages[-1].text
        said = decide(request, judged_answer(request))
        text = said if isinstance(said, str) else json.dumps({"case": case[1], **said})
        return Prediction(request.key, text=text)

    model = Scripted(answer)
    model.name = name
    model.cacheable = False
    return model


def ask_about(folder: Path, judge: Judge, model: Scripted) -> None:
    """Ask a judge about a run, as `snellen score --judge` does."""
    ask_judge(folder, judge, model, RunSettings(tasks=(), model=model.name))
