"""Command lines and files of the systems people come from, typed as there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from command_line import run_command
from snellen.core.errors import DataError, UsageError
from snellen.kits.movers.lines import translate
from snellen.kits.movers.task_files import read_assignments, read_task_file

LYNX = """--model lynx --model_name models/interfaces/lynx/configs/LYNX.yaml --dataset_name VisDial
--output_dir output/lynx/VisDial/test_generation/ --per_gpu_eval_batch_size 4 --formulation SingleChoice
--infer_method generation --do_eval --half_evaluation --dataset_duplication 1 --in_context_sample --option_mark upper
--dataset_config build/configs/VisDial_val_v1.2.yaml --offline_hf"""

BLINK = """
import os
os.system("touch ran")
config = dict(dataset_path="BLINK", split="val", processed_dataset_path="BLINK", processor="process.py")
dataset = dict(type="VqaBaseDataset", config=config, name="blink_val",
               prompt_template=dict(type="PromptTemplate", post_prompt="End with 'Answer: $LETTER'."))
evaluator = dict(type="BaseEvaluator", detailed_keys=["sub_task"])
"""
AIS = r"""
from somewhere import PromptTemplate, ZeroRetriever, GenInferencer, MyDataset
reader_cfg = dict(input_columns=["problem"], output_column="gold")
infer_cfg = dict(
    prompt_template=dict(type=PromptTemplate, template=dict(round=[dict(
        role="HUMAN", prompt="{problem}\nRemember to put your final answer within \\boxed{}.")])),
    retriever=dict(type=ZeroRetriever), inferencer=dict(type=GenInferencer))
my_datasets = [dict(abbr="mine", type=MyDataset, path="rows.jsonl", reader_cfg=reader_cfg, infer_cfg=infer_cfg,
                    eval_cfg=dict(evaluator=dict(type="Acc")))]
"""
MODEL = """
models = [dict(type=VLLMCustomAPIChat, attr="service", model="qwen", host_ip="127.0.0.1", host_port=9, max_out_len=64,
               batch_size=3, generation_kwargs=dict(temperature=0.5, top_k=10))]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_a_line_of_reform_eval() -> None:
    found = translate("reform-eval", LYNX.split())
    said = found.arguments
    assert said[:3] == ["reform/visdial", "--model", "plugin/lynx"]
    assert "model_name=models/interfaces/lynx/configs/LYNX.yaml" in said and "--half" in said
    assert "dataset.source=prepared" in said and said[said.index("--batch-size") + 1] == "4"
    assert "--no-options-in-history" in said and said[-2:] == ["--profile", "reform"]
    assert [note.split()[0] for note in found.notes] == ["--do_eval"]


def test_a_line_of_flagevalmm_is_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "blink_val.py").write_text(BLINK)
    rows = [
        {"question_id": str(n), "question": f"Q{n}?\n(A) x\n(B) y", "question_type": "multiple-choice", "answer": "A"}
        | {"sub_task": "s"}
        for n in range(40)
    ]
    (here / "data" / "BLINK").mkdir(parents=True)
    (here / "data" / "BLINK" / "data.json").write_text(json.dumps(rows))
    line = "--tasks blink_val.py --data-root data --exec model_zoo/vlm/api_model/model_adapter.py --backend vllm"
    line += " --num-infers 2 --try-run --quiet --output-dir out -- --model blind/first"
    code = run_command(["flagevalmm", *line.split()])
    said = capsys.readouterr().err
    assert code == 0, said
    assert "snellen run migrated/blink_val.toml" in said and "--backend is not used" in said
    task = json.loads((here / "out" / "results.json").read_text())["tasks"]["blink_val"]
    assert task["metrics"]["accuracy"]["value"] == 1.0 and task["metrics"]["accuracy"]["n"] == 64
    assert not (here / "ran").exists(), "nothing in the file is run"
    assert tomllib.loads((here / "migrated" / "blink_val.toml").read_text())["group_by"] == ["sub_task"]


def test_a_line_of_aisbench(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, name, text in (("models", "vllm_api", MODEL), ("datasets", "mine_gen", AIS)):
        (here / "configs" / kind / "x").mkdir(parents=True)
        (here / "configs" / kind / "x" / f"{name}.py").write_text(text)
    line = "--models vllm_api --datasets mine_gen --config-dir configs --num-prompts 5 --dry-run -w out"
    assert run_command(["aisbench", *line.split()]) == 0
    said = capsys.readouterr().err
    wanted = ("--model openai/qwen", "--base-url http://127.0.0.1:9/v1", "--max-workers 3", "--temperature 0.5")
    assert all(words in said for words in (*wanted, "--limit 5", "migrated/mine.toml")), said
    assert "generation_kwargs.top_k is not taken" in said
    task = tomllib.loads((here / "migrated" / "mine.toml").read_text())
    assert task["prompt"]["template"] == "{question}\nRemember to put your final answer within \\boxed{}."
    assert task["dataset"]["columns"] == {"question": "problem", "answer": "gold"}


def test_a_key_is_not_printed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["flagevalmm", "--tasks", "no_such_task", "--api-key", "sk-secret", "--model", "m"])
    assert "sk-secret" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("system", "line", "named"),
    [
        ("reform-eval", "--dataset_name VQA --half_evaluatoin", "--half_evaluation"),
        ("reform-eval", "--model lynx", "--dataset_name"),
        (
            "reform-eval",
            "--dataset_name VisDial --dataset_config VisDial_val_v1.2.yaml --formulation Generation",
            "Choice",
        ),
        ("flagevalmm", "--tasks a.py --without-infer", "snellen score"),
        ("flagevalmm", "--tasks a --model-type hunyuan", "hunyuan"),
        ("aisbench", "--mode perf --datasets x", "snellen perf"),
        ("aisbench", "--datasets x --num-prompts", "--num-prompts"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(system: str, line: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        translate(system, line.split())


def test_migrate(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "t.py").write_text(BLINK)
    assert run_command(["migrate", "t.py", "-o", "new/task.toml"]) == 0
    task = tomllib.loads((here / "new" / "task.toml").read_text())
    assert task["dataset"] == {"loader": "table", "path": "../BLINK", "preset": "flageval"}
    assert task["prompt"]["instructions"] == ["End with 'Answer: $LETTER'."]
    assert run_command(["migrate", "t.py", "-o", "new/task.toml"]) == 2, "nothing is overwritten"
    assert run_command(["migrate", "VQA_vqa_v2_val.yaml"]) == 0
    assert "reform/vqa-v2" in capsys.readouterr().out


def test_python_is_read_as_syntax(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("a = 'x' + 'y'\nb = {**dict(c=1), 'd': [a, f()]}\ne = f()\ng = Klass\n")
    assert read_assignments(path) == {"a": "xy", "b": {"c": 1, "d": ["xy"]}, "g": "Klass"}
    path.write_text("a = (")
    with pytest.raises(DataError, match=r"x\.py"):
        read_assignments(path)
    path.write_text("a = 1")
    with pytest.raises(DataError, match="neither"):
        read_task_file(path)
