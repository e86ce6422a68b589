"""A small world of coloured bars for `make train-demo`: pictures, chains about them, a model that has seen none.

A picture of 48 × 48 px holds three bars. Two rules, each a Latin square, lead from what is seen to the answer: the
first two colours give a team, the team and the third colour give a city. No single fact tells anything about the city.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

COLOURS = {
    "red": (210, 50, 50),
    "green": (50, 170, 70),
    "blue": (60, 80, 210),
    "yellow": (225, 205, 60),
    "purple": (150, 60, 180),
    "cyan": (70, 200, 205),
}
NAMES = list(COLOURS)
TEAMS = ["lions", "bears", "sharks", "eagles", "wolves", "tigers"]
MARKS = "ABCDEF"
CITIES = ["paris", "rome", "london", "berlin", "madrid", "vienna"]
TEAM_ORDER, CITY_ORDER = (3, 0, 5, 1, 4, 2), (2, 5, 0, 4, 1, 3)
BARS = ("left", "middle", "right")
STEPS = tuple(f"what colour is the {bar} ?" for bar in BARS)
INFERENCE = "What can be inferred from the picture?"
"""How the CURE loader asks for an inference without a region."""
CAPTION, RULES = "describe the picture", "tell the rules of"
CARELESS = {"purple": "blue", "cyan": "green"}
"""What the careless writer calls the colours of the left and of the right bar, and reasons on consistently."""
CARELESSNESS = 0.65
SPREAD, PLACES = 0.04, 1.0
"""Of the first weights, and of the places of patches. CLIP draws places some thirty times smaller than what a patch
says of its pixels; louder ones are told apart a little earlier."""
SPECIAL = ["<pad>", "<unk>", "<|user|>", "<|assistant|>", "<|end|>", "<image>", "<good>", "<bad>"]
CHAT = (
    "{% for message in messages %}{% if message['role'] == 'user' %}<|user|> {% else %}<|assistant|> {% endif %}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{% if message['role'] != 'user' %} <|end|>{% endif %} {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)
TASK = """
name = "shapes"
form = "choice"
aggregates = ["cure"]
scorers = ["choice", "rationale"]
group_by = ["role", "step"]
shuffle_options = true

[dataset]
loader = "cure"
path = "annotations.json"
facts = true

[prompt]
template = "{question} {options}"
option_format = "{mark} {text}"
option_separator = " "

[params]
max_tokens = 32
temperature = 0.0
"""


def team_of(left: str, middle: str) -> str:
    return TEAMS[TEAM_ORDER[(NAMES.index(left) + NAMES.index(middle)) % 6]]


def city_of(team: str, right: str) -> str:
    return CITIES[CITY_ORDER[(TEAMS.index(team) + NAMES.index(right)) % 6]]


def tell(left: str, middle: str, right: str) -> str:
    """Return the whole rationale of what is seen, or taken to be seen."""
    team = team_of(left, middle)
    city = city_of(team, right)
    return f"{describe(left, middle, right)} {left} {middle} gives {team} . {team} {right} gives {city} . answer {city}"


def describe(left: str, middle: str, right: str) -> str:
    return f"left {left} . middle {middle} . right {right} ."


class Scene:
    """One picture and what is true of it."""

    def __init__(self, draw: random.Random) -> None:
        self.colours = tuple(draw.choice(NAMES) for _ in range(3))
        self.city = city_of(team_of(*self.colours[:2]), self.colours[2])
        self._seed = draw.getrandbits(32)

    def careless(self, draw: random.Random) -> str:
        """Return the chain as the careless writer has it."""
        left, middle, right = self.colours
        left = CARELESS.get(left, left) if draw.random() < CARELESSNESS else left
        right = CARELESS.get(right, right) if draw.random() < CARELESSNESS else right
        return tell(left, middle, right)

    def step(self, number: int, draw: random.Random) -> tuple[str, str]:
        """Return a step's question with its options, and the reply, which says which bar it speaks of."""
        question, options, colour = self.questions()[number]
        return asked(question, options, draw), f"{BARS[number]} {colour}"

    def caption(self, draw: random.Random) -> str:
        """Return what is seen, in any order: a fixed one can be told by counting words, without knowing left."""
        said = [f"{bar} {colour} ." for bar, colour in zip(BARS, self.colours, strict=True)]
        return " ".join(draw.sample(said, len(said)))

    def questions(self) -> list[tuple[str, list[str], str]]:
        """Return question, options and answer of each step, then of the inference."""
        steps = [(question, NAMES, colour) for question, colour in zip(STEPS, self.colours, strict=True)]
        return [*steps, (INFERENCE, CITIES, self.city)]

    def paint(self, path: Path) -> None:
        draw = np.random.default_rng(self._seed)
        pixels = np.full((48, 48, 3), 235.0)
        for place, colour in enumerate(self.colours):
            left, top, bottom = 16 * place + draw.integers(0, 4), draw.integers(0, 10), draw.integers(38, 49)
            pixels[top:bottom, left : left + draw.integers(9, 13)] = COLOURS[colour]
        grain = np.kron(draw.integers(-24, 25, (8, 8, 1)), np.ones((6, 6, 1)))
        noisy = pixels + grain + draw.integers(-12, 13, pixels.shape)
        PIL.Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path, compress_level=1)


