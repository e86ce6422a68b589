"""`snellen import` and `snellen second-opinion` from the command line: made files in, counted disagreements out."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from command_line import run_command
from foreign_files import inspect_header, inspect_sample, mcq, write_archive, write_json, write_lines, write_tsv
from snellen.store.reader import RunReader

MISREAD = {
    "3": "B, since everything about the animal in the picture says so",  # read by nobody but us: right
    "4": "Surely a cat: the others are no match, so not B",  # read as B, which is right; it says A
    "5": "A, since everything about the animal in the picture says so",  # read by nobody but us: wrong
}
"""Replies that VLMEvalKit's rule misreads, by row; the right answer is B, a dog."""
PLAIN = {"1": "B", "2": "The answer is (A).", "6": "a dog", "7": "(C)"}
FAILED = {"8": "Failed to obtain answer via API.", "9": "Failed to obtain answer: KeyError B"}
SILENT = {"10": "I cannot tell what that is"}


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def made() -> Path:
    replies = {**PLAIN, **MISREAD, **FAILED, **SILENT}
    return write_tsv(Path("small_MMStar.tsv"), [mcq(index, replies[index]) for index in sorted(replies, key=int)])


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """Run a command with --json and return what it prints."""
    capsys.readouterr()
    code = run_command([*arguments, "--json"])
    printed = capsys.readouterr()
    assert code == 0, printed.out + printed.err
    value: dict[str, Any] = json.loads(printed.out)
    return value


def listed(folder: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(folder) / "second-opinion.jsonl").read_text().splitlines()]


def test_a_made_set_gives_exactly_its_known_misreadings(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "second-opinion", made)
    assert {row["sample"] for row in listed(found["folder"]) if row["kind"] == "misread"} == set(MISREAD)
    kinds = found["kinds"]
    assert (kinds["misread"]["for the model"], kinds["misread"]["against the model"], kinds["misread"]["neither"]) == (
        1,
        1,
        1,
    )
    assert (kinds["failure_counted"]["count"], found["failures_counted_as_right"]) == (2, 1)
    assert kinds["unread_counted"]["count"] == 1
    # By its rule 1, 4, 6 and 9 are right, of ten rows; by what the replies say 1, 3 and 6, of the eight replies.
    assert found["peer"]["value"] == pytest.approx(0.4)
    assert (found["peer"]["how"], found["peer"]["n"]) == ("reproduced", 10)
    assert found["ours"]["value"] == pytest.approx(3 / 8)
    assert found["ours"]["read"] == {"value": pytest.approx(3 / 7), "n": 7}
    assert (found["ours"]["n"], found["unscored"], found["failed"]) == (8, 1, 2)
    assert found["ours"]["ci95"] is not None
    assert found["steps"][-1]["after"] == pytest.approx(3 / 8)
    assert "VLMEvalKit counts 40.0 %, we 37.5 %" in found["in_words"]


def test_numbers_of_groups_are_not_called_read_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [mcq(1, "B"), mcq(2, FAILED["8"]), mcq(3, "")]
    found = answer(capsys, "second-opinion", write_tsv(Path("small_MMBench_DEV_EN.tsv"), rows))
    assert (found["peer"]["value"], found["ours"]["value"]) == (pytest.approx(1 / 3), 0.5)
    assert "by the rows that the lines above count" in found["in_words"]


