"""One test from its first easy trials to its verdict: what to ask next, given all outcomes so far. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..stats.intervals import Floats
from ..stats.psychometric import OTHER_LAWS, right_share
from ..stats.threshold_grid import (
    CORRELATIONS,
    FAR_SURE,
    FAR_SURE_CONFIRMED,
    FINE_SLOPES,
    LAPSES,
    SLOPES,
    Belief,
    Known,
    Places,
    ThresholdGrid,
    across_laws,
    flat_evidence,
    log_evidence,
    shared_lapses,
)
from .exam_trials import (
    BLANK,
    CONFIRM,
    EASY,
    LATE,
    SEARCH,
    WORDINGS,
    Outcome,
    Planned,
    balanced,
    count_glyphs,
    count_trials,
    generator,
    wordings_of,
)
from .plate import Bench, EyeTest, Reading
from .procedure import (
    FAR_OPEN,
    MEASURED,
    OPEN,
    Drawn,
    Rules,
    Taken,
    beyond_taken,
    bound_of,
    confirming_places,
    finished,
    first_places,
    is_ready,
    next_places,
    round_size,
    still_open,
    verdicts,
    within_taken,
)

DRAWS = 2000


def compare_with_expected(
    grid: ThresholdGrid, belief: Belief, places: Places, right: float, draw: np.random.Generator
) -> tuple[float, float, float]:
    """Return the share right, the share expected, and how often chance is as far off: both sides, from draws."""
    mass = np.exp(belief[0] - belief[0].max())
    chosen = draw.choice(mass.size, DRAWS, p=(mass / mass.sum()).ravel())
    threshold, inner, correlation = np.unravel_index(chosen, mass.shape)
    reach = grid.x_of(places)[None, :] - grid.thresholds[threshold][:, None]
    slope, lapse = SLOPES[inner // LAPSES.size][:, None], LAPSES[inner % LAPSES.size][:, None]
    share = right_share(np.asarray(reach, np.float64), slope, grid.guess_at(places), lapse)
    share = np.clip(share, 1e-6, 1 - 1e-6)
    rho = (CORRELATIONS if grid.glyphs > 1 else CORRELATIONS[:1])[correlation][:, None]
    weight = (1 - rho) / np.maximum(rho, 1e-3)
    drawn = np.where(rho > 0, draw.beta(share * weight, (1 - share) * weight), share)
    counts = draw.binomial(grid.glyphs, drawn).sum(1)
    below, above = float(np.mean(counts <= right)), float(np.mean(counts >= right))
    total = places.size * grid.glyphs
    return right / total, float(counts.mean()) / total, min(1.0, 2 * min(below, above))


BLANKS = 4
NOT_CONSISTENT = 0.01
"""Confirming trials that chance takes so far off so rarely do not agree with what went before."""
MOSTLY = 0.75
"""This share of replies about a neighbour is a habit; who guesses between two pictures gets half."""
LEAST_IN_WORDING = 6
"""Fewer trials than this in one wording tell nothing of it."""
FULLY_READY = 0.85
"""This share of easy trials right: go on at once; between that and `is_ready` so many more are asked first."""


class RunningTest(Protocol):
    """A test while it is sat."""

    name: str
    bench: Bench
    outcomes: list[Outcome]
    reason: str
    """Why it ended without a figure, where it did."""

    def plan(self) -> list[Planned]:
        """Return the next round; none when it is over."""
        ...

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from a round, in the order of its trials."""
        ...


class Settled(NamedTuple):
    """What a threshold test found; `known` is None where nothing was learnt."""

    verdict: str
    known: Known | None
    gradual: bool
    retest_right: float
    retest_expected: float
    retest_chance: float
    """How often the confirming trials would come out this far from what was expected; 1 without any."""
    bound: float | None = None
    """x that it is surely better than (at ceiling) or worse than (not measurable)."""
    drawn: Drawn | None = None


