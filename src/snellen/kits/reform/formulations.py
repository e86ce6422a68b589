"""The files of predictions that ReForm-Eval, FlagEvalMM and CURE write, to rows of a run: what a record means, as data.

Which scorers read the rows is the formulation's and the profile's business; nothing is scored here.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from ...core.counting import CONVENTIONS
from ...core.errors import DataError, UsageError, did_you_mean, not_among
from ...core.tasks import Figure
from ...core.types import BASE_VARIANT, Form
from ...data.files.records import Record, Source, kind_of, read_records
from ...extract.extraction import AMBIGUOUS
from ...extract.profiles import profile_named
from ...prompt.place import STYLES, make_marks
from ...scoring.aggregates.caption_scores import TOKENISERS
from ...scoring.aggregates.consistency import chains_from_items
from ...scoring.protocols.readings import OWN_PROFILE, Reading
from ...scoring.scorers.option_choice import MARKS
from ..bridges.damage import Damage
from ..bridges.foreign_rows import ForeignFile, ForeignRow, lettered, token_pair
from .figures import ROUND_AXIS
from .flageval_rules import ANNOTATION, NULL, is_rejected, judge_inference

AUTO = "auto"
OPTION_MARKS = (AUTO, *STYLES)
LETTERS, NUMBERS = "upper", "number"
INFER_METHODS = ("generation", "likelihood")
PROMPT_FIELDS = ("question_with_option", "text", "prompt", "question")
"""Where a record may hold the words that were asked."""
MOST_OPTIONS = 702
"""As many as there are marks of one or two letters."""
MOST_INFERENCES = 100_000
COMPATIBLE = {"reform": ("SingleChoice", "Generation", "OCROpenEnded", "KIEOpenEnded")}
"""What the profile of another system can score; those not named here only read letters."""
_BY_LETTER = ("SingleChoice", "MultiInference")
_OPTION_TYPES = frozenset({str, int, float, bool})
_LARGEST_ROUND = 1e12
_MOST_NAMED = 3
_WRAPPED = re.compile(r"[(\[]\s*(\d{1,2})\s*[)\]]|^\W*(\d{1,2})\W*$")
_INDEX = re.compile(r"(?:.*_)?(\d+)")


class FormulationOptions(Struct, frozen=True):
    """What changes the numbers of one file of predictions."""

    profile: str = OWN_PROFILE
    infer_method: str = "generation"
    eval_stability: bool = False
    multi_round_eval: bool = False
    annotations: Source | None = None
    detailed_keys: tuple[str, ...] = ()
    convention: str = CONVENTIONS[0]
    tokenizer: str = "whitespace"
    option_mark: str = AUTO
    """How the options were marked: upper, lower, number, or auto (what the record or the reply shows)."""


ReadRows = Callable[[Iterable[Record], FormulationOptions, Damage], Iterator[ForeignRow]]


class Formulation(NamedTuple):
    """How the records of one kind of file are read and scored."""

    rows: ReadRows
    form: Form
    scorers: Mapping[str, str]
    """Profile -> its scorer; the one of our own profile serves those not named."""
    aggregates: tuple[str, ...] = ()
    is_one_score: bool = True
    """Whether each record has one score, so that rounds of a dialogue can be compared."""


def open_formulation(
    predictions: Source, formulation: str, damage: Damage, options: Mapping[str, Any]
) -> tuple[ForeignFile, Reading]:
    """Return the rows of a file of this formulation with the task that scores them, and how the run is read.

    Raises UsageError for options that do not fit, and, while the rows are read, DataError naming the record.
    """
    method = options.get("infer_method") or _method_of(predictions, formulation)
    chosen = check_options(formulation, {**options, "infer_method": method})
    kind = FORMULATIONS[formulation]
    path = Path(predictions) if isinstance(predictions, str | Path) else Path("predictions")
    rows = kind.rows(_held(read_records(predictions)), chosen, damage)
    file = ForeignFile("rows", path, rows, path.stem, path.stem, scoring=_scoring(formulation, kind, chosen))
    profile = chosen.profile if chosen.profile != OWN_PROFILE else OWN_PROFILE
    return file, Reading(profile=profile, convention=chosen.convention)


def _method_of(predictions: Source, formulation: str) -> str:
    """Return what the first prediction is of: an index of likelihoods, a text of a generation, as in ReForm-Eval.

    A file that goes on otherwise is refused at the record that does.
    """
    if formulation != "SingleChoice" or not isinstance(predictions, str | Path | Sequence):
        return "generation"
    first = next(iter(read_records(predictions)), None)
    found = None if first is None else first.fields.get("prediction")
    return "likelihood" if isinstance(found, int) and not isinstance(found, bool) else "generation"


def _scoring(formulation: str, kind: Formulation, chosen: FormulationOptions) -> dict[str, Any]:
    """Return the fields of the task: scorers, aggregates and what they are told."""
    by_index = formulation == "SingleChoice" and chosen.infer_method == "likelihood"
    scorer = "option_index" if by_index else kind.scorers.get(chosen.profile, kind.scorers[OWN_PROFILE])
    told = ("infer_method", "eval_stability", "multi_round_eval", "tokenizer")
    options = {name: getattr(chosen, name) for name in told if getattr(chosen, name)}
    metric = {"ocr": "ocr_accuracy", "kie": "kie_accuracy"}.get(scorer.removesuffix("_reform"), "")
    suffix = "_reform" if scorer.endswith("_reform") else ""
    figures = (Figure("accuracy", metric=f"{metric}{suffix}"),) if metric else ()
    return {
        "form": kind.form,
        "scorers": (scorer,),
        "aggregates": kind.aggregates,
        "figures": figures,
        "group_by": chosen.detailed_keys,
        "score_options": {"formulation": formulation, **options},
    }


def check_options(formulation: str, options: Mapping[str, Any]) -> FormulationOptions:
    """Return the options of a formulation; what does not exist or does not fit is refused by name."""
    if formulation not in FORMULATIONS:
        raise UsageError(f"unknown formulation {not_among(formulation, FORMULATIONS)}")
    fields = FormulationOptions.__struct_fields__
    unknown = next((name for name in sorted(options) if name not in fields), None)
    if unknown is not None:
        raise UsageError(f"unknown option {unknown!r}{did_you_mean(unknown, fields)}")
    chosen = FormulationOptions(**options)
    known = {"infer method": (chosen.infer_method, INFER_METHODS), "option mark": (chosen.option_mark, OPTION_MARKS)}
    known |= {"convention": (chosen.convention, CONVENTIONS), "tokeniser": (chosen.tokenizer, TOKENISERS)}
    for what, (value, values) in known.items():
        if value not in values:
            raise UsageError(f"unknown {what} {not_among(value, values)}")
    _check_fit(formulation, chosen)
    return chosen


def _check_fit(formulation: str, chosen: FormulationOptions) -> None:
    fitting = COMPATIBLE.get(chosen.profile, _BY_LETTER)
    if chosen.profile != OWN_PROFILE and formulation not in fitting:
        name = profile_named(chosen.profile).name
        raise UsageError(f"profile {name!r} does not score {formulation}; it scores {', '.join(fitting)}")
    if chosen.profile != OWN_PROFILE:
        profile_named(chosen.profile)
    if chosen.eval_stability and formulation != "SingleChoice":
        needed = f"--eval-stability needs SingleChoice, not {formulation}"
        raise UsageError(f"instability is the entropy of chosen options: {needed}")
    if chosen.multi_round_eval and not FORMULATIONS[formulation].is_one_score:
        names = ", ".join(name for name, kind in FORMULATIONS.items() if kind.is_one_score)
        raise UsageError(f"--multi-round-eval needs one score a record: {names}, not {formulation}")
    if formulation == "MultiInference" and chosen.annotations is None:
        raise UsageError("MultiInference needs --annotations FILE: the questions with their right answers")


def _held(records: Iterator[Record]) -> Iterator[Record]:
    """Pass records on; refuse a file that holds none."""
    empty = True
    for record in records:
        empty = False
        yield record
    if empty:
        raise DataError("predictions: holds no records, so there is nothing to score")


class Numbering:
    """Names samples by their ids, and numbers the records of each as its repeats."""

    def __init__(self) -> None:
        self._codes: dict[tuple[type, Hashable], int] = {}
        self._names: dict[str, int] = {}
        self._first_record = array("q")
        self._sizes = array("q")
        self._origin = "predictions"

    def next(self, record: Record) -> tuple[str, int]:
        """Return the name of the record's sample (1 and "1" are two), and which repeat of it the record is."""
        identifier = record.identifier("sample_id")
        code = self._codes.setdefault((type(identifier), identifier), len(self._codes))
        if code == len(self._sizes):
            self._origin = record.origin
            self._first_record.append(record.number)
            self._sizes.append(0)
        repeat = self._sizes[code]
        self._sizes[code] = repeat + 1
        name = str(identifier)
        return (name if self._names.setdefault(name, code) == code else f"{name} ({type(identifier).__name__})"), repeat

    def check(self) -> None:
        """Refuse ragged repeats: a mean would weigh samples by accident."""
        usual = Counter(self._sizes).most_common(1)[0][0]
        samples = zip(self._codes, self._first_record, self._sizes, strict=True)
        odd = [sample for sample in samples if sample[2] != usual]
        if odd:
            texts = (f"sample {name!r} (first at record {first}) has {size}" for (_, name), first, size in odd)
            more = f" and {len(odd) - _MOST_NAMED} more differ," if len(odd) > _MOST_NAMED else ","
            named = ", ".join(islice(texts, _MOST_NAMED))
            problem = f"ragged repeats (a record lost or doubled?): {named}{more} but the others {usual}"
            raise DataError(f"{self._origin}: {problem}")


