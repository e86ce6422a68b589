"""`bedrock/MODEL-ID`: the region to an address, credentials to signatures, or a bearer token to a header."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

from ...core.errors import UsageError
from ..options import ModelOptions
from ..served.served_model import ServedModel
from .bedrock import Bedrock
from .event_frames import read_frames
from .signing import SigningClient, aws_credentials

REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def create(name: str, options: ModelOptions) -> ServedModel:
    """Return the model `bedrock/MODEL-ID`; `--model-arg region=…` where AWS_REGION does not say it."""
    options.allow_arguments("bedrock", ("region",))
    region = str(options.arguments.get("region") or next(filter(None, map(os.environ.get, REGIONS)), ""))
    if not region:
        raise UsageError("bedrock: which region? Set AWS_REGION, or give --model-arg region=us-east-1")
    dialect = Bedrock()
    dialect.default_url = f"https://bedrock-runtime.{region}.amazonaws.com"
    bearer = options.api_key is not None or os.environ.get(dialect.key_variable, "").strip()
    http = None if bearer or options.key_command else SigningClient(aws_credentials(), region)
    return BedrockModel(dialect, name, options, http)


class BedrockModel(ServedModel):
    """Converse: its streams are frames, and it has no list of models to be checked against."""

    async def check(self) -> None:
        """Credentials were found when the model was made; whether they may use the model, its first reply says."""

    def _events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        return read_frames(chunks)
