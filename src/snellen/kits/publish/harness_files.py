"""A stored run as the result files of FlagEvalMM and AISBench, so that their tools and users can go on with them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.counting import worth_of
from ...core.message_parts import write_markers
from ...core.types import BASE_VARIANT, Prediction, Request, Sample, Score
from ...extract.option_set import derive_marks
from ...report.exported_run import (
    Details,
    ExportedRun,
    StoredTrial,
    check_details,
    file_stem,
    first_scored,
    write_files,
)
from ...scoring.protocols.readings import own_reading
from ...scoring.scorers.option_likelihood import IMPOSSIBLE, choose, option_values

_TOKEN_FIELDS = {"average_tokens": "total_tokens"}
_TOKEN_FIELDS |= {f"average_{kind}_tokens": f"{kind}_tokens" for kind in ("prompt", "completion")}


class Inference(Struct, frozen=True):
    """One inference: the raw reply, what was read from it, and its score; None where there is none."""

    raw: str | None = None
    answer: str | None = None
    score: float | None = None
    failed: bool = False


MISSING = Inference()


class _Question(Struct):
    """One question: its id as the file has it, its words, its inferences by index, and what is grouped by."""

    id: Any
    text: str
    inferences: dict[int, Inference] = {}
    tags: Mapping[str, Any] = {}
    details: list[Mapping[str, Any]] = []


def flageval_records(trials: Iterable[StoredTrial], *, dense: bool = False) -> Iterator[dict[str, Any]]:
    """Yield one record a question (and variant): answers, raw texts and scores of all its inferences.

    A failed or missing inference is null at its own index, so that none ever takes another's place, and one that could
    not be read is not right; `dense` leaves gaps out and counts on, and leaves out a question without any score, as
    FlagEvalMM does.
    """
    for question in _questions(trials):
        known = question.inferences
        if dense:
            kept = [known[index] for index in sorted(known) if not known[index].failed]
            if any(inference.score is not None for inference in kept):
                yield inference_record(question.id, question.text, kept)
            continue
        yield inference_record(
            question.id, question.text, [known.get(index, MISSING) for index in range(max(known) + 1)]
        )


def flageval_result(trials: Iterable[StoredTrial], group_by: Sequence[str] = ()) -> dict[str, Any]:
    """Return what FlagEvalMM writes to `<task>_result.json`: percentages with two digits, rejected inferences apart.

    `accuracy` is over all inferences, `overall_accuracy` over questions; each value of a tag in `group_by` has its own.
    """
    questions = _questions(trials)
    every = [inference for question in questions for inference in question.inferences.values()]
    rejected = sum(inference.failed for inference in every)
    result: dict[str, Any] = {"accuracy": _percent(_scores(every)), "overall_accuracy": _percent(_means(questions))}
    if rejected:
        rate = round(100 * rejected / len(every), 2)
        result["reject_info"] = {"reject_rate": rate, "reject_number": rejected, "total_question": len(every)}
    for key in group_by:
        values = dict.fromkeys(str(question.tags.get(key)) for question in questions)
        for value in values:
            part = [question for question in questions if str(question.tags.get(key)) == value]
            result[value] = _percent(_scores(one for question in part for one in question.inferences.values()))
    return result | _average_tokens(questions)


def _questions(trials: Iterable[StoredTrial]) -> list[_Question]:
    found: dict[str, _Question] = {}
    for trial in trials:
        sample, request, prediction, _ = trial
        key = prediction.key
        name = key.sample if key.variant == BASE_VARIANT else f"{key.sample}?{key.variant}"
        if name not in found:
            found[name] = _Question(sample.meta.get("question_id", name), _question(request), tags=sample.tags)
        found[name].inferences[key.repeat] = _inference(trial)
        found[name].details.append(_usage_as_told(prediction) | prediction.detail)
    return list(found.values())


def _usage_as_told(prediction: Prediction) -> dict[str, Any]:
    """Return what a reply of a run used, in the words of a server; a file that was read has its own."""
    if (usage := prediction.usage) is None:
        return {}
    counts = {"prompt_tokens": usage.input_tokens or 0, "completion_tokens": usage.output_tokens or 0}
    return {"usage": {**counts, "total_tokens": sum(counts.values())}}


def _scores(inferences: Iterable[Inference]) -> list[float]:
    return [inference.score for inference in inferences if inference.score is not None]


def _means(questions: Iterable[_Question]) -> list[float]:
    scored = (_scores(question.inferences.values()) for question in questions)
    return [sum(scores) / len(scores) for scores in scored if scores]


def _percent(scores: Sequence[float]) -> float | None:
    return round(100 * sum(scores) / len(scores), 2) if scores else None


def _average_tokens(questions: Sequence[_Question]) -> dict[str, float]:
    """Return the averages over scored questions, with or without usage; none if one has several inferences."""
    scored = [question for question in questions if _scores(question.inferences.values())]
    several = any(len(question.inferences) > 1 for question in questions)
    if not scored or several or any(detail.get("several") for one in questions for detail in one.details):
        return {}
    known = [usage for question in scored for detail in question.details if (usage := detail.get("usage"))]
    sums = {name: sum(float(usage.get(field) or 0) for usage in known) for name, field in _TOKEN_FIELDS.items()}
    return {name: total / len(scored) for name, total in sums.items()}


def inference_record(question_id: Any, question: str, inferences: Sequence[Inference]) -> dict[str, Any]:
    """Return one question in the form of the multiple-inference document."""
    scores = [_whole(inference.score) for inference in inferences]
    known = [score for score in scores if score is not None]
    return {
        "question_id": question_id,
        "question": question,
        "answer": {f"inference_{index}": inference.answer for index, inference in enumerate(inferences)},
        "multiple_raw_answers": [inference.raw for inference in inferences],
        "correct": sum(known) / len(known) if known else None,
        "inference_scores": scores,
        "num_inferences": len(known),
    }


def _whole(value: float | None) -> float | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _inference(trial: StoredTrial) -> Inference:
    sample, _, prediction, score = trial
    raw = None if prediction.detail.get("null") else prediction.text
    failed = prediction.failure is not None
    return Inference(raw, _letter(sample, score), worth_of(score), failed) if score else Inference(raw, failed=failed)


def _letter(sample: Sample, score: Score) -> str | None:
    """Return the answer as that system's rules read it: of a choice the letter of the option, in the data's order."""
    if score.answer is None or sample.options.count(score.answer) != 1 or score.rule == "annotated":
        return score.answer
    return derive_marks(len(sample.options))[sample.options.index(score.answer)]


def _question(request: Request) -> str:
    """The question as the model saw it: the last message a user sent."""
    return next((turn.text for turn in reversed(write_markers(request.messages)) if turn.role == "user"), "")


def write_flageval(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write FlagEvalMM's `<task>.json`, one record a question with all its inferences, and `<task>_result.json`.

    Of a run that is read in its profile the records count as it counts: gaps are left out.
    """
    check_details(details, {}, "flageval")
    dense = own_reading(run.reader).profile == "flageval"
    files: dict[str, Any] = {}
    for task in run.tasks:
        files[f"{file_stem(task.name)}.json"] = flageval_records(first_scored(run, task), dense=dense)
        files[f"{file_stem(task.name)}_result.json"] = flageval_result(first_scored(run, task), task.group_by)
    return write_files(output, files)


