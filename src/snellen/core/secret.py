"""Keys that must never be seen: masked when shown, and scrubbed from any text before it leaves the program."""

from __future__ import annotations

import base64
import hashlib
import re
from urllib.parse import quote

USERINFO = re.compile(r"(?<=://)[^/\s'\"]+@")
KEY_NAMES = re.compile(
    r"(?:^|[._-])(?:api[_-]?key|apikey|secret|password|passwd|credentials?|authorization|bearer|(?:access|auth|hf)[_-]?token)$",
    re.IGNORECASE,
)
"""Names of settings that hold a key."""

HASH_ROUNDS = 50_000
"""So often what may be a password is hashed, where the hash is stored."""


def slow_hash(value: str, salt: str) -> str:
    """Return a short hash of a value that nobody finds by trying."""
    return hashlib.pbkdf2_hmac("sha256", value.encode(), salt.encode(), HASH_ROUNDS, 6).hex()


def hide_passwords(text: str) -> str:
    """Return `text` with user and password masked in every address that holds them."""
    return USERINFO.sub("****@", text)


def names_a_key(name: str) -> bool:
    """Tell whether a setting is named as one that holds a key: what is stored must not."""
    return KEY_NAMES.search(name) is not None


class Secret:
    """Holds a key; `reveal()` is the only way to read it."""

    __slots__ = ("_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value.strip()  # pasted or read with its line end, it would be no header any more
        self._forms = {self._value, quote(self._value, safe=""), base64.b64encode(self._value.encode()).decode()}

    def reveal(self) -> str:
        """Return the key itself, for the wire only."""
        return self._value

    @property
    def is_placeholder(self) -> bool:
        """Tell whether it is so short that a reply may well contain it: a local server's `EMPTY` is also an answer."""
        return len(self._value) < 16

    def __repr__(self) -> str:
        return "Secret(****)"

    __str__ = __repr__

    def scrub(self, text: str) -> str:
        """Return `text` with the key masked, also where it stands URL-encoded or in base64."""
        if len(self._value) >= 4:
            for form in self._forms:
                text = text.replace(form, "****")
        return text


def secrets_of_header(value: str) -> tuple[Secret, ...]:
    """Return all that must not be shown of a header that carries a key: the key, or name and password and each form."""
    scheme, _, rest = value.partition(" ")
    if scheme != "Basic":
        return (Secret(rest if scheme == "Bearer" else value),)
    try:
        pair = base64.b64decode(rest).decode()
    except ValueError:
        return (Secret(rest),)
    return tuple(Secret(part) for part in (rest, pair, pair.partition(":")[2]) if part)
