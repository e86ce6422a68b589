"""A scorer of one's own: naming the right colour earns 1, naming another one as well a half.

snellen run examples/colours/questions.jsonl --model blind/first --name colours
snellen score runs/colours --plugin examples/my_scorer.py
"""

import re

from snellen import Score

COLOURS = {"red", "green", "blue", "yellow", "orange", "purple", "black", "white"}


def colour_named(sample, request, prediction, options):
    """Return one score; a reply that names no colour has no value, and a reason."""
    shown = dict(zip(request.marks, request.shown, strict=False))  # what stood before which text: A -> red
    words = re.findall(r"\w+", prediction.text)
    named = {shown.get(word, word).lower() for word in words} & COLOURS
    if not named:
        return [Score(prediction.key, "colour_named", None, reason="unparsed")]
    right = named & {answer.lower() for answer in sample.answers}
    return [Score(prediction.key, "colour_named", 0.0 if not right else 1.0 / min(len(named), 2))]


def register(registry):
    """Add the scorer under its name."""
    registry.add("scorer", "colour_named", colour_named)
