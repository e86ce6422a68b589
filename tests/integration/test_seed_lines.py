"""Command lines of the systems people come from, word for word as their documents have them, against a server here.

Only the program's name changes. The files that a line names are written first; of the model's server only the address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import reform_fixtures
from command_line import json_of, run_command
from snellen.data.catalog import Catalog
from snellen.kits.movers.lines import translate
from twofaced_server import TwoFaced, twofaced

RUN_EVAL = """--model lynx  --model_name models/interfaces/lynx/configs/LYNX.yaml
    --dataset_name VisDial --output_dir output/lynx/VisDial/test_generation/
    --per_gpu_eval_batch_size 4 --formulation SingleChoice
    --infer_method generation --do_eval --half_evaluation  --dataset_duplication 1
    --in_context_sample --option_mark upper
    --dataset_config build/configs/VisDial_val_v1.2.yaml"""
DATASETS = """
Flowers102 SingleChoice ImageClassification_flowers102_val.yaml
CIFAR10 SingleChoice ImageClassification_cifar10_val.yaml
ImageNet-1K SingleChoice ImageClassification_imagenet1k_val.yaml
Pets37 SingleChoice ImageClassification_pets37_val.yaml
VizWiz SingleChoice ImageQuality_vizwiz_yesNo_val.yaml
VizWiz SingleChoice ImageQuality_vizwiz_singleChoice_val.yaml
TDIUC SingleChoice TDIUC_scene.yaml
MEDIC SingleChoice DisasterType_val.yaml
MSCOCO SingleChoice MulticlassIdentification_val.yaml
MSCOCO SingleChoice GroundedObjIdentification_val.yaml
MSCOCO SingleChoice MissingObjectSelection_val.yaml
TDIUC SingleChoice TDIUC_color.yaml
TDIUC SingleChoice TDIUC_utility.yaml
TDIUC SingleChoice TDIUC_position.yaml
TDIUC SingleChoice TDIUC_detection.yaml
TDIUC SingleChoice TDIUC_counting.yaml
RefCOCO SingleChoice ReferringExpression_val.yaml
MSCOCO SingleChoice ObjectCounting_mscoco_val.yaml
VQA SingleChoice VQA_vqa_v2_val.yaml
VQA SingleChoice VQA_gqa_val_v2.0.yaml
VQA SingleChoice VQA_whoops_val.yaml
VQA SingleChoice VQA_okvqa_val.yaml
VQA SingleChoice VQA_scienceqa_val_v2.0.yaml
VQA SingleChoice VQA_vizwiz_val_v2.0.yaml
VQA SingleChoice VQA_viquae_val.yaml
KVQA SingleChoice KVQA_viquae_val.yaml
VQA SingleChoice VQA_aokvqa_val.yaml
VQRA SingleChoice VQRA_aokvqa_val.yaml
VQAR SingleChoice VQAR_aokvqa_val.yaml
VQA SingleChoice VQA_imagenetvc_val.yaml
CLEVR SingleChoice Spatial_clevr_val.yaml
VSR SingleChoice Spatial_vsr_val.yaml
MP3D SingleChoice Spatial_mp3d_val.yaml
VisDial SingleChoice VQA_vqa_MultiRound_val.yaml --online_multi_round --num_workers 0
VisDial SingleChoice VisDial_val_v1.2.yaml --online_multi_round --num_workers 0
MSCOCO SingleChoice ImageTextMatching_val.yaml
MSCOCO SingleChoice ImageTextSelection_val.yaml
WikiHow SingleChoice TemporalOrdering_val.yaml
CaptionSelection SingleChoice CaptionSelection_winoground_val.yaml
SNLI-VE SingleChoice VisualEntailment_val.yaml
MCV SingleChoice MCV_mocheg_val.yaml
IC15 OCROpenEnded GroundOCR_ic15_val.yaml
IC15 OCROpenEnded OCR_ic15_val.yaml
COCO_text OCROpenEnded GroundOCR_cocotext_val.yaml
COCO_text OCROpenEnded OCR_cocotext_val.yaml
TextOCR OCROpenEnded GroundOCR_textocr_val.yaml
TextOCR OCROpenEnded OCR_textocr_val.yaml
CUTE80 OCROpenEnded OCR_cute80_val.yaml
IIIT5K OCROpenEnded OCR_iiit5k_val.yaml
WordArt OCROpenEnded OCR_wordart_val.yaml
FUNSD KIEOpenEnded KIE_funsd_val.yaml
POIE OCROpenEnded KIE_poie_val.yaml
SROIE OCROpenEnded KIE_sroie_val.yaml
OCR OCROpenEnded OCR_textvqa_val.yaml
OCR OCROpenEnded OCR_docvqa_val.yaml
OCR OCROpenEnded OCR_ocrvqa_val.yaml
MSCOCO Generation Caption_MSCOCO_val.yaml
TextCaps Generation Caption_TextCaps_val.yaml
NoCaps Generation Caption_NoCaps_val.yaml
Flickr30K Generation Caption_Flickr30K_val.yaml
"""
"""Each line of its datasets: --dataset_name, --formulation, --dataset_config build/configs/…, and what follows."""
LOADER_EVAL = """--formulation SingleChoice --eval_stability
    --prediction_file test_output/SingleChoice/TDIUC_SingleChoice_likelihood_imagebindLLM_imagebindLLM.json"""
GPT_4O_MINI = """--tasks tasks/blink/blink_val.py  --exec model_zoo/vlm/api_model/model_adapter.py --model gpt-4o-mini
    --num-workers 8 --output-dir ./results_temperature/gpt-4o-mini --url openai_url --api-key openai_api_key
    --num-infers 5 --temperature 0.6 --try-run --use-cache"""
QWEN = """--tasks tasks/blink/blink_val.py --cfg model_configs/open/Qwen2.5-VL-7B-Instruct.json --quiet
    --output-dir ./results/Qwen2.5-VL-7B-Instruct --exec model_zoo/vlm/api_model/model_adapter.py --backend vllm
    --num-infers 3 --try-run --temperature 0.6"""
MC = """--data-json data/longbenchv2/data.json --images-dir data/vqa --output results/qwen3
    --config config/vqa/qwen3-vl.json --base_url http://localhost:8000/v1 --max_workers 128"""
