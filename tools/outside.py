"""Files that benchmark authors published, through load, plan, prompts and scoring: one table, exit 1 where one fails.

    python tools/outside.py ../shared/data            # what `make outside` calls
    python tools/outside.py ../shared/data --only mathvista

The files are not ours to ship: `annotations/` holds whole annotation files as their authors have them, `published/`
replies of real models with their authors' numbers. Pictures are stand-ins, hard-linked under every name a row gives.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import PIL.Image

import snellen
from snellen.cli.main import main as command
from snellen.core.errors import SnellenError
from snellen.data.catalog import Catalog
from snellen.store.reader import RunReader

Row = dict[str, Any]
WITHIN_POINTS = 1.0
"""How far an authors' number may lie outside our bounds: some ask a language model for what a rule cannot read."""

KNOWN_APART = {
    "mathvista--claude_2shot_solution_use_ocr, official": (
        2.5,
        "54 replies that we read as right go on with other questions, and the authors' model took the last answer",
    )
}
"""File and protocol -> how far the authors' number may lie outside our bounds, and why: seen by reading the replies."""


@dataclass(frozen=True)
class Annotations:
    """Files of one benchmark as a folder, and what must come of them."""

    card: str
    files: dict[str, str]
    """Place in the folder -> name of the published file."""
    rows: int
    """How many questions must be asked."""
    pictures: Callable[[str, Row], Sequence[str]] = lambda key, row: ()
    """The places of a row's pictures, told its key in an object and the row."""
    path: str = ""
    """What of the folder is named; empty: the folder."""
    more: dict[str, str] = field(default_factory=dict)
    """Files that the authors' repository has beside them: place -> made text."""
    note: str = ""


def _image(key: str, row: Row) -> Sequence[str]:
    return (row["image"],) if "image" in row else ()


def _cmmmu(key: str, row: Row) -> Sequence[str]:
    return tuple(f"images/{name}" for name in row["img_list"])


CHARXIV_CONSTANTS = "DESCRIPTIVE_RESP_INST = {\n" + "".join(
    f"    {number}: 'Made question {number}{'' if number in (18, 19) else ' of {}'}?',\n" for number in range(1, 20)
) + "}\n"  # fmt: skip
CMMMU = ("art_and_design", "business", "health_and_medicine", "humanities_and_social_sciences", "science",
         "technology_and_engineering")  # fmt: skip