class AdaptiveTest:
    """Readiness, a spread first round, rounds where they tell most, and trials that confirm."""

    def __init__(self, name: str, test: EyeTest, seed: int, rules: Rules, *, blanks: bool) -> None:
        card = test.card
        axis = card.axis
        low, high = axis.x(card.hardest), axis.x(card.easiest)
        self.name, self.test, self.seed, self.rules = name, test, seed, rules
        self.grid = _grid(test, low, high)
        self.bench = Bench()
        self.outcomes: list[Outcome] = []
        self.reason = ""
        self.ready: bool | None = None
        """None until the easy trials have told."""
        self.wordings: tuple[int, ...] = tuple(range(min(WORDINGS, len(card.wordings))))
        self._blanks = BLANKS if blanks else 0
        self._round = 0
        self._attempt = 0
        self.belief: Belief | None = None
        self._lapses: Floats | None = None
        self._before: Belief | None = None
        self._over = False
        self.repeated: list[Outcome] = []
        """The early trials that were asked again at the end, in the order of the late ones."""

    @property
    def easy(self) -> list[Outcome]:
        """Return the easy trials that count."""
        return [outcome for outcome in self.counted if outcome.planned.stage == EASY]

    @property
    def counted(self) -> list[Outcome]:
        """Return the trials that the fit is made of."""
        kept = (outcome for outcome in self.outcomes if outcome.reading is not None)
        allowed = [outcome for outcome in kept if outcome.planned.wording in self.wordings]
        return [outcome for outcome in allowed if outcome.planned.stage != BLANK]

    def share_lapses(self, wrong: float, trials: float) -> None:
        """Take over what the easy trials of other tests tell of lapses; rows of glyphs keep to their own."""
        if self.grid.glyphs == 1 and trials:
            self._lapses = shared_lapses(np.array([wrong]), np.array([trials]))

    def plan(self) -> list[Planned]:
        """Return the next round."""
        if self._over:
            return []
        if self.ready is None:
            return self._plan_easy()
        if self.belief is None:
            self.belief = self.learn(self.grid, self.counted)
        draw = generator(self.seed, self.name, self._round, "levels")
        asked = sum(outcome.planned.stage != BLANK for outcome in self.outcomes)
        known = self.grid.known(self.belief)
        if self._before is not None:
            return self._plan_confirming(self.settle().known or known)
        searched = any(outcome.planned.stage == SEARCH for outcome in self.outcomes)
        if searched and (finished(known, asked, self.rules)[0] or beyond_taken(self.grid, known, self.taken)):
            return self._plan_confirming(known)
        if searched:
            turn = range(asked, asked + int(round_size(known, asked, self.rules)[0]))
            places = next_places(self.grid, self.belief, turn, self.rules, draw)[0]
        else:
            places = first_places(self.grid, self.rules.batch, 1, draw)[0]
        return self._planned(SEARCH, [float(x) for x in self.grid.x_of(within_taken(places, self.taken))])

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from a round; one that failed whole ends the test, unless all of it was harder than what is taken."""
        self.outcomes += outcomes
        self._round += 1
        if outcomes and all(outcome.reading is None for outcome in outcomes) and not self._too_hard(outcomes):
            self._end(f"all {len(outcomes)} trials of a round failed: {outcomes[-1].failure}")
        elif self.ready is None:
            self._judge_readiness()
        elif self.belief is not None:
            if outcomes and outcomes[0].planned.stage == CONFIRM and self._before is None:
                self._before = self.belief
            self.belief = self.learn(self.grid, [o for o in outcomes if o.reading], self.belief)
            if self._before is not None:
                self._over = not self._far_is_open()

    @property
    def taken(self) -> Taken | None:
        """Return the limit of a server that answered up to some level and nothing harder; None where none was met."""
        failed = [self._place(outcome) for outcome in self.outcomes if outcome.reading is None]
        if not failed:
            return None
        answered = min((self._place(outcome) for outcome in self.outcomes if outcome.reading is not None), default=-1)
        beyond = [place for place in failed if place < answered]
        return Taken(answered, max(beyond)) if beyond else None

    def _too_hard(self, outcomes: Sequence[Outcome]) -> bool:
        return self.taken is not None and all(self._place(one) <= self.taken.refused for one in outcomes)

    def _place(self, outcome: Outcome) -> int:
        return self.grid.place_of(self.test.card.axis.x(outcome.planned.level))

    @property
    def consistent(self) -> bool:
        """Tell whether the confirming trials came out as expected; so it is without any."""
        return self._retest()[2] >= NOT_CONSISTENT

    def again(self) -> AdaptiveTest:
        """Return the test to be sat once more: its rounds go on counting, so that its stimuli are others."""
        anew = AdaptiveTest(self.name, self.test, self.seed, self.rules, blanks=False)
        anew.bench, anew._round = self.bench, self._round
        return anew

    def plan_late(self, early: Sequence[Outcome], after: AdaptiveTest | None) -> list[Planned]:
        """Return trials at the levels that were planned early, to be drawn anew; `after` is the second sitting."""
        self._round = after._round if after else self._round
        self.repeated, axis = list(early), self.test.card.axis
        return self._planned(LATE, [axis.x(outcome.planned.level) for outcome in early])

    def take_late(self, outcomes: Sequence[Outcome]) -> None:
        """Keep the late trials: what is said at the end counts them too."""
        self.outcomes += outcomes
        self._round += 1

    def settle(self, *, laws: bool = True) -> Settled:
        """Return what is known now, on a finer grid; of rows the level of 95 % goes over several laws, if wanted."""
        counted = self.counted
        if self.ready is not True or not any(outcome.planned.stage == SEARCH for outcome in counted):
            return Settled(OPEN if self.ready is not False else "not measurable", None, False, 0.0, 0.0, 1.0)
        fine = final_grid(self.grid)
        belief = self.learn(fine, counted)
        confirmed = sum(outcome.planned.stage == CONFIRM for outcome in counted)
        # a few rows tell little of the law; single trials are asked by the dozen
        sure = far_sure(confirmed=confirmed > (self.rules.confirm if self.grid.glyphs > 1 else 0))
        known = fine.known(belief, sure)
        if laws and self.grid.glyphs > 1:
            known = across_laws(known, [(grid, self.learn(grid, counted)) for grid in laws_of(self.grid)], sure)
        right = np.array([[min(o.reading.right, o.reading.glyphs) for o in counted if o.reading]])
        glyphs = np.full(right.shape, self.grid.glyphs)
        odds = flat_evidence(right, glyphs, self.grid.guess, self.grid.glyphs) - log_evidence(belief)
        drawn = self._drawn(counted)
        verdict = verdicts(known, odds, drawn)[0]
        if still_open(verdict, known, drawn, self.rules.half_width):
            verdict = OPEN
        bound = bound_of(verdict, known, drawn)
        return Settled(verdict, known, bool(known.slope[0] < 2.5), *self._retest(), bound, drawn)

    def _drawn(self, counted: Sequence[Outcome]) -> Drawn:
        places = [self.test.card.axis.x(outcome.level) for outcome in counted]
        return Drawn(min(places), max(places))

    def by_wording(self) -> dict[int, tuple[float, float, float]]:
        """Return x of the threshold and its 95 % interval in each wording that was asked often enough to tell."""
        told = {}
        for wording in self.wordings:
            own = [outcome for outcome in self.counted if outcome.planned.wording == wording]
            if len(own) >= LEAST_IN_WORDING:
                known = self.grid.known(self.learn(self.grid, own))
                told[wording] = float(known.middle[0]), float(known.low[0]), float(known.high[0])
        return told

    def _plan_easy(self) -> list[Planned]:
        easiest = self.grid.end
        planned = self._planned(EASY, [easiest] * self.rules.easy)
        if self._attempt == 0 and self._blanks:
            blanks = self._planned(BLANK, [easiest] * self._blanks, first=len(planned))
            planned = [*planned, *blanks]
        return planned

    def _plan_confirming(self, known: Known) -> list[Planned]:
        settled = self.settle(laws=False).verdict
        if not self.rules.confirm or settled != MEASURED:
            self._over = True
            return []
        hardest = self.taken.answered if self.taken else 0
        places = np.maximum(confirming_places(self.grid, known, self.rules)[0], hardest)
        return self._planned(CONFIRM, [float(x) for x in self.grid.x_of(places)])

    def _far_is_open(self) -> bool:
        """Tell whether more rows should confirm: the bound that advice rests on is still far from its median."""
        confirmed, known = sum(o.planned.stage == CONFIRM for o in self.outcomes), self.settle().known
        if confirmed + self.rules.confirm > self.rules.confirm_most or known is None:
            return False
        return bool(known.far[0] < self.grid.end and known.far_bound[0] - known.far[0] > FAR_OPEN)

    def _planned(self, stage: str, places: Sequence[float], first: int = 0) -> list[Planned]:
        purpose = (self.seed, self.name, self._round, stage)
        answers = balanced(self.test.card.answers, len(places), *purpose)
        wordings = wordings_of(len(places), self.wordings, *purpose)
        level = self.test.card.axis.level
        return [
            Planned(stage, self._round, first + number, round(level(x), 6), answer, wording)
            for number, (x, answer, wording) in enumerate(zip(places, answers, wordings, strict=True))
        ]

    def _judge_readiness(self) -> None:
        easy = self.easy
        right = sum(o.reading.right for o in easy if o.reading)
        tried = sum(o.reading.glyphs for o in easy if o.reading)
        rounds = len(easy) / self.rules.easy
        if right >= FULLY_READY * tried or (rounds > 1.5 and is_ready(right, tried)):
            self.ready = True
        elif rounds > 1.5 or right < 0.6 * tried:
            self._try_again()
        self._attempt += 1

    def _try_again(self) -> None:
        """Begin again with the wording that went best; a second failure is the verdict."""
        if len(self.wordings) > 1:
            shares = {wording: _share_right(self.easy, wording) for wording in self.wordings}
            self.wordings = (max(shares, key=lambda wording: (shares[wording], -wording)),)
            # what was asked in this wording stays; the next round is all in it
            return
        self.ready = False
        every = [outcome for outcome in self.outcomes if outcome.planned.stage == EASY]
        self._end(easy_words(every, self.grid.glyphs))

    def _end(self, reason: str) -> None:
        self.reason = reason
        self._over = True

    def learn(self, grid: ThresholdGrid, outcomes: Sequence[Outcome], belief: Belief | None = None) -> Belief:
        """Return a belief after some outcomes, in their order; without one, beginning from the prior."""
        belief = grid.start(1, self._lapses) if belief is None else belief
        axis = self.test.card.axis
        for outcome in outcomes:
            reading = outcome.reading
            if reading is None:
                continue
            x = axis.x(outcome.level)
            place = grid.place_of(x)
            usual = abs(reading.guess - self.test.chance(outcome.level)) < 1e-9 and reading.glyphs == grid.glyphs
            if usual and abs(float(grid.x_of(np.array([place]))[0]) - x) < 0.011:
                belief = grid.learn(belief, np.array([place]), np.array([reading.right]))
            else:
                belief = grid.learn_at(belief, x, reading.right, reading.glyphs, reading.guess)
        return belief

    @property
    def retested(self) -> list[Outcome]:
        """Return the first trials that confirm: what came before expects something of them, and of no later ones."""
        confirming = [outcome for outcome in self.counted if outcome.planned.stage == CONFIRM]
        return [outcome for outcome in confirming if outcome.planned.round == confirming[0].planned.round]

    def _retest(self) -> tuple[float, float, float]:
        """Return the share right of the confirming trials, what was expected, and how far off that is by chance."""
        confirming = self.retested
        if not confirming or self._before is None:
            return 0.0, 0.0, 1.0

        places = np.array([self.grid.place_of(self.test.card.axis.x(o.level)) for o in confirming])
        right = sum(o.reading.right for o in confirming if o.reading)
        return compare_with_expected(self.grid, self._before, places, right, generator(self.seed, self.name, "re-test"))


def easy_words(easy: Sequence[Outcome], glyphs: int) -> str:
    """Return how the easy trials went: right of what was said; the credit of chance is nobody's answer."""
    trials, said = count_trials(easy), [o.reading for o in easy if o.reading and o.reading.answer is not None]
    if not said:
        unread = next((f"; one reply is “{one.unread}”" for one in easy if one.unread), "")
        return f"none of {trials.no_answer} trials got an answer when it is easy{unread}"
    told = count_glyphs(easy, glyphs) if glyphs > 1 else trials
    rows = f" in {len(said)} rows" if glyphs > 1 else ""
    unsaid = f", {trials.no_answer} trials without an answer" if trials.no_answer else ""
    return f"{told.right} of {glyphs * len(said)}{rows} right when it is easy{unsaid}{beside_words(said)}"