NIAH = """--data data/niah/data.json --images data/niah/longbenchv2_img/images
    --output results/niah/model_name.json --config config/vqa/qwen3-vl.json
    --base_url http://localhost:8000/v1 --max_workers 128"""
AISBENCH = "--models vllm_api_general_chat --datasets mine_gen --config-dir configs -w outputs/default --num-prompts 6"

HEADLINES = {
    "SingleChoice": ("accuracy",),
    "OCROpenEnded": ("ocr_accuracy", "kie_accuracy", "anls", "any_exact"),
    "KIEOpenEnded": ("kie_accuracy",),
    "Generation": ("cider",),
}

BLINK = """
task_name = "vqa"

config = dict(
    dataset_path="BLINK-Benchmark/BLINK",
    split="val",
    processed_dataset_path="BLINK",
    processor="process.py",
)

dataset = dict(
    type="VqaBaseDataset",
    config=config,
    prompt_template=dict(
        type="PromptTemplate",
        post_prompt="The last line of your response should be of the following format: 'Answer: $LETTER' (without quotes) where LETTER is one of options.",
    ),
    name="blink_val",
)

evaluator = dict(type="MultiInferenceEvaluator", detailed_keys=["sub_task"])
"""
LYNX = """
import json
class ConvSingleChoiceProcessor:
    response_prefix = "The answer is"
class Lynx_Interface:
    def __init__(self, model_config=None, device=None, half=False, inference_method="generation"):
        with open(model_config) as file:
            self.word = file.read().strip()
        assert half and inference_method == "generation"
    def raw_batch_generate(self, image, prompt, temperature=1, max_new_tokens=30):
        assert all(picture.size for picture in image)
        return [f"The answer is {self.word}" for _ in prompt]
def get_lynx(model_config=None):
    model_args = {}
    names = {"model_name": "model_config", "device": "device", "half": "half", "inference_method": "inference_method"}
    for name, target in names.items():
        if name in model_config:
            model_args[target] = model_config[name]
    return Lynx_Interface(**model_args), ConvSingleChoiceProcessor()
"""
AIS_MODEL = """
from ais_bench.benchmark.models import VLLMCustomAPIChat
models = [dict(attr="service", type=VLLMCustomAPIChat, abbr="vllm-api-general-chat", path="", model="m",
               url="{url}", max_out_len=64, batch_size=2, generation_kwargs=dict(temperature=0.5))]
"""
AIS_DATA = r"""
from ais_bench.benchmark.openicl.icl_inferencer import GenInferencer
reader_cfg = dict(input_columns=["problem"], output_column="gold")
infer_cfg = dict(
    prompt_template=dict(type=PromptTemplate, template=dict(round=[dict(
        role="HUMAN", prompt="{problem}\nRemember to put your final answer within \\boxed{}.")])),
    retriever=dict(type=ZeroRetriever), inferencer=dict(type=GenInferencer))
mine_datasets = [dict(abbr="mine", type=MyDataset, path="rows.jsonl", reader_cfg=reader_cfg, infer_cfg=infer_cfg)]
"""


