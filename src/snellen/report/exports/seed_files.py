"""A stored run to the result files of other systems, so that their tools and their users can go on with them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from ...core.counting import worth_of
from ...core.errors import UsageError
from ...core.message_parts import write_markers
from ...core.tasks import Task
from ...core.types import BASE_VARIANT, Form, Prediction, Request, Sample, Score
from ...core.variants import parse_variant
from ...data.visual_tokens import ORDER
from ...extract.option_set import derive_marks
from ...scoring.protocols.readings import own_reading
from ...scoring.scorers.option_likelihood import IMPOSSIBLE, choose, option_values
from ...stats.intervals import wilson
from ...store.reader import RunReader, Trial
from ..files import write_atomically
from .trial_files import FORMATS, write_export

MAIN = "accuracy"


class Asked(NamedTuple):
    """One question of one variant: what was asked, what came back and how it scored."""

    trial: Trial
    scores: dict[str, Score]

    @property
    def correct(self) -> bool:
        """Tell whether the headline metric is 1."""
        main = self.scores.get(MAIN)
        return main is not None and main.value == 1.0

    @property
    def status(self) -> str:
        """Return success, null (no answer could be read), skipped (never sent) or error."""
        failure = self.trial.prediction.failure
        if failure is not None:
            return "skipped" if failure.attempts == 0 else "error"
        main = self.scores.get(MAIN)
        return "success" if main is not None and main.value is not None else "null"


UNKNOWN = "unknown"
CASE = "needle-case"
"""The scorer that minds upper and lower case."""
Rule = Callable[[Asked], bool]
"""When an answer counts as correct."""


def read_asked(reader: RunReader, task: str) -> dict[str, list[Asked]]:
    """Return the trials of a task by variant, in the order of the data; `pages=NAME` appears under its name."""
    scores: dict[Any, dict[str, Score]] = {}
    for score in reader.scores(task):
        scores.setdefault(score.key, {})[score.metric] = score
    found: dict[str, list[Asked]] = {}
    for trial in reader.trials(task):
        key = trial.prediction.key
        name = parse_variant(key.variant).get("pages", key.variant)
        found.setdefault(name, []).append(Asked(trial, scores.get(key, {})))
    return found


def choice_file(variant: str, model: str, asked: list[Asked], run_id: str) -> dict[str, Any]:
    """Return `{variant}_mc_eval.json`."""
    null = sum(each.status == "null" for each in asked)
    total = len(asked)
    return {
        "subdirectory": variant,
        "model": model.partition("/")[2] or model,
        **_totals(asked),
        "compensated_accuracy": _in_percent(sum(each.correct for each in asked) + 0.25 * null, total),
        "null_rate": _in_percent(null, total),
        **_lost(asked),
        "context_length_analysis": {
            "by_context_length": _by(asked, lambda sample: sample.tags.get("context_length"), ORDER),
            "tokenizer": next((each.trial.sample.meta.get("tokenizer") for each in asked), None),
        },
        "detailed_analysis": {
            "by_difficulty": _by(asked, lambda sample: sample.tags.get("difficulty")),
            "by_length": _by(asked, lambda sample: sample.tags.get("length")),
            "by_difficulty_and_length": _by_both(asked),
            "by_domain": _by(asked, lambda sample: sample.tags.get("domain")),
            "by_pages": _by(asked, lambda sample: sample.tags.get("pages")),
        },
        "compression_ratio": compression(asked),
        "config_hash": run_id,
        "results": [_choice_result(each) for each in asked],
    }


def needle_file(
    model: str, config: str, asked: list[Asked], run_id: str, *, scorers: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the needle scripts' one result file; `correct` follows their rule, contains, beside ours."""
    by_instance: dict[str, list[Asked]] = {}
    for each in asked:
        by_instance.setdefault(str(each.trial.sample.group), []).append(each)
    strict = sum(each.correct for each in asked)
    return {
        "model": model.partition("/")[2] or model,
        "config": config,
        **_totals(asked, _contained),
        **_lost(asked),
        "word_boundary_accuracy": _in_percent(strict, len(asked)),
        "instance_accuracies": {name: _tally(group, _contained) for name, group in by_instance.items()},
        "by_needle_depth": _by(asked, lambda sample: sample.tags.get("needle_depth"), correct=_contained),
        "by_context_length": _by(asked, lambda sample: sample.tags.get("context_length"), ORDER, correct=_contained),
        "by_kind": _by(asked, lambda sample: sample.tags.get("kind"), correct=_contained),
        "compression_ratio": compression(asked),
        "config_hash": f"{run_id}-case" if CASE in scorers else run_id,  # one run, read otherwise
        "results": [_needle_result(each) for each in asked],
    }