ANNOTATIONS = (
    Annotations(
        "mathvista",
        {"testmini.json": "MathVista__data_testmini.json.gz", "query.json": "MathVista__data_query.json.gz"},
        1000,
        _image,
    ),
    Annotations("mathvision", {"data/test.jsonl": "MATH-V__data_test.jsonl.gz"}, 3040, _image),
    Annotations("mathvision-mini", {"data/testmini.jsonl": "MATH-V__data_testmini.jsonl.gz"}, 304, _image),
    Annotations(
        "hallusionbench",
        {"HallusionBench.json": "HallusionBench__HallusionBench.json.gz"},
        951,
        lambda _, row: (row["filename"].removeprefix("./"),) if row["filename"] else (),
    ),
    Annotations(
        "ocrbench",
        {"OCRBench.json": "MultimodalOCR__OCRBench_OCRBench_OCRBench.json.gz"},
        1000,
        lambda _, row: (row["image_path"],),
    ),
    Annotations(
        "mmlongbench-doc",
        {"data/samples.json": "MMLongBench-Doc__data_samples.json.gz"},
        1082,
        lambda _, row: (f"data/documents/{row['doc_id']}",),
    ),
    Annotations(
        "charxiv-reasoning",
        {"data/reasoning_val.json": "CharXiv__data_reasoning_val.json.gz"},
        1000,
        lambda _, row: (f"images/{row['figure_id']}.jpg",),
    ),
    Annotations(
        "charxiv-descriptive",
        {"data/descriptive_val.json": "CharXiv__data_descriptive_val.json.gz"},
        4000,
        lambda _, row: (f"images/{row['figure_id']}.jpg",),
        more={"src/constants.py": CHARXIV_CONSTANTS},
        note="templates made here: the authors' stand in a file of their repository",
    ),
    Annotations(
        "pope",
        {
            f"coco_pope_{kind}.json": f"POPE__output_coco_coco_pope_{kind}.json.gz"
            for kind in ("random", "popular", "adversarial")
        },
        9000,
        lambda _, row: (f"val2014/{row['image']}",),
    ),
    Annotations(
        "logicvista",
        {"data/dataset.json": "LogicVista__data_dataset.json.gz"},
        448,
        lambda _, row: (f"data/images/{row['imagename']}",),
    ),
    *(
        Annotations(
            card,
            {f"questions/{kind}.json": f"TempCompass__questions_{kind}.json.gz"},
            rows,
            lambda key, _: (f"videos/{key}.mp4",),
            path=f"questions/{kind}.json",
        )
        for card, kind, rows in (
            ("tempcompass", "multi-choice", 1580),
            ("tempcompass-yes-no", "yes_no", 2453),
            ("tempcompass-caption-matching", "caption_matching", 1503),
        )
    ),
    Annotations(
        "dynamath",
        {"dataset/dataset.json": "DynaMath__dataset_dataset.json.gz"},
        501,
        lambda _, row: (f"dataset/{row['image']}",),
        path="dataset/dataset.json",
    ),
    Annotations(
        "we-math",
        {"testmini.json": "We-Math__data_testmini.json.gz"},
        1733,
        lambda _, row: (row["image_path"],),
        note="7 rows of the authors' file have broken options",
    ),
    Annotations(
        "amber",
        {
            "data/query/query_discriminative.json": "AMBER__data_query_query_discriminative.json.gz",
            "data/annotations.json": "AMBER__data_annotations.json.gz",
        },
        14216,
        lambda _, row: (f"image/{row['image']}",) if "image" in row else (),
    ),
    Annotations(
        "mmvu",
        {"data/validation.json": "MMVU__data_validation.json.gz"},
        1000,
        lambda _, row: (row["video"].partition("/resolve/main/")[2],),
    ),
    Annotations(
        "chartqa",
        {f"test_{kind}.json": f"ChartQA__ChartQA_Dataset_test_test_{kind}.json.gz" for kind in ("human", "augmented")},
        2500,
        lambda _, row: (f"png/{row['imgname']}",),
    ),
    Annotations(
        "mathverse",
        {"testmini_text_only.json": "MathVerse__data_testmini_text_only.json.gz"},
        785,
        path="testmini_text_only.json",
        note="3 rows have an answer that is none of their options",
    ),
    *(
        Annotations(
            "mlvu",
            {f"json/{name}.json": f"MLVU__data_{name}.json.gz"},
            rows,
            lambda _, row: (f"video/{row['video']}",),
            path=f"json/{name}.json",
        )
        for name, rows in (
            ("1_plotQA", 538),
            ("2_needle", 353),
            ("3_ego", 351),
            ("4_count", 206),
            ("5_order", 259),
            ("6_anomaly_reco", 200),
            ("7_topic_reasoning", 263),
        )
    ),
    Annotations(
        "cmmmu",
        {f"cmmmu-data-val/{name}/{name}.jsonl": f"CMMMU__cmmmu-data-val_{name}_{name}.jsonl.gz" for name in CMMMU},
        900,
        _cmmmu,
    ),
)
ANSWERS_ALONE = ("MMMU__mmmu_answer_dict_val.json.gz", "BLINK_Benchmark__eval_val_answers.json.gz",
                 "EgoSchema__subset_answers.json.gz", "CharXiv__data_image_metadata_val.json.gz")  # fmt: skip
"""Published files without questions: there is nothing to ask."""
CARDS = {
    "tempcompass-yes_no": "tempcompass-yes-no",
    "tempcompass-caption_matching": "tempcompass-caption-matching",
}
"""Published files whose questions are another card's than their benchmark's first."""


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    what: str
    good: bool
    said: str


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", default="", help="only lines of this card")
    parser.add_argument("--protocols", choices=("first", "all"), default="all")
    given = parser.parse_args()
    started, bad, count = time.monotonic(), 0, 0
    os.environ["SNELLEN_NO_PROGRESS"] = "1"
    for line in _lines(given.data, given.only, given.protocols):
        count += 1
        bad += not line.good
        print(f"{'ok  ' if line.good else 'FAIL'} {line.what:<58} {line.said}", flush=True)
    print(f"\n{count - bad} passed, {bad} failed")
    print(f"in {time.monotonic() - started:.0f} s")
    return 1 if bad else 0


