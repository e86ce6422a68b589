"""Sample, variant and repeat to Request: which wording, which option order, which marks, which messages.

A task whose samples have several forms has a prompt, and a `Prompter`, of each (`PrompterByForm`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from ..core.errors import ConfigError, not_among
from ..core.ids import derive_seed, rng
from ..core.message_parts import without_markers
from ..core.tasks import Prompt, Task
from ..core.twins import AXIS as TWIN
from ..core.twins import twin_of
from ..core.types import BASE_VARIANT, OFFERED, Form, Image, Params, Request, Sample, TrialKey, Turn
from ..core.variants import parse_variant
from ..data.images.edits import CALIBRATION
from ..data.loaders.option_texts import split_listed
from ..data.video.frame_rules import VIDEO_AXES
from .controls import (
    RECALL,
    STANDING_IN,
    OtherPictures,
    Projector,
    choose_pages,
    recall_request,
    refuse_videos,
    with_context,
)
from .history import example_turns, history_turns, shot_turns, show_options
from .place import RANDOM, STYLE_TAG, Placement, draw_style, make_marks, number_options, place_parts
from .styles import Speech, chat, load_meta_template, load_style, speak_by_meta
from .template import fields_of, fill, render

OPTION_FIELDS = frozenset({"options", "choices"})
WHITE_SPACE = ("trimmed", "kept", "parts")
AXES = ("wording", "order", "marks", "perturb", "pages", "control", TWIN, *VIDEO_AXES)

Retriever = Callable[[Sample, random.Random], Sequence[Sample]]
"""Finds examples for a sample among others."""


class Spoken(NamedTuple):
    """What is said in one trial, and the options as they stood."""

    speech: Speech
    marks: tuple[str, ...]
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompter:
    """Builds the Request of any trial of one task; a pure function of its fields and arguments."""

    task: Task
    prompt: Prompt
    seed: int
    retriever: Retriever | None = None
    others: OtherPictures | None = None
    """Where the picture of `control=other` comes from."""

    def with_prompt(self, prompt: Prompt) -> Prompter:
        """Return a Prompter of the same task, seed and examples with another prompt."""
        return replace(self, prompt=prompt)

    def build(
        self, sample: Sample, variant: str = BASE_VARIANT, repeat: int = 0, replies: Sequence[str] | None = None
    ) -> Request:
        """Return the Request of one trial; `replies` are the model's own answers to earlier rounds of a dialogue."""
        if _axes(variant).get("control") == RECALL:
            return recall_request(sample, TrialKey(self.task.name, sample.id, variant, repeat), self.task.params)
        speech, marks, shown = self.speak(sample, variant, repeat, replies)
        messages, prefix = self._messages(speech), self._prefix_left(speech)
        key = TrialKey(self.task.name, sample.id, variant, repeat)
        params = params_of_trial(self.task.params, sample, repeat)
        return Request(key, messages, params, marks=marks, shown=shown, prefix=prefix)

    def speak(
        self, sample: Sample, variant: str = BASE_VARIANT, repeat: int = 0, replies: Sequence[str] | None = None
    ) -> Spoken:
        """Return what is said in one trial, before it is given the form of messages or of one string."""
        prompt, axes, named = self.prompt, _axes(variant), fields_of(self.prompt.template)
        placement, projector = Placement(), None
        if axes or sample.videos or sample.turns:  # what most trials do not have is not looked for in each of them
            sample = twin_of(sample, axes)
            projector = Projector(sample, prompt.video, axes, placement, seed=self.seed, others=self.others)
            sample = self._with_own_rounds(projector.with_rounds(), axes)
        shown = self._order(sample, axes, variant, repeat)
        style = axes.get("marks", prompt.marks)
        if style == RANDOM:
            style = draw_style(rng(self.seed, sample.id, variant, repeat, "marks"))
        marks = make_marks(style, len(shown))
        hidden = bool(sample.options) and named.isdisjoint(OPTION_FIELDS)
        instruction, question = self._wording(sample, axes, hidden)
        question, numbered = number_options(question, sample) if prompt.place_pictures else (question, {})
        offered = [numbered.get(text, text) for text in shown] if numbered else shown
        options = show_options(prompt, marks, offered) if not hidden else ""
        if options:
            question = _without_list(question, sample.options)
        if tail := self._tail(sample, hidden) if prompt.answer_space or prompt.yesno else "":
            instruction, question = (instruction + tail, question) if instruction else ("", question + tail)
        fields = {"question": question, "options": options, "choices": options, "instruction": instruction}
        fields["letters"] = ", ".join(marks)
        history = self._before(sample, variant, style, hidden, replies, placement=placement)
        text = _worded(prompt, fields)
        if "question" not in named and question.strip() and not self._is_in_picture():
            raise self._question_missing(sample)
        if shown and not (hidden and prompt.hidden) and not shows_in_order(text, offered):
            raise self._options_missing(sample, offered, text)
        query, images = self._show(text, sample, axes, placement, opening=not history)
        if projector is not None:
            query = with_context(sample, axes, projector.show(query, sample.videos))
        speech = Speech(
            query=query,
            question=question,
            instruction="" if "instruction" in named else instruction,
            history=history,
            system=sample.meta.get("system") or prompt.system,
            prefix="" if hidden else prompt.prefix,
            images=images,
            placed=tuple(placement.pictures),
            examples=len(history) - len(sample.turns) // 2 * 2 if self.retriever is not None else 0,
        )
        return Spoken(speech, marks, shown)

    def _show(
        self, text: str, sample: Sample, axes: Mapping[str, str], placement: Placement, *, opening: bool
    ) -> tuple[str, tuple[Image, ...]]:
        """Return the question's text with its pictures in their places, and the pictures that stand before it."""
        if not axes and not sample.images:
            return text, ()
        chosen = choose_pages(sample, axes, self.others)
        images = self._perturbed(chosen, axes, sample.group or sample.id)
        if not self.prompt.place_pictures or not (images or sample.images):
            return text, images
        withheld = chosen is not sample.images and axes.get("control") not in STANDING_IN
        text, images = placement.take(text, images, opening=opening, withheld=withheld)
        if self.retriever is None or not self.prompt.shots.images or sample.turns:
            return text, images
        return placement.put_before(text, images), ()  # where examples have pictures, each question stands by its own

    def _is_in_picture(self) -> bool:
        """Tell whether the card's wordings say that the question is in the picture.

        Wordings for hidden options say so only where the options are hidden too.
        """
        return bool(self.prompt.hidden) and fields_of(self.prompt.template).isdisjoint(OPTION_FIELDS)

    def _question_missing(self, sample: Sample) -> ConfigError:
        fix = "put {question} into it, or give it `hidden` wordings and no {options} if all of it stands in the picture"
        what = f"the template {self.prompt.template!r} never shows the question"
        return ConfigError(f"task {self.task.name!r}, sample {sample.id!r}: {what}; {fix}")

    def _options_missing(self, sample: Sample, offered: Sequence[str], text: str) -> ConfigError:
        """Return why a prompt may not be sent: it shows fewer options than the sample has, or another order."""
        lost = [option for option in offered if not shows_in_order(text, [option])]
        if lost:
            what = f"does not show {len(lost)} of {len(offered)} options ({lost[0]!r})"
            fix = "put {options} into its template, or give it `hidden` wordings if they are hidden on purpose"
        else:
            what = "shows the options in the order of the question, not of the trial"
            fix = "put {options} into its template, or leave shuffled options out"
        return ConfigError(f"task {self.task.name!r}, sample {sample.id!r}: the prompt {what}; {fix}")

    def _messages(self, speech: Speech) -> tuple[Turn, ...]:
        if self.prompt.style == "chat":
            messages = chat(speech)
            trim = self.prompt.white_space == "parts"
            return place_parts(messages, speech.placed, trim=trim) if speech.placed else messages
        if self.prompt.place_pictures:
            speech = _with_placed_history(speech)
        images = [image for turn in speech.history for image in turn.images]
        kind, _, file = self.prompt.style.partition(":")
        if kind == "meta":
            text = speak_by_meta(load_meta_template(file), speech)
        else:
            text = load_style(self.prompt.style).speak(speech)
        if speech.placed:  # each picture has its own place, so that the style's one tag would stand for none
            text = STYLE_TAG.sub("", text)
        return place_parts((Turn("user", text, (*images, *speech.images)),), speech.placed)

    def _prefix_left(self, speech: Speech) -> str:
        """Return what the model has to begin with: nothing where the words of the prompt end with it already."""
        style = self.prompt.style
        said = style != "chat" and (style.startswith("meta:") or load_style(style).takes_prefix)
        return "" if said else speech.prefix

    def _before(
        self,
        sample: Sample,
        variant: str,
        style: str,
        hidden: bool,
        replies: Sequence[str] | None,
        *,
        placement: Placement,
    ) -> tuple[Turn, ...]:
        """Return the fixed example, the drawn ones and the earlier rounds, in this order."""
        placing = placement if self.prompt.place_pictures else None
        turns: tuple[Turn, ...] = ()
        if self.prompt.in_context:
            turns = shot_turns(self.prompt, style, hidden)
        if self.retriever is not None:
            for example in self.retriever(sample, rng(self.seed, sample.id, variant, "shots")):
                refuse_videos(example)
                turns += example_turns(self.prompt, style, example, hidden, self.prompt.shots.images, placement=placing)
        if not sample.turns:
            return turns
        return (*turns, *history_turns(self.prompt, style, sample, hidden, replies, placement=placing))

    def _order(self, sample: Sample, axes: Mapping[str, str], variant: str, repeat: int) -> tuple[str, ...]:
        if sample.form not in OFFERED or not sample.options:
            return ()
        if "order" in axes:
            draw = rng(self.seed, sample.id, "order", axes["order"])
        elif self.task.shuffle_options:
            draw = rng(self.seed, sample.id, variant, repeat, "order")
        else:
            return sample.options
        shown = list(sample.options)
        draw.shuffle(shown)
        return tuple(shown)

    def _wording(self, sample: Sample, axes: Mapping[str, str], hidden: bool) -> tuple[str, str]:
        """Return the instruction and the question of one wording."""
        pool = (self.prompt.hidden or self.prompt.instructions) if hidden else self.prompt.instructions
        own: Sequence[str] = sample.meta.get("wordings") or ()
        number = self._wording_number(axes["wording"], max(len(pool), len(own), 1)) if "wording" in axes else 0
        wording = pool[number % len(pool)] if pool else ""
        question = own[number % len(own)] if own else sample.question
        if self.prompt.ask == "instead" and wording:
            return "", render(wording, {"question": question, **sample.meta.get("slots", {})})
        return wording, question

    def _wording_number(self, choice: str, count: int) -> int:
        if not choice.isdigit() or int(choice) >= count:
            raise ConfigError(f"variant wording={choice}: task {self.task.name!r} has wordings 0 to {count - 1}")
        return int(choice)

    def _tail(self, sample: Sample, hidden: bool) -> str:
        """Return the sentences that name the possible answers; they end the instruction, or else the question."""
        tail = ""
        if hidden and self.prompt.answer_space and sample.options:
            tail += " " + render(self.prompt.answer_space, {"answers": _listed(sample.options)})
        if self.prompt.yesno and {option.casefold() for option in sample.options} == {"yes", "no"}:
            tail += " " + self.prompt.yesno
        return tail

    def _perturbed(self, images: tuple[Image, ...], axes: Mapping[str, str], document: str) -> tuple[Image, ...]:
        """Add the degradation to every picture; all questions of a document see the same pixels."""
        if "perturb" not in axes:
            return images
        steps = axes["perturb"].split("+")
        seeds = [derive_seed(self.seed, document, page) % 2**32 for page in range(len(images))]
        return tuple(
            msgspec.structs.replace(
                image, edits=(*image.edits, *(f"perturb:{step}:{seed}:{CALIBRATION}" for step in steps))
            )
            for image, seed in zip(images, seeds, strict=True)
        )

    def _with_own_rounds(self, sample: Sample, axes: Mapping[str, str]) -> Sample:
        """Do to the pictures of earlier rounds what is done to the question's: withheld or degraded alike."""
        if not axes or not any(turn.images for turn in sample.turns):
            return sample
        turns = []
        for turn in sample.turns:
            own = msgspec.structs.replace(sample, images=turn.images)
            images = self._perturbed(choose_pages(own, axes, self.others), axes, sample.group or sample.id)
            text = turn.text if images or not turn.images else without_markers(turn.text).strip()
            turns.append(Turn(turn.role, text, images))
        return msgspec.structs.replace(sample, turns=tuple(turns))


