"""Real trainings of a few steps on tiny checkpoints: masks, adapters, resuming, and everything that can go wrong.

What takes longer (every trainer on two architectures, kills, two processes) is in test_training_whole.py: `make train-test`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from extras import Late, needs

needs("trl", "peft")
trl_door = Late("snellen.kits.train.trl_door")

from msgspec.structs import replace
from safetensors import SafetensorError

import snellen
from command_line import run_command
from snellen.core.errors import ConfigError, DataError, EnvironmentProblem, MissingExtra, RunMismatch, UsageError
from snellen.kits.train import before_after, rationale
from snellen.kits.train import made_preferences as preferences
from snellen.kits.train import tuned_weights as weights
from snellen.kits.train.rationale import prepare_training, train_rationale
from snellen.kits.train.recipe import DataSource
from snellen.store.reader import RunReader
from tiny_checkpoints import checkpoint
from train_doubles import assert_same_losses, losses_of, small_recipe, write_rows

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.filterwarnings("ignore::FutureWarning"),
              pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def adapter(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished training of an adapter on LLaVA."""
    out = tmp_path_factory.mktemp("adapter")
    said: list[str] = []
    train_rationale(small_recipe(checkpoint("llava"), rows, out, learning_rate=1e-2), said.append)
    (out / "said.json").write_text(json.dumps(said))
    return out


def test_the_loss_falls_and_the_reply_alone_is_learnt(adapter: Path) -> None:
    losses = losses_of(adapter)
    assert sorted(losses) == [1, 2, 3, 4, 5, 6] and losses[6] < losses[1]
    shown = (adapter / "sample.txt").read_text()
    before, learnt = shown.split("⟦")
    assert "<image>×16" in before and "truck" in before.replace(" ", "")
    assert learnt.replace(" ", "").startswith("thereĠisĠanĠimageĠofĠred") and "<|end|>" in learnt
    said = json.loads((adapter / "said.json").read_text())
    assert any("learnt between ⟦ and ⟧" in line for line in said)
    assert any("measuring puts '<s>' before a prompt" in line for line in said), "a difference to measuring is said"


def test_an_adapter_is_loaded_by_hf_and_answers_as_its_merged_weights(
    adapter: Path, rows: Path, tmp_path: Path
) -> None:
    base = checkpoint("llava")
    questions = tmp_path / "my.jsonl"
    table = [
        {"id": n, "image": str(rows.parent / f"{n}.png"), "question": "what colour is the truck?", "answer": "red"}
        for n in range(3)
    ]
    questions.write_text("\n".join(map(json.dumps, table)))
    assert run_command(["train", "merge", adapter, "-o", tmp_path / "merged"]) == 0

    def ask(model: str, name: str, **more: Any) -> list[str]:
        run = snellen.run(str(questions), model, output_dir=tmp_path / name, max_tokens=8, cache=False, **more)
        with RunReader(run.folder) as reader:
            return [trial.prediction.text or "" for trial in reader.trials("my")]

    tuned = ask(f"hf/{base}", "tuned", model_arguments={"adapter": str(adapter / "model")})
    assert tuned == ask(f"hf/{tmp_path / 'merged'}", "merged-run")
    assert tuned != ask(f"hf/{base}", "plain"), "the adapter changes something"


def test_another_adapter_is_another_run_and_a_wrong_one_is_refused(adapter: Path, tmp_path: Path) -> None:
    from snellen.api.load import load_model

    base = checkpoint("llava")
    model = load_model(f"hf/{base}", model_arguments={"adapter": str(adapter / "model")})
    assert model.identity() != load_model(f"hf/{base}").identity()
    with pytest.raises(UsageError, match=r"adapter_config\.json.*model"):
        load_model(f"hf/{base}", model_arguments={"adapter": str(adapter)})
    with pytest.raises(UsageError, match="trained on other weights than"):
        load_model(f"hf/{checkpoint('idefics3')}", model_arguments={"adapter": str(adapter / "model")})


def test_the_card_says_what_it_was_made_of(adapter: Path) -> None:
    card = (adapter / "model" / "README.md").read_text()
    for words in (
        "a LoRA adapter of llava",
        "rows.jsonl | 1.0 | 16 | 16 | 16",
        "Licence of the base: unknown",
        "trl 1.",
    ):
        assert words in card, words
    assert "Not compared with any benchmark" in card and "Not measured" in card


