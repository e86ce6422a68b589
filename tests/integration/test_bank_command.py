"""Banks from what people have, refused in one line where they cannot be; runs that estimate the whole with one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import snellen
from command_line import json_of, run_command
from drawn_banks import drawn_bank, make_runs, write_questions, write_replies
from snellen.core.errors import UsageError
from snellen.kits.bank.bank_file import Bank, BankItem, BankModel, read_bank, relatives, write_bank
from snellen.kits.bank.build import build, card_lines, check
from snellen.kits.bank.picture import picture_worth

RESULTS = drawn_bank(8, 240)
TESTED = RESULTS[6]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with six runs, their bank and the replies of a model that is not in it."""
    folder = tmp_path_factory.mktemp("shop")
    make_runs(folder, RESULTS[:6])
    build([folder / "runs"], folder / "task.bank", answers=True)
    write_replies(folder / "tested.jsonl", TESTED)
    return folder


def write_table(path: Path, results: np.ndarray, names: list[str] | None = None) -> Path:
    models = names or [f"m{row}" for row in range(len(results))]
    lines = [",".join(["model", *(f"q{item}" for item in range(results.shape[1]))])]
    lines += [",".join([model, *map(str, row)]) for model, row in zip(models, results, strict=True)]
    path.write_text("\n".join(lines))
    return path


def test_a_bank_of_runs_holds_what_they_gave_and_grows(shop: Path, tmp_path: Path) -> None:
    bank = read_bank(shop / "task.bank")
    assert [item.id for item in bank.items] == [f"q{n}" for n in sorted(range(240), key=lambda n: f"q{n}")]
    columns = [int(item.id[1:]) for item in bank.items]
    assert np.array_equal(bank.values, RESULTS[:6][:, columns])
    assert all(item.content and item.gold for item in bank.items)
    table = write_table(tmp_path / "more.csv", RESULTS[6:])
    grown = build([shop / "task.bank", table], tmp_path / "grown.bank").bank
    assert [model.name for model in grown.models][-2:] == ["m0", "m1"]
    assert np.array_equal(read_bank(tmp_path / "grown.bank").values, grown.values)
    assert any("cannot score" in line for line in card_lines(grown))


def test_others_can_read_the_file_with_plain_sqlite(shop: Path) -> None:
    with sqlite3.connect(shop / "task.bank") as database:
        query = "SELECT value FROM cells JOIN items ON items.number = item WHERE model = 2 AND id = 'q7'"
        assert database.execute(query).fetchone() == (RESULTS[2, 7],)
        assert json.loads(database.execute("SELECT value FROM meta WHERE key = 'metric'").fetchone()[0]) == "accuracy"


def test_tables_of_every_form_give_the_same_bank(tmp_path: Path) -> None:
    wide = build([write_table(tmp_path / "wide.csv", RESULTS)]).bank.values
    header = "item\t" + "\t".join(f"m{row}" for row in range(8))
    rows = ["\t".join([f"q{n}", *map(str, RESULTS[:, n])]) for n in range(240)]
    (tmp_path / "items.tsv").write_text("\n".join([header, *rows]))
    cells = [f"m{row},q{n},{RESULTS[row, n]}" for row in range(8) for n in range(240)]
    (tmp_path / "long.csv").write_text("\n".join(["model,item,value", *cells]))
    np.savez(tmp_path / "a.npz", Y=RESULTS.astype(np.int8), models=[f"m{r}" for r in range(8)], items=list("x" * 240))
    for name in ("items.tsv", "long.csv"):
        assert np.array_equal(build([tmp_path / name]).bank.values, wide)
    with pytest.raises(UsageError):  # items of one name
        build([tmp_path / "a.npz"], tmp_path / "a.bank")


TEXTS = {
    "a short line": ("model,q1,q2\na,1,0\nb,1\n", "line 3"),
    "no column": ("model\na\n", "columns"),
    "a cell twice": ("model,item,value\na,q1,1\n\na,q1,0\n", "line 4"),
    "no value": ("model,item,value\na,q1,x\n", "line 2"),
}
ARRAYS: dict[str, tuple[dict[str, object], str]] = {
    "other arrays": ({"X": RESULTS}, "t.npz"),
    "another shape": ({"Y": RESULTS, "models": ["a"], "items": ["q1"]}, "1 models"),
}


