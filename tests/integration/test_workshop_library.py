"""The workshop's steps as library calls: a server that fails, checkers with votes, sets under review, cards, odd folders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snellen.api.settings import RunSettings
from snellen.core.errors import ConfigError, DataError, EnvironmentProblem, UsageError
from snellen.core.jobs import Item
from snellen.core.tasks import RunHeader
from snellen.core.types import Prediction, Request
from snellen.data.catalog import Catalog
from snellen.kits.curate.decisions import Decision, Ledger
from snellen.kits.curate.desk import ReviewSettings
from snellen.kits.curate.library import check_sample, draft, gates, plan_checks, publish, read_checks, show_draft
from snellen.kits.curate.publish import card_lines
from snellen.kits.curate.records import SetAside
from snellen.kits.curate.workshop import Workshop
from snellen.scoring.judges.judge_card import read_judge
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from workshop_fixtures import make_draft, write_sources


def settings(server: Any, **told: Any) -> RunSettings:
    return RunSettings(tasks=(), model="openai/mock", base_url=server.base_url, cache=False, **told)


def test_draft_gate_decide_publish(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    server = mock_server("--drafter", "sloppy")
    shop = tmp_path / "shop"
    sources = write_sources(tmp_path, 30)
    with sources.open("a") as rows:
        rows.write("\n" + json.dumps({"id": "dead", "image": "pictures/none.png", "clue": "c", "inference": "i"}))
    made = draft(sources, shop, settings(server))
    assert made.sources == 31 and made.set_aside >= 1 and made.failed == 0 and not made.interrupted
    assert any("does not exist" in each.reason for each in Workshop(shop).read_set_aside())
    report = gates(
        shop, checker=settings(server), blind_models=[RunSettings(tasks=(), model="blind/longest", cache=False)]
    )
    assert [count.gate for count in report.gates][4:7] == ["unique (checker)", "chain (checker)", "grounded (checker)"]
    assert {test.judge for test in report.tests} >= {"blind/longest", "learned", "no-period"}
    workshop = Workshop(shop)
    desk = workshop.open_desk(ReviewSettings(("ana",)))
    for place, item in enumerate(desk.items):
        action, reason = ("reject", "wrong") if place == 0 else ("accept", "")
        desk.decide(Decision("review", item, "ana", "now", action, str(place), reason))
    desk.ledger.close()
    result = publish(shop, name='A "small" | set', licence="CC0")
    assert result.items == report.kept - 1
    out = Path(result.folder)
    assert json.loads((out / "card.json").read_text())["set_aside"]["source"] == 1
    assert "not audited" in (out / "README.md").read_text() and "Not measured." in (out / "README.md").read_text()
    assert Catalog().task(str(out / "task.toml")).title == "A 'small' | set"
    left_out = [json.loads(line) for line in (out / "set_aside.jsonl").read_text().splitlines()]
    assert [each["reasons"] for each in left_out] == [["wrong"]]
    assert publish(shop).items == result.items  # again, over the first
    with pytest.raises(UsageError, match="under review"):
        (workshop.drafts).write_text("\n".join(workshop.drafts.read_text().splitlines()[:5]) + "\n")
        gates(shop)
    assert len(workshop.read_gated()) == report.kept


def test_a_server_that_fails_is_asked_again_next_time(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    sources = write_sources(tmp_path, 8)
    broken = mock_server("--drafter", "good", "--fault", "400@1-4")
    first = draft(sources, tmp_path / "shop", settings(broken, max_workers=1))
    assert first.failed == 4 and first.drafts == 4 and any("no reply" in reason for reason in first.reasons)
    second = draft(
        sources, tmp_path / "shop", settings(mock_server("--drafter", "good"), max_workers=1, same_model=True)
    )
    assert second.drafts == 8 and second.set_aside == 0 and second.requests == 8


def test_drafting_refuses_what_cannot_work(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    server = mock_server("--drafter", "good")
    empty = tmp_path / "rows.jsonl"
    empty.write_text(json.dumps({"id": "dead", "image": "none.png", "clue": "c", "inference": "i"}))
    with pytest.raises(DataError, match="no usable record"):
        draft(empty, tmp_path / "shop", settings(server))
    with pytest.raises(UsageError, match=r"no curate named 'drafts'.*did you mean 'draft'"):
        draft(empty, tmp_path / "shop", settings(server), prompt="drafts")
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize(
    ("votes", "outcome"),
    [(("YES", "NO", "YES"), None), (("NO", "NO", "YES"), "fail"), (("YES", "perhaps", "NO"), "warn")],
)
def test_the_majority_of_votes_decides(tmp_path: Path, votes: tuple[str, ...], outcome: str | None) -> None:
    judge = read_judge(Catalog().card("judges", "curate_grounded"), "curate_grounded")
    item = make_draft(1)
    [job] = plan_checks(judge, [item], with_picture=True)
    assert all(request.messages[-1].images == check_sample(item).images for request in job.requests)
    assert f"* {item.inference.answer}" in show_draft(item) and f"- {item.inference.wrong[0]}" in show_draft(item)

    async def answer_all() -> None:
        writer = RunWriter(tmp_path, RunHeader("x", {}, {}, "now"))
        said = iter(votes)

        async def ask(asked: Item, request: Request) -> Prediction:
            case = request.messages[-1].text.partition("Case ")[2].partition(".")[0]
            prediction = Prediction(request.key, text=json.dumps({"case": case, "verdict": next(said)}))
            await writer.put(0, asked.sample, request, prediction, "")
            return prediction

        await job.run(ask)
        writer.close()

    asyncio.run(answer_all())
    reader = RunReader(tmp_path)
    findings = read_checks(reader, judge, [item], "grounded (checker)")
    reader.close()
    assert (findings[item.id].outcome if findings else None) == outcome


def test_odd_folders_are_said_in_one_line(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.gated.write_text('{"draft": 3}\n')
    with pytest.raises(DataError, match=r"gated\.jsonl line 1"):
        workshop.read_gated()
    workshop.gated.write_text("")
    with pytest.raises(UsageError, match="nothing passed the gates"):
        workshop.open_desk(ReviewSettings(("ana",)))
    workshop.review_settings.write_text("{}")
    with pytest.raises(ConfigError, match=r"review\.json"):
        workshop.settings(None)
    (tmp_path / "review.db").write_text("not a database at all, but long enough to be taken for one" * 20)
    with pytest.raises(EnvironmentProblem, match="cannot open"):
        Ledger(tmp_path / "review.db")


def test_reviewers_add_up_over_restarts(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.settings(ReviewSettings(("ana",), overlap=0.5))
    assert workshop.settings(ReviewSettings(("ben",), overlap=0.5)).reviewers == ("ana", "ben")
    assert workshop.settings(None) == ReviewSettings(("ana", "ben"), overlap=0.5)


def test_a_card_cannot_carry_markup() -> None:
    card = {
        "name": "<script>x</script>", "licence": "", "items": 1, "questions": 3, "chain_lengths": {"2": 1}, "drafted_by": ["a|b"], "reviewers": 1,
        "decisions": 1, "audit": None, "gates": {}, "agreement": {"items_with_several_reviewers": 0, "unanimous_share": None, "krippendorff_alpha": None, "cohen_kappa": []},
        "outcomes": {"accepted": 1}, "human_ceiling": None,
    }  # fmt: skip
    text = "\n".join(card_lines(card))
    assert "<script>" not in text and "a/b" in text and "α undefined" in text


def test_set_aside_records_survive_a_round_trip(tmp_path: Path) -> None:
    from snellen.data.files.records import write_lines
    from snellen.kits.curate.records import read_lines

    records = [SetAside("a", "draft", "why", {"x": 1}), SetAside("b", "gates: leak", "so")]
    assert write_lines(tmp_path / "r.jsonl", records) == 2
    assert read_lines(tmp_path / "r.jsonl", SetAside, "draft") == records