def test_vllm_takes_the_adapters_we_train(adapter: Path) -> None:
    from snellen.model.local.vllm import lora_arguments

    assert lora_arguments(str(adapter / "model"), {}) == {"enable_lora": True, "max_lora_rank": 16}


def test_the_viewer_shows_what_a_training_left(adapter: Path) -> None:
    pytest.importorskip("starlette", reason="the extra `view` is not installed")
    from snellen.kits.train import training_folder, training_page, tuning

    page = str(training_page.training_page(training_folder.OpenTraining("k", "tuned", adapter)))
    for words in ("✓ finished", "6 of 6 steps", "<h3>Loss</h3>", "<h3>Tokens foretold</h3>", "checkpoint-6", "trl "):
        assert words in page, words
    assert json.loads((adapter / "training.json").read_text())["planned"] == 6
    read = (training_folder.RECORD, training_folder.METRICS, training_folder.CHECKPOINTS, training_page.SAMPLE)
    assert read == (tuning.RECORD, tuning.METRICS, tuning.CHECKPOINTS, rationale.SHOWN)
    assert f"{preferences.FOLDER}/{preferences.COUNTS}" == training_page.COUNTS


def test_a_finished_training_is_not_trained_again(adapter: Path, rows: Path) -> None:
    before = (adapter / "metrics.jsonl").read_bytes()
    train_rationale(small_recipe(checkpoint("llava"), rows, adapter, learning_rate=1e-2))
    assert (adapter / "metrics.jsonl").read_bytes() == before


def test_another_recipe_data_or_model_is_refused_by_name(adapter: Path, rows: Path, tmp_path: Path) -> None:
    same = small_recipe(checkpoint("llava"), rows, adapter, learning_rate=1e-2)
    with pytest.raises(RunMismatch, match=r"batch_size.*\b4\b.*\b2\b"):
        train_rationale(replace(same, training=replace(same.training, batch_size=2)))
    with pytest.raises(RunMismatch, match="holds another training"):
        train_rationale(replace(same, model=f"hf/{checkpoint('idefics3')}"))
    more = write_rows(tmp_path / "more", 20)
    before = {path.name: path.read_bytes() for path in (adapter / "data").iterdir()}
    with pytest.raises(RunMismatch, match=r"data: '\w+'.*'\w+'"):
        train_rationale(replace(same, data=(DataSource(str(more)),)))
    assert {path.name: path.read_bytes() for path in (adapter / "data").iterdir()} == before, "its data is untouched"
    assert not list(adapter.glob(".*.part"))


@pytest.mark.parametrize("body", ["{", "[]", '{"recipe": {}}'])
def test_a_broken_record_is_one_line_for_every_command(
    body: str, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, out = f"hf/{checkpoint('llava')}", tmp_path / "out"
    (out / "model").mkdir(parents=True)
    (out / "training.json").write_text(body)
    (out / "model" / "adapter_config.json").write_text(body)
    train = ["train", "rationale", "--model", base, "--stage", "sft", "--data", rows, "-o", out]
    measure = ["train", "evaluate", base, out, "--task", "cure-rationale", "-o", tmp_path / "measured"]
    for words in (train, measure):
        assert run_command(words) == 3
        said = capsys.readouterr().err
        assert "training.json cannot be read" in said and len(said.splitlines()) == 1
    assert sorted(path.name for path in out.iterdir()) == ["model", "training.json"], "nothing was prepared"
    assert run_command(["train", "merge", out, "-o", tmp_path / "merged"]) in (2, 3)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_record_whose_recipe_is_none_is_refused_by_the_field(adapter: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    record = json.loads((adapter / "training.json").read_text()) | {"recipe": {"model": "hf/x", "sead": 1}}
    (tmp_path / "training.json").write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=r"training\.json"):
        before_after.model_of(str(tmp_path))


def test_full_weights_resume_to_the_same_losses(rows: Path, tmp_path: Path) -> None:
    """LLaVA is one of the architectures whose full weights a trainer resumes from without loading them."""
    whole = small_recipe(checkpoint("llava"), rows, tmp_path / "whole", weights="full")
    train_rationale(whole)
    cut = replace(whole, output=str(tmp_path / "cut"))
    leave_checkpoint(tmp_path / "whole", tmp_path / "cut", step=4)
    tuned = train_rationale(cut)
    assert "continued from checkpoint-4" in tuned.events
    assert_same_losses(losses_of(tmp_path / "cut"), losses_of(tmp_path / "whole"))


def test_killed_before_the_first_checkpoint_every_step_is_written_once(rows: Path, tmp_path: Path) -> None:
    left = '{"step": 1, "loss": 9.0, "seconds": 1.0}\n{"step": 2, "loss": 9.0, "seconds": 1.0}\n{"step": 3, "lo'
    (tmp_path / "metrics.jsonl").write_text(left)
    tuned = train_rationale(small_recipe(checkpoint("llava"), rows, tmp_path, steps=3))
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3]
    assert tuned.events == ("begun again from the first step: there was no checkpoint yet",)


