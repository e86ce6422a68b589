"""Pictures to preferences: k rationales sampled as a run, judged, and paired; stored, resumed and seen like any run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ...api.chosen_model import create_model
from ...api.run import run_settings
from ...api.session import ModelJobs, ask_jobs, check_finished
from ...api.settings import RunSettings
from ...core.builtins import default_registry
from ...core.errors import DataError, EnvironmentProblem, UsageError
from ...core.ids import content_hash, rng
from ...core.jobs import Item, ReadyRequests
from ...core.text import plural
from ...core.types import Prediction, Request, Sample, TrialKey
from ...data.catalog import Catalog
from ...data.files.records import write_lines
from ...scoring.judges.judge_card import Judge, judge_key, plan_votes, read_judge, with_pictures
from ...scoring.judges.verdicts import score_votes
from ...store.reader import RunReader
from .chains import TASK as CURE_TASK
from .chains import Chain, find_cure_task, found_from
from .rationale_facts import rationale_reward
from .recipe import CONTROL, DataSource, Recipe

TIED, CLOSE, CONTRADICTORY = "tied", "too close", "contradictory"
FEW, SAME = "fewer than two judged replies", "all replies are the same"


class JudgedReply(Struct, frozen=True):
    """One sampled reply with its points, or why it has none."""

    text: str
    points: float | None = None
    reason: str = ""


class JudgedSample(Struct, frozen=True):
    """All sampled replies to one question."""

    sample: Sample
    request: Request
    replies: tuple[JudgedReply, ...]
    dropped: str = ""
    """Why the judge's verdicts on the whole say nothing, where they do not (a ranking in a circle)."""

    @property
    def judged(self) -> list[JudgedReply]:
        """Return the replies that have points."""
        return [reply for reply in self.replies if reply.points is not None]

    @property
    def facts(self) -> tuple[str, ...]:
        """Return what a right rationale states, where the data says so."""
        return tuple(self.sample.meta.get("facts") or ())


class PreferenceCounts(Struct, frozen=True):
    """What became of the sampled questions; the parts add up to the whole."""

    questions: int
    pairs: int
    anchors: int
    dropped: dict[str, int]
    replies: int
    replies_failed: int
    replies_unjudged: int


def choose_pair(judged: JudgedSample, least_gap: float) -> Chain | str:
    """Return the best reply against the worst, or why there is no such pair."""
    reason = _no_pair(judged, least_gap)
    if reason:
        return reason
    order = sorted(judged.judged, key=lambda reply: reply.points or 0.0)
    return _pair(judged, order[-1].text, order[0].text)


def _no_pair(judged: JudgedSample, least_gap: float) -> str:
    if judged.dropped:
        return judged.dropped
    replies = judged.judged
    if len(replies) < 2:
        return FEW
    if len({reply.text for reply in replies}) == 1:
        return SAME
    points = [reply.points or 0.0 for reply in replies]
    gap = max(points) - min(points)
    if gap == 0:
        return TIED
    return CLOSE if gap < least_gap else ""


def control_chains(judged: JudgedSample, least_gap: float) -> Iterator[Chain]:
    """Yield every reply of a question that has good and bad ones, marked as above or below their mean."""
    if _no_pair(judged, least_gap):
        return
    points = [reply.points or 0.0 for reply in judged.judged]
    mean = sum(points) / len(points)
    for number, reply in enumerate(judged.judged):
        value = reply.points or 0.0
        if value != mean:
            name = f"{judged.sample.id}.{number}"
            yield Chain(name, judged.request.messages, reply.text, good=value > mean)


