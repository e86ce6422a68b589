"""Recorded verdicts and prompts of other harnesses' own code, and what we make of the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from atlas_fixtures import png
from snellen.core.builtins import default_registry
from snellen.core.protocols import LoadContext
from snellen.core.tasks import Task
from snellen.core.types import Score
from snellen.data.atlas import card_rows
from snellen.data.catalog import Catalog
from snellen.kits.bridges.scored_files import import_by_card
from snellen.prompt.build import Prompter
from snellen.scoring.aggregates.headline import PEER
from snellen.scoring.ranges import score_trial
from snellen.store.reader import RunReader

HOME = Path(__file__).parent / "golden" / "peers"
OUTCOME = ("verdict", "random", "judge", "left_out", "group")
"""Columns that say what the tool made of a row: they are no part of it."""
SAME = 1e-6
DRAWS_UNMARKED = ("lmms-eval__egoschema",)
"""Pairs whose recorded verdicts include draws that are not marked as such: what we say is drawn is not compared."""
DRAWN, LEFT_OUT = "a random letter", "left out"


class Unlike(NamedTuple):
    """One verdict that is not the tool's."""

    sample: str
    reply: str
    answer: str
    theirs: float | str | None
    ours: float | str | None


class Agreement(NamedTuple):
    """How the verdicts on one benchmark under one protocol compare."""

    pair: str
    verdicts: int
    unlike: list[Unlike]

    @property
    def share(self) -> float:
        """Return the share of verdicts that are not the tool's."""
        return len(self.unlike) / self.verdicts


def pairs() -> list[str]:
    """Return the names of all recorded pairs, `TOOL__BENCHMARK`."""
    return sorted(path.stem for path in (HOME / "verdicts").glob("*.json"))


def agreement(pair: str, folder: Path, verdicts: Path = HOME / "verdicts") -> Agreement:
    """Score the rows of a recorded pair and hold each verdict against the tool's; rows for its judge are left out."""
    told = json.loads((verdicts / f"{pair}.json").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = told["rows"]
    file = folder / f"{pair}.jsonl"
    plain = (
        {key: value for key, value in row.items() if key not in OUTCOME} | {"gid": at} for at, row in enumerate(rows)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in plain), encoding="utf-8")
    ours: dict[int, float | str | None] = {}
    for gid, scores in _scores(file, told["benchmark"], told["protocol"], folder / pair):
        ours[gid] = _counted({score.metric: score for score in scores})
    if told["unit"] == "group":
        return _grouped(pair, rows, ours)
    unmarked = {at for at, value in ours.items() if pair in DRAWS_UNMARKED and value == DRAWN}
    compared = [(at, row) for at, row in enumerate(rows) if not row.get("judge") and at not in unmarked]
    unlike = [
        Unlike(
            str(row.get("id")), str(row.get("response", row.get("prediction"))), _answer(row), _recorded(row), ours[at]
        )
        for at, row in compared
        if not _alike(_recorded(row), ours[at])
    ]
    return Agreement(pair, len(compared), unlike)


def _scores(file: Path, benchmark: str, protocol: str, folder: Path) -> Iterator[tuple[int, Sequence[Score]]]:
    """Yield the scores of every row of a file, ours and the tool's, with the number of the row."""
    import_by_card(file, benchmark, protocol, output=folder)
    registry = default_registry()
    with RunReader(folder) as reader:
        (task,) = reader.header().tasks
        scorers = [registry.get("scorer", name) for name in task.scorers]

        def score(*trial: Any) -> list[Score]:
            return [one for scorer in scorers for one in scorer(*trial)]

        for trial in reader.trials(task.name):
            yield int(trial.sample.tags["gid"]), score_trial(task, score, trial, dict(task.score_options))


def _grouped(pair: str, rows: list[dict[str, Any]], ours: Mapping[int, float | str | None]) -> Agreement:
    """Compare the verdicts of whole groups: one is right if all its rows are."""
    members: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        members.setdefault(row["group"], []).append(at)
    unlike = []
    for name, places in members.items():
        right = float(all(ours[at] == 1.0 for at in places))
        if not _alike(rows[places[0]]["verdict"], right):
            replies = " | ".join(str(rows[at]["response"]) for at in places)
            unlike.append(Unlike(name, replies, "", rows[places[0]]["verdict"], right))
    return Agreement(pair, len(members), unlike)


def _counted(scores: Mapping[str, Any]) -> float | str | None:
    peer = next(score for metric, score in scores.items() if metric.endswith(PEER))
    if peer.rule == "fallback" and peer.answer is not None:
        return DRAWN
    return LEFT_OUT if peer.value is None else float(peer.value)


def _recorded(row: Mapping[str, Any]) -> float | str | None:
    if row.get("random"):
        return DRAWN
    return LEFT_OUT if row.get("left_out") else row["verdict"]


def _alike(theirs: float | str | None, ours: float | str | None) -> bool:
    if isinstance(theirs, float | int) and isinstance(ours, float | int):
        return abs(theirs - ours) < SAME
    return theirs == ours


def _answer(row: Mapping[str, Any]) -> str:
    names = ("answer", "answers", "label", "ground_truth", "number", "question_answer", "correct_choice", "answer_id")
    return json.dumps(next((row[name] for name in names if name in row), None), ensure_ascii=False)


class MadePrompt(NamedTuple):
    """What we would send for a recorded row."""

    text: str
    order: str
    """I for a picture, V for a video, T for a text, in the order sent."""
    max_tokens: int | None
    temperature: float | None


def prompt_cases(folder: Path = HOME) -> list[dict[str, Any]]:
    """Return the recorded prompts, of pictures and of videos."""
    files = ("prompts.json", "prompts-video.json")
    return [case for name in files for case in json.loads((folder / name).read_text(encoding="utf-8"))]


def made_prompt(case: Mapping[str, Any], folder: Path) -> MadePrompt:
    """Return the prompt of ours for a recorded row: its card, its protocol, a picture or a video that is there."""
    place = folder / str(case["id"]).replace("|", "_").replace("#", "_")
    place.mkdir(exist_ok=True)
    (place / "a.png").write_bytes(png(1))
    file = place / "rows.jsonl"
    row = {"id": "1", **case["row"]}
    if case["benchmark"] == "mlvu":  # recorded with the columns of lmms-eval's own copy of the table
        row |= {"video": row["video_name"], "answer": row["candidates"]["ABCD".index(row["answer"])]}
    if case["benchmark"] == "longvideobench":  # recorded without the column that the card's table has
        row |= {"subtitle_path": ""}
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    catalog = Catalog()
    task: Task = catalog.task(case["benchmark"], [("dataset.path", str(file))], case["protocol"])
    (sample,) = card_rows.load(task, LoadContext())
    request = Prompter(task, catalog.prompt(task, sample.form), 0).build(sample)
    (turn,) = [turn for turn in request.messages if turn.role == "user"]
    parts = turn.parts or (*range(len(turn.images)), turn.text)
    order = "".join(
        "T" if isinstance(part, str) else "I" if isinstance(part, int) else "V" for part in parts if part != ""
    )
    return MadePrompt(turn.text, order, request.params.max_tokens, request.params.temperature)
