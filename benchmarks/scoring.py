"""How fast replies are read and scored, and how patterns bear hostile text. Prints one line per bar.

Times are processor time, so that other work on the machine does not count.

Run: python benchmarks/scoring.py [extraction] [aggregation] [outside]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aggregation import bench_aggregation
from outside_records import bench_outside

from snellen.core.ids import rng
from snellen.core.types import Form, Prediction, Request, Sample, TrialKey
from snellen.extract.choice import extract_choice
from snellen.scoring.scorers.option_choice import score

OPTIONS = {"A": "a cat", "B": "a dog", "C": "a rabbit", "D": "a horse"}
TERSE = ["{}", "{}.", "({})", "Answer: {}", "The answer is {}.", "{}. {t}", "**{}**", "{t}"]
SENTENCES = [
    "Looking at the ears and the snout in the picture, the correct answer is {}.",
    "The animal has a long tail and short fur, and it stands next to a fence. Therefore, the answer is ({}).",
    "I think it is {t}, because of the shape of its head.",
    "Option A can be excluded at once, and so can two others, which leaves the best choice: **{}**",
    "<think>Is it A? Or D? The legs tell.</think>\n\nAnswer: {}",
    "Based on the image, I would choose {} since no other option fits what is shown here.",
    '{{"reasoning": "the fur is short", "answer": "{}"}}',
    "正确答案是{}，因为图中的动物耳朵很长。",
    "After considering every option, {} fits best.",
]
FILLER = (
    "Let me look at the picture in detail before I decide. The animal stands on the grass, its fur is short and its tail is curved. "
    "In the background there is a wooden fence, and the light comes from the left, so the shadow falls to the right of the body. "
    "Option A would need whiskers, option C would need long ears, and option D would be far larger than the fence. "
)
ENDINGS = [
    "\n\nTherefore, the correct answer is {}.",
    "\n\n**Answer: {}**",
    "\n\nHence {}.",
    "\n\n{}",
    "\n\nSo the best choice is ({}) {t}.",
]
HOSTILE = [
    "the answer is " * 3600,
    "A or B, " * 6200,
    "A " * 25000,
    "(" * 50000,
    "(A)" * 16600,
    "answer" * 8300,
    "<think>" * 7100,
    "\\boxed{" * 7100,
    "{" * 50000,
    '"answer": ' * 5000,
    "not " * 12500,
    " " * 50000,
    "\n" * 50000,
    "A\n" * 25000,
    "**" * 25000,
    "is is is " * 5500,
    "1," * 25000,
    "one hundred " * 4100,
    "a dog " * 8300,
    "wait, " * 8300,
    "选" * 50000,
    "答案是" * 16000,
    "A. x\n" * 10000,
    "cannot be " * 5000,
    "~~" * 25000,
    "<b " * 16000,
    "'answer': '" * 4500,
    "the answer is not A, " * 2380,
    "option " * 7100,
    "none of the " * 4100,
    "e" * 50000,
    "\u0410 " * 25000,
    "\uff21" * 50000,
    "1.1.1." * 8000,
    "x 10^" * 10000,
]


def _bar(name: str, figure: float, least: float, unit: str) -> None:
    print(f"{'PASS' if figure >= least else 'FAIL'}  {name}: {figure:,.0f} {unit} (bar {least:,.0f})")


def _rate(call: Callable[[Any], object], replies: Sequence[Any], rounds: int = 4) -> float:
    """The best of several rounds: on a shared machine noise only ever slows down."""
    return max(_one_rate(call, replies) for _ in range(rounds))


def _one_rate(call: Callable[[Any], object], replies: Sequence[Any], seconds: float = 0.5) -> float:
    done, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        for reply in replies:
            call(reply)
        done += len(replies)
    return done / (time.process_time() - start)


def _filled(shapes: Iterable[str]) -> list[str]:
    return [shape.format(letter, t=text) for shape in shapes for letter, text in OPTIONS.items()]


def short_replies() -> list[str]:
    """Half terse, half sentences, all of at most 200 characters, in a fixed shuffled order."""
    terse, sentences = _filled(TERSE), _filled(SENTENCES)
    replies = terse + sentences[: len(terse)]
    rng("benchmark", "scoring").shuffle(replies)
    return [reply for reply in replies if len(reply) <= 200]


def long_replies() -> list[str]:
    """Replies of 2 kB: reasoning that names the options, with the answer at the end, and some with the answer only at the start."""
    fill = (FILLER * 8)[:1950]
    return [fill + ending for ending in _filled(ENDINGS)] + [
        start + fill for start in _filled(["The correct answer is {}.\n\n"])
    ]


KEY = TrialKey("bench", "s")
TEXTS = tuple(OPTIONS.values())
SAMPLE = Sample("s", "bench", Form.CHOICE, "Which animal?", options=TEXTS, answers=(TEXTS[1],))
REQUEST = Request(KEY, (), marks=tuple(OPTIONS), shown=TEXTS)


def _scored(prediction: Prediction) -> object:
    return score(SAMPLE, REQUEST, prediction, {})


def _predictions(replies: list[str]) -> list[Prediction]:
    return [Prediction(KEY, text=reply) for reply in replies]


def bench_extraction() -> None:
    """Print the rates of reading and scoring, and the worst of 35 hostile texts of 50 kB."""
    short, long = short_replies(), long_replies()
    _bar("short replies read", _rate(lambda reply: extract_choice(reply, OPTIONS), short), 60_000, "replies/s")
    _bar(
        "  sentences only",
        _rate(lambda reply: extract_choice(reply, OPTIONS), [r for r in short if len(r) > 40]),
        20_000,
        "replies/s",
    )
    _bar("short replies read and scored", _rate(_scored, _predictions(short)), 60_000, "replies/s")
    _bar("2 kB replies read and scored", _rate(_scored, _predictions(long)), 15_000, "replies/s")
    worst = 0.0
    for text in HOSTILE:
        start = time.process_time()
        extract_choice(text, OPTIONS)
        taken = (time.process_time() - start) * 1000
        if taken > worst:
            worst, name = taken, text[:20]
    print(f"{'PASS' if worst <= 100 else 'FAIL'}  hostile 50 kB: worst {worst:.1f} ms on {name!r} (bar 100)")


PARTS = {"extraction": bench_extraction, "aggregation": bench_aggregation, "outside": bench_outside}

if __name__ == "__main__":
    for part in sys.argv[1:]:
        PARTS[part]()
    if not sys.argv[1:]:  # each in a process of its own: peak memory is that of the part, not of those before it
        sys.exit(max(subprocess.run([sys.executable, __file__, part], check=False).returncode for part in PARTS))
