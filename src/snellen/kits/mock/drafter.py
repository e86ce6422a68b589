"""A drafting or checking prompt to what a simulated LLM writes: good, sloppy, malformed, or with an artefact."""

from __future__ import annotations

import json
import random
import re

from ...core.errors import UsageError, did_you_mean
from ...core.ids import rng

STYLES = ("good", "sloppy", "malformed", "artefact")
_FIELD = re.compile(r"^(Clue|Inference): (.*)$", re.MULTILINE)
_CASE = re.compile(r'"case": "([0-9a-f]+)"')
_STEP = re.compile(r"^\d+\. (.+\?) (.+)$", re.MULTILINE)
_VERDICTS = re.compile(r'"verdict": "([A-Z]+)"')
POOLS = (
    ("red", "blue", "green", "black", "white", "brown", "grey", "pink"),
    ("circle", "square", "arrow", "kettle", "ladder", "bottle", "wheel", "lamp"),
    ("left", "right", "top", "bottom", "middle", "corner"),
    ("sailor", "baker", "farmer", "painter", "doctor", "pilot", "singer", "miner"),
    ("waits", "works", "rests", "moves", "stays", "sells"),
)
"""Words of one kind: exchanging each for another of its kind makes a wrong answer nobody can tell from a right one."""


def check_style(style: str | None) -> str | None:
    """Refuse an unknown style by name."""
    if style is not None and style not in STYLES:
        raise UsageError(f"unknown drafter {style!r}{did_you_mean(style, STYLES)}; known: {', '.join(STYLES)}")
    return style


def draft_reply(prompt: str, style: str, seed: int) -> str | None:
    """Return the reply to a drafting or checking prompt, or None for any other one."""
    draw = rng(seed, style, prompt)
    case = _CASE.search(prompt)
    if case:
        return json.dumps({"case": case.group(1), "verdict": _verdict(prompt, style, draw)})
    fields = dict(_FIELD.findall(prompt))
    if len(fields) < 2:
        return None
    reply = _candidates(prompt, fields, style, draw) if "five wrong" in prompt else _chain(fields, style, draw)
    return _spoil(reply, style, draw, again="could not be used" in prompt)


def _verdict(prompt: str, style: str, draw: random.Random) -> str:
    words: list[str] = _VERDICTS.findall(prompt)
    return words[-1] if style == "sloppy" and draw.random() < 0.1 and len(words) > 1 else words[0]


def _chain(fields: dict[str, str], style: str, draw: random.Random) -> dict[str, object]:
    clue, inference = fields["Clue"], fields["Inference"]
    where = f"near the {draw.choice(POOLS[2])} edge"
    who = f"a {_kept(inference, POOLS[3], draw)} who {draw.choice(POOLS[4])} nearby"
    answers = {"What is in the marked region?": clue, "Where in the picture does this lie?": where}
    answers["Who could have put it there?"] = who
    steps = [{"question": question, "answer": answer} for question, answer in answers.items()]
    if style == "sloppy":
        roll = draw.random()
        steps = [] if roll < 0.08 else steps * 3 if roll < 0.16 else steps
    return {"steps": steps if draw.random() < 0.7 else [steps[0], steps[-1]] if steps else []}


def _kept(text: str, pool: tuple[str, ...], draw: random.Random) -> str:
    return next((word for word in text.split() if word in pool), draw.choice(pool))


def _candidates(prompt: str, fields: dict[str, str], style: str, draw: random.Random) -> dict[str, object]:
    answers = [answer for _, answer in _STEP.findall(prompt)]
    steps = [_wrong(answer, style, draw) for answer in answers]
    return {"steps": steps, "inference": _wrong(fields["Inference"], style, draw)}


def _wrong(answer: str, style: str, draw: random.Random) -> list[str]:
    """Return five texts in which every known word is drawn anew: right and wrong come from one and the same pool."""
    drawn = dict.fromkeys(_redrawn(answer, draw) for _ in range(60))
    texts = [text for text in drawn if text != answer][:5]
    if style == "sloppy" and draw.random() < 0.1:
        texts = [*texts[:3], texts[0].upper()]
    if style == "artefact" or (style == "sloppy" and draw.random() < 0.5):
        texts = [f"{text[:1].upper()}{text[1:]}." for text in texts]
    return texts


def _redrawn(answer: str, draw: random.Random) -> str:
    words = answer.split()
    pools = [next((pool for pool in POOLS if word in pool), None) for word in words]
    if not any(pools):
        return f"{answer} {draw.choice(POOLS[0])} {draw.choice(POOLS[1])}"
    return " ".join(draw.choice(pool) if pool else word for word, pool in zip(words, pools, strict=True))


def _spoil(reply: dict[str, object], style: str, draw: random.Random, *, again: bool) -> str:
    text = json.dumps(reply)
    if style == "sloppy":
        return f"Sure, here it is:\n```json\n{text}\n```\nTell me if you need more."
    if style == "malformed" and draw.random() < (0.3 if again else 0.6):
        half, renamed = text[: len(text) // 2], text.replace('"steps"', '"chain"')
        return draw.choice([half, "I cannot see the picture, sorry.", renamed, "{}"])
    return text