def beside_words(said: Sequence[Reading]) -> str:
    """Return a hint where most replies give the line or the picture next to the one asked for; else nothing."""
    beside = sum(bool(one.detail.get("slip")) or abs(one.detail.get("swap", 0)) == 1 for one in said)
    if beside < MOSTLY * len(said):
        return ""
    return f"; {beside} of {len(said)} replies are of the one beside what was asked for: does it count from 0?"


def final_grid(grid: ThresholdGrid) -> ThresholdGrid:
    """Return the finer grid that figures are taken from; rows keep their slopes, their tables are six times larger."""
    slopes = FINE_SLOPES if grid.glyphs == 1 else SLOPES
    return grid.refined(1, slopes)


def laws_of(grid: ThresholdGrid) -> list[ThresholdGrid]:
    """Return a grid for every law that readers may have: rows tell laws apart a little, single trials do not."""
    return [grid, *(grid.under(law) for law in OTHER_LAWS)]


def far_sure(*, confirmed: bool) -> float:
    """Return how probable the bound of where 95 % is right must be, so that it holds in about nine of ten."""
    return FAR_SURE_CONFIRMED if confirmed else FAR_SURE


def _grid(test: EyeTest, low: float, high: float) -> ThresholdGrid:
    card = test.card
    guess = test.chance(card.easiest)
    levels = round((high - low) / 0.02) + 1
    by_level = np.array([test.chance(card.axis.level(low + 0.02 * place)) for place in range(levels)])
    same = bool(np.all(np.abs(by_level - guess) < 1e-12))
    return ThresholdGrid(low, high, guess, card.glyphs, guesses=None if same else by_level)


def _share_right(outcomes: Sequence[Outcome], wording: int) -> float:
    own = [o.reading for o in outcomes if o.reading is not None and o.planned.wording == wording]
    return sum(reading.right / reading.glyphs for reading in own) / len(own) if own else 0.0
