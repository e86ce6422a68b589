"""What a load and a run both say of the same rows is the same: the headline, the right answers and the bill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import snellen
from emulator import emulator
from snellen.api.perf import LoadPlan, PerfReport, PerfSettings, run_perf
from snellen.cli.perf.command import print_report
from snellen.core.errors import ConfigError
from snellen.kits.mock.server import MockOptions

CARD = """
model = "anthropic/mock"
[prices]
input_per_million = 1000000.0
output_per_million = 2000000.0
cached_per_million = 100000.0
cache_write_per_million = 1250000.0
currency = "USD"
"""
READ = ["red dog", "blue dog", "one two"]
"""The server says `red dog` of every picture: word error rates 0, 0.5 and 1."""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    (tmp_path / "cards" / "models").mkdir(parents=True)
    (tmp_path / "cards" / "models" / "own.toml").write_text(CARD)
    return tmp_path / "cards"


def rows_of(tmp_path: Path, form: str) -> Path:
    PIL.Image.new("RGB", (200, 100)).save(tmp_path / "page.png")
    shared = {"question": "What is written here?", "images": ["page.png"], "form": form}
    more = {"options": ["red dog", "blue dog", "one two"]} if form == "choice" else {}
    rows = [{"id": str(n), "answer": answer, **shared, **more} for n, answer in enumerate(READ)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def settings_for(rows: Path, url: str, folder: str, **more: Any) -> snellen.RunSettings:
    same: dict[str, Any] = {"tasks": (str(rows),), "model": "anthropic/mock", "base_url": url, "prompt_cache": True}
    return snellen.RunSettings(**same, **more, output_dir=rows.parent / folder)


def both(rows: Path, plan: LoadPlan | None = None, **more: Any) -> tuple[dict[str, Any], PerfReport]:
    """Return the results of a run, and the report of a load of the same rows on a server that starts anew."""
    options = MockOptions(dialect="anthropic", answer="red dog")
    with emulator(options) as server:
        results = snellen.run(
            settings_for(rows, server.base_url, "run", **{"cache": False, "max_workers": 1} | more)
        ).results
    level = plan or LoadPlan(concurrency=1, warmup=0)
    with emulator(options) as server:
        run = settings_for(rows, server.base_url, "load", stream=False, **more)
        return results, run_perf(PerfSettings(run=run, levels=(level,), draw=False))


def test_an_error_rate_is_no_accuracy(tmp_path: Path, cards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, report = both(rows_of(tmp_path, "ocr"), catalogs=(cards,))
    metric = results["tasks"]["rows"]["headline"]
    value = report.levels[0]["value"]
    assert value[metric] == results["tasks"]["rows"]["metrics"][metric]["value"] == 0.5
    assert metric == "wer"
    assert "accuracy" not in value
    assert value["right answers"] is results["cost"]["right_answers"] is None
    print_report(report, as_json=False)
    assert "wer 50.0 %" in capsys.readouterr().out


def test_cached_tokens_have_their_own_price_in_both(tmp_path: Path, cards: Path) -> None:
    results, report = both(rows_of(tmp_path, "choice"), catalogs=(cards,))
    value = report.levels[0]["value"]
    assert results["cost"]["cached_tokens"] > 0
    assert value["cost"] == pytest.approx(results["cost"]["value"])
    assert (value["currency"], value["accuracy"]) == ("USD", pytest.approx(1 / 3))
    assert value["right answers"] == results["cost"]["right_answers"] == 1.0
    assert value["right answers per USD"] == pytest.approx(1 / results["cost"]["per_right_answer"])
    stored = json.loads((tmp_path / "load" / "results.json").read_text())
    del stored["cost"]["prices"], results["cost"]["prices"]
    assert stored["cost"] == results["cost"], "the folder of a load is a run like any other"


def test_rows_that_are_asked_again_are_right_and_paid_again(tmp_path: Path, cards: Path) -> None:
    _, report = both(rows_of(tmp_path, "choice"), LoadPlan(concurrency=1, count=9, warmup=0), catalogs=(cards,))
    value = report.levels[0]["value"]
    stored = json.loads((tmp_path / "load" / "results.json").read_text())
    assert value["right answers"] == 3.0
    assert value["cost"] > 1.5 * stored["cost"]["value"], "later rounds are read from the server's cache"


def test_a_price_of_the_command_is_that_of_both(tmp_path: Path, cards: Path) -> None:
    results, report = both(rows_of(tmp_path, "choice"), catalogs=(cards,), price="1000000,2000000,0")
    value = report.levels[0]["value"]
    assert value["cost"] == pytest.approx(results["cost"]["value"])
    assert value["right answers per unit of money"] == pytest.approx(1 / value["cost"])


def test_a_card_with_half_a_price_is_refused_by_both(tmp_path: Path, cards: Path) -> None:
    card = cards / "models" / "own.toml"
    card.write_text(card.read_text().replace("output_per_million = 2000000.0\n", ""))
    rows = rows_of(tmp_path, "choice")
    run = settings_for(rows, "http://127.0.0.1:9", "out", catalogs=(cards,))
    with pytest.raises(ConfigError, match="output_per_million"):
        snellen.run(run)
    with pytest.raises(ConfigError, match="output_per_million"):
        run_perf(PerfSettings(run=run, levels=(LoadPlan(concurrency=1),), draw=False))