def _variant(record: Record, chosen: FormulationOptions) -> str:
    """Return the variant that says in which round a record stands, where rounds are compared."""
    return f"{ROUND_AXIS}={record.number_of('round_id', _LARGEST_ROUND)!r}" if chosen.multi_round_eval else BASE_VARIANT


def _choice_rows(records: Iterable[Record], chosen: FormulationOptions, damage: Damage) -> Iterator[ForeignRow]:
    numbering = Numbering()
    lenient = chosen.profile == "reform"
    for record in records:
        name, repeat = numbering.next(record)
        shown = _shown(record, required=not lenient)
        right = answer_index(record, shown, lenient=lenient)
        reply = _chosen(record, shown, chosen)
        style = mark_style(record, reply, shown) if chosen.option_mark == AUTO else chosen.option_mark
        style = LETTERS if lenient or chosen.infer_method == "likelihood" else style
        if style in (NUMBERS, None) and chosen.option_mark == AUTO:
            damage.add("numbers" if style else "two_marks", name)
        yield ForeignRow(
            name,
            Form.CHOICE,
            reply,
            repeat=repeat,
            question=_asked(record),
            options=dict(zip(make_marks(style or LETTERS, len(shown)), shown, strict=True)),
            answers=(shown[right],) if 0 <= right < len(shown) else (),
            variant=_variant(record, chosen),
            right=right,
            detail={} if style else {MARKS: AMBIGUOUS},
        )
    numbering.check()


