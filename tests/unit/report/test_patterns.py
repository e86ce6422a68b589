"""Regular expressions in the viewer: the same matches as Python's own, and an end to those that have none."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asgi import Answer, call
from made_runs import make_run, make_task
from snellen.report import patterns
from snellen.report.pattern_child import try_pattern
from snellen.report.patterns import PatternProblem, _packed, matching_texts
from snellen.report.query import TextSearch
from snellen.scoring.stored import read_columns
from snellen.store.reader import RunReader

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.api.view import make_viewer
from snellen.report.viewer.guard import cookie_name

CATASTROPHE = "(a|a)*b"
PATTERNS = ("a", "^b", "c$", "a.c", r"\x00", "[^a]", "(b|c)+", r"\bab\b", "ä", "É")


def joined(texts: list[str]) -> tuple[str, list[int]]:
    starts = [sum(len(text) + 1 for text in texts[:n]) for n in range(len(texts))]
    return "\x00".join(texts), starts


@given(st.lists(st.text("abcAB \näÉ\x00", max_size=8), min_size=1, max_size=12), st.sampled_from(PATTERNS))
def test_the_child_finds_what_python_finds(texts: list[str], pattern: str) -> None:
    answer = try_pattern(_packed(pattern, *joined(texts)))
    search = re.compile(pattern, re.IGNORECASE | re.MULTILINE).search
    assert answer == b"+" + bytes(search(text) is not None for text in texts)


def test_a_process_of_its_own_gives_the_same() -> None:
    texts = ["one", "two", "\ud800 three", ""]
    assert matching_texts("T", *joined(texts)).tolist() == [False, True, True, False]
    assert matching_texts("^$", *joined(texts)).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "is no pattern: missing"),
        ("a" * 1001, "at most 1,000 characters"),
        ("x(?-i:A)", "case is not heeded"),
        ("(?s-i:A)", "case is not heeded"),
    ],
)
def test_what_is_no_pattern_is_refused_in_one_line(pattern: str, words: str) -> None:
    with pytest.raises(PatternProblem, match=re.escape(words)) as error:
        matching_texts(pattern, "a", [0])
    assert "\n" not in str(error.value)


def test_a_catastrophe_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_SECONDS", 1)
    used = time.process_time()
    with pytest.raises(PatternProblem, match="was ended after 1 s of the processor"):
        matching_texts(CATASTROPHE, "a" * 60, [0])
    assert time.process_time() - used < 0.5, "the viewer itself waits, it does not work"


def test_where_the_system_sets_no_limit_the_clock_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "WAIT", 0.5)
    with pytest.raises(PatternProblem, match="was ended after"):
        matching_texts(CATASTROPHE, "a" * 60, [0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("patterns")
    make_run(folder / "run", count=40, skill=0.6, task=make_task(repeats=2))
    return folder


def test_trials_match_by_question_id_or_reply(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RunReader(folder / "run") as reader:
        columns = read_columns(reader, reader.header().tasks[0])
        search = TextSearch(reader, columns)
        replies = {trial.prediction.key: trial.prediction.text or "" for trial in reader.trials("shapes")}
    wanted = re.compile(r"shape-0000[1-3]|answer is [ab]\.$", re.IGNORECASE | re.MULTILINE)
    found = search.match(wanted.pattern)
    for row in range(len(columns)):
        key, facts = columns.key(row), columns.facts[int(columns.sample[row])]
        held = wanted.search(f"{facts.id}\n{facts.question}") or wanted.search(replies[key])
        assert found[row] == (held is not None), key
    assert 0 < found.sum() < len(columns)
    monkeypatch.setattr("snellen.report.patterns.matching_texts", None)
    assert (search.match(wanted.pattern) == found).all(), "each step of a walk asks again: nothing is tried twice"


@pytest.fixture(scope="module")
def app(folder: Path) -> Any:
    return make_viewer([folder], "key")


def get(app: Any, path: str) -> Answer:
    return call(app, path, headers={"cookie": f"{cookie_name('key')}=key"})


def rows(page: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'href="(/run/[^"]*/trial\?[^"]*)"', page)]


def test_it_lives_in_the_address_combines_and_is_walked(app: Any) -> None:
    key = get(app, "/state").text.partition(":")[0]
    base = f"/run/{key}/trials?task=shapes&text=shape-0000%5B1-5%5D&regex=1"
    page, right = get(app, base).text, get(app, base + "&outcome=right").text
    assert len(set(rows(page))) == 10
    assert set(rows(right)) and len(set(rows(right))) < 10
    assert 'name="regex" value="1" checked' in page
    trial = get(app, rows(right)[0]).text
    assert "regex=1" in trial and "/shape-0000[1-5]/" in trial, "the breadcrumb tells it, and the walk keeps it"
    plain = get(app, base.replace("&regex=1", "")).text
    assert "No trial matches" in plain


def test_what_cannot_be_tried_is_said_and_the_form_stays(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    key = get(app, "/state").text.partition(":")[0]
    answer = get(app, f"/run/{key}/trials?text=%28&regex=1")
    assert answer.status == 200
    assert "Nothing was looked for" in answer.text and 'name="regex"' in answer.text
    assert not rows(answer.text)
    monkeypatch.setattr(patterns, "MOST_SECONDS", 1)
    slow = get(app, f"/run/{key}/trials?text=%28.%7C.%29*%C2%A7&regex=1")
    assert "was ended after 1 s of the processor" in slow.text
    assert get(app, f"/run/{key}/trials?text=shape").status == 200
