"""Scoring a stored run: which scorers, which groups, what chance is, and pieces of the line for programs of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snellen
from made_runs import scored
from snellen.core.builtins import default_registry
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.core.tasks import MOST_GROUPS, Task
from snellen.core.types import Estimate, Score
from snellen.scoring.protocols.readings import Reading
from snellen.scoring.results import aggregates_of


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Fifty questions, half of two options and half of four, with tags of one, two and fifty values."""
    rows = [
        {
            "id": n,
            "question": f"Q{n}?",
            "options": ["a", "b", "c", "d"][: 2 + 2 * (n % 2)],
            "answer": "A",
            "same": 1,
            "two": n % 2,
            "own": n,
        }
        for n in range(MOST_GROUPS + 10)
    ]
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    snellen.run(
        str(path),
        "blind/random",
        output_dir=tmp_path / "run",
        num_infers=2,
        variants=("base", "order=1"),
        detailed_keys=(),
    )
    return tmp_path / "run"


def test_tags_that_say_nothing_and_tags_that_name_every_sample_are_no_groups(folder: Path) -> None:
    task = scored(folder)["tasks"]["d"]
    assert set(task["groups"]) == {"two", "variant"}
    assert task["notes"] and task["notes"][0].startswith("accuracy: ")
    assert {"base", "order=1"} == set(task["groups"]["variant"])


def test_scorers_replace_and_more_are_added(folder: Path) -> None:
    registry = default_registry()
    assert "accuracy" not in scored(folder, registry, reading=Reading(scorers=("exact",)))["tasks"]["d"]["metrics"]
    both = scored(folder, registry, more=["exact"])["tasks"]["d"]["metrics"]
    assert {"accuracy", "exact_match"} <= set(both)
    assert "exact_match" not in scored(folder, registry)["tasks"]["d"]["metrics"]


def test_scorers_get_the_options_that_were_told_and_chance(folder: Path) -> None:
    seen: list[dict[str, Any]] = []

    def spy(sample: Any, request: Any, prediction: Any, options: Any) -> list[Score]:
        seen.append(dict(options))
        return [Score(prediction.key, "m", 1.0)]

    registry = default_registry()
    registry.add("scorer", "spy", spy)
    scored(folder, registry, reading=Reading(scorers=("spy",)))
    assert seen[0] == {"chance": pytest.approx((0.5 + 0.25) / 2)}
    seen.clear()
    scored(folder, registry, reading=Reading("reform", ("spy",), "mean"))
    assert (seen[0]["profile"], seen[0]["reduction"]) == ("reform", "mean")


def test_an_aggregate_sees_tables_and_scores_and_is_in_the_results(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(json.dumps({"id": n, "question": "?", "answer": "x"}) for n in range(4)))
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from snellen.core.types import Estimate\n"
        "def count(scored, options):\n"
        "    return {'pairs': Estimate(float(len(list(scored.scores()))), n=len(scored.tables))}\n"
        "def register(registry):\n"
        "    registry.add('aggregate', 'count', count)\n"
    )
    result = snellen.run(
        str(path),
        "blind/first",
        output_dir=tmp_path / "run",
        plugins=(plugin,),
        overrides=(("aggregates", ["count"]), ("scorers", ["exact", "contains"])),
    )
    found = result.results["tasks"]["d"]["metrics"]["pairs"]
    assert (found["value"], found["n"]) == (8.0, 2)
    assert isinstance(Estimate(1.0), Estimate)


def test_when_everything_failed_the_counts_are_still_there(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(
        "\n".join(json.dumps({"id": n, "question": "?", "options": ["a", "b"], "answer": "A"}) for n in range(3))
    )
    (tmp_path / "said.jsonl").write_text('{"id": "other", "text": "A"}')
    result = snellen.run(str(path), f"replay/{tmp_path / 'said.jsonl'}", output_dir=tmp_path / "run")
    found = result.results["tasks"]["d"]["metrics"]["accuracy"]
    assert (found["value"], found["n"], found["unscored"], found["failed"], result.failed) == (None, 0, 0, 3, 3)
    assert (result.results["status"]["complete"], result.results["status"]["failed"]) == (False, {"d": 3})


def test_perturbed_variants_get_their_aggregate(tmp_path: Path) -> None:
    import PIL.Image

    PIL.Image.new("RGB", (20, 20)).save(tmp_path / "a.png")
    path = tmp_path / "d.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"id": n, "image": "a.png", "question": "?", "options": ["a", "b"], "answer": "A"})
            for n in range(3)
        )
    )
    plain = snellen.run(str(path), "blind/first", output_dir=tmp_path / "a").results["tasks"]["d"]["metrics"]
    worse = snellen.run(
        str(path), "blind/first", output_dir=tmp_path / "b", variants=("base", "perturb=jpeg:3")
    ).results["tasks"]["d"]["metrics"]
    assert set(worse) - set(plain)


def test_usage_counts_requests_and_tokens(folder: Path) -> None:
    assert scored(folder)["usage"] == {
        "input_tokens": 0,
        "output_tokens": 0,
        "reasoning_tokens": 0,
        "requests": 200,
    }


def test_pieces_of_the_line(folder: Path, tmp_path: Path) -> None:
    data = snellen.load_dataset("eyechart", limit=3)
    assert len(list(data)) == 3 == len(list(data))
    assert [sample.id for sample in data] == [sample.id for sample in snellen.load_dataset("eyechart", limit=3)]
    assert [sample.answers for sample in data] != [
        sample.answers for sample in snellen.load_dataset("eyechart", limit=3, seed=1)
    ]
    assert snellen.load_model("blind/first").name == "blind/first"
    with pytest.raises(UsageError, match="unknown provider"):
        snellen.load_model("nobody/x")
    from snellen.api.load import load_run

    run = load_run(folder)
    assert run.tasks() == ["d"]
    run.close()
    with pytest.raises(EnvironmentProblem, match="no run at"):
        load_run(tmp_path / "nowhere")


def test_scoring_again_takes_a_plug_in_and_keeps_it_beside_the_run(folder: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from snellen.core.types import Score\n"
        "def all_right(sample, request, prediction, options):\n"
        "    return [Score(prediction.key, 'mine', 1.0)]\n"
        "def register(registry):\n"
        "    registry.add('scorer', 'mine', all_right)\n"
    )
    before = {path.name: path.read_bytes() for path in folder.glob("re*")}
    results = snellen.score(folder, scorers=["mine"], plugins=[plugin])
    assert results["tasks"]["d"]["metrics"]["mine"]["value"] == 1.0
    assert json.loads((folder / "results-mine.json").read_text()) == json.loads(json.dumps(results))
    lines = (folder / "records-mine.jsonl").read_text().splitlines()
    assert {json.loads(line)["metric"] for line in lines} == {"mine"}
    with pytest.raises(UsageError, match="unknown scorer"):
        snellen.score(folder, scorers=["mine"])
    assert {name: (folder / name).read_bytes() for name in before} == before, "the run's own reading is as it was"
    assert json.loads((folder / "results-mine.json").read_text())["tasks"]["d"]["metrics"]["mine"]["value"] == 1.0


def test_perturbed_tasks_are_aggregated_as_such_and_nothing_twice() -> None:
    task = Task("t", {}, variants=("base", "perturb=jpeg:3"), aggregates=("variants", "perturbed"))
    assert aggregates_of(task) == ["variants", "perturbed"]
    assert aggregates_of(Task("t", {}, aggregates=("variants",))) == ["variants"]
