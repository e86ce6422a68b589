"""The lists of possible answers beside prepared files, in every shape they come in, to texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DataError
from .written_numbers import read_written

LIST_KEYS = ("choice", "choices", "answer", "answers", "options")


def read_choice_list(path: Path) -> list[str]:
    """Return the texts of a list: flat, `{"choice": […]}`, `[{"choice": […]}]`, or an object a line."""
    data = path.read_bytes()
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError:
        value = [_decode_line(line, path, number) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    texts = list(_texts(value, path))
    if not texts:
        raise DataError(f"{path.name} holds no answers: a list of texts or numbers is expected")
    return texts


def written_alike(answer: str, pool: Iterable[str]) -> list[str]:
    """Return the pool with numbers written as the answer is ("three" among "two", not among "2"); other texts stay."""
    written = read_written(answer)
    if written is None:
        return list(pool)
    highest = written.highest
    numbers = ((text, read_written(text)) for text in pool)
    fitting = ((text, number) for text, number in numbers if number is None or _can_write(number.value, highest))
    return [text if number is None else written.write(number.value) for text, number in fitting]


def _can_write(value: int, highest: int | None) -> bool:
    return highest is None or value <= highest


def _texts(value: Any, path: Path) -> Iterator[str]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, path)
    elif isinstance(value, dict) and (keys := [key for key in LIST_KEYS if key in value]):
        yield from _texts(value[keys[0]], path)
    else:
        shape = f"an object with {', '.join(value) or 'nothing'}" if isinstance(value, dict) else type(value).__name__
        raise DataError(f"{path.name} is no list of answers: it holds {shape}; expected texts, or them under 'choice'")


def _decode_line(line: bytes, path: Path, number: int) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise DataError(f"{path.name} line {number} is not valid JSON: {error}") from None
