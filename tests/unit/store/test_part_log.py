"""The log of one part: whatever is cut off or flipped, at most that record is lost and none is wrong."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from snellen.core.errors import EnvironmentProblem, RunMismatch
from snellen.core.homes import Part
from snellen.core.tasks import RunHeader
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.store.merge import is_in_parts, merge_logs, merging, unmerged_bytes
from snellen.store.owner import Owner
from snellen.store.part_log import TRIAL, LogReading, PartWriter, log_files, may_hold, read_head, read_plan
from snellen.store.reader import RunReader

ONE = Part(0, 1)


def header(name: str = "m", version: str = "1", planned: int = 8) -> RunHeader:
    config = {"model": {"model": name}, "tasks": {}}
    return RunHeader(name, config, {"snellen": version}, "now", model=name, planned={"t": planned})


def trial(number: int, text: str = "") -> tuple[int, Sample, Request, Prediction]:
    key = TrialKey("t", f"s{number}")
    sample = Sample(f"s{number}", "d", Form.OPEN, f"What is\n{number}?")
    return number, sample, Request(key, ()), Prediction(key, text=text or f"it is\n{number} “ä”")


def write(folder: Path, numbers: range, part: Part = ONE, text: str = "", head: RunHeader | None = None) -> Path:
    with closing(PartWriter(folder, head or header(), part)) as writer:

        async def put() -> None:
            for number in numbers:
                await writer.put(*trial(number, text), "digest")

        asyncio.run(put())
        return writer.path


def read(path: Path) -> dict[str, bytes]:
    return {line.row[1]: line.row[7] for line in LogReading(path) if line.kind == TRIAL}


def test_what_was_put_is_read_back_and_not_asked_again(tmp_path: Path) -> None:
    path = write(tmp_path, range(4))
    assert list(read(path)) == ["s0", "s1", "s2", "s3"]
    with closing(PartWriter(tmp_path, header(), ONE)) as again:
        assert again.path.name == "0000-of-0001.a1.log" and again.resumed
        assert again.finished_keys("t") == {(f"s{n}", "base", 0) for n in range(4)}
        stored = again.stored(TrialKey("t", "s2"))
        assert stored is not None and stored.text == "it is\n2 “ä”"
        again.put_meta("servers", [{"base_url": "x"}])
        assert again.meta("servers") == [{"base_url": "x"}]


def test_a_log_cut_at_any_byte_of_its_last_lines_loses_at_most_its_tail(tmp_path: Path) -> None:
    path = write(tmp_path, range(5))
    whole, content = read(path), path.read_bytes()
    starts = [line.offset for line in LogReading(path)]
    for end in range(starts[-6], len(content)):  # three trials and their samples
        path.write_bytes(content[:end])
        found = read(path)
        kept = sum(start < end for start in [*starts, len(content)][1:])
        assert all(whole[name] == body for name, body in found.items())
        assert len(list(LogReading(path))) >= kept - 1, end


def test_any_flipped_byte_costs_at_most_its_own_record(tmp_path: Path) -> None:
    path = write(tmp_path, range(2))
    whole, content, lines = read(path), path.read_bytes(), len(list(LogReading(path)))
    for place in range(len(content)):
        for mask in (0x01, 0x80):
            path.write_bytes(content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :])
            assert len(list(LogReading(path))) >= lines - 1, (place, mask)
            assert all(whole[name] == body for name, body in read(path).items()), (place, mask)


def test_a_line_that_becomes_a_line_end_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, range(3))
    content = path.read_bytes()
    place = content.index(b"s1")
    path.write_bytes(content[:place] + b"\n" + content[place + 1 :])
    reading = LogReading(path)
    assert len(list(reading)) == len(content.splitlines()) - 1 and reading.damaged == 2


def test_only_logs_that_may_hold_its_trials_are_read(tmp_path: Path) -> None:
    assert may_hold(Part(3, 64), Part(3, 64)) and not may_hold(Part(4, 64), Part(3, 64))
    assert may_hold(Part(4, 64), Part(0, 8))


def test_another_model_and_another_version_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    assert read_plan(tmp_path).id == "m" and is_in_parts(tmp_path)
    with pytest.raises(RunMismatch, match=r"model\.model was 'm', now 'other'"):
        PartWriter(tmp_path, header("other"), ONE)
    with pytest.raises(RunMismatch, match="Snellen 1, and this command has 2"):
        PartWriter(tmp_path, header(version="2"), ONE)
    strange = write(tmp_path / "other", range(2, 4), Part(1, 2), head=header("other"))
    strange.rename(tmp_path / "run.d" / strange.name)
    with pytest.raises(RunMismatch, match=r"0001-of-0002\.a0\.log"):
        merge_logs(tmp_path)


def test_of_a_trial_asked_twice_the_first_reply_counts_and_both_are_told(tmp_path: Path) -> None:
    write(tmp_path, range(4))
    first = log_files(tmp_path)[0].path
    hidden = first.rename(tmp_path / "hidden")  # a ghost: the second did not see it
    write(tmp_path, range(2, 6), text="other")
    (tmp_path / "run.d" / "0000-of-0001.a0.log").rename(tmp_path / "run.d" / "0000-of-0001.a1.log")
    hidden.rename(first)
    found = merge_logs(tmp_path)
    assert (found.stored, found.missing, found.asked_twice, found.differ) == (6, 2, 2, 2)
    with RunReader(tmp_path) as run:
        texts = [one.prediction.text for one in run.trials("t")]
        assert run.meta("duplicates") == {"asked_twice": 2, "differ": 2}
    assert texts[2:] == ["it is\n2 “ä”", "it is\n3 “ä”", "other", "other"]
    assert unmerged_bytes(tmp_path) == 0
    write(tmp_path, range(6, 8))
    assert unmerged_bytes(tmp_path) > 0
    assert merge_logs(tmp_path).missing == 0 and merge_logs(tmp_path).fresh == 0


def test_one_merge_at_a_time_and_a_dead_one_is_no_hindrance(tmp_path: Path) -> None:
    write(tmp_path, range(1))
    with merging(tmp_path), pytest.raises(EnvironmentProblem, match="is being merged by process"), merging(tmp_path):
        pass
    claim = tmp_path / "run.d" / "merge.claim"
    claim.write_text('{"host": "elsewhere", "pid": 1}')
    with pytest.raises(EnvironmentProblem, match="on elsewhere"), merging(tmp_path):
        pass
    claim.write_bytes(msgspec.json.encode(msgspec.structs.replace(Owner.me(), pid=999999999)))
    with merging(tmp_path):
        assert claim.exists()
    assert not claim.exists()


def test_a_log_without_a_head_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, range(2))
    (path.parent / "0000-of-0001.a1.log").write_bytes(b"")
    assert read_head(path.parent / "0000-of-0001.a1.log") is None
    assert merge_logs(tmp_path).unreadable == ("0000-of-0001.a1.log",)
