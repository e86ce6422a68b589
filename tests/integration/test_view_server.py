"""The viewer's routes without a browser: who is let in, what is answered, and that no address reaches the disk."""

from __future__ import annotations

import asyncio
import io
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import msgspec
import PIL.Image
import pytest

from asgi import Answer, call
from made_runs import ask, make_header, make_run, make_samples, make_task, run_apart
from snellen.api.view import _listen, make_viewer
from snellen.core.errors import UsageError
from snellen.core.types import Failure, FailureKind, Prediction, Sample, TrialKey
from snellen.report.viewer.guard import cookie_name
from snellen.store.database import connect
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from stored_scores import write_scores

pytest.importorskip("starlette", reason="the extra `view` is not installed")
TOKEN = "the-key"
NAME = cookie_name(TOKEN)
COOKIE = {"cookie": f"{NAME}={TOKEN}"}
TRAVERSALS = (
    "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "....//....//etc/passwd", "/etc/passwd", "%2fetc%2fpasswd",
    "..\\..\\windows\\win.ini", "..%5c..%5cwindows", "%c0%ae%c0%ae/etc/passwd", "..;/etc/passwd", "file:///etc/passwd", "run.db", "../run.db",
    "%00", "snellen.css%00.png", "C:/Windows/win.ini", "//etc/passwd", "~root", "$HOME", "%252e%252e%252fetc%252fpasswd",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    for name, skill in (("one", 0.5), ("two", 0.9)):
        make_run(folder / name, model=f"openai/{name}", skill=skill, count=30, task=make_task(repeats=2))
    return folder


@pytest.fixture(scope="module")
def app(folder: Path) -> Any:
    return make_viewer([folder], TOKEN)


def get(app: Any, path: str, **more: Any) -> Answer:
    return call(app, path, headers=COOKIE, **more)


@pytest.fixture(scope="module")
def keys(app: Any) -> list[str]:
    return [part.partition(":")[0] for part in get(app, "/state").text.split()]


class TestWhoIsLetIn:
    @pytest.mark.parametrize(
        "host",
        [
            "evil.invalid",
            "evil.invalid:1",
            "127.0.0.1.evil.invalid",
            "localhost.evil.invalid",
            "",
            "127.0.0.1@evil.invalid",
            "0.0.0.0:1",
            "[::1].evil",
            "127.0.0.1:80x",
        ],
    )
    def test_other_hosts_are_refused(self, app: Any, host: str) -> None:
        assert call(app, "/", headers={"host": host, **COOKIE}).status == 421

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8123", "localhost:8123", "LOCALHOST", "[::1]:8123"])
    def test_this_host_is_answered(self, app: Any, host: str) -> None:
        assert call(app, "/", headers={"host": host, **COOKIE}).status == 200

    @pytest.mark.parametrize(
        "cookie", ["", f"{NAME}=", f"{NAME}=wrong", f"{NAME}=the-ke", "snellen=the-key", f"{NAME}=thé-key", "=;;"]
    )
    def test_without_the_key_nothing_is_shown(self, app: Any, cookie: str) -> None:
        for path in ("/", "/static/view.js", "/state", "/run/x"):
            answer = call(app, path, headers={"cookie": cookie})
            assert answer.status == 403
            assert "snellen view" in answer.text

    def test_the_key_in_the_address_becomes_a_cookie(self, app: Any) -> None:
        answer = call(app, f"/leaderboard?token={TOKEN}&x=1")
        assert answer.status == 303
        assert answer.headers["location"] == f"/{cookie_name(TOKEN)}/leaderboard?x=1"
        assert "HttpOnly" in answer.headers["set-cookie"]
        assert "SameSite=Strict" in answer.headers["set-cookie"]
        assert call(app, "/?token=wrong").status == 403

    @pytest.mark.parametrize("path", ["//evil.invalid/", "/%0d%0aset-cookie:%20x=1/", "/%0aX:y"])
    def test_the_way_in_cannot_lead_elsewhere(self, app: Any, path: str) -> None:
        answer = call(app, f"{path}?token={TOKEN}")
        assert "\n" not in "".join(answer.headers.values())
        assert not answer.headers.get("location", "/x").startswith("//")

    def test_every_answer_carries_the_rules(self, app: Any) -> None:
        for path in ("/", "/nowhere", "/static/snellen.css"):
            headers = get(app, path).headers
            assert "script-src 'self'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"

    def test_a_change_from_another_page_is_refused(self, app: Any, keys: list[str]) -> None:
        for origin in ({}, {"origin": "https://evil.invalid"}, {"origin": "null"}):
            assert call(app, f"/run/{keys[0]}/again", method="POST", headers={**COOKIE, **origin}).status == 403


class TestNoPathReachesTheDisk:
    @pytest.mark.parametrize("path", TRAVERSALS)
    def test_traversals(self, app: Any, keys: list[str], path: str) -> None:
        tried = (
            f"/static/{path}",
            f"/run/{path}",
            f"/run/{path}/trials",
            f"/run/{keys[0]}/image?task=shapes&sample={path}&n=0",
            f"/run/{keys[0]}/figure?name={path}",
        )
        for address in tried:
            answer = get(app, address)
            assert answer.status in (400, 404), address
            assert b"root:" not in answer.body
            assert b"SQLite" not in answer.body

    @pytest.mark.parametrize("number", ["-1", "99", "x", "1e3", "", "9" * 40, "٣"])
    def test_pictures_are_counted(self, app: Any, keys: list[str], number: str) -> None:
        assert get(app, f"/run/{keys[0]}/image?task=shapes&sample=shape-00001&n={number}").status in (200, 404)

    def test_pictures_are_encoded_anew(self, app: Any, keys: list[str]) -> None:
        answer = get(app, f"/run/{keys[0]}/image?task=shapes&sample=shape-00001&n=0")
        assert answer.headers["content-type"] == "image/png"
        assert PIL.Image.open(io.BytesIO(answer.body)).size == (320, 220)
        small = get(app, f"/run/{keys[0]}/image?task=shapes&sample=shape-00001&n=0&small=1")
        assert max(PIL.Image.open(io.BytesIO(small.body)).size) == 220

    def test_a_thumbnail_at_hand_is_answered_without_the_store(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_run(tmp_path / "r", count=3)
        app = make_viewer([tmp_path], TOKEN)
        key = get(app, "/state").text.partition(":")[0]
        address = f"/run/{key}/image?task=shapes&sample=shape-00000&small=1"
        first = get(app, address)
        asked: list[str] = []
        real = RunReader.rows
        monkeypatch.setattr(
            RunReader, "rows", lambda self, query, *more: (asked.append(query), real(self, query, *more))[1]
        )
        again = get(app, address)
        assert (first.status, again.status) == (200, 200)
        assert (again.body, asked) == (first.body, [])
        assert again.headers["cache-control"] == "no-store"
        with connect(tmp_path / "r" / "run.db") as database:
            database.execute("UPDATE predictions SET request = x'7b7d' WHERE sample = 'shape-00000'")
        assert get(app, address).status == 404, "what is stored has changed: nothing old is shown"


def test_answers_are_sent_at_once() -> None:
    """Without TCP_NODELAY each picture but the first on a connection came 40 ms late."""

    async def accepted() -> int:
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(met, sock=_listen(0)) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.close()
            return await told

    assert asyncio.run(accepted()) != 0


class TestPages:
    def test_runs_are_listed_with_intervals(self, app: Any) -> None:
        page = get(app, "/").text
        assert "openai/one" in page
        assert "95 % interval" in page

    def test_every_page_of_a_run(self, app: Any, keys: list[str]) -> None:
        for path in (
            "",
            "/trials",
            "/figures",
            "/trial?task=shapes&sample=shape-00001",
            "/again?profile=reform",
            "/trials?page=999999999999&sort=nonsense&outcome=x&group=a%3Db&rule=%00",
        ):
            assert get(app, f"/run/{keys[0]}{path}").status == 200, path

    def test_shares_are_written_in_one_way_on_every_page(self, app: Any, keys: list[str]) -> None:
        again = get(app, f"/run/{keys[0]}/again?profile=reform").text
        assert re.search(r">accuracy</t[dh]>(<td[^>]*>[\d.]+ %</td>){2}<td[^>]*>[+-][\d.]+ points</td>", again)
        for path in (f"/run/{keys[0]}", f"/compare?run={keys[0]}&run={keys[1]}"):
            shown = re.sub(r"<(svg|style)\b.*?</\1>", "", get(app, path).text, flags=re.DOTALL)
            assert re.search(r"\d\.\d %", shown) and not re.search(r"\d\.\d%", shown), path

    @pytest.mark.parametrize(
        "path",
        [
            "/trial",
            "/trial?task=shapes&sample=none",
            "/trial?task=shapes&sample=shape-00001&repeat=7",
            "/trial?task=shapes&sample=shape-00001&repeat=x",
            "/figure?name=x",
            "/nowhere",
        ],
    )
    def test_what_is_not_there_is_said(self, app: Any, keys: list[str], path: str) -> None:
        answer = get(app, f"/run/{keys[0]}{path}")
        assert answer.status == 404
        assert "Traceback" not in answer.text

    def test_unknown_task_and_profile_are_explained(self, app: Any, keys: list[str]) -> None:
        assert "this run has no task" in get(app, f"/run/{keys[0]}/trials?task=nope").text
        assert "no profile" in get(app, f"/run/{keys[0]}/again?profile=nope").text

    def test_compare_needs_two_to_five_runs(self, app: Any, keys: list[str]) -> None:
        assert get(app, f"/compare?run={keys[0]}&run={keys[1]}").status == 200
        assert get(app, f"/compare?run={keys[0]}").status == 400
        assert get(app, "/compare").status == 400
        assert get(app, f"/compare?run={keys[0]}&run=ffffffffffff").status == 404

    def test_downloads_are_files_not_pages(self, app: Any, keys: list[str]) -> None:
        for path in (
            f"/run/{keys[0]}/download?format=csv",
            f"/run/{keys[0]}/download?format=jsonl",
            f"/run/{keys[0]}/figure?task=shapes&name=latency",
            "/leaderboard/download?format=latex",
            f"/compare/download?run={keys[0]}&run={keys[1]}&format=markdown",
            f"/run/{keys[0]}/reply?task=shapes&sample=shape-00001",
        ):
            answer = get(app, path)
            assert answer.status == 200, path
            assert answer.headers["content-disposition"].startswith("attachment")

    def test_parquet_can_be_read(self, app: Any, keys: list[str]) -> None:
        parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
        answer = get(app, f"/run/{keys[0]}/download?format=parquet")
        assert parquet.read_table(io.BytesIO(answer.body)).num_rows == 60

    def test_side_by_side_shows_every_repeat(self, app: Any, keys: list[str]) -> None:
        page = get(app, f"/run/{keys[0]}/trial?task=shapes&sample=shape-00001").text
        assert "All 2 trials of this sample" in page
        assert "Messages as sent" in page


class TestWriting:
    def test_a_viewer_only_reads(self, app: Any, folder: Path, keys: list[str]) -> None:
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
        answer = call(
            app,
            f"/run/{keys[0]}/again",
            method="POST",
            headers={**COOKIE, "origin": "http://127.0.0.1:1"},
            body=b"profile=reform",
        )
        assert answer.status == 400
        assert "only reads" in answer.text
        get(app, f"/run/{keys[0]}/again?profile=reform")
        after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
        assert {path.name for path in before} == {path.name for path in after} - {"run.db-wal", "run.db-shm"} | {
            path.name for path in before
        }
        assert all(after[path] == before[path] for path in before if path.suffix in (".json", ".jsonl", ".db"))

    def test_write_keeps_other_scores_when_asked(self, tmp_path: Path) -> None:
        make_run(tmp_path / "run", count=12)
        app = make_viewer([tmp_path], TOKEN, may_write=True)
        key = get(app, "/state").text.partition(":")[0]
        answer = call(
            app,
            f"/run/{key}/again",
            method="POST",
            headers={**COOKIE, "origin": "http://127.0.0.1:1"},
            body=b"profile=reform",
        )
        assert answer.status == 303
        assert '"profile": "reform"' in (tmp_path / "run" / "results-reform.json").read_text()
        assert '"profile": "snellen"' in (tmp_path / "run" / "results.json").read_text()
        assert "kept beside it: reform" in get(app, f"/run/{key}").text


class TestBadRuns:
    def test_half_written_run_is_shown_with_what_is_there(self, tmp_path: Path) -> None:
        make_run(tmp_path / "half", count=40, stop_after=7, score=False)
        app = make_viewer([tmp_path], TOKEN)
        key = get(app, "/state").text.partition(":")[0]
        page = get(app, f"/run/{key}").text
        assert "7 of 40 trials stored" in page
        assert "data-live" in page
        assert get(app, f"/run/{key}/trials").status == 200

    def test_a_run_that_grows_is_read_again(self, tmp_path: Path) -> None:
        make_run(tmp_path / "run", count=20, stop_after=5, score=False)
        app = make_viewer([tmp_path], TOKEN)
        state = get(app, "/state").text
        key = state.partition(":")[0]
        assert "5 of 5 trials" in get(app, f"/run/{key}/trials").text
        make_run(tmp_path / "run", count=20, stop_after=12, score=False)
        assert get(app, "/state").text != state
        seen = [get(app, f"/run/{key}/trials").text for _ in range(200)]
        assert "12 of 12 trials" in seen[-1]

    def test_broken_newer_and_empty_runs_are_explained_beside_the_good_one(self, tmp_path: Path) -> None:
        make_run(tmp_path / "good", count=3)
        make_run(tmp_path / "newer", count=3)
        database = connect(tmp_path / "newer" / "run.db")
        database.execute("PRAGMA user_version=99")
        database.close()
        for name, body in (("garbage", b"not a database at all" * 100), ("empty", b"")):
            (tmp_path / name).mkdir()
            (tmp_path / name / "run.db").write_bytes(body)
        RunWriter(tmp_path / "begun", make_header(make_task(), "m", 5)).close()
        page = get(make_viewer([tmp_path], TOKEN), "/").text
        assert "What cannot be shown" in page
        assert "newer Snellen" in page
        assert "garbage" in page
        assert "good" in page
        assert "begun" in page

    def test_missing_pictures_are_said(self, tmp_path: Path) -> None:
        make_run(tmp_path / "run", count=3)
        shutil.rmtree(tmp_path / "run" / "images")
        app = make_viewer([tmp_path], TOKEN)
        key = get(app, "/state").text.partition(":")[0]
        assert get(app, f"/run/{key}/trial?task=shapes&sample=shape-00001").status == 200
        answer = get(app, f"/run/{key}/image?task=shapes&sample=shape-00001&n=0")
        assert answer.status == 404
        assert "does not exist" in answer.text

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no folder"):
            make_viewer([tmp_path / "none"], TOKEN)

    def test_no_runs_says_how_to_make_one(self, tmp_path: Path) -> None:
        assert "snellen run eyechart" in get(make_viewer([tmp_path], TOKEN), "/").text


def test_samples_of_the_fixture_are_what_they_seem(tmp_path: Path) -> None:
    assert len(make_samples(tmp_path, 5)) == 5
    assert (tmp_path / "images").is_dir()


class TestTrialPage:
    def test_the_page_says_in_words_why_the_reply_was_read_so_and_marks_the_place(
        self, app: Any, keys: list[str]
    ) -> None:
        page = get(app, f"/run/{keys[0]}/trial?task=shapes&sample=shape-00001").text
        assert '<p class="why"><b>Why: </b>' in page
        assert '<mark title="this decided the answer">' in page

    def put(self, folder: Path, sample: Sample, prediction: Prediction) -> str:
        """Write a run of one trial and return its page."""
        task = make_task()

        async def write() -> None:
            writer = RunWriter(folder, make_header(task, "openai/x", 1))
            await writer.put(0, sample, ask(sample, prediction.key), prediction, "0")
            writer.close()

        run_apart(write())
        app = make_viewer([folder], TOKEN)
        key = get(app, "/state").text.partition(":")[0]
        page = get(app, f"/run/{key}/trial?task=shapes&sample={sample.id}").text
        assert get(app, f"/run/{key}/trials").status == 200
        return page

    def test_regions_are_outlined_on_their_page(self, tmp_path: Path) -> None:
        sample = msgspec.structs.replace(
            make_samples(tmp_path, 1)[0],
            meta={"boxes": [{"page": 0, "box": [32, 22, 160, 110]}, {"page": 7, "box": [0, 0, 1, 1]}, "junk"]},
        )
        page = self.put(tmp_path, sample, Prediction(TrialKey("shapes", sample.id), text="A"))
        assert '<rect x="0.1" y="0.1" width="0.4" height="0.4" class="told">' in page
        assert page.count("<rect x=") == 2, "one region, and the sign of the house"

    def test_ten_megabytes_are_cut_and_offered_whole(self, tmp_path: Path) -> None:
        sample = make_samples(tmp_path, 1)[0]
        page = self.put(
            tmp_path, sample, Prediction(TrialKey("shapes", sample.id), text="The answer is (B). " + "x" * 10_000_000)
        )
        assert len(page) < 200_000
        assert "Download the whole reply (10,000,019 characters)" in page

    def test_likelihoods_reasoning_and_failures(self, tmp_path: Path) -> None:
        sample = make_samples(tmp_path, 1)[0]
        key = TrialKey("shapes", sample.id)
        assert "log-likelihood" in self.put(
            tmp_path / "a", sample, Prediction(key, loglikelihoods=(-1.0, -2.0, -3.0, -4.0))
        )
        assert "Reasoning (9 characters)" in self.put(
            tmp_path / "b", sample, Prediction(key, text="A", reasoning="think <b>")
        )
        assert "No reply: rate" in self.put(
            tmp_path / "c", sample, Prediction(key, failure=Failure(FailureKind.RATE, "slow down", 429, 6))
        )


def test_calibration_is_drawn_where_confidence_is_known(tmp_path: Path) -> None:
    make_run(tmp_path / "run", count=60)
    reader = RunReader(tmp_path / "run")
    scores = [
        msgspec.structs.replace(score, detail={"confidence": 0.25 + 0.7 * (place % 10) / 10})
        for place, score in enumerate(reader.scores("shapes"))
    ]
    reader.close()
    write_scores(tmp_path / "run", "shapes", scores)
    app = make_viewer([tmp_path], TOKEN)
    key = get(app, "/state").text.partition(":")[0]
    assert "Does it know when it is right?" in get(app, f"/run/{key}").text
    assert get(app, f"/run/{key}/figure?task=shapes&name=calibration").text.startswith("series,confidence,value,n")


def test_a_large_run_that_was_never_scored_is_shown_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snellen.report.viewer import run_library
    from snellen.scoring import stored

    monkeypatch.setattr(stored, "LIVE_SCORING", 5)
    monkeypatch.setattr(run_library, "LIVE_SCORING", 5)
    make_run(tmp_path / "run", count=20, stop_after=9, score=False)
    app = make_viewer([tmp_path], TOKEN)
    key = get(app, "/state").text.partition(":")[0]
    assert "none gives a value yet" in get(app, f"/run/{key}").text
    assert "… pending" in get(app, f"/run/{key}/trials").text
    assert get(app, "/").status == get(app, "/leaderboard").status == 200


def test_results_scored_anew_are_seen(tmp_path: Path) -> None:
    make_run(tmp_path / "run", count=20)
    app = make_viewer([tmp_path], TOKEN)
    key = get(app, "/state").text.partition(":")[0]
    before = get(app, f"/run/{key}").text
    results = tmp_path / "run" / "results.json"
    results.write_text(
        results.read_text().replace('"accuracy"', '"correctness"').replace('"accuracy_strict"', '"correctness_strict"')
    )
    assert "correctness" not in before
    assert any("correctness" in get(app, f"/run/{key}").text for _ in range(200))
