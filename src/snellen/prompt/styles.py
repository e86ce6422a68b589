"""What is said, turn by turn, to the one string a local model was trained to read.

By a style (catalog/styles) or by a meta template of roles and rounds; both are plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

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


def forget_style_files() -> None:
    """Let a plan read files of styles anew; within a run they stay as its plan read them."""
    load_style.cache_clear()
    load_meta_template.cache_clear()


def _fill(form: str, **fields: str) -> str:
    return FIELD.sub(lambda match: fields[match[1]] if match[1] in fields else match[0], form)


API_ROLES = {"HUMAN": "user", "BOT": "assistant", "SYSTEM": "system"}


class Role(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One speaker of a round: what stands around the words, and where generation begins."""

    role: str
    begin: str = ""
    end: str = ""
    prompt: str = ""
    api_role: str = ""
    generate: bool = False


class MetaTemplate(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How rounds are wrapped for one model."""

    round: tuple[Role, ...] = (Role("HUMAN"), Role("BOT", generate=True))
    reserved_roles: tuple[Role, ...] = (Role("SYSTEM"),)
    begin: str = ""
    end: str = ""


class Line(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of a prompt template: who says what; `fallback_role` speaks if the model knows no such role."""

    role: str
    prompt: str = ""
    fallback_role: str = ""


def read_meta_template(table: Mapping[str, Any]) -> MetaTemplate:
    """Check a meta template given as plain data; roles must be unique."""
    template = convert(dict(table), MetaTemplate, "meta template")
    names = [role.role for role in (*template.round, *template.reserved_roles)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"meta template: role {name!r} is given twice")
    return template


def to_text(template: MetaTemplate, lines: Sequence[Line]) -> str:
    """Return one string that ends where the model goes on; without such a role it ends with the template's `end`."""
    said = _speakers(template, lines)
    last = _last_round(template, said)
    goes_on = next((role for role, _ in said[last:] if role.generate), None)
    kept = said[: last + [role for role, _ in said[last:]].index(goes_on)] if goes_on else said
    goes_on = goes_on or next((role for role in template.round if role.generate), None)
    text = template.begin + "".join(role.begin + words + role.end for role, words in kept)
    return text + (goes_on.begin if goes_on else template.end)


@lru_cache(maxsize=16)
def load_meta_template(path: str) -> MetaTemplate:
    """Read a meta template from a TOML or JSON file."""
    return read_meta_template(read_config_file(path))


def speak_by_meta(template: MetaTemplate, speech: Speech) -> str:
    """Return a whole trial as one string."""
    names = {role: name for name, role in API_ROLES.items()}
    turns = chat(speech)
    lines = [Line(names.get(turn.role, turn.role), turn.text) for turn in turns]
    return to_text(template, lines) + speech.prefix


def _speakers(template: MetaTemplate, lines: Sequence[Line]) -> list[tuple[Role, str]]:
    known = {role.role: role for role in (*template.round, *template.reserved_roles)}
    said = []
    for line in lines:
        role = known.get(line.role) or known.get(line.fallback_role)
        if role is None:
            raise ConfigError(
                f"the meta template knows no role {line.role!r}{did_you_mean(line.role, known)} and no fallback"
            )
        said.append((role, line.prompt or role.prompt))
    return said


def _last_round(template: MetaTemplate, said: Sequence[tuple[Role, str]]) -> int:
    """Return where the last round begins: where the order of roles starts again."""
    order = {role.role: rank for rank, role in enumerate(template.round)}
    ranks = [order.get(role.role, -1) for role, _ in said]
    starts = [index for index in range(1, len(ranks)) if 0 <= ranks[index] <= ranks[index - 1]]
    return starts[-1] if starts else 0
