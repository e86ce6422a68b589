"""A plan to the tokens and the money it will take, before the first request: each figure with what it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import islice, starmap
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..core.builtins import is_shipped, parts_of
from ..core.errors import DataError, SnellenError, UsageError
from ..core.jobs import Ask, Item, Job, Step
from ..core.process import run_to_end
from ..core.protocols import Capability, ImagePolicy, Inferencer, Model
from ..core.registry import Registry
from ..core.text import MESSAGE_TOKENS, text_tokens
from ..core.types import Form, Image, Prediction, Request, Sample, Usage
from ..data.images.decode import Header, read_header, read_stamped
from ..data.images.encode import open_picture, prepare, target_size, with_margin
from ..data.images.frames import png_size
from ..data.video.unfold import REELS, sized
from ..engine.request_videos import has_videos, unfold_videos_now
from ..engine.state import RunState
from ..infer.generate import GENERATE
from ..model.options import Served
from ..model.served.model_card import ASSUMED, FoundCard, ModelCard, PictureTokens
from ..model.served.prices import Prices, Tokens, batch_terms, money
from ..store.reader import RunReader
from .chosen_model import find_card
from .plan import Plan, PlannedTask, jobs_of
from .settings import RunSettings

TRIED = 100
"""Requests that are looked at; the others are taken to be like them."""
READ = 2_000
"""Samples among whose jobs they are spread."""


def try_jobs(
    planned: PlannedTask, registry: Registry, forced_route: str | None = None
) -> tuple[list[tuple[Sample, Request]], int]:
    """Return some requests as they would be sent if all answers were right, and of how many trials they are.

    Candidates are scored by the first way a server may be asked, or by the one that is named.
    """
    items = list(islice(starmap(Item, enumerate(planned.dataset)), READ))
    jobs = list(jobs_of(planned, items, registry))
    trials = sum(len(job.keys) for job in jobs)
    step = max(1, trials // TRIED)
    return run_to_end(_try_all(jobs[::step] if step < len(jobs) else jobs[:1], forced_route))


async def _try_all(jobs: list[Job], forced_route: str | None) -> tuple[list[tuple[Sample, Request]], int]:
    sent: list[tuple[Sample, Request]] = []
    ask = _unasked(sent, forced_route)
    for job in jobs:
        await job.run(ask)
    return sent, sum(len(job.keys) for job in jobs)


def _unasked(sent: list[tuple[Sample, Request]], forced_route: str | None) -> Ask:
    """Return what notes a request and answers it as a model that is right would."""

    from ..model.served.logprob_routes import LETTERS, calls_of, fitting_routes

    async def ask(
        item: Item,
        request: Request,
        settled: Prediction | None = None,
        *,
        keep: bool = True,
        turn: Step | None = None,
    ) -> Prediction:
        if settled is not None:
            return settled
        if request.choices:
            route = next(iter(fitting_routes(request, forced_route)), LETTERS)
            sent.extend((item.sample, call) for call in calls_of(request, route))
            return _scored(item.sample, request)
        sent.append((item.sample, request))
        reply = Prediction(request.key, text=_right(item.sample, request))
        if turn is not None:
            turn.settle(reply)
        return reply

    return ask


def _scored(sample: Sample, request: Request) -> Prediction:
    """Return values by which the right candidate is the likeliest, with the details that jobs look at."""
    values = [-1.0 if choice in sample.answers else -2.0 for choice in request.choices]
    counts = [1] * len(values)
    detail = {"tokens": counts, "bytes": counts, "token_logprobs": [[value] for value in values], "prompt_logprobs": []}
    return Prediction(request.key, loglikelihoods=tuple(values), detail=detail)


def _right(sample: Sample, request: Request) -> str:
    answer = sample.answers[0] if sample.answers else ""
    if answer in request.shown and len(request.marks) == len(request.shown):
        return request.marks[request.shown.index(answer)]
    return answer


VIDEOS_LOOKED_AT = 8
"""Of samples with videos fewer are looked at: each has to be read through to know its frames."""
REMEMBERED = 500
"""Stored replies of a run that is continued, of which the tokens of the next are taken."""
ANSWER_TOKENS = {Form.CHOICE: 8, Form.MULTIPLE: 10, Form.YESNO: 4, Form.NUMBER: 6}
"""A short answer in tokens; of other forms `LONG_ANSWER`."""
LONG_ANSWER = 40
READ_OFF = frozenset((Form.OCR, Form.KIE, Form.PARSE))
"""Forms whose reply is the right answer, more or less: as long as that."""
RESIZING = ("crop:", "scale:", "fit:", "region:", "resize:", "turn:")
"""Edits after which a picture has another size."""


class Expected(NamedTuple):
    """What one trial takes on average, in tokens."""

    text: float
    pictures: float
    output: float | None
    """None: it is not known how much a model that thinks will write, and nothing limits it."""
    basis: str
    unreadable: int = 0
    """Pictures whose size could not be read; they are not in `pictures`."""
    crowded: int = 0
    """Prompts that show more pictures than the model's card says it takes."""

    @property
    def input(self) -> float:
        """Return all that is sent."""
        return self.text + self.pictures