WHOLE = "prompt-mean"


def perplexity_fields(request: Request, prediction: Prediction) -> dict[str, Any]:
    """Return `ppl_list` and the label of its smallest entry; nothing where nothing was scored.

    As there, the figure is the mean over all tokens of prompt and answer, not its exponential, and the first of equals
    wins. An impossible label has none. Where only the answers were scored, the figure is that of the run's reduction.
    """
    if prediction.loglikelihoods is None:
        return {}
    whole = (WHOLE,) if prediction.detail.get("prompt_logprobs") else ()
    values = option_values(request, prediction, *whole)
    labels = request.marks if len(request.marks) == len(values) else request.shown or request.choices
    best = choose(values).likeliest
    figures = [-value if value > IMPOSSIBLE else None for value in values]
    listed = [{"label": label, "ppl": figure} for label, figure in zip(labels, figures, strict=True)]
    return {"prediction": labels[best[0]] if best else None, "ppl_list": listed}


def write_aisbench(run: ExportedRun, output: Path, details: Details) -> list[Path]:
    """Write AISBench's `<task>.jsonl` with the successes and `<task>_failed.jsonl` with the rest."""
    check_details(details, {}, "aisbench")
    files: dict[str, Any] = {}
    for task in run.tasks:
        done, failed = [], []
        for number, (sample, request, prediction, _) in enumerate(first_scored(run, task)):
            turns = write_markers(request.messages)
            prompt = [{"role": turn.role, "content": turn.text, "images": len(turn.images)} for turn in turns]
            record: dict[str, Any] = {"data_abbr": task.name, "id": number}
            if prediction.failure is not None:
                failed.append(record | {"input": prompt, "error_info": prediction.failure.message})
                continue
            name = uuid.uuid5(uuid.NAMESPACE_OID, "/".join(map(str, msgspec.structs.astuple(prediction.key)))).hex
            record |= {"success": True, "uuid": name, "origin_prompt": prompt, "prediction": prediction.text}
            record |= perplexity_fields(request, prediction)
            done.append(record | ({"gold": _gold(sample, request)} if sample.answers else {}))
        files[f"{file_stem(task.name)}.jsonl"] = done
        if failed:
            files[f"{file_stem(task.name)}_failed.jsonl"] = failed
    return write_files(output, files)


def _gold(sample: Sample, request: Request) -> str:
    marks = [mark for mark, text in zip(request.marks, request.shown, strict=False) if text in sample.answers]
    return marks[0] if marks else sample.answers[0]
