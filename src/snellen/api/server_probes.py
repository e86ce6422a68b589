"""A server's address to what it can do and which flags to use, in about ten seconds."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import PIL.Image
import PIL.ImageDraw
import pybase64
from msgspec.structs import replace

from ..core.errors import EnvironmentProblem, ModelError, SnellenError, UsageError
from ..core.ids import rng
from ..core.process import run_to_end
from ..core.protocols import Capability
from ..core.secret import Secret
from ..core.text import plural
from ..core.types import Image, Params, Prediction, Request, Tool, TrialKey, Turn
from ..data.images.decode import encode_png
from ..data.images.encode import ImageDoor
from ..model.served.served_model import ServedModel
from ..prompt.tool_results import Result, native_results
from .load import load_model

ADDRESS = re.compile(r"https?://[^/\s]", re.IGNORECASE)
AT_ONCE = 8
SIDE_PX = 224
CHOICES = ("red", "green", "blue")
LETTERS = ("A", "B")
CARDS = {"vllm": "vllm-server"}
"""Servers that say what they are, and the card by which they are told more than the plain dialect knows."""
HELD_TOKENS = 32
TOOL_TOKENS = 256


class Probe(NamedTuple):
    """One thing a server was asked to do."""

    what: str
    ok: bool
    text: str


class ServerFacts(NamedTuple):
    """What a server can do."""

    model: str
    base_url: str
    probes: tuple[Probe, ...]
    flags: tuple[str, ...]
    """What to give `snellen run` for this server."""


def look_at_server(
    url: str, model: str | None = None, api_key: Secret | None = None, within_s: float = 10.0
) -> ServerFacts:
    """Ask a server for each thing a run may need; whatever does not answer in time is said to be silent."""
    if not ADDRESS.match(url):
        raise UsageError(f"{url!r} is not the address of a server: write http://HOST:PORT/v1")
    return run_to_end(_look(url, model, api_key, within_s))


async def _look(url: str, name: str | None, api_key: Secret | None, within_s: float) -> ServerFacts:
    provider, slash, rest = (name or "").partition("/")
    known = slash and provider in ("openai", "anthropic", "gemini")
    family, remote = (provider, rest) if known else ("openai", name or "")
    remote, maker, listing = await _named(family, url, remote, api_key)
    family = family if known else CARDS.get(maker, family)
    served = _open(family, remote, url, api_key)
    held = _open(family, remote, url, api_key, constrain="options")
    try:
        await served.check()
        probes = await _Probing(served, held, within_s).all()
    finally:
        await served.close()
        await held.close()
    address = str(served.identity()["base_url"])
    flags = _flags(served, address, probes)
    return ServerFacts(served.name, address, (listing, *probes), flags)


def _open(family: str, name: str, url: str, api_key: Secret | None, constrain: str | None = None) -> ServedModel:
    model = load_model(f"{family}/{name}", base_url=url, api_key=api_key, constrain=constrain)
    if not isinstance(model, ServedModel):
        raise UsageError(f"{family}/{name} is not served: serve-check asks servers")
    return model


async def _named(family: str, url: str, name: str, api_key: Secret | None) -> tuple[str, str, Probe]:
    """Return the model that is meant (named, or the only one that the server lists), and what the server is."""
    asked = _open(family, name or "unnamed", url, api_key)
    try:
        listed = await asked.listed_models()
    except EnvironmentProblem as error:  # said for a run, whose flags are none of ours
        reason = str(error).partition(" is not reachable: ")[2].rpartition("; is it running")[0] or error
        told = f"{url} is not reachable: {reason}; is the server running, is its address right?"
        raise EnvironmentProblem(told) from None
    finally:
        await asked.close()
    if not name and len(listed) != 1:
        said = f"it serves {', '.join(list(listed)[:8])}" if listed else "it does not list its models"
        raise UsageError(f"which model of {url}? {said}: add --model NAME")
    name = name or next(iter(listed))
    entry = listed.get(name, {})
    longest = entry.get("max_model_len")
    room = f", {longest:,} tokens fit" if isinstance(longest, int) else ""
    text = f"{plural(len(listed), 'model')} listed{room}" if listed else "not listed: a mistyped name is found out late"
    return name, str(entry.get("owned_by")), Probe("models", bool(listed), text)


class _Probing:
    """Asks one server; every probe is one line, whatever happens."""

    def __init__(self, model: ServedModel, held: ServedModel, within_s: float) -> None:
        self._model = model
        self._held = held
        """The same model, told to answer with an option and nothing else."""
        self._ends = time.monotonic() + within_s
        self._door = ImageDoor()
        self._text_tokens: int | None = None

    async def all(self) -> list[Probe]:
        """Ask for everything: text first, as what is counted for a picture is told by the difference."""
        first = await self._within("chat", self._chat())
        if not first.ok:
            return [first]
        later: list[tuple[str, Callable[[], Awaitable[Probe]]]] = [
            ("pictures", lambda: self._pictures(1)),
            ("several pictures", lambda: self._pictures(2)),
            ("streaming", self._stream),
            ("likelihood", self._likelihood),
            ("options", self._options),
            ("tools", self._tools),
        ]
        probes = await asyncio.gather(*(self._within(what, probe()) for what, probe in later))
        return [first, *probes, await self._within("at once", self._at_once()), self._adjusted()]

    async def _within(self, what: str, probe: Awaitable[Probe]) -> Probe:
        try:
            return await asyncio.wait_for(probe, max(0.05, self._ends - time.monotonic()))
        except TimeoutError:
            return Probe(what, False, "no answer in time: --within gives it longer")
        except ModelError as error:
            return Probe(what, False, f"{error.kind.value}: {error}")
        except SnellenError as error:
            return Probe(what, False, str(error))

    async def _ask(
        self, text: str, pictures: int = 0, *, stream: bool | None = None, choices: Sequence[str] = ()
    ) -> Prediction:
        turn = Turn("user", text, tuple(_square(number) for number in range(pictures)))
        params = Params(max_tokens=16, temperature=0.0, stream=stream)
        request = Request(TrialKey("serve-check", text[:20]), (turn,), params, tuple(choices))
        return await self._predict(request)

    async def _chat(self) -> Probe:
        begun = time.monotonic()
        reply = await self._ask("Say yes.")
        counted = reply.usage.input_tokens if reply.usage else None
        self._text_tokens = counted
        tokens = "tokens counted" if counted is not None else "tokens not counted: costs are unknown"
        return Probe("chat", True, f"answered {_short(reply)} in {time.monotonic() - begun:.2f} s, {tokens}")

    async def _pictures(self, count: int) -> Probe:
        what = "pictures" if count == 1 else "several pictures"
        if Capability.IMAGES not in self._model.capabilities:
            return Probe(what, False, "this family of servers takes none")
        reply = await self._ask("Say yes.", count)
        counted = reply.usage.input_tokens if reply.usage else None
        if counted is None or self._text_tokens is None:
            return Probe(what, True, "taken; whether they are looked at is unknown without token counts")
        more = counted - self._text_tokens
        if more <= 0:
            return Probe(what, False, f"taken, and ignored: {counted} input tokens with as without")
        return Probe(what, True, f"taken: {more} input tokens more for {plural(count, 'picture')} of {SIDE_PX} px")

    async def _stream(self) -> Probe:
        reply = await self._ask("Say yes.", stream=True)
        first = reply.timing.first_token if reply.timing else None
        if reply.timing is None or first is None:
            return Probe("streaming", False, "answered, but in one piece: no time to first token")
        return Probe("streaming", True, f"first token after {first - reply.timing.sent:.2f} s")

    async def _likelihood(self) -> Probe:
        if Capability.LIKELIHOOD not in self._model.capabilities:
            return Probe("likelihood", False, "this family of servers gives no log-probabilities of given texts")
        reply = await self._ask("What colour is a ripe tomato? Answer with one word.", choices=CHOICES)
        route = reply.detail.get("route", "")
        return Probe("likelihood", True, f"of given texts, by {route}" if route else "of given texts")

    async def _options(self) -> Probe:
        """Ask for a word that is none of the letters: only a server that holds the model to them answers with one."""
        params = Params(max_tokens=HELD_TOKENS, temperature=0.0)
        request = Request(
            TrialKey("serve-check", "options"), (Turn("user", "Say yes."),), params, marks=LETTERS, shown=CHOICES[:2]
        )
        reply = await self._held.predict(request, {})
        if reply.text not in LETTERS:
            return Probe(
                "options", False, f"not answered with {' or '.join(LETTERS)} in {HELD_TOKENS} tokens: {_short(reply)}"
            )
        return Probe("options", True, f"held to {' or '.join(LETTERS)}: answered {_short(reply)}")

    async def _tools(self) -> Probe:
        """Offer a tool: is it called, and does a number that stands only in its picture come back?"""
        number = str(rng("serve-check", time.time_ns()).randrange(1000, 9999))
        first = Request(
            TrialKey("serve-check", "tools"),
            (Turn("user", "Call the tool show_number, then say the number in its picture."),),
            Params(max_tokens=TOOL_TOKENS, temperature=0.0),
            tools=(Tool("show_number", "Shows a picture with a number.", {"type": "object", "properties": {}}),),
        )
        bare = await self._predict(replace(first, tools=()))
        reply = await self._predict(first)
        counts = [one.usage.input_tokens if one.usage else None for one in (bare, reply)]
        if counts[0] is not None and counts[0] == counts[1]:
            return Probe("tools", False, f"ignored (tools-ignored): {counts[1]} input tokens with as without")
        if not reply.calls:
            return Probe("tools", False, f"offered, and not called: answered {_short(reply)}; try --tool-dialect text")
        for carry in ("tool", "user"):
            if await self._reads_result(first, reply, number, carry):
                return Probe("tools", True, f"called, and a result's picture is read: --carry {carry}")
        return Probe("tools", False, "called, and the picture of a result is not read: try --tool-dialect text")

    async def _reads_result(self, first: Request, reply: Prediction, number: str, carry: str) -> bool:
        """Tell whether a number is read from the picture of a tool's result, carried this way."""
        said = Turn("assistant", reply.text or "", calls=reply.calls, kept=reply.kept)
        results = [Result(call.id, "Here it is.", (_number_plate(number),)) for call in reply.calls[:1]]
        results += [Result(call.id, "not run") for call in reply.calls[1:]]
        turns = (*first.messages, said, *native_results(results, carry))
        try:
            answer = await self._predict(replace(first, messages=turns, choice="none"))
        except ModelError:
            return False
        return number in (answer.text or "")

    async def _predict(self, request: Request) -> Prediction:
        return await self._model.predict(request, await self._door.encode_all(request, self._model.image_policy))

    async def _at_once(self) -> Probe:
        begun = time.monotonic()
        replies = await asyncio.gather(*(self._ask(f"Say {n}.") for n in range(AT_ONCE)), return_exceptions=True)
        failed = [str(reply) for reply in replies if isinstance(reply, BaseException)]
        rate = (AT_ONCE - len(failed)) / (time.monotonic() - begun)
        if failed:
            return Probe("at once", False, f"{len(failed)} of {AT_ONCE} requests at once failed: {failed[0]}")
        return Probe("at once", True, f"{AT_ONCE} requests at once: {rate:,.1f} a second")

    def _adjusted(self) -> Probe:
        changes = self._model.adjusted
        return Probe("parameters", not changes, "; ".join(changes) or "temperature and max_tokens taken as they are")