class Turns(NamedTuple):
    """How a trial with several turns grows: each request holds all before it."""

    most: int
    """Requests of a trial at most."""
    first: float
    """Input tokens of the longest first request."""
    added: float
    """By so many tokens a request is longer than the one before it at most: a reply, its crops, their words."""

    @property
    def last(self) -> float:
        """Return the input tokens of the last request at most."""
        return self.first + (self.most - 1) * self.added

    @property
    def all(self) -> float:
        """Return the input tokens of all requests together at most."""
        return self.most * (self.first + self.last) / 2


class TaskEstimate(NamedTuple):
    """One task: what is still to be asked, and what a trial takes; None where that cannot be told."""

    name: str
    left: int
    expected: Expected | None
    most_output: int | None
    """The token limit of a reply."""
    turns: Turns | None = None
    """Of a task with tools; `expected` is then a trial of one turn, the least."""


class CostEstimate(NamedTuple):
    """What a run will take."""

    tasks: list[TaskEstimate]
    found: FoundCard
    prices: Prices | None
    billed: bool = False
    """Whether the model is one that somebody may bill: served, or with a price."""
    share: float = 1.0
    """The part of the prices that is paid by the way it is asked: less in batches."""

    def tokens(self, *, most: bool = False) -> Tokens | None:
        """Return the tokens of all that is left, or with every reply as long as it may be; None if not known."""
        total = Tokens()
        for one in self.tasks:
            if not one.left:
                continue
            output = one.most_output if most else one.expected and one.expected.output
            if one.expected is None or output is None:
                return None
            turns = one.turns if most else None
            total.input += math.ceil(one.left * (turns.all if turns else one.expected.input))
            total.output += math.ceil(one.left * output * (turns.most if turns else 1))
        return total

    def cost(self, *, most: bool = False) -> float | None:
        """Return the money of `tokens`; None where tokens or prices are not known."""
        tokens = self.tokens(most=most)
        return None if tokens is None or self.prices is None else self.share * self.prices.cost(tokens)

    @property
    def dearest(self) -> float:
        """Return what one request of the dearest task is expected to cost; where turns grow, its last one at most."""
        if self.prices is None:
            return 0.0
        each = [
            (one.turns.last, one.most_output or 0) if one.turns else (one.expected.input, one.expected.output or 0)
            for one in self.tasks
            if one.expected is not None
        ]
        costs = (self.prices.cost(Tokens(math.ceil(given), 0, math.ceil(made))) for given, made in each)
        return max(costs, default=0.0)


def estimate_run(plan: Plan, settings: RunSettings) -> CostEstimate:
    """Return what is left of a plan in tokens and money."""
    found, prices = find_prices(plan.model, settings)
    if plan.model.identity().get("base_url") is None and prices is None:  # a model of this machine has no bill
        return CostEstimate([TaskEstimate(one.task.name, one.trials, None, None) for one in plan.tasks], found, None)
    tasks = [_estimate_task(planned, plan, settings, found) for planned in plan.tasks]
    share = prices.batch_share if prices and settings.batch else None
    return CostEstimate(tasks, found, prices, billed=True, share=1.0 if share is None else share)


def find_prices(model: Model, settings: RunSettings) -> tuple[FoundCard, Prices | None]:
    """Return what is known of a model where it is served, and its prices: those of `--price`, else of its card."""
    found = find_card(model, settings)
    prices = found.prices(settings.price)
    if prices is not None:
        share = batch_terms()[model.batches].share if isinstance(model, Served) and model.batches else None
        prices = msgspec.structs.replace(prices, batch_share=share)
    return found, prices


