"""A judge as pure data (catalog/judges/*.toml): what it is asked, what its verdict is, who judged published numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from ...core.config import convert
from ...core.errors import ConfigError, DataError, not_among
from ...core.ids import content_hash
from ...core.text import tag_text
from ...core.types import Params, Prediction, Request, Sample, TrialKey, Turn
from ...core.variants import format_variant, parse_variant
from ...extract.option_set import derive_marks
from ...prompt.template import render
from ..scorers.replies import answer_text

WORD, NUMBER, TEXT, PAIR = "word", "number", "text", "pair"
VERDICTS = (WORD, NUMBER, TEXT, PAIR)
"""One of some words; a grade on a scale; the answer it extracts, compared by a rule; grades of reference and answer."""
SINCE_0_1 = frozenset(
    {"verdict", "scale", "compare", "compare_options", "after", "shows"}
    | {"rubric_tag", "rubrics", "rule", "default_model", "published"}
)
"""Fields that the judges of 0.1 lack: unsaid they are not written, so that votes of then can go on."""


class Judge(Struct, frozen=True, forbid_unknown_fields=True):
    """A judge as pure data: catalog/judges/*.toml."""

    prompt: str
    choices: dict[str, float] = {}
    """Verdict word -> score."""
    name: str = ""
    title: str = ""
    role: str = "judge"
    """Which configured model is asked."""
    system: str = ""
    votes: int = 1
    params: Params = Params()
    metric: str = "judge"
    without_judge: str = "exact_no_judge"
    """What the metric is called when no judge was asked: another name, so that the two are never taken for one."""
    fallback: str = "any_exact"
    """The registered scorer that gives the value then."""
    verdict: str = WORD
    """One of `VERDICTS`."""
    scale: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest grade."""
    compare: str = ""
    """Of an extraction: the registered scorer that compares what was extracted."""
    compare_options: dict[str, Any] = {}
    """What that scorer is told."""
    after: str = ""
    """The judge whose extraction is judged instead of the whole reply; it is asked first."""
    shows: tuple[str, ...] = ()
    """Tags of the sample that the prompt names as fields."""
    rubric_tag: str = ""
    rubrics: dict[str, str] = {}
    """By the value of `rubric_tag`: what `{rubric}` says."""
    rule: str = ""
    """The metric of a rule-based reader that the verdicts are held against; empty: the task's first."""
    default_model: str = ""
    """Who judged the published numbers, as `provider/name`; another judge's numbers are not comparable with them."""
    published: str = ""
    """The same in words: where this judge and this way of asking come from."""

    def __post_init__(self) -> None:
        if self.votes < 1 or self.votes % 2 == 0:
            raise ConfigError(f"judge {self.name!r}: votes must be odd, not {self.votes}, so that a majority can exist")
        if self.metric == self.without_judge:
            raise ConfigError(f"judge {self.name!r}: 'without_judge' must differ from 'metric'")
        if "{answer}" not in self.prompt or "{fence}" not in self.prompt or "{case}" not in self.prompt:
            raise ConfigError(f"judge {self.name!r}: the prompt must hold {{answer}}, {{fence}} and {{case}}")
        self._check_verdict()
        if bool(self.rubric_tag) != bool(self.rubrics) or bool(self.rubrics) != ("{rubric}" in self.prompt):
            raise ConfigError(f"judge {self.name!r}: 'rubric_tag', 'rubrics' and {{rubric}} belong together")

    def _check_verdict(self) -> None:
        if self.verdict not in VERDICTS:
            raise ConfigError(f"judge {self.name!r}: verdict {not_among(self.verdict, VERDICTS, ' is no kind')}")
        if self.verdict == WORD and len(self.choices) < 2:
            raise ConfigError(f"judge {self.name!r}: needs at least two choices")
        if self.verdict in (NUMBER, PAIR) and not self.scale[0] < self.scale[1]:
            raise ConfigError(f"judge {self.name!r}: 'scale' must go up: [lowest, highest]")
        if (self.verdict == TEXT) != bool(self.compare):
            raise ConfigError(f"judge {self.name!r}: 'compare' names the scorer of what is extracted (verdict 'text')")

    def bounds(self) -> tuple[float, float]:
        """Return the lowest and the highest score it can give."""
        if self.verdict == WORD:
            return min(self.choices.values()), max(self.choices.values())
        return self.scale


def read_judge(table: Mapping[str, Any], name: str) -> Judge:
    """Check one card of the catalog."""
    return convert({**table, "name": name}, Judge, f"judge {name!r}")


def judge_identity(judge: Judge) -> dict[str, Any]:
    """Return what changes a judge's replies: its card without its name, as 0.1 wrote it where it says no more."""
    table, plain = structs.asdict(judge), Judge(prompt="{answer}{fence}{case}", choices={"A": 1.0, "B": 0.0})
    table.pop("name")  # another name asks the same
    return {name: value for name, value in table.items() if name not in SINCE_0_1 or value != getattr(plain, name)}


INFERENCE_AXIS = "inference"
_TASK_JOIN = "@"


def judge_key(key: TrialKey, judge: Judge, vote: int) -> TrialKey:
    """Name one vote on one trial; the trial's repeat becomes an axis of the variant, the vote the repeat."""
    axes = {**parse_variant(key.variant), INFERENCE_AXIS: str(key.repeat)}
    return TrialKey(f"{key.task}{_TASK_JOIN}{judge.name}", key.sample, format_variant(axes), vote)


def judged_key(key: TrialKey) -> TrialKey:
    """Return the trial that a vote is about."""
    axes = dict(parse_variant(key.variant))
    repeat = int(axes.pop(INFERENCE_AXIS))
    return TrialKey(key.task.rpartition(_TASK_JOIN)[0], key.sample, format_variant(axes), repeat)


def with_pictures(vote: Request, sample: Sample) -> Request:
    """Return a vote that sees the sample's pictures too: nobody can judge what was seen without them."""
    *before, last = vote.messages
    return structs.replace(vote, messages=(*before, structs.replace(last, images=sample.images)))


def plan_votes(
    judge: Judge, trials: Iterable[tuple[Sample, Prediction]], asked: Request | None = None
) -> Iterator[Request]:
    """Yield the Requests that judge these trials: `votes` for each one that has an answer text.

    `asked` is what was sent for them: `{choices}` are the options with the marks that it showed.
    """
    for sample, prediction in trials:
        text = answer_text(prediction)
        if text:
            choices = "\n".join(f"({mark}) {option}" for mark, option in offered_options(sample, asked).items())
            for vote in range(judge.votes):
                yield _request(judge, sample, prediction.key, {"answer": text, "choices": choices}, vote)


def offered_options(sample: Sample, asked: Request | None) -> dict[str, str]:
    """Return the options of a trial by the marks that were shown; by plain letters where none were."""
    shown = (asked and asked.shown) or sample.options
    marks = (asked and asked.marks) or derive_marks(len(shown))
    return dict(zip(marks, shown, strict=True))


def _request(judge: Judge, sample: Sample, key: TrialKey, said: Mapping[str, str], vote: int) -> Request:
    answer = said["answer"]
    case = case_number(judge, key, answer)
    fence = f"=====[{content_hash([case, 'fence'], 20)}]====="
    fields = {
        "question": sample.question,
        "options": "\n".join(f"- {option}" for option in sample.options),
        "choices": said["choices"],
        "answers": "\n".join(f"- {reference}" for reference in sample.answers),
        "answer": answer.replace(fence, ""),
        "fence": fence,
        "case": case,
        **{tag: _shown_tag(judge, sample, tag) for tag in judge.shows},
    }
    if judge.rubric_tag:
        fields["rubric"] = _rubric(judge, sample)
    user = Turn("user", render(judge.prompt.strip("\n"), fields))
    messages = (Turn("system", judge.system), user) if judge.system else (user,)
    params = judge.params if judge.params.seed is None else structs.replace(judge.params, seed=judge.params.seed + vote)
    return Request(judge_key(key, judge, vote), messages, params)


def _shown_tag(judge: Judge, sample: Sample, tag: str) -> str:
    if tag not in sample.tags:
        what = f"sample {sample.id!r} has no {tag}, which judge {judge.name!r} must see"
        raise DataError(f"{what}: read the data in a shape that has it, or ask another judge")
    return tag_text(sample.tags[tag])


def _rubric(judge: Judge, sample: Sample) -> str:
    value = tag_text(sample.tags.get(judge.rubric_tag))
    if value not in judge.rubrics:
        known = f"it has rubrics for {', '.join(judge.rubrics)}"
        what = f"sample {sample.id!r} has {judge.rubric_tag} {value}"
        raise DataError(f"{what}, for which judge {judge.name!r} has no rubric; {known}")
    return judge.rubrics[value]


def case_number(judge: Judge, key: TrialKey, answer: str) -> str:
    """Return the number a verdict must repeat. It hangs on the answer itself, so no answer can hold its own."""
    return content_hash([judge.name, judge.prompt, key, answer], 12)
