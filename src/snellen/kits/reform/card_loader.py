"""A card with three sources (raw annotations, prepared hub file, own bundle) to Samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ...core.errors import ConfigError, DataError, MissingExtra, not_among
from ...core.folders import cache_folder
from ...core.protocols import LoadContext
from ...core.tasks import Task
from ...core.types import Image, Sample
from ...data.answer_kinds import normalise, read_written
from ...data.files.bundle import MANIFEST, read_bundle
from ...data.files.jsonstream import iterate_array, iterate_with_header, read_header
from ...data.images.embedded import ImageStore
from ...data.loaders.row_source import data_home
from ...data.loaders.table import capitalise
from .corpus import Corpus, Item, Tags, box_edits, fill, need
from .distractors import Distractor, first_unique, place, require
from .family_dialog import as_question, with_history
from .formulate import BOX_COLOURS, Recipe, build, guard, plain_end

LIST_KEYS = ("choice", "choices", "answer", "answers", "options")


def read_choice_list(path: Path) -> list[str]:
    """Return the texts of a list: flat, `{"choice": […]}`, `[{"choice": […]}]`, or an object a line."""
    data = path.read_bytes()
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError:
        value = [_decode_line(line, path, number) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    texts = list(_texts_of_list(value, path))
    if not texts:
        raise DataError(f"{path.name} holds no answers: a list of texts or numbers is expected")
    return texts


def written_alike(answer: str, pool: Iterable[str]) -> list[str]:
    """Return the pool with numbers written as the answer is ("three" among "two", not among "2"); other texts stay."""
    written = read_written(answer)
    if written is None:
        return list(pool)
    highest = written.highest
    numbers = ((text, read_written(text)) for text in pool)
    fitting = ((text, number) for text, number in numbers if number is None or _can_write(number.value, highest))
    return [text if number is None else written.write(number.value) for text, number in fitting]


def _can_write(value: int, highest: int | None) -> bool:
    return highest is None or value <= highest


def _texts_of_list(value: Any, path: Path) -> Iterator[str]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, list):
        for part in value:
            yield from _texts_of_list(part, path)
    elif isinstance(value, dict) and (keys := [key for key in LIST_KEYS if key in value]):
        yield from _texts_of_list(value[keys[0]], path)
    else:
        shape = f"an object with {', '.join(value) or 'nothing'}" if isinstance(value, dict) else type(value).__name__
        raise DataError(f"{path.name} is no list of answers: it holds {shape}; expected texts, or them under 'choice'")


def _decode_line(line: bytes, path: Path, number: int) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise DataError(f"{path.name} line {number} is not valid JSON: {error}") from None


HUB = "Aweminus/ReForm-Eval-Data"
MAX_PATH_LENGTH = 260
PICTURE_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff")


class Prepared(Struct, frozen=True, forbid_unknown_fields=True):
    """How a prepared file is laid out; the card's `dataset.prepared` table."""

    file: str
    layout: str = "rows"
    """rows, dialogues, typed (TDIUC) or counts."""
    pointer: tuple[str, ...] = ("data",)
    header: dict[str, str] = {}
    """What the file must say of itself (version, split, dataset_name)."""
    columns: dict[str, str] = {}
    """Our field (id, image, question, answer, options, references, box, wordings) -> column; others become slots."""
    question: str = ""
    """A template over columns where the question is put together ("{question} Context: {context}")."""
    answer: str = "text"
    """text or index (into the options)."""
    options: tuple[str, ...] = ()
    """Fixed options where the file has none."""
    box: str = "xywh"
    """xywh or corners."""
    crop: bool = False
    images: str = "{image}"
    """File name pattern when the file names pictures instead of holding them."""
    labels: str = ""
    choices: str = ""
    question_type: str = ""
    option_end: str = ""
    """A mark that every option is made to end with."""

    def make_options(self, given: list[Any] | None) -> tuple[str, ...]:
        """Return the options of a record, or the fixed ones, each with its end mark."""
        texts = [str(text) for text in given or self.options]
        return tuple(map(self.end_option, texts))

    def end_option(self, text: str) -> str:
        """Return an option with the end mark asked for; without one, a sentence loses its full stop."""
        return _ended(text, self.option_end) if self.option_end else plain_end(text)


