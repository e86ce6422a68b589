"""The review server over HTTP: who may ask, what is refused, what a kill leaves behind, and what text cannot do."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import PIL.Image
import pytest
from msgspec import structs

from review_server import ReviewServer, review_server
from snellen.data.files.records import write_lines
from snellen.kits.curate.records import Gated
from workshop_fixtures import make_draft

pytest.importorskip("starlette")
POST = {"Content-Type": "application/json", "X-Snellen": "1"}
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    PIL.Image.new("RGB", (20, 20), "teal").save(folder / "a.png")
    drafts = [make_draft(number) for number in range(12)]
    drafts = [
        structs.replace(each, source=structs.replace(each.source, image=str(folder / "a.png"))) for each in drafts
    ]
    drafts[3] = structs.replace(drafts[3], source=structs.replace(drafts[3].source, clue=EVIL))
    write_lines(folder / "gated.jsonl", [Gated(draft) for draft in drafts])
    return folder


class Answer:
    """A response read to its end."""

    def __init__(self, status: int, headers: Any, body: bytes, url: str) -> None:
        self.status, self.headers, self.body, self.url = status, headers, body, url

    def json(self) -> Any:
        return json.loads(self.body)


class Session:
    """Asks and reads whole answers."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, url: str, **options: Any) -> Answer:
        async with self._session.get(url, **options) as response:
            return Answer(response.status, response.headers, await response.read(), str(response.url))

    async def post(self, url: str, **options: Any) -> Answer:
        async with self._session.post(url, **options) as response:
            return Answer(response.status, response.headers, await response.read(), str(response.url))


def talk(server: ReviewServer, work: Callable[[Session, str], Awaitable[None]], who: str | None = "ana") -> None:
    async def run() -> None:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as opened:
            session, base = Session(opened), server.root
            if who:
                page = await session.get(server.links[who])
                assert page.status == 200
                base = page.url.rstrip("/")
            await work(session, base)

    asyncio.run(run())


def save(item: str, ticket: str, action: str = "accept", **more: Any) -> str:
    return json.dumps({"mode": "review", "item": item, "action": action, "ticket": ticket, **more})


def test_only_the_own_link_opens_the_page(shop: Path) -> None:
    with review_server(shop, "--reviewer", "ana", "--reviewer", "ben") as server:

        async def stranger(session: Session, base: str) -> None:
            for path in (
                "/",
                "/r/0123456789abcdef/",
                "/r/0123456789abcdef/api/next",
                "/r/0123456789abcdef/image/0001",
                f"/?reviewer=ben&token={'0' * 32}",
            ):
                assert (await session.get(base + path)).status == 403
            nobodys = f"{base}/r/0123456789abcdef/api/decide"
            assert (await session.post(nobodys, data=save("0001", "t"), headers=POST)).status == 403
            forged = {"Cookie": "snellen-review=" + b"ana:123".hex()}
            for path in ("/", "/api/state", "/image/0001"):
                assert (await session.get(homes[0] + path, headers=forged)).status == 403

        async def visit(session: Session, base: str) -> None:
            homes.append(base)

        homes: list[str] = []
        talk(server, visit)
        talk(server, stranger, who=None)

        async def reviewer(session: Session, base: str) -> None:
            page = await session.get(f"{base}/")
            assert page.status == 200 and "token" not in page.url
            policy = page.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy
            picture = await session.get(f"{base}/image/0001")
            assert picture.headers["Content-Type"] == "image/png" and picture.body != (shop / "a.png").read_bytes()
            assert (await session.get(f"{base}/image/none")).status == 404
            assert (await session.get(f"{server.root}/static/../web.py")).status == 404

        talk(server, reviewer)


def test_two_links_in_one_browser_are_two_people(shop: Path) -> None:
    with review_server(shop, "--reviewer", "ana", "--reviewer", "ben", "--overlap", "1") as server:

        async def both(session: Session, base: str) -> None:
            homes = {who: (await session.get(link)).url.rstrip("/") for who, link in server.links.items()}
            assert len(set(homes.values())) == 2
            for turn, who in enumerate(("ana", "ben", "ana")):
                state = (await session.get(f"{homes[who]}/api/state")).json()
                assert state["reviewer"] == who
                body = save("0001", f"t{turn}", "reject" if who == "ben" else "accept", reason="why")
                assert (await session.post(f"{homes[who]}/api/decide", data=body, headers=POST)).status == 200

        talk(server, both, who=None)
    database = sqlite3.connect(shop / "review.db")
    rows = database.execute("SELECT reviewer, action FROM decisions ORDER BY id").fetchall()
    database.close()
    assert rows == [("ana", "accept"), ("ben", "reject"), ("ana", "accept")]