def _square(number: int) -> Image:
    colour = [(200, 30, 30), (30, 30, 200)][number]
    data = encode_png(PIL.Image.new("RGB", (SIDE_PX, SIDE_PX), colour))
    return Image(f"data:image/png;base64,{pybase64.b64encode(data).decode()}", "image/png")


def _number_plate(number: str) -> Image:
    """Draw a number that stands nowhere else."""
    picture = PIL.Image.new("RGB", (SIDE_PX, SIDE_PX), "white")
    PIL.ImageDraw.Draw(picture).text((24, 80), number, fill="black", font_size=72)
    data = encode_png(picture)
    return Image(f"data:image/png;base64,{pybase64.b64encode(data).decode()}", "image/png")


def _short(reply: Prediction) -> str:
    text = " ".join((reply.text or "").split())
    return repr(text if len(text) <= 24 else f"{text[:23]}…")


def _flags(model: ServedModel, address: str, probes: Sequence[Probe]) -> tuple[str, ...]:
    can = {probe.what for probe in probes if probe.ok}
    if "chat" not in can:
        return ()
    flags = [f"--model {model.name}", f"--base-url {address}"]
    if "streaming" in can:
        flags.append("--stream")
    if "at once" not in can:
        flags.append("--max-workers 1")
    if "likelihood" in can:
        flags.append("[--infer-method likelihood]")
    if "options" in can:
        flags.append("[--constrain options]")
    carried = next((probe.text.rpartition(" ")[2] for probe in probes if probe.what == "tools" and probe.ok), "")
    if carried:
        flags.append(f"[--tools zoom --carry {carried}]")
    return tuple(flags)
