"""Looking again: a question whose model may call tools, turn by turn, in all arms of it.

A `Talk` is one arm of one question: it reads a reply, does its calls and says what is asked next, or how it ended. It
depends on the replies alone, so a run that goes on replays stored turns and is where it was. All arms are one job: the
first turn is asked once, and they part where the first result is shown.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from ...core.config import convert
from ...core.errors import DataError, UsageError, not_among
from ...core.frames import read_frame
from ...core.ids import rng
from ...core.jobs import Ask, Item, RequestBuilder, Step, skip_after
from ...core.looks import (
    ANSWERED,
    BASE,
    CONTEXT,
    DETAIL,
    ELSEWHERE,
    FORCED,
    GOLD,
    HISTORY_REFUSED,
    NO_ANSWER,
    PICTURES,
    PLAIN,
    STOPPED,
    TOOLS_IGNORED,
    UNPARSED,
    Box,
    Look,
    LookEnd,
    arm_of,
    variant_of_arm,
)
from ...core.protocols import Capability, Inferencer
from ...core.tasks import Task
from ...core.types import (
    Failure,
    FailureKind,
    Image,
    Prediction,
    Request,
    Sample,
    ToolCall,
    TrialKey,
    Turn,
    Usage,
    Video,
)
from ...data.video.unfold import Film, open_film
from ...prompt.tool_results import Result, native_results
from .calls import holds_markup, read_arguments, read_text_calls
from .films import check_time, open_view, other_moment, shown_frames
from .standins import gold_box, stand_in
from .tools import TOOLS, Done, Terms, describe, run_calls
from .views import CallError, View
from .words import (
    DIALECTS,
    NATIVE,
    NOT_RUN,
    OTHERS_TOOLS,
    PRESETS,
    Preset,
    preset_tool,
    text_results,
    tool_text,
    with_system,
)
from .words import FORCED as FORCED_WORDS

REPEATS = 3
"""So often the same region is asked for until an answer is demanded."""
CALLS_A_TURN = 3
MOST_WAITING = 64
"""So many questions of one picture wait for another picture; a data set may have only one, or none."""
CONTEXT_LIMIT = re.compile(r"context (?:length|window|size)\D{0,30}?(\d[\d,]{2,})|max_model_len\D{0,20}(\d{3,})", re.I)
PICTURE_LIMIT = re.compile(
    r"(?:at most|up to|maximum(?: of)?|limit(?: is| of)?|exceeds?)\D{0,20}(\d+)?\D{0,30}image", re.I
)
HISTORY = re.compile(
    r"tool_call_id|tool_use_id|tool_result|tool_use|signature|thought_signature|role.{0,20}tool|tool.{0,20}role", re.I
)


class LookOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """A task's `infer_options`: which tools are offered, how calls are written, and when it ends."""

    tools: tuple[str, ...] = ("zoom",)
    dialect: str = "text"
    """`native`, `text`, or the name of a preset."""
    frame: str = "0-1000"
    max_turns: int = 6
    """Requests of a trial at most; the last one allows no calls."""
    max_looks: int = 12
    at_limit: str = "force"
    carry: str = "user"
    """Where a native result's picture stands: in the `tool` message, or in a `user` message after it."""
    longest: int = 2048
    """The longest side to which a region is enlarged: the model's own, where it is known."""
    context: int = 0
    """Tokens that fit the model, as its card says; 0: not known, so a refusal tells it."""
    pictures: int = 0
    """Pictures that a request may have, as the model's card says; 0: not known."""

    def __post_init__(self) -> None:
        known = {"dialect": DIALECTS, "at_limit": ("force", "stop"), "carry": ("user", "tool")}
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise UsageError(f"infer_options.{name}: {not_among(getattr(self, name), values)}")
        read_frame(self.frame)
        for tool in self.tools:
            if tool not in TOOLS:
                raise UsageError(f"--tools: {not_among(tool, TOOLS, ' is no tool')}")
        if self.max_turns < 2 or self.max_looks < 1 or not self.tools:
            raise UsageError("--tools needs a tool, --max-turns 2 or more and --max-looks 1 or more")
        if self.dialect in PRESETS and self.tools != ("zoom",):
            raise UsageError(f"--tool-dialect {self.dialect}: its one tool is `zoom`; leave the others out")


