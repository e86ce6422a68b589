"""A run whose every field is a payload: names, questions, options, tags, replies, failures, settings, attempts."""

from __future__ import annotations

from pathlib import Path

from made_runs import draw_picture, run_apart, scored
from payloads import PAYLOADS
from snellen.core.errors import ModelError
from snellen.core.tasks import RunHeader, Task
from snellen.core.types import (
    Failure,
    FailureKind,
    Form,
    Params,
    Prediction,
    Request,
    Sample,
    Score,
    Timing,
    TrialKey,
    Turn,
)
from snellen.report.files import write_records, write_results
from snellen.store.reader import RunReader
from snellen.store.writer import RunWriter
from stored_scores import write_scores


def make_hostile_run(folder: Path, *, model: str = PAYLOADS[0]) -> Path:
    """Write a run with one sample a payload, each payload in every field that holds text."""
    task = Task(
        PAYLOADS[1],
        {"loader": PAYLOADS[2]},
        Form.CHOICE,
        scorers=("choice",),
        title=PAYLOADS[3],
        dimension=PAYLOADS[4],
        variants=("base",),
        repeats=2,
    )
    config = {"seed": 0, "model": {"name": PAYLOADS[5]}, PAYLOADS[6]: {PAYLOADS[7]: PAYLOADS[8]}}
    header = RunHeader(
        "0123456789abcdef",
        config,
        {PAYLOADS[9]: PAYLOADS[10]},
        PAYLOADS[11],
        PAYLOADS[12],
        model,
        [task],
        {task.name: 2 * len(PAYLOADS)},
    )
    run_apart(_write(folder, header, task))
    reader = RunReader(folder)
    scores = [_hostile(score, number) for number, score in enumerate(reader.scores(task.name))]
    reader.close()
    results = scored(folder)
    write_scores(folder, task.name, scores or list(_made_up(task)))
    write_results(folder, results)
    with RunReader(folder) as run:
        write_records(run)
    return folder


def _hostile(score: Score, number: int) -> Score:
    payload = PAYLOADS[number % len(PAYLOADS)]
    return Score(score.key, score.metric, score.value, payload, payload, payload, {"span": [0, 5], payload: payload})


def _made_up(task: Task) -> list[Score]:
    found = []
    for number, payload in enumerate(PAYLOADS):
        for repeat in range(2):
            value = None if number % 7 == 0 else float((number + repeat) % 2)
            found.append(
                Score(
                    TrialKey(task.name, payload, "base", repeat),
                    "accuracy",
                    value,
                    payload,
                    payload,
                    payload,
                    {"span": [0, 5], payload: payload},
                )
            )
    return found


async def _write(folder: Path, header: RunHeader, task: Task) -> None:
    picture = draw_picture(folder / "images" / "0.png", 3)
    writer = RunWriter(folder, header)
    try:
        for number, payload in enumerate(PAYLOADS):
            sample = Sample(
                payload,
                payload,
                Form.CHOICE,
                payload,
                (picture,),
                (payload, "other"),
                (payload,),
                group=payload,
                tags={payload: payload, "kind": payload},
                meta={payload: payload},
            )
            for repeat in range(2):
                key = TrialKey(task.name, payload, "base", repeat)
                request = Request(
                    key,
                    (Turn(payload, payload), Turn("user", payload, (picture,))),
                    Params(stop=(payload,)),
                    marks=("A", "B"),
                    shown=(payload, "other"),
                    prefix=payload,
                )
                if number % 5 == 4:
                    prediction = Prediction(
                        key, failure=Failure(FailureKind.SERVER, payload, 500, 3), timing=Timing(0.0, 1.0)
                    )
                else:
                    prediction = Prediction(
                        key,
                        text=payload,
                        reasoning=payload,
                        finish=payload,
                        timing=Timing(0.0, 1.0 + number),
                        detail={payload: payload},
                    )
                await writer.put(number, sample, request, prediction, "0" * 16)
            writer.put_attempt(
                TrialKey(task.name, payload, "base", 0), ModelError(FailureKind.SERVER, payload, status=500)
            )
    finally:
        writer.close()
