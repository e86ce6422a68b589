"""Pages of the documentation as blocks, and for every page the files that its commands speak of."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image

import snellen

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^(?P<tick>```+)(?P<kind>\w*)[^\n]*\n(?P<code>.*?)^(?P=tick)[ ]*$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- needs: ([^>]+?) -->\n+\Z")
SHOWN = ("text", "toml", "json", "jsonl", "yaml")
"""Kinds of fences that show something and run nothing."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    kind: str
    code: str
    needs: str
    """What the block needs that is not here (`<!-- needs: a GPU -->` before the fence); empty: it runs."""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found = []
    for match in FENCE.finditer(text):
        mark = MARK.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match["kind"], match["code"], mark[1] if mark else ""))
    return found


def commands_of(block: Block) -> list[str]:
    """Return the commands of a shell block: continued lines joined; of a console block only what follows `$ `."""
    lines = block.code.replace("\\\n", " ").splitlines()
    if block.kind == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def docs_tool(name: str) -> Any:
    """Return a module of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put(path: str, value: Any) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def write_questions() -> None:
    """`my.jsonl`, as the README describes it."""
    PIL.Image.new("RGB", (40, 20), "teal").save("a.png")
    rows = [
        {"id": n, "image": "a.png", "question": f"Question {n}?", "options": ["cat", "dog", "cow"], "answer": "B", "topic": n % 2}
        for n in range(6)
    ]  # fmt: skip
    put("my.jsonl", "\n".join(map(json.dumps, rows)))


def write_examples() -> None:
    shutil.copytree(ROOT / "examples", "examples")


def write_local() -> None:
    write_questions()
    shutil.copy(ROOT / "examples" / "my_model.py", "my_model.py")


def write_shop() -> None:
    from workshop_fixtures import write_sources

    write_sources(Path(), 60, sherlock=True)


def write_chains() -> None:
    from cure_fixtures import write_cure

    shutil.copy(write_cure(Path("pictures")), "cot_consistency_eval.jsonl")


def write_documents() -> None:
    put("book.txt", "The quick brown fox jumps over the lazy dog. " * 60)
    records = [
        {"_id": f"doc{n}", "domain": "D", "sub_domain": "S", "difficulty": "easy", "length": "short", "answer": "ABCD"[n % 4],
         "question": f"Which one is number {n}?", "context": f"The value is value{n}. " * 5,
         **{f"choice_{letter}": f"value{n}{letter}" for letter in "ABCD"}}
        for n in range(2)
    ]  # fmt: skip
    put("data.json", records)
    for number in range(2):
        path = Path(f"data/vqa/clean/images/doc{number}_page_001.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.new("RGB", (60, 40), "white").save(path)
    put("qwen3-vl.json", {"model_name": "mock", "max_tokens": 32, "prompt_template": "{question}\n{choices}"})


def write_predictions() -> None:
    options = ["red", "blue", "green"]
    record = {"answer": 1, "answer_options": options}
    choices = [
        record | {"sample_id": f"s{n}", "round_id": n % 2, "prediction": f"({'AB'[repeat]}) {options[repeat]}"}
        for n in range(4)
        for repeat in range(2)
    ]
    put("predictions.json", choices)
    put("likelihoods.json", [row | {"prediction": place % 3} for place, row in enumerate(choices)])
    put("captions.json", [{"prediction": "a red house", "references": ["a red house", "the house is red"]}] * 2)
    put("answers.json", [{"question_id": n, "answer": {"inference_0": "A", "inference_1": "B"}} for n in range(3)])
    annotation = {"question_type": "multiple-choice", "answer": "A", "options": options, "sub_task": "colour"}
    put("data.json", [annotation | {"question_id": n} for n in range(3)])
    truth = {"inference": 1, "chain": [0, 2]}
    put("chains.json", [{"ground_truth": truth, "prediction": truth}] * 3)


def write_reform() -> None:
    import tomllib

    import reform_fixtures

    cards = ROOT / "src" / "snellen" / "catalog" / "datasets" / "reform"
    reform_fixtures.raw("vqa-v2", Path("vqa"))
    for slug in ("vqa-v2", "visdial", "vqa-mt"):
        card = tomllib.loads((cards / f"{slug}.toml").read_text(encoding="utf-8"))
        reform_fixtures.prepared(slug, Path("data/reform") / slug, card)


def write_runs() -> None:
    import snellen

    write_questions()
    for name, model in {"a": "first", "b": "longest", "c": "shortest", "pilot": "random"}.items():
        snellen.run("my.jsonl", f"blind/{model}", output_dir=Path("runs") / name)


def write_foreign() -> None:
    """Files of other harnesses: a VLMEvalKit sheet, samples of lmms-eval, a log of inspect_ai, FlagEvalMM's answers."""
    import foreign_files as files

    options = ["a cat", "a dog", "a horse"]
    replies = (
        "B",
        "The answer is (A).",
        "B, since everything about the animal in the picture says so",
        "so not B",
        "hm",
    )
    rows = [files.mcq(n, reply) for n, reply in enumerate(replies)]
    files.write_sheet(Path("outputs/qwen_MMStar.xlsx"), rows)
    files.write_lines(
        Path("bench.jsonl"),
        [{"id": row["index"], "question": row["question"], "options": options, "answer": "B"} for row in rows],
    )
    prompt = "Which?\nA. a cat\nB. a dog\nC. a horse\nAnswer with the option's letter from the given choices directly."
    samples = [
        {"doc_id": n, "target": "B", "input": prompt, "filtered_resps": [reply]} for n, reply in enumerate(replies)
    ]
    files.write_lines(Path("logs/20260801_120000_samples_mmstar.jsonl"), samples)
    members = [
        ("header.json", files.inspect_header(1, 1.0)),
        ("samples/1_epoch_1.json", files.inspect_sample(1, "ANSWER: B")),
    ]
    files.write_archive(Path("logs/mmmu.eval"), members)
    answers = [{"question_id": str(n), "question": prompt, "answer": reply} for n, reply in enumerate(replies)]
    files.write_json(Path("results/blink/blink.json"), answers)
    files.write_json(
        Path("results/blink/blink_evaluated.json"), [row | {"label": "B", "correct": True} for row in answers]
    )