UNLIMITED = 10**9
NO_GOLD = "not asked: the row names no region for the arm gold; give it a column `box`, or leave the arm out"


class Learnt(Struct):
    """The limits of the server: what is known of them, and what refusals told, for all trials that follow."""

    pictures: int = UNLIMITED
    """So many pictures a request may have."""
    context: int = UNLIMITED
    """So many tokens a request and its reply may have together."""

    @classmethod
    def of(cls, options: LookOptions) -> Learnt:
        """Return the limits that are known before anything is asked."""
        return cls(options.pictures or UNLIMITED, options.context or UNLIMITED)


class Setup(NamedTuple):
    """What all talks of a task share."""

    options: LookOptions
    preset: Preset | None
    terms: Terms
    learnt: Learnt

    @classmethod
    def of(cls, options: LookOptions) -> Setup:
        """Return the set-up of some options; a preset brings its own terms and limits."""
        preset = PRESETS.get(options.dialect)
        if preset is None:
            return cls(options, None, Terms(options.frame, longest=options.longest), Learnt.of(options))
        own = {"max_turns": preset.max_turns or options.max_turns, "max_looks": preset.max_looks or options.max_looks}
        return cls(replace(options, **own), preset, preset.terms(options.longest), Learnt.of(options))

    @property
    def is_native(self) -> bool:
        """Tell whether calls are fields of a reply; else they stand in its text."""
        return self.options.dialect == NATIVE

    def open(self, request: Request) -> Request:
        """Return the first request: with the tools, or with a text that describes them."""
        tools = (preset_tool(self.preset),) if self.preset else describe(self.options.tools, self.terms)
        if self.is_native:
            return replace(request, tools=tools)
        return replace(request, messages=with_system(request.messages, tool_text(tools, self.preset)))


