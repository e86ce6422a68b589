"""The scripted agent through the whole loop: its zoom reads what the reader alone cannot, false crops change nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import snellen
from extras import needs
from snellen.store.reader import RunReader

needs("rapidocr")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FALSE = ("plain", "none", "grey", "elsewhere")


def test_a_zoom_by_four_reads_small_rows_and_false_crops_leave_the_plain_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from look_agent import draw_rows

    data = draw_rows(tmp_path / "rows", [20.0, 72.0], 1)
    told = {"plugins": (str(EXAMPLES / "look_agent.py"),), "tools": ("zoom",), "output_dir": tmp_path / "run"}
    run = snellen.run(str(data), "looker/4", tool_arms=("base", *FALSE), **told)
    with RunReader(run.folder) as reader:
        replies = {
            (one.prediction.key.variant, one.sample.id): one.prediction.text == one.sample.answers[0]
            for one in reader.trials("rows")
        }
        texts = {one.prediction.key: one.prediction.text for one in reader.trials("rows")}
    assert replies["base", "h20-00"] and not replies["look=plain", "h20-00"]
    assert replies["base", "h72-00"] and replies["look=plain", "h72-00"]
    plain = {key.sample: text for key, text in texts.items() if key.variant == "look=plain"}
    false = {key: text for key, text in texts.items() if key.variant != "base"}
    assert all(text == plain[key.sample] for key, text in false.items()) and len(false) == 8
    looks = run.results["tasks"]["rows"]["looks"]
    assert looks["questions"] == {"repaired": 1, "right-anyway": 1}
    assert looks["effects"]["picture_effect"]["value"] == 0.5 and looks["effects"]["misled"]["value"] == 0.0
    assert looks["aim"]["holds_half"]["value"] == 1.0
    sys.modules.pop("look_agent", None)
