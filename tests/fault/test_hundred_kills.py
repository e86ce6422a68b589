"""Kills at random moments of every kind of work: nothing stored is lost, nothing is stored twice, the results are equal.

Three kills of one kind in `make test`; a hundred of each kind in `make crash`.
"""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import PIL.Image
import pytest

from cure_fixtures import item, write_cure
from figures import note_figure
from forked import forge
from killing import MANY, WORKERS, Work, kill_and_repeat
from snellen.api.timelines import read_any, summary_of
from snellen.perf.collect import PARTIAL, partial_files
from waiting import wait_until
from workshop_fixtures import write_sources


def served(server: Any, folder: Path) -> list[object]:
    told = ["--model", "openai/mock", "--base-url", server.base_url, "--max-workers", WORKERS]
    return [*told, "-o", folder, "--quiet", "--no-cache"]


def generation(home: Path, mock_server: Callable[..., Any]) -> Work:
    PIL.Image.new("RGB", (16, 16), (9, 99, 9)).save(home / "a.png")
    rows = [
        {
            "id": f"q{n}",
            "image": "a.png",
            "question": f"Which is {n}?",
            "options": ["one", "two", "three"],
            "answer": "A",
        }
        for n in range(300)
    ]
    (home / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    server = mock_server("--ttft-ms", 40)
    return Work(lambda folder: ["run", home / "data.jsonl", *served(server, folder)], 300, server.base_url)


def dialogue(home: Path, mock_server: Callable[..., Any]) -> Work:
    from test_dialogue_kill import ROUNDS, write_dialogues

    write_dialogues(home, 24)
    server = mock_server("--ttft-ms", 20)
    task = ["run", "reform/visdial", "--data-root", home, "--online-multi-round", "--in-context-sample"]
    return Work(lambda folder: [*task, *served(server, folder)], 24 * ROUNDS, server.base_url)


def likelihood(home: Path, _: Callable[..., Any]) -> Work:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tiny_checkpoints import checkpoint

    rows = [
        {"id": f"q{n}", "question": f"What is number {n}?", "options": ["red", "blue", "a dog"], "answer": "blue"}
        for n in range(80)
    ]
    (home / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    model = ["--model", f"hf/{checkpoint('text')}", "--infer-method", "likelihood", "--model-arg", "batch_size=4"]
    task = ["run", home / "data.jsonl", *model, "--no-cache", "--quiet"]
    return Work(lambda folder: [*task, "-o", folder], 80, imports=("torch", "transformers.models.llama"))


def chain(home: Path, mock_server: Callable[..., Any]) -> Work:
    path = write_cure(home, [item(number, 2 + number % 2) for number in range(40)])
    server = mock_server("--ttft-ms", 30)
    task = ["run", "cure-cot", "-p", f"dataset.path={path}"]
    return Work(lambda folder: [*task, *served(server, folder)], sum(3 + n % 2 for n in range(40)), server.base_url)


def documents(home: Path, mock_server: Callable[..., Any]) -> Work:
    from snellen.kits.pages.grid_folder import write_needles
    from snellen.kits.pages.page_style import PageStyle
    from snellen.kits.pages.plant import BUILT_IN, Grid, read_haystack

    style = PageStyle(width_pt=400, height_pt=260, dpi=72, font="built-in", size_pt=14, leading_pt=17)
    grid = Grid((250,), (0.0, 0.5, 1.0), ("kv-number",), repeats=10)
    write_needles(read_haystack(BUILT_IN, 3_000, 4), grid, home / "n", {"clean": style})
    server = mock_server("--ttft-ms", 30)
    task = ["run", "niah", "-p", f"dataset.path={home}/n/data.json", "-p", f"dataset.image_root={home}/n/clean"]
    return Work(lambda folder: [*task, "--perturb", "jpeg:1-3", *served(server, folder)], 30 * 4, server.base_url)


def draft(home: Path, mock_server: Callable[..., Any]) -> Work:
    sources, server = write_sources(home, 40), mock_server("--drafter", "good", "--ttft-ms", 20)
    told = ["--model", "openai/mock", "--base-url", server.base_url, "--no-cache", "--max-workers", WORKERS, "--json"]
    return Work(lambda folder: ["curate", "draft", sources, folder, *told], 80, server.base_url)


KINDS = {
    "generation": generation,
    "dialogue": dialogue,
    "likelihood": likelihood,
    "chain": chain,
    "documents": documents,
    "draft": draft,
}


@pytest.mark.parametrize("kind", ["chain"])
def test_work_killed_a_few_times_ends_as_if_never_interrupted(
    kind: str, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    work = KINDS[kind](tmp_path, mock_server)
    with forge(tmp_path / "said.txt", *work.imports) as smith:
        assert kill_and_repeat(smith, work, tmp_path, 3, seed=2).places


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_work_killed_a_hundred_times_ends_as_if_never_interrupted(
    kind: str, mock_server: Callable[..., Any], tmp_path: Path
) -> None:
    work = KINDS[kind](tmp_path, mock_server)
    started = monotonic()
    with forge(tmp_path / "said.txt", *work.imports) as smith:
        killed = kill_and_repeat(smith, work, tmp_path, MANY, seed=1)
    note_figure("crash", f"SIGKILL, {kind}", f"{killed.told} ({monotonic() - started:.0f} s)")


def check_killed_load(folder: Path, killed_at: float, slots: int) -> tuple[int, float]:
    """Return how many requests a killed load kept, and how old the newest was; the order has no hole but what was in flight."""
    assert not (folder / "perf.json").exists() or json.loads((folder / "perf.json").read_text())
    if not partial_files(folder):
        return 0, 0.0
    timeline = read_any(folder)
    numbers = [int(record.id.removeprefix("synthetic/")) for record in timeline.requests]
    assert len(numbers) == len(set(numbers)), "a request is kept twice"
    if not numbers:
        return 0, 0.0
    assert max(numbers) + 1 - len(numbers) <= slots, "a finished request is missing"
    summary = summary_of(timeline, profile="snellen", stage="total", stats=None, slo=None)
    assert summary["common"]["Total Requests"] == len(numbers) and any("killed" in note for note in summary["notes"])
    return len(numbers), killed_at - max(record.done for record in timeline.requests)


@pytest.mark.crash
@pytest.mark.slow
def test_a_load_killed_a_hundred_times_keeps_what_it_measured(mock_server: Callable[..., Any], tmp_path: Path) -> None:
    server, draw, slots = mock_server("--ttft-ms", 5), random.Random(4), 4
    kept, newest, something, first_s = 0, 0.0, 0, 0.0
    with forge(tmp_path / "said.txt") as smith:
        for number in range(MANY):
            folder = tmp_path / f"load{number}"
            told = [
                "perf",
                "synthetic",
                "--model",
                "openai/mock",
                "--base-url",
                server.base_url,
                "--concurrency",
                slots,
            ]
            told += ["-n", 2000, "--warmup", "0", "--no-pictures", "-o", folder]
            pid, started = smith.start(told), monotonic()
            if number == 0:
                wait_until(lambda: any(tmp_path.rglob(f"{PARTIAL}*")), "the first request that is kept")
                first_s = monotonic() - started
            code = smith.stop_after(pid, draw.uniform(0, first_s + 1.0))
            assert code == -signal.SIGKILL, smith.said()[-2000:]
            requests, age = check_killed_load(folder, perf_counter(), slots)
            kept, newest, something = kept + requests, max(newest, age), something + bool(requests)
    assert something >= MANY // 4
    told = f"{MANY} kills: {kept:,} finished requests kept by {something} loads, 0 twice, 0 missing between"
    note_figure("crash", "SIGKILL, perf inside a level", f"{told}; the newest at most {newest:.1f} s old")
