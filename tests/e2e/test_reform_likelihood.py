"""`snellen run reform/vqa-v2 --infer-method likelihood --model hf/DIR` on the fixture, and an interface class on the same data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import reform_fixtures
from extras import needs

needs("torch", "transformers")

from command_line import run_command
from snellen.store.reader import RunReader
from tiny_checkpoints import checkpoint

pytestmark = pytest.mark.slow
INTERFACE = '''
class LLaVA_Interface:
    """As in the seed's guide: a batch of PIL images and prompts in, indices or texts out."""

    def __init__(self, model_name, device=None):
        self.model_name = model_name

    def raw_batch_generate(self, image, prompt, temperature=0.2, max_new_tokens=30):
        return ["The answer is (A)"] * len(prompt)

    def raw_batch_predict(self, image, prompt, candidates):
        assert all("(A)" not in text and picture.mode == "RGB" for text, picture in zip(prompt, image))
        return [sorted(range(len(each)), key=lambda i: each[i])[0] for each in candidates]
'''


@pytest.fixture
def bundle(tmp_path) -> Path:
    reform_fixtures.raw("vqa-v2", tmp_path / "raw")
    assert (
        run_command(
            [
                "data",
                "build",
                "reform/vqa-v2",
                "--raw",
                str(tmp_path / "raw"),
                "-o",
                str(tmp_path / "bundle"),
                "--no-check",
            ]
        )
        == 0
    )
    return tmp_path / "bundle"


def run(bundle, folder, capsys, *flags):
    path = ["-p", f"dataset.path={bundle}", "-o", str(folder), "--no-cache", "--quiet", "--json"]
    assert run_command(["run", "reform/vqa-v2", "--infer-method", "likelihood", *path, *flags]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])["tasks"]["reform/vqa-v2"]


@pytest.mark.parametrize("kind", ["llava", "instructblip"])
def test_vqa_v2_by_likelihood(kind, bundle, tmp_path, capsys):
    result = run(bundle, tmp_path / "run", capsys, "--model", f"hf/{checkpoint(kind)}")
    accuracy = result["metrics"]["accuracy"]
    assert accuracy["n"] == 36
    assert accuracy["failed"] == 0
    assert 0 <= result["metrics"]["ece"]["value"] <= 1
    reader = RunReader(tmp_path / "run")
    sample, request, prediction, _ = next(iter(reader.trials("reform/vqa-v2")))
    assert request.choices == sample.options
    assert "Options" not in request.messages[-1].text
    assert len(prediction.loglikelihoods) == len(sample.options)
    reader.close()


def test_an_interface_class_on_the_same_questions(bundle, tmp_path, capsys):
    (tmp_path / "llava_interface.py").write_text(INTERFACE)
    plugin = [
        "--plugin",
        str(tmp_path / "llava_interface.py"),
        "--model",
        "plugin/LLaVA_Interface",
        "--model-arg",
        "model_name=x",
    ]
    result = run(bundle, tmp_path / "run", capsys, *plugin)
    assert result["metrics"]["accuracy"]["n"] == 36
