"""A bank on disk: which models answered which questions how, in one SQLite file that others can read.

Tables: `meta` (key, value as JSON), `items` (number, id, content, gold, tags, grp), `models` (number, name, facts as
JSON), `cells` (model, item, value from 0 to 1, answer). No replies; answers that were read only where asked for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.errors import EnvironmentProblem, UsageError
from ...core.ids import content_hash
from ...core.types import Sample
from ...core.variants import PICTURE
from ...data.errata import question_hash

FORMAT = 1
APPLICATION = 0x534E424B
"""`SNBK`, where SQLite keeps whose file it is."""
FEWEST_MODELS = 5
SHORTEST_STEM = 6
"""Names shorter than this are kin only where they are equal: `gpt4` begins many names."""
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, content TEXT NOT NULL, gold TEXT NOT NULL,
                    tags TEXT NOT NULL, grp TEXT);
CREATE TABLE models (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE cells (model INTEGER NOT NULL, item INTEGER NOT NULL, value REAL NOT NULL, answer TEXT,
                    PRIMARY KEY (model, item)) WITHOUT ROWID;
"""
Floats = NDArray[np.float64]


class BankItem(msgspec.Struct, frozen=True):
    """One question: its id, hashes of what is asked and of the right answers (empty: known by id alone), its tags."""

    id: str
    content: str = ""
    gold: str = ""
    tags: dict[str, str] = {}
    group: str | None = None


class BankModel(msgspec.Struct, frozen=True):
    """One model of a bank: its name, and whose answers they are (source, date, settings, licence, protocol)."""

    name: str
    facts: dict[str, Any] = {}


@dataclass(frozen=True)
class Bank:
    """A bank in memory."""

    meta: dict[str, Any]
    """At least `task` and `metric`; also `how` (prompt, protocol and scorers as one hash), `created`, `notes`."""
    items: Sequence[BankItem]
    models: Sequence[BankModel]
    values: Floats
    """Models × items, NaN where a model was not asked."""
    answers: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """What was read from the reply, where it was kept: (model, item) to text."""

    def results(self, without: Iterable[str] = ()) -> Floats:
        """Return the results of all models but those named."""
        left = set(without)
        return self.values[[place for place, model in enumerate(self.models) if model.name not in left]]

    def columns_of(self, samples: Sequence[BankItem]) -> tuple[NDArray[np.intp], int]:
        """Return where each item stands in the bank, -1 outside of it, and how many are outside by their content.

        An item whose question, pictures or gold differ is another item, though its id is the same.
        """
        places = {item.id: place for place, item in enumerate(self.items)}
        found, changed = np.full(len(samples), -1, dtype=np.intp), 0
        for at, sample in enumerate(samples):
            place = places.get(sample.id, -1)
            if place >= 0 and differs(self.items[place], sample):
                place, changed = -1, changed + 1
            found[at] = place
        return found, changed


def relatives(name: str, bank: Bank) -> tuple[str, ...]:
    """Return the models of a bank that are this one: the same name, a checkpoint or a quantised form of it."""
    own = _bare(name)
    return tuple(model.name for model in bank.models if _is_kin(own, _bare(model.name)))


def _bare(name: str) -> str:
    """Return a model's name without its provider and marks: `openai/Qwen2.5-VL-7B` is `qwen25vl7b`."""
    return "".join(letter for letter in name.rpartition("/")[2].lower() if letter.isalnum())


def _is_kin(first: str, second: str) -> bool:
    short, long = sorted((first, second), key=len)
    return first == second or (len(short) >= SHORTEST_STEM and long.startswith(short))


def differs(first: BankItem, second: BankItem) -> bool:
    """Tell whether two items of one id ask or expect something else; what one of them does not say is not compared."""
    return any(a and b and a != b for a, b in ((first.content, second.content), (first.gold, second.gold)))


def item_of(sample: Sample) -> BankItem:
    """Return a sample as a bank knows it: hashed, never itself."""
    tags = {key: str(value) for key, value in sample.tags.items() if value is not None}
    return BankItem(sample.id, question_hash(sample), content_hash(sorted(sample.answers)), tags, sample.group)


def write_bank(path: Path, bank: Bank) -> None:
    """Write a bank whole: beside its place first, so that one that is there is never half overwritten."""
    check_bank(bank)
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(partial)) as database:
            database.executescript(SCHEMA)
            database.execute(f"PRAGMA application_id={APPLICATION}")
            database.execute(f"PRAGMA user_version={FORMAT}")
            _insert(database, bank)
            database.commit()
        partial.replace(path)
    except sqlite3.Error as error:
        raise EnvironmentProblem(f"cannot write {path}: {error}") from None
    finally:
        partial.unlink(missing_ok=True)


