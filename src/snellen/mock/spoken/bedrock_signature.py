"""Signatures of AWS as a server checks them: written from the rules, not with the library that clients sign with."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

from ..http import Exchange
from ..plan import Plan, error_plan

HOLDS_S = 300
STAMP = "%Y%m%dT%H%M%SZ"
MOMENT = re.compile(r"\d{8}T\d{6}Z")
PROOF = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<who>[^/]+)/(?P<scope>\d{8}/(?P<region>[^/]+)/[^/]+/aws4_request), "
    r"SignedHeaders=(?P<headers>[^,]+), Signature=(?P<signature>[0-9a-f]{64})"
)
TOKEN = "The security token included in the request is invalid."  # noqa: S105 - words of a refusal
SIGNATURE = (
    "The request signature we calculated does not match the signature you provided. "
    "Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
)


def is_signed(exchange: Exchange) -> bool:
    """Tell whether a request brings a signature instead of a key."""
    return (exchange.header("authorization") or "").startswith("AWS4-HMAC-SHA256")


def refuse_signature(exchange: Exchange, key: str, region: str, now: Callable[[], float] = time.time) -> Plan | None:
    """Return the refusal of a signature that is not of this `NAME:SECRET` and region, or not of this moment."""
    proof = PROOF.fullmatch(exchange.header("authorization") or "")
    name, _, secret = key.partition(":")
    stamp = exchange.header("x-amz-date") or ""
    if proof is None or proof["who"] != name or not MOMENT.fullmatch(stamp):
        return error_plan(403, TOKEN, "UnrecognizedClientException")
    if proof["region"] != region:
        return error_plan(403, "Credential should be scoped to a valid region. ", "InvalidSignatureException")
    return _refuse_moment(stamp, now()) or _refuse_hash(exchange, proof, stamp, secret)


def _refuse_moment(stamp: str, now: float) -> Plan | None:
    sent = datetime.strptime(stamp, STAMP).replace(tzinfo=UTC).timestamp()
    if abs(now - sent) <= HOLDS_S:
        return None
    late = sent < now
    here, edge = _written(now), _written(now - HOLDS_S if late else now + HOLDS_S)
    kind = "Signature expired" if late else "Signature not yet current"
    than = "is now earlier than" if late else "is still later than"
    text = f"{kind}: {stamp} {than} {edge} ({here} {'-' if late else '+'} 5 min.)"
    return error_plan(403, text, "InvalidSignatureException")


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime(STAMP)


def _refuse_hash(exchange: Exchange, proof: re.Match[str], stamp: str, secret: str) -> Plan | None:
    lines = [f"{name}:{' '.join((exchange.header(name) or '').split())}" for name in proof["headers"].split(";")]
    body = hashlib.sha256(exchange.body).hexdigest()
    asked = [exchange.method, quote(exchange.path, safe="/~"), "", *lines, "", proof["headers"], body]
    told = "\n".join(("AWS4-HMAC-SHA256", stamp, proof["scope"], hashlib.sha256("\n".join(asked).encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in proof["scope"].split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    if hmac.compare_digest(hmac.digest(key, told.encode(), "sha256").hex(), proof["signature"]):
        return None
    return error_plan(403, SIGNATURE, "InvalidSignatureException")