def _lines(data: Path, only: str, protocols: str) -> Iterator[Line]:
    for one in ANNOTATIONS:
        if only in ("", one.card):
            yield from _asked(data / "annotations", one, protocols)
    for name in ANSWERS_ALONE if not only else ():
        yield Line(name, True, "answers or captions alone: nothing to ask")
    for told in json.loads((data / "published" / "expected.json").read_text("utf-8")):
        if only in ("", told["task"]):
            yield _scored(data / "published", told)
    table = data / "banks" / "m3irt_mmmu_normal.npz"
    if only in ("", "mmmu") and table.exists():
        yield _blind(table)


def _asked(folder: Path, one: Annotations, protocols: str) -> Iterator[Line]:
    """Ask every question of the files in every protocol, of a reader that always takes the first option."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        _lay(folder, one, home / "data")
        path = home / "data" / one.path if one.path else home / "data"
        wanted = list(Catalog().task_table(one.card).get("protocols") or {"": None})
        for protocol in wanted if protocols == "all" else wanted[:1]:
            what = f"{one.card}{' ' + Path(one.path).stem if one.path else ''}, {protocol or 'its own protocol'}"
            yield _line_of_run(what, one, path, protocol, home / f"run-{protocol}")


def _line_of_run(what: str, one: Annotations, path: Path, protocol: str, folder: Path) -> Line:
    try:
        snellen.run(
            one.card, "blind/first", protocol=protocol or None, overrides=(("dataset.path", str(path)),),
            output_dir=folder, cache=False,
        )  # fmt: skip
        asked, bare = _look(folder)
    except SnellenError as error:
        return Line(what, False, f"refused: {error}"[:200])
    said = f"{asked} of {one.rows} asked" + (f", {bare} prompts without all options" if bare else "")
    meant = bool(bare) and _hides_options(one.card, protocol)
    said += ", as its tool asks" if meant else ""
    return Line(what, asked == one.rows and (meant or not bare), f"{said}{'; ' + one.note if one.note else ''}")


def _hides_options(card: str, protocol: str) -> bool:
    """Tell whether a protocol's prompt says that it leaves options out on purpose."""
    catalog = Catalog()
    return bool(catalog.prompt(catalog.task(card, protocol=protocol or None), snellen.Form.CHOICE).hidden)


def _look(folder: Path) -> tuple[int, int]:
    """Return how many questions got a reply, and how many prompts lack an option of their row."""
    asked = bare = 0
    with RunReader(folder) as reader:
        for trial in (one for task in reader.tasks() for one in reader.trials(task)):
            asked += trial.prediction.failure is None
            text = _plain(trial.request.messages[-1].text)
            offered = trial.sample.options if trial.sample.form is snellen.Form.CHOICE else ()
            bare += any(_plain(option) not in text for option in offered if not option.startswith("<image"))
    return asked, bare


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()


def _lay(folder: Path, one: Annotations, home: Path) -> None:
    """Lay the files as their authors have them, with a stand-in under every picture's name."""
    stand_ins = _stand_ins(home.parent)
    for place, text in one.more.items():
        _written(home / place).write_text(text, "utf-8")
    for place, source in one.files.items():
        data = gzip.decompress((folder / source).read_bytes())
        _written(home / place).write_bytes(data)
        for key, row in _records(data):
            for picture in one.pictures(key, row) if isinstance(row, dict) else ():
                target = _written(home / picture)
                if not target.exists():
                    target.hardlink_to(stand_ins[target.suffix.lower()])


