"""Several people label the same replies: all is kept, agreement is said, what they disagree on is listed and not used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run_command
from judge_doubles import ask_about, judge_model
from made_runs import make_run
from snellen.api.judges import draw_replies, take_labels
from snellen.core.errors import DataError, UsageError
from snellen.core.types import TrialKey
from snellen.scoring.judges.judge_card import Judge, read_judge
from snellen.scoring.judges.labels import (
    add_label,
    check_person,
    kept_labels,
    labels_file,
    people_account,
    people_labels,
    people_notes,
    read_labels,
    settle_people,
)

PROMPT = "Right: {answers}\nCase {case}.\n{fence}\n{answer}\n{fence}"
WORDS: Judge = read_judge({"choices": {"RIGHT": 1.0, "WRONG": 0.0}, "prompt": PROMPT}, "mine")
GRADES: Judge = read_judge({"verdict": "number", "scale": [0, 10], "metric": "grade", "prompt": PROMPT}, "grader")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_run(tmp_path_factory.mktemp("made") / "run", count=60, pictures=1)
    ask_about(folder, WORDS, judge_model(lambda request, answer: {"verdict": "RIGHT"}))
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def key(number: int) -> TrialKey:
    return TrialKey("t", str(number), "base", 0)


def labelled(run: Path, said: str, path: Path, by: str = "") -> Path:
    """Write the first drawn replies with labels, R or W each."""
    rows = draw_replies(run, "mine", len(said), by)
    for row, letter in zip(rows, said, strict=True):
        row["label"] = "RIGHT" if letter == "R" else "WRONG"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def account(results: dict[str, Any]) -> dict[str, Any]:
    return dict(results["tasks"]["shapes"]["judges"][0]["labels"])


def test_labels_of_two_people_are_all_kept_and_what_they_disagree_on_is_listed_and_not_used(
    run: Path, tmp_path: Path
) -> None:
    take_labels(run, "mine", labelled(run, "RRRRRRRRWWWW", tmp_path / "a.jsonl"), "anna")
    results = take_labels(run, "mine", labelled(run, "RRRRRRRRWWWRRR", tmp_path / "b.jsonl"), "ben")
    assert {by: len(labels) for by, labels in people_labels(run, WORDS).items()} == {"anna": 12, "ben": 14}
    labels = account(results)
    disputed = draw_replies(run, "mine", 12)[11]["sample"]
    assert labels["people"] == {"anna": 12, "ben": 14}
    assert (labels["n"], labels["shared"], labels["people_same"]) == (13, 12, 11 / 12)
    assert [(one["sample"], one["labels"]) for one in labels["disputed"]] == [(disputed, {"anna": 0.0, "ben": 1.0})]
    # anna: 8 R, 4 W; ben: 9 R, 3 W; both R 8, both W 3. Chance: (8 * 9 + 4 * 3) / 144 = 7 / 12
    [pair] = labels["kappas"]
    assert (pair["people"], pair["n"]) == (["anna", "ben"], 12)
    assert pair["kappa"] == pytest.approx((11 / 12 - 7 / 12) / (1 - 7 / 12))
    figure = results["tasks"]["shapes"]["metrics"]["judge_calibrated"]
    low, high = labels["range"]
    assert low < figure["value"] < high
    notes = " ".join(results["tasks"]["shapes"]["notes"])
    assert "labels of anna (12), ben (14); of 12 replies that several labelled 91.7 % have one label" in notes
    assert "(Cohen's kappa 0.80)" in notes
    assert f"not used: 1 reply on which people disagree ({disputed}: anna WRONG, ben RIGHT); with the lower" in notes


def test_a_majority_of_three_settles_and_says_so(run: Path, tmp_path: Path) -> None:
    for by, said in (("anna", "RRRRRRRRRRR"), ("ben", "WRRRRRRRRRR"), ("cleo", "WRRRRRRRRRR")):
        results = take_labels(run, "mine", labelled(run, said, tmp_path / by), by)
    labels = account(results)
    assert (labels["n"], labels["by_majority"], labels["disputed"]) == (11, 1, [])
    assert labels["judge_minus_people"] == pytest.approx(1 / 11), "two of three say wrong, the judge said right"
    notes = " ".join(results["tasks"]["shapes"]["notes"])
    assert "settled by the label of more than half: 1 reply on which people differ" in notes
    assert "Krippendorff's alpha" in notes


def test_one_person_s_account_is_as_before(run: Path, tmp_path: Path) -> None:
    results = take_labels(run, "mine", labelled(run, "RRRRRRRRRRWW", tmp_path / "a.jsonl"))
    labels = account(results)
    assert (labels["n"], labels["people"], "disputed" in labels) == (12, {"unnamed": 12}, False)
    assert not any("labels of" in note for note in results["tasks"]["shapes"]["notes"])


def test_everybody_begins_at_the_beginning_and_sees_nobody_else_s_labels(run: Path, tmp_path: Path) -> None:
    take_labels(run, "mine", labelled(run, "RRRRRRRRRRWW", tmp_path / "a.jsonl", "anna"))
    assert [row["label"] for row in draw_replies(run, "mine", 3, "ben")] == [None] * 3
    assert [row["by"] for row in draw_replies(run, "mine", 2, "ben")] == ["ben"] * 2
    assert [row["label"] for row in draw_replies(run, "mine", 3, "anna")] == [1.0] * 3
    rows = [json.loads(line) for line in labelled(run, "RRR", tmp_path / "gap.jsonl", "ben").read_text().splitlines()]
    (tmp_path / "gap.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[1:]))
    with pytest.raises(DataError, match="was drawn before others that have labels"):
        take_labels(run, "mine", tmp_path / "gap.jsonl")


def test_one_file_may_hold_several_people_s_labels_and_never_two_of_one(run: Path, tmp_path: Path) -> None:
    rows = [
        {"task": "t", "sample": "1", "label": "RIGHT", "by": "anna"},
        {"task": "t", "sample": "1", "label": "WRONG", "by": "ben"},
        {"task": "t", "sample": "1", "label": "WRONG"},
    ]
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_labels(file, WORDS, ["t"]) == {"anna": {key(1): 1.0}, "ben": {key(1): 0.0}, "": {key(1): 0.0}}
    with pytest.raises(DataError, match=r"record 1.*'anna'.*'ben'"):
        read_labels(file, WORDS, ["t"], "ben")
    file.write_text("".join(json.dumps(row | {"by": "anna"}) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"'1'.*--by NAME"):
        read_labels(file, WORDS, ["t"])


def test_lines_are_only_added_and_a_correction_is_of_one_person(tmp_path: Path) -> None:
    add_label(tmp_path, WORDS, key(1), 1.0)  # as older versions wrote them: nobody's name
    add_label(tmp_path, WORDS, key(1), 0.0, "anna")
    add_label(tmp_path, WORDS, key(1), 1.0, "anna")
    assert people_labels(tmp_path, WORDS) == {"": {key(1): 1.0}, "anna": {key(1): 1.0}}
    assert kept_labels(tmp_path, WORDS, "ben") == {}
    assert len(labels_file(tmp_path, "mine").read_bytes().splitlines()) == 3


def test_the_mean_of_different_grades_is_used_and_said() -> None:
    people = {"anna": {key(1): 4.0, key(2): 7.0}, "ben": {key(1): 5.0, key(2): 7.0}}
    settled = settle_people(people, GRADES)
    assert settled.labels == {key(1): 4.5, key(2): 7.0}
    said = people_account(settled, GRADES)
    assert (said["by_mean"], said["people_apart"], said["alpha"], said["kappas"]) == (1, 0.5, None, [])
    notes = " ".join(people_notes(said, GRADES, "grade_calibrated"))
    assert "settled by the mean grade: 1 reply on which people's grades differ" in notes
    assert "two labels lie 0.5 apart on average" in notes


def test_people_who_share_no_reply_are_not_said_to_agree() -> None:
    settled = settle_people({"anna": {key(1): 1.0}, "": {key(2): 0.0}}, WORDS)
    assert "no reply was labelled by two of them" in people_notes(people_account(settled, WORDS), WORDS, "x")[0]


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]), st.dictionaries(st.integers(0, 5), st.sampled_from([0.0, 1.0]))
    )
)
def test_every_labelled_reply_is_used_or_disputed_and_used_ones_have_more_than_half(
    people: dict[str, dict[int, float]],
) -> None:
    named = {by: {key(number): value for number, value in labels.items()} for by, labels in people.items()}
    settled = settle_people(named, WORDS)
    labelled = {one for labels in named.values() for one in labels}
    assert set(settled.labels) | set(settled.disputed) == labelled
    assert not set(settled.labels) & set(settled.disputed)
    for one in labelled:
        given_labels = [labels[one] for labels in named.values() if one in labels]
        most = max(given_labels.count(0.0), given_labels.count(1.0))
        assert (one in settled.labels) == (2 * most > len(given_labels))
        if one in settled.labels:
            assert 2 * given_labels.count(settled.labels[one]) > len(given_labels)


@pytest.mark.parametrize("name", ["a\nb", "x" * 81])
def test_a_name_that_no_line_could_show_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no name"):
        check_person(name)
    assert check_person("x" * 80) == "x" * 80


def test_the_command_keeps_people_apart(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for by, said in (("anna", "RRRRRRRRRRRR"), ("ben", "WRRRRRRRRRRR")):
        file = labelled(run, said, tmp_path / by)
        assert run_command(["judge", "label", run, "--judge", "mine", "--labels", file, "--by", by]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "not used: 1 reply on which people disagree" in out and "anna RIGHT, ben WRONG" in out


def test_one_person_written_in_two_ways_has_one_vote(run: Path) -> None:
    for by, value in (("Anna", 1.0), (" anna", 0.0), ("ＡＮＮＡ", 1.0), ("ben", 0.0)):
        add_label(run, WORDS, key(1), value, by)
    kept = people_labels(run, WORDS)
    assert kept == {"anna": {key(1): 1.0}, "ben": {key(1): 0.0}}, "the last of each counts"
    settled = settle_people(kept, WORDS)
    assert settled.people == {"anna": 1, "ben": 1} and list(settled.disputed) == [key(1)], "nobody outvotes ben"
