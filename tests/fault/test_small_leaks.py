"""What an attacker or an odd network finds at the edges: a cookie for its path only, cells with a bound, proxies, waits."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from asgi import call
from fake_clock import FakeClock
from made_runs import make_run
from snellen.api.view import make_viewer
from snellen.core.errors import EnvironmentProblem
from snellen.engine.state import RunState
from snellen.model.served.http_client import proxy_for
from snellen.model.served.served_model import Pacer
from snellen.report.progress import facts
from snellen.report.viewer.guard import cookie_name
from snellen.store.database import MOST_CELL_BYTES
from snellen.store.reader import RunReader

TOKEN = "a-token-of-the-viewer"


def test_the_key_of_the_viewer_is_sent_to_no_other_service_of_the_host(tmp_path: Path) -> None:
    make_run(tmp_path / "run", count=2)
    app, home = make_viewer([tmp_path], TOKEN), f"/{cookie_name(TOKEN)}"
    entered = call(app, f"/?token={TOKEN}")
    cookie = entered.headers["set-cookie"]
    assert (entered.status, entered.headers["location"]) == (303, f"{home}/")
    assert f"Path={home};" in cookie
    known = {"cookie": cookie.partition(";")[0]}
    page = call(app, f"{home}/", headers=known)
    assert page.status == 200
    assert ' href="/static' not in page.text and f' href="{home}/static/snellen.css"' in page.text
    assert int(page.headers["content-length"]) == len(page.body)
    links = [part.partition('"')[0] for part in page.text.split(f' href="{home}/run/')[1:]]
    assert links and call(app, f"{home}/run/{links[0]}".replace("&amp;", "&"), headers=known).status == 200
    assert call(app, f"{home}/static/snellen.css", headers=known).status == 200
    assert call(app, f"{home}/").status == 403


def test_a_cell_beyond_any_record_is_refused_before_it_is_read(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", count=2)
    with closing(sqlite3.connect(folder / "run.db")) as database, database:
        database.execute("UPDATE predictions SET body = zeroblob(?)", (MOST_CELL_BYTES + 10**6,))
    tracemalloc.start()
    try:
        with RunReader(folder) as reader, pytest.raises(EnvironmentProblem):
            list(reader.trials(reader.tasks()[0]))
        assert tracemalloc.get_traced_memory()[1] < 30 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("proxies", "found"),
    [
        ({"http": "proxy.example:3128"}, "http://proxy.example:3128"),
        ({"http": "http://proxy.example:3128"}, "http://proxy.example:3128"),
        ({"all": "proxy.example:3128"}, "http://proxy.example:3128"),
        ({"https": "http://other:1"}, None),
    ],
)
def test_a_proxy_is_found_with_and_without_its_scheme(
    proxies: dict[str, str], found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert proxy_for("http://example.invalid/v1", proxies) == found


@pytest.mark.parametrize(
    "proxy", ["127.0.0.1:port", "http://:3128", ":::", "ftp://127.0.0.1:21", "http://u:secret@h:99999"]
)
def test_a_proxy_that_is_no_address_is_blamed_by_its_variable(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(EnvironmentProblem, match="HTTP_PROXY") as error:
        proxy_for("http://example.invalid/v1", {"http": proxy})
    assert "secret" not in str(error.value)


def test_a_socks_proxy_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(EnvironmentProblem, match=r"ALL_PROXY.*SOCKS"):
        proxy_for("https://example.invalid/v1", {"all": "socks5://127.0.0.1:1080"})


def test_requests_that_leave_one_by_one_say_why() -> None:
    pacer = Pacer(FakeClock())
    left = {"x-ratelimit-remaining-requests": "1", "x-ratelimit-limit-requests": "100"}
    pacer.note({**left, "x-ratelimit-reset-requests": "30s"})
    assert pacer.must_wait and "1 of 100 requests" in pacer.words
    state = RunState(planned=10, pacing=lambda: pacer.words)
    assert "1 of 100 requests" in facts(state, 1.0, 1.0)
    make: Callable[..., Any] = pacer.note
    make({})
    assert not pacer.must_wait
