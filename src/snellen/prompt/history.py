"""What was said before the question: a fixed example, drawn examples, earlier rounds of a dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..core.errors import ConfigError
from ..core.message_parts import holds_marker, without_markers
from ..core.tasks import Prompt
from ..core.types import Form, Image, Sample, Turn
from .place import Placement, make_marks
from .template import FIELD, render


def show_options(prompt: Prompt, marks: Sequence[str], texts: Sequence[str]) -> str:
    """Return the block of marked options."""
    if not texts:
        return ""
    before, between, after = split_option_format(prompt.option_format)
    lines = [f"{before}{mark}{between}{text}{after}" for mark, text in zip(marks, texts, strict=True)]
    block = prompt.option_separator.join(lines)
    return block if prompt.options_format == "{options}" else render(prompt.options_format, {"options": block})


@lru_cache(maxsize=64)
def split_option_format(form: str) -> tuple[str, str, str]:
    """Return what stands before the mark, between mark and text, and after the text."""
    parts = FIELD.split(form)
    if parts[1::2] != ["mark", "text"]:
        raise ConfigError(f"option_format {form!r} must name {{mark}} and then {{text}}, each once")
    return parts[0], parts[2], parts[4]


def say_answer(prompt: Prompt, style: str, text: str, options: Sequence[str]) -> str:
    """Return an answer as the assistant would have said it: prefix, mark and text; what is no option stays as it is."""
    if text in options:
        mark = make_marks(style, len(options))[list(options).index(text)]
        before, between, after = split_option_format(prompt.option_format)
        text = f"{before}{mark}{between}{text}{after}"
    return f"{prompt.prefix} {text}" if prompt.prefix else text


def say_question(prompt: Prompt, style: str, question: str, options: Sequence[str]) -> str:
    """Return an earlier question with its options."""
    block = show_options(prompt, make_marks(style, len(options)), options)
    return f"{question}{' ' if prompt.option_separator != chr(10) else chr(10)}{block}" if block else question


def shot_turns(prompt: Prompt, style: str, hidden: bool) -> tuple[Turn, ...]:
    """Return the fixed example as two turns, or none."""
    shot = prompt.shot
    if shot is None or not prompt.in_context:
        return ()
    marks = prompt.shot_marks or style
    options = () if hidden else shot.options
    question = say_question(prompt, marks, shot.question, options)
    return Turn("user", question), Turn("assistant", say_answer(prompt, marks, shot.answer, options))


def history_turns(
    prompt: Prompt,
    style: str,
    sample: Sample,
    hidden: bool,
    replies: Sequence[str] | None,
    *,
    placement: Placement | None = None,
) -> tuple[Turn, ...]:
    """Return the rounds before this one, with the right answers or, where given, the model's own `replies`."""
    if not sample.turns:
        return ()
    rounds: list[list[str]] = sample.meta.get("history_options") or []
    shown = prompt.options_in_history and not hidden and bool(rounds)
    turns: list[Turn] = []
    for number in range(len(sample.turns) // 2):
        question, answer = sample.turns[2 * number], sample.turns[2 * number + 1]
        text = answer.text if replies is None or number >= len(replies) else replies[number]
        options = rounds[number] if shown else ()
        asked = say_question(prompt, style, question.text, options)
        turns.append(Turn("user", *_placed(asked, question.images, placement)))
        said = say_answer(prompt, style, text, options) if options else text
        turns.append(Turn("assistant", _without_pictures(said, question.images, placement)))
    return tuple(turns)


def _placed(text: str, images: tuple[Image, ...], placement: Placement | None) -> tuple[str, tuple[Image, ...]]:
    return (text, images) if placement is None else placement.take(text, images)


def _without_pictures(answer: str, images: tuple[Image, ...], placement: Placement | None) -> str:
    """Return an answer that names a picture option by its mark alone: an assistant says texts."""
    return without_markers(answer).strip() if placement is not None and images and holds_marker(answer) else answer


def example_turns(
    prompt: Prompt, style: str, sample: Sample, hidden: bool, images: bool, *, placement: Placement | None = None
) -> tuple[Turn, ...]:
    """Return another sample as an example: its question with options, and its right answer."""
    options = () if hidden else sample.options
    question = say_question(prompt, style, sample.question, options)
    right = sample.answers if sample.form is Form.MULTIPLE else sample.answers[:1]
    answer = ", ".join([say_answer(prompt, style, text, options) for text in right])
    if placement is None:
        return Turn("user", question, sample.images if images else ()), Turn("assistant", answer)
    text, first = placement.take(question, sample.images if images else (), withheld=bool(sample.images) and not images)
    return Turn("user", text, first), Turn("assistant", _without_pictures(answer, sample.images, placement))