def fetch(file: str) -> Path:
    """Download one prepared file from the hub, or return it from the hub's cache."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise MissingExtra("hub", "loading from the hub") from None
    try:
        return Path(hf_hub_download(HUB, file, repo_type="dataset"))
    except (OSError, ValueError) as error:
        raise DataError(f"the hub did not give {HUB}/{file}: {error}; load it offline with --data-root DIR") from None


class PreparedReader:
    """Reads one prepared file into Samples."""

    def __init__(self, layout: Prepared, find: Callable[[str], Path], store: ImageStore, recipe: Recipe) -> None:
        self._layout = layout
        self._find = find
        self._store = store
        self._recipe = recipe

    def read(self) -> Iterator[Sample]:
        """Yield the Samples in file order."""
        layouts = {"rows": self._rows, "dialogues": self._dialogues, "typed": self._typed, "counts": self._counts}
        if self._layout.layout not in layouts:
            raise DataError(f"prepared.layout {self._layout.layout!r} is unknown; known: {', '.join(layouts)}")
        return layouts[self._layout.layout]()

    def _records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (where, record), and check what the file says of itself as soon as it is met."""
        path, number, met = self._find(self._layout.file), 0, set()
        for kind, value in iterate_with_header(path, self._layout.pointer):
            if kind != "element":
                met.add(kind)
                self._check_header(path, kind, value)
                continue
            number += 1
            if not isinstance(value, dict):
                raise DataError(f"{path.name} record {number} is a {type(value).__name__}, not an object")
            yield f"{path.name} record {number}", value
        missing = sorted(set(self._layout.header) - met) if self._layout.pointer else []
        if missing:
            doubt = "is it the prepared file of this dataset?"
            raise DataError(f"{path.name} does not say its {', '.join(missing)}: {doubt}")

    def _check_header(self, path: Path, key: str, value: Any) -> None:
        expected = self._layout.header.get(key)
        if expected is not None and str(value) != expected:
            fix = f"wrong file, or set -p dataset.prepared.header.{key}={value}"
            raise DataError(f"{path.name} says {key} {value!r}, the card {expected!r}: {fix}")

    def _rows(self) -> Iterator[Sample]:
        for number, (where, record) in enumerate(self._records()):
            yield self._sample(self._item(record, where, number), where)

    def _item(self, record: Mapping[str, Any], where: str, number: int) -> Item:
        layout = self._layout
        fields = {field: need(record, column, where) for field, column in layout.columns.items()}
        options = layout.make_options(fields.pop("options", None))
        answer, references = fields.pop("answer", None), fields.pop("references", None)
        wordings = tuple(map(str, fields.pop("wordings", None) or ()))
        plain = str(fields.pop("question", "") or "".join(wordings[:1]))
        image = self._picture(fields.pop("image"), where)
        return Item(
            id=str(fields.pop("id", number)),
            image=image.ref,
            question=_fill_question(layout.question, record, where) if layout.question else plain,
            options=options,
            answer=_answer_text(answer, options, layout, where) if options else "",
            accepted=() if options else _texts(answer if references is None else references),
            boxes=_boxes(fields.pop("box", None), layout.box),
            crop=layout.crop,
            wordings=wordings,
            slots={key: str(value).strip() for key, value in fields.items()},
            data={"image": image},
        )

    def _sample(self, item: Item, where: str, meta: Mapping[str, Any] | None = None) -> Sample:
        image: Image = item.data["image"]
        try:
            edits = box_edits(item, image, BOX_COLOURS)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        extra = {key: value for key, value in (("slots", item.slots), ("wordings", list(item.wordings))) if value}
        return Sample(
            id=item.id,
            dataset=self._recipe.dataset,
            form=self._recipe.form,
            question=item.question,
            images=(msgspec.structs.replace(image, edits=edits),),
            options=item.options,
            answers=(item.answer,) if item.options else item.accepted,
            group=item.group,
            tags=item.tags,
            meta={**extra, **(meta or {})},
        )

    def _picture(self, value: Any, where: str) -> Image:
        """Return a reference for a file name or for base64 text."""
        text = str(value)
        is_name = isinstance(value, int) or text.isdigit() or text.lower().endswith(PICTURE_ENDINGS)
        if is_name and len(text) <= MAX_PATH_LENGTH:
            root = self._find("").resolve()
            path = (root / fill(self._layout.images, {"image": text})).resolve()
            if not path.is_relative_to(root):
                raise DataError(f"{where}: picture {text!r} leads out of the data root {root}")
            return Image(str(path))
        return self._store.put_base64(text, where)

    def _drawn(self, item: Item, pool: list[str], source: str, where: str) -> Sample:
        """Make a choice whose wrong options come from a list of the file, drawn once per sample."""
        count = self._recipe.wrong
        others = first_unique(written_alike(item.answer, pool), [item.answer])
        texts = self._recipe.rng(item.id, "distractors").sample(others, min(count, len(others)))
        wrong = require([Distractor(text, source) for text in texts], count, where)
        options, origins = place(item.answer, wrong, self._recipe.rng(item.id, "place"))
        return self._sample(msgspec.structs.replace(item, options=options), where, {"distractors": origins})

    def _typed(self) -> Iterator[Sample]:
        """TDIUC: a questions file with pictures, an annotations file (its copy of them is skipped), choice lists."""
        wanted = self._layout.question_type
        labelled = (row for row in self._labels() if row["question_type"] == wanted)
        labels = {row["question_id"]: row["answers"][0]["answer"] for row in labelled}
        pool = read_choice_list(self._find(f"{self._layout.choices}{wanted}.json"))
        for where, record in self._records():
            number = need(record, "question_id", where)
            if number not in labels:
                continue
            image = self._picture(record["image_id"], where)
            answer = str(labels[number])
            tags, data = Tags(question_type=wanted), {"image": image}
            item = Item(str(number), image.ref, (), record["question"], answer, tags=tags, data=data)
            if normalise(answer) in ("yes", "no"):
                item = msgspec.structs.replace(item, answer=normalise(answer), options=("yes", "no"))
                yield self._sample(item, where)
            else:
                yield self._drawn(item, pool, f"choice list of {wanted}", where)

    def _labels(self) -> Iterator[dict[str, Any]]:
        path = self._find(self._layout.labels)
        return iterate_array(path, ("annotations",) if _is_table(path) else ())

    def _counts(self) -> Iterator[Sample]:
        pool = read_choice_list(self._find(self._layout.choices))
        for number, (where, record) in enumerate(self._records(), 1):
            item = self._item(record, where, number)
            item = msgspec.structs.replace(item, answer=item.accepted[0], accepted=())
            yield self._drawn(item, pool, "answer list of the file", where)

    def _dialogues(self) -> Iterator[Sample]:
        path = self._find(self._layout.file)
        tables = read_header(path, self._layout.pointer)
        for key, value in tables.items():
            self._check_header(path, key, value)
        yield from with_history(self._rounds(tables["data.questions"], tables["data.answers"]))

    def _rounds(self, questions: list[str], answers: list[str]) -> Iterator[Sample]:
        for where, dialogue in self._records():
            group = str(dialogue["image_id"])
            image = self._picture(dialogue.get("image_base64") or dialogue["image_id"], where)
            for number, turn in enumerate(dialogue["dialog"]):
                highest = max(turn["answer"], *turn["answer_options"])
                if turn["question"] >= len(questions) or highest >= len(answers):
                    raise DataError(f"{where} round {number}: index outside the string tables")
                question, answer = as_question(questions[turn["question"]]), answers[turn["answer"]]
                options = tuple(answers[index] for index in turn["answer_options"])
                facts: dict[str, Any] = {"group": group, "tags": {"round": number}, "data": {"image": image}}
                item = Item(f"{group}_{number}", image.ref, (), question, answer, options=options, **facts)
                yield self._sample(item, where)