def _estimate_task(planned: PlannedTask, plan: Plan, settings: RunSettings, found: FoundCard) -> TaskEstimate:
    stored, usages = _remembered(plan.folder, planned.task.name)
    limit = planned.task.params.max_tokens
    left = planned.trials if settings.fresh else max(0, planned.trials - stored)
    if _is_scored(planned, plan):
        limit = None  # a token is generated with each score, whatever replies may have
    if usages:
        return TaskEstimate(planned.task.name, left, _measured(usages), limit)
    looked_at, trials = _looked_at(planned, plan, settings) if left else ([], 0)
    if not trials:
        return TaskEstimate(planned.task.name, left, None, limit)
    growth = next((target for _, target in parts_of(planned.task, "turns", plan.registry)), None)
    count = len(looked_at) if growth else trials  # what goes on by turns: each trial has one request at least
    expected = _expect(planned, plan, settings, found, looked_at=looked_at, count=count)
    turns = growth(planned, plan, found, looked_at) if growth else None
    return TaskEstimate(planned.task.name, left, expected, limit, turns)


def longest_request(request: Request, plan: Plan, card: ModelCard, formula: PictureTokens) -> float:
    """Return the tokens of a request as a model's card counts them."""
    text = sum(text_tokens(turn.text, card.characters_per_token) + MESSAGE_TOKENS for turn in request.messages)
    schema = sum(len(msgspec.json.encode(tool)) / 3 for tool in request.tools)
    sizes = [size_as_sent(image, plan.model.image_policy) for turn in request.messages for image in turn.images]
    return text + schema + sum(map(formula.count, filter(None, sizes)))


def _is_scored(planned: PlannedTask, plan: Plan) -> bool:
    """Tell whether candidates are scored instead of replies written."""
    inferencer: Inferencer = plan.registry.get("inferencer", planned.task.infer)
    return Capability.LIKELIHOOD in inferencer.needs


def _looked_at(planned: PlannedTask, plan: Plan, settings: RunSettings) -> tuple[list[tuple[Sample, Request]], int]:
    """Return some requests and of how many trials they are; none where it is not known how a trial is asked."""
    inferencer: Inferencer = plan.registry.get("inferencer", planned.task.infer)
    if inferencer is GENERATE:
        looked_at = list(_some_requests(planned, plan.model))
        return looked_at, len(looked_at)
    if not is_shipped("inferencer", planned.task.infer):
        return [], 0
    return try_jobs(planned, plan.registry, settings.model_arguments.get("likelihood"))


def _remembered(folder: Path, task: str) -> tuple[int, list[Usage]]:
    """Return how many trials of a task are stored, and the tokens of some of them."""
    if not (folder / "run.db").exists():
        return 0, []
    with suppress(SnellenError), RunReader(folder) as reader:  # whatever is wrong with it is said when it is opened
        count = next(reader.rows("SELECT COUNT(*) FROM predictions WHERE task = ?", (task,)))[0]
        usages = (trial.prediction.usage for trial in islice(reader.trials(task), REMEMBERED))
        known = [one for one in usages if one and one.input_tokens is not None and one.output_tokens is not None]
        return count, known
    return 0, []


def _measured(usages: Sequence[Usage]) -> Expected:
    given, out = (sum(getattr(one, f"{kind}_tokens") or 0 for one in usages) for kind in ("input", "output"))
    pictures = sum(one.visual_tokens or 0 for one in usages)
    count = len(usages)
    basis = f"measured on {count:,} stored replies"
    return Expected((given - pictures) / count, pictures / count, out / count, basis)


def _expect(
    planned: PlannedTask,
    plan: Plan,
    settings: RunSettings,
    found: FoundCard,
    *,
    looked_at: Sequence[tuple[Sample, Request]],
    count: int,
) -> Expected:
    card = found.card or ModelCard(plan.model.name)
    formula, letters = card.pictures or ASSUMED, card.characters_per_token
    turns = [turn for _, request in looked_at for turn in request.messages]
    sizes = [size_as_sent(image, plan.model.image_policy) for turn in turns for image in turn.images]
    pictures = sum(map(formula.count, filter(None, sizes)))
    text = sum(text_tokens(turn.text, letters) + MESSAGE_TOKENS for turn in turns)
    told = _formula_words(formula, sizes)
    how, reply = "replies by their form", _reply_of(planned, settings, card, looked_at)
    if _is_scored(planned, plan):
        how, reply = _scored_by(len(looked_at) / count, settings), usual_reply(looked_at, letters)
    basis = f"rough estimate from {len(looked_at):,} prompts; {told}, text by its length, {how}"
    replies = None if reply is None else reply * len(looked_at) / count
    return Expected(text / count, pictures / count, replies, basis, sizes.count(None), _crowded(looked_at, card))