def test_tokens_and_the_mean_loss_after_a_resume_say_what_they_count(rows: Path, tmp_path: Path) -> None:
    """A trainer counts both from zero again."""
    whole = small_recipe(checkpoint("llava"), rows, tmp_path / "whole")
    train_rationale(whole)
    leave_checkpoint(tmp_path / "whole", tmp_path / "cut", step=4)
    train_rationale(replace(whole, output=str(tmp_path / "cut")))
    found, wanted = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("cut", "whole")
    )
    tokens = [[line["num_tokens"] for line in lines if "loss" in line] for lines in (found, wanted)]
    assert tokens[0] == tokens[1]
    last = [line["loss"] for line in wanted if "loss" in line][4:]
    assert found[-1]["since_step"] == 4 and found[-1]["train_loss"] == pytest.approx(sum(last) / len(last), abs=1e-4)
    assert "since_step" not in wanted[-1]


def leave_checkpoint(whole: Path, cut: Path, step: int) -> None:
    """Make a folder as a process leaves it that was killed after a step: a later half checkpoint, a half line."""
    cut.mkdir()
    shutil.copytree(whole / "checkpoints" / f"checkpoint-{step}", cut / "checkpoints" / f"checkpoint-{step}")
    half = cut / "checkpoints" / f"checkpoint-{step + 1}"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    (cut / "metrics.jsonl").write_text((whole / "metrics.jsonl").read_text() + '{"step": 7, "lo')