def bad(tmp_path: Path, kind: str) -> list[object]:
    """Sources that no bank can be made of, and what the refusal must name."""
    table = tmp_path / "t.csv"
    if kind in TEXTS:
        table.write_text(TEXTS[kind][0])
        return [table, TEXTS[kind][1]]
    if kind in ARRAYS:
        np.savez(tmp_path / "t.npz", **ARRAYS[kind][0])
        return [tmp_path / "t.npz", ARRAYS[kind][1]]
    match kind:
        case "one model":
            return [write_table(table, RESULTS[:1]), "5 models"]
        case "all right" | "all wrong":
            return [write_table(table, np.full((6, 60), float(kind == "all right"))), "alike"]
        case "twins":
            return [write_table(table, RESULTS[[0, 1, 2, 3, 4, 4]]), "m4 and m5"]
        case "a name twice":
            return [write_table(table, RESULTS[:6], ["a", "b", "c", "d", "e", "a"]), "'a'"]
        case "no share":
            return [write_table(table, RESULTS[:6] * 7), "7"]
        case "no number":
            write_table(table, RESULTS[:6])
            table.write_text(table.read_text().replace("m2,", "m2,x", 1))
            return [table, "line 4"]
        case "nothing there":
            return [tmp_path / "nope", "nope"]
    raise AssertionError(kind)


KINDS = (
    "one model",
    "all right",
    "all wrong",
    "twins",
    "a name twice",
    "no share",
    "no number",
    "nothing there",
    *TEXTS,
    *ARRAYS,
)


