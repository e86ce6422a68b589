"""The key of a server: given, from a variable, or a token that is fetched again when the server no longer takes it."""

from __future__ import annotations

import asyncio
import os
from functools import partial

from ...core.secret import Secret
from ..options import ModelOptions
from ..providers.access_tokens import command_token


class KeyRing:
    """Holds the key that is sent now."""

    def __init__(self, options: ModelOptions, variable: str) -> None:
        command = partial(command_token, options.key_command) if options.key_command else None
        self._fetch = options.renew_key or command
        self._fetching = asyncio.Lock()
        self.key = options.api_key or (self._fetch() if self._fetch else _key_from(variable))

    async def renewed(self, refused: Secret | None) -> bool:
        """Fetch a new token after one was refused; False where there is no other, which stops the run."""
        if self._fetch is None:
            return False
        async with self._fetching:
            if self.key is not refused:  # meanwhile another request fetched one
                return True
            fresh = await asyncio.to_thread(self._fetch)
            if refused is not None and fresh.reveal() == refused.reveal():
                return False
            self.key = fresh
            return True


def _key_from(variable: str) -> Secret | None:
    value = os.environ.get(variable, "").strip()
    return Secret(value) if value else None