def compression(asked: list[Asked]) -> dict[str, float]:
    """Return text tokens per visual token over all documents, by model family: what the pages save or cost."""
    documents = {each.trial.sample.group: each.trial for each in asked}
    text = sum(int(trial.sample.tags.get("context_tokens") or 0) for trial in documents.values() if _estimated(trial))
    visual: dict[str, int] = {}
    for trial in documents.values():
        for family, tokens in _estimated(trial).items():
            visual[family] = visual.get(family, 0) + tokens
    return {family: round(text / tokens, 4) for family, tokens in visual.items() if tokens and text}


def _lost(asked: list[Asked]) -> dict[str, Any]:
    skipped = [each for each in asked if each.status == "skipped"]
    reasons = [{"instance_id": each.trial.sample.group, "reason": _reason(each)} for each in skipped]
    return {"errors": sum(each.status == "error" for each in asked), "skipped": reasons}


def _by_both(asked: list[Asked]) -> dict[str, Any]:
    """Return difficulty -> length -> counts, nested as the scripts have it."""
    groups: dict[str, list[Asked]] = {}
    for each in asked:
        groups.setdefault(str(each.trial.sample.tags.get("difficulty")), []).append(each)
    return {name: _by(group, lambda sample: sample.tags.get("length")) for name, group in sorted(groups.items())}


def _contained(each: Asked) -> bool:
    return _rungs(each).get("contains") == 1.0


def _rungs(each: Asked) -> dict[str, float]:
    score = each.scores.get(MAIN)
    rungs: dict[str, float] = score.detail.get("ladder", {}) if score is not None else {}
    return rungs


def _right(each: Asked) -> bool:
    return each.correct


def _totals(asked: list[Asked], correct: Rule = _right) -> dict[str, Any]:
    tally = _tally(asked, correct)
    interval = wilson(tally["correct"] / tally["total"], tally["total"]) if asked else None
    shown = [round(100 * bound, 2) for bound in interval] if interval else None
    counts = {"total_questions": tally["total"], "correct": tally["correct"], "accuracy": tally["accuracy"]}
    return counts | {"ci95": shown}


def _tally(asked: Iterable[Asked], correct: Rule = _right) -> dict[str, Any]:
    hits = [correct(each) for each in asked]
    return {"total": len(hits), "correct": sum(hits), "accuracy": _in_percent(sum(hits), len(hits))}


