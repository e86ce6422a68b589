"""What is known of a harness, as data (`catalog/peers`): its names of benchmarks, and which rule reads which."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from ...core.config import convert, read_config_file
from ...core.errors import UsageError, did_you_mean


class PeerRules(Struct, frozen=True, forbid_unknown_fields=True):
    """Which rules read a benchmark; an empty name: none is known."""

    choice: str = ""
    yesno: str = ""
    open: str = ""
    aggregate: str = "mean"
    """`mean` over rows, or `all-of-group`: a question counts if all its rotated copies are right."""
    ours: tuple[str, ...] = ()
    """The scorers that measure it as its paper means it."""
    note: str = ""
    """What the harness quotes beside, or instead of, the share of right rows."""


class PeerTask(Struct, frozen=True, forbid_unknown_fields=True):
    """One benchmark: our name, the harness's names (patterns), and what differs from the harness's usual rules."""

    task: str
    """Empty: the harness's own name."""
    names: tuple[str, ...]
    choice: str | None = None
    yesno: str | None = None
    open: str | None = None
    aggregate: str | None = None
    ours: tuple[str, ...] | None = None
    note: str = ""


class PeerCard(Struct, frozen=True, forbid_unknown_fields=True):
    """One harness."""

    title: str
    seen: str
    """The version whose rules these are: its commit, and when that was."""
    reply: str = ""
    """What it takes off a reply before it reads it (`score_options.reply` of its protocols)."""
    choice: str = ""
    yesno: str = ""
    open: str = ""
    ours: tuple[str, ...] = ("closed_forms",)
    """The scorers for a benchmark whose own are not named."""
    leaves_out: bool = False
    """Whether rows without a verdict, in a file that has verdicts, are out of its number (else nothing is known)."""
    tasks: tuple[PeerTask, ...] = ()

    @property
    def commit(self) -> str:
        """Return the commit whose rules these are."""
        return self.seen.partition(" ")[0]

    def find(self, name: str) -> PeerTask | None:
        """Return the benchmark that the harness calls so, or None."""
        wanted = name.lower()
        return next((task for task in self.tasks if _is_named(task, wanted)), None)

    def rules(self, name: str) -> PeerRules:
        """Return which rules read a benchmark, by the harness's name."""
        found = self.find(name)
        usual = PeerRules(self.choice, self.yesno, self.open, ours=self.ours)
        if found is None:
            return usual
        return PeerRules(
            usual.choice if found.choice is None else found.choice,
            usual.yesno if found.yesno is None else found.yesno,
            usual.open if found.open is None else found.open,
            found.aggregate or usual.aggregate,
            found.ours or usual.ours,
            found.note,
        )

    def names(self) -> Iterator[str]:
        """Yield every name of a benchmark that is written out."""
        yield from (name for task in self.tasks for name in task.names if "*" not in name)


def _is_named(task: PeerTask, wanted: str) -> bool:
    return any(fnmatchcase(wanted, name.lower()) for name in task.names)


@cache
def peer_cards() -> dict[str, PeerCard]:
    """Return the cards of all harnesses, by name."""
    folder = Path(str(files("snellen") / "catalog" / "peers"))
    return {
        path.stem: convert(read_config_file(path), PeerCard, f"peer {path.stem!r}")
        for path in sorted(folder.glob("*.toml"))
    }


def peer_card(harness: str) -> PeerCard:
    """Return the card of a harness, or say which there are."""
    cards = peer_cards()
    if harness not in cards:
        raise UsageError(f"no harness named {harness!r}{did_you_mean(harness, cards)}; known: {', '.join(cards)}")
    return cards[harness]


def versioned(protocol: str) -> str:
    """Return a protocol with the version of its tool (`lmms-eval@75571cf`); one that is no tool's is as it is."""
    card = peer_cards().get(protocol)
    return f"{protocol}@{card.commit}" if card is not None else protocol


def split_name(stem: str, folder: str, card: PeerCard) -> tuple[str, str]:
    """Return model and benchmark of a file called MODEL_BENCHMARK: by the names known, else by its folder's name."""
    lowered = stem.lower()
    ends = [name for name in card.names() if lowered.endswith(f"_{name.lower()}")]
    if ends:
        name = max(ends, key=len)
        return stem[: -len(name) - 1], stem[-len(name) :]
    if folder and stem.startswith(f"{folder}_"):
        return folder, stem[len(folder) + 1 :]
    model, _, benchmark = stem.partition("_")
    return (model, benchmark) if benchmark else ("", stem)
