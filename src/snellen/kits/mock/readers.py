"""An entry and a request to what a simulated reader replies: how well it sees, then how it talks."""

from __future__ import annotations

import math
import random
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...core.errors import UsageError, did_you_mean
from .ask import Ask, Entry, find_mark
from .pictures import jpeg_quality, width_px

Options = Mapping[str, float]
HABITS = ("guess", "silent", "same", "wrong", "omit")
"""What a noisy reader may do with glyphs it does not see."""
ALPHABET = re.compile(r"all from ((?:\S )+\S)[.,]")


@dataclass(frozen=True, slots=True)
class View:
    """One request as a simulated reader meets it."""

    entry: Entry
    ask: Ask
    random: random.Random

    def scale(self) -> float:
        """Return by how much the first image was shrunk on its way here."""
        if not self.entry.width or not self.ask.images or self.ask.image_hashes == self.entry.images:
            return 1.0
        return (width_px(self.ask.images[0]) or self.entry.width) / self.entry.width

    def label(self, option: str) -> str:
        """Return the mark shown before an option, or the option itself."""
        return find_mark(self.ask.text, option) or option


@dataclass(frozen=True, slots=True)
class Reply:
    """What the reader says; `reasoning` goes into its own field of the response."""

    text: str
    reasoning: str | None = None


def logistic_chance(value: float, half: float, slope: float) -> float:
    """Return the chance of success at `value`: 0.5 at `half`, logistic in the logarithm of value."""
    return 1.0 / (1.0 + math.exp(-slope * math.log(value / half))) if value > 0 else 0.0


def chance_of(view: View, options: Options, glyph_px: float | None) -> float:
    """Return the chance to read a glyph of this height, given the options of `noisy`."""
    chance = options.get("accuracy", 1.0)
    if glyph_px is not None:
        chance *= logistic_chance(glyph_px * view.scale(), options.get("px50", 8.0), options.get("slope", 4.0))
    if "quality50" in options and view.ask.images:
        quality = jpeg_quality(view.ask.images[0])
        chance *= logistic_chance(quality, options["quality50"], options.get("quality_slope", 3.0))
    return chance


def _pick(view: View, chance: float) -> str:
    """Return the right answer with this chance, else a wrong one of the same kind."""
    entry = view.entry
    if view.random.random() < chance:
        return entry.answer
    wrong = [option for option in entry.options if option != entry.answer]
    return view.random.choice(wrong) if wrong else garble(entry.answer, 0.0, view.random)


def garble(text: str, chance: float, random_: random.Random) -> str:
    """Replace each letter, digit or ideograph by another of its kind, unless it is read (with `chance`)."""
    return "".join(char if not char.isalnum() or random_.random() < chance else _other(char, random_) for char in text)


def _other(char: str, random_: random.Random) -> str:
    letters = string.ascii_uppercase if char.isupper() else string.ascii_lowercase
    pool = string.digits if char.isdigit() else letters
    pool = pool if char.isascii() else "日月山川田木火水土金人口手目耳"
    return random_.choice([item for item in pool if item != char])


def see_perfect(view: View, options: Options) -> str:
    """Read everything."""
    return view.entry.answer


def see_noisy(view: View, options: Options) -> str:
    """Read each glyph with a known chance: by its height, its contrast, by JPEG quality, or by a flat accuracy."""
    entry = view.entry
    if not entry.lines or entry.options:
        return _pick(view, chance_of(view, options, entry.glyph_px))
    rows = [
        read_row(text, view, options, chance)
        for (text, _), chance in zip(entry.lines, _chances(view, options), strict=True)
    ]
    numbered = len(rows) > 1 and '"1: ' in view.ask.text
    return "\n".join(f"{number}: {row}" if numbered else row for number, row in enumerate(rows, 1))


def _chances(view: View, options: Options) -> list[float]:
    chances = [chance_of(view, options, height) for _, height in view.entry.lines]
    if "contrast50" not in options or not view.entry.contrasts:
        return chances
    slope = options.get("contrast_slope", 4.0)
    faint = [logistic_chance(contrast, options["contrast50"], slope) for contrast in view.entry.contrasts]
    return [chance * also for chance, also in zip(chances, faint, strict=True)]


def read_row(text: str, view: View, options: Options, chance: float) -> str:
    """Read a row. A glyph that is not seen is guessed among the alphabet where the question asks for a guess (guess=1),
    or becomes a `?` (silent=1), the first of the alphabet (same=1), another one and never the right one (wrong=1), or
    is left out (omit=1).
    """
    asked = "guess" if "best guess" in view.ask.text else "wrong"
    if next((habit for habit in HABITS if options.get(habit)), asked) == "wrong":
        return garble(text, chance, view.random)
    return "".join(
        char if not char.isalnum() or view.random.random() < chance else _unseen(char, view, options) for char in text
    )


