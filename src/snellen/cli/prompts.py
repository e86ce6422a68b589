"""The flags about prompts to the fields of a prompt they replace."""

from __future__ import annotations

from typing import Any

from ..core.errors import UsageError

ANSWER_SPACE = "Possible answers: {answers}."
YESNO = "Answer yes or no."


def read_prompt_flags(flags: dict[str, Any]) -> dict[str, Any]:
    """Take the prompt flags out of `flags` and return the prompt fields they stand for."""
    fields: dict[str, Any] = {
        "in_context": flags.pop("in_context_sample") or None,
        "instructions": _only(flags.pop("post_prompt")),
        "prefix": flags.pop("response_prefix"),
        "answer_space": ANSWER_SPACE if flags.pop("answer_space_instruct") else None,
        "yesno": YESNO if flags.pop("yesno_instruct") else None,
        "style": flags.pop("style"),
        "options_in_history": flags.pop("options_in_history"),
        "shots": _read_shots(flags.pop("shots")),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _only(text: str | None) -> list[str] | None:
    return None if text is None else [text]


def _read_shots(spec: str | None) -> dict[str, Any] | None:
    """Read `2`, `random:2` or `fixed:id1,id2`."""
    if spec is None:
        return None
    if spec.isdigit():
        spec = f"random:{spec}"
    retriever, _, rest = spec.partition(":")
    if retriever == "fixed":
        return {"retriever": retriever, "ids": rest.split(",")}
    if not rest.isdigit():
        raise UsageError(f"--shots {spec!r} is not N, RETRIEVER:N (random:2, similar:3, bm25:3) or fixed:id1,id2")
    return {"retriever": retriever, "count": int(rest)}
