"""The key of a stored reply holds everything that changes a reply: every field is flipped, or stands with a reason."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import PIL.Image
import pytest
from msgspec.structs import replace

from snellen.api.plan import make_plan
from snellen.api.settings import RunSettings, table
from snellen.core.answerer import answerer_of
from snellen.core.jobs import Item
from snellen.core.protocols import ImagePolicy
from snellen.core.secret import Secret
from snellen.core.types import Frame, Image, Likelihood, Params, Prediction, Request, TrialKey, Turn, Video
from snellen.model.options import ModelOptions
from snellen.model.served.openai import create
from snellen.store.cache import NOT_IN_KEY, request_digest

FRAME = Frame(1, 1, 0.5, joined=True)
FULL = Request(
    TrialKey("t", "s", "base", 1),
    (Turn("user", "What?", (Image("/a.png", frame=FRAME), Image("/b.png")), ("What?", 0, 1), (Video("/v.mp4"),)),),
    Params(16, 0.5, 0.9, 3, ("x",), 5.0, True, {"a": 1}),
    ("a", "b"),
    ("A", "B"),
    ("cat", "dog"),
    "The answer is",
    Likelihood("mean", (Turn("user", "", (Image("/grey.png", frame=FRAME),)),), (0, 1), with_prompt=True),
)
HASHES = ["aa", "bb", "cc"]


def other(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, dict):
        return {**value, "another": 1}
    if isinstance(value, tuple):
        return value[:-1] if value else ("another",)
    return "another"


def flips(record: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a record with one field flipped, wherever in it, and the path of that field."""
    for name in record.__struct_fields__:
        value, here = getattr(record, name), f"{path}{name}"
        if not isinstance(value, msgspec.Struct):
            yield here, replace(record, **{name: other(value)})
        if isinstance(value, msgspec.Struct):
            for below, flipped in flips(value, f"{here}."):
                yield below, replace(record, **{name: flipped})
        if isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
            for below, flipped in flips(value[0], f"{here}."):
                yield below, replace(record, **{name: (flipped, *value[1:])})


def stated(path: str) -> bool:
    """Tell whether a field has a reason to be no part of the key; a moment of a joined frame has none."""
    if path.startswith(("messages.images.", "likelihood.baseline.images.")):
        return ".frame." not in path
    return path in NOT_IN_KEY


def test_every_field_of_a_request_is_in_the_key_or_has_a_reason_why_not() -> None:
    key, seen = request_digest("m", FULL, HASHES), set()
    for path, flipped in flips(FULL):
        seen.add(path)
        assert (request_digest("m", flipped, HASHES) != key) != stated(path), path
    assert {path for path in NOT_IN_KEY if not path.endswith("*")} <= seen, "a reason for a field that is not there"
    assert {"likelihood.reduction", "likelihood.stands_for", "marks", "params.extra_body"} <= seen


def test_every_picture_counts_by_what_is_sent_of_it() -> None:
    keys = {request_digest("m", FULL, [*HASHES[:n], "zz", *HASHES[n + 1 :]]) for n in range(3)}
    assert len(keys | {request_digest("m", FULL, HASHES), request_digest("n", FULL, HASHES)}) == 5


BASE = ModelOptions(base_url="http://h/v1")
CHANGED: dict[str, Any] = {
    "base_url": "http://other/v1",
    "image_policy": ImagePolicy(max_side=64),
    "strip_metadata": True,
    "arguments": {"likelihood": "echo"},
    "headers": {"X-Variant": Secret("b")},
    "query": {"deployment": "b"},
    "reasoning": "low",
    "constrain": "json",
}
NOT_WHO: dict[str, str] = {
    "api_key": "who pays, not who answers",
    "key_command": "who pays",
    "renew_key": "who pays",
    "timeout_s": "how long is waited",
    "strict_params": "stops instead of sending otherwise; what is sent otherwise is written into each reply",
    "prompt_cache": "what a provider keeps of a prompt; the reply is the same",
    "infer_method": "what a plug-in's loader is told; the request says whether candidates are scored",
    "clock": "for tests",
}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ModelOptions)])
def test_every_option_of_a_model_is_another_answerer_or_has_a_reason_why_not(name: str) -> None:
    assert (name in CHANGED) != (name in NOT_WHO), "a new option says which of both it is"
    if name in CHANGED:
        changed = dataclasses.replace(BASE, **{name: CHANGED[name]})
        assert answerer_of(create("m", changed)).key != answerer_of(create("m", BASE)).key


