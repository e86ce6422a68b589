"""A provider as data: where it is, which key it takes, what it calls things; the next one needs no code."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import msgspec

from ...core.errors import ConfigError, UsageError
from ...core.protocols import ImagePolicy
from ...core.secret import Secret
from ..options import ModelOptions, address_variable, first_set
from .anthropic import Anthropic
from .dialect import Dialect
from .gemini import Gemini
from .negotiation import Quirks
from .openai import OpenAI, chat_dialect
from .openai_responses import Responses
from .served_model import ServedModel

DIALECTS: dict[str, type[Dialect]] = {
    "openai": OpenAI,
    "openai-responses": Responses,
    "anthropic": Anthropic,
    "gemini": Gemini,
}


class CardQuirks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a server is known to want otherwise than its dialect."""

    rename: dict[str, str] = {}
    drop: tuple[str, ...] = ()
    most: dict[str, int] = {}
    add: dict[str, Any] = {}
    system_role: str = "system"
    stream: bool = False


class CardImages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a server takes of pictures; None where it is not known."""

    max_side: int | None = None
    max_bytes: int | None = None
    formats: tuple[str, ...] | None = None


class ProviderCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of catalog/providers."""

    title: str
    dialect: str = "openai"
    base_url: str = ""
    base_url_env: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    token_env: tuple[str, ...] = ()
    """Variables that hold a bearer token, taken where no key is set; a token of --api-key-command is one too."""
    key_header: str = ""
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    quirks: CardQuirks = CardQuirks()
    images: CardImages = CardImages()
    reasoning: str = ""
    """The style of catalog/servers/reasoning.toml by which `--reasoning` is told."""
    constrain: str = ""
    """The style of catalog/servers/constraints.toml; empty: that of its dialect."""
    batch: str = ""
    """The kind of its batches (catalog/servers/batches.toml); empty where it has none."""
    batch_endpoint: str = ""
    example: str = ""
    note: str = ""
    from_memory: tuple[str, ...] = ()
    """Fields that are remembered, not seen; they are never a reason to refuse."""


def create_by_card(provider: str, card: ProviderCard, name: str, options: ModelOptions) -> ServedModel:
    """Return the model `provider/name` as its card says."""
    options.allow_arguments(provider, ("images", "likelihood") if card.dialect == "openai" else ())
    address = options.base_url or first_set(address_variable(provider), *card.base_url_env) or card.base_url
    if not address:
        raise UsageError(f"{provider}/{name}: say where it is by --base-url ({card.note or card.title})")
    settled = msgspec.structs.replace(card, base_url=address)
    model = ServedModel(_dialect(provider, settled, options), name, _with_address(options, settled))
    model.quirks = msgspec.convert(card.quirks, Quirks, from_attributes=True)
    return model


def _dialect(provider: str, card: ProviderCard, options: ModelOptions) -> Dialect:
    if card.dialect not in DIALECTS:
        raise ConfigError(f"provider {provider}: dialect {card.dialect!r} is none of {', '.join(DIALECTS)}")
    dialect = chat_dialect(options) if card.dialect == "openai" else DIALECTS[card.dialect]()
    dialect.provider = provider
    dialect.default_url = card.base_url
    dialect.key_variable = _set_variable(card.key_env) or (card.key_env[0] if card.key_env else "")
    dialect.batch = card.batch
    for name in ("key_header", "reasoning", "constrain", "batch_endpoint"):
        setattr(dialect, name, getattr(card, name) or getattr(dialect, name))
    _take_token(dialect, card, options)
    known = {name: value for name in ("max_side", "max_bytes", "formats") if (value := getattr(card.images, name))}
    dialect.image_policy = ImagePolicy(**known) if known else dialect.image_policy
    return dialect


def _take_token(dialect: Dialect, card: ProviderCard, options: ModelOptions) -> None:
    """Send a bearer token where one is set and no key, or where a command gives one."""
    token = _set_variable(card.token_env)
    keyless = options.api_key is None and not os.environ.get(dialect.key_variable)
    if options.key_command or (token and keyless):
        dialect.key_header, dialect.key_variable = "Authorization", token or dialect.key_variable


def _with_address(options: ModelOptions, card: ProviderCard) -> ModelOptions:
    headers = {name: Secret(value) for name, value in card.headers.items()} | dict(options.headers)
    return replace(options, base_url=card.base_url, headers=headers, query={**card.query, **options.query})


def _set_variable(names: tuple[str, ...]) -> str | None:
    return next(filter(first_set, names), None)
