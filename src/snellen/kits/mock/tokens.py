"""Text to toy tokens and deterministic toy log-probabilities, so that likelihood clients can be tested exactly."""

from __future__ import annotations

import re

from ...core.ids import derive_seed

_TOKEN = re.compile(r"<\|\w+\|>|<image>|\s*\w+|\s*[^\w\s]|\s+")


def tokenize(text: str) -> list[str]:
    """Split into tokens whose concatenation is the text: words and signs, each with the space before it."""
    return _TOKEN.findall(text)


def token_id(token: str) -> int:
    """Return a stable id."""
    return derive_seed("token", token) % 50_000


def log_probability(token: str, before: str, expected: str | None) -> float:
    """Return the toy log-probability of a token after `before`: near 0 if it is `expected`, else −2 to −6."""
    spread = derive_seed("logprob", token, before[-64:]) % 10_000 / 10_000
    if expected is not None and token.strip() == expected.strip():
        return -0.05 - 0.2 * spread
    return -2.0 - 4.0 * spread


def sequence_log_probabilities(tokens: list[str], answers: tuple[str, ...] = ()) -> list[float]:
    """Return one log-probability a token; the tokens of a right answer at the very end are the likely ones."""
    wanted = next((words for words in map(tokenize, answers) if _ends_with(tokens, words)), [])
    start = len(tokens) - len(wanted)
    values, before = [], ""
    for index, token in enumerate(tokens):
        values.append(log_probability(token, before, token if index >= start else None))
        before = (before + token)[-64:]
    return values


def _ends_with(tokens: list[str], wanted: list[str]) -> bool:
    tail = tokens[len(tokens) - len(wanted) :]
    return bool(wanted) and [token.strip() for token in tail] == [token.strip() for token in wanted]
