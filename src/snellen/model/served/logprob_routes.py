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
from ..likelihood import MINUS_INFINITY, ask_for_priors
from ..plain import plain_text, separator

CHAT, TEXT, ECHO, LETTERS = "chat-prompt-logprobs", "text-prompt-logprobs", "echo", "letters"
ROUTES = (CHAT, TEXT, ECHO, LETTERS)
WITH_IMAGES = (CHAT, LETTERS)
LONGEST_MARK = 3
TOP_LOGPROBS = 20
TOP_LOGPROBS_OF_TEXT = 5
"""What text completions give at most where they follow the first of them."""
TOKEN_IDS = {"return_token_ids": True}
"""Asks vLLM for the numbers of the tokens it generates; servers that do not know it pass over it."""
NUMBERED = "token_id:"
"""How vLLM writes a token whose text is not wanted (`--return-tokens-as-token-ids`)."""


class Token(NamedTuple):
    """One token as a server wrote it, with its number where that is told; the first of a text has no value."""

    name: str
    logprob: float | None
    id: str | None = None

    def is_same(self, other: Token) -> bool:
        """Tell whether both are one token: by their numbers, or by their text where one number is not known."""
        return self.name == other.name if None in (self.id, other.id) else self.id == other.id


Words = tuple[str, list[Token], list[list[Token]]]
"""A text, its tokens with values, and for each of them the likeliest in its place."""


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


def letters_request(request: Request) -> Request:
    """Return the chat request for the likeliest first tokens of the answer."""
    return words_request(request, 1, {})


def words_request(request: Request, tokens: int, more: dict[str, Any]) -> Request:
    """Return the chat request for the first tokens of the answer, each with its likeliest rivals."""
    extra = {"logprobs": True, "top_logprobs": TOP_LOGPROBS, **more}
    return replace(request, choices=(), prefix="", params=_params(request, tokens, extra))


def words_body(model: str, request: Request, tokens: int, more: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a text completion for the first tokens after a prompt, each with its likeliest rivals."""
    wish = {"max_tokens": tokens, "temperature": 0, "logprobs": TOP_LOGPROBS_OF_TEXT}
    return {"model": model, "prompt": prompt_text(request), **wish, **more}


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


def read_generated(value: Mapping[str, Any]) -> Words:
    """Return the text of a chat or text completion, its tokens with values, and for each the likeliest in its place."""
    choice = _first(value.get("choices"))
    read = _read_text_words if "text" in choice else _read_chat_words
    text, tokens, tops = read(choice, choice.get("logprobs") or {})
    return text, _numbered(tokens, choice), tops


def _read_text_words(choice: Mapping[str, Any], logprobs: Mapping[str, Any]) -> Words:
    pairs = zip(logprobs.get("tokens") or [], logprobs.get("token_logprobs") or [], strict=False)
    tops = [[_token(*pair) for pair in (row or {}).items()] for row in logprobs.get("top_logprobs") or []]
    return str(choice["text"] or ""), [_token(name, logprob) for name, logprob in pairs], tops


def _read_chat_words(choice: Mapping[str, Any], logprobs: Mapping[str, Any]) -> Words:
    rows = logprobs.get("content") or []
    return _content(choice), _tokens(rows), [_tokens(row.get("top_logprobs") or []) for row in rows]


def _content(choice: Mapping[str, Any]) -> str:
    return str((choice.get("message") or {}).get("content") or "")


def _tokens(rows: Sequence[Mapping[str, Any]]) -> list[Token]:
    return [_token(row.get("token"), row.get("logprob")) for row in rows]


def _token(name: Any, logprob: float | None) -> Token:
    text = str(name)
    return Token(text, logprob, text.removeprefix(NUMBERED) if text.startswith(NUMBERED) else None)


def _numbered(tokens: list[Token], choice: Mapping[str, Any]) -> list[Token]:
    """Return the tokens with the numbers the server told of them, if it told as many."""
    numbers = choice.get("token_ids") or []
    if len(numbers) != len(tokens):
        return tokens
    return [token._replace(id=str(number)) for token, number in zip(tokens, numbers, strict=True)]


def continuation_tokens(whole: Sequence[Token], prompt: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens that `whole` has after what it shares with `prompt`, and what the prompt has there instead."""
    shared = 0
    while shared < min(len(whole), len(prompt)) and whole[shared].is_same(prompt[shared]):
        shared += 1
    return list(whole[shared:]), list(prompt[shared:])


def continuation_values(whole: Sequence[Token], prompt: Sequence[Token]) -> list[float]:
    """Return the values of the tokens that `whole` has after `prompt`.

    Where the prompt's last token grows into the continuation, the first value is the grown token's less the old one's.
    """
    return token_values(*continuation_tokens(whole, prompt))


def token_values(tokens: Sequence[Token], replaced: Sequence[Token]) -> list[float]:
    """Return the values of a continuation's tokens, less those of the prompt's tokens that its first one replaced."""
    values = [token.logprob or 0.0 for token in tokens]
    if values and replaced:
        values[0] -= sum(token.logprob or 0.0 for token in replaced)
    return values


def letter_values(top: Sequence[Token], marks: Sequence[str]) -> list[float]:
    """Return each mark's log-probability, over all its spellings (`A`, ` A`, `(A)`); absent ones are impossible."""
    wanted = [bare(mark) for mark in marks]
    values: dict[str, list[float]] = {mark: [] for mark in wanted}
    for name, logprob, _ in top:
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
    number, entry = next(iter(row.items()))
    if not isinstance(entry, dict):
        return Token(str(number), float(entry), str(number))
    name = entry.get("decoded_token")
    return Token(str(number if name is None else name), entry["logprob"], str(number))


def _first(rows: Any) -> dict[str, Any]:
    return rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}


def fitting_routes(request: Request, forced: str | None = None) -> list[str]:
    """Return the routes by which a request may be scored, in the order they are tried."""
    return [route for route in ROUTES if _fits(route, request) and forced in (None, route)]


def _fits(route: str, request: Request) -> bool:
    has_images = any(turn.images for turn in (*request.messages, *request.likelihood.baseline))
    if has_images and route not in WITH_IMAGES:
        return False
    return route != LETTERS or (are_marks(request.choices) and not request.prefix)


def calls_of(request: Request, route: str) -> list[Request]:
    """Return what is sent to score a request by a route, as far as its tokens matter: the prompt, then each candidate.

    The same again after the prompt for priors, if there is one.
    """
    priors = calls_of(ask_for_priors(request), route) if request.likelihood.baseline else []
    if route == LETTERS:
        return [letters_request(request), *priors]
    prompt = [] if route == ECHO else [scoring_request(request, "")]
    return [*prompt, *(scoring_request(request, choice) for choice in request.choices), *priors]