BY_REQUEST = "set in the task, and with it in the request"
NO_REPLY: dict[str, str] = {
    **dict.fromkeys(("more_urls", "plugins", "catalogs", "model"), "which model: named by its identity"),
    **dict.fromkeys(
        ("max_workers", "max_retries", "rate", "max_errors", "deadline_s", "price", "max_cost", "yes"), "load and money"
    ),
    **dict.fromkeys(("cache", "cache_check", "same_model", "fresh"), "whether stored replies are used"),
    **dict.fromkeys(("batch", "batch_leave", "batch_rest", "batch_lines", "batch_poll_s"), "how a request travels"),
    **dict.fromkeys(
        ("shard", "steal", "executor", "replicas", "gpus_per_replica", "replica_patience_s", "ray_address"),
        "where it is computed",
    ),
    **dict.fromkeys(("output_dir", "log", "command", "keep_pictures"), "output"),
    **dict.fromkeys(
        ("errata", "gold", "profile", "convention", "detailed_keys", "extractor", "extractor_settings"),
        "how replies are read",
    ),
    **dict.fromkeys(
        (
            "limit",
            "sample",
            "sample_seed",
            "stratify",
            "ids",
            "subset",
            "until_ci",
            "bank",
            "budget",
            "bank_without",
            "duplication",
            "tasks",
            "data_root",
        ),
        "which rows are asked",
    ),
    **dict.fromkeys(
        ("tools", "tool_dialect", "tool_frame", "max_turns", "max_looks", "at_limit", "carry", "tool_arms"), BY_REQUEST
    ),
    **dict.fromkeys(("arms", "allow_missing_images", "allow_outside", "option_mark", "shots_file", "seed"), BY_REQUEST),
    **dict.fromkeys(
        ("prompt", "prompt_template", "prompt_pack", "random_instruct", "overrides", "protocol", "coordinates"),
        BY_REQUEST,
    ),
}


ANY: dict[str, Any] = {}
LIKELY: dict[str, Any] = {"infer_method": "likelihood"}
LOOKING: dict[str, Any] = {"tools": ("zoom",)}
ASKED_OTHERWISE: dict[str, tuple[dict[str, Any], Any]] = {
    "infer_method": (ANY, "likelihood"),
    "temperature": (ANY, 0.3),
    "top_p": (ANY, 0.4),
    "max_tokens": (ANY, 7),
    "extra_body": (ANY, {"top_k": 1}),
    "sampling_seed": (ANY, 5),
    "form": (ANY, "open"),
    "shuffle_options": (ANY, True),
    "seed": ({"shuffle_options": True}, 3),
    "likelihood_reduction": (LIKELY, "mean"),
    "candidates": (LIKELY, "letters"),
    "calibration": (LIKELY, "content-free"),
    "option_mark": (ANY, "number"),
    "prompt": (ANY, {"system": "Be short."}),
    "prompt_template": (ANY, "{question} {options}"),
    "random_instruct": ({"num_infers": 3}, True),
    "overrides": (ANY, (("prompt.system", "Be short."),)),
    "columns": (ANY, {"question": "title"}),
    "tools": (ANY, ("zoom",)),
    "tool_dialect": (LOOKING, "text"),
}
"""Settings that are part of a request: beside which others they count, and another value."""
NOT_ASKED_OTHERWISE: dict[str, str] = {
    **dict.fromkeys(("timeout_s", "stream"), "how long is waited, how a reply travels: NOT_IN_KEY"),
    **dict.fromkeys(("num_infers", "variants", "arms", "tool_arms"), "further trials; each has a key of its own"),
    **dict.fromkeys(("split", "data_config", "sheet", "preset", "duplicates"), "which rows are asked"),
    "detailed_keys": "how results are grouped",
    **dict.fromkeys(
        ("tool_frame", "max_turns", "max_looks", "at_limit", "carry"), "what a model is told after its first call"
    ),
    **dict.fromkeys(("allow_missing_images", "allow_outside"), "which rows may be asked"),
    **dict.fromkeys(
        ("shots_file", "prompt_pack", "protocol", "coordinates"), "words from a file or a card, as `prompt`"
    ),
}


def digests(path: Path, **settings: Any) -> set[str]:
    """Return the keys of everything that a run with these settings would ask."""
    plan = make_plan(RunSettings(tasks=(str(path),), model="openai/m", base_url="http://127.0.0.1:9/v1", **settings))
    asked: set[str] = set()

    async def ask(item: Item, request: Request, *_: Any, **__: Any) -> Prediction:
        asked.add(request_digest("m", request, ["aa"]))
        if request.choices:
            return Prediction(request.key, loglikelihoods=tuple([-1.0] * len(request.choices)))
        return Prediction(request.key, text="A")

    async def ask_all() -> None:
        for job in plan.jobs():
            await job.run(ask)

    asyncio.run(ask_all())
    return asked


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    PIL.Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    path = tmp_path / "rows.jsonl"
    fixed = {"image": "a.png", "options": ["red", "green", "blue", "grey"], "answer": "A"}
    path.write_text("\n".join(json.dumps({"id": n, "question": f"Q{n}?", "title": f"T{n}?"} | fixed) for n in range(4)))
    return path


@pytest.mark.parametrize("name", ASKED_OTHERWISE)
def test_every_setting_of_a_request_is_another_key(name: str, rows: Path) -> None:
    beside, value = ASKED_OTHERWISE[name]
    before, after = digests(rows, **beside), digests(rows, **{**beside, name: value})
    assert before and before != after


def test_every_setting_reaches_a_key_or_has_a_reason_why_not() -> None:
    options = {field.name for field in dataclasses.fields(ModelOptions)} | {"model_arguments"}
    of_request = {name for name, row in table(RunSettings).items() if row.to or NO_REPLY.get(name) is BY_REQUEST}
    assert not ASKED_OTHERWISE.keys() & NOT_ASKED_OTHERWISE.keys()
    assert of_request == ASKED_OTHERWISE.keys() | NOT_ASKED_OTHERWISE.keys(), "a new one is flipped, or says why not"
    unexplained = table(RunSettings).keys() - options - of_request - NO_REPLY.keys()
    assert not unexplained, "a new setting is part of a request, an option of the model, or says why it is no part"
