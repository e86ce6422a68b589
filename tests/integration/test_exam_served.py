"""An exam over HTTP: the observer behind the server sees hashes, the exam sees replies, and 64 requests are in flight."""

from __future__ import annotations

from pathlib import Path

import snellen
from exam_observer import USUAL, Observer, without_packing
from exam_server import Ledger, serving


def test_a_served_observer_is_examined(tmp_path: Path) -> None:
    ledger, names = Ledger(), ("acuity", "orientation", "vernier", "images", "size", "junction", "count")
    with without_packing(), serving(Observer(), ledger, delay_s=0.2) as url:
        settings = {"base_url": url, "output_dir": tmp_path / "run", "told": ledger.tell, "cache": False}
        result = snellen.exam("openai/known", mode="quick", tests=names, **settings)
    found = result.exam["tests"]
    for name in names:
        assert found[name]["verdict"] == "measured", (name, found[name]["reason"])
        low, high = found[name]["ci95"]
        assert low * 0.85 <= USUAL[name] <= high * 1.15, (name, low, high)
    assert ledger.peak > 8, "the rounds of several tests are in flight together"
    assert result.exam["counts"]["failed"] == 0
    assert result.state.input_tokens == 300 * result.state.done
