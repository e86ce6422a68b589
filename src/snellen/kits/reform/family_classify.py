"""Image classification sets in their published files to Items, and labels to choices among hard classes."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pybase64

from ...core.errors import DataError
from ...core.types import Sample
from ...data.images.decode import encode_png
from .corpus import Corpus, Item, need
from .distractors import ClassNegatives, Distractor
from .formulate import Recipe, choice, fixed
from .matlab import read_matrices

Names = dict[str, tuple[str, ...]]
CIFAR_SIDE_PX = 32
FLAWS = {
    "BLR": "it is blurred",
    "BRT": "it is too bright",
    "DRK": "it is too dark",
    "OBS": "something covers the view",
    "FRM": "the object is not fully in the frame",
    "ROT": "it is rotated",
}
"""VizWiz flaw code -> our wording."""
MAJORITY = 3
"""Annotators (of five) that must agree before a flaw counts."""


def read_flowers(corpus: Corpus) -> Iterator[Item]:
    """Flowers102: imagelabels.mat, setid.mat (split: test is `tstid`) and the class names as JSON keyed by number."""
    labels = read_matrices(corpus.path("labels"))["labels"]
    chosen = read_matrices(corpus.path("split"))[corpus.settings.get("split", "tstid")]
    for number in map(int, chosen):
        yield _item(f"image_{number:05d}", f"image_{number:05d}.jpg", str(int(labels[number - 1])))


def name_flowers(corpus: Corpus) -> Names:
    """Return the 102 class names."""
    return {key: (str(name),) for key, name in corpus.members("names")}


def read_cifar(corpus: Corpus) -> Iterator[Item]:
    """CIFAR-10, binary version: records of one label byte and 3072 pixel bytes in planes."""
    import PIL.Image

    plane = CIFAR_SIDE_PX * CIFAR_SIDE_PX
    with corpus.path("batch").open("rb") as stream:
        for number in range(1 << 30):
            record = stream.read(1 + 3 * plane)
            if not record:
                return
            if len(record) < 1 + 3 * plane:
                raise DataError(f"{corpus.files['batch']} record {number} is cut off")
            size = (CIFAR_SIDE_PX, CIFAR_SIDE_PX)
            bands = [PIL.Image.frombytes("L", size, record[1 + i * plane : 1 + (i + 1) * plane]) for i in range(3)]
            png = encode_png(PIL.Image.merge("RGB", bands))
            yield _item(f"test_{number}", "data:image/png;base64," + pybase64.b64encode(png).decode(), str(record[0]))


def name_lines(corpus: Corpus) -> Names:
    """Return class names from a file of one name a line; the label is the line's place from 0."""
    return {str(place): (line.strip(),) for place, (_, line) in enumerate(corpus.lines("names"))}


def read_imagenet(corpus: Corpus) -> Iterator[Item]:
    """ImageNet-1K: LOC_val_solution.csv, whose second column begins with the synset."""
    for row in corpus.rows("labels"):
        yield _item(row["ImageId"], row["ImageId"], row["PredictionString"].split()[0])


def name_synsets(corpus: Corpus) -> Names:
    """Return synset -> its names from LOC_synset_mapping.txt."""
    pairs = (line.partition(" ") for _, line in corpus.lines("names"))
    return {synset: tuple(name.strip() for name in names.split(",")) for synset, _, names in pairs}


def read_pets(corpus: Corpus) -> Iterator[Item]:
    """Oxford-IIIT Pets: annotations/test.txt, lines `Breed_Name_12 class species breed`."""
    for number, line in corpus.lines("labels"):
        if line.startswith("#"):
            continue
        parts = line.split()
        if len(parts) != 4:
            raise DataError(f"{corpus.files['labels']} line {number}: expected `name class species breed`")
        yield Item(parts[0], parts[0], data={"label": parts[1], "species": parts[2]})


def name_pets(corpus: Corpus) -> Names:
    """Return the breeds as the file names spell them."""
    return {item.data["label"]: (item.id.rsplit("_", 1)[0].replace("_", " "),) for item in read_pets(corpus)}


def pet_species(corpus: Corpus) -> dict[str, str]:
    """Return class -> species (1 cat, 2 dog): a dog's breed is no wrong option for a cat."""
    return {item.data["label"]: item.data["species"] for item in read_pets(corpus)}


def read_medic(corpus: Corpus) -> Iterator[Item]:
    """MEDIC: a TSV with image_id, image_path and disaster_types."""
    for row in corpus.rows("labels"):
        name = need(row, "image_id", corpus.files["labels"])
        yield _item(name, row["image_path"], row["disaster_types"].replace("_", " "))


def name_medic(corpus: Corpus) -> Names:
    """Return the seven disaster types."""
    kinds = ("earthquake", "fire", "flood", "hurricane", "landslide", "other disaster", "not disaster")
    return {kind: (kind.replace("not ", "no "),) for kind in kinds}