def anchor_pair(judged: JudgedSample, seed: int) -> Chain | None:
    """Return a right short answer against another option, for questions that are answered without a rationale.

    Preferences on rationales alone unlearn short answers; these hold them in place.
    """
    sample, request = judged.sample, judged.request
    shown = request.shown or sample.options
    if judged.facts or not sample.answers or len(shown) < 2:
        return None
    right = next((reply.text for reply in judged.judged if reply.points), None)
    others = [text for text in shown if text not in sample.answers]
    if right is None or not others:
        return None
    other = rng(seed, sample.id, "anchor").choice(others)
    wrong = _with_option(right, request, sample.answers[0], other)
    return None if wrong == right else _pair(judged, right, wrong)


def _with_option(reply: str, request: Request, right: str, other: str) -> str:
    """Return the reply with another option in place of the right one, its mark too."""
    changed = re.sub(re.escape(right), lambda _: other, reply, flags=re.IGNORECASE)
    if request.marks:
        marks = {request.marks[request.shown.index(text)] for text in (right,)}
        new = request.marks[request.shown.index(other)]
        for mark in marks:
            changed = re.sub(rf"(?<!\w){re.escape(mark)}(?=[.):]|$)", lambda _: new, changed)
    return changed


def _pair(judged: JudgedSample, better: str, worse: str) -> Chain:
    sample, request = judged.sample, judged.request
    shown = request.shown or sample.options
    return Chain(sample.id, request.messages, better, worse, sample.answers, shown, judged.facts)


def rank_pairs(count: int, verdicts: Sequence[tuple[int, int, int | None]]) -> tuple[list[float | None], str]:
    """Return net wins of each reply by (first, second, winner or None), and why they give no ranking, if they do not.

    The best must have beaten the worst themselves: a ranking that goes in a circle says nothing.
    """
    wins = [0.0] * count
    beaten: set[tuple[int, int]] = set()
    for first, second, winner in verdicts:
        if winner is None:
            continue
        loser = second if winner == first else first
        wins[winner] += 1
        wins[loser] -= 1
        beaten.add((winner, loser))
    if not beaten:
        return [None] * count, TIED
    best, worst = max(range(count), key=wins.__getitem__), min(range(count), key=wins.__getitem__)
    reason = "" if (best, worst) in beaten and not _circle(count, beaten) else CONTRADICTORY
    return list(wins), reason


def _circle(count: int, beaten: set[tuple[int, int]]) -> bool:
    """Tell whether some replies beat each other in a circle: no order of all of them holds every verdict."""
    left = set(range(count))
    while left:
        free = {one for one in left if not any((other, one) in beaten for other in left)}
        if not free:
            return True
        left -= free
    return False


# Sampled rationales to requests of an LLM judge, by points or pairwise, and its stored verdicts back to points.

CRITERIA = ("rationale_sophisticated", "rationale_consistent", "rationale_grounded")
PAIRWISE = "rationale_pair"
NO_REPLY, NO_VERDICT = "the model gave no reply", "the judge gave no verdict"
Votes = Mapping[TrialKey, str | None]


class SampledQuestion(NamedTuple):
    """One question as it was asked, and what the model said each time."""

    position: int
    sample: Sample
    request: Request
    predictions: tuple[Prediction, ...]

    @property
    def said(self) -> list[Prediction]:
        """Return the predictions that have a text."""
        return [one for one in self.predictions if one.text]


def gather_questions(trials: Iterable[tuple[Sample, Request, Prediction, int]]) -> Iterator[SampledQuestion]:
    """Yield the trials of each question together; they come in the order of samples."""
    current: list[tuple[Sample, Request, Prediction, int]] = []
    position = 0
    for trial in trials:
        if current and trial[0].id != current[0][0].id:
            yield _question(position, current)
            position, current = position + 1, []
        current.append(trial)
    if current:
        yield _question(position, current)


def _question(position: int, trials: Sequence[tuple[Sample, Request, Prediction, int]]) -> SampledQuestion:
    if any(trial[1].messages != trials[0][1].messages for trial in trials):
        raise DataError(f"{trials[0][0].id}: its replies answer different prompts, so none can be preferred")
    return SampledQuestion(position, trials[0][0], trials[0][1], tuple(trial[2] for trial in trials))