def reply(request: Any, body: dict[str, Any]) -> str:
    """Answer as the truth of each test says, by the number in the question."""
    said = json.dumps(body["messages"])
    kind, number = re.findall(r"\b([BDNP])(\d+)\?", said)[-1]
    right = int(number) % 4 != 0
    return {
        "B": f"I look.\nAnswer: {'A' if right else 'B'}",
        "D": "(B)" if right else "(C)",
        "N": f"It is Secret{number}." if right else "I do not know.",
        "P": f"So it is \\boxed{{{number if right else 0}}}.",
    }[kind]


class Here:
    """A folder as a user of the original has it, and the server that answers there."""

    def __init__(self, folder: Path, faces: TwoFaced, url: str) -> None:
        self.folder, self.faces, self.url = folder, faces, url

    def put(self, name: str, content: Any) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def draw(self, *names: str) -> None:
        for number, name in enumerate(names):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 20), (number % 256, 0, 0)).save(self.folder / name)

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def words(self, line: str) -> list[str]:
        return line.replace("http://localhost:8000/v1", self.url).replace("openai_url", self.url).split()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SNELLEN_CACHE_DIR", str(tmp_path / "cache"))
    faces = TwoFaced(reply, names=("m", "gpt-4o-mini", "Qwen2.5-VL-7B-Instruct"))
    with twofaced(faces) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        yield Here(tmp_path, faces, url)


