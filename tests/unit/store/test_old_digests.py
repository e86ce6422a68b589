"""Requests without tools keep the keys and the rows that they had before requests could carry tools."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from snellen.core.ids import rng
from snellen.core.types import Frame, Image, Likelihood, Params, Prediction, Request, TrialKey, Turn, Usage
from snellen.store.cache import request_digest

DIGESTS = "fa41b9cd48e22cefe9c63bd7150029ea4e1107b752b911547056875113ee5f26"
"""SHA-256 of the 1,000 digests, computed by the code as it was before tools."""
ROWS = "3c72150f7751c6da562abfaa52549ab269fa9881c402a0b0a808f605348a429d"
"""SHA-256 of the 1,000 requests and replies as rows of run.db, likewise."""


def old_requests(count: int = 1000) -> Iterator[tuple[Request, Prediction, list[str]]]:
    """Yield requests of every kind that there was, with their replies and the hashes of their pictures."""
    draw = rng("requests before tools")
    for number in range(count):
        pictures = tuple(
            Image(
                f"/data/{draw.randrange(99)}.png",
                edits=("crop:0,0,0.5,1",) * draw.randrange(2),
                frame=Frame(draw.randrange(9), 1, 0.5, joined=True) if draw.random() < 0.2 else None,
            )
            for _ in range(draw.randrange(4))
        )
        parts = ("What", *range(len(pictures)), "?") if draw.random() < 0.3 else ()
        turns = [Turn("user", f"What {draw.random():.3f}?", pictures, parts)]
        if draw.random() < 0.3:
            turns = [Turn("system", "You see."), *turns, Turn("assistant", "a cat"), Turn("user", "Why?")]
        choice = draw.random() < 0.3
        request = Request(
            TrialKey("t", str(number), draw.choice(("base", "order=1")), draw.randrange(3)),
            tuple(turns),
            Params(
                draw.choice((None, 16, 512)),
                draw.choice((None, 0.0, 0.7)),
                seed=draw.choice((None, 3)),
                stop=draw.choice((None, ("\n",))),
                timeout_s=draw.choice((None, 5.0)),
                extra_body=draw.choice((None, {"b": 1, "a": [2]})),
            ),
            ("cat", "dog") if choice and draw.random() < 0.5 else (),
            ("A", "B") if choice else (),
            ("a cat", "a dog") if choice else (),
            draw.choice(("", "The answer is")),
            Likelihood("mean", (Turn("user", ""),)) if draw.random() < 0.1 else Likelihood(),
        )
        reply = Prediction(request.key, text=f"{draw.random()}", usage=Usage(draw.randrange(99), 3), finish="stop")
        yield request, reply, [f"{draw.random():.6f}" for _ in pictures]


def test_a_thousand_requests_without_tools_have_the_digests_of_before() -> None:
    digests = [request_digest("who", request, hashes) for request, _, hashes in old_requests()]
    assert len(set(digests)) == 1000
    assert hashlib.sha256("".join(digests).encode()).hexdigest() == DIGESTS


def test_a_thousand_requests_and_replies_without_tools_are_stored_byte_by_byte_as_before() -> None:
    rows = b"".join(msgspec.json.encode(both[:2]) for both in old_requests())
    assert hashlib.sha256(rows).hexdigest() == ROWS