def plan_points(judge: Judge, questions: Iterable[SampledQuestion]) -> Iterator[ReadyRequests]:
    """Yield a job a reply: the votes of one criterion."""
    for question in questions:
        for prediction in question.said:
            votes = plan_votes(judge, [(question.sample, prediction)])
            yield ReadyRequests(_item(question), tuple(with_pictures(vote, question.sample) for vote in votes))


def plan_pairs(judge: Judge, questions: Iterable[SampledQuestion]) -> Iterator[ReadyRequests]:
    """Yield a job a pair of replies, asked in both orders: a judge that prefers a place contradicts itself."""
    for question in questions:
        for first, second in combinations(range(len(question.said)), 2):
            cases = [_case(question, first, second), _case(question, second, first)]
            votes = [vote for case in cases for vote in plan_votes(judge, [(question.sample, case)])]
            yield ReadyRequests(_item(question), tuple(with_pictures(vote, question.sample) for vote in votes))


def _item(question: SampledQuestion) -> Item:
    return Item(question.position, question.sample)


def _case(question: SampledQuestion, first: int, second: int) -> Prediction:
    said = question.said
    text = f"FIRST:\n{said[first].text}\n\nSECOND:\n{said[second].text}"
    key = TrialKey(said[0].key.task, question.sample.id, f"pair={first}-{second}", 0)
    return Prediction(key, text=text)


def read_points(judges: Sequence[Judge], question: SampledQuestion, votes: Votes) -> JudgedSample:
    """Return each reply with the sum over all criteria; one without a verdict on some criterion has no points."""
    replies = []
    for prediction in question.predictions:
        if not prediction.text:
            replies.append(JudgedReply("", None, NO_REPLY))
            continue
        scores = [score_votes(judge, prediction, _replies(judge, prediction, votes)) for judge in judges]
        lacking = next((score.reason for score in scores if score.value is None), None)
        points = None if lacking else sum(score.value or 0.0 for score in scores)
        replies.append(JudgedReply(prediction.text, points, f"{NO_VERDICT}: {lacking}" if lacking else ""))
    return JudgedSample(question.sample, question.request, tuple(replies))


def read_pairs(judge: Judge, question: SampledQuestion, votes: Votes) -> JudgedSample:
    """Return each reply with its net wins; a pair on which both orders do not agree counts for nobody."""
    said = question.said
    verdicts = []
    contradicted = False
    for first, second in combinations(range(len(said)), 2):
        one = _winner(judge, _case(question, first, second), votes, first, second)
        two = _winner(judge, _case(question, second, first), votes, second, first)
        contradicted |= one is not None and two is not None and one != two
        verdicts.append((first, second, one if one == two else None))
    wins, reason = rank_pairs(len(said), verdicts)
    if contradicted and reason:
        reason = "contradictory"
    replies = [JudgedReply(one.text or "", points) for one, points in zip(said, wins, strict=True)]
    silent = [JudgedReply("", None, NO_REPLY) for one in question.predictions if not one.text]
    return JudgedSample(question.sample, question.request, (*replies, *silent), reason)


def _winner(judge: Judge, case: Prediction, votes: Votes, first: int, second: int) -> int | None:
    value = score_votes(judge, case, _replies(judge, case, votes)).value
    return None if value is None or value == 0.5 else first if value > 0.5 else second


def _replies(judge: Judge, prediction: Prediction, votes: Votes) -> list[str | None]:
    return [votes.get(judge_key(prediction.key, judge, vote)) for vote in range(judge.votes)]


FOLDER = "feedback"
PAIRS, COUNTS = "preferences.jsonl", "preferences.json"
Say = Callable[[str], None]


