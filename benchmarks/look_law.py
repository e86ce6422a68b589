"""The law of looking again: with a zoom by K the embedded reader reads rows K times smaller, and false crops change nothing.

Run: python benchmarks/look_law.py [rows a level, 40] [K …, 1 2 4]   (extra `reader`; ten minutes of one processor)
Rows of five letters on pages of 3,584 px, seen at 896 (examples/look_agent.py). A threshold is the height in source px at
which half of the rows are read without an error; threshold x K is the same for all K, as far as pixels are native.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import numpy as np
from look_agent import PAGE, SEEN, draw_rows

import snellen
from snellen.stats.psychometric import Rows, fit_threshold
from snellen.store.reader import RunReader

AGENT = Path(__file__).resolve().parents[1] / "examples" / "look_agent.py"
SEEN_PX = (6.5, 8.0, 9.5, 11.0, 13.0, 16.0)
"""Heights of letters as the reader sees them."""
NEAR, FAR = 0.15, 0.35
SAME = ("plain", "none", "grey", "elsewhere")


def threshold(folder: Path, power: float, rows: int) -> tuple[float, tuple[float, float]]:
    """Return the height of letters at which half of the rows are read, and its 95 % interval, in source px."""
    heights = [seen * PAGE / SEEN / power for seen in SEEN_PX]
    data = draw_rows(folder / f"rows-{power:g}", heights, rows, seed=int(power))
    told = {
        "plugins": (str(AGENT),),
        "tools": ("zoom",),
        "output_dir": folder / f"k{power:g}",
    }
    run = snellen.run(str(data), f"looker/{power:g}", **told)
    groups = run.results["tasks"]["rows"]["groups"]["height"]
    found = sorted((float(height), one["accuracy"]["value"]) for height, one in groups.items())
    x, share = (np.array(column) for column in zip(*found, strict=True))
    print(f"  K {power:g}: " + ", ".join(f"{height:.1f} px {value:.0%}" for height, value in found))
    ones = np.ones_like(x)
    fit = fit_threshold(Rows(np.log(x), rows * ones, np.round(share * rows), 0.0 * ones, ones))
    assert fit is not None
    return float(np.exp(fit.value)), tuple(float(np.exp(end)) for end in fit.interval)


def false_crops(folder: Path, rows: int) -> bool:
    """Tell whether every reply with false crops, and with none, is the plain one."""
    data = draw_rows(folder / "rows-false", [24.0, 40.0], rows // 2, seed=9)
    told = {"plugins": (str(AGENT),), "tools": ("zoom",), "output_dir": folder / "false"}
    run = snellen.run(str(data), "looker/4", tool_arms=("base", *SAME), **told)
    replies: dict[str, list[str]] = {}
    with RunReader(run.folder) as reader:
        for trial in reader.trials("rows"):
            replies.setdefault(trial.prediction.key.variant, []).append(trial.prediction.text or "")
    plain = replies["look=plain"]
    same = {arm: sum(one == other for one, other in zip(replies[f"look={arm}"], plain, strict=True)) for arm in SAME}
    print(f"replies equal to the plain ones, of {len(plain)}: " + ", ".join(f"{arm} {n}" for arm, n in same.items()))
    return all(count == len(plain) for count in same.values())


def main() -> int:
    rows = int((sys.argv[1:] or ["40"])[0])
    powers = [float(text) for text in sys.argv[2:]] or [1.0, 2.0, 4.0]
    passed = True
    with tempfile.TemporaryDirectory() as name:
        found = {power: threshold(Path(name), power, rows) for power in powers}
        first = found[powers[0]][0] * powers[0]
        for power, (value, (low, high)) in found.items():
            off = value * power / first - 1.0
            holds = abs(off) <= (NEAR if power <= 4 else FAR)
            passed &= holds
            ends = f"[{low * power:.1f} - {high * power:.1f}]"
            print(
                f"K {power:g}: threshold {value:.1f} px, x K {value * power:.1f} {ends} ({off:+.1%})  {'PASS' if holds else 'FAIL'}"
            )
        same = false_crops(Path(name), rows)
        print(f"grey, none and elsewhere equal plain  {'PASS' if same else 'FAIL'}")
    return int(not (passed and same))


if __name__ == "__main__":
    sys.exit(main())
