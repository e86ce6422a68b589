"""Bedrock's signatures against a server that checks them by the rules: right ones, and all that can be wrong with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import PIL.Image
import pytest

import snellen
from emulator import emulator
from snellen.kits.mock.server import REGION, MockOptions

pytest.importorskip("botocore")
auth = pytest.importorskip("botocore.auth")
MODEL = "bedrock/maker.mock-v1:0"


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example/secret+of-nobody")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    PIL.Image.effect_noise((200, 200), 90).save(tmp_path / "0.png")
    line = '{"id": "%d", "question": "%s %d?", "options": ["one", "two"], "answer": "B", "images": ["0.png"]}'
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(line % (n, "Wie heißt" * (1 + n % 3), n) for n in range(12)))
    return path


def run(
    rows: Path, key: str = "AKIDEXAMPLE:example/secret+of-nobody", region: str = REGION, *, stream: bool = False
) -> int:
    """Return how many requests the server answered."""
    server = MockOptions(dialect="bedrock", answer="B", api_key=key, models=("maker.mock-v1:0",))
    with emulator(server) as running:
        settings = {
            "tasks": (str(rows),),
            "model": MODEL,
            "base_url": running.base_url,
            "cache": False,
            "stream": stream,
        }
        asked = snellen.RunSettings(**settings, model_arguments={"region": region}, output_dir=rows.parent / "run")
        results = snellen.run(asked).results
    assert results["tasks"]["rows"]["metrics"]["accuracy"]["value"] == 1.0
    return running.server.stats["requests"]


@pytest.mark.parametrize("stream", [False, True])
def test_every_request_is_signed_as_the_server_checks(stream: bool, rows: Path) -> None:
    assert run(rows, stream=stream) == 12


@pytest.mark.parametrize(
    ("key", "region", "fix"),
    [
        ("AKIDEXAMPLE:another", REGION, "AWS_SECRET_ACCESS_KEY"),
        ("AKIDOTHER:example", REGION, "AWS_ACCESS_KEY_ID"),
        ("AKIDEXAMPLE:example/secret+of-nobody", "us-east-1", "--model-arg region"),
    ],
    ids=["secret", "name", "region"],
)
def test_a_wrong_key_or_region_ends_the_run_with_its_fix(key: str, region: str, fix: str, rows: Path) -> None:
    with pytest.raises(snellen.SnellenError, match=fix):
        run(rows, key, region)


@pytest.mark.parametrize("ahead_s", [-900, 900])
def test_a_wrong_clock_is_told(ahead_s: int, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC) + timedelta(seconds=ahead_s)
    monkeypatch.setattr(auth, "get_current_datetime", lambda: now)
    with pytest.raises(snellen.SnellenError, match="clock is wrong"):
        run(rows)