def _reply_of(
    planned: PlannedTask, settings: RunSettings, card: ModelCard, looked_at: Sequence[tuple[Sample, Request]]
) -> float | None:
    """Return the tokens of a reply; None where a model thinks and nothing limits it."""
    return (
        planned.task.params.max_tokens if _thinks(settings, card) else usual_reply(looked_at, card.characters_per_token)
    )


def _scored_by(calls: float, settings: RunSettings) -> str:
    """Say how many requests score a trial; a server that tells only the likeliest letters is asked once."""
    named = settings.model_arguments.get("likelihood")
    fewer = ", fewer if the server gives only letters" if named is None and settings.candidates == "letters" else ""
    return f"{calls:g} requests a trial to score its candidates{fewer}"


def _crowded(looked_at: Sequence[tuple[Sample, Request]], card: ModelCard) -> int:
    """Return how many prompts show more pictures than the model takes."""
    shown = (sum(len(turn.images) for turn in request.messages) for _, request in looked_at)
    return 0 if card.max_images is None else sum(number > card.max_images for number in shown)


def _formula_words(formula: PictureTokens, sizes: Sequence[object]) -> str:
    return f"pictures by {formula.kind} ({formula.mark or 'on the card'})" if sizes else "no pictures"


def _thinks(settings: RunSettings, card: ModelCard) -> bool:
    """Tell whether replies are longer than their answers, as was asked for or as the card says."""
    if settings.reasoning is not None:
        return settings.reasoning != "off"
    return bool(card.thinks)


def usual_reply(looked_at: Sequence[tuple[Sample, Request]], letters: float | None = None) -> float:
    """Return how many tokens a reply has, on average: its form says so, and what is read off says it of itself."""

    def tokens(sample: Sample, request: Request) -> float:
        usual: float = ANSWER_TOKENS.get(sample.form, LONG_ANSWER)
        if sample.form in READ_OFF and sample.answers:
            usual = 1 + max(text_tokens(answer, letters) for answer in sample.answers)
        return min(usual, request.params.max_tokens or usual)

    return sum(tokens(*pair) for pair in looked_at) / max(1, len(looked_at))


def _some_requests(planned: PlannedTask, model: Model) -> Iterator[tuple[Sample, Request]]:
    """Yield prompts as they will be sent, spread over samples and variants."""
    variants = planned.task.variants
    for number, sample in enumerate(_examples(planned)):
        request = planned.prompter.build(sample, variants[number % len(variants)])
        with suppress(DataError):  # a video that cannot be read fails when it is asked about
            request = unfold_videos_now(request, model, rough=True).request if has_videos(request) else request
        yield sample, request


