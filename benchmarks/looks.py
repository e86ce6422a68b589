"""Do figures of looking again hold the truth? Simulated agents that use 0, 50 and 100 % of their crops.

Run: python benchmarks/looks.py [agents a cell, 2000] [questions, 200]
Replies that are always alike (greedy), drawn once, and drawn three times; the truth is known by construction.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from look_agents import try_agents

LEAST_COVERED, MOST_FALSE, NOISE = 0.93, 0.05, 1.65
"""A rate of false alarms passes where it does not lie above 5 % beyond what so many agents can tell."""


def main() -> int:
    agents, questions = (int(text) for text in (*sys.argv[1:3], *("2000", "200")[len(sys.argv[1:3]) :]))
    failed = False
    print(f"{agents} agents a cell, {questions} questions each\n")
    for repeats, greedy in ((1, True), (1, False), (3, False)):
        for use in (0.0, 0.5, 1.0):
            for one in try_agents(use, agents, questions, repeats, greedy=greedy):
                kind = "greedy" if greedy else f"drawn x {repeats}"
                words = (
                    f"{kind:9} use {use:3.0%} {one.name:15} covered {one.covered:6.1%}  half width {one.half_width:.3f}"
                )
                if one.name == "reliance" and use == 0.0:
                    print(
                        f"{kind:9} use {use:3.0%} reliance        told of {one.told} agents: nothing could be relied on"
                    )
                    continue
                most = MOST_FALSE + NOISE * (MOST_FALSE * (1 - MOST_FALSE) / agents) ** 0.5
                passes = one.covered >= LEAST_COVERED and (use > 0.0 or one.called_an_effect <= most)
                failed |= not passes
                false = f"  called an effect {one.called_an_effect:.1%}" if use == 0.0 else ""
                print(f"{words}{false}  {'PASS' if passes else 'FAIL'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
