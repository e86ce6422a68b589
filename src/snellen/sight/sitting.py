"""All tests of an exam as one job of the engine: rounds side by side, needs respected, every trial stored."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ..core.errors import SnellenError
from ..core.ids import content_hash, rng, sha256_hex
from ..core.jobs import Ask, Item
from ..core.text import shorten_quote
from ..core.types import Form, Image, Params, Prediction, Request, Sample, TrialKey, Turn
from ..engine.limits import LimitReached, Limits
from ..scoring.scorers.replies import answer_text
from .adaptive import AdaptiveTest, RunningTest
from .advice import advised_recipe, bound_words, result_words, say
from .drift import judge_drift, late_count, trials_to_repeat
from .exam_scorer import read_outcome
from .exam_trials import BLANK, EASY, Outcome, Planned
from .plate import Bench, Card, EyeTest, Reading, Stimulus, encode_detail
from .procedure import CEILING, FLOOR, Drawn, Rules, bound_of, rules_for
from .recipe_round import RecipePage, RecipeTest
from .result import result_of_both, threshold_result
from .special import fixed_kind, resolution_result

PREFIX = "exam-"
"""How the tasks of an exam are named in its run."""
PROBE = 1
COLOUR_LEAST = {"quick": 64, "standard": 160, "fine": 320}
"""An ellipse has more to tell than one threshold."""
PAGE_MOST = {"quick": 24, "standard": 48, "fine": 96}
"""A page of thousands of characters takes as long as many rows, and one line of 40 tells as much as several."""
OBLONG_NARROWER = 0.8
"""Oblong canvases alone tell a limit of the short side from one of the area: their intervals are made narrower."""


class Order(NamedTuple):
    """What an exam is made of: everything that changes its pictures and questions."""

    tests: Mapping[str, EyeTest]
    mode: str
    seed: int
    half_width: float | None = None
    params: Params = Params(temperature=0.0)
    max_tokens: int | None = None
    """Instead of what the cards say."""


class Notebook(Protocol):
    """Where plans are kept before the first request of a round, and found again."""

    def meta(self, key: str) -> Any:
        """Return what was kept, or None."""
        ...

    def put_meta(self, key: str, value: Any) -> None:
        """Keep it."""
        ...


class ExamListeners(NamedTuple):
    """Who hears of an exam: of every trial before it is asked, and of every test after each of its rounds."""

    trial: Callable[[Sample], None] | None = None
    test: Callable[[str, str], None] | None = None
    """Gets the name of a test and what is known of it."""
    round: Callable[[int], None] | None = None
    """Gets how many trials the next round has."""


no_listeners = ExamListeners()
CUT_SHORT = "interrupted before it was settled"
FIRST_EACH = 4
"""So many trials of every test are asked before the rest, which is asked once one reply of them holds an answer."""
FIRST_LEAST = 32
"""Fewer first trials than this end nothing: few tests are soon asked, and each says itself that it got no answer."""


class Stored(NamedTuple):
    """What an exam that was begun before left: its samples, and which of them have their reply."""

    samples: Mapping[tuple[str, str], Sample] = {}
    answered: Collection[tuple[str, str]] = frozenset()


class FirstReplies:
    """Holds an exam back until one reply holds an answer; where none of the first does, the rest is never asked."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._open = asyncio.Event()
        self._left = dict.fromkeys(tests, FIRST_EACH)
        """How many first trials of each test may still leave."""
        self._due = dict(self._left)
        """How many of them have not come back; a test that has ended or taken a round owes none."""
        self._silent = 0
        self.words = ""
        """Why the exam ends here; empty while it does not."""
        if len(tests) * FIRST_EACH < FIRST_LEAST:
            self._open.set()

    async def admit(self, test: str) -> None:
        """Wait until a trial may be asked, or raise that none is any more."""
        if not self._open.is_set() and self._left.get(test, 0):
            self._left[test] -= 1
            return
        await self._open.wait()
        if self.words:
            raise LimitReached(self.words.partition(";")[0])

    def note(self, test: str, outcome: Outcome) -> None:
        """Hear what came of a trial."""
        if self._open.is_set():
            return
        if outcome.reading is not None and outcome.reading.answer is not None:
            self._open.set()
            return
        self._silent += outcome.reading is not None
        self.pass_on(test, owed=max(0, self._due.get(test, 0) - 1), unread=outcome.unread)

    def pass_on(self, test: str, *, owed: int = 0, unread: str = "") -> None:
        """Note that a test owes so many first replies; when none does, go on or end."""
        self._due[test] = owed
        if self._open.is_set() or any(self._due.values()):
            return
        if self._silent >= FIRST_LEAST:
            told = f"; one is “{unread}”" if unread else ""
            self.words = f"none of the first {self._silent} replies holds an answer{told}"
        self._open.set()


