"""Sample, variant and repeat to Request: which wording, which option order, which marks, which messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from ..core.errors import ConfigError, did_you_mean
from ..core.ids import derive_seed, rng
from ..core.types import BASE_VARIANT, Form, Image, Params, Prompt, Request, Sample, Task, TrialKey, Turn
from ..core.variants import parse_variant
from .marks import make_marks
from .template import render

AXES = ("wording", "order", "marks", "perturb")


@dataclass(frozen=True, slots=True)
class Prompter:
    """Builds the Request of any trial of one task; a pure function of its fields and arguments."""

    task: Task
    prompt: Prompt
    seed: int

    def build(self, sample: Sample, variant: str = BASE_VARIANT, repeat: int = 0) -> Request:
        """Return the Request of one trial."""
        axes = parse_variant(variant)
        for axis in axes:
            if axis not in AXES:
                raise ConfigError(f"variant axis {axis!r} is unknown{did_you_mean(axis, AXES)}; known: {', '.join(AXES)}")
        key = TrialKey(self.task.name, sample.id, variant, repeat)
        shown = self._order(sample, axes, key)
        marks = (
            make_marks(axes.get("marks", self.prompt.marks), len(shown), rng(self.seed, sample.id, variant, repeat, "marks"))
            if shown
            else ()
        )
        text = render(self.prompt.template, self._fields(sample, axes, marks, shown))
        images = self._perturbed(sample.images, axes, sample.id)
        return Request(
            key=key,
            messages=self._messages(sample, text, images),
            params=_params_of_repeat(self.task.params, repeat),
            marks=marks,
            shown=shown,
            prefix=self.prompt.prefix,
        )

    def _messages(self, sample: Sample, text: str, images: tuple[Image, ...]) -> tuple[Turn, ...]:
        system = (Turn("system", self.prompt.system),) if self.prompt.system else ()
        return (*system, *sample.turns, Turn("user", text, images))

    def _order(self, sample: Sample, axes: Mapping[str, str], key: TrialKey) -> tuple[str, ...]:
        if sample.form is not Form.CHOICE or not sample.options:
            return ()
        shown = list(sample.options)
        if "order" in axes:
            rng(self.seed, sample.id, "order", axes["order"]).shuffle(shown)
        elif self.task.shuffle_options:
            rng(self.seed, sample.id, key.variant, key.repeat, "order").shuffle(shown)
        return tuple(shown)

    def _fields(self, sample: Sample, axes: Mapping[str, str], marks: tuple[str, ...], shown: tuple[str, ...]) -> dict[str, str]:
        prompt = self.prompt
        options = prompt.option_separator.join(
            render(prompt.option_format, {"mark": mark, "text": text}) for mark, text in zip(marks, shown, strict=True)
        )
        return {"question": sample.question, "options": options, "choices": options, "instruction": self._wording(sample, axes)}

    def _wording(self, sample: Sample, axes: Mapping[str, str]) -> str:
        pool = self.prompt.instructions
        choice = axes.get("wording", "0")
        if not pool:
            return ""
        if choice.isdigit() and int(choice) < len(pool):
            return pool[int(choice)]
        raise ConfigError(f"variant wording={choice}: task {self.task.name!r} has wordings 0 to {len(pool) - 1}")

    def _perturbed(self, images: tuple[Image, ...], axes: Mapping[str, str], sample_id: str) -> tuple[Image, ...]:
        if "perturb" not in axes:
            return images
        return tuple(
            msgspec.structs.replace(
                image, edits=(*image.edits, f"perturb:{axes['perturb']}:{derive_seed(self.seed, sample_id, place) % 2**32}")
            )
            for place, image in enumerate(images)
        )


def _params_of_repeat(params: Params, repeat: int) -> Params:
    """Give each repeat its own sampling seed when one is sent, or all repeats would be one."""
    if params.seed is None or repeat == 0:
        return params
    return msgspec.structs.replace(params, seed=params.seed + repeat)
