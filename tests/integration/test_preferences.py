"""Preferences from sampled replies: stored as a run, judged by our scorers or an LLM, counted, resumed, then learnt from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from line_doubles import Scripted
from snellen.core.errors import EnvironmentProblem, ModelError, UsageError
from snellen.core.types import FailureKind, Prediction, Request
from snellen.kits.train import made_preferences as preferences
from snellen.kits.train.made_preferences import PreferenceCounts, make_preferences
from snellen.kits.train.rationale import open_source
from snellen.kits.train.recipe import DataSource, Feedback, Recipe, Training
from snellen.store.reader import RunReader
from train_doubles import sampled_rationale, write_chains

LETTERS = re.compile(r"Answer: (\w)\.")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scripted:
    """Whom the sampling run asks."""
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    double = Scripted(sampled_rationale)
    monkeypatch.setattr("snellen.api.plan.create_model", lambda settings, registry: double)
    return double


def recipe_of(folder: Path, **changes: object) -> Recipe:
    feedback = Feedback(**{"samples": 3, **changes})  # type: ignore[arg-type]
    data = (DataSource(str(write_chains(folder / "data"))),)
    training = Training(trainer="dpo")
    return Recipe(
        model="hf/x", stage="feedback", data=data, output=str(folder / "out"), training=training, feedback=feedback
    )


def counts_of(folder: Path) -> PreferenceCounts:
    path = folder / "out" / "feedback" / "preferences.json"
    return msgspec.json.decode(path.read_bytes(), type=PreferenceCounts)


def test_the_grounded_reply_is_preferred_and_right_steps_hold_their_place(model: Scripted, tmp_path: Path) -> None:
    said: list[str] = []
    path = make_preferences(recipe_of(tmp_path), said.append)
    rows = {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}
    assert len(rows) == 18, "six inferences and twelve steps"
    best, worst = rows["00000.h"]["reply"], rows["00000.h"]["rejected"]
    assert best.count("thing") == 2 and "guess" in worst
    anchor = rows["00000.1"]
    assert (
        anchor["reply"] != anchor["rejected"]
        and LETTERS.search(anchor["reply"])[1] != LETTERS.search(anchor["rejected"])[1]
    )  # type: ignore[index]
    counts = counts_of(tmp_path)
    assert (counts.questions, counts.pairs, counts.anchors, counts.dropped) == (18, 6, 12, {})
    assert (counts.replies, counts.replies_failed) == (54, 0)
    assert said[-1].startswith("18 questions, 54 replies (0 failed, 0 without a verdict): 6 give a preference")


def test_pictures_of_a_relative_path_are_found_again(
    model: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    (source,) = recipe.data
    near = msgspec.structs.replace(source, path=str(Path(source.path).relative_to(tmp_path)))
    path = make_preferences(msgspec.structs.replace(recipe, data=(near,)))
    chains = list(open_source(DataSource(str(path)), recipe))
    assert chains and all(Path(image.ref).is_file() for chain in chains for image in chain.pictures)


def test_all_samples_of_a_question_answer_one_prompt_and_the_run_can_be_looked_at(
    model: Scripted, tmp_path: Path
) -> None:
    make_preferences(recipe_of(tmp_path))
    with RunReader(tmp_path / "out" / "feedback" / "sampling-0") as run:
        prompts: dict[str, set[str]] = {}
        for trial in run.trials("cure-rationale"):
            prompts.setdefault(trial.sample.id, set()).add(trial.request.messages[-1].text)
    assert len(prompts) == 18 and all(len(found) == 1 for found in prompts.values())
    assert (tmp_path / "out" / "feedback" / "sampling-0" / "results.json").is_file()


def test_what_is_stored_is_not_asked_again(model: Scripted, tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path)
    first = make_preferences(recipe).read_bytes()
    asked = len(model.asked)
    assert make_preferences(recipe).read_bytes() == first and len(model.asked) == asked


def test_conditional_training_gets_good_and_bad_replies(model: Scripted, tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path)
    recipe = msgspec.structs.replace(recipe, training=Training(trainer="control"))
    rows = [json.loads(line) for line in make_preferences(recipe).read_text().splitlines()]
    marked = [row["good"] for row in rows if row["id"].startswith("00000.h")]
    assert True in marked and False in marked
    assert all(row["good"] for row in rows if ".h" not in row["id"]), "right short answers are good"


def test_replies_that_failed_and_ties_are_counted_and_no_preference_at_all_is_refused(
    model: Scripted, tmp_path: Path
) -> None:
    async def sulky(request: Request) -> Prediction:
        if request.key.repeat == 1:
            raise ModelError(FailureKind.REFUSED, "no")
        always = msgspec.structs.replace(request, key=msgspec.structs.replace(request.key, repeat=0))
        return Prediction(request.key, text=(await sampled_rationale(always)).text)

    model._answer = sulky
    recipe = recipe_of(tmp_path, samples=3, anchors=False)
    with pytest.raises(UsageError, match=r"no preference found: 18 questions, 54 replies \(18 failed"):
        make_preferences(recipe)
    assert sum(counts_of(tmp_path).dropped.values()) == 18


def test_without_labels_our_scorers_refuse(model: Scripted, tmp_path: Path) -> None:
    (tmp_path / "bare.jsonl").write_text(json.dumps({"id": 1, "question": "What happens next?"}) + "\n")
    recipe = msgspec.structs.replace(recipe_of(tmp_path), data=(DataSource(str(tmp_path / "bare.jsonl")),))
    model._answer = None
    with pytest.raises(UsageError, match="nothing to judge its replies by"):
        make_preferences(recipe)


class Judge(Scripted):
    """An LLM that judges by counting things, in the form it is asked for."""

    def __init__(self, pairs: bool, fails: bool = False) -> None:
        super().__init__()
        self._pairs, self._fails = pairs, fails

    async def predict(self, request: Request, images: object) -> Prediction:
        self.asked.append(request.key.sample)
        if self._fails:
            raise ModelError(FailureKind.SERVER, "the judge is down")
        text = request.messages[-1].text
        case = re.search(r"Case (\w+)", text)[1]  # type: ignore[index]
        fenced = re.search(r"(=====\[\w+\]=====)\n(.*?)\n\1", text, re.DOTALL)[2]  # type: ignore[index]
        verdict = self._compare(fenced) if self._pairs else "YES" if fenced.count("thing") > 1 else "NO"
        return Prediction(request.key, text=json.dumps({"case": case, "verdict": verdict}))

    def _compare(self, text: str) -> str:
        first, second = (part.count("thing") for part in text.split("SECOND:"))
        return "TIE" if first == second else "FIRST" if first > second else "SECOND"


@pytest.mark.parametrize(("way", "requests"), [("points", 3 * 54), ("pairs", 18 * 3 * 2)])
def test_an_llm_judges_by_points_or_in_pairs(
    model: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, requests: int
) -> None:
    judge = Judge(way == "pairs")
    monkeypatch.setattr(preferences, "create_model", lambda settings, registry: judge)
    recipe = recipe_of(tmp_path, judge=way, judge_model="openai/judge", anchors=False)
    rows = [json.loads(line) for line in make_preferences(recipe).read_text().splitlines()]
    assert len(rows) == 6 and all(row["reply"].count("thing") > row["rejected"].count("thing") for row in rows)
    assert len(judge.asked) == requests
    make_preferences(recipe)
    assert len(judge.asked) == requests, "verdicts are stored like replies"


def test_a_judge_that_is_down_is_named(model: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preferences, "create_model", lambda settings, registry: Judge(pairs=True, fails=True))
    recipe = recipe_of(tmp_path, judge="pairs", judge_model="openai/judge")
    with pytest.raises(EnvironmentProblem, match=r"the judge openai/judge answered nothing|the judge is down|errors"):
        make_preferences(recipe)
