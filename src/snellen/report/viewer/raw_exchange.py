"""A stored trial to the request as a server would get it, the command that sends it again, and the reply as stored.

No key is in it: the model is made anew from what the run keeps of who answered, and that holds none. Marks that ask a
provider to keep a prompt (`--prompt-cache`) are not kept, and not shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ...core.answerer import Answerer
from ...core.config import convert
from ...core.errors import SnellenError
from ...core.markup import Child, shorten, tag
from ...core.protocols import EncodedImage
from ...core.secret import Secret
from ...core.types import Image, ImageSent, Request
from ...data.catalog import Catalog
from ...data.images.encode import encode_moving
from ...model.options import ModelOptions
from ...model.served.provider_card import DIALECTS, ProviderCard, create_by_card
from ...model.served.served_model import ServedModel
from ...store.answerers import read_table
from ..pages.gallery import Shown, image_policy
from .run_library import OpenRun
from .shell import EXPORTED, link, trial_address

KEY = "$API_KEY"
"""Stands where the key stood, until it is known which variable holds it."""
SHOWN = 40_000
NOTHING_SENT = ImageSent("", "image/png", 0, 0, 0)
_NO_PICTURE = b"\xe2\x80\xa6"


class Exchange(NamedTuple):
    """A request as a server would get it."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def raw_parts(run: OpenRun, shown: Shown) -> Iterator[Child]:
    """Yield request, command and reply of a trial as text."""
    exchange = shown_exchange(run, shown)
    if exchange is None:
        yield tag(
            "p", "As stored: this model was not asked over HTTP, or not by a dialect we write.", class_="muted small"
        )
        yield _code(_without_paths(shown.request))
    else:
        yield tag(
            "p", tag("b", "POST "), tag("code", exchange.url), "; pictures are told by their size", class_="small"
        )
        yield _code(msgspec.json.decode(exchange.body))
        yield from _again(run, shown, exchange)
    yield tag("p", tag("b", "Reply"), " as stored", class_="small")
    yield _code(msgspec.to_builtins(shown.prediction))


def _again(run: OpenRun, shown: Shown, exchange: Exchange) -> Iterator[Child]:
    """Yield how to send the request once more, and what was sent otherwise."""
    told = shown.prediction.detail.get("adjusted")
    notes = ["it was sent as a stream"] if shown.request.params.stream else []
    notes += [f"the server wanted it otherwise: {shorten(str(told), 400)}"] if told else []
    if notes:
        yield tag("p", "; ".join(notes), class_="muted small")
    if EXPORTED.get():
        return
    body = link("request.json", trial_address(run, shown.prediction.key, "request"))
    yield tag("p", tag("b", "Send it again"), " with ", body, ", which holds the pictures too", class_="small")
    yield tag("pre", curl_command(exchange), class_="code", tabindex=0)


def _code(value: Any) -> Child:
    pretty = msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace")
    return tag("pre", shorten(pretty, SHOWN), class_="code raw", tabindex=0)


def curl_command(exchange: Exchange) -> str:
    """Return the command that sends a request that was saved as request.json; the key comes from its variable."""
    lines = [f"curl {shlex.quote(exchange.url)}"]
    lines += [f"-H {_quoted(f'{name}: {value}')}" for name, value in exchange.headers.items()]
    return " \\\n  ".join([*lines, "-d @request.json"])


def _quoted(header: str) -> str:
    """Quote a header for a shell, which fills in a variable only where we put one."""
    name, _, value = header.rpartition("$")
    return f'"{header}"' if name and value.isidentifier() and '"' not in header else shlex.quote(header)


def shown_exchange(run: OpenRun, shown: Shown) -> Exchange | None:
    """Return the request with the size of each picture in its place; None where it went to no server that we know."""
    sent = shown.prediction.images
    images = [image for turn in shown.request.messages for image in turn.images]
    known = sent if len(sent) == len(images) else [NOTHING_SENT] * len(images)
    pairs = zip(images, known, strict=True)
    return _exchange(run, shown, {image: EncodedImage(_size(one), one) for image, one in pairs})


def whole_exchange(run: OpenRun, shown: Shown) -> Exchange | None:
    """Return the request with its pictures as the model saw them. Raises DataError where one is gone."""
    policy = image_policy(run.header())
    images = [image for turn in shown.request.messages for image in turn.images]
    seen = [image for turn in shown.seen.messages for image in turn.images]
    encoded = [encode_moving(image, policy) for image in seen]
    return _exchange(run, shown, dict(zip(images, encoded, strict=True)))


def _size(sent: ImageSent) -> bytes:
    return f"… {sent.size_bytes:,} bytes".encode() if sent.size_bytes else _NO_PICTURE


def _exchange(run: OpenRun, shown: Shown, images: Mapping[Image, EncodedImage]) -> Exchange | None:
    request, who = shown.request, _answerer(run, shown.prediction.answerer)
    if who is None or request.choices:
        return None
    try:
        model = _served(run, who)
        if model is None:
            return None
        url, headers = model.endpoint(stream=False)
        body = b"".join(model.write_body(request, images))
    except (SnellenError, AssertionError):
        return None
    variable = f"${model.dialect.key_variable or 'API_KEY'}"
    named = {name: value.replace(KEY, variable) for name, value in headers.items()}
    return Exchange(url, named | dict.fromkeys(who.headers, "…"), body)


def _answerer(run: OpenRun, number: int) -> Answerer | None:
    rows = read_table(run.reader.meta)
    return rows[number - 1].who if 1 <= number <= len(rows) else None


def _served(run: OpenRun, who: Answerer) -> ServedModel | None:
    """Make the model that asked, with nothing in the place of its key; None where it speaks no dialect of ours."""
    provider, _, name = who.model.partition("/")
    told: dict[str, Any] = {"arguments": who.body.get("arguments", {}), "query": who.query}
    told |= {key: who.makes[key] for key in ("reasoning", "constrain") if who.makes.get(key)}
    options = ModelOptions(base_url=who.address or None, api_key=Secret(KEY), **told)
    if provider in DIALECTS:
        model: ServedModel = run.registry.get("model", provider)(name, options)
        return model
    if provider not in Catalog().names("providers"):
        return None
    card = convert(Catalog().card("providers", provider), ProviderCard, f"provider {provider!r}")
    return create_by_card(provider, card, name, options)


def _without_paths(request: Request) -> Any:
    """Return a request whose pictures are named, not found: where they lie is nobody's business."""
    turns = [replace(turn, images=tuple(_named(image) for image in turn.images)) for turn in request.messages]
    return msgspec.to_builtins(replace(request, messages=tuple(turns)))


def _named(image: Image) -> Image:
    is_path = image.ref.startswith("/")
    return replace(image, ref=image.ref.rpartition("/")[2] if is_path else shorten(image.ref, 80))
