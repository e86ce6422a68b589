"""Data of cards is fetched, checked and verified: against a hub and a file server on loopback."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snellen
from command_line import run_command
from hub_standin import REVISION, hub_standin
from snellen.api.card_data import fetch_card_data, verify_card_data
from snellen.api.listing import list_tasks
from snellen.core.errors import DataError, EnvironmentProblem, UsageError
from snellen.core.protocols import LoadContext
from snellen.data.atlas import card_rows
from snellen.data.atlas.card_sources import CardSource
from snellen.data.atlas.fetch import download, wanted_files
from snellen.data.catalog import Catalog

ROWS = [
    {"id": f"test_Art_{at}", "question": "Who?", "options": "['Klee', 'Marc']", "answer": "B", "subject": "Art"}
    for at in range(3)
]


def parquet(rows: list[dict[str, str]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


def dataset() -> dict[str, bytes]:
    return {
        "README.md": b"# MMMU-Pro",
        "standard (10 options)/test-00000-of-00001.parquet": parquet(ROWS),
        "standard (4 options)/test-00000-of-00001.parquet": parquet(ROWS[:1]),
        "vision/test-00000-of-00001.parquet": parquet(ROWS[:2]),
    }


def test_a_hub_is_fetched_once_and_the_card_reads_it_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with hub_standin({"MMMU/MMMU_Pro": dataset()}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert run_command(["data", "fetch", "mmmu-pro", "--data-root", tmp_path, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["origin"], found["revision"]) == ("MMMU/MMMU_Pro", REVISION)
        assert list(found["files"]) == ["standard (10 options)/test-00000-of-00001.parquet"]
        asked = len(hub.asked)
        fetched, _ = fetch_card_data("mmmu-pro", data_root=tmp_path)
        assert fetched.already
        assert len(hub.asked) == asked  # nothing was asked again
    samples = list(card_rows.load(Catalog().task("mmmu-pro"), LoadContext(root=tmp_path)))
    assert [sample.id for sample in samples] == [row["id"] for row in ROWS]


def test_the_second_spelling_is_tried_where_the_hub_does_not_know_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"question": "Part?", "options": "['a', 'b']", "answer": "1"}]
    with hub_standin({"lmms-lab-encoder/ai2d": {"data/test-00000-of-00001.parquet": parquet(rows)}}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        fetched, _ = fetch_card_data("ai2d", data_root=tmp_path)
        assert fetched.origin == "lmms-lab-encoder/ai2d"
        with pytest.raises(DataError, match="knows none of"):
            fetch_card_data("vstar", data_root=tmp_path)


def test_a_download_continues_where_the_connection_broke(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4000
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    with hub_standin({}, {"big.tsv": data}) as server:
        server.break_after = 300_000
        told: list[int] = []
        with pytest.raises(EnvironmentProblem, match="the same command continues"):
            download(f"{server.address}/files/big.tsv", tmp_path / "big.tsv", digest)
        assert not (tmp_path / "big.tsv").exists()
        kept = (tmp_path / "big.tsv.part").stat().st_size
        assert kept == 300_000
        download(
            f"{server.address}/files/big.tsv", tmp_path / "big.tsv", digest, lambda _, have, total: told.append(have)
        )
        assert server.asked[-1][2] == f"bytes={kept}-"
    assert (tmp_path / "big.tsv").read_bytes() == data
    assert told[-1] == len(data)


def test_another_file_than_the_card_says_is_not_kept(tmp_path: Path) -> None:
    with hub_standin({}, {"a.tsv": b"new version"}) as server:
        with pytest.raises(DataError, match="another file than the card says"):
            download(f"{server.address}/files/a.tsv", tmp_path / "a.tsv", "0" * 32)
        with pytest.raises(EnvironmentProblem, match="404"):
            download(f"{server.address}/files/b.tsv", tmp_path / "b.tsv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="no web address"):
        download("file:///etc/passwd", tmp_path / "x")


def test_a_server_that_cannot_continue_sends_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.tsv.part").write_bytes(b"whole")
    with hub_standin({}, {"a.tsv": b"whole"}) as server:
        download(f"{server.address}/files/a.tsv", tmp_path / "a.tsv")  # all of it was here: 416
    assert (tmp_path / "a.tsv").read_bytes() == b"whole"


def test_official_files_of_a_card_of_ones_own(tmp_path: Path) -> None:
    table = b"index\tquestion\tA\tB\tanswer\n1\tWho?\tKlee\tMarc\tB\n"
    digest = hashlib.md5(table, usedforsecurity=False).hexdigest()
    with hub_standin({}, {"made.tsv": table}) as server:
        (tmp_path / "datasets").mkdir()
        (tmp_path / "datasets" / "made.toml").write_text(
            f"""
