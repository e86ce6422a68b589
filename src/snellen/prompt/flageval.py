"""Turns the fields of a FlagEvalMM prompt template (text before and after the question) into a Prompt."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..core.errors import ConfigError
from ..core.tasks import Prompt

Wordings = Mapping[str, Mapping[str, str]]
"""Language (`en`, `zh`) -> question type, or `default` -> what is asked after the question."""


class PromptTemplate(Struct, frozen=True, forbid_unknown_fields=True):
    """FlagEvalMM's fields, where they are text. `post_prompt` None means a wording by question type and language."""

    pre_prompt: str = ""
    post_prompt: str | None = None
    examples: str = ""

    def to_prompt(self, question: str, question_type: str, wordings: Wordings) -> Prompt:
        """Return the Prompt for questions of this type and of the language of `question`."""
        after = self.post_prompt if self.post_prompt is not None else choose_wording(question, question_type, wordings)
        before = (self.examples + self.pre_prompt).lstrip()
        return Prompt(template=before + "{question}\n{options}\n{instruction}", instructions=(after.strip(),))


def choose_wording(question: str, question_type: str, wordings: Wordings) -> str:
    """Return the wording of the question's language for its type, else the default one; any Chinese character makes it Chinese."""
    language = "zh" if any("\u4e00" <= character <= "\u9fff" for character in question) else "en"
    by_type = wordings.get(language, {})
    wording = by_type.get(question_type, by_type.get("default"))
    if wording is None:
        raise ConfigError(
            f"no wording for question type {question_type!r} in {language!r}: give it, or a 'default', or set post_prompt"
        )
    return wording
