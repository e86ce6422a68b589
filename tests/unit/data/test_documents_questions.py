"""From files to trials: loaders, axes `pages` and `control`, document-ordered jobs, settled and voted trials."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Picture

from snellen.core.errors import ConfigError, DataError
from snellen.core.jobs import Item
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Prompt, Task
from snellen.core.types import FailureKind, Form, Image, Prediction, Request, Sample
from snellen.data.images.edits import apply_edits
from snellen.kits.pages.document import DOCUMENT
from snellen.kits.pages.loader import load_choice, load_needles, pages_bin
from snellen.prompt.build import Prompter
from snellen.prompt.controls import choose_pages, skip_reason, with_context

RECORD = {
    "_id": "doc1", "domain": "Single-Document QA", "sub_domain": "Legal", "difficulty": "medium", "length": "short",
    "question": "What is {x} in \\frac{a}{b}?", "choice_A": "one", "choice_B": "two", "choice_C": "three", "choice_D": "four",
    "answer": "B", "context": "x" * 42_000,
}  # fmt: skip


def files(tmp_path: Path, records: list[dict[str, Any]], pages: dict[str, int]) -> Task:
    (tmp_path / "data.json").write_text(json.dumps(records))
    for name, count in pages.items():
        variant, _, document = name.partition("/")
        folder = tmp_path / "vqa" / variant / "images"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, count + 1):
            Picture.new("L", (20, 30), 255).save(folder / f"{document}_page_{number:03d}.png")
    dataset = {"loader": "longbench-v2", "path": str(tmp_path / "data.json"), "image_root": str(tmp_path / "vqa")}
    return Task("t", dataset, Form.CHOICE)


def test_a_planted_text_belongs_to_the_length_it_was_planted_for(tmp_path: Path) -> None:
    planted = {**RECORD, "length": "8000", "context": "x" * 33_580}
    (sample,) = load_choice(files(tmp_path, [planted], {"clean/doc1": 1}), LoadContext())
    assert (sample.tags["context_tokens"], sample.tags["context_length"]) == (7_996, "8k-16k")


def test_a_longbench_record_becomes_a_choice_with_all_its_variants(tmp_path: Path) -> None:
    (sample,) = load_choice(files(tmp_path, [RECORD], {"clean/doc1": 3, "dpi56/doc1": 2}), LoadContext())
    assert sample.answers == ("two",) and sample.options == ("one", "two", "three", "four")
    assert [Path(image.ref).name for image in sample.images] == [f"doc1_page_00{number}.png" for number in (1, 2, 3)]
    assert sample.tags["difficulty"] == "medium" and sample.tags["domain"] == "Single-Document QA / Legal"
    assert sample.tags["context_length"] == "8k-16k" and sample.tags["context_tokens"] == 10_000
    assert len(choose_pages(sample, {"pages": "dpi56"})) == 2
    assert skip_reason(sample, {"pages": "nothere"}) == "no pages in variant 'nothere'"
    assert pages_bin(3) == "001-004" and pages_bin(150) == "100-199" and pages_bin(500) == "200+"


def test_a_data_root_is_where_the_file_and_its_pages_are_looked_for(tmp_path: Path) -> None:
    files(tmp_path, [RECORD], {"clean/doc1": 2})
    task = Task("t", {"loader": "longbench-v2", "path": "data.json", "image_root": "vqa"}, Form.CHOICE)
    (sample,) = load_choice(task, LoadContext(root=tmp_path))
    assert [Path(image.ref).parent.parent.parent for image in sample.images] == [tmp_path / "vqa"] * 2
    with pytest.raises(DataError, match=f"data file {tmp_path / 'elsewhere' / 'data.json'} does not exist"):
        list(load_choice(task, LoadContext(root=tmp_path / "elsewhere")))


def test_what_was_put_into_the_folder_of_datasets_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"_id": "a", "context": "Some text.", "questions": ["Which?"], "answers": ["7"]}
    (tmp_path / "niah").mkdir()
    (tmp_path / "niah" / "data.json").write_text(json.dumps([record]))
    monkeypatch.setenv("SNELLEN_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path / "niah")
    (sample,) = load_needles(Task("t", {"loader": "niah", "path": "niah/data.json"}, Form.OPEN), LoadContext())
    assert sample.answers == ("7",)


def test_questions_without_pages_stay_and_say_why(tmp_path: Path) -> None:
    records = [RECORD, {**RECORD, "_id": "doc2"}]
    task = files(tmp_path, records, {"a/doc1": 1, "b/doc1": 1, "b/doc2": 2})
    (tmp_path / "vqa" / "b" / "images" / "doc2_page_001.png").unlink()
    first, second = load_choice(task, LoadContext())
    assert skip_reason(first, {}).startswith("image_root holds variants")
    assert skip_reason(first, {"pages": "a"}) is None
    assert "no pages doc2_page_" in skip_reason(second, {"pages": "a"})
    assert skip_reason(second, {"pages": "b"}) == "page gap: 1 missing of 2"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"answer": "E"}, "not one of A, B, C, D"),
        ({"choice_C": ""}, "choice_C"),
        ({"question": None}, "question"),
        ({"_id": None}, "_id"),
    ],
)
def test_a_broken_record_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(load_choice(files(tmp_path, [{**RECORD, **change}], {"clean/doc1": 1}), LoadContext()))


def test_plain_needle_files_work_without_our_fields(tmp_path: Path) -> None:
    record = {
        "_id": "d",
        "questions": ["q1?", "q2?"],
        "answers": ["iron", "42"],
        "question_depths": ["0-20%", "20-40%"],
        "secrets": {"m": "iron"},
    }
    task = files(tmp_path, [record], {"clean/d": 2})
    first, second = load_needles(task, LoadContext())
    assert (first.id, first.answers, first.group, first.tags["needle_depth"]) == ("d#0", ("iron",), "d", "0-20%")
    assert second.meta["planted"] == ["iron"]
    with pytest.raises(DataError, match="same length"):
        list(load_needles(files(tmp_path, [{**record, "answers": ["x"]}], {}), LoadContext()))


def test_limits_are_applied_while_loading(tmp_path: Path) -> None:
    task = files(tmp_path, [RECORD], {"clean/doc1": 6})
    for limits, images, reason in (
        ({"max_images": 4}, 0, "too long"),
        ({"max_images": 4, "policy": "middle"}, 4, None),
        ({"max_images": 4, "policy": "chunk"}, 6, None),
    ):
        task.dataset["limits"] = limits
        (sample,) = load_choice(task, LoadContext())
        assert len(sample.images) == images
        assert (skip_reason(sample, {}) or "").startswith(reason or "")
    assert sample.meta["chunk_pages"] == 4


SAMPLE = Sample(
    "s", "t", Form.OPEN, "what?", (Image("/p1.png", page=1), Image("/p2.png", page=2)), answers=("yes",), group="doc",
    meta={"needle_pages": [2], "context": "the whole text", "pages": {"small": [(1, "/s1.png")]}, "edits": {"small": ["scale:0.5"]}},
)  # fmt: skip


def test_controls_change_the_evidence_and_nothing_else() -> None:
    prompter = Prompter(Task("t", {}, Form.OPEN), Prompt(template="{question}"), 0)
    texts = {name: prompter.build(SAMPLE, f"control={name}").messages[-1] for name in ("text", "oracle", "none")}
    assert texts["text"].text == "the whole text\n\nwhat?" and texts["text"].images == ()
    assert [image.page for image in texts["oracle"].images] == [2] and texts["oracle"].text == "what?"
    assert texts["none"].images == () and texts["none"].text == "what?"
    assert choose_pages(SAMPLE, {"pages": "small"})[0].edits == ("scale:0.5",)
    assert "transcript was loaded" in skip_reason(SAMPLE, {"control": "transcript"})
    assert with_context(SAMPLE, {}, "q") == "q"
    with pytest.raises(ConfigError, match="oracle"):
        choose_pages(SAMPLE, {"control": "oracl"})


def test_all_questions_of_a_document_see_the_same_degraded_pixels() -> None:
    prompter = Prompter(Task("t", {}, Form.OPEN), Prompt(template="{question}"), 0)
    other = Sample("s2", "t", Form.OPEN, "why?", SAMPLE.images, group="doc")
    first, second = (prompter.build(sample, "perturb=blur:2+jpeg:3").messages[-1].images for sample in (SAMPLE, other))
    assert first == second
    assert [edit.rsplit(":", 2)[0] for edit in first[0].edits] == ["perturb:blur:2", "perturb:jpeg:3"]
    assert first[0].edits[0].split(":")[3] != first[1].edits[0].split(":")[3]


class Recorder:
    """Stands in for the engine: notes what is asked and when, and how many are in flight."""

    def __init__(self, replies: dict[int, str] | None = None) -> None:
        self.sent: list[Request] = []
        self.settled: list[Prediction] = []
        self.open = self.most = 0
        self.started: list[str] = []
        self._replies = replies or {}

    async def __call__(
        self, item: Item, request: Request, settled: Prediction | None = None, *, keep: bool = True
    ) -> Prediction:
        if settled is not None:
            self.settled.append(settled)
            return settled
        self.sent.append(request)
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)
        self.open -= 1
        return Prediction(request.key, text=self._replies.get(len(self.sent), "x"))


def jobs_of(samples: list[Sample], variants: tuple[str, ...] = ("base",), **dataset: Any) -> list:
    task = Task("t", dataset, Form.OPEN, variants=variants)
    return list(
        DOCUMENT.plan(
            task,
            [Item(index, sample) for index, sample in enumerate(samples)],
            Prompter(task, Prompt(template="{question}"), 0),
        )
    )


def questions(document: str, count: int) -> list[Sample]:
    return [
        Sample(f"{document}#{index}", "t", Form.OPEN, f"q{index}", (Image(f"/{document}.png", page=1),), group=document)
        for index in range(count)
    ]


def test_the_first_question_warms_up_and_the_rest_fan_out() -> None:
    (job,) = jobs_of(questions("d", 5))
    recorder = Recorder()
    asyncio.run(job.run(recorder))
    assert [request.key.sample for request in recorder.sent] == [f"d#{index}" for index in range(5)]
    assert recorder.most == 4  # alone first, then four side by side


def test_documents_in_flight_are_bounded_and_variants_stay_with_their_document() -> None:
    jobs = jobs_of(
        [*questions("a", 2), *questions("b", 2), *questions("c", 2)], ("base", "perturb=jpeg:1"), documents_in_flight=2
    )
    assert [(job.keys[0].sample[0], job.keys[0].variant) for job in jobs[:3]] == [
        ("a", "base"),
        ("a", "perturb=jpeg:1"),
        ("b", "base"),
    ]
    recorder = Recorder()

    async def all_at_once() -> None:
        await asyncio.gather(*(job.run(recorder) for job in jobs))

    asyncio.run(all_at_once())
    assert recorder.most <= 2 and len(recorder.sent) == 12


def test_single_questions_are_not_held_back() -> None:
    jobs = jobs_of([sample for number in range(20) for sample in questions(f"d{number}", 1)], documents_in_flight=2)
    recorder = Recorder()

    async def all_at_once() -> None:
        await asyncio.gather(*(job.run(recorder) for job in jobs))

    asyncio.run(all_at_once())
    assert recorder.most == 20


def test_a_question_without_pages_is_settled_without_a_request() -> None:
    skipped = Sample("s", "t", Form.OPEN, "q", group="d", meta={"skip": {"": "page gap: 2 missing of 3"}})
    long = Sample("l", "t", Form.OPEN, "q", group="e", meta={"skip": {"": "too long: 9 pages where the model takes 4"}})
    recorder = Recorder()
    for job in jobs_of([skipped, long]):
        asyncio.run(job.run(recorder))
    assert recorder.sent == []
    assert [prediction.failure.kind for prediction in recorder.settled] == [FailureKind.SKIPPED, FailureKind.TOO_LONG]


def test_chunks_are_asked_apart_and_the_majority_is_the_reply() -> None:
    pages = tuple(Image(f"/p{number}.png", page=number) for number in range(1, 8))
    sample = Sample("s", "t", Form.OPEN, "q", pages, group="d", meta={"chunk_pages": 3})
    recorder = Recorder({1: "not found", 2: "Seven", 3: "seven "})
    (job,) = jobs_of([sample])
    asyncio.run(job.run(recorder))
    assert [len(request.messages[-1].images) for request in recorder.sent] == [3, 3, 1]
    (voted,) = recorder.settled
    assert voted.text == "Seven" and voted.detail["chunks"] == ["not found", "Seven", "seven"]


def test_scale_is_an_edit() -> None:
    assert apply_edits(Picture.new("L", (40, 20)), ["scale:0.5"]).size == (20, 10)
    for wrong in ("scale:0", "scale:x", "scale:2"):
        with pytest.raises(DataError, match="share"):
            apply_edits(Picture.new("L", (4, 4)), [wrong])
