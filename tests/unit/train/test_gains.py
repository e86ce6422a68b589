"""What was gained, chain by chain, counted again by hand; and when a guard speaks."""

from __future__ import annotations

from pathlib import Path

import pytest

import snellen
from cure_fixtures import item, write_cure
from snellen.kits.train.before_after import HOLDS, OPEN, WORSE, Gain, find_gains, guard_gain
from snellen.store.reader import RunReader


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two blind rules on chains: their right and wrong answers differ."""
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    path = write_cure(tmp_path, [item(n, 2, right=n % 6) for n in range(12)])
    overrides = (("dataset.path", str(path)),)
    return tuple(
        snellen.run("cure", f"blind/{rule}", overrides=overrides, output_dir=tmp_path / rule).folder
        for rule in ("first", "shortest")
    )  # type: ignore[return-value]


def test_the_gains_are_those_of_a_plain_recount(runs: tuple[Path, Path]) -> None:
    counted = []
    for run in runs:
        chains: dict[str, dict[str, float]] = {}
        with RunReader(run) as reader:
            for score in reader.scores("cure"):
                name, _, part = score.key.sample.partition(".")
                chains.setdefault(name, {})[part] = score.value or 0.0
        h = [chain["h"] for chain in chains.values()]
        s = [float(all(value == 1 for part, value in chain.items() if part != "h")) for chain in chains.values()]
        both = sum(a * b for a, b in zip(h, s, strict=True))
        counted.append({"Rh": sum(h) / len(h), "Rcot": sum(s) / len(s), "Ro": both / len(h)})
    gains = {gain.figure: gain for gain in find_gains(*runs)}
    assert set(gains) == {"Rh", "Rcot", "Ro", "Cf", "Cb"}
    for figure in ("Rh", "Rcot", "Ro"):
        found = gains[figure]
        assert (found.before, found.after) == pytest.approx((counted[0][figure], counted[1][figure]))
        assert found.n == 12 and found.difference == pytest.approx(counted[1][figure] - counted[0][figure])
        low, high = found.ci95 or (0, 0)
        assert low <= (found.difference or 0) <= high


@pytest.mark.parametrize(
    ("interval", "verdict"), [((-0.2, -0.1), WORSE), ((-0.01, 0.05), HOLDS), ((-0.1, 0.05), OPEN), (None, OPEN)]
)
def test_a_guard_says_worse_only_where_the_interval_does(interval: tuple[float, float] | None, verdict: str) -> None:
    gain = Gain("t", "accuracy", 0.5, 0.5, 0.0, interval, 10)
    assert guard_gain(gain, 0.02).verdict == verdict


def test_of_an_error_less_is_better() -> None:
    assert guard_gain(Gain("t", "wer", 0.1, 0.4, 0.3, (0.2, 0.4), 10), 0.02).verdict == WORSE
