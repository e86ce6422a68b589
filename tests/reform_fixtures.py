"""Small data in the true published schema of every card: the pictures and texts are ours.

`raw(slug, root)` and `prepared(slug, root)` write the files a card looks for; run as a script it writes all of them:
    python tests/reform_fixtures.py OUT
"""

from __future__ import annotations

import base64
import csv
import io
import json
import pickle
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

SIZE = (96, 72)
COLOURS = ("red", "green", "blue", "yellow", "purple", "brown", "black", "white", "orange", "gray", "pink", "cyan")
THINGS = ("cat", "dog", "bus", "kite", "cup", "chair", "bird", "boat", "clock", "apple", "horse", "lamp")
ANIMALS = ("cat", "dog", "horse", "cow", "sheep", "bird", "zebra", "giraffe", "elephant", "bear", "rabbit", "goat")
FOLK = (
    "boys",
    "women",
    "men",
    "girls",
    "players",
    "children",
    "friends",
    "students",
    "people",
    "neighbours",
    "sailors",
    "nurses",
)
N = 12
CAPTIONS = (
    ("A red bus waits at the corner of a wet street.", "Passengers board a double decker in the rain."),
    ("Two dogs chase a ball across the lawn.", "Puppies play together in a green garden."),
    ("A blue kite hangs above the dunes.", "Somebody flies a kite by the sea."),
    ("Fresh fruit is piled up in a wooden bowl.", "Apples and pears lie on a kitchen counter."),
    ("A small boat drifts past the lighthouse.", "The harbour is quiet at dawn."),
    ("Brown horses graze behind a fence.", "Animals stand in tall grass near a barn."),
    ("An old clock ticks over the fireplace.", "Books fill every shelf of the study."),
    ("White birds rest along the telephone wire.", "Pigeons gather on a roof in winter."),
    ("The child drinks cocoa from a striped cup.", "A girl sits at breakfast with her toys."),
    ("An empty chair faces the window.", "Sunlight falls onto bare floorboards."),
    ("A lamp glows beside the unmade bed.", "Someone reads late into the night."),
    ("Snow covers parked cars and benches.", "Footprints lead through a white park."),
)


WORDS = (
    "BAKERY",
    "EXIT",
    "MUSEUM",
    "TICKETS",
    "OPEN",
    "Harbour",
    "COFFEE",
    "Station",
    "LIBRARY",
    "Garden",
    "HOTEL",
    "Market",
)