def write_bridges() -> None:
    """A run, and two files of rows of one's own."""
    write_runs()
    for name in ("theirs", "more"):
        row = {"id": 1, "question": "?", "options": ["x", "y"], "answer": "x", "response": "A"}
        put(f"{name}.jsonl", json.dumps(row))


def write_measured() -> None:
    """`my.jsonl`, and a run of it to compare with."""
    import snellen

    write_questions()
    snellen.run("my.jsonl", "blind/first", output_dir=Path("runs") / "before")


def write_compared() -> None:
    """`my.jsonl`, a run to plan from and a third one to compare."""
    import snellen

    write_questions()
    for name, model in {"third": "longest", "pilot": "random"}.items():
        snellen.run("my.jsonl", f"blind/{model}", output_dir=Path("runs") / name)


def write_replies() -> None:
    """`rows.jsonl`: replies of a model to MMMU-Pro, as another program left them."""
    replies = ["Let me see.\nAnswer: B", "B", "no idea", None]
    rows = [
        {"id": f"test_Art_{n}", "options": "['Klee', 'Marc']", "answer": "B", "response": reply}
        for n, reply in enumerate(replies)
    ]
    put("rows.jsonl", "\n".join(map(json.dumps, rows)))


def write_bank_shop() -> None:
    """Runs of eight models, a table of two more, replies of a new one and of one that is nearly the same; a ledger."""
    import drawn_banks
    from snellen.data.errata import Erratum, question_hash, write_errata

    results = drawn_banks.drawn_bank(11, 200)
    drawn_banks.make_runs(Path(), results[:8])
    lines = [",".join(["model", *(f"q{n}" for n in range(200))])]
    lines += [",".join([f"other-{row}", *map(str, results[row])]) for row in (8, 9)]
    put("table.csv", "\n".join(lines))
    drawn_banks.write_replies(Path("new.jsonl"), results[10])
    drawn_banks.write_replies(Path("same.jsonl"), results[5])
    snellen.run("task.jsonl", "replay/same.jsonl", output_dir="candidates/same", cache=False)
    sample = next(iter(snellen.load_dataset("task.jsonl")))
    entry = Erratum(
        "task", sample.id, question_hash(sample), sample.answers, "corrected", (sample.options[1],), "2026-07"
    )
    write_errata(Path("errata.jsonl"), [entry])
    put("newer.jsonl", Path("task.jsonl").read_text().replace("Question 3?", "Question three?"))


WORLDS: dict[str, Callable[[], None]] = {
    "bank.md": write_bank_shop,
    "README.md": write_questions,
    "bridges.md": write_bridges,
    "ci.md": write_measured,
    "add-your-own-inferencer.md": write_questions,
    "add-your-own-model.md": write_examples,
    "add-your-own-scorer.md": write_examples,
    "compare.md": write_compared,
    "several-inferences.md": write_questions,
    "own-data.md": write_questions,
    "python.md": write_questions,
    "coming-from.md": write_foreign,
    "curate.md": write_shop,
    "cure.md": write_chains,
    "documents.md": write_documents,
    "local-models.md": write_local,
    "metrics.md": write_predictions,
    "looking-again.md": write_examples,
    "picture.md": write_examples,
    "perf.md": write_questions,
    "published.md": write_replies,
    "reform.md": write_reform,
    "second-opinion.md": write_foreign,
    "scale.md": write_questions,
    "arrays.md": write_questions,
    "statistics.md": write_runs,
}
"""Page -> what writes the files it speaks of into the current folder."""
