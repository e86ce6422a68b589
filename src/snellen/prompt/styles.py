"""What is said, turn by turn, to the one string a local model was trained to read; a style is data (catalog/styles)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from ..core.config import convert, read_config_file
from ..core.errors import ConfigError, did_you_mean
from ..core.types import Image, Turn, Video
from .template import FIELD


class Speech(Struct, frozen=True, gc=False):
    """All that is said in one trial, before it is given a form."""

    query: str
    """The question with its options."""
    question: str = ""
    """The question alone."""
    instruction: str = ""
    history: tuple[Turn, ...] = ()
    system: str = ""
    prefix: str = ""
    images: tuple[Image, ...] = ()
    """Those that stand first."""
    placed: tuple[Image | Video, ...] = ()
    """Those that stand inside the texts, where these have tokens (`place.py`)."""
    examples: int = 0
    """So many turns of the history are other samples: the pictures of this one stand after them."""


class Style(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation as one string. Formats name {role} {text} {system} {instruction} {prefix} {round} only."""

    roles: tuple[str, str] = ("Question", "Answer")
    user: str = "{role}: {text}"
    assistant: str = "{role}: {text}"
    ends: tuple[str, str] = (" ", "\n")
    """What follows the turns at even and at odd numbers."""
    last: str = "{role}: {prefix}"
    last_bare: str = "{role}:"
    """The same without a prefix."""
    system: str = ""
    opening: str = "{system}"
    """How the system text begins the string; left out when there is none."""
    first_user: str = ""
    """The first user turn, where it differs."""
    later_user: str = ""
    """What stands before every user turn but the first."""
    instruction: str = ""
    """Where the instruction has a place of its own; empty: before the first user turn, with a space."""
    image_tag: str = ""
    """Before the first user text."""
    turns: tuple[tuple[str, str], ...] = ()
    """Turns that always come first, as (role, text)."""
    takes_prefix: bool = True
    shows_options: bool = True

    def speak(self, speech: Speech) -> str:
        """Return the string."""
        turns = self._turns(speech)
        pieces = [_fill(self.opening, system=speech.system or self.system) if speech.system or self.system else ""]
        if self.instruction and speech.instruction:
            pieces.append(_fill(self.instruction, instruction=speech.instruction))
        first = len(self.turns)
        for number, turn in enumerate(turns):
            pieces.append(self._turn(turn, number, number == first, speech) + self.ends[number % 2])
        tail = self.last if speech.prefix and self.takes_prefix else self.last_bare
        pieces.append(_fill(tail, role=self.roles[1], prefix=speech.prefix))
        return "".join(pieces)

    def _turns(self, speech: Speech) -> list[Turn]:
        spoken = [*speech.history, Turn("user", speech.query)]
        lead = f"{speech.instruction} " if speech.instruction and not self.instruction else ""
        spoken[0] = Turn("user", f"{self.image_tag}{lead}{spoken[0].text}")
        return [*(Turn(role, text) for role, text in self.turns), *spoken]

    def _turn(self, turn: Turn, number: int, first: bool, speech: Speech) -> str:
        user = turn.role not in ("assistant", self.roles[1])
        form = self.assistant if not user else self.first_user if first and self.first_user else self.user
        before = self.later_user if user and not first else ""
        system = speech.system or self.system
        role = self.roles[0 if user else 1]
        return before + _fill(form, role=role, text=turn.text, system=system, round=str(number // 2 + 1))


def chat(speech: Speech) -> tuple[Turn, ...]:
    """Return messages with roles, pictures with the first thing the user says of this sample."""
    spoken = [*speech.history, Turn("user", speech.query)]
    if speech.instruction:
        spoken[0] = Turn("user", f"{speech.instruction} {spoken[0].text}", spoken[0].images)
    if speech.images:
        own = spoken[speech.examples]
        spoken[speech.examples] = Turn("user", own.text, (*speech.images, *own.images))
    return (*((Turn("system", speech.system),) if speech.system else ()), *spoken)


@lru_cache(maxsize=64)
def load_style(name: str, folders: tuple[str, ...] = ()) -> Style:
    """Return a style by name from the catalog (or from further folders), or from a TOML file."""
    if name.endswith(".toml"):
        return convert(read_config_file(name), Style, f"style {name!r}")
    roots: Sequence[Path] = [Path(str(files("snellen") / "catalog")), *map(Path, folders)]
    known = {path.stem: path for root in roots for path in sorted((root / "styles").glob("*.toml"))}
    if name not in known:
        raise ConfigError(f"no dialogue style {name!r}{did_you_mean(name, known)}; known: chat, {', '.join(known)}")
    return convert(read_config_file(known[name]), Style, f"style {name!r}")


def _fill(form: str, **fields: str) -> str:
    return FIELD.sub(lambda match: fields[match[1]] if match[1] in fields else match[0], form)