def _in_percent(part: float, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


def _by(
    asked: list[Asked], key: Callable[[Sample], Any], order: tuple[str, ...] = (), *, correct: Rule = _right
) -> dict[str, Any]:
    """Group by the values seen, so that nothing drops out of a table because its value was not expected.

    Data that does not have the field at all has no table of it.
    """
    values = [key(each.trial.sample) for each in asked]
    groups: dict[str, list[Asked]] = {}
    for each, value in zip(asked, values, strict=True):
        groups.setdefault(UNKNOWN if value is None else str(value), []).append(each)
    if all(value is None for value in values):
        return {}
    names = sorted(groups, key=lambda name: (order.index(name) if name in order else len(order), name))
    return {name: _tally(groups[name], correct) for name in names}


def _reason(each: Asked) -> str:
    failure = each.trial.prediction.failure
    return failure.message if failure is not None else ""


def _common(each: Asked) -> dict[str, Any]:
    request, prediction = each.trial.request, each.trial.prediction
    timing, main = prediction.timing, each.scores.get(MAIN)
    return {
        "instance_id": each.trial.sample.group,
        "question": each.trial.sample.question,
        "prompt": write_markers(request.messages)[-1].text,
        "model_output": prediction.text,
        "num_images": sum(len(turn.images) for turn in request.messages),
        "status": each.status,
        "error": _reason(each) or None,
        "parse_rule": main.rule if main else None,
        "finish_reason": prediction.finish,
        "usage": prediction.usage,
        "latency_s": round(timing.done - timing.sent, 4) if timing else None,
        "image_tokens_est": _estimated(each.trial),
    }


def _estimated(trial: Trial) -> Mapping[str, int]:
    name = parse_variant(trial.prediction.key.variant).get("pages", "base")
    known: Mapping[str, Mapping[str, int]] = trial.sample.meta.get("visual_tokens", {})
    return known.get(name, {})


def _choice_result(each: Asked) -> dict[str, Any]:
    sample, request = each.trial.sample, each.trial.request
    main = each.scores.get(MAIN)
    letters = dict(zip(request.shown, request.marks, strict=True))
    right = next((letters[answer] for answer in sample.answers if answer in letters), sample.meta.get("answer"))
    return _common(each) | {
        "choices": dict(zip(request.marks, request.shown, strict=True)),
        "ground_truth": right,
        "extracted_answer": letters.get(main.answer) if main and main.answer is not None else None,
        "correct": each.correct,
    }


def _needle_result(each: Asked) -> dict[str, Any]:
    sample = each.trial.sample
    only_contained = _contained(each) and not each.correct  # the rule of `correct` in this file, not ours
    return (
        _common(each)
        | ({"parse_rule": "contains"} if only_contained else {})
        | {
            "question_id": sample.id,
            "question_idx": int(sample.id.rpartition("#")[2]) if "#" in sample.id else None,
            "ground_truth": ", ".join(sample.answers),
            "correct": _contained(each),
            "scores": {metric: score.value for metric, score in each.scores.items()} | _rungs(each),
            "tags": sample.tags,
        }
    )


StoredTrial = tuple[Sample, Request, Prediction, Score | None]
"""A trial as stored, with its score of the metric to export (None: failed or not scored)."""
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


Files = dict[str, Any]
"""File name -> a JSON value, or what yields the records of a list, or the lines of a `.jsonl`; read once, in turn."""
FORMULATIONS = {
    Form.CHOICE: "SingleChoice",
    Form.YESNO: "SingleChoice",
    Form.OCR: "OCROpenEnded",
    Form.KIE: "KIEOpenEnded",
}


def export_run(folder: Path, form: str, output: Path) -> list[Path]:
    """Write a run in one of EXPORTS or FORMATS below `output` and return the files."""
    output.mkdir(parents=True, exist_ok=True)
    if form in FORMATS:
        return [write_export(folder, form, output / f"trials.{form}")]
    with RunReader(folder) as reader:
        return [_write(output / name, value) for name, value in EXPORTS[form](reader).items()]


def _write(path: Path, value: Any) -> Path:
    def write(file: BinaryIO) -> None:
        if path.suffix == ".jsonl":
            file.writelines(msgspec.json.encode(line) + b"\n" for line in value)
        elif isinstance(value, Iterator):
            file.writelines(listed(value))
        else:
            file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    write_atomically(path, write)
    return path


def listed(records: Iterator[Any]) -> Iterator[bytes]:
    """Yield the parts of a JSON list, as it would be indented whole; no more than one record is held."""
    before = b"[\n  "
    for record in records:
        # a line break in a text is escaped: each one here is of the layout
        yield before + msgspec.json.format(msgspec.json.encode(record), indent=2).replace(b"\n", b"\n  ")
        before = b",\n  "
    yield b"[]\n" if before.startswith(b"[") else b"\n]\n"


def _trials(reader: RunReader, task: Task) -> Iterator[tuple[Sample, Request, Prediction, Score | None]]:
    """Yield every trial with its first score."""
    for (sample, request, prediction, _), scores in reader.with_scores(task.name):
        yield sample, request, prediction, scores[0] if scores else None


def flageval(reader: RunReader) -> Files:
    """FlagEvalMM: `<task>.json`, one record a question with all its inferences, and `<task>_result.json`.

    Of a run that is read in its profile the records count as it counts: gaps are left out.
    """
    dense = own_reading(reader).profile == "flageval"
    files: Files = {}
    for task in reader.header().tasks:
        files[f"{_stem(task.name)}.json"] = flageval_records(_trials(reader, task), dense=dense)
        files[f"{_stem(task.name)}_result.json"] = flageval_result(_trials(reader, task), task.group_by)
    return files


def reform(reader: RunReader) -> Files:
    """ReForm-Eval: samples with their prediction; the answer of a choice is the index of the option as shown."""
    header = reader.header()
    model = _stem(header.model.rpartition("/")[2])
    files: Files = {}
    for task in header.tasks:
        name = f"{_stem(task.name)}_{FORMULATIONS.get(task.form, 'Generation')}_{_method(task)}_{model}.json"
        files[name] = starmap(partial(_reform_record, task), _trials(reader, task))
    return files


def _reform_record(
    task: Task, sample: Sample, request: Request, prediction: Prediction, _: Score | None
) -> dict[str, Any]:
    trial = {"repeat": prediction.key.repeat, "variant": prediction.key.variant}
    record: dict[str, Any] = {"sample_id": sample.id, "question": sample.question, **trial}
    if task.form in (Form.CHOICE, Form.YESNO) and request.shown:
        right = [place for place, text in enumerate(request.shown) if text in sample.answers]
        record |= {"answer_options": list(request.shown), "answer": str(right[0]) if right else None}
    elif task.form is Form.CAPTION:
        record |= {"references": list(sample.answers)}
    else:
        record |= {"answer": sample.answers[0] if len(sample.answers) == 1 else list(sample.answers)}
    if "round" in sample.tags:
        record["round_id"] = sample.tags["round"]
    return record | {"prediction": _reply(prediction)}


def _method(task: Task) -> str:
    return "likelihood" if task.infer == "likelihood" else "generation"


def _reply(prediction: Prediction) -> str | int | None:
    """A failure stays null: it never becomes a text that could be scored."""
    if prediction.loglikelihoods is not None:
        return max(range(len(prediction.loglikelihoods)), key=prediction.loglikelihoods.__getitem__)
    return prediction.text


def aisbench(reader: RunReader) -> Files:
    """AISBench: `<task>.jsonl` with the successes and `<task>_failed.jsonl` with the rest."""
    files: Files = {}
    for task in reader.header().tasks:
        done, failed = [], []
        for number, (sample, request, prediction, _) in enumerate(_trials(reader, task)):
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
        files[f"{_stem(task.name)}.jsonl"] = done
        if failed:
            files[f"{_stem(task.name)}_failed.jsonl"] = failed
    return files


def _gold(sample: Sample, request: Request) -> str:
    marks = [mark for mark, text in zip(request.marks, request.shown, strict=False) if text in sample.answers]
    return marks[0] if marks else sample.answers[0]


def choices(reader: RunReader) -> Files:
    """The page-image scripts: `<variant>_mc_eval.json`."""
    header = reader.header()
    files: Files = {}
    for task in header.tasks:
        for variant, asked in read_asked(reader, task.name).items():
            name = f"{_stem(variant)}_mc_eval.json"
            files[name] = choice_file(variant, header.model, asked, header.id)
    return files


def needles(reader: RunReader) -> Files:
    """The page-image scripts: `niah_eval.json`."""
    header = reader.header()
    tasks = (read_asked(reader, task.name) for task in header.tasks)
    asked = [trial for variants in tasks for trials in variants.values() for trial in trials]
    scorers = [name for task in header.tasks for name in task.scorers]
    found = needle_file(header.model, "", asked, header.id, scorers=scorers)
    return {"niah_eval.json": found}


def _stem(name: str) -> str:
    """Return a name that is safe as a file name."""
    kept = "".join(char if char.isalnum() or char in "._-" else "_" for char in name).strip(".")
    if not kept:
        raise UsageError(f"{name!r} gives no file name")
    return kept[:120]


EXPORTS: dict[str, Callable[[RunReader], Files]] = {
    "flageval": flageval,
    "reform": reform,
    "mc": choices,
    "niah": needles,
    "aisbench": aisbench,
}
