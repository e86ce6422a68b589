"""A stored reply belongs to who gave it: another deployment, body or checkpoint is asked, and never mixed in unseen."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import snellen
from snellen.api.load import load_run
from snellen.api.run import RunResult
from snellen.core.errors import RunMismatch
from snellen.core.secret import Secret
from twofaced_server import TwoFaced, twofaced

ROWS = 12


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rows = ({"id": str(n), "question": f"Which of {n}?", "options": ["x", "y"], "answer": "A"} for n in range(ROWS))
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def run(task: str, url: str, folder: str, **settings: Any) -> RunResult:
    return snellen.run(
        task, "openai/m", base_url=url, output_dir=Path(folder), **{"temperature": 0.0, "max_workers": 1} | settings
    )


def accuracy(result: RunResult) -> float:
    return float(result.results["tasks"]["t"]["metrics"]["accuracy"]["value"])


def by_deployment(request: web.Request, body: dict[str, Any]) -> str:
    which = request.query.get("deployment") or request.headers.get("X-Variant") or str(body.get("face", "a"))
    return "A" if which == "a" else "B"


@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        ({"query": {"deployment": "a"}}, {"query": {"deployment": "b"}}),
        ({"headers": {"X-Variant": Secret("a")}}, {"headers": {"X-Variant": Secret("b")}}),
    ],
)
def test_another_deployment_is_asked_and_not_answered_by_the_cache(
    task: str, of_a: dict[str, Any], of_b: dict[str, Any]
) -> None:
    with twofaced(TwoFaced(by_deployment)) as url:
        assert accuracy(run(task, url, "c1", **of_a)) == 1.0
        second = run(task, url, "c2", **of_b)
        assert (accuracy(second), second.state.cached) == (0.0, 0)
        again = run(task, url, "c3", **of_b)
        assert (accuracy(again), again.state.cached) == (0.0, ROWS - 3), "three of its prompts are asked again"
        with pytest.raises(RunMismatch, match=r"deployment.*'a'; now 'b'|header x-variant"):
            run(task, url, "c1", **of_b)


def test_what_a_card_adds_to_the_body_is_part_of_the_key(task: str, tmp_path: Path) -> None:
    card = tmp_path / "cards" / "providers" / "px.toml"
    card.parent.mkdir(parents=True)
    with twofaced(TwoFaced(by_deployment)) as url:

        def at(face: str, folder: str) -> RunResult:
            card.write_text(f'title = "PX"\nbase_url = "{url}"\n[quirks]\nadd = {{ face = "{face}" }}\n')
            return snellen.run(task, "px/m", output_dir=Path(folder), catalogs=(tmp_path / "cards",))

        assert accuracy(at("a", "c1")) == 1.0
        other = at("b", "c2")
        assert (accuracy(other), other.state.cached) == (0.0, 0)
        with pytest.raises(RunMismatch, match=r"body add"):
            at("b", "c1")


def test_another_checkpoint_under_one_name_is_asked_and_the_kept_replies_are_told_of(task: str) -> None:
    faces = TwoFaced(listed={"root": "/ckpt-100"})
    with twofaced(faces) as url:
        run(task, url, "c1")
        faces.listed, faces.answer = {"root": "/ckpt-200"}, lambda request, body: "B"
        second = run(task, url, "c2")
        assert (accuracy(second), second.state.cached) == (0.0, 0)
        with pytest.raises(RunMismatch, match=r"'/ckpt-100'.*'/ckpt-200'"):
            run(task, url, "c1", num_infers=2)
        assert [row["who"]["listed"]["root"] for row in second.results["run"]["answerers"]] == ["/ckpt-200"]


def test_a_server_that_says_nothing_is_found_out_by_asking_a_few_prompts_again(task: str) -> None:
    faces = TwoFaced()
    with twofaced(faces) as url:
        run(task, url, "c1")
        believed = run(task, url, "c2")
        assert (accuracy(believed), believed.state.cached) == (1.0, ROWS - 3)
        faces.answer = lambda request, body: "B"
        other = run(task, url, "c3")
        assert (accuracy(other), other.state.cached) == (0.0, 0)
        faces.asked = 0
        run(task, url, "c4", cache_check=0)
        assert faces.asked == 0, "who believes it without asking may"


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ({"listed": {"root": "/a"}}, {"listed": {"root": "/b"}}, "'/a'.*'/b'"),
        ({"listed": {}}, {"listed": {"root": "/b"}}, "root nothing.*'/b'"),
        ({"listed": {"created": 1_600_000_000}}, {"listed": {"created": 1_700_000_000}}, "created"),
        ({"said": {"model": "m-1"}}, {"said": {"model": "m-2"}}, "'m-1'.*'m-2'"),
        ({"said": {}}, {"said": {"model": "m-2"}}, "nothing of their model.*'m-2'"),
        ({"said": {"system_fingerprint": "fp1"}}, {"said": {"system_fingerprint": "fp2"}}, "'fp1'.*'fp2'"),
    ],
)
def test_a_folder_is_not_continued_by_another(
    task: str, before: dict[str, Any], after: dict[str, Any], named: str
) -> None:
    faces = TwoFaced(**before)
    with twofaced(faces) as url:
        run(task, url, "c1", cache=False)
        for name, value in after.items():
            setattr(faces, name, value)
        asked = faces.asked
        with pytest.raises(RunMismatch, match=f"{named}.*--same-model"):
            run(task, url, "c1", cache=False, num_infers=2)
        assert faces.asked - asked <= 1, "one request tells"
        both = run(task, url, "c1", cache=False, num_infers=2, same_model=True)
        assert both.state.done == ROWS
        with load_run(Path("c1")) as reader:
            rows = {trial.prediction.answerer for trial in reader.trials("t")}
        assert rows == {1, 2}, "every reply names who gave it"


def test_a_model_that_changes_while_it_is_asked_stops_the_run(task: str) -> None:
    faces = TwoFaced(said={"model": "m-1"})
    faces.after = lambda count: faces.said.update(model="m-2") if count > 5 else None
    with twofaced(faces) as url:
        with pytest.raises(RunMismatch, match=r"'m-1'.*'m-2'"):
            run(task, url, "c1", cache=False)
        with load_run(Path("c1")) as reader:
            stored = list(reader.trials("t"))
        assert 3 < len(stored) < 6 and {trial.prediction.detail["model"] for trial in stored} == {"m-1"}


def test_a_moment_of_listing_is_no_date_of_a_model_and_credentials_leave_no_trace(task: str) -> None:
    faces = TwoFaced()
    with twofaced(faces) as url:
        faces.listed = {"created": int(time.time())}
        keys = {"Authorization": Secret("Bearer sk-very-secret-key-1"), "X-Team": Secret("password-of-team")}
        first = run(task, url, "c1", cache=False, headers=keys)
        faces.listed = {"created": int(time.time()) + 7}
        keys["Authorization"] = Secret("Bearer sk-very-secret-key-2")
        assert run(task, url, "c1", cache=False, headers=keys, num_infers=2).state.done == ROWS
        who = first.results["run"]["answerers"][0]["who"]
        assert "created" not in who["listed"]
        assert list(who["headers"]) == ["x-team"]
        assert b"password-of-team" not in Path("c1/run.db").read_bytes()


def test_a_run_continued_by_another_version_says_so(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from snellen.api import plan

    with twofaced(TwoFaced()) as url:
        run(task, url, "c1", cache=False)
        newer = {**plan.installed_versions(), "snellen": "9.0"}
        monkeypatch.setattr(plan, "installed_versions", lambda: newer)
        found = run(task, url, "c1", cache=False)
        assert [one["versions"]["snellen"] for one in found.results["continued_with"]] == ["9.0"]
        assert re.search(r"continued 20[^<]*: snellen 9\.0", Path("c1/report.html").read_text("utf-8"))
        assert run(task, url, "c1", cache=False).results["continued_with"] == found.results["continued_with"]
