"""FlagEvalMM's tables for open questions and prompts, equalled function by function."""

import json
from pathlib import Path
from typing import Any

from snellen.core.tasks import Prompt, Task
from snellen.core.types import Form, Sample
from snellen.kits.reform.flageval_rules import extract_numbers, extract_open
from snellen.prompt.build import Prompter
from snellen.scoring.scorers.mmmu_open import judge_open, parse_open

GOLDEN = Path(__file__).parent / "data" / "flageval"


def rows(name: str) -> list[dict[str, Any]]:
    return json.loads((GOLDEN / f"head__table_{name}.json").read_text("utf-8"))["rows"]


def test_mmmu_open_questions() -> None:
    for row in rows("mmmu_open"):
        assert sorted(map(str, parse_open(row["answer"]))) == row["parsed"], row
        assert judge_open(row["answer"], row["gt"]) == row["correct"], row


def test_open_answers() -> None:
    for row in rows("open_extract_answer"):
        assert extract_open(row["input"]) == row["output"], row


def test_open_numbers() -> None:
    for row in rows("open_extract_numbers"):
        assert extract_numbers(row["input"]) == row["output"], row


def test_prompts() -> None:
    """The published wordings come from the file; choosing, joining and stripping are ours."""
    wordings: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
    for row in (row for row in rows("prompt_template") if "post_prompt" not in row):
        kind = "default" if row["question_type"] in ("open", "other") else row["question_type"]
        wordings["en" if row["question"].isascii() else "zh"][kind] = row["prompt"].split("\n", 1)[1]
    for row in rows("prompt_template"):
        by_type = wordings["en" if row["question"].isascii() else "zh"]
        after = row.get("post_prompt")
        after = by_type.get(row["question_type"], by_type.get("default")) if after is None else after
        prompt = Prompt(
            template=row.get("pre_prompt", "").lstrip() + "{question}\n{instruction}", instructions=(after.strip(),)
        )
        request = Prompter(Task("t", {"loader": "table"}), prompt, seed=0).build(
            Sample("s", "d", Form.OPEN, row["question"])
        )
        assert request.messages[0].text == row["prompt"], row