form = "choice"
[dataset]
loader = "card"
path = "made"
[dataset.sources.tsv]
url = "{server.address}/files/"
files = {{ "made.tsv" = "{digest}" }}
columns = ["index", "question", "A", "B", "answer"]
count = 1
table = {{ preset = "vlmevalkit", answer_kind = "letter" }}
[protocols.official]
prompt = "letter-directly"
"""
        )
        fetched, folder = fetch_card_data("made", data_root=tmp_path / "data", catalogs=[tmp_path])
    assert (fetched.source, list(fetched.files)) == ("tsv", ["made.tsv"])
    assert verify_card_data("made", folder, [tmp_path]).problems == []
    (folder / "made.tsv").write_bytes(table.replace(b"Klee", b"Kleo"))
    (problem,) = verify_card_data("made", folder, [tmp_path]).problems
    assert "another checksum than what was fetched says" in problem


def test_verify_names_every_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "MMBench_DEV_EN.tsv"
    file.write_text("index\tquestion\tA\tB\tanswer\tl2-category\n1\tWhat?\tcat\tdog\tA\tx\n")
    assert run_command(["data", "verify", "mmbench-en", "--path", file]) == 1
    shown = capsys.readouterr().out
    assert "the tsv form in MMBench_DEV_EN.tsv, 1 rows" in shown
    assert "another checksum than the card says (b6caf1133a01c6bb705cf753bb527ed8)" in shown
    other = tmp_path / "other.jsonl"
    other.write_text('{"prompt": "What?", "target": "A"}\n')
    found = verify_card_data("mmbench-en", other)
    assert all("is not the" in problem for problem in found.problems)
    assert verify_card_data("mmmu-pro", _folder(tmp_path, ROWS)).problems == [
        "3 rows, and the card says 1,730: a part, or another version"
    ]


def _folder(root: Path, rows: list[dict[str, str]]) -> Path:
    folder = root / "snapshot" / "standard (10 options)"
    folder.mkdir(parents=True)
    (folder / "test-00000-of-00001.parquet").write_bytes(parquet(rows))
    return folder.parent


def test_what_cannot_be_fetched_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["data", "fetch", "eyechart", "--data-root", tmp_path]) == 2
    assert "no card of a published benchmark" in capsys.readouterr().err
    assert run_command(["data", "fetch", "mmmu-pro", "--source", "zip", "--data-root", tmp_path]) == 2
    assert "--source" in capsys.readouterr().err
    assert run_command(["data", "verify", "mmmu-pro", "--path", tmp_path / "nowhere"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_only_the_tables_of_config_and_split_are_wanted() -> None:
    listed = ["a/validation-0.parquet", "a/test-0.parquet", "b/validation-0.parquet", "documents/x.pdf", "README.md"]
    source = CardSource(config="a", split="validation", also=("documents/*",))
    assert list(wanted_files(listed, source, "o/n")) == ["a/validation-0.parquet", "documents/x.pdf"]
    with pytest.raises(DataError, match="has no table"):
        list(wanted_files(["README.md"], source, "o/n"))


def test_what_fetch_brought_is_found_by_the_same_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`data fetch`, `tasks` and `run` all say $SNELLEN_DATA or ./data: they must mean the same folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNELLEN_DATA", raising=False)
    with pytest.raises(DataError, match=r"no data at 'mmmu-pro' or 'data/mmmu-pro', .*; `snellen data fetch mmmu-pro`"):
        list(card_rows.load(Catalog().task("mmmu-pro"), LoadContext()))
    with hub_standin({"MMMU/MMMU_Pro": dataset()}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        for home in ("data", "elsewhere"):
            assert run_command(["data", "fetch", "mmmu-pro"]) == 0
            samples = list(card_rows.load(Catalog().task("mmmu-pro"), LoadContext()))
            assert [sample.id for sample in samples] == [row["id"] for row in ROWS], home
            shutil.rmtree(tmp_path / home)
            monkeypatch.setenv("SNELLEN_DATA", "elsewhere")
    capsys.readouterr()


def test_the_list_of_tasks_says_built_in_only_of_what_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said so of thirteen video benchmarks, CURE and LongBench-v2, whose data nobody has brought."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNELLEN_DATA", raising=False)
    here = {row["name"]: row["data"] for row in list_tasks()}
    assert here["eyechart"] == here["video-needle"] == ["built in"]
    assert not any(here[name] for name in ("lvbench", "video-mme", "cure", "longbench-v2", "niah", "mmmu"))
    (tmp_path / "data" / "LVBench").mkdir(parents=True)
    assert next(row["data"] for row in list_tasks() if row["name"] == "lvbench") == ["data/LVBench"]


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without data, and a hub's cache that is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SNELLEN_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


RUN = ["run", "mmmu-pro", "--model", "blind/first"]


def test_run_fetches_with_yes_and_works_without_the_hub_afterwards(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with hub_standin({"MMMU/MMMU_Pro": dataset()}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert run_command(RUN) == 2
        refused = capsys.readouterr().err
        assert "--yes" in refused and "snellen data fetch mmmu-pro" in refused and hub.asked == []
        assert run_command([*RUN, "--yes", "-o", "first"]) == 0
        assert "1 file of MMMU/MMMU_Pro fetched into data/mmmu-pro" in capsys.readouterr().err
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert run_command([*RUN, "-o", "second"]) == 0
    assert snellen.load("first").metrics == snellen.load("second").metrics
    assert "3 of 1,730 rows" in capsys.readouterr().out


def test_what_the_hubs_own_library_left_in_its_cache_is_used(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import huggingface_hub

    wanted = "standard (10 options)/test-00000-of-00001.parquet"
    with hub_standin({"MMMU/MMMU_Pro": dataset()}) as hub:
        told = {"repo_type": "dataset", "cache_dir": away / "hub", "endpoint": hub.address}
        huggingface_hub.hf_hub_download("MMMU/MMMU_Pro", "README.md", **told)
        assert run_command(RUN) == 2, "a snapshot without the table is no data"
        huggingface_hub.hf_hub_download("MMMU/MMMU_Pro", wanted, **told)
    capsys.readouterr()
    assert run_command([*RUN, "-o", "run"]) == 0
    assert f"from the hub's cache ({REVISION[:8]})" in capsys.readouterr().err
    assert snellen.load("run").metrics["mmmu-pro"]["accuracy"].n == len(ROWS)
    assert not (away / "data").exists()


def test_without_a_network_fetching_is_one_line_that_says_what_to_do(
    away: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert run_command([*RUN, "--yes"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: cannot reach the hub for MMMU/MMMU_Pro") and "dataset.path" in line
    assert not (away / "data" / "mmmu-pro").exists(), "an empty folder would be taken for data"