@dataclass(slots=True)
class Talk:
    """One arm of one question, from its first request to its end."""

    setup: Setup
    request: Request
    """What is asked next."""
    arm: str
    views: list[View]
    gold: Box | None = None
    other: Image | None = None
    seed: int = 0
    number: int = 0
    """The turn that is asked next."""
    films: Sequence[Film] = ()
    """The films of the question, of which frames may be asked for."""
    fresh: list[Look] = field(default_factory=list)
    """What the next request shows for the first time."""
    looks: list[Look] = field(default_factory=list)
    ended: Prediction | None = None
    _before: Request | None = None
    """The last request that was taken: where one with more in it is refused, it is asked again without calls."""
    _force: str = ""
    """Which end the next reply has: it is the last one."""
    _limit: str = ""
    _done: int = 0
    """Calls that were done; one may show several pictures."""
    _asked: int = 0
    """Pictures of the question, as they were sent."""
    _ahead: int = 0
    """Pictures of a request that are no views: frames of a film that goes out as a video, before all others."""
    _classes: Counter[str] = field(default_factory=Counter)
    _usage: list[Usage] = field(default_factory=list)
    _tokens: tuple[int, int] = (0, 0)
    _seconds: float = 0.0
    _shared: int = 0
    _foreign: int = 0

    def take(self, reply: Prediction) -> Prediction | None:
        """Take the reply to the request; return the trial's prediction where it ends, else there is a next request."""
        if reply.failure is not None:
            return self._refused(reply, reply.failure)
        self._count(reply)
        calls, said, hidden = self._read(reply)
        if hidden:
            self._classes["in-thought"] += hidden
        if not calls and not (hidden and not said.strip()):
            return self._end(reply, self._final(reply, said))
        if self._force:
            self._classes.update({"not-offered": len(calls)} if calls else {})
            return self._end(reply, NO_ANSWER)
        results = [self._answer(call, place) for place, call in enumerate(calls)]
        if hidden and not calls:
            results.append(Result("", "a call inside thinking is not run: write it after it"))
        return self._go_on(reply, calls, results)

    def share(self, reply: Prediction) -> None:
        """Take the first reply, which another arm has asked for and paid."""
        self.take(reply)
        self._shared, self._usage = 1, []

    def _count(self, reply: Prediction) -> None:
        if self.number == 0:
            self._asked = len(reply.images) or len(self.views)
            self._ahead = max(0, len(reply.images) - len(self.views)) if self.films else 0
        for view, sent in enumerate(reply.images[self._ahead : self._ahead + len(self.views)]):
            self.views[view] = self.views[view]._replace(sent=(sent.width, sent.height))
        if reply.usage is not None:
            self._usage.append(reply.usage)
            told = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
            self._tokens = self._tokens[0] + told[0], self._tokens[1] + told[1]
        self._foreign += int(reply.detail.get("foreign", 0))
        if reply.timing is not None:
            self._seconds += reply.timing.done - reply.timing.sent

    def _read(self, reply: Prediction) -> tuple[Sequence[ToolCall], str, int]:
        """Return the calls of a reply, its other text, and how many calls stand in its thinking."""
        text = reply.text or ""
        hidden = 1 if reply.reasoning and holds_markup(reply.reasoning) else 0
        if self.setup.is_native:
            return reply.calls, text, hidden
        read = read_text_calls(text, self.number)
        return read.calls, read.text, read.in_thought + hidden

    def _final(self, reply: Prediction, said: str) -> str:
        """Return how a reply without a call ends the trial."""
        if not said.strip():
            return NO_ANSWER
        if holds_markup(said, self._offered):
            return UNPARSED
        return self._force or ANSWERED

    def _answer(self, call: ToolCall, place: int) -> Result:
        """Do one call; whatever is wrong with it is told to the model and counted."""
        most = self.setup.preset.calls_a_turn if self.setup.preset else CALLS_A_TURN
        notes: tuple[str, ...] = ()
        try:
            if place >= most:
                raise CallError("too-many", NOT_RUN.format(most=most))
            name, arguments, notes = self._understood(call)
            done = run_calls(name, arguments, self.views, self.setup.terms, self.looks, films=self.films)
            if self.setup.preset:
                done = [self._in_its_words(one, self.setup.preset) for one in done]
        except CallError as error:
            self._classes[error.problem] += 1
            self._note(Look(self.number, call.name, call.id, problem=error.problem, told=str(error), notes=notes))
            return Result(call.id, f"Error: {error}")
        self._done += 1
        images = tuple(self._show(one, call, (place, part), notes) for part, one in enumerate(done) if one.view)
        if not images:
            self._note(replace(done[0].look, turn=self.number, call=call.id, notes=(*notes, *done[0].look.notes)))
        return Result(call.id, " ".join(one.look.told for one in done), images)

    def _in_its_words(self, done: Done, preset: Preset) -> Done:
        first = sum(view.first for view in self.views)
        return done._replace(look=replace(done.look, told=preset.told(done.look.shown, first)))

    def _show(self, done: Done, call: ToolCall, place: tuple[int, int], notes: tuple[str, ...]) -> Image | None:
        """Note one new picture of a call, and return it or what its arm shows instead."""
        look = replace(done.look, turn=self.number, call=call.id, notes=(*notes, *done.look.notes))
        view = done.view
        image = None if view is None else view.image
        if view is not None and image is not None and self.arm != BASE:
            named = place if place[1] else place[:1]
            draw = rng(self.seed, self.request.key.sample, self.request.key.repeat, self.number, *named, self.arm)
            other = other_moment(image, self.films, draw) if done.look.tool == "frame" else None
            image = stand_in(self.arm, view, self.gold, other or self.other, draw, first=next(iter(self.views), None))
        self.views += [view] if view is not None else []
        self._note(replace(look, image=image))
        return image

    def _note(self, look: Look) -> None:
        self.looks.append(look)
        self.fresh.append(look)

    @property
    def _offered(self) -> Mapping[str, str]:
        """Return the tools by the names under which they are offered."""
        preset = self.setup.preset
        return {preset.tool: "zoom"} if preset else {name: name for name in self.setup.options.tools}

    def _understood(self, call: ToolCall) -> tuple[str, dict[str, Any], tuple[str, ...]]:
        """Return the tool and the arguments of a call, and what was mended; refuse what cannot be understood."""
        if call.problem:
            raise CallError(call.problem, f"the call could not be read ({call.problem}): write it again")
        preset, offered = self.setup.preset, self._offered
        name = call.name.rpartition(".")[2].strip().lower()
        if name not in offered:
            kind = "not-offered" if name in OTHERS_TOOLS else "unknown-tool"
            raise CallError(kind, f"there is no tool {call.name[:60]!r}: {', '.join(offered)}")
        arguments, notes = read_arguments(call.arguments)
        if arguments is None:
            raise CallError("malformed", "the arguments are no JSON object")
        first = sum(view.first for view in self.views)
        notes = (*notes, *(("renamed",) if name != call.name else ()))
        return offered[name], preset.arguments(arguments, first) if preset else arguments, notes

    def _go_on(self, reply: Prediction, calls: Sequence[ToolCall], results: Sequence[Result]) -> Prediction | None:
        """Make the next request, or the last one where a limit is reached."""
        limit = self._reached()
        self._limit = self._limit or limit
        if limit and self.setup.options.at_limit == "stop":
            return self._end(reply, STOPPED)
        self._before, asked = self.request, self.request
        if self.setup.is_native:
            said = Turn("assistant", reply.text or "", calls=tuple(calls), kept=reply.kept)
            turns = [said, *native_results([one for one in results if one.ident], self.setup.options.carry)]
            turns += [Turn("user", one.told) for one in results if not one.ident]
        else:
            turns = [Turn("assistant", reply.text or ""), *text_results(results)]
        self.request = replace(asked, messages=(*asked.messages, *turns))
        self.number += 1
        full = self._full(reply)
        if full:
            self._step_back(full)
        elif limit:
            self._demand(FORCED)
        return None

    def _full(self, reply: Prediction) -> str:
        """Return which limit of the server the next request is sure to pass; empty: none that is known.

        Tokens are those that were counted: what new pictures take is not, so the last word is the server's.
        """
        learnt = self.setup.learnt
        if self._asked + sum(look.image is not None for look in self.looks) > learnt.pictures:
            return PICTURES
        usage, room = reply.usage, self.request.params.max_tokens or 0
        if usage is None or usage.input_tokens is None:
            return ""
        said = (usage.output_tokens or 0) - (usage.reasoning_tokens or 0)
        return CONTEXT if usage.input_tokens + max(0, said) + room > learnt.context else ""

    def _reached(self) -> str:
        """Return which limit the looks have reached; empty: none."""
        options = self.setup.options
        if self.number + 2 >= options.max_turns:
            return "max-turns"
        if sum(not look.problem for look in self.looks) >= options.max_looks:
            return "max-looks"
        return "repeat" if sum(look.problem == "repeat" for look in self.looks) >= REPEATS - 1 else ""

    def _demand(self, end: str) -> None:
        """Let the next turn be the last: it allows no calls."""
        self._force = end
        if self.setup.is_native:
            self.request = replace(self.request, choice="none")
        else:
            self.request = replace(self.request, messages=(*self.request.messages, Turn("user", FORCED_WORDS)))

    def _step_back(self, end: str) -> None:
        """Ask what was asked before once more, without calls: what came since does not fit."""
        self.request = self._before or self.request
        self._limit, self.fresh = end, []
        self._demand(end)

    def _refused(self, reply: Prediction, failure: Failure) -> Prediction | None:
        """Go on from a refusal that is a limit, else end the trial by it."""
        pictures = PICTURE_LIMIT.search(failure.message)
        context = failure.kind is FailureKind.TOO_LONG and pictures is None
        if (pictures or context) and self._before is not None and not self._force:
            if pictures and pictures[1]:
                self.setup.learnt.pictures = min(self.setup.learnt.pictures, int(pictures[1]))
            told = CONTEXT_LIMIT.search(failure.message) if context else None
            if told:
                limit = int((told[1] or told[2]).replace(",", ""))
                self.setup.learnt.context = min(self.setup.learnt.context, limit)
            self._step_back(CONTEXT if context else PICTURES)
            return None
        end = HISTORY_REFUSED if self.number and HISTORY.search(failure.message) else ""
        self.ended = replace(reply, detail={**reply.detail, DETAIL: self._told(end)}) if end else reply
        return self.ended

    def _end(self, reply: Prediction, end: str) -> Prediction:
        self.ended = replace(reply, usage=_sum(self._usage), detail={**reply.detail, DETAIL: self._told(end)})
        return self.ended

    def _told(self, end: str) -> dict[str, Any]:
        done = self._done
        calls = done + self._classes.total()
        classes = dict(sorted(self._classes.items()))
        told = LookEnd(end, self.number + 1, calls, done, classes, self._limit, round(self._seconds, 6), self._shared)
        return dict(msgspec.to_builtins(replace(told, tokens=self._tokens, foreign=self._foreign)))


