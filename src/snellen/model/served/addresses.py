"""What people give as --base-url to the server's address, and the password that may stand in it."""

from __future__ import annotations

import re
from urllib.parse import unquote

from ...core.errors import UsageError
from ...core.secret import Secret

SERVICES = ("/chat/completions", "/completions", "/messages", "/models", "/responses")
"""Endings of addresses that are a service of the server, not the server."""


def split_address(base_url: str) -> tuple[str, Secret | None]:
    """Return an address without the user and password in it, and those; they go as a header, and nowhere else."""
    head, slashes, rest = base_url.strip().partition("://")
    host, slash, path = rest.partition("/")
    userinfo, at, host = host.rpartition("@")
    address = f"{head}{slashes}{host}{slash}{path}"
    if "?" in address or "#" in address:
        bare = re.split(r"[?#]", address)[0]
        raise UsageError(f"--base-url {bare} must end where its path ends: give a key by --api-key-env, not behind '?'")
    return address.rstrip("/"), Secret(unquote(userinfo)) if at else None


def trim_address(url: str) -> str:
    """Return a server's address without the ending of one of its services: people paste what they see in logs."""
    trimmed = url.rstrip("/")
    for ending in SERVICES:
        trimmed = trimmed.removesuffix(ending).rstrip("/")
    return trimmed