def _asked(record: Record) -> str:
    return next((text for field in reversed(PROMPT_FIELDS) if isinstance(text := record.fields.get(field), str)), "")


def _chosen(record: Record, shown: Sequence[str], chosen: FormulationOptions) -> str:
    """Return the reply; of a likelihood file, the index of the option as text."""
    if chosen.infer_method == "generation":
        if isinstance(record.get("prediction"), int):
            record.fail("'prediction' must be text, not a number: of indices say --infer-method likelihood")
        return record.text("prediction")
    index = record.whole("prediction")
    if chosen.profile != "reform" and index not in range(len(shown)):
        record.fail(f"'prediction' {index} is no option index: there are {len(shown)} options, counted from 0")
    return str(index)


def _shown(record: Record, *, required: bool) -> tuple[str, ...]:
    """Return `answer_options` as texts; they may be numbers, and only profile `reform` does without."""
    options = record.fields.get("answer_options")
    if options is None:
        options = []
    if not isinstance(options, list) or not _OPTION_TYPES.issuperset(map(type, options)):
        record.fail(f"'answer_options' must be a list of texts, not {kind_of(options)}")
    if required and not 2 <= len(options) <= MOST_OPTIONS:
        record.fail(f"needs 'answer_options' with 2 to {MOST_OPTIONS} options (profile 'reform' does without)")
    return tuple(map(str, options))


def answer_index(record: Record, options: Sequence[str], *, lenient: bool) -> int:
    """Return the index of the right option: 'answer' is an index, an index as text, or the option's own text.

    `lenient` takes indices as ReForm-Eval does: fractions are cut off, and nothing checks the range.
    """
    answer = record.get("answer")
    index = _whole(answer, lenient=lenient)
    if index is not None and (lenient or index in range(len(options))):
        return index
    if not isinstance(answer, str) or options.count(answer) != 1:
        indices = f" from 0 to {len(options) - 1}" if options else ""
        record.fail(f"'answer' must be an option index{indices} or the text of one option, not {answer!r:.60}")
    return options.index(answer)


def _whole(value: Any, *, lenient: bool) -> int | None:
    if isinstance(value, bool | float) and not lenient:
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def mark_style(record: Record, reply: str, shown: Sequence[str]) -> str | None:
    """Return how the options were marked; None where a number may be a label or an option's own text.

    A reply without a number in brackets tells nothing, and letters are read as ever. With one, the prompt decides if
    the record holds it; else the number is a label, unless an option of that very text stands at another place.
    """
    numbers = {first or second for first, second in _WRAPPED.findall(reply)}
    if not numbers:
        return LETTERS
    return _listed_style(record, shown) or _by_number(numbers, reply, shown)