@pytest.mark.parametrize("kind", KINDS)
def test_what_no_bank_can_be_made_of_is_refused_in_one_line(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, named = bad(tmp_path, kind)
    assert run_command(["bank", "build", source, "-o", tmp_path / "x.bank"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and str(named) in said
    assert not (tmp_path / "x.bank").exists()


def test_a_bank_is_checked_and_described(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank = shop / "task.bank"
    assert run_command(["bank", "check", bank, "--trials", 5, "--asked", 60]) == 0
    assert str(json_of("bank", "check", bank, "--trials", 5, "--asked", 60)) and "60" in capsys.readouterr().out
    assert run_command(["bank", "card", bank]) == 0
    assert json_of("bank", "card", bank)["items"] == 240 and "cannot score" in capsys.readouterr().out


def test_a_damaged_file_and_a_stranger_are_refused(shop: Path, tmp_path: Path) -> None:
    whole = (shop / "task.bank").read_bytes()
    (tmp_path / "half.bank").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.bank").write_text("no database")
    sqlite3.connect(tmp_path / "other.bank").executescript("CREATE TABLE a (b)").close()
    for name in ("half.bank", "text.bank", "other.bank"):
        with pytest.raises(UsageError, match=name):
            read_bank(tmp_path / name)


def test_mixed_golds_are_refused_and_left_out_where_told(shop: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (shop / "task.jsonl").read_text().splitlines()]
    rows[3]["answer"] = rows[3]["options"][1]
    (tmp_path / "task.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_replies(tmp_path / "other.jsonl", RESULTS[7])
    snellen.run(str(tmp_path / "task.jsonl"), f"replay/{tmp_path}/other.jsonl", output_dir=tmp_path / "r", cache=False)
    with pytest.raises(UsageError, match="gold answer at 'q3'"):
        build([shop / "runs", tmp_path / "r"])
    built = build([shop / "runs", tmp_path / "r"], mixed=True)
    column = [item.id for item in built.bank.items].index("q3")
    assert np.isnan(built.bank.values[6, column]) and np.isnan(built.bank.values).sum() == 1
    with pytest.raises(UsageError, match="another gold"):
        snellen.compare(shop / "runs" / "model-0", tmp_path / "r")
    assert json_of("audit", "compare", shop / "runs" / "model-0", tmp_path / "r")["differing"] == 1


def estimate(shop: Path, out: Path, *flags: object) -> dict:
    model = ["--model", f"replay/{shop}/tested.jsonl", "--bank", shop / "task.bank", "--quiet", "-o", out]
    return json_of("run", shop / "task.jsonl", *model, *flags)


def test_a_run_with_a_bank_says_the_whole_and_names_it(shop: Path, tmp_path: Path) -> None:
    results = estimate(shop, tmp_path / "a", "--budget", 120)
    whole, metric = results["tasks"]["task"]["whole"], results["tasks"]["task"]["metrics"]["accuracy"]
    assert (whole["asked"], whole["items"], whole["outside_the_bank"]) == (120, 240, 0)
    assert metric["value"] == whole["value"] != pytest.approx(whole["mean"], abs=1e-9)
    low, high = whole["interval"]
    assert low <= TESTED.mean() <= high and metric["ci95"] == [low, high]
    assert any("of all 240 questions from 120 asked" in note for note in results["tasks"]["task"]["notes"])
    assert results["status"]["complete"]
    again = estimate(shop, tmp_path / "a", "--budget", 120)
    assert again["tasks"]["task"]["whole"] == whole
    shuffled = estimate(shop, tmp_path / "b", "--budget", 120, "--max-workers", 1)
    assert shuffled["tasks"]["task"]["whole"] == whole


def test_until_ci_stops_narrow_and_everything_asked_is_exact(shop: Path, tmp_path: Path) -> None:
    whole = estimate(shop, tmp_path / "a", "--until-ci", 7)["tasks"]["task"]["whole"]
    assert whole["asked"] % 25 == 0 and 50 <= whole["asked"] < 240
    assert (whole["interval"][1] - whole["interval"][0]) / 2 <= 0.07
    exact = estimate(shop, tmp_path / "b", "--until-ci", 0.01)["tasks"]["task"]["whole"]
    assert exact["interval"] is None and exact["value"] == pytest.approx(TESTED.mean())


def test_a_bank_is_refused_where_it_says_nothing(shop: Path, tmp_path: Path) -> None:
    write_questions(tmp_path / "other.jsonl", 60)
    text = (tmp_path / "other.jsonl").read_text().replace('"id": "q', '"id": "z')
    (tmp_path / "other.jsonl").write_text(text)
    for data, flags, named in (
        (tmp_path / "other.jsonl", {"budget": 20}, "none of the 60"),
        (shop / "task.jsonl", {}, "--budget"),
        (shop / "task.jsonl", {"budget": 3}, "too few"),
        (shop / "task.jsonl", {"budget": 50, "bank_without": ("nobody",)}, "nobody"),
    ):
        with pytest.raises(UsageError, match=named):
            snellen.run(str(data), "blind/first", bank=shop / "task.bank", output_dir=tmp_path / "x", **flags)


def test_the_model_itself_is_left_out_of_its_bank(shop: Path, tmp_path: Path) -> None:
    bank = read_bank(shop / "task.bank")
    own = bank.models[2].name
    assert relatives(own, bank) == (own,)
    results = json_of(
        *("run", shop / "task.jsonl", "--model", f"replay/{shop}/model-2.jsonl", "--bank", shop / "task.bank"),
        *("--budget", 60, "--quiet", "-o", tmp_path / "a"),
    )
    assert results["tasks"]["task"]["whole"]["left_out_of_the_bank"] == [own]


def test_check_says_what_a_bank_is_good_for(tmp_path: Path) -> None:
    bank = build([write_table(tmp_path / "t.csv", drawn_bank(24, 300))]).bank
    found = check(bank, asked=100, trials=300)
    assert all(0.9 <= one.coverage <= 1.0 for one in (*found.held_out, *found.spoiled))
    assert found.held_out[0].questions < 0.95 and max(one.questions for one in found.spoiled) <= 1.01
    write_bank(tmp_path / "t.bank", bank)
    said = json_of("plan", "--bank", tmp_path / "t.bank", "--until-ci", 6, "--gate", 4)["plan"]
    assert len(said) == 3 and "±6" in said[0]


def test_what_the_picture_is_worth_is_of_the_same_pairs_where_cells_are_missing() -> None:
    seen, blind = drawn_bank(8, 60), drawn_bank(8, 60, seed=2) * drawn_bank(8, 60)
    seen[0, :20] = blind[3, 30:] = np.nan
    names = [BankModel(f"m{row}") for row in range(8)]
    items = [BankItem(f"q{item}") for item in range(60)]
    full, without = (Bank({"arm": arm}, items, names, values) for arm, values in (("", seen), ("none", blind)))
    found = picture_worth(full, without)
    both = ~(np.isnan(seen) | np.isnan(blind))
    assert (found.with_it, found.without) == (seen[both].mean(), blind[both].mean())
    assert found.kept.value == pytest.approx(found.without / found.with_it) and found.kept.n == 60