def test_a_trainer_that_resumes_with_other_weights_is_noticed(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trap: optimiser and step counter of the checkpoint, and silently the weights of the base."""
    whole = small_recipe(checkpoint("llava"), rows, tmp_path / "whole", weights="full", steps=4)
    train_rationale(whole)
    leave_checkpoint(tmp_path / "whole", tmp_path / "cut", step=2)
    load = weights.load_trainable
    right = weights.sketch_weights(
        load(weights.open_base(whole.model), tmp_path / "cut/checkpoints/checkpoint-2").state_dict()
    )
    monkeypatch.setattr(weights, "load_trainable", lambda base, source=None, **more: load(base, None, **more))
    sketch, seen = weights.sketch_weights, []

    def first_the_right_ones(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(1)
        return right if len(seen) == 1 else sketch(state)

    monkeypatch.setattr(weights, "sketch_weights", first_the_right_ones)
    with pytest.raises(EnvironmentProblem, match="checkpoint-2"):
        train_rationale(replace(whole, output=str(tmp_path / "cut")))


@pytest.mark.slow
def test_memory_that_runs_out_halves_the_batch_and_trains_the_same(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import trl

    plain = small_recipe(
        checkpoint("idefics3"), rows, tmp_path / "plain", steps=3, save_steps=1, batch_size=4, weights="full"
    )
    train_rationale(plain)
    step, calls = trl.SFTTrainer.training_step, []

    def scarce(self: Any, model: Any, inputs: Any, *rest: Any) -> Any:
        calls.append(len(inputs["input_ids"]))
        if len(inputs["input_ids"]) > 2 and self.state.global_step == 1:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes")
        return step(self, model, inputs, *rest)

    monkeypatch.setattr(trl.SFTTrainer, "training_step", scarce)
    tuned = train_rationale(replace(plain, output=str(tmp_path / "scarce")))
    assert "out of memory: batch 2 × 2 portions from here on" in tuned.events
    assert calls[-1] == 2
    found, wanted = losses_of(tmp_path / "scarce"), losses_of(tmp_path / "plain")
    assert sorted(found) == [1, 2, 3] and found == pytest.approx(wanted, abs=1e-4)


@pytest.mark.slow
def test_a_loss_that_is_no_number_ends_the_training_by_name(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import trl

    step = trl.SFTTrainer.training_step
    monkeypatch.setattr(
        trl.SFTTrainer,
        "training_step",
        lambda self, *rest: step(self, *rest) * (float("nan") if self.state.global_step == 2 else 1.0),
    )
    recipe = small_recipe(checkpoint("llava"), rows, tmp_path)
    with pytest.raises(EnvironmentProblem, match=r"step 3.*nan"):
        train_rationale(recipe)
    assert weights.last_checkpoint(tmp_path / "checkpoints")[0] == tmp_path / "checkpoints" / "checkpoint-2"
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem",
    [OSError(28, "No space left on device"), SafetensorError("I/O error: No space left on device (os error 28)")],
)
def test_a_full_disk_is_named_and_nothing_half_stays(
    problem: Exception, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import trl

    save = trl.SFTTrainer._save_optimizer_and_scheduler

    def full(self: Any, folder: str) -> None:
        if self.state.global_step > 2:
            raise problem
        save(self, folder)

    monkeypatch.setattr(trl.SFTTrainer, "_save_optimizer_and_scheduler", full)
    recipe = small_recipe(checkpoint("llava"), rows, tmp_path)
    with pytest.raises(EnvironmentProblem, match=r"disk.*full"):
        train_rationale(recipe)
    assert [path.name for path in (tmp_path / "checkpoints").glob("checkpoint-*")] == ["checkpoint-2"]
    monkeypatch.undo()
    assert train_rationale(recipe).steps == 6


@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_command_goes_on(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from snellen.kits.train.tuning import TrainingMonitor

    log = TrainingMonitor.on_log

    def press(self: Any, args: Any, state: Any, control: Any, **more: Any) -> None:
        log(self, args, state, control, **more)
        if state.global_step == 3:
            import signal

            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TrainingMonitor, "on_log", press)
    recipe = small_recipe(checkpoint("llava"), rows, tmp_path / "out")
    tuned = train_rationale(recipe)
    assert tuned.interrupted and not (tmp_path / "out" / "model").exists()
    monkeypatch.undo()
    again = train_rationale(recipe)
    assert not again.interrupted and again.steps == 6
    whole = replace(recipe, output=str(tmp_path / "whole"))
    train_rationale(whole)
    assert_same_losses(losses_of(tmp_path / "out"), losses_of(tmp_path / "whole"))


def test_a_planted_picture_is_refused_named_and_allowed_only_aloud(rows: Path, tmp_path: Path) -> None:
    bench = tmp_path / "bench.jsonl"
    shutil.copy(rows.parent / "3.png", tmp_path / "held.png")
    bench.write_text(json.dumps({"id": "q1", "image": "held.png", "question": "what?", "answer": "orange"}) + "\n")
    recipe = replace(small_recipe(checkpoint("llava"), rows, tmp_path / "out"), against=(str(bench),))
    with pytest.raises(UsageError, match=r"rows:4\.1.*q1.*bench\.jsonl"):
        prepare_training(recipe, lambda _: None)
    said: list[str] = []
    prepare_training(replace(recipe, allow_overlap=True), said.append)
    assert any("overlap, as allowed" in line for line in said)


def test_data_without_a_rationale_and_pictures_that_are_missing_are_refused(rows: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"prompt": "what?", "completion": "red"}) + "\n")
    recipe = small_recipe(checkpoint("llava"), bare, tmp_path / "out")
    with pytest.raises(UsageError, match=r"bare\.jsonl"):
        prepare_training(recipe, lambda _: None)
    bare.write_text(json.dumps({"image": "no.png", "prompt": "what?", "completion": "I see red. So red."}) + "\n")
    with pytest.raises(DataError, match="1 picture missing"):
        prepare_training(recipe, lambda _: None)


def test_a_model_without_a_chat_template_or_eyes_is_refused(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no chat template"):
        prepare_training(small_recipe(checkpoint("blip2"), rows, tmp_path / "a"), lambda _: None)
    with pytest.raises(UsageError, match="pictures"):
        prepare_training(small_recipe(checkpoint("text"), rows, tmp_path / "b"), lambda _: None)


def test_arguments_of_trl_pass_and_unknown_ones_are_named(rows: Path, tmp_path: Path) -> None:
    recipe = small_recipe(checkpoint("llava"), rows, tmp_path)
    with pytest.raises(ConfigError, match="betaa"):
        train_rationale(replace(recipe, trl={"betaa": 1}))
    with pytest.raises(ConfigError, match=r"trl\.seed"):
        train_rationale(replace(recipe, trl={"seed": 1}, output=str(tmp_path / "b")))


def test_report_to_is_checked_before_anything_is_prepared(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    line = ["train", "rationale", "--model", f"hf/{checkpoint('llava')}", "--stage", "sft", "--data", rows, "-o", out]
    assert run_command([*line, "--report-to", "tensorbord"]) == 2
    said = capsys.readouterr().err
    assert "training.report_to: 'tensorbord'" in said and "did you mean 'tensorboard'" in said
    assert "Traceback" not in said and not (out / "data").exists()
    monkeypatch.setattr(trl_door.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"snellen\[wandb\]"):
        trl_door.check_listeners(["wandb"])
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=r"report_to = 'neptune': .*[Nn]eptune"):
        trl_door.check_listeners(["neptune"])


def test_tensorboard_hears_what_is_written_and_who_listens_is_no_part_of_a_training(rows: Path, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    recipe = small_recipe(checkpoint("llava"), rows, tmp_path, steps=2, report_to=("tensorboard",))
    train_rationale(recipe)
    (file,) = (tmp_path / "checkpoints").glob("runs/*/events*")
    events = accumulator.EventAccumulator(str(file))
    events.Reload()
    heard = {point.step: point.value for point in events.Scalars("train/loss")}
    assert heard == pytest.approx(losses_of(tmp_path), rel=1e-5) and sorted(heard) == [1, 2]
    tuned = train_rationale(replace(recipe, training=replace(recipe.training, report_to=())))
    assert tuned.steps == 2, "the same training"


@pytest.mark.slow
def test_wandb_offline_keeps_what_is_written(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name, value in (("WANDB_MODE", "offline"), ("WANDB_DIR", str(tmp_path)), ("WANDB_SILENT", "true")):
        monkeypatch.setenv(name, value)
    train_rationale(small_recipe(checkpoint("llava"), rows, tmp_path / "out", steps=2, report_to=("wandb",)))
    import wandb

    wandb.finish()
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    kept = file.read_bytes()
    assert b"train/loss" in kept and b"train/learning_rate" in kept


def test_a_listener_that_refuses_is_one_line(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")

    def refuse(**_: Any) -> None:
        raise wandb.errors.UsageError("No API key configured.\nUse `wandb login`")

    monkeypatch.setattr(wandb, "init", refuse)
    recipe = small_recipe(checkpoint("llava"), rows, tmp_path / "out", steps=2, report_to=("wandb",))
    with pytest.raises(EnvironmentProblem, match=r"^training failed: No API key configured\.; .* is whole$"):
        train_rationale(recipe)


@pytest.mark.slow
def test_mlflow_keeps_what_is_written_in_a_local_folder(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    place = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", place)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "training")
    train_rationale(small_recipe(checkpoint("llava"), rows, tmp_path / "out", steps=2, report_to=("mlflow",)))
    client = tracking.MlflowClient(place)
    (found,) = client.search_runs([client.get_experiment_by_name("training").experiment_id])
    heard = {point.step: point.value for point in client.get_metric_history(found.info.run_id, "loss")}
    assert heard == pytest.approx(losses_of(tmp_path / "out"), rel=1e-6) and sorted(heard) == [1, 2]


def test_grpo_refuses_questions_without_a_reward(rows: Path, tmp_path: Path) -> None:
    recipe = small_recipe(checkpoint("llava"), rows, tmp_path, trainer="grpo")
    with pytest.raises(UsageError, match=r"rows:1\.1"):
        prepare_training(replace(recipe, stage="feedback"), lambda _: None)
