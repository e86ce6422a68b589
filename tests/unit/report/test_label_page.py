"""People label judged replies in the viewer: in the drawn order, blind to the verdict, kept one by one, and counted."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from asgi import Answer, call
from command_line import run_command
from judge_doubles import ask_about, judge_model
from made_runs import make_run
from snellen.api.judges import draw_replies, take_labels
from snellen.api.view import label_address, make_viewer
from snellen.core.errors import DataError, EnvironmentProblem, UsageError
from snellen.core.types import TrialKey
from snellen.report.viewer.guard import cookie_name
from snellen.scoring.judges.judge_card import Judge, read_judge
from snellen.scoring.judges.labels import DrawnTasks, add_label, asked_judges, kept_labels, labels_file

pytest.importorskip("starlette", reason="the extra `view` is not installed")
PROMPT = "Right: {answers}\nCase {case}.\n{fence}\n{answer}\n{fence}"
WORDS: Judge = read_judge({"choices": {"RIGHT": 1.0, "WRONG": 0.0}, "prompt": PROMPT}, "mine")
GRADES: Judge = read_judge({"verdict": "number", "scale": [0, 10], "metric": "grade", "prompt": PROMPT}, "grader")
COOKIE = {"cookie": f"{cookie_name('key')}=key"}
FIELDS = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_run(tmp_path_factory.mktemp("made") / "run", count=40, pictures=2)
    ask_about(folder, WORDS, judge_model(lambda request, answer: {"verdict": "RIGHT"}))
    ask_about(folder, GRADES, judge_model(lambda request, answer: {"verdict": 7}))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


class Desk:
    """A viewer, and the page on which one judge's replies are labelled."""

    def __init__(self, folder: Path, judge: str = "mine", *, may_write: bool = True) -> None:
        self.app: Any = make_viewer([folder], "key", may_write=may_write)
        self.page = label_address(folder, judge)
        self.place = self.page.partition("?")[0]

    def read(self, more: str = "") -> str:
        return call(self.app, self.page + more, headers=COOKIE).text

    def fields(self, more: str = "") -> dict[str, str]:
        form = self.read(more).partition("Your label")[2].partition("</form>")[0]
        return dict(FIELDS.findall(form))

    def send(self, **told: str) -> Answer:
        headers = {**COOKIE, "origin": "http://127.0.0.1:1"}
        return call(self.app, self.place, method="POST", headers=headers, body=urlencode(told).encode())


def test_labels_are_asked_for_in_the_drawn_order_and_kept_one_by_one(folder: Path) -> None:
    desk = Desk(folder)
    wanted = [row["sample"] for row in draw_replies(folder, "mine", 12)]
    for sample in wanted:
        told = desk.fields()
        assert told["sample"] == sample
        answer = desk.send(**told, label="WRONG")
        assert (answer.status, answer.headers["location"]) == (303, desk.page)
    assert [key.sample for key in kept_labels(folder, WORDS)] == wanted
    lines = labels_file(folder, "mine").read_bytes().splitlines()
    assert [msgspec.json.decode(line)["label"] for line in lines] == [0.0] * 12
    judged = len(draw_replies(folder, "mine", 1000))
    assert f"12 of {judged} judged replies have a label; 10 at least are needed" in desk.read()


def test_the_page_shows_what_a_person_needs_and_never_the_verdict(folder: Path) -> None:
    page = Desk(folder).read()
    row = draw_replies(folder, "mine", 1)[0]
    assert row["question"] in page and row["answers"][0] in page and row["reply"] in page
    assert f"sample={row['sample']}" in page, "the picture"
    assert "\n".join(row["shown"]) in page, "a letter means nothing without the order in which options were shown"
    assert [text.partition(". ")[0] for text in row["shown"]] == ["A", "B", "C", "D"]
    assert "Why:" not in page and 'aria-pressed="true"' not in page and "outcome" not in page
    assert page.count('value="RIGHT"') == page.count('value="WRONG"') == 1


def test_the_labels_give_the_calibrated_figure_when_the_run_is_scored(folder: Path) -> None:
    desk = Desk(folder)
    assert "Score the run with these labels" not in desk.read()
    for number in range(20):
        assert desk.send(**desk.fields(), label="RIGHT" if number % 2 else "WRONG").status == 303
    answer = desk.send(judge="mine", score="1")
    assert (answer.status, answer.headers["location"]) == (303, desk.place.removesuffix("/label"))
    task = msgspec.json.decode((folder / "results.json").read_bytes())["tasks"]["shapes"]
    [account] = [one for one in task["judges"] if one["judge"] == "mine"]
    assert (account["labels"]["n"], account["labels"]["judge_minus_people"]) == (20, 0.5)
    corrected = task["metrics"]["judge_calibrated"]
    assert task["metrics"]["judge"]["value"] == 1.0
    assert corrected["ci95"][0] < 0.5 < corrected["ci95"][1] < 1.0
    assert draw_replies(folder, "mine", 20)[0]["label"] == 0.0, "the command goes on with them"