def _written(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _records(data: bytes) -> Iterator[tuple[str, Any]]:
    try:
        whole = json.loads(data)
    except json.JSONDecodeError:
        whole = [json.loads(line) for line in data.splitlines() if line.strip()]
    pairs = whole.items() if isinstance(whole, dict) else enumerate(whole)
    return ((str(key), row) for key, row in pairs)


def _stand_ins(folder: Path) -> dict[str, Path]:
    """Return small files by ending: red pictures, a document of one page, a film of a second."""
    picture = PIL.Image.new("RGB", (64, 64), "red")
    made = {f".{kind}": folder / f"red.{kind}" for kind in ("png", "jpg", "jpeg", "gif", "bmp", "webp", "pdf")}
    for place in made.values():
        picture.save(place)
    made[".mp4"] = _film(folder / "red.mp4", picture)
    return made


def _film(place: Path, picture: PIL.Image.Image) -> Path:
    import av

    with av.open(str(place), "w") as container:
        stream = container.add_stream("libx264", rate=8)
        stream.width, stream.height, stream.pix_fmt = *picture.size, "yuv420p"
        for _ in range(8):
            container.mux(stream.encode(av.VideoFrame.from_image(picture)))
        container.mux(stream.encode(None))
    return place


def _scored(folder: Path, told: Row) -> Line:
    """Score published replies by the card's official protocol and hold the number against the authors'."""
    name = str(told["file"])
    task = next((card for start, card in CARDS.items() if name.startswith(start)), str(told["task"]))
    what = f"{name.removesuffix('.jsonl.xz')}, official"
    authors = told.get("authors") or {}
    number = _number(authors)
    with tempfile.TemporaryDirectory() as place:
        rows = Path(place) / name.removesuffix(".xz")
        rows.write_bytes(lzma.decompress((folder / name).read_bytes()))
        card = ("--task", task, "--protocol", "official")
        code, out, err = _called(["score", str(rows), *card, "--json", "-o", str(Path(place) / "run")])
    if code:
        return Line(what, False, f"refused: {(err or out).strip().splitlines()[-1][:200]}")
    return _held(what, json.loads(out), number)


def _number(authors: Row) -> float | None:
    """Return the authors' number in per cent: their accuracy, or the mean of their tasks."""
    value = authors.get("accuracy", authors.get("mean_of_tasks"))
    return float(value) if value is not None else None


def _held(what: str, found: Row, authors: float | None) -> Line:
    """Hold our number, and what the unread replies could make of it, against the authors'."""
    value, (low, high) = 100 * found["value"], (100 * bound for bound in found["bounds"])
    said = f"{value:5.1f} [{low:.1f}, {high:.1f}], {found['unread']} of {found['n']} unread"
    if authors is None:
        return Line(what, True, f"{said}; no number of the authors")
    within, why = KNOWN_APART.get(what, (WITHIN_POINTS, ""))
    good = low - within <= authors <= high + within
    return Line(what, good, f"{said}; authors {authors:.1f}, {value - authors:+.1f}{why and f' ({why})'}")


BLIND = ("52.4 with the picture, 43.5 in arm", "83 % [", "27 to 96 %", "needs 18.9 %, keeps 33.5 %, harmed 10.0 %",
         "neither 37.6 %", "(10 %)", "(21 %)")  # fmt: skip
"""What was worked out from M3IRT's tables before `bank picture` was written."""


def _blind(table: Path) -> Line:
    """Hold what 24 models keep of MMMU without its pictures against what is known of the table."""
    with tempfile.TemporaryDirectory() as name:
        full, blind = Path(name) / "full.bank", Path(name) / "blind.bank"
        _called(["bank", "build", str(table), "-o", str(full)])
        _called(["bank", "build", str(table), "--arm", "<no_image>", "-o", str(blind)])
        code, said, wrong = _called(["bank", "picture", str(full), str(blind)])
    missing = [part for part in BLIND if part not in said]
    shown = f"not said: {'; '.join(missing)} {wrong}" if missing or code else "as worked out from the table"
    return Line("m3irt mmmu, bank picture", not missing and not code, shown)


def _called(arguments: Sequence[str]) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            command(list(arguments))
        except SystemExit as stop:
            return int(stop.code or 0), out.getvalue(), err.getvalue()
    raise AssertionError("the command ends by an exit code")


if __name__ == "__main__":
    sys.exit(main())