def test_reform_eval_runs_the_line_of_its_demo(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    reform_fixtures.raw("visdial", here.folder / "data" / "visdial")
    here.put("models/interfaces/lynx/configs/LYNX.yaml", "(A)")
    here.put("lynx_interface.py", LYNX)
    code = run_command(
        ["reform-eval", *here.words(RUN_EVAL), "--", "--plugin", "lynx_interface.py", "--data-root", "data"]
    )
    said = capsys.readouterr()
    assert code == 0, said.err
    assert "snellen run reform/visdial --model plugin/lynx" in said.err and "--response-prefix" in said.err
    found = here.read("output/lynx/VisDial/test_generation/results.json")["tasks"]["reform/visdial"]["metrics"]
    assert (found["accuracy"]["n"], found["accuracy"]["failed"]) == (48, 0), "4 dialogues of 12 rounds"
    first = (here.folder / "output/lynx/VisDial/test_generation/records.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["text"] == "The answer is (A)"


def test_the_demo_runs_with_the_other_place_of_its_configuration_too(here: Here) -> None:
    line = RUN_EVAL.replace("build/configs", "datasets/configs")
    assert translate("reform-eval", line.split()) == translate("reform-eval", RUN_EVAL.split())


def test_reform_eval_runs_the_line_of_each_of_its_datasets(
    here: Here, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(here.folder))  # without Java: METEOR takes seconds to start, for each of four
    for slug in reform_fixtures.RAW:
        reform_fixtures.raw(slug, here.folder / "data" / slug)
    rows = [row.split() for row in DATASETS.strip().splitlines()]
    assert len(rows) == 60, "the document gives one of its 61 twice"
    for number, (name, formulation, config, *rest) in enumerate(rows):
        line = f"--dataset_name {name} --formulation {formulation} --dataset_config build/configs/{config}".split()
        own = f"-- --model blind/first --data-root data --limit 2 -o runs/{number} --quiet".split()
        assert run_command(["reform-eval", *line, *rest, *own]) == 0, (line, capsys.readouterr().err)
        ((card, task),) = here.read(f"runs/{number}/results.json")["tasks"].items()
        assert Catalog().task(card).dataset["keys"]["config"] == config
        assert task["headline"] in HEADLINES[formulation] and task["metrics"][task["headline"]]["n"] > 0, card


def test_the_file_of_its_loader_is_scored_by_its_own_line(here: Here) -> None:
    rows = [
        {"sample_id": f"TDIUC_{n}", "answer": 1, "answer_options": ["yes", "no", "maybe"], "prediction": n % 2}
        for n in range(4)
        for _ in range(2)
    ]
    here.put("test_output/SingleChoice/TDIUC_SingleChoice_likelihood_imagebindLLM_imagebindLLM.json", rows)
    found = json_of("score", *here.words(LOADER_EVAL), "--json")["metrics"]
    assert (found["accuracy"]["value"], found["instability"]["value"]) == (0.5, 0.0)


@pytest.fixture
def blink(here: Here) -> Here:
    rows = [
        {"question_id": f"q{n}", "img_path": [f"img/{n}.png"], "question": f"B{n}?\nOptions:\n(A) x\n(B) y"}
        | {"question_type": "multiple-choice", "answer": "A", "sub_task": f"s{n % 2}"}
        for n in range(40)
    ]
    here.put("tasks/blink/blink_val.py", BLINK)
    here.put("BLINK/data.json", rows)
    here.draw(*(f"BLINK/img/{n}.png" for n in range(40)))
    started = {"model_name": "Qwen2.5-VL-7B-Instruct", "max_num_frames": 8, "extra_args": "--max-model-len 32768"}
    here.put("model_configs/open/Qwen2.5-VL-7B-Instruct.json", started)
    return here


@pytest.mark.parametrize(
    ("line", "folder", "repeats"),
    [(GPT_4O_MINI, "results_temperature/gpt-4o-mini", 5), (QWEN, "results/Qwen2.5-VL-7B-Instruct", 3)],
)
def test_flagevalmm_runs_both_of_its_lines(
    blink: Here, line: str, folder: str, repeats: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command(["flagevalmm", *blink.words(line)])
    said = capsys.readouterr().err
    assert code == 0, said
    assert "snellen run migrated/blink_val.toml" in said and "Evaluator" not in said
    task = blink.read(f"{folder}/results.json")["tasks"]["blink_val"]
    accuracy = task["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (0.75, 32 * repeats), "24 of the first 32 are right"
    groups = {name: group["accuracy"]["value"] for name, group in task["groups"]["sub_task"].items()}
    assert groups == {"s0": 0.5, "s1": 1.0}
    assert not any(b"openai_api_key" in path.read_bytes() for path in (blink.folder / folder).rglob("*.*"))


def test_aisbench_runs_a_line_with_its_own_configuration(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here.put("configs/models/vllm_api/vllm_api_general_chat.py", AIS_MODEL.replace("{url}", here.url))
    here.put("configs/datasets/mine/mine_gen.py", AIS_DATA)
    here.put("rows.jsonl", "\n".join(json.dumps({"problem": f"P{n}?", "gold": str(n)}) for n in range(1, 9)))
    code = run_command(["aisbench", *here.words(AISBENCH)])
    assert code == 0, capsys.readouterr().err
    accuracy = here.read("outputs/default/results.json")["tasks"]["mine"]["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (pytest.approx(5 / 6), 6), "4 is answered with 0"
    (asked,) = {text.replace(re.findall(r"P\d", text)[0], "P") for text in here.faces.texts}
    assert asked == "P?\nRemember to put your final answer within \\boxed{}.", "the template as it is written"


def test_the_vqa_scripts_lines(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    document = {"choice_A": "a", "choice_B": "b", "choice_C": "c", "choice_D": "d", "answer": "B", "context": "x " * 50}
    kinds = (("easy", "short"), ("hard", "long"))
    here.put(
        "data/longbenchv2/data.json",
        [
            {"_id": f"d{n}", "question": f"D{n}?", **document, "difficulty": kinds[n % 2][0], "length": kinds[n % 2][1]}
            for n in range(8)
        ],
    )
    variants = ("longbenchv2_img", "adv_dpi_56")
    here.draw(*(f"data/vqa/{variant}/images/d{n}_page_0.png" for variant in variants for n in range(8)))
    (here.folder / "data/vqa/notes").mkdir()
    here.put("config/vqa/qwen3-vl.json", {"model_name": "m", "max_tokens": 128, "temperature": 0.0})
    needles = [
        {"_id": f"n{i}", "questions": [f"N{i}{k}?" for k in range(3)], "answers": [f"Secret{i}{k}" for k in range(3)]}
        for i in (1, 2)
    ]
    here.put("data/niah/data.json", needles)
    here.draw(*(f"data/niah/longbenchv2_img/images/n{i}_page_0.png" for i in (1, 2)))

    assert run_command(["mc", *here.words(MC)]) == 0, capsys.readouterr().err
    for variant in variants:
        found = here.read(f"results/qwen3/{variant}_mc_eval.json")
        assert (found["total_questions"], found["correct"], found["accuracy"]) == (8, 6, 75.0)
        both = found["detailed_analysis"]["by_difficulty_and_length"]
        assert both["easy"]["short"] == {"total": 4, "correct": 2, "accuracy": 50.0}
    assert not (here.folder / "results/qwen3/notes_mc_eval.json").exists()

    assert run_command(["niah", *here.words(NIAH)]) == 0, capsys.readouterr().err
    found = here.read("results/niah/model_name.json")
    assert (found["total_questions"], found["correct"], found["errors"]) == (6, 4, 0), "12 and 20 are not known"
    assert found["instance_accuracies"]["n1"] == {"total": 3, "correct": 2, "accuracy": 66.67}
    assert [one["question_idx"] for one in found["results"]] == [0, 1, 2, 0, 1, 2]
    assert (found["by_kind"], found["by_needle_depth"]) == ({}, {}), "the data does not say"
    sensitive = ["--case_sensitive", "--output", "results/niah/case.json"]
    here.faces.answer = lambda request, body: reply(request, body).lower()
    assert run_command(["niah", *here.words(NIAH), *sensitive, "--no-cache"]) == 0
    case = here.read("results/niah/case.json")
    assert (case["correct"], case["word_boundary_accuracy"]) == (0, 0.0)
    assert case["config_hash"] != found["config_hash"]


def test_cure_counts_the_lists_of_its_document(here: Here) -> None:
    high, high_said = [1, 2, 3, 4, 5], [1, 2, 3, 3, 5]
    steps, steps_said = [[1], [2], [3], [4], [5]], [[1], [2], [3], [3], [5]]
    chains = [
        {"ground_truth": {"inference": right, "chain": chain}, "prediction": {"inference": said, "chain": said_chain}}
        for right, chain, said, said_chain in zip(high, steps, high_said, steps_said, strict=True)
    ]
    here.put("chains.json", chains)
    found = json_of("score", "chains.json", "--formulation", "Consistency", "--convention", "over-n", "--json")[
        "metrics"
    ]
    names = ("Rh", "Rcot", "Ro", "Cf", "Cb")
    assert {name: found[name]["value"] for name in names} == dict.fromkeys(names, 0.8)