def _sum(usages: Sequence[Usage]) -> Usage | None:
    """Return what several replies used together; of one it is its own."""
    if len(usages) <= 1:
        return usages[0] if usages else None
    columns = zip(*map(astuple, usages), strict=True)
    return Usage(
        *(None if all(one is None for one in column) else sum(one or 0 for one in column) for column in columns)
    )


class Drawn(NamedTuple):
    """What is known of a question before it is asked: its pictures as views, and what arms need."""

    views: list[View]
    gold: Box | None
    other: Image | None
    films: Sequence[Film] = ()


@dataclass(frozen=True, slots=True)
class LookJob:
    """One question in one variant and repeat, in all its arms."""

    task: Task
    item: Item
    variant: str
    repeat: int
    arms: tuple[str, ...]
    setup: Setup
    build: Callable[[Sample, str, int], Request]
    other: Image | None = None
    """Another sample's picture, for the arm `elsewhere`."""

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return a trial an arm."""
        return [self._key(arm) for arm in self.arms]

    def _key(self, arm: str) -> TrialKey:
        return TrialKey(self.task.name, self.item.sample.id, variant_of_arm(self.variant, arm), self.repeat)

    async def run(self, ask: Ask) -> None:
        """Ask the first turn for all arms, then each arm to its end; `plain` is a question without tools."""
        question = self.build(self.item.sample, self.variant, self.repeat)
        plain = await ask(self.item, replace(question, key=self._key(PLAIN))) if PLAIN in self.arms else None
        try:
            drawn = await asyncio.to_thread(self._look, question)
        except DataError as error:
            await self._fail(ask, question, Failure(FailureKind.DECODE, str(error)))
            return
        opened = self.setup.open(question)
        base = self._talk(opened, BASE, drawn)
        reply = await self._ask(ask, base, plain)
        others = [arm for arm in self.arms if arm not in (BASE, PLAIN)]
        if GOLD in others and drawn.gold is None:
            others.remove(GOLD)
            await self._leave_out(ask, GOLD, NO_GOLD)
        if base.ended is not None:
            await self._copy(ask, opened, base.ended, others)
            return
        for arm in others:
            talk = self._talk(opened, arm, drawn)
            talk.share(reply)
            await self._to_the_end(ask, talk)
        await self._to_the_end(ask, base)

    def _look(self, question: Request) -> Drawn:
        parts = [part for turn in question.messages for part in _pictured(turn)]
        films = [open_film(part) for part in parts if isinstance(part, Video)]
        apart = [film for film in films if film.video.showing.route != "frames"]
        if apart and len(apart) < len(parts):
            ref = apart[0].video.ref
            raise DataError(f"video {ref!r} goes out as a video beside pictures: with --tools show its frames")
        opened, views = iter(films), []
        for part in parts:
            views += shown_frames(next(opened)) if isinstance(part, Video) else [open_view(part)]
        for film in films if "frame" in self.setup.options.tools else ():
            check_time(film)
        gold = gold_box(self.item.sample, self.task.score_options, views[0].size) if views else None
        return Drawn(views, gold, self.other, films)

    def _talk(self, opened: Request, arm: str, drawn: Drawn) -> Talk:
        request = replace(opened, key=self._key(arm))
        views, seed = list(drawn.views), self.repeat
        return Talk(self.setup, request, arm, views, drawn.gold, drawn.other, seed, films=drawn.films)

    async def _ask(self, ask: Ask, talk: Talk, plain: Prediction | None = None) -> Prediction:
        """Ask the next turn; where the tools changed nothing of the first prompt's length, they were ignored."""

        taken = False

        def take(reply: Prediction) -> Prediction | None:
            nonlocal taken
            taken, final = True, talk.take(reply)
            ignored = final is not None and plain is not None and talk.number == 0 and _tools_ignored(plain, reply)
            if final is None or not ignored:
                return final
            detail = {**final.detail, DETAIL: {**final.detail.get(DETAIL, {}), "end": TOOLS_IGNORED}}
            talk.ended = replace(final, detail=detail)
            return talk.ended

        fresh, talk.fresh = talk.fresh, []
        reply = await ask(self.item, talk.request, turn=Step(talk.number, fresh, take))
        if not taken:  # whoever only tries a job need not know of turns
            take(reply)
        return reply

    async def _to_the_end(self, ask: Ask, talk: Talk) -> None:
        while talk.ended is None:
            await self._ask(ask, talk)

    async def _copy(self, ask: Ask, opened: Request, final: Prediction, arms: Sequence[str]) -> None:
        """Settle the other arms: without a call nothing differs between them; a failure fails all."""
        keys = [self._key(arm) for arm in arms]
        if final.failure is not None:
            await skip_after(ask, [final], [(self.item, key) for key in keys])
            return
        for key in keys:
            told = {**final.detail.get(DETAIL, {}), "shared": 1}
            copy = replace(final, key=key, cached=True, detail={**final.detail, DETAIL: told})
            await ask(self.item, replace(opened, key=key), copy)

    async def _leave_out(self, ask: Ask, arm: str, why: str) -> None:
        """Store an arm that this question cannot have as not asked: it is in no figure."""
        key = self._key(arm)
        await ask(self.item, Request(key, ()), Prediction(key, failure=Failure(FailureKind.SKIPPED, why, attempts=0)))

    async def _fail(self, ask: Ask, question: Request, failure: Failure) -> None:
        for arm in self.arms:
            if arm != PLAIN:
                key = self._key(arm)
                await ask(self.item, replace(question, key=key), Prediction(key, failure=failure))