def a(noun: str) -> str:
    """The noun with its article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def many(noun: str) -> str:
    """The plural."""
    return noun if noun == "sheep" else f"{noun}es" if noun.endswith("s") else f"{noun}s"


def picture(text: str, size: tuple[int, int] = SIZE) -> Image.Image:
    """A plain card with a coloured block and a text."""
    image = Image.new("RGB", size, (235, 238, 240))
    draw = ImageDraw.Draw(image)
    draw.rectangle((4, 4, size[0] // 2, size[1] // 2), fill=COLOURS[sum(map(ord, text)) % len(COLOURS)])
    draw.text((6, size[1] // 2 + 4), text[:14], fill="black")
    return image


def save(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(text).save(path)


def encode(text: str) -> str:
    out = io.BytesIO()
    picture(text).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


# ---- raw ------------------------------------------------------------------------------------------------------

RAW: dict[str, Callable[[Path], None]] = {}


def raw_for(*slugs: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    def add(function: Callable[[Path], None]) -> Callable[[Path], None]:
        RAW.update(dict.fromkeys(slugs, function))
        return function

    return add


def raw(slug: str, root: Path) -> None:
    """Write the raw files of one card under `root`."""
    RAW[slug](root)


@raw_for("flowers102")
def _flowers(root: Path) -> None:
    import numpy as np
    from scipy.io import savemat

    put(
        root / "cat_to_name.json",
        {
            str(i + 1): name
            for i, name in enumerate(("rose", "tulip", "daisy", "lily", "iris", "moon orchid", "sun flower"))
        },
    )
    savemat(root / "imagelabels.mat", {"labels": np.array([[1 + i % 7 for i in range(N)]], dtype=np.uint8)})
    savemat(root / "setid.mat", {"tstid": np.array([list(range(1, N + 1))], dtype=np.uint16)}, do_compression=True)
    for i in range(1, N + 1):
        save(root / f"jpg/image_{i:05d}.jpg", f"flower {i}")


@raw_for("cifar10")
def _cifar(root: Path) -> None:
    folder = root / "cifar-10-batches-bin"
    put(folder / "batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n")
    generator = random.Random(5)
    (folder / "test_batch.bin").write_bytes(b"".join(bytes([i % 10]) + generator.randbytes(3072) for i in range(N)))


@raw_for("imagenet-1k")
def _imagenet(root: Path) -> None:
    names = {
        "n01": "tench, Tinca tinca",
        "n02": "goldfish",
        "n03": "hen",
        "n04": "cock, rooster",
        "n05": "bus",
        "n06": "minibus, shuttle",
        "n07": "tench fish",
    }
    put(root / "LOC_synset_mapping.txt", "".join(f"{key} {value}\n" for key, value in names.items()))
    put(root / "wordnet.is_a.txt", "fish n01\nfish n02\nfish n07\nbird n03\nbird n04\ncar n05\ncar n06\n")
    keys = list(names)
    rows = [
        {"ImageId": f"ILSVRC2012_val_{i:08d}", "PredictionString": f"{keys[i % 7]} 1 2 30 40 "} for i in range(1, N + 1)
    ]
    put(root / "LOC_val_solution.csv", table(rows))
    for row in rows:
        path = root / f"ILSVRC/Data/CLS-LOC/val/{row['ImageId']}.JPEG"
        save(path, row["ImageId"][-4:])


@raw_for("pets37")
def _pets(root: Path) -> None:
    cats = ("Abyssinian", "Bengal", "Birman", "Egyptian_Mau", "Persian")
    dogs = ("american_bulldog", "beagle", "boxer", "chihuahua", "pug")
    breeds = [(name, 1) for name in cats] + [(name, 2) for name in dogs]
    text = "#Image CLASS-ID SPECIES BREED ID\n"
    for i in range(N):
        breed, species = breeds[i % 10]
        text += f"{breed}_{i} {1 + i % 10} {species} {1 + i % 5}\n"
        save(root / f"images/{breed}_{i}.jpg", breed)
    put(root / "annotations/test.txt", text)


@raw_for("vizwiz-yesno", "vizwiz-flaw")
def _quality(root: Path) -> None:
    codes = ("BLR", "BRT", "DRK", "OBS", "FRM", "ROT")
    rows = []
    for i in range(2 * N):
        flaws = dict.fromkeys((*codes, "OTH", "NON"), 0) | {codes[i % 6]: 3 + i % 3}
        rows.append({"image": f"VizWiz_val_{i:08d}.jpg", "flaws": flaws, "unrecognizable": 0})
        save(root / "val" / rows[-1]["image"], codes[i % 6])
    put(root / "annotations/val.json", rows)


@raw_for(
    "tdiuc-sport", "tdiuc-scene", "tdiuc-color", "tdiuc-utility", "tdiuc-position", "tdiuc-detection", "tdiuc-counting"
)
def _tdiuc(root: Path) -> None:
    kinds = {
        "sport_recognition": ("tennis", "skiing", "baseball", "surfing", "soccer"),
        "scene_recognition": ("beach", "kitchen", "yes", "street", "no", "forest", "office"),
        "color": COLOURS[:6],
        "utility_affordance": ("eating", "sitting", "writing", "cutting", "cooking"),
        "positional_reasoning": ("left shelf", "on the roof", "under the tree", "behind a car", "near a door"),
        "object_recognition": THINGS[:6],
        "counting": ("1", "2", "3", "5", "8", "12"),
        "absurd": ("doesnotapply",),
    }
    asked = {
        "sport_recognition": "What sport are the {folk} playing?",
        "scene_recognition": "What room or place are the {folk} in?",
        "color": "What color is the {thing}?",
        "utility_affordance": "What could the {folk} use the {thing} for?",
        "positional_reasoning": "Where is the {thing}?",
        "object_recognition": "What are the {folk} looking at?",
        "counting": "How many {animals} are there?",
        "absurd": "What color is the {animal}'s hat?",
    }
    questions, labels, number = [], [], 0
    for kind, answers in kinds.items():
        for i in range(N):
            number += 1
            words = {"folk": FOLK[i], "thing": THINGS[i], "animal": ANIMALS[i], "animals": many(ANIMALS[i])}
            question = asked[kind].format(**words)
            if answers[i % len(answers)] in ("yes", "no"):
                question = f"Are the {FOLK[i]} indoors?"
            questions.append({"question_id": number, "image_id": number % 5, "question": question})
            given = [{"answer": answers[i % len(answers)], "answer_confidence": "yes", "answer_id": 1}]
            labels.append(
                {
                    "question_id": number,
                    "image_id": number % 5,
                    "question_type": kind,
                    "answers": given,
                    "ans_source": "vqa",
                }
            )
    put(root / "Questions/OpenEnded_mscoco_val2014_questions.json", {"questions": questions})
    put(root / "Annotations/mscoco_val2014_annotations.json", {"annotations": labels[::-1]})
    for i in range(5):
        save(root / f"val2014/COCO_val2014_{i:012d}.jpg", f"tdiuc {i}")


@raw_for("medic")
def _medic(root: Path) -> None:
    kinds = ("earthquake", "fire", "flood", "hurricane", "landslide", "other_disaster", "not_disaster")
    rows = [
        {"image_id": f"m{i}", "event_name": "e", "image_path": f"data/images/{i}.jpg", "damage_severity": "mild", "informative": "yes",
         "humanitarian": "none", "disaster_types": kinds[i % 7]}
        for i in range(N)
    ]  # fmt: skip
    put(root / "data/MEDIC_test.tsv", table(rows, "\t"))
    for i in range(N):
        save(root / f"data/images/{i}.jpg", kinds[i % 7])


def _coco(root: Path) -> None:
    categories = [{"id": i + 1, "name": name, "supercategory": "x"} for i, name in enumerate(THINGS)]
    images, boxes, captions, number = [], [], [], 0
    for i in range(N):
        images.append({"id": 100 + i, "file_name": f"{100 + i:012d}.jpg", "width": SIZE[0], "height": SIZE[1]})
        save(root / f"val2017/{100 + i:012d}.jpg", f"coco {i}")
        for k in range(4):
            number += 1
            category = 1 + (i + 2 * k) % len(THINGS)
            box = [4.0 + 20 * k, 6.0, 18.0, 30.0]
            boxes.append(
                {
                    "id": number,
                    "image_id": 100 + i,
                    "category_id": category,
                    "bbox": box,
                    "area": 540.0,
                    "iscrowd": 0,
                    "segmentation": [],
                }
            )
        told = enumerate(CAPTIONS[i])
        captions += [{"id": 10 * i + k, "image_id": 100 + i, "caption": f"{text}\n"} for k, text in told]
    put(
        root / "annotations/instances_val2017.json",
        {"info": {}, "images": images, "annotations": boxes, "categories": categories},
    )
    put(root / "annotations/captions_val2017.json", {"info": {}, "images": images, "annotations": captions})


raw_for("coco-mci", "coco-goi", "coco-mos", "coco-itm", "coco-its", "coco-caption")(_coco)


@raw_for("refcoco")
def _refcoco(root: Path) -> None:
    refs, boxes, images, number = [], [], [], 0
    for i in range(5):
        images.append({"id": i, "file_name": f"COCO_train2014_{i:012d}.jpg", "width": SIZE[0], "height": SIZE[1]})
        save(root / f"train2014/COCO_train2014_{i:012d}.jpg", f"ref {i}")
        for k in range(3):
            number += 1
            boxes.append(
                {"id": number, "image_id": i, "category_id": 1 + k % 2, "bbox": [10.0 + 25 * k, 10.0, 20.0, 30.0]}
            )
            sentences = [
                {
                    "sent": f"{COLOURS[number % 12]} {THINGS[k]} {('on the left', 'in the middle', 'at the right')[k]}",
                    "sent_id": number,
                    "tokens": [],
                    "raw": "",
                }
            ]
            refs.append(
                {
                    "ref_id": number,
                    "ann_id": number,
                    "image_id": i,
                    "category_id": 1 + k % 2,
                    "split": "val",
                    "file_name": "",
                    "sent_ids": [],
                    "sentences": sentences,
                }
            )
    (root / "refcoco").mkdir(parents=True, exist_ok=True)
    (root / "refcoco/refs(unc).p").write_bytes(pickle.dumps(refs, protocol=2))
    put(root / "refcoco/instances.json", {"images": images, "annotations": boxes, "categories": []})


@raw_for("coco-counting")
def _counting(root: Path) -> None:
    rows = [
        {
            "Image_ID": f"COCO_val2014_{i:012d}.jpg",
            "Question": "how many cats ?",
            "Answer": i % 7,
            "Resolved_COCO_category": "cat",
        }
        for i in range(N)
    ]
    put(root / "countqa.json", rows)
    for row in rows:
        save(root / "val2014" / row["Image_ID"], "count")


def _vqa_files(root: Path, questions: str, annotations: str, okvqa: bool) -> None:
    asked, labels = [], []
    for i in range(3 * N):
        image, number = i // 3, 1000 + i
        kind = ("what color is", "is the", "how many", "what animal is")[i % 4]
        answer = {0: COLOURS[i % 12], 1: ("yes", "no")[i // 4 % 2], 2: str(i % 6), 3: ANIMALS[i % 12]}[i % 4]
        rest = (
            f"the {THINGS[i % 12]}",
            f"{ANIMALS[i % 12]} asleep",
            f"{many(THINGS[i % 12])} are there",
            f"near the {THINGS[i // 3]}",
        )
        asked.append({"image_id": image, "question": f"{kind} {rest[i % 4]}?", "question_id": number})
        answers = [{"answer": answer, "answer_confidence": "yes", "answer_id": k + 1} for k in range(9)] + [
            {"answer": f"dark {answer}" if i % 4 == 0 else "not sure", "answer_confidence": "no", "answer_id": 10}
        ]
        label = {
            "question_id": number,
            "image_id": image,
            "question_type": kind,
            "answer_type": ("other", "yes/no", "number", "other")[i % 4],
            "answers": answers,
        }
        labels.append(label if okvqa else label | {"multiple_choice_answer": answer})
        save(root / f"val2014/COCO_val2014_{image:012d}.jpg", f"vqa {image}")
    put(
        root / questions,
        {
            "info": {},
            "task_type": "Open-Ended",
            "data_type": "mscoco",
            "license": {},
            "data_subtype": "val2014",
            "questions": asked,
        },
    )
    put(root / annotations, {"info": {}, "license": {}, "annotations": labels})


@raw_for("vqa-v2", "vqa-mt")
def _vqa(root: Path) -> None:
    _vqa_files(root, "v2_OpenEnded_mscoco_val2014_questions.json", "v2_mscoco_val2014_annotations.json", False)


@raw_for("ok-vqa")
def _okvqa(root: Path) -> None:
    _vqa_files(root, "OpenEnded_mscoco_val2014_questions.json", "mscoco_val2014_annotations.json", True)


@raw_for("gqa")
def _gqa(root: Path) -> None:
    rows = {}
    for i in range(2 * N):
        kind = ("query", "verify", "choose", "verify")[i % 4]
        answer = (THINGS[i % 12], ("yes", "no")[i // 2 % 2], COLOURS[i // 4 % 2])[(0, 1, 2, 1)[i % 4]]
        types = {"detailed": "categoryThat", "semantic": "obj", "structural": kind}
        question = {
            "query": f"What is in front of the {ANIMALS[i % 12]}?",
            "verify": f"Is there a {THINGS[(i + 5) % 12]} to the left of the {ANIMALS[i % 12]}?",
            "choose": f"Is the {THINGS[i % 12]} red or green?",
        }[kind]
        rows[f"20{i:06d}"] = {
            "question": question,
            "imageId": f"n{i}",
            "answer": answer,
            "types": types,
            "isBalanced": True,
            "fullAnswer": "",
            "semantic": [],
        }
        save(root / f"images/n{i}.jpg", f"gqa {i}")
    put(root / "testdev_balanced_questions.json", rows)


@raw_for("whoops")
def _whoops(root: Path) -> None:
    rows = []
    for i in range(N):
        pairs = [
            ["What is on the plate?", f"{a(COLOURS[i])} {THINGS[i]}"],
            [f"What does the {ANIMALS[i]} hold?", f"a toy {THINGS[-1 - i]}"],
        ]
        rows.append(
            {
                "image_id": f"img-{i}",
                "selected_caption": "c",
                "crowd_captions": "[]",
                "question_answering_pairs": json.dumps(pairs),
                "commonsense_category": "x",
            }
        )
        save(root / f"whoops_images/img-{i}.png", f"odd {i}")
    put(root / "whoops_dataset.csv", table(rows))


@raw_for("scienceqa")
def _scienceqa(root: Path) -> None:
    rows = {}
    for i in range(N):
        rows[str(i)] = {
            "question": f"Which of them is heavier, the {ANIMALS[i]} or the {THINGS[(i + 4) % 12]}?", "choices": [f"the {ANIMALS[i]}", f"the {THINGS[(i + 4) % 12]}", "neither"][: 2 + i % 2], "answer": i % 2,
            "hint": "The scale leans to one side." if i % 3 else "", "image": "image.png" if i % 4 != 3 else None, "task": "closed choice", "grade": "grade4",
            "subject": "natural science", "topic": "physics", "category": "", "skill": "", "lecture": "", "solution": "", "split": "test",
        }  # fmt: skip
        save(root / f"test/{i}/image.png", f"science {i}")
    put(root / "problems.json", rows)


@raw_for("vizwiz")
def _vizwiz(root: Path) -> None:
    rows = []
    for i in range(2 * N):
        answer = THINGS[i % 12] if i % 5 else "unanswerable"
        answers = [{"answer": answer, "answer_confidence": "yes"} for _ in range(10)]
        rows.append(
            {
                "image": f"VizWiz_val_{i:08d}.jpg",
                "question": "What is this?",
                "answers": answers,
                "answer_type": "other",
                "answerable": int(i % 5 > 0),
            }
        )
        save(root / "val" / rows[-1]["image"], answer)
    put(root / "Annotations/val.json", rows)


@raw_for("viquae", "k-viquae")
def _viquae(root: Path) -> None:
    people = ("Ada Lovelace", "Alan Turing", "Grace Hopper", "Emmy Noether")
    countries = ("Portugal", "Norway", "Peru", "Japan")
    asked = (("Who is this mathematician?", people), ("In which country was this bridge built?", countries))
    asked += (("In what year was this tower finished?", ("1889", "1931", "1973", "2004")),)
    rows = []
    for i in range(N):
        question, answers = asked[i % 3]
        name = answers[i // 3]
        given = [name, name.split()[1]] if i % 3 == 0 else [name]
        output = {"answer": given, "original_answer": name, "provenance": [{"title": [name]}]}
        rows.append(
            {
                "id": f"qw_{i}",
                "input": question,
                "output": output,
                "image": f"p{i}.jpg",
                "url": "",
                "provenance_indices": [i],
            }
        )
        save(root / f"images/p{i}.jpg", name)
    put(root / "test.jsonl", lines(rows))
    put(
        root / "passages.jsonl",
        lines([{"index": i, "passage": f" Chapter {i + 1} tells the story in full. "} for i in range(N)]),
    )


@raw_for("a-okvqa", "a-okvqra", "a-okvqar")
def _aokvqa(root: Path) -> None:
    rows = []
    for i in range(N):
        choices = [THINGS[(i + k) % 12] for k in range(4)]
        why = ("stands right beside it", "is the nearest thing in the picture", "can be seen at its side")
        reasons = [f"The {COLOURS[i]} {choices[i % 4]} {reason}." for reason in why]
        rows.append({"split": "val", "image_id": i, "question_id": f"q{i}", "question": f"What is next to the {ANIMALS[i]}?", "choices": choices, "correct_choice_idx": i % 4,
                     "direct_answers": [choices[i % 4]] * 10, "difficult_direct_answer": False, "rationales": reasons})  # fmt: skip
        save(root / f"val2017/{i:012d}.jpg", f"aok {i}")
    put(root / "aokvqa_v1p0_val.json", rows)


@raw_for("imagenetvc")
def _imagenetvc(root: Path) -> None:
    put(root / "ImageNet_mapping.txt", "n01 tench, Tinca tinca\nn02 hen\nn03 bus\n")
    names = ("tench", "hen", "bus")
    answers = {
        "color": COLOURS[:6],
        "shape": ("round", "square", "oval", "curved", "straight"),
        "component": ("yes", "no"),
    }
    for kind, values in answers.items():
        put(
            root / f"dataset/{kind}.csv",
            table(
                [
                    {
                        "category": names[i % 3],
                        "question": {
                            "color": f"What is the color of a {names[i % 3]}?",
                            "shape": f"What shape is a {names[i % 3]}?",
                            "component": f"Does a {names[i % 3]} have {('wings', 'wheels', 'a tail', 'fins')[i % 4]}?",
                        }[kind],
                        "answer": values[i % len(values)],
                    }
                    for i in range(N)
                ]
            ),
        )
    for synset in ("n01", "n02", "n03"):
        save(root / f"images/{synset}/{synset}_1.JPEG", synset)


@raw_for("clevr")
def _clevr(root: Path) -> None:
    kinds = (
        ("query_color", "cyan"),
        ("query_shape", "cube"),
        ("query_size", "small"),
        ("exist", "yes"),
        ("count", "3"),
        ("query_material", "metal"),
    )
    questions = (
        "What color is the thing left of the big cube?",
        "What shape is the thing behind the red sphere?",
        "What size is the cylinder in front of the green thing?",
        "Is there a metal cube to the right of the small sphere?",
        "How many things are left of the purple cylinder?",
        "What is the ball to the right of the brown block made of?",
    )
    rows = []
    for i in range(N):
        kind, answer = kinds[i % 6]
        program = [
            {"function": "scene", "inputs": []},
            {"function": "relate", "inputs": [0], "value_inputs": ["left"]},
            {"function": kind, "inputs": [1]},
        ]
        rows.append(
            {
                "split": "val",
                "image_filename": f"CLEVR_val_{i:06d}.png",
                "image_index": i,
                "question_index": i,
                "question": questions[i % 6],
                "answer": answer,
                "program": program,
            }
        )
        save(root / f"images/val/CLEVR_val_{i:06d}.png", f"clevr {i}")
    rows.append({**rows[0], "question_index": 99, "program": rows[0]["program"][::2]})
    put(root / "questions/CLEVR_val_questions.json", {"info": {}, "questions": rows})


@raw_for("vsr")
def _vsr(root: Path) -> None:
    relations = ("left of", "above", "in front of", "facing", "surrounding")
    rows = []
    for i in range(2 * N):
        relation = relations[i % 5]
        rows.append(
            {
                "image": f"{i:012d}.jpg",
                "image_link": "",
                "caption": f"The {THINGS[i % 12]} is {relation} the {THINGS[(i + 1) % 12]}.",
                "label": i % 2,
                "relation": relation,
                "subj": "",
                "obj": "",
            }
        )
        save(root / f"images/{i:012d}.jpg", f"vsr {i}")
    put(root / "splits/random/test.jsonl", lines(rows))


@raw_for("mp3d")
def _mp3d(root: Path) -> None:
    head = ["ASCII 1.1", "H house1 label 1 1 0 0 1 1 0 8 6 0 1 1 0 0 0 0 0 0 0"]
    body = [
        f"C {i} {i} {name.replace(' ', '#')} {i} {name} 0 0 0 0 0"
        for i, name in enumerate(("table", "chair", "sofa", "lamp"))
    ]
    body += ["R 0 0 0 0 k 0 0 0 0 0 0 0 0 0 0", "P pano0 0 0 0 0 0 0"]
    identity = "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"
    for i in range(3):
        body.append(f"I {i} 0 pano0 {i} 0 {identity} 500 0 320 0 500 256 0 0 1 640 512 0 0 0")
    places = ((-1.5, 0, -4), (0.2, 0.1, -4.1), (1.6, 0, -4), (0.3, 0, -7))
    body += [f"O {i} 0 {i} {x} {y} {z} 1 0 0 0 1 0 1 1 1" for i, (x, y, z) in enumerate(places)]
    put(root / "v1/scans/house1/house_segmentations/house1.house", "\n".join(head + body) + "\n")
    for i in range(3):
        save(root / f"v1/views/house1/pano0_i{i}_0.jpg", f"view {i}")


@raw_for("visdial")
def _visdial(root: Path) -> None:
    answers = [f"{a(COLOURS[i % 12])} {THINGS[i // 12]}" for i in range(120)] + ["yes", "no"]
    places = (
        "on the table",
        "by the door",
        "on the wall",
        "in the corner",
        "near the window",
        "on the floor",
        "behind her",
    )
    places += ("in his hand", "under the bed", "on the shelf", "across the street", "at the back")
    questions = [f"what do you see {place}" for place in places]
    dialogs, dense = [], []
    for d in range(4):
        turns = []
        for r in range(12):
            gold = (7 * d + r) % 100
            turns.append({"question": r, "answer": gold, "gt_index": gold, "answer_options": list(range(100))})
            dense.append(
                {
                    "image_id": 500 + d,
                    "round_id": r + 1,
                    "gt_relevance": [1.0 if k == gold else 0.5 if k % 5 == 0 else 0.0 for k in range(100)],
                }
            )
        dialogs.append({"image_id": 500 + d, "caption": "a card", "dialog": turns})
        save(root / f"VisualDialog_val2018/VisualDialog_val2018_{500 + d:012d}.jpg", f"dialog {d}")
    put(
        root / "visdial_1.0_val.json",
        {
            "version": "1.0",
            "split": "val2018",
            "data": {"questions": questions, "dialogs": dialogs, "answers": answers},
        },
    )
    put(root / "visdial_1.0_val_dense_annotations.json", dense)


@raw_for("wikihow")
def _wikihow(root: Path) -> None:
    rows = []
    for i in range(3):
        steps = [
            {
                "headline": f"{verb} the {('carrots', 'rice', 'beans')[i]} well.",
                "description": "",
                "img": "",
                "step_id": f"{i}_0_{k}",
            }
            for k, verb in enumerate(("Wash", "Cut", "Boil", "Serve", "Eat"))
        ]
        rows.append(
            {
                "file_id": str(i),
                "goal": f"How to Cook {('Carrots', 'Rice', 'Beans')[i]}",
                "goal_description": "",
                "category_hierarchy": [],
                "methods": [{"name": f"Cooking {('Carrots', 'Rice', 'Beans')[i]}", "steps": steps}],
            }
        )
        for step in steps:
            save(root / f"wiki_images/{step['step_id']}.png", step["step_id"])
    put(root / "WikihowText_data.json", lines(rows))


@raw_for("winoground")
def _winoground(root: Path) -> None:
    rows = [{"id": i, "image_0": f"ex_{i}_img_0", "image_1": f"ex_{i}_img_1", "caption_0": f"a {THINGS[i]} on a {THINGS[-1 - i]}", "caption_1": f"a {THINGS[-1 - i]} on a {THINGS[i]}",
             "tag": "Noun", "secondary_tag": "", "num_main_preds": 1, "collapsed_tag": "Object"} for i in range(5)]  # fmt: skip
    put(root / "examples.jsonl", lines(rows))
    for row in rows:
        save(root / f"images/{row['image_0']}.png", row["image_0"])
        save(root / f"images/{row['image_1']}.png", row["image_1"])


@raw_for("snli-ve")
def _snli(root: Path) -> None:
    labels = ("entailment", "neutral", "contradiction")
    rows = [
        {
            "Flickr30K_ID": str(i),
            "gold_label": labels[i % 3],
            "sentence1": "p",
            "sentence2": f"Some {FOLK[i]} look at a {THINGS[i]}.",
            "pairID": f"{i}.jpg#0r1",
            "captionID": "",
            "annotator_labels": [],
        }
        for i in range(N)
    ]
    put(root / "snli_ve_dev.jsonl", lines(rows))
    for i in range(N):
        save(root / f"flickr30k-images/{i}.jpg", f"flickr {i}")


@raw_for("mocheg")
def _mocheg(root: Path) -> None:
    claims = [
        {
            "claim_id": i,
            "Claim": f" {a(ANIMALS[i]).capitalize()} was elected mayor of a small town. ",
            "Evidence": f"<p>The town's council voted on Sunday.</p><p>Report {i} says so.</p>",
            "cleaned_truthfulness": ("supported", "refuted", "NEI")[i % 3],
        }
        for i in range(N)
    ]
    put(root / "test/Corpus2.csv", table(claims))
    put(
        root / "test/img_evidence_qrels.csv",
        table([{"TOPIC": i, "ITERATION": 0, "DOCUMENT#": f"{i}-proof-0.jpg", "RELEVANCY": 1} for i in range(N)]),
    )
    for i in range(N):
        save(root / f"images/{i}-proof-0.jpg", f"claim {i}")


@raw_for("grounded-ic15")
def _ic15_regions(root: Path) -> None:
    for i in range(1, 5):
        put(
            root / f"Challenge4_Test_Task1_GT/gt_img_{i}.txt",
            f"\ufeff10,10,40,12,40,30,10,28,WORD{i}\n50,10,80,10,80,30,50,30,###\n50,40,80,40,80,60,50,60,a,b {i}\n",
        )
        save(root / f"ch4_test_images/img_{i}.jpg", f"WORD{i}")


@raw_for("ic15")
def _ic15_words(root: Path) -> None:
    put(root / "Challenge4_Test_Task3_GT.txt", "\ufeff" + "".join(f'word_{i}.png, "W{i},x"\n' for i in range(1, N + 1)))
    for i in range(1, N + 1):
        save(root / f"ch4_test_word_images_gt/word_{i}.png", f"W{i}")


def _regions(root: Path, name: str, folder: str, image_id: Callable[[int], Any]) -> None:
    images, anns = {}, {}
    for i in range(5):
        file = f"{folder}{i:012d}.jpg"
        images[str(image_id(i))] = {
            "id": image_id(i),
            "set": "val" if i else "train",
            "width": SIZE[0],
            "height": SIZE[1],
            "file_name": file,
        }
        save(root / ("train2014" if not folder else ".") / file, f"TEXT {i}")
        for k in range(2):
            anns[f"{i}{k}"] = {
                "id": f"{i}{k}",
                "image_id": image_id(i),
                "bbox": [5.0 + 40 * k, 30.0, 35.0, 20.0],
                "utf8_string": WORDS[2 * i + k] if k == 0 or i % 2 else ".",
                "legibility": "legible",
            }
    put(root / name, {"imgs": images, "anns": anns, "imgToAnns": {}})


@raw_for("grounded-coco-text", "coco-text")
def _cocotext(root: Path) -> None:
    _regions(root, "cocotext.v2.json", "", lambda i: 900 + i)


@raw_for("grounded-textocr", "textocr")
def _textocr(root: Path) -> None:
    _regions(root, "TextOCR_0.1_val.json", "train/", lambda i: f"a{i}f")


@raw_for("cute80")
def _cute(root: Path) -> None:
    put(root / "label.txt", "".join(f"{i}.jpg {WORDS[i]}\n" for i in range(N)))
    for i in range(N):
        save(root / f"images/{i}.jpg", f"WORD{i}")


@raw_for("wordart")
def _wordart(root: Path) -> None:
    put(root / "test_label.txt", "".join(f"test_image/{i}.png\t{WORDS[i].title()}\n" for i in range(N)))
    for i in range(N):
        save(root / f"test_image/{i}.png", f"ART {i}")


@raw_for("iiit5k")
def _iiit5k(root: Path) -> None:
    import numpy as np
    from scipy.io import savemat

    kinds = [("ImgName", object), ("GroundTruth", object), ("smallLexi", object)]
    rows = np.array(
        [[(f"test/{i}.png", f"{WORDS[-1 - i]}", np.array(["A", "B"], dtype=object)) for i in range(N)]], dtype=kinds
    )
    root.mkdir(parents=True, exist_ok=True)
    savemat(root / "testdata.mat", {"testdata": rows}, do_compression=True)
    for i in range(N):
        save(root / f"test/{i}.png", f"LONGWORD{i}")


@raw_for("funsd")
def _funsd(root: Path) -> None:
    for i in range(3):
        form = []
        for k in range(3):
            form.append(
                {
                    "id": 2 * k,
                    "text": ("NAME:", "DATE:", "AMOUNT:")[k],
                    "box": [1, 1, 9, 9],
                    "label": "question",
                    "linking": [[2 * k, 2 * k + 1]],
                    "words": [],
                }
            )
            form.append(
                {
                    "id": 2 * k + 1,
                    "text": (("J. Smith", "A. Jones", "B. Brown")[i], f"{i + 1} May 1996", f"${i + 2}00")[k],
                    "box": [1, 1, 9, 9],
                    "label": "answer",
                    "linking": [[2 * k, 2 * k + 1]],
                    "words": [],
                }
            )
        form.append({"id": 90, "text": "TITLE", "box": [0, 0, 1, 1], "label": "header", "linking": [], "words": []})
        put(root / f"testing_data/annotations/page{i}.json", {"form": form})
        save(root / f"testing_data/images/page{i}.png", f"form {i}")


@raw_for("poie")
def _poie(root: Path) -> None:
    rows = [
        {
            "file_name": f"image_files/p{i}.jpg",
            "height": 72,
            "width": 96,
            "annotations": [],
            "entity_dict": {"CE": f"{i}00 kJ", "TF": f"{i} g", "SO": ""},
        }
        for i in range(5)
    ]
    put(root / "test.txt", lines(rows))
    for i in range(5):
        save(root / f"image_files/p{i}.jpg", f"poie {i}")


@raw_for("sroie")
def _sroie(root: Path) -> None:
    for i in range(4):
        put(
            root / f"test/entities/X{i}.txt",
            {"company": f"SHOP {i}", "date": "01/02/2018", "address": f"{i} MAIN ROAD", "total": f"{i}.50"},
        )
        save(root / f"test/img/X{i}.jpg", f"SHOP {i}")


@raw_for("textvqa")
def _textvqa(root: Path) -> None:
    rows = [
        {
            "question": f"what is the brand of the {THINGS[i]}?",
            "image_id": f"i{i}",
            "image_classes": [],
            "answers": [f"brand{i}"] * 9 + ["other"],
            "question_tokens": [],
            "question_id": i,
            "set_name": "val",
        }
        for i in range(N)
    ]
    put(
        root / "TextVQA_0.5.1_val.json",
        {"dataset_type": "val", "dataset_name": "textvqa", "dataset_version": "0.5.1", "data": rows},
    )
    for i in range(N):
        save(root / f"train_images/i{i}.jpg", f"brand{i}")


@raw_for("docvqa")
def _docvqa(root: Path) -> None:
    rows = [
        {
            "questionId": i,
            "question": f"What is the date of invoice {100 + i}?",
            "image": f"documents/d{i}.png",
            "docId": i,
            "ucsf_document_id": "",
            "ucsf_document_page_no": "1",
            "answers": [f"{i} May", f"May {i}"],
            "data_split": "val",
        }
        for i in range(N)
    ]
    put(
        root / "val_v1.0.json",
        {"dataset_name": "docvqa", "dataset_version": "1.0", "dataset_split": "val", "data": rows},
    )
    for i in range(N):
        save(root / f"documents/d{i}.png", f"{i} May")


@raw_for("ocr-vqa")
def _ocrvqa(root: Path) -> None:
    rows = {
        f"B{i}": {
            "imageURL": "",
            "questions": ["What is the title?", "Who wrote it?"],
            "answers": [f"The {WORDS[i].title()}", f"{FOLK[i].title()} & Sons"],
            "title": "",
            "authorName": "",
            "genre": "",
            "split": 3 if i % 3 else 1,
        }
        for i in range(N)
    }
    put(root / "dataset.json", rows)
    for name in rows:
        save(root / f"images/{name}.jpg", name)


@raw_for("textcaps")
def _textcaps(root: Path) -> None:
    rows = [
        {
            "image_id": f"t{i}",
            "caption_id": 5 * i + k,
            "caption_str": f"a sign {k}",
            "reference_strs": [
                f"{a(COLOURS[i])} sign {words}" for words in ("says stop", "with white letters", "on a pole")
            ],
        }
        for i in range(N)
        for k in range(2)
    ]
    put(
        root / "TextCaps_0.1_val.json",
        {"dataset_type": "val", "dataset_name": "textcaps", "dataset_version": "0.1", "data": rows},
    )
    for i in range(N):
        save(root / f"train_images/t{i}.jpg", f"sign {i}")


@raw_for("nocaps")
def _nocaps(root: Path) -> None:
    images = [
        {
            "id": i,
            "file_name": f"nc{i}.jpg",
            "width": 96,
            "height": 72,
            "domain": ("in-domain", "near-domain", "out-domain")[i % 3],
            "open_images_id": f"nc{i}",
        }
        for i in range(N)
    ]
    captions = [
        {"id": 10 * i + k, "image_id": i, "caption": f"{CAPTIONS[i][k % 2]}" if k < 2 else f"a {THINGS[i]} is seen"}
        for i in range(N)
        for k in range(3)
    ]
    put(root / "nocaps_val_4500_captions.json", {"licenses": [], "info": {}, "images": images, "annotations": captions})
    for i in range(N):
        save(root / f"val/nc{i}.jpg", f"nocaps {i}")


@raw_for("flickr30k")
def _flickr(root: Path) -> None:
    put(
        root / "results_20130124.token",
        "".join(
            f"{i}.jpg#{k}\t{FOLK[i].title()} walk past the {THINGS[k]} outside .\n" for i in range(N) for k in range(5)
        ),
    )
    put(root / "test.txt", "".join(f"{i}\n" for i in range(N - 2)))
    for i in range(N):
        save(root / f"flickr30k-images/{i}.jpg", f"people {i}")


@raw_for("blink")
def _blink(root: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = []
    for i in range(8):
        out = io.BytesIO()
        picture(f"blink {i}").save(out, "PNG")
        image = {"bytes": out.getvalue(), "path": None}
        rows.append({"idx": f"val_Counting_{i}", "question": f"How many {i}?", "sub_task": "Counting", "prompt": "p", "image_1": image, "image_2": image if i % 2 else None,
                     "image_3": None, "image_4": None, "choices": ["1", "2", "3", "4"], "answer": f"({'ABCD'[i % 4]})"})  # fmt: skip
    path = root / "Counting/val-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


# ---- prepared -------------------------------------------------------------------------------------------------


def prepared(slug: str, root: Path, card: dict[str, Any], count: int = N) -> None:
    """Write the prepared file of one card in the hub's layout: base64 pictures in one JSON document."""
    table = card["dataset"]["prepared"]
    layout = table.get("layout", "rows")
    {"rows": _rows, "typed": _typed, "counts": _counts, "dialogues": _dialogues}[layout](root, table, count)


