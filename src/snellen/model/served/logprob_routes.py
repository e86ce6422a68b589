"""The ways a server can be asked for log-probabilities, as pure functions: request bodies out, token values in.

`chat-prompt-logprobs` and `text-prompt-logprobs` (vLLM), `echo` (text completions with `logprobs`), `letters`
(`top_logprobs` of the first answer token). Only the chat ones can show images; only `letters` needs candidates that are
marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from ...core.errors import ModelError
from ...core.types import FailureKind, Params, Request, Turn
from ..likelihood import MINUS_INFINITY
from ..plain import plain_text, separator

CHAT, TEXT, ECHO, LETTERS = "chat-prompt-logprobs", "text-prompt-logprobs", "echo", "letters"
ROUTES = (CHAT, TEXT, ECHO, LETTERS)
WITH_IMAGES = (CHAT, LETTERS)
LONGEST_MARK = 3
TOP_LOGPROBS = 20


class Token(NamedTuple):
    """One token as a server scored it; the first of a text has no value."""

    name: str
    logprob: float | None


def scoring_request(request: Request, continuation: str) -> Request:
    """Return the chat request whose prompt ends with the continuation as the assistant's words, if there is any."""
    extra: dict[str, Any] = {"prompt_logprobs": 0}
    gap = separator(request.prefix) if request.prefix and continuation else ""
    said = request.prefix + gap + continuation
    messages = request.messages
    if said:
        messages = (*messages, Turn("assistant", said))
        extra |= {"add_generation_prompt": False, "continue_final_message": True}
    return replace(request, messages=messages, choices=(), prefix="", params=_params(request, 1, extra))


def letters_request(request: Request, tokens: int = 1) -> Request:
    """Return the chat request for the likeliest first tokens of the answer."""
    extra = {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    return replace(request, choices=(), prefix="", params=_params(request, tokens, extra))


def text_body(model: str, request: Request, continuation: str, *, echo: bool) -> dict[str, Any]:
    """Return the body of a text completion that scores prompt and continuation."""
    wish = {"echo": True, "logprobs": 1} if echo else {"prompt_logprobs": 0}
    return {"model": model, "prompt": prompt_text(request) + continuation, "max_tokens": 1, "temperature": 0, **wish}


def prompt_text(request: Request) -> str:
    """Return the messages as one text, with the forced beginning of the answer."""
    text = plain_text(request.messages)
    return text + separator(text) + request.prefix if request.prefix else text


def read_prompt_logprobs(value: Mapping[str, Any]) -> list[Token]:
    """Return the scored prompt of a vLLM response, wherever it stands."""
    rows = value.get("prompt_logprobs") or _first(value.get("choices")).get("prompt_logprobs")
    if not isinstance(rows, list) or not rows:
        raise ModelError(FailureKind.CAPABILITY, "prompt_logprobs are ignored")
    return [_read_row(row) for row in rows]


def read_echo(value: Mapping[str, Any], start: int, end: int) -> list[Token]:
    """Return the tokens of an echoed text that reach past character `start` and begin before `end`."""
    logprobs = _first(value.get("choices")).get("logprobs")
    if not isinstance(logprobs, dict) or not logprobs.get("token_logprobs"):
        raise ModelError(FailureKind.CAPABILITY, "echo with logprobs is ignored")
    rows = zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["text_offset"], strict=True)
    return [
        Token(str(name), logprob) for name, logprob, offset in rows if offset + len(str(name)) > start and offset < end
    ]


def read_generated(value: Mapping[str, Any]) -> tuple[str, list[Token], list[list[Token]]]:
    """Return the text of a chat or text completion, its tokens with values, and for each the likeliest in its place."""
    choice = _first(value.get("choices"))
    logprobs = choice.get("logprobs") or {}
    if "text" in choice:
        pairs = zip(logprobs.get("tokens") or [], logprobs.get("token_logprobs") or [], strict=False)
        return str(choice["text"] or ""), [Token(str(name), logprob) for name, logprob in pairs], []
    rows = logprobs.get("content") or []
    return _content(choice), _tokens(rows), [_tokens(row.get("top_logprobs") or []) for row in rows]


def _content(choice: Mapping[str, Any]) -> str:
    return str((choice.get("message") or {}).get("content") or "")


def _tokens(rows: Sequence[Mapping[str, Any]]) -> list[Token]:
    return [Token(str(row.get("token")), row.get("logprob")) for row in rows]


def continuation_values(whole: Sequence[Token], prompt: Sequence[Token]) -> list[float]:
    """Return the values of the tokens that `whole` has after `prompt`.

    Where the prompt's last token grows into the continuation, the first value is the grown token's less the old one's.
    """
    shared = 0
    while shared < min(len(whole), len(prompt)) and whole[shared].name == prompt[shared].name:
        shared += 1
    values = [token.logprob or 0.0 for token in whole[shared:]]
    if values and shared < len(prompt):
        values[0] -= sum(token.logprob or 0.0 for token in prompt[shared:])
    return values


def letter_values(top: Sequence[Token], marks: Sequence[str]) -> list[float]:
    """Return each mark's log-probability, over all its spellings (`A`, ` A`, `(A)`); absent ones are impossible."""
    wanted = [bare(mark) for mark in marks]
    values: dict[str, list[float]] = {mark: [] for mark in wanted}
    for name, logprob in top:
        if bare(name) in values and logprob is not None:
            values[bare(name)].append(logprob)
    return [float(np.logaddexp.reduce(values[mark])) if values[mark] else MINUS_INFINITY for mark in wanted]


def are_marks(choices: Sequence[str]) -> bool:
    """Tell whether the candidates are marks that one token can tell apart."""
    names = [bare(choice) for choice in choices]
    return all(0 < len(name) <= LONGEST_MARK for name in names) and len(set(names)) == len(names)


def bare(mark: str) -> str:
    """Return a mark without space and brackets."""
    return mark.strip().strip("().:").strip()


def _params(request: Request, max_tokens: int, extra: dict[str, Any]) -> Params:
    own = request.params
    return Params(
        max_tokens=max_tokens, temperature=0.0, timeout_s=own.timeout_s, extra_body={**(own.extra_body or {}), **extra}
    )


def _read_row(row: Any) -> Token:
    """Read {token id: {logprob, …}}; the token itself comes first, likelier ones after it."""
    if not row:
        return Token("", None)
    name, entry = next(iter(row.items()))
    return Token(str(name), entry["logprob"] if isinstance(entry, dict) else float(entry))


def _first(rows: Any) -> dict[str, Any]:
    return rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