def test_other_pages_cannot_post(shop: Path) -> None:
    with review_server(shop, "--reviewer", "ana") as server:

        async def attack(session: Session, base: str) -> None:
            url = f"{base}/api/decide"
            for headers in (
                {"Content-Type": "text/plain"},
                {"Content-Type": "application/json"},
                {**POST, "Origin": "http://evil.example"},
                {**POST, "Host": "evil.example"},
                {**POST, "Host": f"evil.example:{server.port}"},
            ):
                assert (await session.post(url, data=save("0001", "t1"), headers=headers)).status == 403
            assert (await session.get(base, headers={"Host": "evil.example"})).status == 403
            answer = await session.post(url, data=save("0001", "t1"), headers={**POST, "Origin": server.root})
            assert answer.status == 200 and answer.json()["saved"] == 1

        talk(server, attack)


def test_what_does_not_fit_is_a_line_not_a_crash(shop: Path) -> None:
    with review_server(shop, "--reviewer", "ana") as server:

        async def mistakes(session: Session, base: str) -> None:
            for body, message in (
                ("{", "truncated"),
                ("[]", "Expected `object`"),
                (save("none", "a"), "no item 'none'"),
                (save("0001", "b", "explode"), "no action"),
                (save("0001", "c", "edit", body={"steps": []}), "missing required field"),
                (save("0001", "t" * 2000), "length <= 1000"),
                (save("0001", "t" * 900_000), "larger than 256 KB"),
            ):
                answer = await session.post(f"{base}/api/decide", data=body, headers=POST)
                assert answer.status == 400 and message in answer.json()["error"]
            assert (await session.get(f"{base}/api/next?mode=dance")).status == 400
            assert (await session.post(f"{base}/api/undo", data="{}", headers=POST)).status == 400
            shown = (await session.get(f"{base}/api/item/0003?mode=review")).json()
            assert shown["item"]["clue"] == EVIL  # as data: the page writes it as text

        talk(server, mistakes)


def test_a_kill_loses_nothing_that_was_acknowledged(shop: Path) -> None:
    saved: list[int] = []
    port = "0"
    for round_ in range(3):
        with review_server(shop, "--reviewer", "ana", "--port", port) as server:
            port = str(server.port)

            async def work(session: Session, base: str, round_: int = round_) -> None:
                for turn in range(3):
                    item = (await session.get(f"{base}/api/next")).json()["item"]["id"]
                    answer = await session.post(f"{base}/api/decide", data=save(item, f"{round_}-{turn}"), headers=POST)
                    saved.append(answer.json()["saved"])

            talk(server, work)
            server.kill()
    database = sqlite3.connect(shop / "review.db")
    rows = database.execute("SELECT id, item FROM decisions ORDER BY id").fetchall()
    database.close()
    assert [row[0] for row in rows] == saved and len({item for _, item in rows}) == 9


def test_one_server_a_folder(shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from command_line import run_command

    with review_server(shop, "--reviewer", "ana") as server:
        assert run_command(["curate", "review", str(shop)]) == 3
        assert f"process {server.process.pid}" in capfd.readouterr().err


def test_undo_over_the_wire(shop: Path) -> None:
    with review_server(shop, "--reviewer", "ana") as server:

        async def work(session: Session, base: str) -> None:
            first = (await session.get(f"{base}/api/next")).json()["item"]["id"]
            await session.post(f"{base}/api/decide", data=save(first, "x"), headers=POST)
            undone = (
                await session.post(f"{base}/api/undo", data='{"mode": "review", "ticket": "y"}', headers=POST)
            ).json()
            assert undone["undone"] == first and undone["item"]["id"] == first and undone["state"]["decided"] == 0
            nothing = (
                await session.post(f"{base}/api/undo", data='{"mode": "review", "ticket": "z"}', headers=POST)
            ).json()
            assert nothing["undone"] is None

        talk(server, work)


def test_commands_say_what_comes_first(tmp_path: Path, shop: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from command_line import run_command

    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, message in (
        (["gates", str(empty)], "run `snellen curate draft"),
        (["review", str(empty), "--reviewer", "ana"], "run `snellen curate gates"),
        (["review", str(shop)], "--reviewer NAME"),
        (["publish", str(shop)], "has no review yet"),
        (["draft", str(tmp_path / "none.jsonl"), str(empty), "--model", "blind/first"], "does not exist"),
    ):
        assert run_command(["curate", *arguments]) == 2
        assert message in capfd.readouterr().err
    with review_server(shop, "--reviewer", "ana") as server:
        server.kill(15)
    (shop / "gates.json").write_text("{}")
    assert run_command(["curate", "publish", str(shop)]) == 2
    assert "nothing to publish" in capfd.readouterr().err