def test_the_terminal_and_the_page_show_both_numbers_and_the_replies(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = mcq(11, "B <script>alert(1)</script> \x1b[31m and so on and on and on and on")
    rows = [json.loads(json.dumps(hostile))]
    assert run_command(["second-opinion", write_json(Path("small_RealWorldQA.json"), rows), "-o", "hostile"]) == 0
    assert run_command(["second-opinion", made, "-o", "run"]) == 0
    printed = capsys.readouterr().out
    assert "as VLMEvalKit counts" in printed
    assert "40.0 % (n = 10 rows, by its rule, applied again)" in printed
    assert "1 for the model, 1 against the model" in printed
    assert "\x1b[31m" not in printed
    page = Path("run/second-opinion.html").read_text()
    assert "Two numbers" in page
    assert all(reply.split(",")[0] in page for reply in MISREAD.values())
    assert "<script" not in Path("hostile/second-opinion.html").read_text()


def test_the_page_shows_first_what_moves_the_number_and_says_how_many_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    silent = [mcq(n, "A, since everything about the animal in the picture says so") for n in range(1, 251)]
    rows = [*silent, mcq("last", "B, since everything about the animal in the picture says so")]
    found = answer(capsys, "second-opinion", write_json(Path("small_MMStar.json"), rows), "-o", "run")
    assert found["kinds"]["misread"]["count"] == 251
    page = Path("run/second-opinion.html").read_text()
    assert "the first 200 of 251" in page
    assert page.index(">last<") < page.index(">123<")
    assert len(listed("run")) == 251


def test_an_imported_run_is_a_run_and_importing_again_changes_nothing(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = answer(capsys, "import", made, "-o", "run")
    again = answer(capsys, "import", made, "-o", "run")
    assert first == again
    assert (first["task"], first["model"], first["failed"]) == ("mmstar", "small", 2)
    assert run_command(["show", "run"]) == 0
    assert run_command(["report", "run", "--export", "jsonl"]) == 0
    assert run_command(["score", "run", "--profile", "aisbench"]) == 0
    second = answer(capsys, "second-opinion", "run")
    assert second["kinds"]["misread"]["count"] == len(MISREAD)


def test_options_of_importing_say_nothing_of_a_run_and_a_run_of_ours_has_no_harness(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(capsys, "import", made, "-o", "run")
    assert run_command(["second-opinion", "run", "--task", "x"]) == 2
    assert "leave them out" in capsys.readouterr().err
    write_lines(Path("my.jsonl"), [{"id": 1, "question": "Which?", "options": ["a", "b"], "answer": "A"}])
    assert run_command(["run", "my.jsonl", "--model", "blind/first", "-o", "own"]) == 0
    assert run_command(["second-opinion", "own"]) == 2
    assert "snellen score" in capsys.readouterr().err


def test_two_harnesses_on_one_benchmark_are_compared_by_the_rows_of_the_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    PIL.Image.new("RGB", (30, 20), "teal").save("a.png")
    options = ["a cat", "a dog", "a horse"]
    data = [
        {"id": f"q{n}", "image": "a.png", "question": f"Which animal is it, q{n}?", "options": options, "answer": "B"}
        for n in range(1, 5)
    ]
    write_lines(Path("bench.jsonl"), data)
    write_tsv(Path("small_MMStar.tsv"), [mcq(f"q{n}", reply) for n, reply in ((1, "B"), (2, "B"), (3, "A"))])
    prompt = "Which animal is it?\nA. a cat\nB. a dog\nC. a horse\n"
    samples = [
        {"doc_id": n, "target": "B", "input": prompt, "filtered_resps": reply}
        for n, reply in enumerate(("B", "A", "A", "B"))
    ]
    write_lines(Path("t_samples_mmstar.jsonl"), samples)
    one = answer(capsys, "import", "small_MMStar.tsv", "--data", "bench.jsonl", "-o", "one")
    assert one["damage"]["missing"] == {"count": 1, "what": one["damage"]["missing"]["what"], "first": ["q4"]}
    assert one["results"]["mmstar"]["metrics"]["accuracy"]["not_yet_asked"] == 1
    answer(
        capsys,
        "import",
        "t_samples_mmstar.jsonl",
        "--data",
        "bench.jsonl",
        "--join",
        "order",
        "--model",
        "small",
        "-o",
        "two",
    )
    (compared,) = answer(capsys, "compare", "one", "two")["tasks"]["mmstar"][:1]
    assert compared["paired"] == 3
    assert [flip["sample"] for flip in compared["worse"]] == ["q2"]
    stored = json.loads(Path("two/records.jsonl").read_text().splitlines()[0])
    assert stored["sample"] == "q1"


def test_the_harness_s_own_data_file_gives_the_pictures(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PIL.Image.new("RGB", (30, 20), "teal").save("a.png")
    picture = base64.b64encode(Path("a.png").read_bytes()).decode()
    rows = [mcq(n, "") for n in range(1, 11)]
    write_tsv(
        Path("MMStar.tsv"), [{**{k: v for k, v in row.items() if k != "prediction"}, "image": picture} for row in rows]
    )
    answer(capsys, "import", made, "--data", "MMStar.tsv", "-o", "run")
    with RunReader("run") as run:
        trials = list(run.trials("mmstar"))
    assert len(trials) == 10
    assert all(len(trial.request.messages[0].images) == 1 for trial in trials)
    assert trials[0].request.shown == ("a cat", "a dog", "a horse")


def test_rows_that_are_not_in_the_data_are_refused(capsys: pytest.CaptureFixture[str], made: Path) -> None:
    write_lines(Path("bench.jsonl"), [{"id": "q1", "question": "Which?", "options": ["a", "b"], "answer": "A"}])
    assert run_command(["import", made, "--data", "bench.jsonl", "-o", "run"]) == 2
    assert "row '1' is not in bench.jsonl" in capsys.readouterr().err
    assert not Path("run/run.db").exists()
    others = [
        {"id": str(n), "question": "Something else?", "options": ["a cat", "a dog", "a horse"], "answer": "B"}
        for n in range(1, 11)
    ]
    write_lines(Path("bench.jsonl"), others)
    assert run_command(["import", made, "--data", "bench.jsonl", "-o", "run"]) == 2
    assert "questions read otherwise" in capsys.readouterr().err


def test_the_benchmark_gives_options_and_right_answers_that_the_file_does_not_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    samples = [{"doc_id": n, "target": "B", "input": "Which?", "filtered_resps": "(B)"} for n in range(3)]
    write_lines(Path("t_samples_mmmu_val.jsonl"), samples)
    data = [{"id": f"q{n}", "question": "Which?", "options": ["a cat", "a dog"], "answer": "B"} for n in range(3)]
    write_lines(Path("bench.jsonl"), data)
    alone = answer(capsys, "second-opinion", "t_samples_mmmu_val.jsonl", "-o", "alone")
    assert alone["damage"]["no_options"]["count"] == 3
    assert (alone["peer"]["value"], alone["ours"]["value"], alone["unscored"]) == (1.0, 1.0, 0)
    joined = answer(capsys, "second-opinion", "t_samples_mmmu_val.jsonl", "--data", "bench.jsonl", "-o", "joined")
    assert joined["damage"] == {}
    assert (joined["peer"]["value"], joined["ours"]["value"], joined["ours"]["n"]) == (1.0, 1.0, 3)


def test_another_way_of_joining_is_another_run(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = [mcq(n, "") for n in range(1, 11)]
    rows = [
        {"id": row["index"], "question": row["question"], "A": row["A"], "B": row["B"], "C": row["C"], "answer": "B"}
        for row in data
    ]
    write_lines(Path("bench.jsonl"), rows)
    first = answer(capsys, "import", made)
    second = answer(capsys, "import", made, "--data", "bench.jsonl")
    assert first["folder"] != second["folder"]
    assert run_command(["import", made, "--data", "bench.jsonl", "-o", first["folder"]]) == 2
    assert "holds another configuration" in capsys.readouterr().err


def test_a_random_letter_is_drawn_the_same_way_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = "Which animal?\nA. a cat\nB. a dog\n"
    samples = [{"doc_id": n, "target": "B", "input": prompt, "filtered_resps": "hm"} for n in range(40)]
    write_lines(Path("t_samples_mmmu_val.jsonl"), samples)
    first, again = (answer(capsys, "second-opinion", "t_samples_mmmu_val.jsonl", "-o", name) for name in ("one", "two"))
    assert first["peer"]["value"] == again["peer"]["value"]
    assert 0.1 < first["peer"]["value"] < 0.9
    assert first["kinds"]["drawn"]["count"] == 40
    assert (first["ours"]["value"], first["ours"]["read"]["n"]) == (0.0, 0)


def test_inspect_keeps_its_own_verdicts_and_failures_are_left_out_by_both(capsys: pytest.CaptureFixture[str]) -> None:
    members = [
        ("header.json", inspect_header(4, 0.5)),
        ("samples/1_epoch_1.json", inspect_sample(1, "ANSWER: B")),
        (
            "samples/2_epoch_1.json",
            inspect_sample(2, "It is the dog, B.", scores={"choice": {"value": "I", "answer": ""}}),
        ),
        ("samples/3_epoch_1.json", inspect_sample(3, "", error={"message": "boom"}, output={}, scores=None)),
    ]
    found = answer(capsys, "second-opinion", write_archive(Path("log.eval"), members))
    assert (found["peer"]["value"], found["peer"]["how"], found["peer"]["n"]) == (0.5, "recorded", 2)
    assert (found["ours"]["value"], found["ours"]["not_yet_asked"], found["failed"]) == (1.0, 1, 1)
    assert found["reported"] == {"choice accuracy": 0.5}
    assert [row["sample"] for row in listed(found["folder"])] == ["2"]


def test_a_log_without_completions_is_read_from_its_choices(capsys: pytest.CaptureFixture[str]) -> None:
    """Older logs keep a reply only in its message; all of them were taken for empty replies."""
    said = ["ANSWER: B", [{"type": "reasoning", "reasoning": "A?"}, {"type": "text", "text": "It is the dog, B."}]]
    samples = [
        inspect_sample(n, "B", output={"choices": [{"message": {"role": "assistant", "content": text}}]})
        for n, text in enumerate(said)
    ]
    found = answer(
        capsys, "second-opinion", write_json(Path("old.json"), inspect_header(2, 1.0) | {"samples": samples})
    )
    assert (found["ours"]["value"], found["ours"]["n"], found["ours"]["unscored"]) == (1.0, 2, 0)


def test_rotated_copies_count_as_one_question(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [mcq(1, "B"), mcq(1_000_001, "A", answer="A"), mcq(2, "B"), mcq(1_000_002, "C", answer="A")]
    found = answer(capsys, "second-opinion", write_tsv(Path("small_MMBench_DEV_EN.tsv"), rows))
    assert (found["peer"]["value"], found["peer"]["n"], found["peer"]["aggregate"]) == (0.5, 2, "all-of-group")
    assert (found["ours"]["value"], found["ours"]["unit"]) == (0.5, "groups")


def test_plain_rows_need_a_rule_to_be_named_or_bring_their_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": n, "options": "['a cat', 'a dog']", "answer": "B", "response": reply}
        for n, reply in enumerate(("B", "(B)", "Beagle"))
    ]
    path = write_lines(Path("mine.jsonl"), rows)
    assert answer(capsys, "second-opinion", path, "-o", "none")["peer"]["value"] is None
    found = answer(capsys, "second-opinion", path, "--as", "lmms-first-character", "-o", "named")
    assert found["peer"]["value"] == pytest.approx(2 / 3)
    assert [row["sample"] for row in listed("named")] == ["1", "2"]
    own = write_lines(Path("own.jsonl"), [row | {"correct": True} for row in rows])
    assert answer(capsys, "second-opinion", own, "-o", "own")["peer"]["how"] == "recorded"
    assert run_command(["second-opinion", path, "--as", "nobody", "-o", "other"]) == 2


def test_document_answers_are_scored_as_the_paper_and_as_the_harness(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"index": 1, "question": "Total?", "answer": "['42', 'forty-two']", "prediction": "42"},
        {"index": 2, "question": "Name?", "answer": "['ab']", "prediction": "ax"},
    ]
    found = answer(capsys, "second-opinion", write_tsv(Path("small_DocVQA_VAL.tsv"), rows))
    assert (found["task"], found["metric"]) == ("docvqa", "anls")
    assert (found["peer"]["value"], found["ours"]["value"]) == (0.75, 0.5)
    assert [row["kind"] for row in listed(found["folder"])] == ["scored_otherwise"]


def test_open_answers_of_a_benchmark_without_a_known_scorer_are_not_called_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"index": 1, "question": "How many?", "answer": "3", "prediction": "3.0", "hit": 1},
        {"index": 2, "question": "How many?", "answer": "5", "prediction": "The result is 5", "hit": 1},
        mcq(3, "B", hit=1),
    ]
    found = answer(capsys, "second-opinion", write_tsv(Path("small_MathVista_MINI.tsv"), rows))
    assert (found["peer"]["value"], found["peer"]["how"]) == (1.0, "recorded")
    assert (found["ours"]["value"], found["ours"]["n"], found["unscored"]) == (1.0, 1, 2)
    assert found["kinds"]["not_compared"]["count"] == 2
    assert found["kinds"]["scored_otherwise"]["count"] == found["kinds"]["misread"]["count"] == 0
    assert found["steps"][-1]["after"] == 1.0


def test_open_answers_of_mmmu_have_their_rule_and_lmms_eval_counts_them_all_as_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    prompt = "Which animal?\nA. a cat\nB. a dog\n"
    samples = [
        {"doc_id": 0, "target": "B", "input": prompt, "filtered_resps": "B"},
        {"doc_id": 1, "target": "24.5", "input": "How much?", "filtered_resps": "The answer is 24.5"},
    ]
    found = answer(capsys, "second-opinion", write_lines(Path("t_samples_mmmu_val.jsonl"), samples))
    assert (found["peer"]["value"], found["ours"]["value"]) == (0.5, 1.0)
    assert found["kinds"]["scored_otherwise"]["against the model"] == 1
    assert "every open question as wrong" in found["notes"][0]
