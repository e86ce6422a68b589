"""The records that travel down the line: frozen, typed, JSON in and out. What is configured stands in `tasks.py`.

Task -> Sample -> Request -> Prediction -> Score. A *trial* is one (task, sample, variant, repeat);
its key goes with it from the plan to the report. They hold values, never one another in a circle: `gc=False` spares
the cycle collector from looking.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from .errors import FailureKind as FailureKind  # noqa: PLC0414 - part of the vocabulary

BASE_VARIANT = "base"
_Shown = TypeVar("_Shown")
"""Whatever stands for a picture: the picture itself, its bytes, a provider's part, a token."""


class Form(StrEnum):
    """The formulation of a question; it picks the default prompt and scorer.

    Example:
        >>> snellen.Form("choice") is snellen.Form.CHOICE
        True
    """

    CHOICE = "choice"
    MULTIPLE = "multiple"
    """Options of which several may be right: all of them are asked for."""
    YESNO = "yesno"
    NUMBER = "number"
    OPEN = "open"
    OCR = "ocr"
    KIE = "kie"
    CAPTION = "caption"
    PARSE = "parse"
    """A page turned into Markdown, HTML or LaTeX."""
    AUTO = "auto"
    """Of a task only: decided for each record (docs/adr/rows.md); its samples have one of the others."""


OFFERED = frozenset((Form.CHOICE, Form.MULTIPLE))
"""Forms whose options are shown with marks, and whose answers are among them."""


class Frame(Struct, frozen=True, gc=False, omit_defaults=True):
    """Which picture of a video file is meant, and how it is made a picture of its own."""

    pts: int
    """Its timestamp in the units of the stream: what it is found by, exactly."""
    index: int
    """Its place among the frames of the video, in the order shown, from 0."""
    seconds: float
    """When it is shown, counted from the first frame."""
    side: int = 0
    """The longest side it may have; 0: as it is."""
    encoding: str = "jpeg:92"
    """How its pixels are written: `png`, or `jpeg:QUALITY`."""
    still: bool = False
    """Whether the reference is this frame itself: a picture of a folder of frames."""
    joined: bool = False
    """Whether it and its neighbours of the same video go to the model as one video."""
    kbps: int = 0
    """The bitrate the video is compressed to before this frame is taken from it; 0: as it is."""


class Image(Struct, frozen=True, gc=False, omit_defaults=True):
    """A reference to a picture; pixels come only from `snellen.data.images.decode`.

    `ref` is an absolute path, an https URL or a `data:` URL. `edits` are applied in order when the
    picture is opened, each written `name:arguments` (`box:0.1,0.2,0.5,0.6`, `jpeg:3`).

    Example:
        >>> snellen.Image("/data/cat.png", edits=("crop:0,0,0.5,1",)).edits
        ('crop:0,0,0.5,1',)
    """

    ref: str
    mime: str | None = None
    width: int | None = None
    height: int | None = None
    page: int | None = None
    sha256: str | None = None
    edits: tuple[str, ...] = ()
    frame: Frame | None = None
    """Of a video file: the frame that is meant."""