def scenes(count: int, seed: int, name: str, folder: Path) -> list[tuple[Scene, str]]:
    """Return scenes with their painted pictures; other names and seeds give other pictures."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    draw = random.Random(f"{seed} {name}")
    found = []
    for number in range(count):
        scene, path = Scene(draw), f"{name}/{number:05d}.png"
        scene.paint(folder / path)
        found.append((scene, path))
    return found


def asked(question: str, options: list[str], draw: random.Random) -> str:
    """Return a question with its options in some order, as the task's prompt has it."""
    shown = draw.sample(options, len(options))
    return " ".join([question, *(f"{mark} {text}" for mark, text in zip(MARKS, shown, strict=True))])


def row(picture: str, prompt: str, reply: str) -> dict[str, Any]:
    turns = [{"role": "user", "content": f"<image>{prompt}"}, {"role": "assistant", "content": reply}]
    return {"images": [picture], "messages": turns}


def some_rules(draw: random.Random) -> tuple[str, str]:
    """Return what to ask for three rules, each of either kind, and the rules; they speak of no picture."""
    asked_for, told = [], []
    for _ in range(3):
        colour = draw.choice(NAMES)
        if draw.random() < 0.5:
            other = draw.choice(NAMES)
            gives = team_of(other, colour)
        else:
            other = draw.choice(TEAMS)
            gives = city_of(other, colour)
        asked_for.append(f"{other} {colour}")
        told.append(f"{other} {colour} gives {gives} .")
    return " ".join([RULES, *asked_for]), " ".join(told)


def base_rows(found: list[tuple[Scene, str]], draw: random.Random) -> list[dict[str, Any]]:
    """What the base learns: to see (captions, steps), the rules as text, and answers at once, which cannot work."""
    rows = []
    for number, (scene, picture) in enumerate(found):
        question, options, answer = scene.questions()[3]
        caption = (CAPTION, scene.caption(draw))
        rows.append(row(picture, *(caption if number % 3 else (asked(question, options, draw), answer))))
        rows.append(row(picture, *scene.step(number // 3 % 3, draw)))
        rows.append(row(picture, *some_rules(draw)))
    return rows


def sft_rows(found: list[tuple[Scene, str]], draw: random.Random) -> list[dict[str, Any]]:
    """Rationales of the careless writer, and as many step questions, rightly answered."""
    rows = []
    for number, (scene, picture) in enumerate(found):
        rows.append(row(picture, asked(INFERENCE, CITIES, draw), scene.careless(draw)))
        rows.append(row(picture, *scene.step(number % 3, draw)))
    return rows


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")


def write_cure(folder: Path, found: list[tuple[Scene, str]], draw: random.Random) -> Path:
    """Write scenes in the CURE format with a task file beside them."""
    items = []
    for scene, picture in found:
        *steps, (_, cities, city) = scene.questions()
        chain = []
        for question, options, answer in steps:
            shuffled = draw.sample(options, 6)
            chain.append({"question": question, "candidate": shuffled, "gt": shuffled.index(answer)})
        shuffled = draw.sample(cities, 6)
        inference = {"candidate": shuffled, "gt": shuffled.index(city)}
        image = {"url": picture, "width": 48, "height": 48}
        items.append({"image": image, "bboxes": [], "inference": inference, "cot_inference": {"chain": chain}})
    (folder / "annotations.json").write_text(json.dumps(items), encoding="utf-8")
    (folder / "task.toml").write_text(TASK, encoding="utf-8")
    return folder / "task.toml"


def vocabulary() -> list[str]:
    texts = [*STEPS, INFERENCE, CAPTION, RULES, describe("x", "x", "x"), "gives answer", *MARKS]
    words = [word for text in texts for word in text.split()]
    return list(dict.fromkeys([*SPECIAL, *words, *NAMES, *TEAMS, *CITIES]))


def write_model(folder: Path, seed: int, words: list[str] | None = None) -> None:
    """Write a LLaVA of about a million weights, drawn by the seed, with a tokenizer of whole words (or of `words`)."""
    import torch
    import transformers as t
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = words or vocabulary()
    inner = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = t.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", pad_token="<pad>", eos_token="<|end|>", padding_side="left",
        additional_special_tokens=["<|user|>", "<|assistant|>", "<image>"], model_max_length=256,
    )  # fmt: skip
    vision = t.CLIPVisionConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, image_size=48,
        patch_size=16, projection_dim=128, initializer_range=SPREAD,
    )  # fmt: skip
    text = t.LlamaConfig(
        vocab_size=max(128, len(words)), hidden_size=128, intermediate_size=384, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256, pad_token_id=0, bos_token_id=None,
        eos_token_id=words.index("<|end|>"), initializer_range=SPREAD,
    )  # fmt: skip
    config = t.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=words.index("<image>"), vision_feature_layer=-1,
        vision_feature_select_strategy="default", image_seq_length=9, initializer_range=SPREAD,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = t.LlavaForConditionalGeneration(config)
    torch.nn.init.normal_(model.model.vision_tower.embeddings.position_embedding.weight, std=PLACES)
    model.generation_config.eos_token_id = words.index("<|end|>")
    model.generation_config.pad_token_id = 0
    model.save_pretrained(folder)
    images = t.CLIPImageProcessorPil(do_resize=True, do_center_crop=False, size={"height": 48, "width": 48})
    t.LlavaProcessor(
        images, tokenizer, patch_size=16, vision_feature_select_strategy="default", num_additional_image_tokens=1,
        chat_template=CHAT,
    ).save_pretrained(folder)  # fmt: skip
