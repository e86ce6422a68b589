"""A tiny Qwen2-VL asked about a video by both routes, in a process that can load torchvision (see torchvision_shim).

`python tests/local_videos.py FOLDER` prints what was sent and what came back as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def ask(folder: Path, route: str) -> dict[str, Any]:
    """Run one question about a video and return what is stored of it."""
    import snellen
    from snellen.api.load import load_run
    from tiny_checkpoints import checkpoint

    table = folder / "films.jsonl"
    table.write_text(json.dumps({"id": "1", "video": "a.mp4", "question": "What colour?", "answer": "red"}))
    overrides = (("prompt.video.route", route), ("prompt.video.frames", "uniform:4"), ("prompt.video.side", 64))
    result = snellen.run(
        str(table), f"hf/{checkpoint('qwen2vl')}", output_dir=folder / route, overrides=overrides, max_tokens=4
    )
    with load_run(result.folder) as run:
        (trial,) = run.trials("films")
    prediction = trial.prediction
    return {
        "failure": prediction.failure and prediction.failure.message,
        "text": prediction.text,
        "tokens": prediction.usage.input_tokens if prediction.usage else None,
        "record": prediction.detail.get("videos"),
    }


def talk(folder: Path, route: str) -> list[dict[str, Any]]:
    """Run a dialogue of two rounds about one video and return what is stored of each."""
    import snellen
    from snellen.api.load import load_run
    from tiny_checkpoints import checkpoint

    rows = [
        {"id": f"r{n}", "group": "d", "round": n, "question": "What colour?", "answer": "red"}
        | ({} if n else {"video": "a.mp4"})
        for n in range(2)
    ]
    (folder / "talks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    overrides = (("prompt.video.route", route), ("prompt.video.frames", "uniform:4"), ("prompt.video.side", 64))
    settings = {
        "output_dir": folder / f"talk-{route}",
        "overrides": overrides,
        "infer_method": "every",
        "max_tokens": 4,
    }
    result = snellen.run(str(folder / "talks.jsonl"), f"hf/{checkpoint('qwen2vl')}", **settings)
    with load_run(result.folder) as run:
        found = [trial.prediction for trial in run.trials("talks")]
    return [
        {"failure": one.failure and one.failure.message, "tokens": one.usage.input_tokens if one.usage else None}
        | {"record": one.detail.get("videos")}
        for one in found
    ]


def inputs_by_hand(folder: Path) -> dict[str, Any]:
    """Return the tensors our prompter makes of joined frames, and those the processor makes when called by itself."""
    import torch
    from transformers import AutoProcessor

    from snellen.core.message_parts import assemble_turn
    from snellen.core.types import Request, Showing, TrialKey, Video
    from snellen.data.images.decode import open_image
    from snellen.data.video.unfold import JOINED, unfold
    from snellen.model.local.inputs import LocalPrompter
    from tiny_checkpoints import checkpoint

    processor = AutoProcessor.from_pretrained(checkpoint("qwen2vl"))
    prompter = LocalPrompter(processor, "image-text")
    shown = unfold(Video(str(folder / "a.mp4"), showing=Showing(frames="uniform:4", side=64)), JOINED)
    turn = assemble_turn("user", [*shown.pieces, "What colour?"])
    prepared = prompter.prepare(Request(TrialKey("t", "1"), (turn,)))
    ours = prompter.encode([prepared.text], [prepared.pictures], [prepared.clips])
    content = [{"type": "video"}, {"type": "text", "text": "What colour?"}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    frames = [open_image(image).convert("RGB") for image in turn.images]
    theirs = processor(text=[text], videos=[frames], do_sample_frames=False, return_tensors="pt")
    same = all(torch.equal(ours[name], theirs[name]) for name in ("input_ids", "pixel_values_videos", "video_grid_thw"))
    return {"same": same, "grid": theirs["video_grid_thw"].tolist()}


def main(folder: Path) -> None:
    """Ask by both routes."""
    from torchvision_shim import define_operators
    from video_files import write_video

    define_operators()
    write_video(folder / "a.mp4", 40)
    answers = {route: ask(folder, route) for route in ("frames", "native")}
    talks = {route: talk(folder, route) for route in ("frames", "native")}
    print(json.dumps({**answers, "talks": talks, "by_hand": inputs_by_hand(folder)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