def _is_table(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(64).lstrip().startswith(b"{")


def _fill_question(template: str, record: Mapping[str, Any], where: str) -> str:
    pieces = {key: str(value).strip() for key, value in record.items() if isinstance(value, str | int | float)}
    try:
        return template.format_map(pieces)
    except KeyError as error:
        raise DataError(f"{where} has no column {error}; it has: {', '.join(record)}") from None


def _answer_text(answer: Any, options: tuple[str, ...], layout: Prepared, where: str) -> str:
    if layout.answer == "index":
        index = int(answer)
        if not 0 <= index < len(options):
            raise DataError(f"{where}: answer index {index} is outside the {len(options)} options")
        return options[index]
    text = layout.end_option(str(answer))
    if text not in options:
        raise DataError(f"{where}: answer {text!r} is not among the options {list(options)}")
    return text


def _ended(text: str, end: str) -> str:
    return text if text.endswith(end) else text + end


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _boxes(value: Any, kind: str) -> tuple[tuple[float, float, float, float], ...]:
    if not value:
        return ()
    if kind == "corners":
        flat = [float(number) for row in value for number in (row if isinstance(row, list) else [row])]
        xs, ys = flat[0::2], flat[1::2]
        return ((min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)),)
    rows = value if isinstance(value[0], list) else [value]
    return tuple((float(x), float(y), float(w), float(h)) for x, y, w, h in rows)