class Sitting:
    """One exam while it is sat. A round is asked whole or not at all: its new trials are reserved within the limits."""

    def __init__(
        self,
        order: Order,
        folder: Path,
        notebook: Notebook,
        stored: Stored,
        *,
        limits: Limits | None = None,
        listeners: ExamListeners = no_listeners,
    ) -> None:
        self.order, self.folder, self._notebook, self._stored = order, folder, notebook, stored
        self._limits, self._listeners = limits or Limits(), listeners
        self._problem: SnellenError | None = None
        self.started: dict[str, RunningTest] = {name: self._running(name, test) for name, test in order.tests.items()}
        self._again: dict[str, AdaptiveTest] = {}
        """Tests that are sat a second time. The first stays in `started`: what it tells others must not change."""
        self.results: dict[str, dict[str, Any]] = {}
        self.ended = ""
        """Why the exam ended before all was asked; empty when it did not."""
        self.drift: dict[str, Any] | None = None
        """Whether levels that were asked early went otherwise at the end; None where none was asked again."""
        self.replanned = 0
        """Rounds whose stored plan differs from what would be planned now; the stored one was used."""
        self._done = {name: asyncio.Event() for name in order.tests}
        self._ready = {name: asyncio.Event() for name in self._first}
        at_once = (name for name, test in order.tests.items() if not test.card.needs)
        self._first_replies = FirstReplies([name for name in at_once if not isinstance(order.tests[name], RecipePage)])

    @property
    def _first(self) -> list[str]:
        """Return the threshold tests that need no other: their easy trials are the barrier."""
        return [name for name, test in self.order.tests.items() if not test.card.needs and self._is_threshold(name)]

    def _is_threshold(self, name: str) -> bool:
        return isinstance(self.started[name], AdaptiveTest)

    @property
    def resolution(self) -> dict[str, Any] | None:
        """Return how pictures are shrunk, from what the canvases tell."""
        tests = self.order.tests.items()
        canvases = {name: test.card.canvas for name, test in tests if name.startswith("resolution-")}
        return resolution_result(self.results, canvases)

    @property
    def keys(self) -> Sequence[TrialKey]:
        """Return no keys: which trials there will be depends on the replies."""
        return [TrialKey(PREFIX, "not known before it is asked")]

    async def run(self, ask: Ask) -> None:
        """Sit all tests side by side, each in its rounds; what stopped one is raised when all have ended.

        Then some early levels are asked once more, all tests at once, and last of all the recipe that follows.
        """
        last = [name for name, running in self.started.items() if isinstance(running, RecipeTest)]
        await asyncio.gather(*(self._sit(name, ask) for name in self.started if name not in last))
        await self._repeat_early(ask)
        for name in last:
            await self._sit(name, ask)
        if self._problem is not None:
            raise self._problem

    def _running(self, name: str, test: EyeTest) -> RunningTest:
        mode, seed = self.order.mode, self.order.seed
        kind = fixed_kind(test)
        if kind is not None:
            places = kind.places(test)
            return kind.made(name, test, seed, places=places, trials=kind.trials[mode] if kind.trials else places)
        rules = rules_of_test(name, test.card, mode, self.order.half_width)
        return AdaptiveTest(name, test, seed, rules, blanks=mode != "quick")

    async def _sit(self, name: str, ask: Ask) -> None:
        running = self.started[name]
        try:
            with self._stopping():
                if await self._prepare(running):
                    await self._ask_rounds(running, ask)
                    if isinstance(running, AdaptiveTest) and not running.consistent:
                        self._again[name] = running.again()
                        await self._ask_rounds(self._again[name], ask)
        except LimitReached as reached:
            running.reason = str(reached)
        except asyncio.CancelledError:
            running.reason = running.reason or CUT_SHORT
            raise
        finally:
            self.results[name] = self._result(name)
            self._say(name, result_words(self.results[name]))
            self._done[name].set()
            self._first_replies.pass_on(name)
            if name in self._ready:
                self._ready[name].set()

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Keep why an exam ends early; an error is raised when the others have ended their rounds, which count."""
        try:
            yield
        except LimitReached as reached:
            self.ended = self._first_replies.words or str(reached)
            raise
        except SnellenError as error:
            self._problem, self.ended = self._problem or error, str(error)
            raise LimitReached(str(error)) from error

    async def _repeat_early(self, ask: Ask) -> None:
        """Ask levels of early trials again, now that all is over, and tell whether the model moved meanwhile."""
        started = {name: one for name, one in self.started.items() if isinstance(one, AdaptiveTest)}
        measured = [name for name, running in started.items() if running.ready and not running.reason]
        if measured:
            self._say("drift", f"asks early levels of {len(measured)} tests again")
        await asyncio.gather(*(self._repeat(name, started[name], len(measured), ask) for name in measured))
        self.drift = judge_drift(started, self.order.seed)
        for name, told in (self.drift or {"tests": {}})["tests"].items():
            self.results[name] = self._result(name) | {"drift": told}

    async def _repeat(self, name: str, running: AdaptiveTest, tests: int, ask: Ask) -> None:
        count = late_count(tests, rows=running.grid.glyphs > 1)
        early = trials_to_repeat(running.outcomes, count, running.rules.batch)
        planned = running.plan_late(early, self._again.get(name))
        with suppress(LimitReached), self._stopping():
            if planned:
                running.take_late(await self._ask_planned(running, planned, ask))

    def _say(self, name: str, words: str) -> None:
        if self._listeners.test is not None:
            self._listeners.test(name, words)

    async def _prepare(self, running: RunningTest) -> bool:
        """Wait for what a test needs and set its bench; False where that was not found."""
        if isinstance(running, RecipeTest):
            running.recipe = advised_recipe(self.results, self.resolution)
            running.together = float(self.results.get("acuity", {}).get("rho", 0.0))
            if running.recipe is not None:
                wide, tall = running.recipe.part_px
                self._say(running.name, f"asks {len(running.plan())} pictures of {wide:,} × {tall:,} px, the last ones")
            return running.recipe is not None
        for needed in self.order.tests[running.name].card.needs:
            await self._done[needed].wait()
            found = self.results[needed]
            bench = bench_of(found, exact=self.order.tests[running.name].card.plate == "field")
            if bench is None:
                running.reason = f"needs {needed}, which is {found['verdict']}"
                return False
            running.bench = bench
        return True

    async def _ask_rounds(self, running: RunningTest, ask: Ask) -> None:
        waited = False
        while True:
            if isinstance(running, AdaptiveTest) and running.ready is not None and not waited:
                await self._share_lapses(running)
                waited = True
            planned = running.plan()
            if not planned:
                return
            running.take(await self._ask_planned(running, planned, ask))
            self._first_replies.pass_on(running.name)
            self._say(running.name, so_far(running))

    async def _ask_planned(self, running: RunningTest, planned: list[Planned], ask: Ask) -> list[Outcome]:
        """Ask a round as it was first written down, once the limits allow it."""
        planned = self._kept_plan(running, planned)
        await self._reserve(running, planned)
        self._notebook.put_meta(_plan_key(running, planned), planned)
        try:
            return await self._ask_round(running, planned, ask)
        finally:
            self._limits.end_round(PREFIX + running.name)

    async def _reserve(self, running: RunningTest, planned: Sequence[Planned]) -> None:
        """Reserve the new trials of a round, or raise why it may not be asked; one that is all stored always may."""
        task = PREFIX + running.name
        new = sum((task, self._ident(running, one)) not in self._stored.answered for one in planned)
        if new and self._problem is not None:
            raise LimitReached(str(self._problem))
        if new:
            await self._limits.reserve_round(task, new)

    async def _share_lapses(self, running: AdaptiveTest) -> None:
        """The one barrier: lapses are known when all tests that wait for nothing have been easy once."""
        if running.name in self._ready:
            self._ready[running.name].set()
        for event in self._ready.values():
            await event.wait()
        others = [self.started[name] for name in self._ready if name != running.name]
        easy = [reading for other in others for reading in _easy_readings(other)]
        running.share_lapses(sum(1.0 - reading.right for reading in easy), float(len(easy)))

    def _kept_plan(self, running: RunningTest, planned: list[Planned]) -> list[Planned]:
        """Return a round as it was written down before it was first asked; where it never was, as it is planned now."""
        kept = self._notebook.meta(_plan_key(running, planned)) if planned else None
        if kept is None:
            return planned
        stored = msgspec.convert(kept, list[Planned])
        self.replanned += stored != planned
        return stored

    async def _ask_round(self, running: RunningTest, planned: Sequence[Planned], ask: Ask) -> list[Outcome]:
        """Ask a round side by side; outcomes come back in the order of the plan."""
        if self._listeners.round is not None:
            self._listeners.round(len(planned))
        return list(await asyncio.gather(*(self._ask_one(running, one, ask) for one in planned)))

    async def _ask_one(self, running: RunningTest, planned: Planned, ask: Ask) -> Outcome:
        test = self.order.tests[running.name]
        task = PREFIX + running.name
        ident = self._ident(running, planned)
        sample = self._stored.samples.get((task, ident))
        if sample is None or not _kept(sample):
            sample = await asyncio.to_thread(self._draw, running, planned, ident)
        await self._first_replies.admit(running.name)
        if self._listeners.trial is not None:
            self._listeners.trial(sample)
        params = msgspec.structs.replace(self.order.params, max_tokens=self.order.max_tokens or test.card.max_tokens)
        turn = Turn("user", sample.question, sample.images)
        words = test.card.answers
        request = Request(TrialKey(task, ident), (turn,), params, marks=words, shown=words)
        prediction = await ask(Item(planned.round * 1000 + planned.index, sample), request)
        outcome = outcome_of(test, planned, sample, prediction)
        self._first_replies.note(running.name, outcome)
        return outcome

    def _ident(self, running: RunningTest, planned: Planned) -> str:
        digest = content_hash([running.name, self.order.seed, msgspec.to_builtins(planned), list(running.bench)], 8)
        return f"{planned.round:02d}-{planned.index:02d}-{digest}"

    def _draw(self, running: RunningTest, planned: Planned, ident: str) -> Sample:
        """Draw a stimulus and keep its pictures under the hash of their bytes."""
        test = self.order.tests[running.name]
        draw = rng(self.order.seed, running.name, ident, "stimulus")
        stimulus = self._stimulus(test, running.bench, planned, draw)
        question = test.ask(stimulus, planned.wording, rng(self.order.seed, running.name, ident, "question"))
        tags: dict[str, str | int | float | bool | None] = {
            "level": float(f"{stimulus.level:.6g}"),
            "stage": planned.stage,
            "wording": planned.wording,
        }
        meta = {"test": running.name, "planned": msgspec.to_builtins(planned), "detail": encode_detail(stimulus.detail)}
        return Sample(
            ident,
            PREFIX + running.name,
            Form.OPEN,
            question,
            images=tuple(self._keep(picture, stimulus.mime) for picture in stimulus.pictures),
            answers=(stimulus.truth,) if stimulus.truth else (),
            tags=tags,
            meta=meta,
        )

    @staticmethod
    def _stimulus(test: EyeTest, bench: Bench, planned: Planned, draw: Any) -> Stimulus:
        blank = test.blank(draw, bench) if planned.stage == BLANK else None
        return blank or test.draw(planned.level, planned.answer, draw, bench)

    def _keep(self, picture: bytes, mime: str) -> Image:
        digest = sha256_hex(picture)
        folder = self.folder / "stimuli"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{digest[:24]}.{mime.rpartition('/')[2]}"
        if not path.is_file():
            fresh = path.with_suffix(f".{digest[-8:]}.new")
            fresh.write_bytes(picture)
            fresh.replace(path)
        return Image(str(path.resolve()))

    def _result(self, name: str) -> dict[str, Any]:
        running = self.started[name]
        if isinstance(running, AdaptiveTest):
            second = self._again.get(name)
            return threshold_result(running) if second is None else result_of_both(running, second)
        kind = fixed_kind(self.order.tests[name])
        assert kind is not None  # noqa: S101 - there is no third kind of test
        return kind.result(running, self.results)


def _plan_key(running: RunningTest, planned: Sequence[Planned]) -> str:
    return f"exam/{running.name}/{planned[0].round}"


def bench_of(found: Mapping[str, Any], *, exact: bool) -> Bench | None:
    """Return what a test is drawn by, from the one it needs; None where that found nothing.

    At ceiling, the bound serves: letters of that height are surely read. A field is drawn at the threshold itself.
    """
    at_ceiling = found["verdict"] == CEILING and not exact
    half = found["bound"] if at_ceiling else found["value"]
    if half is None:
        return None
    far = min(found["x95_upper90"] or half, 3 * half)
    return Bench(half, max(half, far), max(1.5, found["slope"]), found["lapse"])


def rules_of_test(name: str, card: Card, mode: str, half_width: float | None = None) -> Rules:
    """Return how long a test is asked: by its mode, more for an ellipse and oblong canvases, less for pages."""
    rules = rules_for(mode, rows=card.glyphs > 1, half_width=half_width)
    if name == "colour":
        return rules._replace(least=COLOUR_LEAST[mode], confirm=0)
    if card.plate == "page":
        return rules._replace(most=PAGE_MOST[mode])
    if name.startswith("resolution-"):  # no advice rests on where 95 % is right there
        oblong = card.canvas[0] != card.canvas[1]
        width = rules.half_width * (OBLONG_NARROWER if oblong else 1.0)
        return rules._replace(half_width=width, confirm_most=rules.confirm)
    return rules


def outcome_of(test: EyeTest, planned: Planned, sample: Sample, prediction: Prediction) -> Outcome:
    """Return what came of a trial; what the store holds of it is all that is needed."""
    level, truth = float(str(sample.tags["level"])), sample.answers[0] if sample.answers else ""
    detail = sample.meta["detail"]
    reading, why = read_outcome(test, truth, detail, prediction)
    if reading is not None and not all(map(math.isfinite, (reading.right, reading.guess))):
        reading, why = None, "the test read no finite number"
    tokens = prediction.usage.input_tokens if prediction.usage is not None else None
    silent = reading is not None and reading.answer is None
    unread = shorten_quote(answer_text(prediction) or "") if silent else ""
    return Outcome(planned, level, reading, truth, detail, why, tokens, unread)


def so_far(running: RunningTest) -> str:
    """Return what is known of a test while it goes on."""
    asked = f"{len(running.outcomes)} trials"
    if not isinstance(running, AdaptiveTest) or running.belief is None:
        return asked
    known, card, grid = running.grid.known(running.belief), running.test.card, running.grid
    axis = Drawn(grid.low, grid.end)
    beyond = CEILING if known.high[0] < grid.low else FLOOR if known.low[0] > grid.end else ""
    bound = bound_of(beyond, known, axis)
    if bound is not None:
        return f"{asked}, {bound_words(beyond, card.axis.level(bound), card.unit)} so far"
    low, high = sorted((card.axis.level(float(known.low[0])), card.axis.level(float(known.high[0]))))
    return f"{asked}, half at {say(low)} – {say(high)} {card.unit} so far"


def _easy_readings(running: RunningTest) -> list[Reading]:
    """Return the first easy trials of a test of single answers that was found ready."""
    if not isinstance(running, AdaptiveTest) or not running.ready or running.grid.glyphs > 1:
        return []
    first = [outcome for outcome in running.outcomes if outcome.planned.round == 0 and outcome.planned.stage == EASY]
    return [outcome.reading for outcome in first if outcome.reading is not None]


def _kept(sample: Sample) -> bool:
    """Tell whether the pictures of a stored sample are still there; if not, they are drawn again, the same."""
    return all(Path(image.ref).is_file() for image in sample.images)
