"""Sample, variant and repeat to Request: which wording, which option order, which marks, which messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import NamedTuple

import msgspec

from ..core.errors import ConfigError, not_among
from ..core.ids import derive_seed, rng
from ..core.message_parts import holds_marker, without_markers
from ..core.tasks import Prompt, Task
from ..core.types import BASE_VARIANT, OFFERED, Image, Request, Sample, TrialKey, Turn
from ..core.variants import parse_variant
from ..data.degrade.calibrations import CALIBRATION
from ..data.video.showings import VIDEO_AXES
from . import meta
from .document import choose_pages, with_context
from .history import example_turns, history_turns, shot_turns, show_options
from .marks import draw_style, make_marks
from .mould import Mould, is_plain, make_mould
from .place import STYLE_TAG, Placement, number_options, place_parts
from .sampling_params import params_of_trial
from .styles import Speech, chat, load_style
from .template import names_field, render
from .videos import Projector, refuse_videos

AXES = ("wording", "order", "marks", "perturb", "pages", "control", *VIDEO_AXES)

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
    _moulds: dict[tuple[str, int, bool], Mould | None] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """By variant, number of options and whether the sample is a choice: what plain trials share, from the second on."""

    def with_prompt(self, prompt: Prompt) -> Prompter:
        """Return a Prompter of the same task, seed and examples with another prompt."""
        return replace(self, prompt=prompt)

    def build(
        self, sample: Sample, variant: str = BASE_VARIANT, repeat: int = 0, replies: Sequence[str] | None = None
    ) -> Request:
        """Return the Request of one trial; `replies` are the model's own answers to earlier rounds of a dialogue."""
        # Dialogues, and what only a loader understands, are told sample by sample.
        plain = not sample.meta and not sample.turns and not sample.videos and bool(sample.question)
        shape = (variant, len(sample.options), sample.form in OFFERED)
        mould = self._moulds.get(shape) if plain else None
        if mould is not None:
            marks, prefix = mould.marks, mould.prefix
            shown = self._order(sample, _axes(variant), variant, repeat) if marks else ()
            messages = mould.cast(sample.question, shown, sample.images)
        if mould is None or self._places(sample, messages):
            speech, marks, shown = self.speak(sample, variant, repeat, replies)
            messages, prefix = self._messages(speech), self._prefix_left(speech)
            if plain:
                self._keep_mould(shape, sample)
        key = TrialKey(self.task.name, sample.id, variant, repeat)
        params = params_of_trial(self.task.params, sample, repeat)
        return Request(key, messages, params, marks=marks, shown=shown, prefix=prefix)

    def speak(
        self, sample: Sample, variant: str = BASE_VARIANT, repeat: int = 0, replies: Sequence[str] | None = None
    ) -> Spoken:
        """Return what is said in one trial, before it is given the form of messages or of one string."""
        prompt, axes = self.prompt, _axes(variant)
        placement = Placement()
        projector = Projector(sample, prompt.video, axes, placement, seed=self.seed)
        sample = self._with_own_rounds(projector.with_rounds(), axes)
        shown = self._order(sample, axes, variant, repeat)
        draw = partial(rng, self.seed, sample.id, variant, repeat, "marks")
        style = draw_style(axes.get("marks", prompt.marks), draw)
        marks = make_marks(style, len(shown))
        hidden = self._hides_options(sample)
        instruction, question = self._wording(sample, axes, hidden)
        question, numbered = number_options(question, sample) if prompt.place_pictures else (question, {})
        options = show_options(prompt, marks, [numbered.get(text, text) for text in shown]) if not hidden else ""
        tail = self._tail(sample, hidden)
        instruction, question = (instruction + tail, question) if instruction else ("", question + tail)
        fields = {"question": question, "options": options, "choices": options, "instruction": instruction}
        history = self._before(sample, variant, style, hidden, replies, placement=placement)
        text = render(prompt.template, fields).rstrip(" ")
        query, images = self._show(text, sample, axes, placement, opening=not history)
        query = projector.show(query, sample.videos)
        speech = Speech(
            query=with_context(sample, axes, query),
            question=question,
            instruction="" if names_field(prompt.template, "instruction") else instruction,
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
        chosen = choose_pages(sample, axes)
        images = self._perturbed(chosen, axes, sample.group or sample.id)
        if not self.prompt.place_pictures or not (images or sample.images):
            return text, images
        text, images = placement.take(text, images, opening=opening, withheld=chosen is not sample.images)
        if self.retriever is None or not self.prompt.shots.images or sample.turns:
            return text, images
        return placement.put_before(text, images), ()  # where examples have pictures, each question stands by its own

    def _keep_mould(self, shape: tuple[str, int, bool], sample: Sample) -> None:
        if shape not in self._moulds:
            self._moulds[shape] = self._make_mould(sample, shape[0])

    def _make_mould(self, sample: Sample, variant: str) -> Mould | None:
        """Return what the plain trials of this variant share with the sample's, or None where there are none."""
        axes = _axes(variant)
        if self.retriever is not None or not is_plain(self.prompt, axes):
            return None
        hidden = self._hides_options(sample)
        instruction, _ = self._wording(sample, axes, hidden)
        count = len(sample.options) if sample.form in OFFERED else 0
        return make_mould(self.prompt, axes.get("marks", self.prompt.marks), count, instruction, hidden)

    def _places(self, sample: Sample, messages: tuple[Turn, ...]) -> bool:
        """Tell whether the text has places for the sample's pictures: a mould has none."""
        return bool(sample.images) and self.prompt.place_pictures and holds_marker(messages[-1].text)

    def _hides_options(self, sample: Sample) -> bool:
        return bool(sample.options) and not names_field(self.prompt.template, "options", "choices")

    def _messages(self, speech: Speech) -> tuple[Turn, ...]:
        if self.prompt.style == "chat":
            messages = chat(speech)
            return place_parts(messages, speech.placed) if speech.placed else messages
        if self.prompt.place_pictures:
            speech = _with_placed_history(speech)
        images = [image for turn in speech.history for image in turn.images]
        kind, _, file = self.prompt.style.partition(":")
        if kind == "meta":
            text = meta.speak(meta.load_meta_template(file), speech)
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
        choice, count = axes.get("wording", "0"), max(len(pool), len(own), 1)
        if not choice.isdigit() or int(choice) >= count:
            raise ConfigError(f"variant wording={choice}: task {self.task.name!r} has wordings 0 to {count - 1}")
        wording = pool[int(choice) % len(pool)] if pool else ""
        question = own[int(choice) % len(own)] if own else sample.question
        if self.prompt.ask == "instead" and wording:
            return "", render(wording, {"question": question, **sample.meta.get("slots", {})})
        return wording, question

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
            images = self._perturbed(choose_pages(own, axes), axes, sample.group or sample.id)
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


@lru_cache(maxsize=4096)
def _axes(variant: str) -> Mapping[str, str]:
    axes = parse_variant(variant)
    for axis in axes:
        if axis not in AXES:
            raise ConfigError(f"variant axis {not_among(axis, AXES, ' is unknown')}")
    return axes


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