def _wrap(table: dict[str, Any], rows: list[Any]) -> Any:
    return rows if table.get("pointer") == [] else {**table.get("header", {}), "data": rows}


def _rows(root: Path, table: dict[str, Any], count: int) -> None:
    rows = [_row(table, i) for i in range(count)]
    put(root / table["file"], _wrap(table, rows))


def _row(table: dict[str, Any], i: int) -> dict[str, Any]:
    columns, box = table["columns"], table.get("box", "xywh")
    options = [f"{COLOURS[(i + k) % 12]} {THINGS[(i + k) % 12]}" for k in range(4)]
    has_options = "options" in columns or "options" in table
    size = len(table["options"]) if "options" in table else 4
    values: dict[str, Any] = {
        "id": i, "image": encode(f"prep {i}"), "question": f"what is it {i}?", "options": options,
        "answer": i % size if table.get("answer") == "index" else options[i % 4] if has_options else f"text {i}",
        "references": [f"a card {i}", f"one card number {i}"], "wordings": [f"wording {k} of {i}?" for k in range(5)],
        "box": [[10, 12, 60, 50]] if box == "corners" and columns.get("box") == "region" else [10, 12, 60, 50],
    }  # fmt: skip
    if table["file"].startswith("huggingface_data/MSCOCO/mos"):
        values["box"] = [[5, 5, 20, 20], [30, 5, 20, 20]]
    if columns.get("image") == "image_id" and columns.get("answer") == "answer" and not has_options:
        values["answer"] = [f"text {i}", f"texts {i}"]
    row = {column: values.get(field, f" {field} {i} ") for field, column in columns.items()}
    if "question" in table and "{question}" in table["question"]:
        row["question"] = values["question"]
        row.setdefault("answer", "an answer")
    return row


