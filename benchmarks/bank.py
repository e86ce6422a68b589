"""Does the bank keep its promises? `python benchmarks/bank.py [score|gate|twins|review|speed …] [--matrix FILE.npz …] [--trials N] [--gates N]`

A matrix is an .npz with Y (models × items, or arms × models × items: the first arm), models and items. Without one, drawn models are used.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial as partial_of
from pathlib import Path
from typing import NamedTuple

import numpy as np

from snellen.kits.bank.bank_estimate import cross_fit, estimates
from snellen.kits.bank.betting import Gate, Preparation, Wagers, prepare
from snellen.kits.bank.gold_review import option_votes, wrong_gold_ratios
from snellen.kits.bank.item_bank import Predictor, fit_factors, fit_predictor, sigmoid

SIZES = (50, 100, 200, 400, 800)
CHUNK = 40
FAILED: list[str] = []


class Matrix(NamedTuple):
    name: str
    results: np.ndarray
    models: list[str]
    items: list[str]


def read_matrix(path: str) -> Matrix:
    with np.load(path) as file:
        results = file["Y"].astype(np.float64)
        if results.ndim == 3:
            arms = list(file["arms"])
            results = results[arms.index("<full>") if "<full>" in arms else 0]
        results[results < 0] = np.nan
        return Matrix(Path(path).stem, results, [str(m) for m in file["models"]], [str(i) for i in file["items"]])


def drawn_matrix(models: int = 120, items: int = 1000, seed: int = 1) -> Matrix:
    draw = np.random.default_rng(seed)
    ability = np.c_[draw.normal(0.3, 1.0, models), draw.normal(0, 1, (models, 3))]
    slopes = np.c_[draw.normal(0.9, 0.4, items), draw.normal(0, 0.5, (items, 3))]
    chance = sigmoid(ability @ slopes.T + draw.normal(0, 1.5, items))
    results = (draw.random(chance.shape) < chance).astype(float)
    return Matrix("drawn", results, [f"family{i % 5}-{i}" for i in range(models)], [str(i) for i in range(items)])


def bar(what: str, met: bool) -> str:
    if not met:
        FAILED.append(what)
    return "PASS" if met else "FAIL"


class Cell(NamedTuple):
    covered: float
    plain_covered: float
    questions: float
    trust: float
    bias: float
    trials: int


def run_cell(
    pairs: list[tuple[Predictor, np.ndarray]],
    n: int,
    trials: int,
    draw: np.random.Generator,
    groups: np.ndarray | None = None,
) -> Cell:
    """Trials of random prefixes of n items, over (predictor, held-out outcomes) pairs in turn."""
    rows: list[tuple[float, ...]] = []
    each = -(-trials // len(pairs))
    for predictor, held in pairs:
        done = 0
        while done < each:
            count = min(CHUNK, each - done)
            which = (np.arange(done, done + count)) % len(held)
            rows += _some_trials(predictor, held[which], n, draw, groups)
            done += count
    found = np.array(rows)
    widths = found[:, 2].mean() / found[:, 3].mean()
    return Cell(found[:, 0].mean(), found[:, 1].mean(), widths**2, found[:, 4].mean(), found[:, 5].mean(), len(rows))


def _some_trials(
    predictor: Predictor, held: np.ndarray, n: int, draw: np.random.Generator, groups: np.ndarray | None
) -> list[tuple[float, ...]]:
    items = held.shape[1]
    units = None
    if groups is None:
        index = np.argsort(draw.random(held.shape), axis=1)[:, :n]
    else:
        size = int(groups.max()) + 1
        order = np.argsort(draw.random((len(held), size)), axis=1)[:, : n // (items // size)]
        members = np.argsort(groups, kind="stable").reshape(size, -1)
        index = members[order].reshape(len(held), -1)
        units = np.repeat(np.arange(order.shape[1]), members.shape[1])[None].repeat(len(held), 0)
    found = estimates(cross_fit(predictor, index, np.take_along_axis(held, index, 1), units), items)
    rows = []
    for row, truth in enumerate(held.mean(axis=1)):
        (low, high), (plain_low, plain_high) = found.interval(row), found.interval(row, plain=True)
        rows.append(
            (
                low <= truth <= high,
                plain_low <= truth <= plain_high,
                high - low,
                plain_high - plain_low,
                found.trust[row],
                found.value[row] - truth,
            )
        )
    return rows


def quarters(
    results: np.ndarray, models: list[str], draw: np.random.Generator
) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """(bank, held out) by kind of holding out."""
    order = np.argsort(np.nanmean(results, axis=1), kind="stable")
    quarter = max(1, len(order) // 4)
    cuts: dict[str, list[np.ndarray]] = {"strongest quarter": [order[-quarter:]], "weakest quarter": [order[:quarter]]}
    cuts["random quarter"] = [draw.permutation(len(order))[:quarter] for _ in range(8)]
    family = np.array([i for i, name in enumerate(models) if name.lower().startswith(("internvl", "family0"))])
    if 2 <= family.size <= len(order) - 5:
        cuts["another family"] = [family]
    return {name: [(np.delete(results, cut, 0), results[cut]) for cut in them] for name, them in cuts.items()}


def spoiled(bank: np.ndarray, other: np.ndarray, draw: np.random.Generator) -> dict[str, np.ndarray]:
    """The bank, spoiled in four ways."""
    columns = np.resize(np.arange(other.shape[1]), bank.shape[1])
    return {
        "hostile: random labels": (draw.random(bank.shape) < np.nanmean(bank)).astype(float),
        "hostile: permuted items": bank[:, draw.permutation(bank.shape[1])],
        "hostile: inverted": 1.0 - bank,
        "hostile: other benchmark": other[:, columns],
    }


def score(matrices: list[Matrix], trials: int) -> None:
    for matrix in matrices:
        draw = np.random.default_rng(7)
        print(
            f"\n## {matrix.name}: {matrix.results.shape[0]} models × {matrix.results.shape[1]} items, ≥ {trials} trials a cell\n",
            flush=True,
        )
        print("| held out, bank | " + " | ".join(f"n = {n}: q % (coverage %, plain)" for n in SIZES) + " |")
        print("|---|" + "---|" * len(SIZES))
        held = quarters(matrix.results, matrix.models, draw)
        for name, pairs in held.items():
            fitted = [(fit_predictor(bank), tested) for bank, tested in pairs]
            most = (
                {"autojudger_mmmu_dev_val": 0.70, "autojudger_ai2d_test": 0.60}.get(matrix.name, 1.01)
                if name == "strongest quarter"
                else 1.01
            )
            print_row(matrix, name, fitted, trials, draw, most)
        bank, strongest = held["strongest quarter"][0]
        others = [other.results for other in matrices if other.name != matrix.name] or [drawn_matrix(seed=9).results]
        for name, bad in spoiled(bank, np.nan_to_num(others[0], nan=0.5), draw).items():
            print_row(matrix, name, [(fit_predictor(bad), strongest)], trials, draw, 1.01)
        holes = np.where(draw.random(bank.shape) < 0.5, np.nan, bank)
        print_row(matrix, "half of the entries missing", [(fit_predictor(holes), strongest)], trials, draw)
        outside = np.where(draw.random(bank.shape[1]) < 0.3, -1, np.arange(bank.shape[1]))
        print_row(matrix, "30 % of items outside", [(fit_predictor(bank).for_items(outside), strongest)], trials, draw)
        extremes(matrix, trials, draw)
        partial(matrix, trials, draw)
        grouped(matrix, trials, draw)


def print_row(
    matrix: Matrix,
    name: str,
    pairs: list[tuple[Predictor, np.ndarray]],
    trials: int,
    draw: np.random.Generator,
    most: float | None = None,
    groups: np.ndarray | None = None,
    sizes: tuple[int, ...] = SIZES,
) -> None:
    cells = []
    for n in sizes:
        if n >= matrix.results.shape[1]:
            cells.append("–")
            continue
        cell = run_cell(pairs, n, trials, draw, groups)
        met = bar(f"{matrix.name}, {name}, n = {n}: coverage {cell.covered:.3f}", 0.93 <= cell.covered <= 0.97)
        if most is not None and (n >= 200 or most > 1.0):
            met = (
                "FAIL"
                if "FAIL"
                in (
                    met,
                    bar(
                        f"{matrix.name}, {name}, n = {n}: {cell.questions:.3f} of the questions", cell.questions <= most
                    ),
                )
                else "PASS"
            )
        cells.append(
            f"{100 * cell.questions:.0f} ({100 * cell.covered:.1f}, {100 * cell.plain_covered:.1f}){'' if met == 'PASS' else ' FAIL'}"
        )
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def reshaped(matrix: Matrix, share: float, draw: np.random.Generator, count: int = 40) -> np.ndarray:
    """Models that get `share` right: the matrix's own factor model, shifted."""
    factors = fit_factors(np.nan_to_num(matrix.results, nan=0.5))
    rows = []
    for ability in factors.abilities[draw.integers(0, len(factors.abilities), count)]:
        logit = factors.slopes @ ability + factors.easiness
        low, high = -20.0, 20.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if sigmoid(logit + middle).mean() < share else (low, middle)
        rows.append(draw.random(logit.size) < sigmoid(logit + low))
    return np.array(rows, dtype=float)


