"""Our signatures are botocore's, to the letter: thousands of random requests, at any moment, for any credentials."""

from __future__ import annotations

import hashlib
import hmac
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.model.cloud.body_hash import LARGE, BodyHash
from snellen.model.cloud.signing import RequestSigner, finish_keyed, keyed_states

auth = pytest.importorskip("botocore.auth")
awsrequest = pytest.importorskip("botocore.awsrequest")
credentials = pytest.importorskip("botocore.credentials")
JSON = {"Content-Type": "application/json"}
URL = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/maker.name-v1%3A0/converse"


class Moment:
    """A clock for us and for botocore."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0

    def __call__(self) -> float:
        return self.seconds

    def as_date(self) -> datetime:
        return datetime.fromtimestamp(int(self.seconds), UTC)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    one = Moment()
    monkeypatch.setattr(auth, "get_current_datetime", one.as_date)
    return one


def by_botocore(
    who: Any, region: str, method: str, url: str, headers: Mapping[str, str], body: Sequence[bytes]
) -> dict[str, str]:
    request = awsrequest.AWSRequest(method, url, dict(headers), b"".join(body))
    auth.SigV4Auth(who.get_frozen_credentials(), "bedrock", region).add_auth(request)
    return dict(request.headers.items())


def word(dice: random.Random, letters: str, most: int) -> str:
    return "".join(dice.choices(letters, k=dice.randint(1, most)))


def some_request(dice: random.Random) -> tuple[str, str, dict[str, str], list[bytes]]:
    """Return method, address, headers and body as a run may send them, odd ones included."""
    path = "/".join(word(dice, string.ascii_letters + string.digits + ".-_~:", 20) for _ in range(dice.randint(1, 4)))
    path += dice.choice(["", "%3A0", "%2Fx", "//a", "/../b", " c", "/"])
    host = dice.choice(["127.0.0.1:8000", "h.example", "H.Example:443", "h.example:444", "[::1]:80"])
    query = dice.choice(["", "", "?b=2&a=1", "?a", "?x=%20y&x=1"])
    headers = dict(JSON)
    for _ in range(dice.randint(0, 3)):
        name = dice.choice(["X-Team", "x-amz-meta", "User-Agent", "Accept", "x-amz-date", "Date", "Zebra", "baggage"])
        headers[name] = word(dice, string.ascii_letters + " :,=;  ", 30)
    parts = [dice.randbytes(dice.randint(0, 40)) for _ in range(dice.randint(0, 4))]
    return (
        dice.choice(["POST", "POST", "GET"]),
        f"{dice.choice(['http', 'https'])}://{host}/{path}{query}",
        headers,
        parts,
    )


def some_credentials(dice: random.Random) -> Iterator[Any]:
    while True:
        token = word(dice, string.ascii_letters + "+/=", 60) if dice.random() < 0.5 else None
        secret = word(dice, string.ascii_letters + "+/=", 40)
        yield credentials.Credentials(word(dice, string.ascii_uppercase, 20), secret, token)


def test_three_thousand_random_requests_are_signed_as_botocore_signs(moment: Moment) -> None:
    dice = random.Random(140)
    people = some_credentials(dice)
    for number in range(3_000):
        if number % 10 == 0:  # the same signer meets other addresses, other days, and its own forms again
            who, region = next(people), dice.choice(["us-east-1", "eu-central-1", "x"])
            signer = RequestSigner(who, region, moment)
            kept = some_request(dice)
        method, url, headers, body = kept if dice.random() < 0.5 else some_request(dice)
        moment.seconds += dice.choice([0, 0.4, 1, 3_600, 86_400, 40_000_000])
        expected = by_botocore(who, region, method, url, headers, body)
        assert signer.sign_headers(method, url, headers, body) == expected, (method, url, headers)


@given(st.lists(st.binary(max_size=200), max_size=4), st.text(st.characters(min_codepoint=33, max_codepoint=126)))
def test_any_body_and_any_header_value(body: list[bytes], value: str) -> None:
    one = Moment()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "get_current_datetime", one.as_date)
        who = credentials.Credentials("AKID", "secret")
        signer = RequestSigner(who, "us-east-1", one)
        headers = {**JSON, "X-Any": value}
        for _ in range(2):
            expected = by_botocore(who, "us-east-1", "POST", URL, headers, body)
            assert signer.sign_headers("POST", URL, headers, body) == expected
            one.seconds += 1


def test_the_usual_request_needs_the_library_once(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    honest = auth.SigV4Auth.add_auth
    monkeypatch.setattr(auth.SigV4Auth, "add_auth", lambda self, one: asked.append(one.url) or honest(self, one))
    signer = RequestSigner(credentials.Credentials("AKID", "secret"), "eu-west-1", moment)
    for number in range(50):
        signer.sign_headers("POST", URL, JSON, (b"%d" % number,))
    assert asked == [URL]


def test_a_library_that_signs_otherwise_is_believed(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should AWS change what is signed, a newer botocore says so: what it signs is sent."""
    monkeypatch.setattr(auth.SigV4Auth, "signature", lambda self, text, request: "another")
    signer = RequestSigner(credentials.Credentials("AKID", "secret"), "eu-west-1", moment)
    for _ in range(2):
        assert signer.sign_headers("POST", URL, JSON, (b"{}",))["Authorization"].endswith("Signature=another")


def test_credentials_that_are_renewed_sign_the_next_request(moment: Moment) -> None:
    now = credentials.Credentials("AKID1", "one", "token1")
    role = SimpleNamespace(get_frozen_credentials=lambda: now.get_frozen_credentials())
    signer = RequestSigner(role, "eu-west-1", moment)
    for name in ("1", "2"):
        now = credentials.Credentials(f"AKID{name}", f"secret{name}", f"token{name}")
        signed = signer.sign_headers("POST", URL, JSON, (b"{}",))
        assert signed == by_botocore(now, "eu-west-1", "POST", URL, JSON, (b"{}",))
        assert signed["X-Amz-Security-Token"] == f"token{name}"


def test_forms_are_kept_in_bounds(moment: Moment) -> None:
    signer = RequestSigner(credentials.Credentials("AKID", "secret"), "eu-west-1", moment)
    for number in range(200):
        signer.sign_headers("POST", f"{URL}/{number}", JSON, (b"",))
    assert len(signer._letters) <= 64


@given(st.binary(max_size=64), st.binary(max_size=300))
def test_keyed_hashes_are_hmac(key: bytes, message: bytes) -> None:
    for _ in range(2):
        assert finish_keyed(*keyed_states(key), message) == hmac.new(key, message, "sha256").hexdigest()


@given(st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=30), st.integers(0, 6 * LARGE))
def test_bodies_of_the_same_pictures_have_their_own_hash(bodies: list[list[int]], kept_bytes: int) -> None:
    parts = [b"", b"a", b"ab", bytes(LARGE), b"\1" * LARGE, b"\2" * (2 * LARGE)]
    hashing = BodyHash(kept_bytes)
    for places in bodies:
        body = tuple(parts[place] for place in places)
        assert hashing.hexdigest(body) == hashlib.sha256(b"".join(body)).hexdigest()
        assert hashing._held <= kept_bytes


def test_a_picture_that_is_gone_never_lends_its_hash_to_another() -> None:
    """An object's number is given out again when it is gone: those that are remembered are held."""
    hashing = BodyHash(8 * LARGE)
    for number in range(500):
        body = (b"{", bytes([number % 256]) * LARGE, b"}")
        assert hashing.hexdigest(body) == hashlib.sha256(b"".join(body)).hexdigest()