def _with_placed_history(speech: Speech) -> Speech:
    """Return the speech with pictures of earlier turns by their own words: one string has no messages to hold them."""
    if not any(turn.images for turn in speech.history):
        return speech
    placement = Placement()
    placement.pictures.extend(speech.placed)
    turns = [Turn(turn.role, placement.put_before(turn.text, turn.images)) for turn in speech.history]
    return msgspec.structs.replace(speech, history=tuple(turns), placed=tuple(placement.pictures))


def shows_in_order(text: str, options: Sequence[str]) -> bool:
    """Tell whether a text ends in these options, one after the other, each in a place of its own.

    Looked for from the end, since an option's words may stand in the question too. Exactly first: nearly every prompt
    has them so; else as people would see them, whatever spaces and capitals lie between.
    """
    return _in_order(text, options) or _in_order(_seen(text), list(map(_seen, options)))


def _in_order(text: str, options: Sequence[str]) -> bool:
    end = len(text)
    for option in reversed(options):
        end = text.rfind(option, 0, end)
        if end < 0:
            return False
    return True


def _seen(text: str) -> str:
    return " ".join(text.casefold().split())


def _worded(prompt: Prompt, fields: Mapping[str, str]) -> str:
    """Return the text of a template, with the white space at its ends that the prompt wants."""
    if prompt.white_space not in WHITE_SPACE:
        raise ConfigError(f"prompt.white_space {not_among(prompt.white_space, WHITE_SPACE, ' is unknown')}")
    text = fill(prompt.template, fields)
    return text if prompt.white_space == "kept" else text.strip("\n").rstrip(" ")


