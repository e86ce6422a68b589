"""A recipe to a tuned model: chains prepared and checked, then trained; the feedback stage makes its own first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...core.errors import MissingExtra, RunMismatch, UsageError
from ...core.text import plural
from ...data.catalog import Catalog
from .blend import COUNTS_FILE, BlendCounts, Blended, PreparedChains, prepare_chains
from .chains import Chain, find_cure_task, mark_control, read_chains, read_cure_chains, read_words
from .made_preferences import make_preferences
from .overlap import check_contamination
from .recipe import CONTROL, FEEDBACK, GRPO, DataSource, Recipe, check_recipe

if TYPE_CHECKING:
    from .tuning import TrainingRecord, Tuned

DATA, SHOWN, RECORD = "data", "sample.txt", "training.json"
Say = Callable[[str], None]


def train_rationale(recipe: Recipe, say: Say = lambda _: None) -> Tuned:
    """Train as the recipe says and return what it left; the same call again continues."""
    import_trainers()
    from .tuned_card import write_training_card
    from .tuning import is_main_process, tune

    recipe = with_whole_paths(check_recipe(recipe))
    recipe.folder.mkdir(parents=True, exist_ok=True)
    if is_main_process():
        prepare_training(recipe, say)
    wait_for_others()
    counts = msgspec.json.decode((recipe.folder / DATA / COUNTS_FILE).read_bytes(), type=BlendCounts)
    tuned = tune(recipe, counts, PreparedChains(recipe.folder / DATA), say)
    if is_main_process() and not tuned.interrupted:
        write_training_card(recipe.folder)
    return tuned


def with_whole_paths(recipe: Recipe) -> Recipe:
    """Return the recipe with whole paths: what is written down must be found from any folder."""
    base = Path(recipe.model.removeprefix("hf/")).expanduser()
    model = f"hf/{base.resolve()}" if base.is_dir() else recipe.model
    return msgspec.structs.replace(recipe, model=model, output=str(recipe.folder.resolve()))


def import_trainers() -> None:
    """Import the trainers, or say which extra brings them."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that spin make shared cores many times slower
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import datasets
        import peft
        import torch
        import trl  # noqa: F401
    except ImportError:
        raise MissingExtra("train", "training") from None
    del peft, torch
    datasets.disable_progress_bars()


def wait_for_others() -> None:
    """Wait until the first process has prepared the data, where several train together."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        import torch
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available()).wait_for_everyone()


def prepare_training(recipe: Recipe, say: Say) -> BlendCounts:
    """Read, check and count all that will be trained on, and show one sample of it; no weights are touched."""
    import_trainers()
    from .trl_door import check_listeners

    check_listeners(recipe.training.report_to)
    stored = stored_training(recipe.folder)
    sources = list(recipe.data)
    if recipe.stage == FEEDBACK and recipe.training.trainer != GRPO:
        made = make_preferences(recipe, say)
        sources = [DataSource(str(made))]
    # Beside data that was trained on: another training in this folder is refused before anything of it is touched.
    folder = recipe.folder / (DATA if stored is None else f".{DATA}.part")
    need_reply = recipe.training.trainer != GRPO
    counts = prepare_chains(
        [Blended(source.path, source.weight, partial(open_source, source, recipe)) for source in sources],
        folder,
        seed=recipe.seed,
        allow_missing=recipe.allow_missing_images,
        need_reply=need_reply,
    )
    check_counts(recipe, counts, say)
    if stored is not None:
        compare_with_stored(recipe, counts, stored)
        shutil.rmtree(folder)
    check_contamination(recipe, PreparedChains(recipe.folder / DATA), say)
    show_first(recipe, PreparedChains(recipe.folder / DATA), say)
    return counts


def check_counts(recipe: Recipe, counts: BlendCounts, say: Say) -> None:
    """Say what was read and left out; refuse data in which no reply has a rationale."""
    for source in counts.sources:
        rows = f"{plural(source.rows, 'row')} of {plural(source.records, 'record')} (weight {source.weight:g})"
        say(f"{source.path}: {rows}, {source.rationales} with a rationale")
    if counts.missing:
        say(f"{plural(counts.missing, 'picture')} missing: their records are left out")
    if recipe.training.trainer != GRPO and not counts.rationales and not recipe.allow_answers:
        fix = "give data with reasons before the answers, or --allow-answers to train on answers alone"
        raise UsageError(f"no reply of {', '.join(s.path for s in counts.sources)} has a rationale: {fix}")


def stored_training(folder: Path) -> TrainingRecord | None:
    """Return the record of the training that a folder holds, or None; refused before anything is sampled or read."""
    from .tuning import read_record

    return read_record(folder) if (folder / RECORD).is_file() else None


def compare_with_stored(recipe: Recipe, counts: BlendCounts, stored: TrainingRecord) -> None:
    """Refuse another training in the same folder before anything of the stored one is touched."""
    from .tuned_weights import open_base
    from .tuning import check_same_training, new_record

    try:
        check_same_training(recipe.folder, stored, new_record(recipe, open_base(recipe.model), counts))
    except RunMismatch:
        shutil.rmtree(recipe.folder / f".{DATA}.part")
        raise


def open_source(source: DataSource, recipe: Recipe) -> Iterator[Chain]:
    """Return the chains of one source, whatever form it has."""
    catalog = Catalog(recipe.catalogs)
    words = read_words(catalog, recipe.words)
    path, root = Path(source.path), None if source.image_root is None else Path(source.image_root)
    task = find_cure_task(path, catalog, root)
    if task is not None:
        chains = read_cure_chains(task, catalog, words, seed=recipe.seed, steps=source.steps)
    elif path.is_dir():
        raise UsageError(f"{path} is a folder without a published set: name the file of chains in it")
    else:
        chains = read_chains(path, root)
    if recipe.training.trainer == GRPO:
        return map(require_labels, chains)
    if recipe.training.trainer == CONTROL:
        return (mark_control(chain, words.control) for chain in chains)
    return chains


def require_labels(chain: Chain) -> Chain:
    """Refuse a question that no reward can be given for: it would be 0 for every reply, and nobody would know."""
    if not chain.answers or not chain.options:
        raise UsageError(f"{chain.id}: no options and answer, so no reward: GRPO needs annotated chains (CURE format)")
    return chain


def show_first(recipe: Recipe, chains: PreparedChains, say: Say) -> None:
    """Show which tokens of the first sample are learnt; keep it beside the data."""
    from . import tuned_weights as weights
    from .mask_view import asked_otherwise, show_mask

    processor = weights.open_processor(weights.open_base(recipe.model))
    first = chains[int(chains.order[0])]
    if recipe.training.trainer == GRPO:
        return
    shown = show_mask(processor, first)
    (recipe.folder / SHOWN).write_text(f"{shown}\n", encoding="utf-8")
    say(f"{first.id}, learnt between ⟦ and ⟧: {shown}")
    otherwise = asked_otherwise(processor, first)
    if otherwise:
        say(f"careful: {otherwise}")
    chains.close()