def _by_number(numbers: set[str], reply: str, shown: Sequence[str]) -> str | None:
    """Return what the only number of a reply makes of the marks; several are a working, and one too high is none."""
    number = numbers.pop() if len(numbers) == 1 else "0"
    if not 1 <= int(number) <= len(shown):
        return LETTERS
    places = [place for place, text in enumerate(shown, 1) if text.strip() == number]
    if not places:
        return NUMBERS
    in_brackets = reply.strip().startswith(("(", "["))
    return None if in_brackets and places != [int(number)] else LETTERS


def _listed_style(record: Record, shown: Sequence[str]) -> str | None:
    """Return the style in which a prompt of the record lists its options."""
    prompt = next((text for field in PROMPT_FIELDS if isinstance(text := record.fields.get(field), str)), "")
    for style in STYLES:
        listed = zip(make_marks(style, len(shown)), shown, strict=True)
        if prompt and all(f"({mark}) {text}" in prompt for mark, text in listed):
            return style
    return None


def _text_rows(records: Iterable[Record], chosen: FormulationOptions, damage: Damage) -> Iterator[ForeignRow]:
    """Yield the rows of a file of texts that were read: OCROpenEnded, KIEOpenEnded."""
    numbering = Numbering()
    for record in records:
        name, repeat = numbering.next(record)
        prediction, answer = record.text_or_texts("prediction"), record.text_or_texts("answer")
        answers = (answer,) if isinstance(answer, str) else tuple(answer)
        if chosen.profile != "reform" and not any(text.strip() for text in answers):
            record.fail("'answer' is empty, so nothing can match it")
        reply = prediction if isinstance(prediction, str) else " ".join(prediction)
        asked: dict[str, Any] = {"question": _asked(record), "answers": answers, "variant": _variant(record, chosen)}
        yield ForeignRow(name, Form.OCR, reply, repeat=repeat, **asked)
    numbering.check()


def _caption_rows(records: Iterable[Record], chosen: FormulationOptions, damage: Damage) -> Iterator[ForeignRow]:
    """Yield the rows of a Generation file: every record is a caption of its own, those of one `sample_id` a group."""
    for record in records:
        name = str(record.identifier("sample_id")) if "sample_id" in record.fields else None
        reply, references = record.text("prediction"), tuple(record.texts("references"))
        identifier = f"record-{record.number}"
        yield ForeignRow(identifier, Form.CAPTION, reply, question=_asked(record), answers=references, group=name)


def _chain_rows(records: Iterable[Record], chosen: FormulationOptions, damage: Damage) -> Iterator[ForeignRow]:
    """Yield the questions of every item of a Consistency file: the inference, and each step of its chain."""
    for record in records:
        truth, prediction = _item(record)
        if not prediction:
            damage.add("silent", f"record {record.number}")
        found = prediction or {}
        said = [*(found.get("chain") or ()), *[None] * len(truth["chain"])]
        asked = [("inference", truth["inference"], found.get("inference"))]
        asked += [("step", gold, said[place]) for place, gold in enumerate(truth["chain"])]
        for step, (role, gold, reply) in enumerate(asked):
            yield ForeignRow(
                f"{record.number}/{role}{f'-{step}' if step else ''}",
                Form.OPEN,
                "" if reply is None else str(reply),
                answers=(str(gold),),
                group=str(record.number),
                tags={"role": role, "step": step},
            )


def _item(record: Record) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    truth, prediction = record.get("ground_truth"), record.get("prediction")
    if not isinstance(truth, Mapping) or not isinstance(prediction, Mapping | None):
        record.fail("'ground_truth' and 'prediction' must be objects {\"inference\": …, \"chain\": […]}")
    try:
        chains_from_items([truth], [prediction])
    except DataError as error:
        record.fail(str(error).removeprefix("item 0: "))
    return truth, prediction


def _inference_rows(records: Iterable[Record], chosen: FormulationOptions, damage: Damage) -> Iterator[ForeignRow]:
    """Yield every inference of every question, by its own index: a missing one never moves another."""
    annotations = dict(_by_id(read_records(chosen.annotations or (), "annotations")))
    answered = set()
    for name, record in _by_id(records):
        if name not in annotations:
            record.fail(f"question_id {name!r} is not in the annotations")
        for row in _inferences(name, record, annotations[name], chosen):
            answered.add(name)
            yield row
    if not answered:
        raise DataError("the predictions hold no inference of any annotated question, so there is nothing to score")
    for name in annotations:
        if name not in answered:
            damage.add("missing", name)