def make_preferences(recipe: Recipe, say: Say = lambda _: None) -> Path:
    """Sample, judge and pair; return the file of preferences. What is stored is neither asked nor judged again."""
    folder = recipe.folder / FOLDER
    counts: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    chains: list[Chain] = []
    for number, source in enumerate(recipe.data):
        run = sample_rationales(recipe, source, folder / f"sampling-{number}", say)
        for judged in judge_samples(recipe, run, folder / f"judging-{number}", say):
            chains += _learn(recipe, judged, counts, dropped)
    made = PreferenceCounts(
        questions=counts["questions"],
        pairs=counts["pairs"],
        anchors=counts["anchors"],
        dropped=dict(dropped),
        replies=counts["replies"],
        replies_failed=counts["failed"],
        replies_unjudged=counts["unjudged"],
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / COUNTS).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
    say(describe_preferences(made))
    if not made.pairs:
        fix = "sample more (--samples), warmer (--temperature), or more pictures"
        raise UsageError(f"no preference found: {describe_preferences(made)}; {fix}")
    write_lines(folder / PAIRS, [found_from(chain, Path.cwd()) for chain in chains])
    return folder / PAIRS


def describe_preferences(made: PreferenceCounts) -> str:
    """Return the counts in one line; they add up."""
    left = ", ".join(f"{count} {reason}" for reason, count in sorted(made.dropped.items())) or "none"
    replies = f"{made.replies} replies ({made.replies_failed} failed, {made.replies_unjudged} without a verdict)"
    pairs = f"{made.pairs} give a preference, {made.anchors} an anchor"
    return f"{plural(made.questions, 'question')}, {replies}: {pairs}; dropped: {left}"


def _learn(recipe: Recipe, judged: JudgedSample, counts: Counter[str], dropped: Counter[str]) -> Iterator[Chain]:
    """Yield what one question teaches, and count what became of it."""
    counts["questions"] += 1
    counts["replies"] += len(judged.replies)
    counts["failed"] += sum(reply.reason == NO_REPLY for reply in judged.replies)
    counts["unjudged"] += sum(reply.points is None and reply.reason != NO_REPLY for reply in judged.replies)
    pair = choose_pair(judged, recipe.feedback.least_gap)
    if isinstance(pair, Chain):
        counts["pairs"] += 1
        yield from [pair] if recipe.training.trainer != CONTROL else control_chains(judged, recipe.feedback.least_gap)
        return
    anchor = anchor_pair(judged, recipe.seed) if recipe.feedback.anchors else None
    if anchor is None:
        dropped[pair] += 1
        return
    counts["anchors"] += 1
    yield anchor if recipe.training.trainer != CONTROL else msgspec.structs.replace(anchor, rejected="", good=True)


def sample_rationales(recipe: Recipe, source: DataSource, folder: Path, say: Say) -> Path:
    """Ask every question k times, as a run of its own; return its folder."""
    feedback = recipe.feedback
    task, overrides = sampled_task(source, Catalog(recipe.catalogs))
    settings = RunSettings(
        tasks=(task,),
        model=feedback.model or recipe.model,
        base_url=feedback.base_url,
        model_arguments=feedback.model_arguments,
        num_infers=feedback.samples,
        temperature=feedback.temperature,
        max_tokens=feedback.max_tokens,
        seed=recipe.seed,
        overrides=tuple(overrides),
        variants=("order=0",),  # all samples of a question answer the same prompt
        output_dir=folder,
        catalogs=tuple(map(Path, recipe.catalogs)),
        allow_missing_images=recipe.allow_missing_images,
        cache=False,  # k samples of one prompt must be k samples
    )
    result = run_settings(settings, None)
    if result.interrupted:
        raise KeyboardInterrupt
    say(f"{source.path}: {result.state.done} replies sampled in {folder}, {result.failed} failed")
    return folder