def _typed(root: Path, table: dict[str, Any], count: int) -> None:
    kind, questions, labels = table["question_type"], [], []
    for i in range(count):
        image = encode(f"tdiuc {i % 4}")
        questions.append({"question_id": i, "image_id": image, "question": f"what {kind} {i}?"})
        for_kind = kind if i % 4 else "absurd"
        answer = ("yes" if i % 3 == 0 else THINGS[i % 6]) if kind == "scene_recognition" else THINGS[i % 6]
        labels.append(
            {
                "question_id": i,
                "image_id": image,
                "question_type": for_kind,
                "answers": [{"answer": answer}],
                "ans_source": "x",
            }
        )
    put(root / table["file"], questions)
    put(root / table["labels"], labels[::-1])
    put(root / f"{table['choices']}{kind}.json", list(THINGS))


def _counts(root: Path, table: dict[str, Any], count: int) -> None:
    put(
        root / table["file"],
        [
            {
                "Image_ID": encode(f"count {i}"),
                "Question": "how many cats ?",
                "Answer": i % 6,
                "Resolved_COCO_category": "cat",
            }
            for i in range(count)
        ],
    )
    put(root / table["choices"], list(range(12)))


def _dialogues(root: Path, table: dict[str, Any], count: int) -> None:
    answers = [f"{COLOURS[i % 12]} {THINGS[i % 11]}" for i in range(40)]
    dialogs = []
    for d in range(max(2, count // 4)):
        turns = [
            {"question": r, "answer": (d + r) % 40, "answer_options": [(d + r + k) % 40 for k in (3, 0, 7, 11)]}
            for r in range(12)
        ]
        dialogs.append({"image_id": 70 + d, "image_base64": encode(f"dialog {d}"), "caption": "c", "dialog": turns})
    data = {"dialogs": dialogs, "questions": [f"what of {r}" for r in range(12)], "answers": answers}
    put(root / table["file"], {**table["header"], "data": data})


if __name__ == "__main__":
    import tomllib

    out = Path(sys.argv[1])
    cards = Path(__file__).resolve().parents[1] / "src/snellen/catalog/datasets/reform"
    for path in sorted(cards.glob("*.toml")):
        raw(path.stem, out / "raw" / path.stem)
        prepared(path.stem, out / "prepared" / path.stem, tomllib.loads(path.read_text(encoding="utf-8")))
