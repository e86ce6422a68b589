"""`snellen extract`: which option a reply chooses, by which rule, where it stands and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click import argument, option

if TYPE_CHECKING:
    from ..api.one_reply import Reading

_AROUND = 400
"""So many characters of the reply are shown on each side of what decided."""


@click.command()
@argument("reply", required=False)
@option("--file", "source", type=click.Path(path_type=Path), help="Read the reply from a file (- is standard input).")
@option("-o", "--option", "options", multiple=True, help="The text of an option; once for each, in the order shown.")
@option("--marks", help="What stood before the options, with commas (default A,B,C,…).")
@option("--finish", help="Why generation ended; `length` says that it was cut off.")
@option("--profile", default="snellen", show_default=True, help="Whose rules to read by.")
@option("--json", "as_json", is_flag=True, help="Machine output on stdout.")
def extract(
    *, reply: str | None, source: Path | None, options: tuple[str, ...], marks: str | None, as_json: bool, **how: str
) -> None:
    """Read which option a reply chooses, and say which rule decided and why.

    \b
    snellen extract "Not A; the answer is (B)." -o cat -o dog
    cat reply.txt | snellen extract -o cat -o dog --json
    """
    from ..api.one_reply import read_reply
    from ..core.types import to_json

    text = _reply(reply, source)
    named = [mark.strip() for mark in marks.split(",")] if marks else []
    found = read_reply(text, options, marks=named, finish=how["finish"], profile=how["profile"])
    if as_json:
        sys.stdout.write(to_json(found).decode() + "\n")
    else:
        _show(found, text)


def _reply(reply: str | None, source: Path | None) -> str:
    """Return the reply from the one place it was given."""
    from ..core.errors import UsageError

    if reply is not None and source is not None:
        raise UsageError("a reply and --file were given: give one of them")
    if reply is not None and reply != "-":
        return reply
    if source is not None and str(source) != "-":
        return _read_file(source)
    if reply is None and source is None and sys.stdin.isatty():
        raise UsageError("no reply given: write it as an argument, name --file, or pipe it in")
    return sys.stdin.read()


def _read_file(source: Path) -> str:
    from ..core.errors import UsageError

    try:
        return source.read_text("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{source} is no UTF-8 text: convert it first") from None


def _show(found: Reading, text: str) -> None:
    from rich.text import Text

    from ..core.text import show_text
    from ..report.console import WholeConsole

    console = WholeConsole()
    answer = f"{found.letter} ({show_text(found.text or '')})" if found.letter else f"none ({found.reason})"
    for name, value in (("answer", answer), ("rule", found.rule), ("rules", str(found.rules)), ("why", found.why)):
        console.print(Text(f"{name:<8}{show_text(value)}"))
    if found.span is not None:
        console.print(_marked(text, *found.span))


def _marked(text: str, start: int, end: int) -> object:
    """Return the reply with the deciding part between ⟦ and ⟧, so that it shows without colours too."""
    from rich.text import Text

    from ..core.text import show_text

    low, high = max(0, start - _AROUND), min(len(text), end + _AROUND)
    shown = Text("\n" + ("…" if low else "") + show_text(text[low:start]))
    shown.append(f"⟦{show_text(text[start:end])}⟧", style="reverse")
    return shown.append(show_text(text[end:high]) + ("…" if high < len(text) else ""))