def sampled_task(source: DataSource, catalog: Catalog) -> tuple[str, list[tuple[str, Any]]]:
    """Return the task that asks a source's questions, and what it is told: annotated chains know their facts."""
    path = Path(source.path)
    root = [] if source.image_root is None else [("dataset.image_root", source.image_root)]
    cure = find_cure_task(path, catalog, None) if path.exists() else None
    if cure is None:
        return source.path, root
    overrides: list[tuple[str, Any]] = [*root, ("dataset.facts", True)]
    overrides += [] if source.steps else [("dataset.ask", "inference")]
    if path.suffix == ".toml":
        return source.path, overrides
    return CURE_TASK, [*overrides, ("dataset.path", cure.dataset["path"])]


def judge_samples(recipe: Recipe, run: Path, folder: Path, say: Say) -> Iterator[JudgedSample]:
    """Yield every question with the points of its replies."""
    with RunReader(run) as reader:
        (task,) = reader.tasks()
        if recipe.feedback.judge == "scorers":
            for question in gather_questions(reader.trials(task)):
                yield score_question(question)
            return
        judges = load_rationale_judges(recipe)
        votes = ask_rationale_judges(recipe, judges, run, folder, say)
        for question in gather_questions(reader.trials(task)):
            if recipe.feedback.judge == "pairs":
                yield read_pairs(judges[0], question, votes)
            else:
                yield read_points(judges, question, votes)


def score_question(question: SampledQuestion) -> JudgedSample:
    """Return the replies with the points of our scorers; a question without labels is refused."""
    sample, shown = question.sample, question.request.shown or question.sample.options
    facts = tuple(sample.meta.get("facts") or ())
    if not sample.answers or not shown:
        fix = "use data with options and answers, or an LLM (--judge points or pairs)"
        raise UsageError(f"{sample.id}: nothing to judge its replies by (no options and answer): {fix}")
    replies = []
    for prediction in question.predictions:
        if not prediction.text:
            replies.append(JudgedReply("", None, NO_REPLY))
        else:
            points = rationale_reward(prediction.text, facts, shown, sample.answers)
            replies.append(JudgedReply(prediction.text, points))
    return JudgedSample(sample, question.request, tuple(replies))


def load_rationale_judges(recipe: Recipe) -> list[Judge]:
    """Return the judges of the chosen way."""
    catalog = Catalog(recipe.catalogs)
    names = (PAIRWISE,) if recipe.feedback.judge == "pairs" else CRITERIA
    return [read_judge(catalog.card("judges", name), name) for name in names]


def ask_rationale_judges(
    recipe: Recipe, judges: list[Judge], run: Path, folder: Path, say: Say
) -> dict[TrialKey, str | None]:
    """Ask each judge about all replies, and return what it said by vote; what is stored is not asked again."""
    settings = RunSettings(tasks=(), model=recipe.feedback.judge_model, base_url=recipe.feedback.judge_url)
    plan = plan_pairs if recipe.feedback.judge == "pairs" else plan_points
    votes: dict[TrialKey, str | None] = {}
    for judge in judges:
        with RunReader(run) as reader:
            (task,) = reader.tasks()
            questions = list(gather_questions(reader.trials(task)))
            config = {"judge": msgspec.to_builtins(judge), "run": reader.header().id}
        place = folder / f"{judge.name}-{content_hash(config, 8)}"
        jobs = list(plan(judge, questions))
        name = f"{task}@{judge.name}"
        planned = {name: sum(len(job.requests) for job in jobs)}
        model = create_model(settings, default_registry())
        check_finished(ask_jobs(ModelJobs(place, model, jobs, planned, config), settings), f"judge {judge.name!r}")
        with RunReader(place) as reader:
            replies = {one.key: one.text for _, _, one, _ in reader.trials(name)}
        failed = sum(text is None for text in replies.values())
        say(f"{judge.title}: {plural(len(replies), 'verdict')} asked in {place}, {failed} failed")
        if replies and failed == len(replies):
            raise EnvironmentProblem(f"the judge {settings.model} answered nothing ({failed} failed): see {place}")
        votes |= replies
    return votes