SOURCES = ("auto", "bundle", "prepared", "raw", "hub")


class Card(Struct, frozen=True, forbid_unknown_fields=True):
    """The `dataset` table of a card."""

    loader: str
    source: str = "auto"
    path: str = ""
    """The folder of the data; empty: `<data root>/<name>`, or the data root itself."""
    options: int = 4
    raw: dict[str, Any] = {}
    """reader, method, files, images (file name pattern); further keys are settings of the reader."""
    prepared: Prepared | None = None
    count: dict[str, int] = {}
    """How many samples each source is known to give."""
    home: str = ""
    """Where to get the raw files."""
    capitalise: bool = False
    """Begin questions, options and answers with a capital letter."""
    rounds: str = "all"
    """`last`: of each dialogue only its last round."""
    keys: dict[str, str] = {}
    """How the seed's own commands name it (dataset_name, config)."""


def load(task: Task, context: LoadContext) -> Iterator[Sample]:
    """Yield the Samples of one card from the source that is there (or the one asked for)."""
    card = read_card(task)
    source, folder = locate(card, task.name, context.root)
    samples = open_source(card, task, source, folder, context)
    if card.rounds == "last":
        samples = last_rounds(samples)
    if card.capitalise:
        samples = map(capitalise, samples)
    return samples if context.limit is None else islice(samples, context.limit)


class Loader:
    """The loader `reform`, as the registry has it."""

    def __call__(self, task: Task, context: LoadContext) -> Iterator[Sample]:
        """Yield the Samples of one card."""
        return load(task, context)

    def data_here(self, task: Task, root: Path | None) -> list[str]:
        """Return which sources of a card are there."""
        return available(read_card(task), task.name, root)


LOADER = Loader()