def _insert(database: sqlite3.Connection, bank: Bank) -> None:
    encode = msgspec.json.encode
    meta = [(key, encode(value).decode()) for key, value in bank.meta.items()]
    database.executemany("INSERT INTO meta VALUES (?, ?)", meta)
    rows = ((n, i.id, i.content, i.gold, encode(i.tags).decode(), i.group) for n, i in enumerate(bank.items))
    database.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", rows)
    models = ((n, model.name, encode(model.facts).decode()) for n, model in enumerate(bank.models))
    database.executemany("INSERT INTO models VALUES (?, ?, ?)", models)
    for number, row in enumerate(bank.values):
        known = np.flatnonzero(~np.isnan(row))
        cells = (
            (number, item, value, bank.answers.get((number, item)))
            for item, value in zip(known.tolist(), row[known].tolist(), strict=True)
        )
        database.executemany("INSERT INTO cells VALUES (?, ?, ?, ?)", cells)


def arm_of(bank: Bank) -> str:
    """Return the arm that a bank's results are of: `picture`, the question as it is, unless it says another."""
    return str(bank.meta.get("arm") or PICTURE)


def read_bank(path: str | Path) -> Bank:
    """Read a bank; one that is damaged, or no bank, is refused in one line."""
    place = Path(path)
    if not place.is_file():
        raise UsageError(f"no bank at {place}: build one with `snellen bank build RUNS -o {place.name}`")
    try:
        with closing(sqlite3.connect(f"{place.absolute().as_uri()}?mode=ro", uri=True)) as database:
            _check_file(database, place)
            return _read(database)
    except (sqlite3.Error, msgspec.DecodeError, IndexError, ValueError) as error:
        raise UsageError(f"{place} is damaged, or no bank: {error}; build it again") from None


def _check_file(database: sqlite3.Connection, place: Path) -> None:
    application = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION:
        raise UsageError(f"{place} is no bank: it is another SQLite file")
    if version > FORMAT:
        raise UsageError(f"{place} was written by a newer Snellen (format {version}): upgrade it")
    if database.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise UsageError(f"{place} is damaged: build it again")


def _read(database: sqlite3.Connection) -> Bank:
    decode = msgspec.json.decode
    meta = {key: decode(value) for key, value in database.execute("SELECT key, value FROM meta")}
    found = database.execute("SELECT id, content, gold, tags, grp FROM items ORDER BY number")
    items = [BankItem(name, content, gold, decode(tags), group) for name, content, gold, tags, group in found]
    named = database.execute("SELECT name, facts FROM models ORDER BY number")
    models = [BankModel(name, decode(facts)) for name, facts in named]
    values = np.full((len(models), len(items)), np.nan)
    for number in range(len(models)):
        rows = database.execute("SELECT item, value FROM cells WHERE model = ?", (number,)).fetchall()
        if rows:
            cells = np.array(rows)
            values[number, cells[:, 0].astype(np.intp)] = cells[:, 1]
    kept = database.execute("SELECT model, item, answer FROM cells WHERE answer IS NOT NULL")
    answers = {(model, item): answer for model, item, answer in kept}
    bank = Bank(meta, items, models, values, answers)
    check_bank(bank)
    return bank


def check_bank(bank: Bank) -> None:
    """Refuse what no bank can be made of: too few models, values that are no shares, nothing that differs."""
    if len(bank.models) < FEWEST_MODELS:
        known = ", ".join(model.name for model in bank.models) or "none"
        raise UsageError(f"a bank needs at least {FEWEST_MODELS} models, not {len(bank.models)} ({known}): add runs")
    known_values = bank.values[~np.isnan(bank.values)]
    if known_values.size and (known_values.min() < 0.0 or known_values.max() > 1.0):
        worst = known_values[np.argmax(np.abs(known_values - 0.5))]
        raise UsageError(f"a bank takes values from 0 to 1, and there is {worst:g}: choose a metric that is a share")
    if known_values.size == 0 or np.ptp(known_values) == 0.0:
        what = "nothing" if not known_values.size else f"nothing but {known_values[0]:g}"
        raise UsageError(f"the bank holds {what}: where all models are right (or wrong) alike it can predict nothing")