def _inferences(name: str, record: Record, annotation: Record, chosen: FormulationOptions) -> Iterator[ForeignRow]:
    listed = annotation.fields.get("options")
    options = lettered(listed) if isinstance(listed, list) else {}
    answer = annotation.fields.get("answer")
    texts = [str(text) for text in (answer if isinstance(answer, list) else [answer])]
    question = record.fields.get("question", annotation.fields.get("question", ""))
    meta = {ANNOTATION: dict(annotation.fields), "question_id": record.fields["question_id"]}
    replies = _replies(record)
    for index, reply in sorted(replies.items()):
        failure = _failure(record, reply, chosen.profile)
        if failure is None:
            judge_inference(annotation, reply, chosen.profile)  # what cannot be judged is refused before it is stored
        yield ForeignRow(
            name,
            Form.CHOICE if options else Form.OPEN,
            None if failure else reply or "",
            failure,
            index,
            question=str(question),
            options=options,
            answers=tuple(options.get(text, text) for text in texts),
            tags={key: str(annotation.get(key)) for key in chosen.detailed_keys},
            meta=meta,
            tokens=token_pair(record.fields.get("usage"), ("prompt_tokens", "completion_tokens")),
            detail=({NULL: True} if reply is None and not failure else {}) | _usage(record, several=len(replies) > 1),
        )


def _usage(record: Record, *, several: bool) -> dict[str, Any]:
    """Return the tokens as the file counts them, and whether its question has several inferences."""
    fields = record.fields
    several = several or "multiple_raw_answers" in fields or not isinstance(fields["answer"], str | None)
    usage = fields.get("usage")
    return {"several": True} if several else {"usage": usage} if isinstance(usage, dict) else {}


def _failure(record: Record, reply: Any, profile: str) -> str | None:
    if is_rejected(reply):
        return str(reply)
    if reply is not None and not isinstance(reply, str):
        record.fail(f"an inference must be text, not {reply!r:.40}")
    return "the file holds no reply" if reply is None and profile != "flageval" else None


def _by_id(records: Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """Yield records with their `question_id` as text; a duplicate is an error."""
    first: dict[str, int] = {}
    for record in records:
        name = str(record.identifier("question_id"))
        if name in first:
            record.fail(f"question_id {name!r} is a duplicate of record {first[name]}")
        first[name] = record.number
        yield name, record


def _replies(record: Record) -> dict[int, Any]:
    """Read the three forms of file: `multiple_raw_answers` as object or list, `answer` as object, `answer` as text."""
    value = record.fields["multiple_raw_answers"] if "multiple_raw_answers" in record.fields else record.get("answer")
    if isinstance(value, list):
        return dict(enumerate(value))
    if not isinstance(value, dict):
        return {0: value}
    indices = {key: _INDEX.fullmatch(key) for key in value}
    wrong = [key for key, match in indices.items() if match is None]
    if wrong:
        record.fail(f"{wrong[0]!r} is no name of an inference: expected inference_0, inference_1, …")
    numbered = {int(match[1]): value[key] for key, match in indices.items() if match}
    if len(numbered) != len(value):
        record.fail("two inferences have the same index")
    if max(numbered, default=0) >= MOST_INFERENCES:
        record.fail(f"inference index {max(numbered)} is too large: at most {MOST_INFERENCES} inferences a question")
    return numbered


FORMULATIONS: Mapping[str, Formulation] = {
    "SingleChoice": Formulation(
        _choice_rows, Form.CHOICE, {OWN_PROFILE: "choice", "reform": "option_index"}, ("reform",)
    ),
    "Generation": Formulation(_caption_rows, Form.CAPTION, {OWN_PROFILE: "caption"}, ("caption",), is_one_score=False),
    "OCROpenEnded": Formulation(_text_rows, Form.OCR, {OWN_PROFILE: "ocr", "reform": "ocr_reform"}, ("reform",)),
    "KIEOpenEnded": Formulation(_text_rows, Form.KIE, {OWN_PROFILE: "kie", "reform": "kie_reform"}, ("reform",)),
    "MultiInference": Formulation(_inference_rows, Form.AUTO, {OWN_PROFILE: "annotated"}, is_one_score=False),
    "Consistency": Formulation(_chain_rows, Form.OPEN, {OWN_PROFILE: "chain_label"}, is_one_score=False),
}
"""Every formulation by the name that its own tools have for it."""
