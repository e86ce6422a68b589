"""Planted wrong golds are found, reviewed, written to a ledger, and what runs make of it is right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import snellen
from asgi import call
from command_line import json_of, run_command
from drawn_banks import drawn_bank, make_runs, write_replies
from snellen.api.view import make_viewer
from snellen.core.errors import DataError, UsageError
from snellen.data.errata import Erratum, Golds, merge_errata, question_hash, read_errata, write_errata
from snellen.kits.bank.audit import audit
from snellen.kits.bank.build import build
from snellen.kits.curate.decisions import Decision, text_mark
from snellen.kits.curate.desk import ReviewSettings
from snellen.kits.curate.workshop import Workshop
from snellen.report.viewer.guard import cookie_name

RESULTS = drawn_bank(8, 120, stronger=2.0)
FLIPPED = (3, 40, 77)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on questions of which three have a wrong gold: there the right option counts as wrong."""
    folder = tmp_path_factory.mktemp("audit")
    known = RESULTS.copy()
    known[:, FLIPPED] = 0.0  # they say `left`, which is right; gold says `right`
    make_runs(folder, known)
    return folder


def test_planted_flips_come_first_with_their_reason(shop: Path) -> None:
    found = json_of("audit", shop / "runs", "-o", shop / "audit", "--share", 0.1)
    first = [doubt["sample"] for doubt in found["doubts"][:12]]
    assert {f"q{n}" for n in FLIPPED} <= set(first)
    row = next(doubt for doubt in found["doubts"] if doubt["sample"] == "q3")
    assert row["proposed"] == "left 3" and row["official"] == ["right 3"] and row["reasons"]
    assert {path.name for path in (shop / "audit").iterdir()} >= {"audit.html", "audit.jsonl", "gated.jsonl"}


def test_too_few_models_and_a_folder_without_an_audit_are_refused(shop: Path, tmp_path: Path) -> None:
    assert run_command(["audit", shop / "runs" / "model-0"]) == 2
    assert run_command(["audit", "review", tmp_path]) == 2
    assert run_command(["audit", "compare", shop / "runs" / "model-0", shop / "runs" / "model-1", "--task", "x"]) == 2


def test_the_viewer_shows_an_audit_that_lies_in_a_run(shop: Path) -> None:
    audit([shop / "runs"], output=shop / "runs" / "model-0" / "audit")
    app, headers = make_viewer([shop / "runs" / "model-0"], "key"), {"cookie": f"{cookie_name('key')}=key"}
    build([shop / "runs"], shop / "runs" / "task.bank")
    key = call(app, "/", headers=headers).text.split('href="/run/')[1].split('"')[0].split("?")[0]
    assert f"/run/{key}/audit" in call(app, f"/run/{key}", headers=headers).text
    assert "Gold answers to look at" in call(app, f"/run/{key}/audit", headers=headers).text
    assert "8 models × 120 questions" in call(app, "/banks", headers=headers).text


def decide(desk, item: str, reviewer: str, action: str, reason: str = "") -> None:
    mark = {"seen": text_mark(desk.outcome(item).draft)} if action == "accept" else None
    ticket = f"{item}-{reviewer}-{action}"
    desk.decide(Decision("review", item, reviewer, "2026-11-18T00:00:00Z", action, ticket, reason, mark))