def _pictured(turn: Turn) -> Sequence[Image | Video]:
    """Return the pictures and videos of a message, in the order shown."""
    if not turn.parts:
        return turn.images
    return [turn.images[part] if isinstance(part, int) else part for part in turn.parts if not isinstance(part, str)]


def _tools_ignored(plain: Prediction, reply: Prediction) -> bool:
    """Tell whether the first prompt is as long with tools as without: a chat template that drops them says nothing."""
    if plain.usage is None or reply.usage is None or reply.calls:
        return False
    first, second = plain.usage.input_tokens, reply.usage.input_tokens
    return first is not None and first == second


class LookAgain(Inferencer):
    """Asks a question with tools, turn by turn."""

    needs = frozenset({Capability.GENERATE, Capability.IMAGES})

    def read_options(self, task: Task) -> LookOptions:
        """Check the task's options by name."""
        return convert(task.infer_options, LookOptions, f"infer_options of task {task.name!r}")

    def plan(self, task: Task, items: Iterable[Item], prompter: RequestBuilder) -> Iterator[LookJob]:
        """Yield a job for every sample × variant × repeat, with all arms of it."""
        setup = Setup.of(self.read_options(task))
        arms: dict[str, list[str]] = {}
        for name in task.variants:
            arm, variant = arm_of(name)
            arms.setdefault(variant, []).append(arm)
        for item, other in with_others(items) if ELSEWHERE in chain(*arms.values()) else zip(items, repeat(None)):
            for variant, of_variant in arms.items():
                for number in range(task.repeats):
                    build = prompter.build
                    yield LookJob(task, item, variant, number, tuple(of_variant), setup, build, other)


def with_others(items: Iterable[Item]) -> Iterator[tuple[Item, Image | None]]:
    """Yield each item with a picture that is not its own: of a sample before it, or at the beginning of a later one."""
    waiting: deque[Item] = deque()
    known: list[Image] = []
    for item in items:
        first = item.sample.images[:1]
        known = [*(one for one in known if one.ref != first[0].ref), *first][-2:] if first else known
        waiting.append(item)
        while waiting and ((other := _not_of(waiting[0], known)) is not None or len(waiting) > MOST_WAITING):
            yield waiting.popleft(), other
    yield from zip(waiting, repeat(None))


def _not_of(item: Item, known: Sequence[Image]) -> Image | None:
    """Return the last of these pictures whose file the item does not show."""
    own = {image.ref for image in item.sample.images}
    return next((image for image in reversed(known) if image.ref not in own), None)


LOOK = LookAgain()
