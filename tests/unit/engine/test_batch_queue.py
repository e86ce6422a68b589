"""kits.batches: files as full as allowed, answers found by name, nothing sent twice, nothing lost in a crash."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_clock import FakeClock
from snellen.core.errors import EnvironmentProblem, ModelError, RunMismatch
from snellen.core.types import FailureKind, Params, Request, TrialKey, Turn
from snellen.engine.state import RunState
from snellen.kits.batches.batch_ledger import BatchLedger, LinesWriter, SentFile, idents_of, open_ledger, read_ledger
from snellen.kits.batches.batch_queue import TRIES, BatchAnswers, BatchQueue, ask_in_rounds, request_ident
from snellen.kits.batches.batch_service import BatchState
from snellen.kits.batches.batch_services import MessageService
from snellen.kits.batches.file_service import FileService


class Service(FileService):
    """A service of OpenAI's form without a network; `fails` calls fail first."""

    def __init__(self, fails: int = 0, loses: int = 0) -> None:
        super().__init__(None, "/v1/chat/completions")  # type: ignore[arg-type]
        self.sent: dict[str, list[str]] = {}
        self.fails, self.loses = fails, loses
        self.state = "ended"
        self.made = 0
        self.names: dict[str, str] = {}

    async def submit(self, lines: Any) -> str:
        self._fail()
        self.made += 1
        self.sent[f"b{self.made}"] = [json.loads(line)["custom_id"] for line in lines.path.read_bytes().splitlines()]
        self.names[f"b{self.made}"] = lines.name
        if self.loses:
            self.loses -= 1
            raise ModelError(FailureKind.NETWORK, "gone", retryable=True)
        return f"b{self.made}"

    async def find(self, lines: Any, known: frozenset[str]) -> str | None:
        return next((ident for ident, name in self.names.items() if name == lines.name), None)

    async def look(self, ident: str) -> BatchState:
        self._fail()
        return BatchState(self.state, self.state, 0, len(self.sent[ident]), problem="no")

    async def fetch(self, ident: str, state: BatchState, into: Path) -> None:
        rows = [{"custom_id": name, "response": {"status_code": 200, "body": {"n": name}}} for name in self.sent[ident]]
        into.write_text("".join(json.dumps(row) + "\n" for row in rows))

    async def close(self) -> None:
        pass

    def _fail(self) -> None:
        if self.fails:
            self.fails -= 1
            raise ModelError(FailureKind.NETWORK, "no network", retryable=True)


def queue_of(folder: Path, service: Service, most_lines: int = 3) -> BatchQueue:
    ledger = open_ledger(folder, "openai/m", "http://x/v1", {})
    writer = LinesWriter(folder / "batch", service, most_lines=most_lines, most_bytes=10_000, run="r" * 16)
    return BatchQueue(folder, ledger, service, writer, clock=FakeClock(), say=lambda line: None)


async def put_all(queue: BatchQueue, names: list[str]) -> None:
    await asyncio.gather(*(queue.put(name, (b'{"a":', b"1}")) for name in names))
    await queue.flush()


