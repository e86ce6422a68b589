"""The votes of judges beside a run: where they lie, and what they say about each stored trial."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from made_runs import make_run
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import Prediction
from snellen.data.catalog import Catalog
from snellen.scoring.judges.judge_card import case_number, plan_votes, read_judge
from snellen.scoring.judges.verdicts import stored_verdicts
from snellen.scoring.protocols.readings import judge_folder, judge_folders
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter

TABLE = Catalog().card("judges", "correctness")
JUDGE = read_judge(TABLE, "correctness")


def test_folders_are_found_by_their_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        judge_folder(tmp_path, name).mkdir()
    (tmp_path / "report").mkdir()
    assert judge_folders(tmp_path) == [tmp_path / "judge-a", tmp_path / "judge-b"]


def vote(run: Path, word_of: dict[str, str]) -> None:
    """Store a judge's replies beside a run, one a vote, as asking would have."""
    folder = judge_folder(run, "correctness")
    folder.mkdir()
    reader = RunReader(run)
    trials = [(trial.sample, trial.prediction) for trial in reader.trials("shapes")]
    reader.close()
    requests = list(plan_votes(JUDGE, trials))
    answers = {prediction.key.sample: prediction for _, prediction in trials}
    header = RunHeader(
        "id", {"judge": msgspec.to_builtins(TABLE)}, {}, "2026-01-01", tasks=[Task(requests[0].key.task, {})]
    )

    async def write() -> None:
        samples = {sample.id: sample for sample, _ in trials}
        writer = RunWriter(folder, header)
        for position, request in enumerate(requests):
            prediction = answers[request.key.sample]
            case = case_number(JUDGE, prediction.key, prediction.text or "")
            said = json.dumps({"case": case, "verdict": word_of[request.key.sample]})
            await writer.put(position, samples[request.key.sample], request, Prediction(request.key, text=said), "")
        writer.close()

    asyncio.run(write())


def test_verdicts_of_stored_votes_become_scores(tmp_path: Path) -> None:
    make_run(tmp_path / "run", count=6, score=False)
    reader = RunReader(tmp_path / "run")
    names = [trial.sample.id for trial in reader.trials("shapes") if trial.prediction.failure is None]
    assert list(stored_verdicts(reader, "shapes")) == [], "no judge was asked yet"
    words = {name: ("CORRECT", "INCORRECT")[number % 2] for number, name in enumerate(names)}
    vote(tmp_path / "run", words)
    scores = {score.key.sample: score.value for score in stored_verdicts(reader, "shapes")}
    assert scores == {name: float(word == "CORRECT") for name, word in words.items()}
    assert list(stored_verdicts(reader, "another task")) == []
    reader.close()


def test_a_judge_that_is_not_one_is_refused_by_name() -> None:
    with pytest.raises(Exception, match="judge"):
        read_judge({"nonsense": 1}, "broken judge")
