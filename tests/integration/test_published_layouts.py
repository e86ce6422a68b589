"""Files of replies in the layouts in which authors publish them, each scored by one command and no line of Python.

The rows are made; the shapes are those of MMMU-Pro, lmms-eval, M3CoT, LogicVista (two), BLINK, TempCompass (two),
SEED-Bench, LLaVA on ScienceQA, ScienceQA, HallusionBench, MM-Vet, MathVista, MATH-V, BenchLMM and MMStar.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command_line import run_command
from foreign_files import write_json, write_lines, write_sheet

pytestmark = pytest.mark.usefixtures("own_folder")


class Layout(NamedTuple):
    """One layout: its files by name (the first is scored), what is typed, and how many of how many are right."""

    files: dict[str, Any]
    typed: list[str]
    right: int
    rows: int


OPTIONS = ["a bridge", "a tower", "a tree"]
LISTED = "What is it?\nA. a bridge\nB. a tower\nC. a tree"
ASKED = "[Question]\nWhat is it?\n[Choices]\n(A) a bridge\n(B) a tower\n(C) a tree"
REPLIES = [("1", "B", "The answer is (B) a tower."), ("2", "A", "C"), ("3", "C", "C")]
QUESTIONS = [{"id": name, "question": "What is it?", "options": OPTIONS, "answer": gold} for name, gold, _ in REPLIES]
PROBLEMS = {
    name: {"question": "What is it?", "choices": OPTIONS, "answer": "ABC".index(gold)} for name, gold, _ in REPLIES
}

LAYOUTS = {
    "mmmu-pro": Layout(
        {
            "rows.jsonl": [
                {"id": n, "question": "<image 1> What?", "options": str(OPTIONS), "answer": gold, "response": reply}
                for n, gold, reply in REPLIES
            ]
        },
        ["--task", "mmmu-pro", "--protocol", "official"],
        2,
        3,
    ),
    "lmms-eval": Layout(
        {
            "x_samples_scienceqa_img.jsonl": [
                {"doc_id": i, "target": gold, "input": LISTED, "filtered_resps": [reply], "doc": {"question": "?"}}
                for i, (_, gold, reply) in enumerate(REPLIES)
            ]
        },
        [],
        2,
        3,
    ),
    "m3cot": Layout(
        {
            "direct.jsonl": [
                {"id": n, "choices": OPTIONS, "answer": gold, "domain": "d", "messages": [ASKED, reply]}
                for n, gold, reply in REPLIES
            ]
        },
        ["--map", "response=messages[-1]"],
        2,
        3,
    ),
    "chat messages": Layout(
        {
            "chats.jsonl": [
                {
                    "id": n,
                    "choices": OPTIONS,
                    "answer": gold,
                    "messages": [
                        {"role": "user", "content": ASKED},
                        {"role": "assistant", "content": [{"type": "text", "text": reply}]},
                    ],
                }
                for n, gold, reply in REPLIES
            ]
        },
        ["--map", "response=messages[-1].content"],
        2,
        3,
    ),
    "logicvista answers": Layout(
        {
            "GIT-answers.json": {f"v1_{n}": {"answer": reply, "reasoning": "none"} for n, _, reply in REPLIES},
            "dataset.json": {
                f"v1_{n}": {"question": LISTED, "answer": gold, "capability": ["diagram"]} for n, gold, _ in REPLIES
            },
        },
        ["--map", "response=answer", "--data", "dataset.json"],
        2,
        3,
    ),
    "logicvista results": Layout(
        {
            "GIT-results.csv": [
                {
                    "": i,
                    "id": f"v1_{n}",
                    "reasoning skill": "['inductive']",
                    "true answer": f"['{gold.lower()}']",
                    "GIT answer extracted": "['d']",
                    "GIT answer raw": reply,
                    "match?": "1",
                }
                for i, (n, gold, reply) in enumerate(REPLIES)
            ]
        },
        ["--map", "response=GIT answer raw", "--map", "answer=true answer", "--map", "verdict=match?"],
        2,
        3,
    ),
    "blink": Layout(
        {
            "Counting.json": {
                "val": [
                    {
                        "idx": f"val_Counting_{n}",
                        "answer": f"({gold})",
                        "full_prediction": reply,
                        "prediction": "(A)",
                    }
                    for n, gold, reply in REPLIES
                ],
                "test": [{"idx": "test_Counting_1", "answer": "hidden", "full_prediction": "(A)", "prediction": "(A)"}],
            }
        },
        ["--map", "response=full_prediction", "--map", "read=prediction"],
        2,
        3,
    ),
    "tempcompass predictions": Layout(
        {
            "multi-choice.json": {
                f"10{n}": {
                    "action": [
                        {
                            "question": LISTED,
                            "answer": f"{gold}. {OPTIONS['ABC'.index(gold)]}",
                            "prediction": f"{reply[:1]}."
                            if len(reply) == 1
                            else f"{gold}. {OPTIONS['ABC'.index(gold)]}",
                        }
                    ]
                }
                for n, gold, reply in REPLIES
            }
        },
        [],
        2,
        3,
    ),
    "tempcompass results": Layout(
        {
            "yes_no.json": {
                "1034": {
                    "action": [
                        {
                            "question": "Is it?",
                            "gt-answer": gold,
                            "video-llm-prediction": said,
                            "match_success": True,
                            "rating": int(gold == said.lower()),
                        }
                        for gold, said in (("yes", "Yes"), ("no", "Yes"))
                    ],
                    "speed": [
                        {"question": "Fast?", "gt-answer": "no", "video-llm-prediction": "No, slow.", "rating": 1}
                    ],
                }
            }
        },
        ["--map", "response=video-llm-prediction", "--map", "answer=gt-answer", "--map", "verdict=rating"],
        2,
        3,
    ),
    "seed-bench": Layout(
        {
            "GPT-4V.json": ",\n".join(
                json.dumps({"question_id": n, "prediction": reply[-1] if len(reply) == 1 else "B", "gt_answer": gold})
                for n, gold, reply in REPLIES
            )
            + ",\n"
        },
        ["--map", "answer=gt_answer"],
        2,
        3,
    ),
    "llava on scienceqa": Layout(
        {
            "output.jsonl": json.dumps(
                {
                    side: [
                        {
                            "question_id": n,
                            "parsed_ans": "A",
                            "ground_truth": gold,
                            "question": f"{LISTED}\nAnswer with the option's letter from the given choices directly.",
                            "pred": reply,
                            "is_multimodal": False,
                        }
                        for n, gold, reply in rows
                    ]
                    for side, rows in (("correct", REPLIES[:1] + REPLIES[2:]), ("incorrect", REPLIES[1:2]))
                },
                indent=2,
            )
        },
        ["--map", "response=pred"],
        2,
        3,
    ),
    "scienceqa": Layout(
        {
            "gpt3.json": {
                "acc": 66.7,
                "count": 3,
                "shot_qids": ["7"],
                "args": {"model": "gpt3", "options": ["A", "B"]},
                "results": {n: 0 for n, _, _ in REPLIES},
                "outputs": {n: f"The answer is {reply[:1] if len(reply) == 1 else 'B'}." for n, _, reply in REPLIES},
            },
            "problems.json": PROBLEMS,
        },
        ["--map", "response=outputs", "--data", "problems.json"],
        2,
        3,
    ),
    "hallusionbench": Layout(
        {
            "sample.json": [
                {
                    "category": "VD",
                    "subcategory": "illusion",
                    "set_id": "0",
                    "figure_id": str(figure),
                    "question_id": "0",
                    "question": "Is it larger?",
                    "gt_answer_details": "It is.",
                    "gt_answer": gold,
                    "model_prediction": said,
                }
                for figure, (gold, said) in enumerate((("yes", "Yes, it is."), ("no", "Yes, it is."), ("no", "No.")))
            ]
        },
        [
            *("--map", "id=category,subcategory,set_id,figure_id,question_id"),
            *("--map", "response=model_prediction", "--map", "answer=gt_answer"),
        ],
        2,
        3,
    ),
    "mm-vet": Layout(
        {
            "gemini.json": {f"v2_{n}": reply for n, _, reply in REPLIES},
            "questions.json": [row | {"id": f"v2_{row['id']}"} for row in QUESTIONS],
        },
        ["--data", "questions.json"],
        2,
        3,
    ),
    "mathvista": Layout(
        {
            "output_bard.json": {
                n: {
                    "pid": n,
                    "question": "What is it?",
                    "choices": OPTIONS,
                    "answer": OPTIONS["ABC".index(gold)],
                    "question_type": "multi_choice",
                    "metadata": {"split": "testmini"},
                    "query": "Hint …",
                    "response": reply,
                    "extraction": "B",
                    "prediction": OPTIONS[1],
                    "true_false": False,
                }
                for n, gold, reply in REPLIES
            }
        },
        [],
        2,
        3,
    ),
    "math-v": Layout(
        {
            "Gemini-Pro.jsonl": [
                {"id": n, "model": "gemini", "response": reply, "model_answer": "b", "correct": True}
                for n, _, reply in REPLIES
            ],
            "test.jsonl": QUESTIONS,
        },
        ["--data", "test.jsonl"],
        2,
        3,
    ),
    "benchlmm": Layout(
        {
            "answers_game.jsonl": [
                {
                    "question_id": n,
                    "prompt": "You are a game assistant. (A) a bridge (B) a tower (C) a tree. Please give the answer.",
                    "model_output": reply,
                    "answer_id": "x",
                    "model_id": "llava",
                    "metadata": {},
                }
                for n, _, reply in REPLIES
            ],
            "Benchmark_game.jsonl": QUESTIONS,
        },
        ["--data", "Benchmark_game.jsonl"],
        2,
        3,
    ),
    "mmstar": Layout(
        {
            "llava_MMStar.xlsx": [
                {
                    "index": int(n),
                    "question": "What is it?\nOptions: A: a bridge, B: a tower, C: a tree",
                    "answer": gold,
                    "category": "coarse perception",
                    "prediction": reply,
                }
                for n, gold, reply in REPLIES
            ]
        },
        [],
        2,
        3,
    ),
}


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


WRITERS: dict[str, Callable[[Path, Any], object]] = {
    ".csv": write_csv,
    ".xlsx": write_sheet,
    ".jsonl": write_lines,
    ".json": write_json,
}


def write(files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = Path(name)
        if isinstance(content, str):
            path.write_text(content)
        else:
            WRITERS[path.suffix](path, content)
    return Path(next(iter(files)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_published_layout_is_scored_by_one_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    layout = LAYOUTS[name]
    assert run_command(["score", write(layout.files), *layout.typed, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    accuracy = found["metrics"]["accuracy"]
    assert (accuracy["n"], accuracy["value"]) == (layout.rows, pytest.approx(layout.right / layout.rows))
    assert "bad" not in found["damage"]


def test_replies_about_pictures_need_no_pictures_and_a_bad_row_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {
            "id": "a",
            "question": "See <image 2>.",
            "options": ["<image 3>", "<image 4>"],
            "answer": "A",
            "response": "A",
        },
        {"id": "b", "question": "See <image 1>.", "options": ["x", "y"], "answer": "Q", "response": "A"},
        {"id": "c", "question": "Which?", "options": ["x.png", "y.png"], "answer": "B", "response": "A"},
    ]
    file = write({"rows.jsonl": rows})
    assert run_command(["score", file, "--task", "mmmu-pro", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["metrics"]["accuracy"]["value"]) == (2, 0.5)
    assert found["damage"]["bad"]["count"] == 1 and "record 2" in found["damage"]["bad"]["first"][0]


def test_a_file_without_any_right_answer_gives_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    file = write({"rows.jsonl": [{"id": "a", "response": "A"}]})
    assert run_command(["score", file]) == 2
    assert "--data" in capsys.readouterr().err
    assert run_command(["import", file]) == 0


def test_verdicts_of_the_file_stand_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": n, "response": "A", "answer": "A", "ok?": said} for n, said in enumerate(("right", "wrong"))]
    assert run_command(["score", write({"rows.jsonl": rows}), "--map", "verdict=ok?", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert (metrics["accuracy"]["value"], metrics["file_verdict"]["value"]) == (1.0, 0.5)


def test_a_file_with_verdicts_alone_gives_its_own_number_by_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": n, "response": "60", "model_answer": "60", "correct": n < 3} for n in range(4)]
    assert run_command(["score", write({"rows.jsonl": rows}), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["metric"], found["value"], found["scored"]) == ("file_verdict", 0.75, 4)


def test_the_same_file_read_otherwise_is_another_run(capsys: pytest.CaptureFixture[str]) -> None:
    file = write({"rows.jsonl": [{"id": 1, "first": "A", "second": "B", "answer": "A"}]})
    for column, code in (("first", 0), ("first", 0), ("second", 2)):
        assert run_command(["score", file, "--map", f"response={column}", "-o", "run"]) == code
    assert "another configuration" in capsys.readouterr().err


def test_what_was_scored_is_compared_and_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    for name, reply in (("one", "A"), ("two", "B")):
        files = {f"{name}.jsonl": [{"id": row["id"], "response": reply} for row in QUESTIONS], "bench.jsonl": QUESTIONS}
        assert run_command(["score", write(files), "-o", name, "--data", "bench.jsonl", "--json"]) == 0
    assert run_command(["compare", "one", "two"]) == 0
    assert run_command(["leaderboard", "one", "two"]) == 0
    capsys.readouterr()
    assert run_command(["score", "one", "--profile", "reform", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["profile"] == "reform"
    assert run_command(["show", "one"]) == 0