def read_card(task: Task) -> Card:
    """Return the task's dataset table, checked."""
    try:
        card = msgspec.convert(task.dataset, Card)
    except msgspec.ValidationError as error:
        raise ConfigError(f"task {task.name!r}, dataset: {error}") from None
    if card.source not in SOURCES:
        raise ConfigError(f"dataset.source {not_among(card.source, SOURCES, ' is unknown')}")
    return card


def open_source(card: Card, task: Task, source: str, folder: Path, context: LoadContext) -> Iterator[Sample]:
    """Yield the Samples from one source in `folder`."""
    recipe = Recipe(task.name, task.form, context.seed, card.options, card.raw)
    if source == "bundle":
        return read_bundle(folder)
    if source == "raw":
        settings = {key: value for key, value in card.raw.items() if key not in ("files", "images")}
        corpus = Corpus(folder, card.raw["files"], card.raw.get("images", "{image}"), settings)
        return build(corpus, card.raw["reader"], card.raw["method"], recipe)
    if card.prepared is None:
        raise ConfigError(f"card {task.name!r} has no prepared file")
    store = ImageStore((context.workdir or cache_folder()) / "images")
    find = fetch if source == "hub" else lambda name: find_prepared(folder, name)
    return guard(PreparedReader(card.prepared, find, store, recipe).read(), Path(card.prepared.file).name)


def last_rounds(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Keep the last sample of each run of neighbours with one group."""
    for _, members in groupby(samples, key=lambda sample: sample.group or sample.id):
        *_, last = members
        yield last


def locate(card: Card, name: str, root: Path | None) -> tuple[str, Path]:
    """Return (source, folder) for a card: what was asked for, or the first of bundle, prepared, raw that is there."""
    if card.source == "hub":
        return "hub", Path()
    folders = _folders(card, name, root)
    wanted = SOURCES[1:4] if card.source == "auto" else (card.source,)
    for folder in folders:
        for source in wanted:
            if _is_there(card, source, folder):
                return source, folder
    sought = ", ".join(str(folder) for folder in folders)
    hint = f"get the raw files from {card.home}" if card.home else "give the files"
    if card.prepared is not None and wanted == ("prepared",):
        hint = f"get {card.prepared.file} from the hub's {HUB}"
    where = "name the folder: --data-root DIR, in Python data_root="
    raise DataError(f"no {' or '.join(wanted)} data for {name!r} under {sought}: {hint}, or {where}")


def available(card: Card, name: str, root: Path | None) -> list[str]:
    """Return which sources of a card are there."""
    folders = _folders(card, name, root)
    return [source for source in SOURCES[1:4] if any(_is_there(card, source, folder) for folder in folders)]


def _folders(card: Card, name: str, root: Path | None) -> list[Path]:
    if card.path:
        return [Path(card.path) if root is None else root / card.path]
    base = root or data_home()
    folders = [base / name, base / name.rpartition("/")[2], base]
    # ReForm-Eval itself reads ./ReForm-Eval-Data; only who asks for its files by name is given them from there
    return [*folders, Path()] if card.source == "prepared" and root is None else folders


def _is_there(card: Card, source: str, folder: Path) -> bool:
    if source == "bundle":
        return (folder / MANIFEST).is_file()
    if source == "prepared":
        return card.prepared is not None and _prepared_path(folder, card.prepared.file) is not None
    files = [name for key, name in card.raw.get("files", {}).items() if key not in card.raw.get("optional", ())]
    return bool(files) and all(any(folder.glob(name)) for name in files)


def find_prepared(folder: Path, name: str) -> Path:
    """Return a prepared file (or, for the empty name, its folder) as the hub's tree or flat."""
    if not name:
        return folder
    path = _prepared_path(folder, name)
    if path is None:
        raise DataError(f"{folder / name} does not exist: copy the hub's {name!r} there")
    return path


def _prepared_path(folder: Path, name: str) -> Path | None:
    tries = (folder / name, folder / "ReForm-Eval-Data" / name, folder / Path(name).name)
    return next((path for path in tries if path.is_file()), None)