def _unseen(char: str, view: View, options: Options) -> str:
    if options.get("silent") or options.get("omit"):
        return "?" if options.get("silent") else ""
    named = ALPHABET.search(view.ask.text)
    alphabet = named[1].split() if named else string.digits if char.isdigit() else string.ascii_uppercase
    return alphabet[0] if options.get("same") else view.random.choice(alphabet)


def see_lost_middle(view: View, options: Options) -> str:
    """Find the answer at the edges of a document, and less often in its middle."""
    edge, middle = options.get("edge", 0.95), options.get("middle", 0.4)
    position = view.entry.position if view.entry.position is not None else 0.5
    return _pick(view, edge - (edge - middle) * (1.0 - abs(2.0 * position - 1.0)))


def say_plain(answer: str, view: View, options: Options) -> Reply:
    """Reply with the mark of the option, or the answer."""
    return Reply(view.label(answer) if view.entry.options else answer)


VERBOSE = (
    "Let me look at the image carefully. After going through the details, I find that {answer}.",
    "Sure! Here is what I see in the picture.\n\n{answer}\n\nI hope this helps.",
    "**Answer:** {answer}\n\nExplanation: this follows from what is visible in the image.",
)


def say_verbose(answer: str, view: View, options: Options) -> Reply:
    """Wrap the answer in talk."""
    label = view.label(answer)
    named = f"the correct answer is ({label}) {answer}" if view.entry.options and label != answer else answer
    return Reply(view.random.choice(VERBOSE).format(answer=named))


def say_thinking(answer: str, view: View, options: Options) -> Reply:
    """Think first, weighing wrong options: in <think> tags, or with field=1 in `reasoning_content`."""
    shown = ", ".join(f"maybe {view.label(option)}" for option in view.entry.options) or "reading the picture"
    thought = f"Hmm, {shown}. Let me check again."
    plain = say_plain(answer, view, options).text
    if options.get("field"):
        return Reply(plain, thought)
    return Reply(f"<think>\n{thought}\n</think>\n\n{plain}")


def say_refusing(answer: str, view: View, options: Options) -> Reply:
    """Refuse, always or at a given `rate`."""
    if view.random.random() < options.get("rate", 1.0):
        return Reply("I'm sorry, but I can't assist with that request.")
    return say_plain(answer, view, options)


def say_off_format(answer: str, view: View, options: Options) -> Reply:
    """Answer in a form nobody asked for."""
    label = view.label(answer)
    forms = f"option {label.lower()}", f'{{"answer": "{label}"}}', f"\\boxed{{{label}}}"
    return Reply(view.random.choice((*forms, f"I would go with {answer}", f"> {label} <")))


Sight = Callable[[View, Options], str]
Style = Callable[[str, View, Options], Reply]

SIGHTS: dict[str, Sight] = {"perfect": see_perfect, "noisy": see_noisy, "lost-middle": see_lost_middle}
STYLES: dict[str, Style] = {"plain": say_plain, "verbose": say_verbose, "thinking": say_thinking}
STYLES |= {"refusing": say_refusing, "off-format": say_off_format}


@dataclass(frozen=True, slots=True)
class Reader:
    """How well it sees and how it talks; written `noisy:px50=8,slope=4+verbose`."""

    sight: Sight = see_perfect
    style: Style = say_plain
    sight_options: Options = field(default_factory=dict)
    style_options: Options = field(default_factory=dict)

    def reply(self, view: View) -> Reply:
        """Return this reader's reply."""
        return self.style(self.sight(view, self.sight_options), view, self.style_options)


def parse_reader(text: str) -> Reader:
    """Parse `SIGHT[:key=number,…][+STYLE[:key=number,…]]`; either part may stand alone."""
    reader = Reader()
    for part in text.split("+"):
        name, _, raw = part.partition(":")
        options = parse_numbers(raw, f"reader {name!r}")
        if name in SIGHTS:
            reader = Reader(SIGHTS[name], reader.style, options, reader.style_options)
        elif name in STYLES:
            reader = Reader(reader.sight, STYLES[name], reader.sight_options, options)
        else:
            known = [*SIGHTS, *STYLES]
            raise UsageError(f"unknown reader {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}")
    return reader


def parse_numbers(raw: str, where: str) -> dict[str, float]:
    """Parse `key=number,key=number`."""
    numbers: dict[str, float] = {}
    for item in filter(None, raw.split(",")):
        key, _, value = item.partition("=")
        try:
            numbers[key] = float(value)
        except ValueError:
            raise UsageError(f"{where}: {item!r} is not key=number") from None
    return numbers