def extremes(matrix: Matrix, trials: int, draw: np.random.Generator) -> None:
    predictor = fit_predictor(matrix.results)
    for share in (0.01, 0.03, 0.1, 0.5, 0.9, 0.97, 0.99):
        print_row(
            matrix,
            f"simulated, {100 * share:.0f} % right",
            [(predictor, reshaped(matrix, share, draw, 200))],
            trials,
            draw,
        )


def partial(matrix: Matrix, trials: int, draw: np.random.Generator) -> None:
    """Every value the mean of the outcome and of one more drawn from the model's chance: 0, 1/2 or 1."""
    factors = fit_factors(matrix.results)
    chance = factors.predict(factors.abilities)
    values = (
        np.where(np.isnan(matrix.results), chance.round(), matrix.results) + (draw.random(chance.shape) < chance)
    ) / 2.0
    bank, held = quarters(values, matrix.models, draw)["strongest quarter"][0]
    print_row(matrix, "partial scores", [(fit_predictor(bank), held)], trials, draw)


def grouped(matrix: Matrix, trials: int, draw: np.random.Generator) -> None:
    """Groups of three neighbours in difficulty; half of the time all three are answered as the first."""
    whole = matrix.results.shape[1] // 3 * 3
    order = np.argsort(np.nanmean(matrix.results, axis=0), kind="stable")[:whole]
    values = matrix.results[:, order].copy()
    first = np.repeat(values[:, ::3], 3, axis=1)
    copied = np.repeat(draw.random((len(values), whole // 3)) < 0.5, 3, axis=1)
    values = np.where(copied, first, values)
    bank, held = quarters(values, matrix.models, draw)["strongest quarter"][0]
    groups = np.repeat(np.arange(whole // 3), 3)
    print_row(
        matrix, "groups of three", [(fit_predictor(bank), held)], trials, draw, groups=groups, sizes=(150, 300, 600)
    )


# The gate.


def flip_chance(base: np.ndarray, bank: np.ndarray) -> np.ndarray:
    apart = np.abs(bank - base)
    near = apart[np.argsort(apart.sum(axis=1), kind="stable")[:20]]
    return np.asarray((near.sum(axis=0) + 1) / (len(near) + 1 / near.mean()))


def changed(
    base: np.ndarray, lost: int, gained: int, chance: np.ndarray, rows: int, *, draw: np.random.Generator
) -> np.ndarray:
    """Differences of candidates that lose and gain exactly so many items, drawn by chance."""
    key = draw.exponential(size=(rows, base.size)) / chance
    change = np.zeros((rows, base.size))
    for count, side, sign in ((lost, base == 1, -1.0), (gained, base == 0, 1.0)):
        if count:
            at = np.argpartition(np.where(side, key, np.inf), count - 1, axis=1)[:, :count]
            np.put_along_axis(change, at, sign, 1)
    return change


def race(
    prepared: Preparation, margin: float, change: np.ndarray, draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 same, -1 worse, and the questions asked, of gates side by side."""
    rows, items = change.shape
    order = np.argsort(draw.exponential(size=change.shape) / prepared.score, axis=1)
    wagers = Wagers(prepared, margin, np.array([-margin, 0.0]), rows)
    verdict, asked, at = np.zeros(rows, int), np.full(rows, items), np.arange(rows)
    for step in range(items - 1):
        wagers.add(order[:, step], change[at, order[:, step]])
        open_ = verdict == 0
        same, worse = wagers.wealth_above[:, 0] >= 20, wagers.wealth_below[:, 1] >= 20
        verdict = np.where(open_ & same, 1, np.where(open_ & worse, -1, verdict))
        asked = np.where(open_ & (same | worse), step + 1, asked)
        if step % 50 == 0 and not (verdict == 0).any():
            break
    exact = change.mean(axis=1)
    return np.where(verdict == 0, np.where(exact > -margin + 1e-12, 1, -1), verdict), asked


def gate(matrices: list[Matrix], gates: int) -> None:
    for matrix in matrices:
        draw = np.random.default_rng(11)
        at = next((i for i, name in enumerate(matrix.models) if name == "InternVL2-8B"), len(matrix.models) // 2)
        base, bank, items = matrix.results[at], np.delete(matrix.results, at, 0), matrix.results.shape[1]
        chance, lost = flip_chance(base, bank), round(0.015 * items)
        margin = lost / items
        prepared, alone = prepare(base, bank), prepare(base)
        few = min(gates, 2_000)
        print(
            f"\n## gates on {matrix.name}: base {matrix.models[at]}, margin {lost} of {items} items, {gates} gates a row\n",
            flush=True,
        )
        print(
            "| truth, how it changed | false verdict % | median questions (p90) | paired without bank |\n|---|---|---|---|"
        )
        ways = (("where the bank expects", chance), ("hostile", 1 / chance), ("spread evenly", np.ones(items)))
        churn = round(0.03 * items)
        rows = [
            (f"{truth}, {how}, 3 % churn", churn + more, churn, weight)
            for how, weight in ways
            for truth, more in (("-m", lost), ("0", 0))
        ]
        for name, losses, gains, weight in [*rows, ("-m, losses only", lost, 0, chance)]:
            make = partial_of(changed, base, losses, gains, weight, draw=draw)
            print_gates(matrix.name, name, (prepared, alone), margin, make, gates, few, draw)
        for churn in (0.01, 0.03):
            count = round(churn * items)
            loss = round(0.05 * items)
            verdict, asked = race(prepared, margin, changed(base, count + loss, count, chance, few, draw=draw), draw)
            print(
                f"| -5 points, {100 * churn:.0f} % churn | same {100 * (verdict == 1).mean():.2f} | {np.median(asked):.0f} ({np.quantile(asked, 0.9):.0f}) {bar(f'{matrix.name}: -5 points, churn {churn}: {np.median(asked):.0f}', np.median(asked) <= 210)} | – |",
                flush=True,
            )


def print_gates(
    name: str,
    row: str,
    prepared: tuple[Preparation, Preparation],
    margin: float,
    make: Callable[[int], np.ndarray],
    gates: int,
    few: int,
    draw: np.random.Generator,
) -> None:
    truth = row.partition(",")[0]
    verdicts, questions = [], []
    for start in range(0, gates, 1_000):
        verdict, asked = race(prepared[0], margin, make(min(1_000, gates - start)), draw)
        verdicts.append(verdict)
        questions.append(asked)
    verdict, asked = np.concatenate(verdicts), np.concatenate(questions)
    wrong = (verdict == (1 if truth == "-m" else -1)).mean()
    _, plain = race(prepared[1], margin, make(min(few, 1_000)), draw)
    word = "same" if truth == "-m" else "worse"
    print(
        f"| {row} | {word} {100 * wrong:.2f} {bar(f'{name}, gate {row}: false {word} {wrong:.4f}', wrong <= 0.05)} | {np.median(asked):.0f} ({np.quantile(asked, 0.9):.0f}) | {np.median(plain):.0f} |",
        flush=True,
    )


def nearest_pairs(results: np.ndarray, count: int = 12) -> list[tuple[int, int]]:
    """The most alike pairs of models, no model twice, none identical."""
    right, wrong = results, 1 - results
    agree = (right @ right.T + wrong @ wrong.T) / results.shape[1]
    np.fill_diagonal(agree, 0)
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for flat in np.argsort(-agree, axis=None):
        i, j = divmod(int(flat), len(results))
        if i < j and agree[i, j] < 1 and not {i, j} & taken:
            pairs.append((i, j))
            taken |= {i, j}
        if len(pairs) == count:
            break
    return pairs


def twins(matrices: list[Matrix], orders: int = 24) -> None:
    print("\n| real twins, 12 pairs | margin | paired | bank | wrong % |\n|---|---|---|---|---|")
    most = {("autojudger_ai2d_test", 0.015): 440, ("autojudger_ai2d_test", 0.03): 210}
    for matrix in matrices:
        for margin in (0.015, 0.03):
            medians: dict[str, list[float]] = {"alone": [], "bank": []}
            wrong = []
            draw = np.random.default_rng(5)
            for first, second in nearest_pairs(np.nan_to_num(matrix.results)):
                base, other = matrix.results[first], matrix.results[second]
                bank = np.delete(matrix.results, [first, second], 0)
                truth = float((other - base).mean())
                for name, prepared in (("alone", prepare(base)), ("bank", prepare(base, bank))):
                    verdict, asked = race(prepared, margin, np.tile(other - base, (orders, 1)), draw)
                    medians[name].append(float(np.median(asked)))
                    if name == "bank":
                        wrong.append(((verdict == 1) & (truth <= -margin)) | ((verdict == -1) & (truth >= 0)))
            bank_median = np.median(medians["bank"])
            limit = most.get((matrix.name, margin))
            met = "" if limit is None else bar(f"{matrix.name}, twins at {margin}: {bank_median}", bank_median <= limit)
            print(
                f"| {matrix.name} | {100 * margin:g} | {np.median(medians['alone']):.0f} | {bank_median:.0f} {met} | {100 * np.mean(wrong):.2f} |",
                flush=True,
            )


# Review of gold answers.


def chosen_options(right: np.ndarray, draw: np.random.Generator, options: int = 4) -> np.ndarray:
    """Option 0 where right, else another; how popular the others are is drawn by item."""
    popular = np.cumsum(draw.dirichlet(np.full(options - 1, 2.0), size=right.shape[1]), axis=1)
    other = (draw.random((*right.shape, 1)) > popular[None]).sum(axis=2).clip(0, options - 2) + 1
    return np.where(right == 1, 0, other)


def review(matrices: list[Matrix], repeats: int = 60) -> None:
    print(
        "\n| planted flips, 2 % of 1,000 items, 20 models | likelihood ratio: all (known to 60 %) | with options: all (known to 60 %) |\n|---|---|---|"
    )
    for matrix in matrices:
        items = min(1000, matrix.results.shape[1])
        for kind in ("random", "strongest"):
            found: dict[str, list[float]] = {"ratio": [], "ratio known": [], "vote": [], "vote known": []}
            for repeat in range(repeats):
                draw = np.random.default_rng(repeat)
                rank = np.argsort(-np.nanmean(matrix.results, axis=1), kind="stable")
                models = rank[:20] if kind == "strongest" else draw.permutation(len(rank))[:20]
                truth = np.nan_to_num(matrix.results[np.ix_(models, draw.permutation(matrix.results.shape[1])[:items])])
                chosen, gold = chosen_options(truth, draw), np.zeros(items, int)
                flips = draw.permutation(items)[: items // 50]
                gold[flips] = draw.integers(1, 4, flips.size)
                known = truth[:, flips].mean(axis=0) >= 0.6
                for name, doubt in (
                    ("ratio", wrong_gold_ratios((chosen == gold).astype(float))),
                    ("vote", option_votes(chosen, gold, 4).doubt),
                ):
                    inside = np.isin(flips, np.argsort(-doubt, kind="stable")[: items // 20])
                    found[name].append(inside.mean())
                    found[f"{name} known"] += inside[known].tolist()
            value = {name: 100 * float(np.mean(of)) for name, of in found.items()}
            met = ""
            if matrix.name == "autojudger_ai2d_test" and kind == "random":
                met = bar(f"review of {matrix.name}: {value['vote']:.1f}", value["vote"] >= 80)
            if matrix.name == "autojudger_mmmu_dev_val" and kind == "strongest":
                met = bar(f"review of {matrix.name}, known: {value['vote known']:.1f}", value["vote known"] >= 80)
            print(
                f"| {matrix.name}, {kind} | {value['ratio']:.0f} ({value['ratio known']:.0f}) | {value['vote']:.0f} ({value['vote known']:.0f}) {met} |",
                flush=True,
            )
        known_labels = [item for item in ("validation_Design_15", "validation_Art_Theory_4") if item in matrix.items]
        if known_labels:
            doubt = wrong_gold_ratios(matrix.results)
            ranks = {item: int((doubt > doubt[matrix.items.index(item)]).sum()) + 1 for item in known_labels}
            print(
                f"\nlabels since corrected, rank of {len(matrix.items)}: {ranks} {bar(f'known labels {ranks}', max(ranks.values()) <= 0.05 * len(matrix.items))}",
                flush=True,
            )


def speed() -> None:
    """10^6 cells to a bank file, and the next question at 12,000 items."""
    from snellen.kits.bank.bank_file import read_bank
    from snellen.kits.bank.build import build

    with tempfile.TemporaryDirectory() as folder:
        draw = np.random.default_rng(3)
        table = Path(folder) / "table.csv"
        results = drawn_matrix(84, 12_000).results.astype(int)
        with table.open("w") as file:
            file.write("model," + ",".join(f"q{i}" for i in range(12_000)) + "\n")
            for row, values in enumerate(results):
                file.write(f"m{row}," + ",".join(map(str, values)) + "\n")
        began = time.process_time()
        build([table], Path(folder) / "b.bank")
        bank = read_bank(Path(folder) / "b.bank")
        used = time.process_time() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"\n{results.size:,} cells built and read: {used:.1f} CPU-s, {memory:.0f} MB at most {bar('build', used <= 10 and memory <= 500)}"
        )
        prepared = prepare(results[0].astype(float), bank.results()[1:])
        one = Gate(prepared, 0.015)
        order, times = prepared.order(draw), []
        for unit in order[:500]:
            began = time.process_time()
            one.add(int(unit), float(results[1][unit] - results[0][unit]))
            times.append(time.process_time() - began)
        print(
            f"next question of a gate at 12,000 items: {1000 * max(np.quantile(times, 0.99), np.mean(times)):.2f} ms {bar('next', np.mean(times) <= 0.02)}"
        )
        predictor = fit_predictor(bank.results())
        index = draw.permutation(12_000)[None, :3_000]
        began = time.process_time()
        estimates(cross_fit(predictor, index, results[0][index].astype(float)), 12_000)
        print(
            f"a look at the interval with 3,000 of 12,000 asked: {1000 * (time.process_time() - began):.0f} ms, once in 25 questions"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=[])
    parser.add_argument("--matrix", action="append", default=[])
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument("--gates", type=int, default=10_000)
    given = parser.parse_args()
    matrices = [read_matrix(path) for path in given.matrix] or [drawn_matrix()]
    what = given.what or ["score", "gate", "twins", "review", "speed"]
    steps = {
        "score": lambda: score(matrices, given.trials),
        "gate": lambda: gate(matrices, given.gates),
        "twins": lambda: twins(matrices),
        "review": lambda: review(matrices),
        "speed": speed,
    }
    for name in what:
        steps[name]()
    print("\nnot met: " + "; ".join(FAILED) if FAILED else "\nall bars met")
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
