"""Runs, imported predictions, tables of others and older banks to one bank; mixtures are refused unless told."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ...core.errors import DataError, UsageError, not_among
from ...core.ids import content_hash
from ...core.tasks import RunHeader, Task
from ...core.variants import ARMS, NONE, PICTURE, format_variant
from ...report.run_briefs import run_folders
from ...scoring.aggregates.headline import quoted_metric
from ...scoring.stored import metrics_of, stored_tables
from ...store.reader import RunReader
from .bank_estimate import cross_fit, estimates
from .bank_file import (
    Bank,
    BankItem,
    BankModel,
    Floats,
    arm_of,
    check_bank,
    differs,
    item_of,
    read_bank,
    write_bank,
)
from .item_bank import Array, Predictor, fit_predictor

TRIALS = 1_000
ASKED = 200
CHUNK = 50
HELD = ("strongest quarter", "random quarter", "weakest quarter")


class HeldOut(Struct, frozen=True):
    """What a bank gave for models that it did not know."""

    held_out: str
    asked: int
    half_width: float
    random_half_width: float
    questions: float
    """The share of questions that gives random sampling's width."""
    coverage: float
    trials: int

    def line(self) -> str:
        """Say it in one line."""
        widths = f"±{100 * self.half_width:.1f} (random ±{100 * self.random_half_width:.1f})"
        share = f"{100 * self.questions:.0f} % of the questions, covers {100 * self.coverage:.1f} %"
        return f"{self.held_out} held out, {self.asked} asked: {widths}, {share} ({self.trials:,} trials)"


class Checked(Struct, frozen=True):
    """A bank's check: held-out models by kind, and the same with a bank that is spoiled in four ways."""

    held_out: list[HeldOut]
    spoiled: list[HeldOut]

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        worst = max(self.spoiled, key=lambda one: one.questions)
        least = min(one.coverage for one in self.spoiled)
        told = f"spoiled on purpose ({len(self.spoiled)} ways): at most {100 * worst.questions:.0f} % of the questions"
        return [*(one.line() for one in self.held_out), f"{told}, covers at least {100 * least:.1f} %"]