class Showing(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """How a video is shown to a model: part of the protocol, as the words around it are."""

    frames: str = "uniform:8"
    """The frame policy (`snellen.data.video.frame_rules`): `uniform:32`, `fps:2,max=768`, `times:1.5;3`."""
    side: int = 0
    """The longest side of a frame; 0: as it is, within what the model takes."""
    encoding: str = "jpeg:92"
    """`png`, or `jpeg:QUALITY`."""
    stamp: str = ""
    """A text before every frame, of {seconds}, {clock} and {number}; empty: none."""
    subtitles: str = "none"
    """`none`, `all` (before the frames), `sampled` (those at frames, before them) or `interleaved`."""
    route: str = "frames"
    """`frames`: as pictures, to any model that sees; `native`: as a video, to one that takes it."""
    tempo: str = ""
    """A disturbance of time, `family:severity` (`snellen.data.video.frame_rules`)."""


class Video(Struct, frozen=True, gc=False, omit_defaults=True):
    """A reference to a video; its frames come only from `snellen.data.video`.

    `ref` is an absolute path: a video file, or a folder of frames.

    Example:
        >>> from snellen.core.types import Video
        >>> Video("/data/cat.mp4", start=2.0, end=5.5).showing.frames
        'uniform:8'
    """

    ref: str
    subtitles: str = ""
    """A file of subtitles, SRT or WebVTT."""
    start: float | None = None
    end: float | None = None
    """The part that is meant, in seconds; None: from the beginning, to the end."""
    fps: float | None = None
    """Of a folder of frames: how many a second."""
    edits: tuple[str, ...] = ()
    """What is done to every frame, as in `Image.edits`."""
    showing: Showing = Showing()
    seed: int = 0
    """Of what is drawn by chance: disturbances."""


class Tool(Struct, frozen=True, gc=False):
    """What a model is offered to call: its name, what it does, and a JSON schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class ToolCall(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call as the model wrote it; nothing of it is checked yet."""

    id: str
    """The provider's name of the call; of calls written in a text, one of ours."""
    name: str
    arguments: str
    """The text of the arguments as it came, mostly JSON."""
    problem: str = ""
    """Of a call that is none: its class (`malformed`, `unclosed` …); see `core.looks.CALL_CLASSES`."""


class Turn(Struct, frozen=True, gc=False, omit_defaults=True):
    """One message: dialogue data, a chat prompt, or a shot. Images stand before the text, or as `parts` say.

    Example:
        >>> from snellen.core.types import Turn
        >>> turn = Turn("user", "Is  red?", (snellen.Image("/data/cat.png"),), ("Is ", 0, " red?"))
        >>> turn.arrange(["[a cat]"])
        ['Is ', '[a cat]', ' red?']
    """

    role: str
    text: str
    """All texts of the message, joined."""
    images: tuple[Image, ...] = ()
    """All its pictures, in the order shown."""
    parts: tuple[str | int | Video, ...] = ()
    """Texts and, for each picture, its place in `images`, in the order shown; empty: all pictures, then the text.

    A video stands here until it is asked about: then its frames take its place."""
    videos: tuple[Video, ...] = ()
    """Of a sample's earlier rounds: the videos they bring; in a request these stand in `parts`."""
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message: the tools it called."""
    answers: str = ""
    """Of a message of role `tool`: the id of the call that it answers."""
    kept: tuple[dict[str, Any], ...] = ()
    """Of an assistant's message: the provider's own items (signed thoughts), which go back as they came."""

    def arrange(self, pictures: Sequence[_Shown]) -> list[str | _Shown]:
        """Return the texts with what stands for each picture, in the order shown."""
        if not self.parts:
            return [*pictures, self.text]
        return [pictures[part] if isinstance(part, int) else _as_text(part) for part in self.parts]


def _as_text(part: str | Video) -> str:
    """Return a text; a video whose frames nobody has asked for yet is named, for whoever only shows the prompt."""
    return part if isinstance(part, str) else f"[video {part.ref.rpartition('/')[2]}: {part.showing.frames}]"


class Sample(Struct, frozen=True, gc=False, omit_defaults=True):
    """One question in canonical form.

    `options` stand in canonical order and `answers` are texts (for a choice: option texts), so that no
    shuffling can make a label wrong. `group` names the chain, document or dialogue it belongs to.

    Example:
        >>> options = ("a cat", "a dog")
        >>> snellen.Sample("1", "pets", snellen.Form.CHOICE, "What?", options=options, answers=("a dog",)).answers
        ('a dog',)
    """

    id: str
    dataset: str
    form: Form
    question: str
    images: tuple[Image, ...] = ()
    options: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    group: str | None = None
    tags: dict[str, str | int | float | bool | None] = {}
    meta: dict[str, Any] = {}
    """What only this sample's own loader and scorer understand (provenance of distractors, chart lines)."""
    videos: tuple[Video, ...] = ()


class TrialKey(Struct, frozen=True, gc=False, order=True):
    """Names one trial; unique within a run."""

    task: str
    sample: str
    variant: str = BASE_VARIANT
    repeat: int = 0


class Params(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Sampling parameters. None means not sent (and recorded so); 0 is sent as 0.

    Example:
        >>> import msgspec
        >>> msgspec.json.encode(snellen.Params(temperature=0.0))
        b'{"temperature":0.0}'
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    timeout_s: float | None = None
    stream: bool | None = None
    extra_body: dict[str, Any] | None = None


REDUCTIONS = ("sum", "mean", "per-byte", "none", "prompt-mean")
"""How a candidate's log-probabilities become one value; see `snellen.scoring.scorers.option_likelihood`."""


class Likelihood(Struct, frozen=True, gc=False, omit_defaults=True):
    """How the choices of a Request are scored; all that scoring needs besides the numbers."""

    reduction: str = "sum"
    """One of `REDUCTIONS`."""
    baseline: tuple[Turn, ...] = ()
    """A content-free prompt; the choices' log-likelihoods after it come back as `detail["priors"]`."""
    stands_for: tuple[int, ...] = ()
    """Which option (index in `shown`) each choice is a name of; empty: one choice an option."""
    with_prompt: bool = False
    """Also return the log-probabilities of the prompt's own tokens as `detail["prompt_logprobs"]`."""


class Request(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one trial asks. With `choices` it asks for the log-likelihood of each continuation.

    Example:
        >>> from snellen.core.types import TrialKey, Turn
        >>> request = snellen.Request(TrialKey("pets", "1"), (Turn("user", "Cat or dog?"),), choices=("cat", "dog"))
        >>> request.key.variant, request.params.temperature
        ('base', None)
    """

    key: TrialKey
    messages: tuple[Turn, ...]
    params: Params = Params()
    choices: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    """The option labels as shown ("A", "B", …), parallel to `shown`."""
    shown: tuple[str, ...] = ()
    """The option texts in the order shown."""
    prefix: str = ""
    """How the answer is made to begin, where the model allows it."""
    likelihood: Likelihood = Likelihood()
    """With `choices`: what else is asked, and how it is read."""
    tools: tuple[Tool, ...] = ()
    """What the model may call; calls written in a text need none, their description stands in the messages."""
    choice: str = ""
    """With `tools`: `none` where no call is wanted any more; empty: as the model likes."""


class Failure(Struct, frozen=True, gc=False, omit_defaults=True):
    """A typed failure as stored."""

    kind: FailureKind
    message: str
    status: int | None = None
    attempts: int = 1


MOST_TOKENS = 2**40
"""No reply has so many tokens; the sum of a run's counts below it fits any column."""


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens as the server counted them; None where it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    visual_tokens: int | None = None
    """The part of the input tokens that came from images."""
    written_tokens: int | None = None
    """The part of the input tokens that the server put into its cache for later: some ask more for these."""

    def believed(self) -> Usage:
        """Return the counts that a reply can have; others, below 0 or beyond any reply, are as if untold."""
        told = list(filter(None, astuple(self)))
        if not told or (min(told) > 0 and max(told) < MOST_TOKENS):
            return self
        counts = {name: getattr(self, name) for name in self.__struct_fields__}
        return Usage(**{name: count for name, count in counts.items() if 0 <= (count or 0) < MOST_TOKENS})


class Timing(Struct, frozen=True, gc=False, omit_defaults=True):
    """Moments on one monotonic clock, in seconds. TTFT, ITL… are derived, never stored."""

    sent: float
    done: float
    scheduled: float | None = None
    first_event: float | None = None
    first_reasoning: float | None = None
    first_token: float | None = None
    token_times: tuple[float, ...] = ()
    silent_times: tuple[float, ...] = ()
    """Events of a stream that carried no text."""


class ImageSent(Struct, frozen=True, gc=False, omit_defaults=True):
    """What really left the house for one image: after the model's size policy."""

    sha256: str
    mime: str
    width: int
    height: int
    size_bytes: int
    original: tuple[int, int] | None = None
    """Width and height before resizing, when it was resized."""


class Prediction(Struct, frozen=True, gc=False, omit_defaults=True):
    """The outcome of one trial: exactly one of `text`, `loglikelihoods`, `failure`.

    Example:
        >>> from snellen.core.types import TrialKey
        >>> snellen.Prediction(TrialKey("pets", "1"))
        Traceback (most recent call last):
        ValueError: a prediction is exactly one of text, loglikelihoods or failure
    """

    key: TrialKey
    text: str | None = None
    loglikelihoods: tuple[float, ...] | None = None
    failure: Failure | None = None
    reasoning: str | None = None
    usage: Usage | None = None
    timing: Timing | None = None
    finish: str | None = None
    cached: bool = False
    answerer: int = 0
    """Who made it: the row of the run's table of answerers, from 1; 0 where nobody noted it (0.2)."""
    images: tuple[ImageSent, ...] = ()
    detail: dict[str, Any] = {}
    """What the model adds: the likelihood route used, per-candidate token counts, the server's model name."""
    at: str | None = None
    """When it came, by the clock on the wall (UTC, ISO 8601): noted by the run that asked for it."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that the reply calls; its text may then be empty."""
    kept: tuple[dict[str, Any], ...] = ()
    """What the provider wants back with the next turn, as it came."""

    def __post_init__(self) -> None:
        if (self.text is None) + (self.loglikelihoods is None) + (self.failure is None) != 2:
            raise ValueError("a prediction is exactly one of text, loglikelihoods or failure")


class Score(Struct, frozen=True, gc=False, omit_defaults=True):
    """One metric of one trial. `value` None means that nothing could be read or judged, for `reason`.

    The score keeps that apart from wrong; what a figure makes of it is decided where figures are made.

    Example:
        >>> from snellen.core.types import TrialKey
        >>> snellen.Score(TrialKey("pets", "1"), "accuracy", None, reason="no answer found").value is None
        True
    """

    key: TrialKey
    metric: str
    value: float | None
    answer: str | None = None
    rule: str | None = None
    reason: str | None = None
    detail: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"score of {self.key.sample} is {self.value}: only finite numbers or None")
        if self.value is None and not self.reason:
            raise ValueError(f"score of {self.key.sample} is unscored without a reason")


class ReadPart(Struct, frozen=True, gc=False):
    """The same figure over the replies alone that an answer could be read from."""

    value: float | None
    n: int


class Estimate(Struct, frozen=True, gc=False, omit_defaults=False):
    """One number of a report with its uncertainty; its five counts add up to what was planned of its `unit`.

    It is over everything that got a reply: one without a readable answer is not right.

    Example:
        >>> estimate = snellen.Estimate(0.7, ci95=(0.6, 0.8), n=90, unscored=8, failed=2)
        >>> estimate.n + estimate.unscored + estimate.failed
        100
    """

    value: float | None
    stderr: float | None = None
    ci95: tuple[float, float] | None = None
    n: int = 0
    unscored: int = 0
    """Has a reply that nobody can judge: no right answer is known, or the scorer has not spoken yet."""
    failed: int = 0
    not_yet_asked: int | None = 0
    """Planned and not stored; None where the plan did not say (runs of 0.1 that were stopped)."""
    left_out: int = 0
    """Stored, and no part of this figure: does not qualify for a conditional one, lacks a partner to compare with."""
    unit: str = ""
    """What is counted: trials, questions, chains …, or `trials of KEY=VALUE`; empty where an aggregate does not say."""
    bounds: tuple[float, float] | None = None
    """Where the value would lie, whatever the replies that were not read, and the calls that failed, had said."""
    read: ReadPart | None = None
    """The figure over what was read, and of how many; n - read.n were not."""


def to_json(value: Any) -> bytes:
    """Encode any record as compact JSON."""
    return msgspec.json.encode(value)
