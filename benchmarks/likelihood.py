"""Likelihood on a shared prefix against scoring from scratch, generation through the engine against a hand-written loop, and peak memory.

A LLaVA of real architecture with random weights is built here. Ratios of one run; one line a bar.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np
import PIL.Image

import tiny_checkpoints
from snellen.core.types import Image, Params, Prediction, Request, TrialKey, Turn
from snellen.model.options import ModelOptions

COLOURS = ["red", "blue", "green", "orange", "yellow", "black", "white", "brown"]
THINGS = ["bus", "dog", "cat", "tree", "truck", "people", "street", "picture"]


def picture(seed: int) -> Image:
    """A noise picture as a data URL."""
    pixels = np.random.default_rng(seed).integers(0, 255, (240, 240, 3), dtype=np.uint8)
    out = io.BytesIO()
    PIL.Image.fromarray(pixels).save(out, "PNG")
    return Image(ref="data:image/png;base64," + base64.b64encode(out.getvalue()).decode())


def write_model(folder: Path) -> None:
    """A LLaVA with 576 image tokens: 12 layers of vision, 12 of language."""
    import torch
    import transformers as t

    torch.manual_seed(1)
    tok = tiny_checkpoints.tokenizer(bos=True)
    text = tiny_checkpoints.llama_config(
        hidden_size=384,
        intermediate_size=1024,
        num_hidden_layers=12,
        num_attention_heads=6,
        num_key_value_heads=6,
        max_position_embeddings=2048,
        initializer_range=0.05,
    )
    vision = tiny_checkpoints.vision_config(
        "clip_vision_model",
        hidden_size=192,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=3,
        image_size=240,
        patch_size=10,
        projection_dim=192,
    )
    config = t.LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tok.convert_tokens_to_ids("<image>"),
        image_seq_length=576,
    )
    t.LlavaForConditionalGeneration(config).save_pretrained(folder)
    images = t.CLIPImageProcessorPil(size={"shortest_edge": 240}, crop_size={"height": 240, "width": 240})
    t.LlavaProcessor(
        images,
        tok,
        patch_size=10,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tiny_checkpoints.CHAT,
    ).save_pretrained(folder)


def choices(count: int) -> tuple[str, ...]:
    """Option texts as choice questions have them: short noun phrases, some beginning alike."""
    return tuple(f"{COLOURS[i // 8]} {THINGS[i % 8]}" for i in range(count))


def unlike(count: int) -> tuple[str, ...]:
    """Option texts of two tokens or so that share nothing: the least a tree can do."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!?"
    return tuple(f"{letters[i]} {THINGS[i % 8]}" for i in range(count))


def load(folder: Path) -> Any:
    """The replica of a loaded model."""
    from snellen.model.local.transformers import create

    model = create(str(folder), ModelOptions(arguments={"keep_prefixes": 1, "batch_size": 8}))
    asyncio.run(model.check())
    return model


