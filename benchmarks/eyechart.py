"""Is the eye chart's number right? Readers of known acuity, by the real prompt, reply and score: `python benchmarks/eyechart.py [seeds] [part of a name]`

Charts are made as a run makes them, but not drawn; each reader of the mock server answers the prompt, the scorer reads
its reply, the aggregate estimates. PASS: the median bias is within 2 %, and the share of 95 % intervals that hold the
truth lies in 93-97 %, or no further from it than 1.96 binomial errors of that share.
"""

from __future__ import annotations

import math
import sys
import time
from statistics import median

from snellen.core.ids import derive_seed, rng
from snellen.core.types import Form, Prediction, Sample, Score, TrialKey
from snellen.data.catalog import Catalog
from snellen.data.loaders.eyechart import ChartSource, Condition, alphabet_of, chance_of, chart_question, make_chart
from snellen.kits.mock.ask import Ask, Body, entry_of
from snellen.kits.mock.readers import View, parse_reader
from snellen.prompt.build import Prompter
from snellen.scoring.aggregates.acuity import score, threshold

SEEDS, CHARTS = 400, 3
LEAST, MOST, MOST_BIAS = 0.93, 0.97, 0.02
SCRIPTS = ("letters", "digits")
"""Those that set the acuity."""
READERS = {
    **{f"guesses, half at {px} px": (f"noisy:px50={px}", float(px)) for px in (4, 6, 8, 10)},
    **{f"silent (?), half at {px} px": (f"noisy:px50={px},silent=1", float(px)) for px in (4, 6, 8, 10)},
    **{f"same letter, half at {px} px": (f"noisy:px50={px},same=1", float(px)) for px in (4, 6, 8, 10)},
    "guesses, contrast 0.1": ("noisy:px50=0.5,slope=8,contrast50=0.1", 0.1),
    "silent (?), contrast 0.1": ("noisy:px50=0.5,slope=8,contrast50=0.1,silent=1", 0.1),
}
STRESS = {
    **{f"never by luck, half at {px} px": (f"noisy:px50={px},wrong=1", float(px)) for px in (4, 6, 8, 10)},
    **{f"leaves out, half at {px} px": (f"noisy:px50={px},omit=1", float(px)) for px in (4, 8)},
    **{f"guesses, slope 8, {px} px": (f"noisy:px50={px},slope=8", float(px)) for px in (4, 8)},
}
"""Printed, and not part of the verdict: who gets unseen glyphs wrong on purpose cannot be told from a guesser where
few rows lie below the threshold."""
BLIND = {
    "only guesses": "noisy:accuracy=0",
    "only ?": "noisy:accuracy=0,silent=1",
    "only one letter": "noisy:accuracy=0,same=1",
    "every glyph wrong": "noisy:accuracy=0,wrong=1",
}


class Bench:
    """The task as it is run, without pictures."""

    def __init__(self) -> None:
        self.task = Catalog().task("eyechart")
        self.source = ChartSource("eyechart")
        self.prompter = Prompter(self.task, Catalog().prompt(self.task), seed=0)

    def samples(self, conditions: list[Condition], seed: int) -> list[Sample]:
        """Return the charts of a run with this seed."""
        found = []
        for index in range(CHARTS):
            for condition in conditions:
                made = make_chart(self.source, condition, derive_seed(seed, "eyechart", condition.name, index))
                lines = [
                    {"text": line.text, "height_px": line.height_px, "contrast": line.contrast} for line in made.lines
                ]
                meta = {"lines": lines, "alphabet": alphabet_of(made.script), "chance": chance_of(made.script)}
                tags = {"axis": condition.axis, "level": condition.level, "script": condition.script}
                name = f"{condition.name}-{index:03d}"
                question, answer = chart_question(made), "\n".join(line.text for line in made.lines)
                found.append(Sample(name, "eyechart", Form.OCR, question, (), (), (answer,), tags=tags, meta=meta))
        return found

    def read(self, reader: str, sample: Sample, seed: int) -> Score:
        """Return the score of a reader's reply to the prompt of a sample."""
        request = self.prompter.build(sample, "base", 0)
        text = request.messages[-1].text
        ask = Ask(Body(), True, text, text, (), ())
        reply = parse_reader(reader).reply(View(entry_of(sample), ask, rng(seed, sample.id, reader)))
        key = TrialKey("eyechart", sample.id)
        return score(sample, request, Prediction(key, text=reply.text, finish="stop"), {})[0]


def bench_reader(bench: Bench, name: str, seeds: int) -> bool:
    """Print how often the interval holds the truth, and the bias."""
    reader, truth = (READERS | STRESS)[name]
    faint = "contrast50" in reader
    conditions = [Condition("contrast", 0.0, "letters")] if faint else [Condition("base", 0.0, s) for s in SCRIPTS]
    inside, errors, widths, missing = 0, [], [], 0
    for seed in range(seeds):
        pairs = [(sample, bench.read(reader, sample, seed)) for sample in bench.samples(conditions, seed)]
        found = threshold(pairs, column=int(faint))
        if found.value is None or found.ci95 is None:
            missing += 1
            continue
        inside += found.ci95[0] <= truth <= found.ci95[1]
        errors.append(math.log(found.value / truth))
        widths.append(math.log(found.ci95[1] / found.ci95[0]) / 2)
    share = inside / max(1, len(errors))
    error = math.sqrt(0.95 * 0.05 / max(1, len(errors)))
    bias = math.exp(median(errors)) - 1 if errors else math.nan
    covered = LEAST - 1.96 * error <= share <= MOST + 1.96 * error
    good = covered and abs(bias) <= MOST_BIAS and not missing
    print(
        f"{'PASS' if good else 'FAIL'} {name:30} {len(errors):5} {share:8.1%} ± {1.96 * error:4.1%} {bias:+8.1%} "
        f"{median(widths) if widths else math.nan:8.3f} {missing:6}",
        flush=True,
    )
    return good


def bench_blind(bench: Bench, name: str, seeds: int) -> bool:
    """Print what a reader reads that sees nothing: 0 within its error, and never an acuity."""
    reader, values, found = BLIND[name], [], 0
    for seed in range(seeds):
        pairs = [
            (sample, bench.read(reader, sample, seed))
            for sample in bench.samples([Condition("base", 0.0, script) for script in SCRIPTS], seed)
        ]
        values.append(sum(item.value or 0.0 for _, item in pairs) / len(pairs))
        found += threshold(pairs).value is not None
    mean = sum(values) / len(values)
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1) / len(values))
    good = abs(mean) <= max(0.002, 2.5 * error) and found <= len(values) / 200
    print(
        f"{'PASS' if good else 'FAIL'} {name:30} {len(values):5} read {mean:+.4f} ± {1.96 * error:.4f}, acuity given {found} times",
        flush=True,
    )
    return good


def main(seeds: int, part: str) -> int:
    """Print the tables; 1 where a line fails."""
    bench, started, good = Bench(), time.monotonic(), True
    print(f"{'':4} {'reader':30} {'seeds':>5} {'truth inside 95 %':>16} {'bias':>8} {'ln half':>8} {'no value':>6}")
    for name in READERS:
        good &= part not in name or bench_reader(bench, name, seeds)
    print("readers that see nothing")
    for name in BLIND:
        good &= part not in name or bench_blind(bench, name, max(40, seeds // 4))
    print("beyond the promise")
    for name in STRESS:
        if part in name:
            bench_reader(bench, name, max(40, seeds // 4))
    print(f"{'PASS' if good else 'FAIL'} in {time.monotonic() - started:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS, sys.argv[2] if len(sys.argv) > 2 else ""))
