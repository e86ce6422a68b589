"""Requests of a task whose samples have several forms: each is built by the prompt of its own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..core.tasks import Prompt
from ..core.types import BASE_VARIANT, Form, Request, Sample
from .build import Prompter


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
