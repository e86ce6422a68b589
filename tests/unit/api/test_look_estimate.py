"""What a run with tools would send is found without asking: questions end though nobody calls a tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from command_line import run_command
from snellen.api.plan import make_plan
from snellen.api.run_cost import estimate_run, try_jobs
from snellen.api.settings import RunSettings
from snellen.core.builtins import default_registry
from snellen.core.errors import UsageError
from snellen.core.protocols import ImagePolicy
from snellen.kits.looks.inferencer import CALLS_A_TURN
from snellen.model.served.model_card import ASSUMED


def test_a_trial_with_tools_is_tried_to_its_end(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (64, 64)).save(tmp_path / "a.png")
    rows = [{"id": str(number), "question": "What?", "image": "a.png", "answer": "a cat"} for number in range(3)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = RunSettings(
        tasks=(str(tmp_path / "rows.jsonl"),), model="openai/x", base_url="http://127.0.0.1:9/v1", tools=("zoom",),
        tool_arms=("base", "plain", "grey"), output_dir=tmp_path / "run",
    )  # fmt: skip
    (planned,) = make_plan(settings).tasks
    sent, trials = try_jobs(planned, default_registry())
    assert trials == 3 * len({sample.id for sample, _ in sent})
    assert len(sent) * 3 == trials * 2  # the question with tools and without; the other arm is a copy


def test_the_dearest_look_is_at_all_of_the_largest_picture(tmp_path: Path) -> None:
    """A region is never shrunk, so it may be larger than the side to which small ones are enlarged."""
    PIL.Image.new("L", (5000, 4000)).save(tmp_path / "a.png")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "1", "question": "What?", "image": "a.png", "answer": "a"}))
    added = []
    for policy in (None, ImagePolicy(max_side=1000)):
        settings = RunSettings(
            tasks=(str(tmp_path / "rows.jsonl"),), model="openai/x", base_url="http://127.0.0.1:9/v1", tools=("zoom",),
            output_dir=tmp_path / "run", image_policy=policy, overrides=(("params.max_tokens", 10),),
        )  # fmt: skip
        plan = make_plan(settings)
        (estimate,) = estimate_run(plan, settings).tasks
        assert estimate.turns is not None
        added.append(estimate.turns.added)
    whole, shrunk = (CALLS_A_TURN * ASSUMED.count(size) for size in ((5000, 4000), (1000, 1000)))
    assert added[0] > whole and shrunk < added[1] < whole


def test_looks_know_the_limits_on_the_models_card(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (64, 64)).save(tmp_path / "a.png")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "1", "question": "What?", "image": "a.png", "answer": "a"}))

    def options(model: str, **more: Any) -> dict[str, object]:
        settings = RunSettings(
            tasks=(str(tmp_path / "rows.jsonl"),), model=model, base_url="http://127.0.0.1:9/v1", tools=("zoom",),
            output_dir=tmp_path / "run", catalogs=(tmp_path / "own",), **more,
        )  # fmt: skip
        (planned,) = make_plan(settings).tasks
        return planned.task.infer_options

    card = 'model = "openai/mine"\nbase_url = "http://127.0.0.1:9/v1"\ncontext = 4096\nmax_images = 5\n'
    card += 'coordinates = "sent-pixels side=1568"\nmax_side = 8000\n'
    (tmp_path / "own" / "models").mkdir(parents=True)
    (tmp_path / "own" / "models" / "mine.toml").write_text(card)
    known = options("openai/mine")
    assert (known["context"], known["pictures"]) == (4096, 5)
    assert not {"context", "pictures"} & set(options("openai/nobody-knows-it"))
    sides = {"openai/mine": 1568, "anthropic/claude-nobody-knows-it": 2048, "openai/nobody": 2048}
    assert {model: options(model)["longest"] for model in sides} == sides, "8,000 px are accepted, and shrunk"
    assert options("openai/nobody", image_policy=ImagePolicy(max_side=1024))["longest"] == 1024


@pytest.mark.parametrize(
    ("dialect", "told"),
    [
        ("deepeyes", {"tool_frame": "0-1000"}),
        ("qwen3-vl", {"max_looks": 3}),
        ("mini-o3", {"max_turns": 4}),
        ("text", {"carry": "tool"}),
    ],
)
def test_what_a_dialect_leaves_no_choice_of_is_refused_by_its_flag(
    tmp_path: Path, dialect: str, told: dict[str, object]
) -> None:
    PIL.Image.new("RGB", (64, 64)).save(tmp_path / "a.png")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"id": "1", "question": "What?", "image": "a.png", "answer": "a"}))
    settings = RunSettings(
        tasks=(str(tmp_path / "rows.jsonl"),), model="openai/x", base_url="http://127.0.0.1:9/v1", tools=("zoom",),
        tool_dialect=dialect, output_dir=tmp_path / "run", **told,
    )  # fmt: skip
    with pytest.raises(UsageError, match=f"--{next(iter(told)).replace('_', '-')} .*{dialect}"):
        make_plan(settings)


@pytest.mark.parametrize(
    ("command", "flags", "named"),
    [
        ("run", ["--tools", "zoom", "--batch"], "--batch"),
        ("run", ["--tools", "zoom", "--infer-method", "likelihood"], "likelihood"),
        ("perf", ["--tools", "zoom"], "snellen perf"),
        ("run", ["--tool-arms", "base,grey"], "--tool-arms"),
        ("run", ["--max-looks", "3"], "--max-looks"),
        ("run", ["--tools", "paint"], "paint"),
        ("run", ["--tools", "zoom", "--tool-arms", "base,gray"], "gray"),
        ("run", ["--tools", "zoom", "--max-cost", "1"], "--max-tokens"),
    ],
)
def test_tools_where_they_cannot_be_are_refused_in_one_line_and_nothing_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, flags: list[str], named: str
) -> None:
    PIL.Image.new("RGB", (64, 64)).save(tmp_path / "a.png")
    row = {"id": "1", "question": "What?", "image": "a.png", "answer": "a", "options": ["a", "b"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    model = ["--model", "openai/x", "--base-url", "http://127.0.0.1:9/v1", "-o", tmp_path / "run"]
    assert run_command([command, tmp_path / "rows.jsonl", *model, *flags]) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said and said.startswith("error: ") and named in said
    assert not (tmp_path / "run").exists()
