"""Parameters a model refuses are sent otherwise or not at all: learned once from its own words, said, and recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from ...core.config import read_shipped
from ...core.errors import ModelError
from .replies import NEGOTIABLE

MOST_CHANGES = 6
OTHER_NAMES = {"max_completion_tokens": "max_tokens", "seed": "random_seed"}
"""Servers that know a parameter by another name, and do not say by which."""
DROPPABLE = frozenset(
    {"temperature", "top_p", "top_k", "seed", "random_seed", "stop", "stop_sequences", "stopSequences"}
    | {"frequency_penalty", "presence_penalty", "stream_options", "topP", "topK", "min_p", "repetition_penalty"}
)
"""Without these the answer is still one to the same question; a limit, a picture or a format is never dropped."""
QUOTES = re.compile(r"\\*[\"'`“”‘’]")


class ParameterRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of catalog/servers/parameters.toml."""

    does: str
    like: str
    part: str = ""
    """With `part`: what is left out, as `field.field`."""
    seen: tuple[dict[str, Any], ...] = ()


@cache
def parameter_rules() -> tuple[tuple[re.Pattern[str], ParameterRule], ...]:
    """Return the rules with their patterns, in the order they are tried."""
    rules = msgspec.convert(read_shipped("servers/parameters.toml")["rules"], list[ParameterRule])
    return tuple((re.compile(rule.like, re.IGNORECASE | re.DOTALL), rule) for rule in rules)


class Quirks(msgspec.Struct):
    """What one server wants otherwise than its dialect has it; from its card at first, then from its refusals."""

    rename: dict[str, str] = {}
    drop: set[str] = set()
    most: dict[str, int] = {}
    add: dict[str, Any] = {}
    system_role: str = "system"
    stream: bool = False
    learned: list[str] = []
    """What was changed after a refusal, in words, with what the server said."""

    def __bool__(self) -> bool:
        return bool(self.rename or self.drop or self.most or self.add or self.system_role != "system")

    def apply(self, body: dict[str, Any], place: str | None = None) -> dict[str, Any]:
        """Return the body as this server takes it; the sampling parameters stand at `place`, or at the top."""
        if not self:
            return body
        if place is not None:
            return {**body, place: self._settle(body.get(place) or {})} if place in body else body
        settled = self._settle(body)
        if self.system_role != "system" and isinstance(settled.get("messages"), list):
            settled["messages"] = [self._cast(message) for message in settled["messages"]]
        return settled

    def _settle(self, table: Mapping[str, Any]) -> dict[str, Any]:
        settled = {self.rename.get(name, name): value for name, value in table.items() if name not in self.drop}
        for outer, _, inner in (name.partition(".") for name in self.drop if "." in name):
            if isinstance(settled.get(outer), dict):
                settled[outer] = {name: value for name, value in settled[outer].items() if name != inner}
        for name, most in self.most.items():
            if isinstance(settled.get(name), int):
                settled[name] = min(settled[name], most)
        return {**self.add, **settled}

    def _cast(self, message: Any) -> Any:
        is_system = isinstance(message, dict) and message.get("role") == "system"
        return {**message, "role": self.system_role} if is_system else message

    def learn(self, error: ModelError, sent: Mapping[str, Any]) -> str | None:
        """Change one thing after a refusal and return it in words; None where nothing can or may be changed."""
        if error.status not in NEGOTIABLE or error.retryable or len(self.learned) >= MOST_CHANGES:
            return None
        words = QUOTES.sub("'", str(error.detail.get("whole") or error))
        for change in self._changes(words, sent):
            self.learned.append(f"{change}: {error}")
            return change
        return None

    def _changes(self, words: str, sent: Mapping[str, Any]) -> Iterator[str]:
        """Do the first change that a rule asks for and that can be done, and yield it in words."""
        for pattern, rule in parameter_rules():
            for found in pattern.finditer(words):
                groups = {name: text for name, text in found.groupdict().items() if text}
                name = _name_in(sent, groups.get("p") or groups.get("p2") or "")
                change = self._leave_out(rule.part, sent) if rule.part else self._do(rule.does, name, groups, sent)
                if change:
                    yield change

    def _do(self, does: str, name: str, groups: Mapping[str, str], sent: Mapping[str, Any]) -> str | None:
        if does in ("stream", "role"):
            return self._switch(does)
        if name not in sent:
            return None
        if does == "rename":
            return self._rename(name, groups["q"])
        if does == "clamp":
            self.most[name] = int(groups["m"])
            return f"{name} <= {groups['m']}"
        if does == "other" and name in OTHER_NAMES and OTHER_NAMES[name] not in self.rename.values():
            return self._rename(name, OTHER_NAMES[name])
        return self._give_up(name)

    def _leave_out(self, part: str, sent: Mapping[str, Any]) -> str | None:
        """Leave out one field of a field."""
        outer, _, inner = part.partition(".")
        table = sent.get(outer)
        if part in self.drop or not isinstance(table, dict) or inner not in table:
            return None
        self.drop.add(part)
        return f"drop {part}"

    def _switch(self, does: str) -> str | None:
        if does == "stream" and not self.stream:
            self.stream = True
            return "stream"
        if does == "role" and self.system_role == "system":
            self.system_role = "developer"
            return "role system -> developer"
        return None

    def take_back_limit(self, limit: int) -> None:
        """Send a limit by its older name again, where its other name came from a card and the server ignores it."""
        other = self.rename.get("max_tokens")
        if other is None or any(change.startswith("max_tokens -> ") for change in self.learned):
            return
        del self.rename["max_tokens"]
        self.learned.append(f"{other} -> max_tokens: the limit of {limit:,} tokens was not respected")

    def _give_up(self, name: str) -> str | None:
        if name not in DROPPABLE:
            return None
        self.drop.add(next((ours for ours, theirs in self.rename.items() if theirs == name), name))
        return f"drop {name}"

    def _rename(self, name: str, other: str) -> str | None:
        ours = next((ours for ours, theirs in self.rename.items() if theirs == name), name)
        if self.rename.get(ours) == other:
            return None
        self.rename[ours] = other
        return f"{name} -> {other}"


NO_QUIRKS = Quirks()
"""A server as its dialect has it; nobody learns into this one."""


def _name_in(sent: Mapping[str, Any], said: str) -> str:
    """Return a parameter as it was sent: some servers say `topP` for `top_p`, others are sent `topP`."""
    last = said.rpartition(".")[2]
    return last if last in sent else _snake(said)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found.group(1).lower()}", name.rpartition(".")[2])
