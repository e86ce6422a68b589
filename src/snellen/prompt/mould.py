"""A prompt and a variant to a mould: what all plain trials share is put together once, a sample only fills it.

A second way beside `Prompter.speak`, kept for the 5 µs it saves on every plain trial (ADR 74).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ..core.tasks import Prompt
from ..core.types import Image, Turn
from .history import show_options
from .marks import make_marks
from .template import fill, names_field

PLAIN_AXES = {"wording", "marks", "order"}
"""What may vary in a mould: the wording and the marks are cast into it, an order comes with the sample."""


class Mould(NamedTuple):
    """All that is said in plain trials of one variant and one number of options, but question and options."""

    before: tuple[Turn, ...]
    lead: str
    """The instruction, where it precedes the question."""
    text: str
    """A format of %(question)s and %(options)s."""
    options: str
    """A format with one %s an option."""
    marks: tuple[str, ...]
    prefix: str

    def cast(self, question: str, shown: tuple[str, ...], images: tuple[Image, ...]) -> tuple[Turn, ...]:
        """Return the messages of one trial; the question is not empty."""
        options = self.options % shown if self.options else ""
        text = (self.text % {"question": question, "options": options}).strip("\n").rstrip(" ")
        return (*self.before, Turn("user", self.lead + text, images))


def is_plain(prompt: Prompt, axes: Mapping[str, str]) -> bool:
    """Tell whether nothing is said but an instruction, a question and options, whatever the sample."""
    says_more = prompt.in_context or prompt.yesno or prompt.answer_space or prompt.ask == "instead"
    drawn_marks = axes.get("marks", prompt.marks) == "random"
    formed = prompt.style == "chat" and prompt.options_format == "{options}"
    return formed and not drawn_marks and not says_more and axes.keys() <= PLAIN_AXES


def make_mould(prompt: Prompt, marks_style: str, count: int, instruction: str, hidden: bool) -> Mould:
    """Return the mould of a plain prompt for `count` options, which are not said where they are `hidden`."""
    marks = make_marks(marks_style, count)
    option, separator = _literal(prompt.option_format), _literal(prompt.option_separator)
    formats = replace(prompt, option_format=option, option_separator=separator)
    options = "" if hidden else show_options(formats, marks, ("%s",) * count)
    block = "%(options)s" if options else ""
    fields = {"question": "%(question)s", "options": block, "choices": block, "instruction": _literal(instruction)}
    return Mould(
        before=(Turn("system", prompt.system),) if prompt.system else (),
        lead=f"{instruction} " if instruction and not names_field(prompt.template, "instruction") else "",
        text=fill(_literal(prompt.template), fields),
        options=options,
        marks=marks,
        prefix="" if hidden else prompt.prefix,
    )


def _literal(text: str) -> str:
    """Return the format that gives this text."""
    return text.replace("%", "%%")