def test_what_two_people_decide_becomes_a_ledger_that_run_and_score_take(shop: Path, tmp_path: Path) -> None:
    audit([shop / "runs"], output=tmp_path / "a", share=0.1)
    desk = Workshop(tmp_path / "a").open_desk(ReviewSettings(("ana", "ben"), overlap=1.0))
    others = [item for item in desk.items if item not in {"q3", "q40", "q77"}][:3]
    for who in ("ana", "ben"):
        decide(desk, "q3", who, "accept")
        decide(desk, others[0], who, "reject", "the right answer is wrong")
        decide(desk, others[1], who, "reject", "more than one right answer")
    decide(desk, "q40", "ana", "accept")
    decide(desk, "q40", "ben", "reject", "no")
    desk.ledger.close()
    ledger = tmp_path / "errata.jsonl"
    reviewed = json_of("audit", "errata", tmp_path / "a", "--run", shop / "runs" / "model-7", "-o", ledger)
    counts = reviewed["counts"]
    assert (counts["corrected"], counts["both"], counts["official"]) == (1, 1, 1)
    assert counts["undecided"] >= 1 and reviewed["confirmed"] is not None
    lines = {entry.sample: entry for entry in read_errata(ledger)}
    assert lines["q3"].gold == ("left 3",) and lines["q3"].reviewers == ("ana", "ben")
    found = json_of("score", shop / "runs" / "model-7", "--errata", ledger)[0]["range"]
    official = np.mean([RESULTS[7, n] if n not in FLIPPED else 0.0 for n in range(120)])
    gained = 1 + (RESULTS[7, int(others[1][1:])] == 0)
    assert found["official"] == pytest.approx(official)
    assert found["corrected"] == pytest.approx(official + gained / 120)
    assert found["low"] <= found["corrected"] <= found["high"]
    replies = write_replies(tmp_path / "m.jsonl", np.zeros(120))
    result = snellen.run(str(shop / "task.jsonl"), f"replay/{replies}", errata=ledger, output_dir=tmp_path / "r")
    assert result.metrics["task"]["accuracy"].value == pytest.approx(2 / 120)
    plain = snellen.run(
        str(shop / "task.jsonl"), f"replay/{replies}", errata=ledger, gold="2020", output_dir=tmp_path / "o"
    )
    assert plain.metrics["task"]["accuracy"].value == 0.0


def entry(number: int, status: str = "corrected", date: str = "2026-07-01", **more: object) -> Erratum:
    return Erratum("t", f"q{number}", "h", ("a",), status, ("b",), date, **more)


def test_a_ledger_is_named_by_its_content_and_merges(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    assert write_errata(first, [entry(1), entry(2)]) == 2
    assert write_errata(first, [entry(1), entry(3)]) == 1
    write_errata(second, [entry(1, "official", "2026-09-01"), entry(2)])
    assert [one.sample for one in merge_errata([first, second])] == ["q1", "q2", "q3", "q1"]
    joined = ["audit", "merge", first, second, "-o", tmp_path / "both.jsonl"]
    assert run_command(joined) == 0 and len(read_errata(tmp_path / "both.jsonl")) == 4
    assert run_command(joined) == 2, "it is there"
    first.write_text(first.read_text().replace('"b"', '"c"', 1))
    with pytest.raises(DataError, match="line 1"):
        read_errata(first)


def test_a_ledger_of_another_question_is_refused(shop: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "e.jsonl"
    write_errata(ledger, [entry(3)])
    with pytest.raises(UsageError, match="something else"):
        snellen.run(str(shop / "task.jsonl"), "blind/first", errata=ledger, output_dir=tmp_path / "x")
    with pytest.raises(UsageError, match="--errata"):
        snellen.run(str(shop / "task.jsonl"), "blind/first", gold="2026-07", output_dir=tmp_path / "x")


def test_golds_at_a_date(shop: Path) -> None:
    sample = next(iter(snellen.load_dataset(str(shop / "task.jsonl"))))
    lines = [
        Erratum("task", sample.id, question_hash(sample), sample.answers, "corrected", ("b",), "2026-07-03"),
        Erratum("task", sample.id, question_hash(sample), sample.answers, "drop", (), "2026-09-03"),
    ]
    assert Golds(lines, "2026-06").apply(sample).answers == sample.answers
    assert Golds(lines, "2026-07").apply(sample).answers == ("b",)
    assert Golds(lines).apply(sample).answers == ()


def test_data_diff_says_what_changed_and_what_it_does_to_runs(shop: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (shop / "task.jsonl").read_text().splitlines()]
    rows[3]["answer"] = "left 3"
    rows[5]["question"] = "Another?"
    gone = rows.pop(9)
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, [*rows, gone | {"id": "fresh"}])))
    found = json_of(
        "data", "diff", "-", shop / "task.jsonl", tmp_path / "new.jsonl", "--run", shop / "runs" / "model-7"
    )
    assert (found["added"], found["gone"]) == (["fresh"], ["q9"])
    assert {change["sample"]: change["what"] for change in found["changed"]} == {"q3": ["gold"], "q5": ["question"]}
    effect = found["effects"][0]
    assert effect["new"] - effect["old"] == pytest.approx(1 / 119)
    assert run_command(["data", "diff", "-", shop / "task.jsonl", tmp_path / "nowhere"]) == 2