def median_of(
    repeats: int, work: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Median seconds (of this process's CPU: neighbours on the machine do not count) and the last result."""
    times, result = [], None
    for _ in range(repeats):
        start = clock()
        result = work()
        times.append(clock() - start)
    return statistics.median(times), result


def likelihood(folder: Path, report: Callable[..., None], quick: bool) -> None:
    """Shared prefix against K passes over prompt and candidate, image and all."""
    replica = load(folder)._replicas[0]
    for name, options in (("", choices(4)), ("", choices(16)), ("", choices(64)), (", nothing alike", unlike(64))):
        request = Request(
            TrialKey("bench", name),
            (Turn("user", "What is in the picture? Look well.", (picture(1),)),),
            choices=options,
        )
        score_shared(replica, request)
        fast, got = median_of(3 if quick else 7, lambda request=request: score_shared(replica, request))
        slow, want = median_of(1, lambda request=request: score_one_by_one(replica, request))
        apart = max(abs(a - b) for a, b in zip(got.loglikelihoods, want, strict=True))
        label = (
            f"likelihood K={len(options)}{name} ({got.usage.input_tokens}-token prefix, route {got.detail['route']})"
        )
        report(f"{label}: times faster, per K", slow / fast / len(options), 0.8, ">=")
        report(f"{label}: largest difference", apart, 1e-4, "<=")


def score_shared(replica: Any, request: Request) -> Prediction:
    """As the model does it, nothing kept from before."""
    replica.memory.clear()
    prediction: Prediction = replica.score(replica.prompter.prepare(request))
    return prediction


def score_one_by_one(replica: Any, request: Request) -> list[float]:
    """As a loop over candidates does it."""
    from snellen.model.local.candidate_scores import score_from_scratch

    values = []
    for choice in request.choices:
        prepared = replica.prompter.prepare(request)
        candidate = replica.prompter.encode_candidates(prepared.text, [choice], alone=False)[0][0]
        values.append(sum(score_from_scratch(replica.model, replica._inputs([prepared]), candidate)))
    return values


def generation(folder: Path, report: Callable[[str, float, float, str], None], samples: int) -> None:
    """Through the engine's batcher against a loop a user would write."""
    import torch

    from snellen.engine.call import Batcher

    requests = [
        Request(
            TrialKey("bench", str(i)),
            (Turn("user", "What is in the picture? " + "Look well. " * (i % 5), (picture(i),)),),
            Params(max_tokens=16, temperature=0),
        )
        for i in range(samples)
    ]
    model = load(folder)
    replica = model._replicas[0]

    async def through_engine() -> None:
        batcher = Batcher(model)
        await asyncio.gather(*(batcher.predict(request, {}) for request in requests))

    def by_hand() -> None:
        processor = replica.prompter.processor
        for start in range(0, samples, 8):
            batch = requests[start : start + 8]
            texts = [
                processor.apply_chat_template(
                    [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": r.messages[0].text}]}],
                    add_generation_prompt=True,
                    tokenize=False,
                )
                for r in batch
            ]
            images = [
                [
                    PIL.Image.open(io.BytesIO(base64.b64decode(r.messages[0].images[0].ref.partition(",")[2]))).convert(
                        "RGB"
                    )
                ]
                for r in batch
            ]
            inputs = processor(text=texts, images=images, padding=True, return_tensors="pt")
            with torch.inference_mode():
                out = replica.model.generate(**inputs, max_new_tokens=16, do_sample=False)
            processor.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)

    by_hand()
    ratios = []
    for _ in range(3 if samples < 32 else 5):
        hand, _ = median_of(1, by_hand)
        engine, _ = median_of(1, lambda: asyncio.run(through_engine()))
        ratios.append(hand / engine)
    report("generation through the engine against a hand-written batch loop", statistics.median(ratios), 0.9, ">=")


def peak(folder: Path, samples: int, choices_count: int) -> float:
    """Peak resident memory (MB), weights included, of a process that answers `samples` requests once its model is loaded."""
    code = [sys.executable, __file__, "--worker", str(folder), str(samples), str(choices_count)]
    return float(json.loads(subprocess.run(code, check=True, capture_output=True, text=True).stdout)["peak_mb"])


def worker(folder: Path, samples: int, count: int) -> None:
    """Score (or generate, when count is 0) in this process and print its peak memory."""
    model = load(folder)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of loading is not the question
    requests = [
        Request(
            TrialKey("bench", str(i)),
            (Turn("user", "What?", (picture(i),)),),
            Params(max_tokens=8),
            choices=choices(count),
        )
        for i in range(samples)
    ]

    async def run() -> None:
        from snellen.engine.call import Batcher

        batcher = Batcher(model)
        await asyncio.gather(*(batcher.predict(request, {}) for request in requests))

    asyncio.run(run())
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(json.dumps({"peak_mb": int(status["VmHWM"].split()[0]) / 1024}))


def main() -> None:
    """Run all bars."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--worker", nargs=3)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(Path(arguments.worker[0]), int(arguments.worker[1]), int(arguments.worker[2]))
        return
    failures = 0

    def report(name: str, value: float, bar: float, sense: str) -> None:
        nonlocal failures
        good = value >= bar if sense == ">=" else value <= bar
        failures += not good
        print(f"{'PASS' if good else 'FAIL'}  {name}: {value:.3g} (bar {sense} {bar:g})", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder)
        likelihood(folder, report, arguments.quick)
        generation(folder, report, 16 if arguments.quick else 32)
        for kind, count in (("likelihood", 16), ("generation", 0)):
            one, many = peak(folder, 8, count), peak(folder, 24 if arguments.quick else 64, count)
            report(f"peak memory, {kind}: whole run against one batch ({one:.0f} MB)", many / one, 1.3, "<=")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