def _without_list(question: str, options: tuple[str, ...]) -> str:
    """Return a question without the list of its own options, which the prompt shows: once is enough."""
    found = split_listed(question, options)
    return found.question if found is not None and found.question else question


@lru_cache(maxsize=4096)
def _axes(variant: str) -> Mapping[str, str]:
    axes = parse_variant(variant)
    for axis in axes:
        if axis not in AXES:
            raise ConfigError(f"variant axis {not_among(axis, AXES, ' is unknown')}")
    return axes


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"


def params_of_trial(params: Params, sample: Sample, repeat: int) -> Params:
    """Return the parameters sent for one trial.

    Each repeat gets its own sampling seed when one is sent, or all repeats would be one. A sample's own limit of tokens
    wins over the task's.
    """
    own: dict[str, Any] = {}
    if repeat and params.seed is not None:
        own["seed"] = params.seed + repeat
    if "max_tokens" in sample.meta:
        own["max_tokens"] = sample.meta["max_tokens"]
    return msgspec.structs.replace(params, **own) if own else params


@dataclass(frozen=True, slots=True)
class PrompterByForm:
    """Builds with the Prompter of the sample's form; `prompt` is the one of the form named first."""

    by_form: Mapping[Form, Prompter]

    @property
    def prompt(self) -> Prompt:
        """Return the prompt of the first form."""
        return next(iter(self.by_form.values())).prompt

    @property
    def prompts(self) -> dict[Form, Prompt]:
        """Return the prompt of every form."""
        return {form: prompter.prompt for form, prompter in self.by_form.items()}

    def with_prompt(self, prompt: Prompt) -> PrompterByForm:
        """Return the same with one prompt for all forms."""
        return self.mapped(lambda _: prompt)

    def mapped(self, change: Callable[[Prompt], Prompt]) -> PrompterByForm:
        """Return the same with every form's prompt changed."""
        return PrompterByForm({form: one.with_prompt(change(one.prompt)) for form, one in self.by_form.items()})

    def build(
        self, sample: Sample, variant: str = BASE_VARIANT, repeat: int = 0, replies: Sequence[str] | None = None
    ) -> Request:
        """Return the Request of one trial."""
        return self.by_form[sample.form].build(sample, variant, repeat, replies)