def _examples(planned: PlannedTask) -> Sequence[Sample]:
    examples = planned.survey.examples
    return examples[:: max(1, len(examples) // VIDEOS_LOOKED_AT)] if planned.survey.videos else examples


def size_as_sent(image: Image, policy: ImagePolicy) -> tuple[int, int] | None:
    """Return width and height after edits and the model's policy; None where the picture cannot be read from here."""
    if ":" in image.ref[:6] and not image.ref.startswith("data:"):
        return None
    try:
        if image.frame is not None and not image.frame.still and not image.edits:
            film = sized(REELS.of_file(image.ref, scenes=False), image.frame.side)
            return with_margin(target_size(Header("image/jpeg", film.width, film.height, "RGB", True), policy), policy)
        if any(edit.startswith(RESIZING) for edit in image.edits):
            sent = prepare(open_picture(image, None), image, policy).sent
            return sent.width, sent.height
        header = _header_of(image)
    except DataError:
        return None
    return with_margin(target_size(header, policy), policy)


def _header_of(image: Image) -> Header:
    """Return a picture's header; a PNG's is taken at its word, which is near enough here: it is checked when sent."""
    size = png_size(image.ref) if image.frame is None and ":" not in image.ref[:6] else None
    return Header("image/png", *size, "RGB", True) if size else read_header(read_stamped(image)[0], image.ref)


OLD_DAYS = 90


def describe_cost(plan: Plan, estimate: CostEstimate) -> Iterator[str]:
    """Say tokens and money of what is left, what they rest on, and what is not known."""
    if not estimate.billed:
        yield f"model {plan.model.name}; run folder {plan.folder}"
        return
    tokens = estimate.tokens()
    most = estimate.found.card.max_images if estimate.found.card else None
    for one in estimate.tasks:
        if one.expected is not None and one.left:
            yield from _describe_task(one.name, one.expected, most)
    if not any(one.left for one in estimate.tasks):
        about = "nothing is left to ask"
    elif tokens is not None:
        about = f"about {tokens.input:,} input and {tokens.output:,} output tokens"
    else:
        about = f"tokens not estimated ({_why_not(estimate)})"
    yield f"model {plan.model.name}; {about}; run folder {plan.folder}"
    yield from _describe_money(estimate)


def short_cost(estimate: CostEstimate) -> Iterator[str]:
    """Say tokens and money of what is left, without what they rest on."""
    if not estimate.billed or not any(one.left for one in estimate.tasks):
        return
    tokens = estimate.tokens()
    known = tokens is not None and f"about {tokens.input:,} input and {tokens.output:,} output tokens"
    yield known or f"tokens not estimated ({_why_not(estimate)})"
    yield from list(_describe_money(estimate))[:1]


def _describe_task(name: str, expected: Expected, most: int | None) -> Iterator[str]:
    yield f"  {name}: {_each(expected.text, expected.pictures)}; {expected.basis}"
    if expected.unreadable:
        yield f"  {name}: {expected.unreadable} pictures could not be measured and are not in it"
    if expected.crowded:
        yield f"  {name}: {expected.crowded} prompts show more than the {most} pictures the model takes"


def _each(text: float, pictures: float) -> str:
    return f"{text:,.0f} tokens of text and {pictures:,.0f} of pictures a trial"


def _why_not(estimate: CostEstimate) -> str:
    silent = [one.name for one in estimate.tasks if one.left and one.expected is None]
    if silent:
        return f"{', '.join(silent)}: not one request a trial"
    return "a model that thinks writes as much as it likes; --max-tokens limits it"


def _describe_money(estimate: CostEstimate) -> Iterator[str]:
    prices, cost, most = estimate.prices, estimate.cost(), estimate.cost(most=True)
    if prices is None:
        if estimate.found.card is not None or " is of " in estimate.found.where:
            yield f"no price is known: {estimate.found.where}; give it by --price IN,OUT"
        return
    if cost is not None:
        ceiling = f", at most {money(most, prices.currency)} if every reply reaches its limit" if most else ""
        batched = f", in batches at {estimate.share:g} of the price" if estimate.share != 1.0 else ""
        yield f"about {money(cost, prices.currency)}{ceiling}{batched} ({describe_prices(prices)})"
    else:
        yield f"cost not estimated ({describe_prices(prices)})"
    yield from note_age(prices, datetime.now(UTC).date())


def note_age(prices: Prices, today: date) -> Iterator[str]:
    """Warn of prices that are old: they change several times a week somewhere."""
    with suppress(ValueError):  # a card of one's own may say its day in any words
        days = (today - date.fromisoformat(prices.as_of)).days
        if days > OLD_DAYS:
            yield f"these prices are {days:,} days old: --price IN,OUT or `snellen models update FILE` gives newer ones"


def describe_prices(prices: Prices) -> str:
    """Say the prices, of which day they are, and whether they were seen."""
    each = f"{prices.input_per_million:g} in, {prices.output_per_million:g} out"
    each += "" if prices.cached_per_million is None else f", {prices.cached_per_million:g} cached"
    upto = f", requests up to {prices.up_to_tokens:,} tokens" if prices.up_to_tokens else ""
    day = f"; prices of {prices.as_of}" if prices.as_of else ""
    mark = f", {prices.mark}" if prices.mark else ""
    return f"a million tokens: {each} {prices.currency}".rstrip() + upto + day + mark


def describe_stop(state: RunState) -> str:
    """Say that the limit was reached, and what this command spent."""
    return f"stopped by --max-cost with {money(state.limits.spent, state.limits.bill.prices.currency)} spent"


def check_limit(settings: RunSettings, estimate: CostEstimate) -> str | None:
    """Return the question to ask where a run looks dearer than it may be; refuse a limit on what has no price."""
    prices = check_priced(settings, estimate.found, estimate.prices)
    cost = estimate.cost()
    if settings.max_cost is None or prices is None or cost is None or cost <= settings.max_cost or settings.yes:
        return None
    return f"the run will cost about {money(cost, prices.currency)}, more than --max-cost {settings.max_cost:g}"


def check_priced(settings: RunSettings, found: FoundCard, prices: Prices | None) -> Prices | None:
    """Return the prices; refuse a limit in money on what has none."""
    if settings.max_cost is not None and prices is None:
        fix = "--price IN,OUT gives it, `snellen models update FILE` takes a table of prices"
        raise UsageError(f"--max-cost {settings.max_cost:g}: no price is known ({found.where}); {fix}")
    return prices
