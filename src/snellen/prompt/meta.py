"""A dialogue in roles and rounds to one string, by a meta template that is plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from ..core.config import convert, read_config_file
from ..core.errors import ConfigError, did_you_mean
from .styles import Speech, chat

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


def speak(template: MetaTemplate, speech: Speech) -> str:
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