def test_a_file_with_fewer_labels_takes_none_of_the_kept_ones_away(folder: Path, tmp_path: Path) -> None:
    desk = Desk(folder)
    for _ in range(12):
        desk.send(**desk.fields(), label="WRONG")
    rows = draw_replies(folder, "mine", 10)
    (tmp_path / "ten.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    with pytest.raises(UsageError, match=r"lacks 2 labels that labels-mine.jsonl holds .*--count 12"):
        take_labels(folder, "mine", tmp_path / "ten.jsonl")
    assert len(kept_labels(folder, WORDS)) == 12
    rows = draw_replies(folder, "mine", 12)
    rows[0]["label"] = "RIGHT"
    (tmp_path / "twelve.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    take_labels(folder, "mine", tmp_path / "twelve.jsonl")
    assert sorted(kept_labels(folder, WORDS).values()) == [*[0.0] * 11, 1.0], "a label may be corrected"


def test_a_label_can_be_corrected_and_the_last_one_counts(folder: Path) -> None:
    desk = Desk(folder)
    first = desk.fields()
    desk.send(**first, label="WRONG")
    more = "&" + urlencode({name: first[name] for name in ("task", "sample", "variant", "repeat")})
    assert f"Correct the last label ({first['sample']})" in desk.read()
    assert desk.fields(more) == first
    assert re.search(r'value="WRONG" aria-pressed="true"', desk.read(more))
    assert desk.send(**desk.fields(more), label="RIGHT").status == 303
    assert list(kept_labels(folder, WORDS).values()) == [1.0]
    assert len(labels_file(folder, "mine").read_bytes().splitlines()) == 2, "lines are only ever added"


def test_a_grade_is_a_number_of_the_scale(folder: Path) -> None:
    desk = Desk(folder, "grader")
    assert 'type="number" name="label" min="0' in desk.read()
    told = desk.fields()
    for label in ("11", "-1", "nan", "RIGHT"):
        answer = desk.send(**told, label=label)
        assert answer.status == 400 and "a number from 0 to 10" in answer.text
    assert desk.send(**told, label="").status == 400
    assert desk.send(**told, label="6.5").status == 303
    assert list(kept_labels(folder, GRADES).values()) == [6.5]
    assert not labels_file(folder, "mine").exists(), "the other judge has none"


def test_a_reply_that_is_not_the_next_one_is_refused(folder: Path) -> None:
    desk = Desk(folder)
    third = draw_replies(folder, "mine", 3)[2]
    told = {"judge": "mine", "task": "shapes", "sample": third["sample"], "variant": "base", "repeat": "0"}
    answer = desk.send(**told, label="RIGHT")
    assert answer.status == 400 and "is not the next one" in answer.text
    for wrong in ({"sample": "no-such"}, {"task": "other"}, {"repeat": "x"}, {"judge": "nobody"}):
        assert desk.send(**{**told, **wrong}, label="RIGHT").status == 400
    assert not labels_file(folder, "mine").exists()


def test_a_viewer_that_only_reads_keeps_no_label(folder: Path) -> None:
    desk = Desk(folder, may_write=False)
    page = desk.read()
    assert "This viewer only reads" in page and "Your label" not in page
    row = draw_replies(folder, "mine", 1)[0]
    told = {name: str(row[name]) for name in ("task", "sample", "variant", "repeat")}
    assert desk.send(judge="mine", **told, label="RIGHT").status == 400
    assert not labels_file(folder, "mine").exists()
    foreign = {**COOKIE, "origin": "https://evil.invalid"}
    writing = Desk(folder)
    body = urlencode({"judge": "mine", **told, "label": "RIGHT"}).encode()
    assert call(writing.app, writing.place, method="POST", headers=foreign, body=body).status == 403
    assert not labels_file(folder, "mine").exists()


def test_the_run_s_page_leads_there_and_a_run_without_judges_says_how_to_ask_one(folder: Path, tmp_path: Path) -> None:
    desk = Desk(folder)
    assert f'href="{desk.page}"' in call(desk.app, desk.place.removesuffix("/label"), headers=COOKIE).text
    several = call(desk.app, desk.place, headers=COOKIE).text
    assert "label for mine" in several and "label for grader" in several
    plain = make_run(tmp_path / "plain", count=4)
    app = make_viewer([plain], "key", may_write=True)
    home = call(app, "/", headers=COOKIE).text
    run = re.findall(r'href="(/run/\w+)"', home)[0]
    assert "People correct a judge" not in call(app, run, headers=COOKIE).text
    assert "No judge was asked about this run" in call(app, f"{run}/label", headers=COOKIE).text
    with pytest.raises(UsageError, match="judge 'mine' was not asked"):
        label_address(plain, "mine")


def test_when_everything_is_labelled_the_page_says_so(folder: Path) -> None:
    rows = draw_replies(folder, "mine", 1000)
    for row in rows:
        add_label(folder, WORDS, TrialKey(row["task"], row["sample"], row["variant"], row["repeat"]), 1.0)
    page = Desk(folder).read()
    assert "Every judged reply has a label" in page
    assert f"{len(rows)} of {len(rows)}" in page
    assert "Score the run with these labels" in page


def test_a_torn_line_is_cut_off_and_a_foreign_one_refused(tmp_path: Path) -> None:
    path = labels_file(tmp_path, "mine")
    key = TrialKey("t", "1", "base", 0)
    add_label(tmp_path, WORDS, key, 1.0)
    with path.open("ab") as file:
        file.write(b'{"task":"t","sam')
    assert kept_labels(tmp_path, WORDS) == {key: 1.0}
    add_label(tmp_path, WORDS, TrialKey("t", "2", "base", 0), 0.0)
    assert list(kept_labels(tmp_path, WORDS).values()) == [1.0, 0.0]
    path.write_text("nonsense\n")
    with pytest.raises(DataError, match=r"line 1 is not a label .*: mend or remove the line"):
        kept_labels(tmp_path, WORDS)
    with pytest.raises(EnvironmentProblem, match="cannot write"):
        add_label(tmp_path / "nowhere", WORDS, key, 1.0)


def test_the_next_one_of_a_task_waits_for_no_other_task() -> None:
    keys = {task: [TrialKey(task, str(number), "base", 0) for number in range(3)] for task in "ab"}
    drawn = DrawnTasks(WORDS, keys)
    labels = dict.fromkeys(keys["a"], 1.0)
    assert drawn.next_key({}) == keys["a"][0]
    assert drawn.next_key(labels) == keys["b"][0]
    drawn.check_turn(keys["b"][0], {})
    with pytest.raises(UsageError, match="is not the next one"):
        drawn.check_turn(keys["b"][1], {})


def test_the_judges_that_were_asked_are_known_by_name(folder: Path) -> None:
    assert asked_judges(folder) == ["grader", "mine"]


def test_the_command_opens_the_page_and_refuses_what_it_would_ignore(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: dict[str, Any] = {}

    def serve(folders: list[Path], **told: Any) -> None:
        told["ready"](f"http://127.0.0.1:1{told['page']}&token=key")
        served.update(told, folders=folders)

    monkeypatch.setattr("snellen.api.view.view", serve)  # a server that nobody would end
    assert run_command(["judge", "label", folder, "--judge", "mine", "--view"]) == 0
    assert (served["folders"], served["may_write"], served["page"]) == ([folder], True, label_address(folder, "mine"))
    assert "label?judge=mine&token=key" in capsys.readouterr().err
    assert run_command(["judge", "label", folder, "--judge", "mine", "--view", "--count", 5]) == 2
    assert "leave --count" in capsys.readouterr().err
    assert run_command(["judge", "label", folder, "--judge", "min", "--view"]) == 2
    assert "did you mean 'mine'" in capsys.readouterr().err


def test_people_label_under_their_names_and_see_only_their_own(folder: Path) -> None:
    desk = Desk(folder)
    desk.page = label_address(folder, "mine", "anna b")
    first = desk.fields()
    assert first["by"] == "anna b" and 'name="by" value="anna b"' in desk.read()
    answer = desk.send(**first, label="WRONG")
    assert (answer.status, answer.headers["location"]) == (303, desk.page)
    assert kept_labels(folder, WORDS, "anna b") and not kept_labels(folder, WORDS)
    other = Desk(folder)
    assert other.fields()["sample"] == first["sample"], "everybody begins at the beginning"
    assert "Correct the last label" not in other.read() and "Correct the last label" in desk.read()
    assert desk.send(**{**first, "by": "x" * 81}, label="WRONG").status == 400
