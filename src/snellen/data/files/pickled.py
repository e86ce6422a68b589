"""A pickle of plain data to lists and dicts, read as data: nothing in the file is ever run.

RefCOCO publishes its expressions as a pickle. Python's own reader would execute whatever the file says; this one
knows only the instructions that build numbers, texts, lists, tuples and dicts, and refuses all others.
"""

from __future__ import annotations

import pickletools  # lists instructions, runs none
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ...core.errors import DataError

Stack = list[Any]
_MARK = object()


def read_pickled(path: Path) -> Any:
    """Return the value in the file, or DataError if it holds anything but plain data."""
    stack: Stack = []
    memo: dict[int, Any] = {}
    try:
        for code, argument, _ in pickletools.genops(path.read_bytes()):
            if code.name == "STOP":
                return stack.pop()
            _step(code.name, argument, stack, memo)
    except (ValueError, IndexError, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is cut off or is not a pickle of plain data: {error}") from None
    raise DataError(f"{path} is cut off: the end mark is missing")


def _step(name: str, argument: Any, stack: Stack, memo: dict[int, Any]) -> None:
    if name in BUILDERS:
        BUILDERS[name](stack)
    elif name in PUTS:
        memo[len(memo) if argument is None else int(argument)] = stack[-1]
    elif name not in IGNORED:
        stack.append(_value(name, argument, memo))


def _value(name: str, argument: Any, memo: dict[int, Any]) -> Any:
    """Return what an instruction puts on the stack."""
    if name in VALUES:
        return argument
    if name in FIXED:
        return FIXED[name]()
    if name in GETS:
        return memo[int(argument)]
    raise ValueError(f"the instruction {name} can run code")


def _since_mark(stack: Stack) -> list[Any]:
    """Take everything above the last mark."""
    place = len(stack) - 1 - stack[::-1].index(_MARK)
    taken = stack[place + 1 :]
    del stack[place:]
    return taken


def _append(stack: Stack) -> None:
    value = stack.pop()
    stack[-1].append(value)


def _appends(stack: Stack) -> None:
    values = _since_mark(stack)
    stack[-1].extend(values)


def _set_item(stack: Stack) -> None:
    value, key = stack.pop(), stack.pop()
    stack[-1][key] = value


def _set_items(stack: Stack) -> None:
    pairs = _pairs(_since_mark(stack))
    stack[-1].update(pairs)


def _collect(kind: Callable[[list[Any]], Any], stack: Stack) -> None:
    stack.append(kind(_since_mark(stack)))


def _pairs(values: list[Any]) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


def _short_tuple(size: int, stack: Stack) -> None:
    values = tuple(stack[-size:])
    del stack[-size:]
    stack.append(values)


IGNORED = ("PROTO", "FRAME")
PUTS = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
GETS = ("GET", "BINGET", "LONG_BINGET")
VALUES = (
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
    "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES",
)  # fmt: skip
FIXED: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}
BUILDERS: dict[str, Callable[[Stack], None]] = {
    "APPEND": _append,
    "APPENDS": _appends,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "LIST": partial(_collect, list),
    "DICT": partial(_collect, _pairs),
    "TUPLE": partial(_collect, tuple),
    **{f"TUPLE{size}": partial(_short_tuple, size) for size in (1, 2, 3)},
}