def read_quality(corpus: Corpus) -> Iterator[Item]:
    """VizWiz-QualityIssues: votes of five annotators per flaw."""
    for row in corpus.rows("annotations"):
        votes = {code: int(row["flaws"].get(code, 0)) for code in FLAWS}
        yield Item(row["image"].rsplit(".", 1)[0], row["image"], data={"flaws": votes})


def ask_quality(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Ask yes/no for one flaw an item, a present and an absent one in turn, so that labels balance."""
    want_yes = False
    for item in items:
        flaws: dict[str, int] = item.data["flaws"]
        codes = [code for code, votes in flaws.items() if (votes >= MAJORITY if want_yes else votes == 0)]
        if not codes:
            continue
        code = recipe.rng(item.id, "flaw").choice(sorted(codes))
        question = f"Is this a fair remark on the quality of the picture: {FLAWS[code]}?"
        answer = "yes" if want_yes else "no"
        asked = Item(f"{item.id}_{code}", item.image, question=question, answer=answer, tags={"flaw": code})
        yield fixed(asked, corpus, recipe, ("yes", "no"))
        want_yes = not want_yes


def choose_flaw(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Ask which flaw a picture has: the majority's, against flaws nobody saw; a picture with several is left out."""
    for item in items:
        flaws: dict[str, int] = item.data["flaws"]
        clear = [code for code, votes in flaws.items() if votes >= MAJORITY]
        absent = sorted(code for code, votes in flaws.items() if votes == 0)
        if len(clear) != 1 or len(absent) < recipe.wrong:
            continue
        codes = recipe.rng(item.id, "distractors").sample(absent, recipe.wrong)
        wrong = [Distractor(FLAWS[code], f"flaw {code} seen by nobody", count=0) for code in codes]
        question = "What is wrong with the quality of this picture?"
        asked = Item(item.id, item.image, question=question, answer=FLAWS[clear[0]], tags={"flaw": clear[0]})
        yield choice(asked, corpus, recipe, wrong)


def choose_class(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Label to choice: wrong classes by the card's `negatives` (uniform, near, confusable), synonyms left out."""
    names = NAMES[corpus.settings["reader"]](corpus)
    groups = GROUPS[corpus.settings["reader"]](corpus) if corpus.settings["reader"] in GROUPS else None
    strategy = corpus.settings.get("negatives", "near")
    drawer = ClassNegatives(names, strategy, _parents(corpus), _confusion(corpus), groups)
    for item in items:
        label = item.data["label"]
        if label not in names:
            raise DataError(f"record {item.id}: class {label!r} has no name in {corpus.files.get('names', 'the card')}")
        wrong = drawer.draw(label, recipe.wrong, recipe.rng(item.id, "distractors"))
        yield choice(_asked(item, names, corpus), corpus, recipe, wrong, complete=True)


def list_classes(items: Iterable[Item], corpus: Corpus, recipe: Recipe) -> Iterator[Sample]:
    """Label to choice among all classes, in their usual order."""
    names = NAMES[corpus.settings["reader"]](corpus)
    options = tuple(texts[0] for texts in names.values())
    for item in items:
        if item.data["label"] not in names:
            raise DataError(f"record {item.id}: unknown class {item.data['label']!r}; known: {', '.join(names)}")
        yield fixed(_asked(item, names, corpus), corpus, recipe, options)


def _asked(item: Item, names: Names, corpus: Corpus) -> Item:
    label, question = item.data["label"], corpus.settings.get("question", "What is shown in this picture?")
    return Item(item.id, item.image, question=question, answer=names[label][0], tags={"class": label})


def _parents(corpus: Corpus) -> Mapping[str, str] | None:
    """Read `parent child` lines (ImageNet publishes wordnet.is_a.txt in this form)."""
    if not corpus.has("taxonomy"):
        return None
    return {child: parent for parent, child in (line.split() for _, line in corpus.lines("taxonomy"))}


def _confusion(corpus: Corpus) -> Mapping[str, Mapping[str, float]] | None:
    """Read a confusion table: CSV rows `true,predicted,count`."""
    if not corpus.has("confusion"):
        return None
    table: dict[str, dict[str, float]] = {}
    with corpus.path("confusion").open(newline="") as stream:
        for row in csv.DictReader(stream):
            table.setdefault(row["true"], {})[row["predicted"]] = float(row["count"])
    return table


def _item(number: str, image: str, label: str) -> Item:
    return Item(number, image, data={"label": label})


GROUPS: dict[str, Any] = {"classify.pets": pet_species}
NAMES: dict[str, Any] = {
    "classify.flowers": name_flowers,
    "classify.cifar": name_lines,
    "classify.imagenet": name_synsets,
    "classify.pets": name_pets,
    "classify.medic": name_medic,
}
READERS = {
    "flowers": read_flowers, "cifar": read_cifar, "imagenet": read_imagenet, "pets": read_pets, "medic": read_medic,
    "quality": read_quality,
}  # fmt: skip
METHODS = {"classes": choose_class, "all_classes": list_classes, "quality": ask_quality, "flaw": choose_flaw}
