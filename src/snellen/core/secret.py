"""Keys that must never be seen: masked when shown, and scrubbed from any text before it leaves the program."""

from __future__ import annotations

import base64
from urllib.parse import quote


class Secret:
    """Holds a key; `reveal()` is the only way to read it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()  # pasted or read with its line end, it would be no header any more

    def reveal(self) -> str:
        """Return the key itself, for the wire only."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(****)"

    __str__ = __repr__

    def scrub(self, text: str) -> str:
        """Return `text` with the key masked, also where it stands URL-encoded or in base64."""
        value = self._value
        if len(value) < 4:
            return text
        for form in {value, quote(value, safe=""), base64.b64encode(value.encode()).decode()}:
            text = text.replace(form, "****")
        return text
