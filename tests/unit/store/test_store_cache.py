"""The response cache: content decides, damage costs a repeat and never a run, several runs share one file."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snellen.core.answerer import Answerer
from snellen.core.errors import EnvironmentProblem
from snellen.core.types import (
    Failure,
    FailureKind,
    Frame,
    Image,
    Likelihood,
    Params,
    Prediction,
    Request,
    TrialKey,
    Turn,
)
from snellen.store import cache as module
from snellen.store.cache import LoggedCache, ResponseCache, request_digest

KEY = TrialKey("t", "s")

texts = st.text(max_size=6)
requests = st.builds(
    Request,
    st.builds(TrialKey, st.just("t"), texts, repeat=st.integers(0, 2)),
    st.lists(st.builds(Turn, st.sampled_from(["user", "assistant"]), texts), max_size=3).map(tuple),
    st.builds(
        Params, temperature=st.sampled_from([None, 0.0, 1.0]), stop=st.sampled_from([None, (), ("a",), ("a", "b")])
    ),
    st.lists(texts, max_size=2).map(tuple),
    prefix=texts,
)


def content(request: Request, hashes: list[str]) -> object:
    turns = [(turn.role, turn.text) for turn in request.messages]
    return turns, request.params, request.choices, request.prefix, request.key.repeat, tuple(hashes)


@settings(max_examples=400, deadline=None)
@given(requests, requests, st.lists(texts, max_size=2), st.lists(texts, max_size=2))
def test_two_requests_share_a_key_only_if_they_ask_the_same(
    a: Request, b: Request, of_a: list[str], of_b: list[str]
) -> None:
    assert (request_digest("m", a, of_a) == request_digest("m", b, of_b)) == (content(a, of_a) == content(b, of_b))


def test_how_it_is_asked_and_which_sample_asks_do_not_matter() -> None:
    plain = Request(KEY, (Turn("user", "?"),), Params(temperature=0.0))
    asked = Request(TrialKey("u", "z", "order=1"), plain.messages, Params(temperature=0.0, timeout_s=5.0, stream=True))
    assert request_digest("m", plain, []) == request_digest("m", asked, [])


def test_the_baseline_counts_where_candidates_are_scored() -> None:
    scored = Request(KEY, (Turn("user", "?"),), choices=("a",))
    baseline = msgspec.structs.replace(scored, likelihood=Likelihood(baseline=(Turn("user", ""),)))
    whole = msgspec.structs.replace(scored, likelihood=Likelihood(with_prompt=True))
    assert len({request_digest("m", each, []) for each in (scored, baseline, whole)}) == 3


def test_damaged_rows_are_misses(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c.db")
    failed = msgspec.json.encode(Prediction(KEY, failure=Failure(FailureKind.SERVER, "x")))
    for digest, body in (
        ("junk", b"\xff{"),
        ("shape", b'{"key": 5}'),
        ("nothing", b'{"key":{"task":"t","sample":"s"}}'),
        ("failed", failed),
    ):
        cache._write([(digest, "m", 0.0, body)])
        assert cache.get(digest, KEY) is None
    cache.close()


def test_a_file_that_is_no_cache_is_explained(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"certainly not a database" * 100)
    with pytest.raises(EnvironmentProblem, match="--no-cache"):
        ResponseCache(tmp_path / "c.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match="--no-cache"):
        ResponseCache(tmp_path / "file" / "c.db")


def test_runs_side_by_side_share_the_file(tmp_path: Path) -> None:
    first, second = ResponseCache(tmp_path / "c.db"), ResponseCache(tmp_path / "c.db")
    who = Answerer("m")
    assert first.enter(who) == second.enter(who) == []
    for number in range(100):
        first.put(f"a{number}", who.key, Prediction(KEY, text="of a"))
        second.put(f"b{number}", who.key, Prediction(KEY, text="of b"))
    first.put("both", who.key, Prediction(KEY, text="one"))
    second.put("both", who.key, Prediction(KEY, text="two"))
    first.close()
    second.close()
    third = ResponseCache(tmp_path / "c.db")
    assert third.info()["replies"] == 201
    assert third.info()["models"] == {"m": 201}
    found = third.get("a99", TrialKey("t", "other"))
    assert found is not None and (found.text, found.key.sample, found.cached) == ("of a", "other", True)
    third.close()


def test_a_hit_is_not_stored_again_and_a_group_is_written_when_full(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c.db")
    cache.put("hit", "m", Prediction(KEY, text="x", cached=True))
    cache.flush()
    assert cache.info()["replies"] == 0
    for number in range(module.GROUP_ROWS):
        cache.put(str(number), "m", Prediction(KEY, text="x"))
    assert cache._pending == []
    cache.close()


def test_without_a_list_of_keys_it_still_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN_KEYS", 2)
    cache = ResponseCache(tmp_path / "c.db")
    for number in range(3):
        cache.put(str(number), "m", Prediction(KEY, text=str(number)))
    cache.close()
    large = ResponseCache(tmp_path / "c.db")
    assert large._known is None
    found = large.get("2", KEY)
    assert found is not None and found.text == "2"
    assert large.get("9", KEY) is None
    large.close()


def test_keys_that_share_their_bits_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILTER_BITS", 1)
    cache = ResponseCache(tmp_path / "c.db")
    assert cache.get("0", KEY) is None
    for number in range(20):
        cache.put(str(number), "m", Prediction(KEY, text=str(number)))
    cache.flush()
    found = [cache.get(str(number), KEY) for number in range(21)]
    assert [one and one.text for one in found] == [*map(str, range(20)), None]
    cache.close()
    again = ResponseCache(tmp_path / "c.db")
    assert again._known is not None and again._known._size == 8 * 20
    found = [again.get(str(number), KEY) for number in range(21)]
    assert [one and one.text for one in found] == [*map(str, range(20)), None]
    again.close()


def test_pruning_forgets_what_is_old_even_while_someone_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    cache = ResponseCache(tmp_path / "c.db")
    for age in (10.0, 20.0, 30.0):
        monkeypatch.setattr(module.time, "time", lambda age=age: now - age)
        cache.put(str(age), "m", Prediction(KEY, text="x"))
    cache.flush()
    cache._database.execute("PRAGMA busy_timeout=1")
    reading = sqlite3.connect(tmp_path / "c.db")
    reading.execute("BEGIN")
    reading.execute("SELECT COUNT(*) FROM replies").fetchone()
    assert cache.prune(20.0, now) == 1
    reading.close()
    assert cache.info()["replies"] == 2
    assert cache.prune(0.0, now) == 2
    cache.close()


def test_a_full_disk_costs_the_cache_never_the_run(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "c.db")
    cache._database.execute(f"PRAGMA max_page_count={cache._database.execute('PRAGMA page_count').fetchone()[0]}")
    cache.put("big", "m", Prediction(KEY, text="x" * 100_000))
    cache.flush()
    assert cache.get("big", KEY) is None
    assert (cache.not_kept, cache.why_not_kept) == (1, "database or disk is full"), "and it is told"
    cache.close()


def test_frames_as_one_video_are_another_question_than_frames_as_pictures() -> None:
    def digest(*, joined: bool) -> str:
        images = tuple(Image("/a.mp4", frame=Frame(place, place, 0.0, joined=joined)) for place in range(2))
        return request_digest("m", Request(KEY, (Turn("user", "What?", images),)), ["aa", "bb"])

    assert digest(joined=True) != digest(joined=False)
    plain = Request(KEY, (Turn("user", "What?", (Image("/a.png"), Image("/b.png"))),))
    assert digest(joined=False) == request_digest("m", plain, ["aa", "bb"])


def test_on_a_network_each_process_writes_a_log_of_its_own_and_reads_all(tmp_path: Path) -> None:
    path = tmp_path / "responses.db"
    who = Answerer("openai/m", address="http://one/v1")
    with closing(ResponseCache(path)) as table:
        table.put("older", who.key, Prediction(KEY, text="of the table"))
    first, second = LoggedCache(path), LoggedCache(path)
    for cache, name in ((first, "a"), (second, "b")):
        cache.enter(who)
        cache.put(name, who.key, Prediction(KEY, text=f"reply {name}"))
        cache.put("both", who.key, Prediction(KEY, text="alike"))
        cache.flush()
    assert first.get("a", KEY) == Prediction(KEY, text="reply a", cached=True) and first.get("b", KEY) is None
    first.close()
    second.close()
    with closing(LoggedCache(path)) as third:
        texts = [(found := third.get(name, KEY)) and found.text for name in ("a", "b", "both", "older", "none")]
        assert texts == ["reply a", "reply b", "alike", "of the table", None]
        assert third.info()["replies"] == 4 and third.info()["logs"] == 2 and third.info()["models"] == {"openai/m": 4}
        other = third.enter(Answerer("openai/m", address="http://one/v1", listed={"root": "/new"}))
        assert [(one.who.model, one.replies) for one in other] == [("openai/m", 4)]


def test_logs_that_nobody_writes_are_folded_and_a_damaged_line_costs_its_reply(tmp_path: Path) -> None:
    path = tmp_path / "responses.db"
    with closing(LoggedCache(path)) as cache:
        for name in ("a", "b", "c"):
            cache.put(name, "who", Prediction(KEY, text=f"reply {name}"))
        cache.flush()
        (log,) = (tmp_path / "responses.d").iterdir()
        assert cache.prune(0.0, 2e10) == 0 and log.exists(), "this process still writes it"
    gone = log.with_name(f"{socket.gethostname()}-999999999-x.log")
    log.rename(gone)
    spoiled = gone.read_bytes().replace(b"reply b", b"reply X")
    gone.write_bytes(spoiled + spoiled[:40])
    with closing(LoggedCache(path)) as cache:
        assert [cache.get(name, KEY) is not None for name in ("a", "b", "c")] == [True, False, True]
        assert cache.prune(3600.0, time.time()) == 0 and not gone.exists()
        assert cache.get("a", KEY) is None, "what was folded meanwhile is asked again"
    with closing(LoggedCache(path)) as cache:
        assert cache.get("a", KEY) is not None and cache.info()["replies"] == 2
        (folded,) = (tmp_path / "responses.d").iterdir()
        folded.rename(gone)
        assert cache.prune(0.0, 2e10) == 2 and not list((tmp_path / "responses.d").iterdir())


def test_a_log_of_another_machine_is_folded_when_it_did_not_grow_for_a_day(tmp_path: Path) -> None:
    path = tmp_path / "responses.db"
    with closing(LoggedCache(path)) as cache:
        cache.put("a", "who", Prediction(KEY, text="reply"))
        cache.flush()
    (log,) = (tmp_path / "responses.d").iterdir()
    foreign = log.rename(log.with_name("elsewhere-1-x.log"))
    with closing(LoggedCache(path)) as cache:
        now = time.time()
        for age, is_there in ((0.0, True), (86_000.0, True), (86_800.0, False)):
            os.utime(foreign, (now - age, now - age))
            cache.prune(1e9, now)
            assert foreign.exists() is is_there, age
    with closing(LoggedCache(path)) as cache:
        assert cache.get("a", KEY) is not None, "it was folded, not lost"
