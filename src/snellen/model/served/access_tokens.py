"""Tokens that last an hour: from a command, or from what Google's library finds; fetched again when they expire."""

from __future__ import annotations

import shlex
import subprocess

from ...core.errors import EnvironmentProblem, MissingExtra, UsageError
from ...core.secret import Secret

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
COMMAND_S = 60.0


def command_token(command: str) -> Secret:
    """Return what a command prints: a key or a token. Its own words on stderr are told when it fails."""
    try:
        parts = shlex.split(command)
        done = subprocess.run(parts, capture_output=True, text=True, timeout=COMMAND_S, check=False)  # noqa: S603
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"--api-key-command {command!r} cannot be run: {error}") from None
    token = done.stdout.strip()
    if done.returncode or not token:
        said = " ".join(done.stderr.split())[:200] or "it printed nothing"
        raise EnvironmentProblem(f"--api-key-command {command!r} gave no key (exit {done.returncode}): {said}")
    if len(token.split()) != 1:
        raise UsageError(f"--api-key-command {command!r} must print the key and nothing else")
    return Secret(token)


def google_token() -> Secret:
    """Return a token of the credentials that Google's library finds on this machine."""
    try:
        import google.auth
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request
    except ImportError:
        raise MissingExtra("vertex", "finding Google's credentials") from None
    other = "or give --api-key-command 'gcloud auth print-access-token'"
    try:
        credentials, _ = google.auth.default(scopes=[SCOPE])
        credentials.refresh(Request())
    except GoogleAuthError as error:
        raise EnvironmentProblem(f"vertex: no Google credentials ({error}): gcloud auth login, {other}") from None
    return Secret(str(credentials.token))
