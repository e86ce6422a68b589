"""Several servers of one model as one: each request goes where the least is in flight, around those that rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...core.errors import ModelError, StopRun, UsageError
from ...core.protocols import EncodedImages
from ...core.types import FailureKind, Prediction, Request
from .served_model import ServedModel

DOWN_S = 15.0
"""How long a server that could not be reached is left alone."""
ELSEWHERE = frozenset({FailureKind.RATE, FailureKind.NETWORK, FailureKind.SERVER})
"""What another server may answer: this one is busy, gone or broken."""


class Endpoint:
    """One server of a pool, and how it does."""

    def __init__(self, model: ServedModel) -> None:
        self.model = model
        self.address = str(model.identity()["base_url"])
        self.in_flight = 0
        self.answered = 0
        self.failed = 0
        self.rests_until = 0.0


class PooledModel:
    """Fits the Protocol `Model`. Each reply says which server gave it (`detail.endpoint`)."""

    cacheable = True

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.endpoints = [Endpoint(model) for model in models]
        addresses = [endpoint.address for endpoint in self.endpoints]
        if len(set(addresses)) != len(addresses):
            raise UsageError(f"--base-url names the same server twice: {', '.join(addresses)}")
        first = models[0]
        self.name = first.name
        self.capabilities = frozenset.intersection(*(model.capabilities for model in models))
        self.image_policy = first.image_policy
        self.clock = first.clock

    @property
    def adjusted(self) -> tuple[str, ...]:
        """What is sent otherwise than asked, at any of the servers."""
        return tuple(dict.fromkeys(text for endpoint in self.endpoints for text in endpoint.model.adjusted))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What replies showed of any of the servers."""
        return tuple(dict.fromkeys(text for endpoint in self.endpoints for text in endpoint.model.warnings))

    @property
    def said(self) -> Mapping[str, Any]:
        """What the first server says of the model."""
        return self.endpoints[0].model.said

    def identity(self) -> Mapping[str, Any]:
        """Return the first server's identity, and the addresses of all."""
        return {**self.endpoints[0].model.identity(), "pool": [endpoint.address for endpoint in self.endpoints]}

    async def check(self) -> None:
        """Check every server, and that all say the same of the model: two checkpoints may answer to one name."""
        for endpoint in self.endpoints:
            await endpoint.model.check()
        first = self.endpoints[0]
        for other in self.endpoints[1:]:
            if dict(other.model.said) != dict(first.model.said):
                told = f"{first.address} says {dict(first.model.said)}, {other.address} {dict(other.model.said)}"
                raise UsageError(f"the servers of the pool do not serve the same model: {told}")

    async def close(self) -> None:
        """Close all connections."""
        for endpoint in self.endpoints:
            await endpoint.model.close()

    async def predict(self, request: Request, images: EncodedImages) -> Prediction:
        """Ask the server with the least in flight; where one is busy or gone, the next."""
        tried: list[Endpoint] = []
        while True:
            endpoint = self._choose(tried)
            tried.append(endpoint)
            endpoint.in_flight += 1
            try:
                prediction = await endpoint.model.predict(request, images)
            except StopRun:
                raise
            except ModelError as error:
                endpoint.failed += 1
                error.detail["endpoint"] = endpoint.address
                if error.kind not in ELSEWHERE or not error.retryable or not self._rest(endpoint, error, tried):
                    raise
            else:
                endpoint.answered += 1
                return msgspec.structs.replace(prediction, detail={**prediction.detail, "endpoint": endpoint.address})
            finally:
                endpoint.in_flight -= 1

    def _choose(self, tried: Sequence[Endpoint]) -> Endpoint:
        now = self.clock.monotonic()
        return min(
            (endpoint for endpoint in self.endpoints if endpoint not in tried),
            key=lambda endpoint: (max(0.0, endpoint.rests_until - now), endpoint.in_flight, endpoint.answered),
        )

    def _rest(self, endpoint: Endpoint, error: ModelError, tried: Sequence[Endpoint]) -> bool:
        """Let a server rest as long as it asks; tell whether another that does not rest is left to be tried.

        Where all rest, the error asks for the shortest rest: the engine waits for it.
        """
        now = self.clock.monotonic()
        pause_s = error.retry_after_s if error.retry_after_s else DOWN_S if error.kind is FailureKind.NETWORK else 1.0
        endpoint.rests_until = max(endpoint.rests_until, now + pause_s)
        if any(other not in tried and other.rests_until <= now for other in self.endpoints):
            return True
        shortest = min(other.rests_until for other in self.endpoints) - now
        error.retry_after_s = max(0.05, shortest) if error.kind is FailureKind.RATE else error.retry_after_s
        return False