def check(bank: Bank, *, asked: int = ASKED, trials: int = TRIALS, seed: int = 0) -> Checked:
    """Hold models out and see what the bank says of them, and what a spoiled one would."""
    draw = np.random.default_rng(seed)
    complete = bank.values[:, ~np.isnan(bank.values).all(axis=0)]
    items = complete.shape[1]
    count = max(10, min(asked, items // 2))
    order = np.argsort(np.nanmean(complete, axis=1), kind="stable")
    quarter = max(1, len(order) // 4)
    cuts = dict(zip(HELD, (order[-quarter:], draw.permutation(len(order))[:quarter], order[:quarter]), strict=True))
    found = [
        _held(name, fit_predictor(np.delete(complete, cut, 0)), complete[cut], (count, trials), draw)
        for name, cut in cuts.items()
    ]
    rest, strongest = np.delete(complete, cuts[HELD[0]], 0), complete[cuts[HELD[0]]]
    spoiled = [
        _held(name, fit_predictor(bad), strongest, (count, trials), draw) for name, bad in spoil(rest, draw).items()
    ]
    return Checked(found, spoiled)


def spoil(bank: Array, draw: np.random.Generator) -> dict[str, Array]:
    """Return the bank spoiled in four ways: none of them may cost truth, or more than one part in a hundred."""
    other = (draw.random(bank.shape) < draw.beta(1.0, 1.0, bank.shape[1])).astype(np.float64)
    return {
        "random labels": (draw.random(bank.shape) < np.nanmean(bank)).astype(np.float64),
        "permuted items": bank[:, draw.permutation(bank.shape[1])],
        "inverted": 1.0 - bank,
        "another benchmark": other,
    }


def _held(name: str, predictor: Predictor, held: Array, draws: tuple[int, int], draw: np.random.Generator) -> HeldOut:
    """Draw prefixes of what held-out models answered; holes of theirs are no items of their benchmark."""
    asked, trials = draws
    covered: list[bool] = []
    widths, plain_widths = [], []
    for start in range(0, trials, CHUNK):
        rows = held[np.arange(start, min(start + CHUNK, trials)) % len(held)]
        filled = np.where(np.isnan(rows), 0.0, rows)
        index = np.argsort(draw.random(rows.shape), axis=1)[:, :asked]
        found = estimates(cross_fit(predictor, index, np.take_along_axis(filled, index, 1)), rows.shape[1])
        for row, truth in enumerate(filled.mean(axis=1)):
            interval, plain = found.interval(row), found.interval(row, plain=True)
            if interval is None or plain is None:
                continue
            covered.append(interval[0] <= truth <= interval[1])
            widths.append(interval[1] - interval[0])
            plain_widths.append(plain[1] - plain[0])
    ratio = float(np.mean(widths) / np.mean(plain_widths))
    half, random_half = float(np.mean(widths)) / 2, float(np.mean(plain_widths)) / 2
    return HeldOut(name, asked, half, random_half, ratio**2, float(np.mean(covered)), len(covered))


CANNOT = (
    "it cannot score a model: it narrows an interval around answers that were asked",
    "it says nothing of questions that are not in it, or changed since: they are counted as outside",
    "a model unlike all of these gains nothing from it; trust in the bank is printed with every score",
    "models of one family answer alike: its number of models is not its number of opinions",
)


def card_lines(bank: Bank) -> list[str]:
    """Return the card: whose answers, when, under which licences, and what it cannot do."""
    meta: dict[str, Any] = bank.meta
    known = ~np.isnan(bank.values)
    means = np.nanmean(bank.values, axis=1)
    head = f"bank of {meta.get('task') or 'a table'} ({meta.get('metric')}), built {str(meta.get('created'))[:10]}"
    by_id = sum(not item.content for item in bank.items)
    lines = [
        f"{head}: {len(bank.models)} models × {len(bank.items):,} questions, {100 * known.mean():.1f} % of cells known",
        f"its models score {100 * means.min():.1f} to {100 * means.max():.1f}, median {100 * np.median(means):.1f}",
        f"gold version {meta.get('gold') or 'unknown'}; prompt and protocol {meta.get('how') or 'unknown'}",
        "answers that were read are kept" if bank.answers else "neither replies nor answers are kept",
    ]
    if by_id:
        lines.append(f"{by_id:,} questions are known by their id alone: whether they changed cannot be told")
    for key in ("source", "licence", "date", "protocol"):
        counts = Counter(str(model.facts.get(key, "not stated")) for model in bank.models)
        lines.append(f"{key}: " + ", ".join(f"{name} ({count})" for name, count in counts.most_common(6)))
    lines += [f"note: {note}" for note in meta.get("notes", [])]
    return [*lines, *CANNOT]


TABLES = (".csv", ".tsv", ".npz")
ITEM_WORDS = ("item", "items", "id", "question", "sample", "index")
TWINS_FROM = 50
"""Two models that give the same on so many questions are taken for one that was counted twice."""
DEPTH = 4


class Answers(NamedTuple):
    """What one model gave on some questions."""

    model: BankModel
    items: Sequence[BankItem]
    values: Floats
    answers: Sequence[str | None] = ()
    task: str = ""
    metric: str = "accuracy"
    how: str = ""
    """Prompt, protocol and scorers as one hash; empty where nobody knows."""


class Built(NamedTuple):
    """A bank, and what was left out or is worth knowing."""

    bank: Bank
    notes: list[str]


def build(
    sources: Sequence[str | Path],
    output: str | Path | None = None,
    *,
    task: str | None = None,
    metric: str | None = None,
    mixed: bool = False,
    twins: bool = False,
    answers: bool = False,
    licence: str = "",
    without: Sequence[str] = (),
    arm: str = PICTURE,
) -> Built:
    """Make a bank of runs (or folders of them), 0/1 tables (.csv .tsv .npz) and older banks.

    `mixed` takes runs of another prompt, protocol or gold too (cells of another gold become holes), `twins` models that
    answer all alike; `without` leaves models out; `answers` keeps what was read from replies, for `snellen audit`;
    `arm` takes what runs gave in that arm (`none`: without the picture) instead of the question as it is.
    """
    found = [one for source in sources for one in read_source(Path(source), task, metric, licence, arm)]
    if not found:
        raise UsageError(f"no results in {', '.join(map(str, sources))}: name runs, tables or banks")
    if unknown := set(without) - {one.model.name for one in found}:
        raise UsageError(f"--without {not_among(min(unknown), [one.model.name for one in found])}")
    found = [one for one in found if one.model.name not in without]
    notes: list[str] = []
    _check_alike(found, mixed, notes)
    bank = _join(found, mixed, keep_answers=answers, notes=notes)
    if arm != PICTURE:
        bank.meta["arm"] = arm
    check_bank(bank)
    _check_twins(bank, twins, notes)
    if output is not None:
        write_bank(Path(output), bank)
    return Built(bank, notes)


def read_source(
    path: Path, task: str | None, metric: str | None, licence: str = "", arm: str = PICTURE
) -> Iterator[Answers]:
    """Yield the models of a source: a table, a bank, a run, or a folder that holds runs."""
    if path.suffix in TABLES:
        yield from read_table(path, licence, arm)
    elif path.is_file():
        yield from _of_bank(path, arm)
    elif path.is_dir():
        folders = [path] if (path / "run.db").exists() else sorted(run_folders(path, DEPTH))
        if not folders:
            raise UsageError(f"no run below {path}: a run folder holds run.db")
        for folder in folders:
            found = read_run(folder, task, metric, licence, arm)
            if found is not None:
                yield found
    else:
        raise UsageError(f"{path} is not there: name a run folder, a table ({', '.join(TABLES)}) or a bank")


def read_run(
    folder: Path, task: str | None, metric: str | None, licence: str = "", arm: str = PICTURE
) -> Answers | None:
    """Return what the model of a run gave, None for a run of other tasks; failed calls are holes, unread is wrong."""
    with RunReader(folder) as reader:
        header = reader.header()
        cards = {card.name: card for card in header.tasks if card.name in reader.tasks()}
        if task is None and len(cards) > 1:
            raise UsageError(f"{folder} has the tasks {', '.join(cards)}: say which one with --task")
        card = cards.get(task) if task else next(iter(cards.values()), None)
        if card is None:
            return None
        known = metrics_of(reader, card.name)
        if not known:
            raise UsageError(f"{folder} has no scores: score it first with `snellen score {folder}`")
        chosen = metric or (quoted_metric(card) if quoted_metric(card) in known else known[0])
        if chosen not in known:
            raise UsageError(f"{folder}: no metric {not_among(chosen, known)}")
        samples = {sample.id: item_of(sample) for sample in reader.samples(card.name)}
        if arm not in ARMS:
            raise UsageError(f"--arm {not_among(arm, ARMS)}")
        variant = format_variant(ARMS[arm])
        if variant not in card.variants:
            raise UsageError(f"{folder} has no variant {variant}: ask it with --arms {PICTURE},{NONE}, or leave it out")
        values, said = _sample_values(reader, card.name, chosen, variant)
        items = [samples[name] for name in values]
        facts = _facts(header, card, folder, licence)
        model = BankModel(header.model, facts)
        texts = [said.get(name) for name in values]
        return Answers(
            model, items, np.array(list(values.values())), texts, card.name, chosen, _how(header, card, chosen)
        )


def _sample_values(reader: RunReader, task: str, metric: str, variant: str) -> tuple[dict[str, float], dict[str, str]]:
    """Return the mean of each sample over the repeats of one variant, and the answer read in the first."""
    table = stored_tables(reader, task, tag_keys=())[metric]
    plain = np.array([name == variant for name in table.variants] or [True])
    use = table.scored & plain[table.variant]
    sums = np.bincount(table.sample[use], weights=table.value[use], minlength=len(table.samples))
    counts = np.bincount(table.sample[use], minlength=len(table.samples))
    values = {table.samples[at]: float(sums[at] / counts[at]) for at in np.flatnonzero(counts).tolist()}
    said: dict[str, str] = {}
    for at in np.flatnonzero(use & (table.answer >= 0)).tolist():
        said.setdefault(table.samples[table.sample[at]], table.answers[table.answer[at]])
    return values, said


def sample_values(folder: Path, task: str, metric: str | None = None) -> dict[str, float]:
    """Return what a run gave on each question of a task, by id."""
    found = read_run(folder, task, metric)
    return {} if found is None else dict(zip((item.id for item in found.items), found.values.tolist(), strict=True))


def _facts(header: RunHeader, card: Task, folder: Path, licence: str) -> dict[str, object]:
    facts = {
        "source": "runs of Snellen",
        "run": header.id,
        "folder": folder.name,
        "date": header.created[:10],
        "protocol": card.protocol,
        "repeats": card.repeats,
        "settings": msgspec.to_builtins(card.params),
        "licence": licence,
    }
    return {key: value for key, value in facts.items() if value not in ("", None, {}, ())}


def _how(header: RunHeader, card: Task, metric: str) -> str:
    identity = header.config.get("tasks", {}).get(card.name, {})
    prompt = identity.get("prompt") if isinstance(identity, dict) else None
    return content_hash([prompt, card.infer, card.scorers, card.protocol, metric]) if prompt else ""


def _of_bank(path: Path, arm: str) -> Iterator[Answers]:
    bank = read_bank(path)
    if arm_of(bank) != arm:
        raise UsageError(f"{path} is a bank of arm {arm_of(bank)}, not of {arm}: name runs or banks of one arm")
    for row, model in enumerate(bank.models):
        known = np.flatnonzero(~np.isnan(bank.values[row])).tolist()
        texts = [bank.answers.get((row, item)) for item in known]
        told = (str(bank.meta.get(key, "")) for key in ("task", "metric", "how"))
        yield Answers(model, [bank.items[item] for item in known], bank.values[row, known], texts, *told)


def read_table(path: Path, licence: str = "", arm: str = PICTURE) -> Iterator[Answers]:
    """Yield the models of a table: wide (a row a model, or a row an item), long (model, item, value), or an .npz."""
    if path.suffix == ".npz":
        models, items, values = _read_arrays(path, arm)
    else:  # a table of numbers does not say in which arm: whoever names it does
        models, items, values = _read_text(path)
    facts = {"source": f"table {path.name}", **({"licence": licence} if licence else {})}
    named = [BankItem(item) for item in items]
    for row, model in enumerate(models):
        known = np.flatnonzero(~np.isnan(values[row]))
        yield Answers(BankModel(model, facts), [named[item] for item in known.tolist()], values[row, known])


def _read_arrays(path: Path, arm: str) -> tuple[list[str], list[str], Floats]:
    try:
        with np.load(path, allow_pickle=False) as file:
            results, models, items = file["Y"].astype(np.float64), file["models"], file["items"]
            arms = [str(name) for name in file["arms"]] if results.ndim == 3 else []
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} is no table of results (arrays Y, models, items): {error}") from None
    if results.ndim == 3:  # arms × models × items: the first is the question as it is
        if arm not in (PICTURE, *arms):
            raise UsageError(f"{path}: --arm {not_among(arm, arms)}")
        results = results[arms.index(arm) if arm in arms else 0]
    if results.shape != (models.size, items.size):
        raise DataError(f"{path}: Y is {results.shape}, and there are {models.size} models and {items.size} items")
    results[results < 0] = np.nan
    return [str(name) for name in models], [str(name) for name in items], results


def _read_text(path: Path) -> tuple[list[str], list[str], Floats]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            header = next(rows, [])
            names = [name.strip().lower() for name in header[:3]]
            if len(header) == 3 and set(names) == {"model", "item", "value"}:
                return _long(path, [names.index(name) for name in ("model", "item", "value")], rows)
            firsts, cells = _wide(path, header, rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from None
    if names and names[0] in ITEM_WORDS:
        return [str(name) for name in header[1:]], firsts, np.array(cells).T
    return firsts, [str(name) for name in header[1:]], np.array(cells)


def _wide(path: Path, header: list[str], rows: Iterator[list[str]]) -> tuple[list[str], list[list[float]]]:
    if len(header) < 2:
        raise DataError(f"{path} has no columns of results: a row a model, a column an item (or model,item,value)")
    firsts, cells = [], []
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise DataError(f"{path}, line {number}: {len(row)} cells where the first line has {len(header)}")
        firsts.append(row[0])
        try:
            cells.append([float(cell) if cell else np.nan for cell in row[1:]])
        except ValueError:
            at = next(place for place, cell in enumerate(row[1:], start=1) if cell and not _is_number(cell))
            raise DataError(f"{path}, line {number}, column {header[at]!r}: {row[at]!r} is no number") from None
    return firsts, cells


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _long(path: Path, places: list[int], rows: Iterator[list[str]]) -> tuple[list[str], list[str], Floats]:
    found: dict[tuple[str, str], float] = {}
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        try:
            model, item, value = (row[place] for place in places)
            key = (model, item)
            if key in found:
                raise DataError(f"{path}, line {number}: {model!r} answered {item!r} twice")
            found[key] = float(value)
        except (IndexError, ValueError):
            raise DataError(f"{path}, line {number}: not model, item and a number") from None
    models = list(dict.fromkeys(model for model, _ in found))
    items = list(dict.fromkeys(item for _, item in found))
    model_at, item_at = ({name: at for at, name in enumerate(names)} for names in (models, items))
    values = np.full((len(models), len(items)), np.nan)
    for (model, item), given in found.items():
        values[model_at[model], item_at[item]] = given
    return models, items, values


def _check_alike(found: list[Answers], mixed: bool, notes: list[str]) -> None:
    """Refuse models that were asked, read or counted in different ways, and a name that comes twice."""
    differing: tuple[tuple[str, Callable[[Answers], str], str], ...] = (
        ("benchmarks", lambda one: one.task, "--task chooses one"),
        ("metrics", lambda one: one.metric, "--metric chooses one"),
        ("prompts, protocols or scorers", lambda one: one.how, "--mixed takes them all"),
    )
    for what, told, fix in differing:
        kinds = Counter(told(one) for one in found if told(one))
        if len(kinds) > 1 and not (mixed and "mixed" in fix):
            most = kinds.most_common(1)[0][0]
            odd = next(one for one in found if told(one) and told(one) != most)
            shown = f" ({most}; {told(odd)})" if "mixed" not in fix else ""
            raise UsageError(f"the results are of different {what}{shown}: {odd.model.name} is not as most; {fix}")
        if len(kinds) > 1:
            notes.append(f"models of {len(kinds)} different {what} are in one bank, as told")
    names = Counter(one.model.name for one in found)
    if twice := [name for name, count in names.items() if count > 1]:
        raise UsageError(f"{twice[0]!r} comes {names[twice[0]]} times: name each model once")


def _join(found: list[Answers], mixed: bool, *, keep_answers: bool, notes: list[str]) -> Bank:
    items: dict[str, BankItem] = {}
    places: dict[str, int] = {}
    cells: list[tuple[list[int], Floats, list[str | None]]] = []
    other = 0
    for one in found:
        twice = [name for name, count in Counter(item.id for item in one.items).items() if count > 1]
        if twice:
            raise UsageError(f"question {twice[0]!r} comes more than once in the results of {one.model.name}")
        keep = []
        for at, item in enumerate(one.items):
            known = items.get(item.id)
            if known is not None and differs(known, item):
                other += 1
                if not mixed:
                    raise _refuse_other(one, known, item)
                continue
            if known is None or not known.content:
                items[item.id] = item
                places.setdefault(item.id, len(places))
            keep.append(at)
        texts = [one.answers[at] for at in keep] if keep_answers and one.answers else []
        cells.append(([places[one.items[at].id] for at in keep], one.values[keep], texts))
    if other:
        notes.append(f"{other:,} cells are of another question or gold than the first and were left out, as told")
    values = np.full((len(found), len(items)), np.nan)
    answers: dict[tuple[int, int], str] = {}
    for row, (columns, given, texts) in enumerate(cells):
        values[row, columns] = given
        answers |= {(row, item): text for item, text in zip(columns, texts, strict=False) if text is not None}
    first = next((one for one in found if one.task), found[0])
    created = datetime.now(UTC).isoformat(timespec="seconds")
    meta = {"task": first.task, "metric": first.metric, "how": first.how, "created": created, "notes": notes}
    golds = content_hash(sorted((item.id, item.gold) for item in items.values()))
    meta |= {"gold": golds if any(item.gold for item in items.values()) else ""}
    return Bank(meta, list(items.values()), [one.model for one in found], values, answers)


def _refuse_other(one: Answers, known: BankItem, item: BankItem) -> UsageError:
    gold = known.content == item.content
    what = "another gold answer" if gold else "another question or picture"
    fix = "score the runs by one gold (--errata)" if gold else "build a bank for each version of the data"
    return UsageError(f"{one.model.name} has {what} at {item.id!r} than the others: {fix}, or --mixed leaves it out")


def _check_twins(bank: Bank, allowed: bool, notes: list[str]) -> None:
    by_row: dict[bytes, list[int]] = {}
    for row, values in enumerate(bank.values):
        if (~np.isnan(values)).sum() >= TWINS_FROM:
            by_row.setdefault(np.nan_to_num(values, nan=-1.0).tobytes(), []).append(row)
    pairs = [pair for rows in by_row.values() for pair in combinations(rows, 2)]
    for first, second in pairs:
        names = f"{bank.models[first].name} and {bank.models[second].name}"
        count = int((~np.isnan(bank.values[first])).sum())
        if not allowed:
            raise UsageError(
                f"{names} gave the same on all {count:,} questions: leave one out (--without NAME), or --twins"
            )
        notes.append(f"{names} gave the same on all {count:,} questions")
