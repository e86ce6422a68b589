"""A server and a route to a verdict: are its log-probabilities those of the tokens they stand at?

The server continues a fixed prompt greedily. The values of its own words, and of rivals it names for the first of them,
are known from that; scored as continuations they must be the same. Text does not always come back as the tokens it was
made of (special tokens, bytes, spaces), so only tokens known to be the same are compared, and values that a neighbour's
could pass for prove nothing (docs/adr/likelihood.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ...core.types import Request, TrialKey, Turn
from . import logprob_routes as routes
from .logprob_calls import LogprobCalls
from .logprob_routes import CHAT, NUMBERED, Token

PROBE = Request(
    TrialKey("probe", "probe"), (Turn("user", "What colour is the sky on a clear day? Answer in a few words."),)
)
PROBE_TOKENS = 8
RIVALS = 6
"""How many rivals of the first word are scored at most."""
TAIL = " and so on"
"""Stands after each rival: a value that belongs to the token after it is found out, too."""
ENOUGH = 3
"""How many values must agree before a route is believed, if there are as many to compare."""
TOLERANCE, TOLERANCE_SHARE = 0.3, 0.05
"""Two runs of one server in half precision differ by less; a value that belongs to another token differs by more."""
UNHEARD = "the server gives no log-probabilities of what it generates, so nothing can be checked"


class Verdict(NamedTuple):
    """What is wrong with a route, or nothing; `is_open`: it could be neither proved nor disproved."""

    problem: str = ""
    is_open: bool = False


class Pair(NamedTuple):
    """The value of one token as generated and as scored."""

    name: str
    generated: float
    scored: float

    @property
    def agrees(self) -> bool:
        """Tell whether both are one value, computed twice."""
        return is_near(self.generated, self.scored)


async def judge_scores(calls: LogprobCalls, route: str) -> Verdict:
    """Test a route that scores continuations: the server's own words first, then rivals of the first of them."""
    text, words, tops = await calls.say(PROBE, route, PROBE_TOKENS)
    if not words or any(word.logprob is None for word in words):
        return Verdict(UNHEARD)
    prompt = await calls.prompt(PROBE, {}, route)
    spoken = compare(words, (await calls.continued(PROBE, {}, route, prompt, text)).tokens) if text else []
    firsts = spoken[:1]
    rivals = plain_rivals([token for top in tops[:1] for token in top if token.name != words[0].name], route)
    while not _is_decided(spoken, firsts) and rivals:
        rival = rivals.pop(0)
        firsts += compare([rival], (await calls.continued(PROBE, {}, route, prompt, rival.name + TAIL)).tokens)
    return _conclude(spoken, firsts, text)


def _is_decided(spoken: Sequence[Pair], firsts: Sequence[Pair]) -> bool:
    pairs = {*spoken, *firsts}
    return any(not pair.agrees for pair in pairs) or (len(pairs) >= ENOUGH and tells_apart(spoken, firsts))


def _conclude(spoken: Sequence[Pair], firsts: Sequence[Pair], text: str) -> Verdict:
    for pair in (*spoken, *firsts):
        if not pair.agrees:
            values = f"{pair.generated:.2f} as generated and {pair.scored:.2f} as scored"
            return Verdict(f"not aligned: {pair.name!r} has {values}")
    if tells_apart(spoken, firsts):
        return Verdict()
    if not spoken and not firsts:
        return Verdict(f"not to be tested: its own words {text!r} and their rivals are scored as other tokens", True)
    return Verdict(f"not to be tested: the values of {text!r} are too alike to tell a token from its neighbour", True)


def compare(generated: Sequence[Token], scored: Sequence[Token]) -> list[Pair]:
    """Return the values of the tokens both begin with; what follows a difference stands after other words."""
    pairs = []
    for token, again in zip(generated, scored, strict=False):
        if not token.is_same(again):
            break
        pairs.append(Pair(token.name, token.logprob or 0.0, again.logprob or 0.0))
    return pairs


def tells_apart(spoken: Sequence[Pair], firsts: Sequence[Pair]) -> bool:
    """Tell whether a server that is off by one would have been found out by these values.

    Each of its words would have the value of the one before, and all that stand in the first place the same value.
    """
    values = [pair.generated for pair in spoken]
    steps = any(not is_near(value, before) for before, value in pairwise(values))
    places = [pair.generated for pair in firsts]
    return steps or (len(places) > 1 and max(places) - min(places) > 2 * margin(min(places)))


def is_near(value: float, reference: float) -> bool:
    """Tell whether two log-probabilities may be one, computed twice."""
    return abs(value - reference) <= margin(min(value, reference))


def margin(value: float) -> float:
    """Return how far a log-probability may lie from its like: more for rare tokens, whose logits are cut coarser."""
    return TOLERANCE + TOLERANCE_SHARE * abs(value)


def plain_rivals(top: Sequence[Token], route: str) -> list[Token]:
    """Return tokens whose text should come back as that token: the least likely, the likeliest, the second least, …

    The farther their values lie apart, the more they prove.
    """
    names = [token.name for token in top]
    single = [token for token in top if _is_plain(token) and names.count(token.name) == 1]
    trimmed = [token for token in single if route == CHAT and token.name != token.name.strip()]  # a template may
    return [*_from_both_ends([token for token in single if token not in trimmed]), *_from_both_ends(trimmed)][:RIVALS]


def _from_both_ends(tokens: Sequence[Token]) -> list[Token]:
    rising = sorted(tokens, key=lambda token: token.logprob or 0.0)
    pairs = zip(rising, reversed(rising), strict=True)
    return list(dict.fromkeys(token for ends in pairs for token in ends))


def _is_plain(token: Token) -> bool:
    name, is_special = token.name, token.name.startswith(("<", "[", NUMBERED))
    has_value = token.logprob is not None and bool(name.strip())
    return has_value and name.isprintable() and "\ufffd" not in name and not is_special


async def judge_letters(calls: LogprobCalls) -> Verdict:
    """Test the first tokens of an answer: the first must begin the text and be the likeliest of its list."""
    text, tokens, tops = routes.read_generated(await calls.chat(routes.letters_request(PROBE), {}))
    if not tokens or not tops or not tops[0]:
        return Verdict("top_logprobs are ignored")
    best = max(tops[0], key=lambda token: token.logprob if token.logprob is not None else -1e9)
    first = tokens[0]
    is_likeliest = (best.logprob or 0.0) <= (first.logprob or 0.0) + TOLERANCE
    if text.strip().startswith(first.name.strip()) and is_likeliest:
        return Verdict()
    return Verdict(f"not aligned: {text!r} begins with {first.name!r}, likeliest is {best.name!r}")