@given(sizes=st.lists(st.integers(1, 60), max_size=40), most_lines=st.integers(1, 7), most_bytes=st.integers(20, 200))
def test_files_hold_every_line_once_and_never_more_than_fits(
    sizes: list[int], most_lines: int, most_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    service = MessageService(None)  # type: ignore[arg-type]
    writer = LinesWriter(folder, service, most_lines=most_lines, most_bytes=most_bytes, run="r")
    files: list[SentFile] = []
    for number, size in enumerate(sizes):
        line = service.line(f"i{number}", (json.dumps("x" * size).encode(),))
        if not writer.fits(sum(map(len, line))):
            files.append(writer.finish(len(files) + 1) or pytest.fail("an open file"))
        writer.put(f"i{number}", line)
    if last := writer.finish(len(files) + 1):
        files.append(last)
    seen = [row["custom_id"] for file in files for row in json.loads((folder / file.name).read_bytes())["requests"]]
    assert seen == [f"i{number}" for number in range(len(sizes))] == [i for f in files for i in idents_of(folder, f)]
    for file in files:
        assert file.lines == 1 or (file.lines <= most_lines and file.size_bytes <= most_bytes)


def test_a_full_file_is_sent_while_others_are_written(tmp_path: Path) -> None:
    service = Service()
    queue = queue_of(tmp_path, service)
    asyncio.run(put_all(queue, [f"n{number}" for number in range(8)]))
    assert [len(names) for names in service.sent.values()] == [3, 3, 2]
    assert queue.waiting == 8 and queue.waits("n7") and not queue.waits("other")


@pytest.mark.parametrize("fails", [1, TRIES - 1])
def test_a_network_that_comes_back_costs_nothing(fails: int, tmp_path: Path) -> None:
    service = Service(fails=fails)
    asyncio.run(put_all(queue_of(tmp_path, service), ["a"]))
    assert service.made == 1


def test_one_that_does_not_is_one_line_and_the_file_is_sent_by_the_next_command(tmp_path: Path) -> None:
    service = Service(fails=TRIES)
    with pytest.raises(EnvironmentProblem, match="the same command goes on"):
        asyncio.run(put_all(queue_of(tmp_path, service), ["a", "b"]))
    again = queue_of(tmp_path, service)
    assert again.waits("a"), "it is written, so it is not written again"
    asyncio.run(again.flush())
    assert service.sent == {"b1": ["a", "b"]}


def test_a_batch_nobody_heard_of_is_taken_up_after_a_crash(tmp_path: Path) -> None:
    service = Service()
    queue = queue_of(tmp_path, service)
    asyncio.run(put_all(queue, ["a"]))
    ledger = read_ledger(tmp_path)
    assert ledger is not None
    ledger.files[0].state, ledger.files[0].batch, ledger.files[0].words = "written", None, "sending"
    ledger.save(tmp_path)
    (tmp_path / "batch" / ledger.files[0].name).write_text("lines")
    asyncio.run(queue_of(tmp_path, service).flush())
    assert service.made == 1 and (read_ledger(tmp_path) or ledger).files[0].batch == "b1"


def test_answers_are_found_by_name_and_go_when_they_are_stored(tmp_path: Path) -> None:
    service = Service()
    queue = queue_of(tmp_path, service)
    asyncio.run(put_all(queue, ["a", "b", "c", "d"]))
    asyncio.run(queue.look())
    found = queue.answer("d")
    assert found is not None and json.loads(found.body) == {"n": "d"} and queue.answer("x") is None
    other = queue_of(tmp_path, service)
    assert other.answer("a") is not None, "fetched and not stored: the next command reads it again"
    other.answers.close()
    queue.ask_again("a", "rate")
    assert queue.answer("a") is None and not queue.waits("a")
    queue.settle()
    assert not list((tmp_path / "batch").iterdir()) and queue_of(tmp_path, service).answer("d") is None


def test_a_refused_batch_stops_the_run_and_its_requests_are_free_again(tmp_path: Path) -> None:
    service = Service()
    queue = queue_of(tmp_path, service)
    asyncio.run(put_all(queue, ["a"]))
    service.state = "failed"
    with pytest.raises(EnvironmentProblem, match="was refused: no"):
        asyncio.run(queue.look())
    assert not queue.waits("a") and not queue.ledger.open


def test_a_line_of_results_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b'{"custom_id": "a"\n')
    answers = BatchAnswers(Service())
    with pytest.raises(EnvironmentProblem, match="a line of results cannot be read"):
        answers.load(tmp_path / "r", frozenset({"a"}))
    answers.close()


def test_lines_of_others_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "r").write_text('{"custom_id":"z","response":{"status_code":200,"body":{}}}\n')
    answers = BatchAnswers(Service())
    assert answers.load(tmp_path / "r", frozenset({"a"})) == 0 == len(answers)
    answers.close()


def test_a_ledger_of_another_server_is_refused(tmp_path: Path) -> None:
    BatchLedger("openai/m", "http://x/v1", files=[SentFile("n", 3, 9, "sent", "b")]).save(tmp_path)
    with pytest.raises(RunMismatch, match="3 requests in batches of openai/m at http://x/v1"):
        open_ledger(tmp_path, "openai/m", "http://y/v1", {})
    (tmp_path / "batches.json").write_text("{")
    with pytest.raises(EnvironmentProblem, match="what was sent in batches is not known"):
        read_ledger(tmp_path)


def test_waiting_is_left_when_time_is_over(tmp_path: Path) -> None:
    service = Service()
    queue = queue_of(tmp_path, service)
    service.state = "running"

    async def one_pass() -> RunState:
        await queue.put("a", (b"{}",))
        return RunState(done=1)

    def on_signals(leave: Any) -> Any:
        from contextlib import nullcontext

        return nullcontext()

    total = asyncio.run(ask_in_rounds(queue, one_pass, on_signals, poll_s=1.0, leave=False, until=0.5))
    assert total.unfinished and (total.done, total.in_batches) == (1, 1)


def test_a_request_is_named_by_what_is_asked_not_by_how() -> None:
    asked = Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(temperature=0.0, stream=True, timeout_s=3.0))
    same = Request(TrialKey("t", "s"), (Turn("user", "hi"),), Params(temperature=0.0))
    assert request_ident(asked, {}) == request_ident(same, {})
    others = [
        Request(TrialKey("t", "s", repeat=1), same.messages, same.params),
        Request(same.key, (Turn("user", "ho"),), same.params),
        Request(same.key, same.messages, Params(temperature=1.0)),
    ]
    assert len({request_ident(request, {}) for request in (same, *others)}) == 4
    assert len(request_ident(same, {})) == 32


def test_a_batch_belongs_to_its_folder(tmp_path: Path) -> None:
    one, other = (open_ledger(tmp_path / name, "openai/m", "http://h", {}) for name in ("a", "b"))
    assert one.folder and one.folder != other.folder
    one.save(tmp_path / "a")
    assert open_ledger(tmp_path / "a", "openai/m", "http://h", {}).folder == one.folder
