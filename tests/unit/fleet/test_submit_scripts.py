"""Scripts for schedulers: good shell, good YAML by Kubernetes' own schema, limits shared, wrong words refused."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from command_line import run_command
from snellen.core.errors import UsageError
from snellen.kits.arrays.scripts import Submission, check, kubernetes_manifest, share_limits, slurm_scripts

RUN = ["it's mine.jsonl", "--model", "openai/x", "-o", "a b", "--rate", "32", "--max-cost=64", "--max-errors", "5%"]


def test_limits_of_the_run_are_shared_by_its_parts() -> None:
    given = ["--rate", "32", "--max-workers", "8", "--max-cost=64", "--max-errors", "100", "--model", "x"]
    shared = ["--rate", "2", "--max-workers", "1", "--max-cost=1", "--max-errors", "2", "--model", "x"]
    assert share_limits(given, 64, 16) == shared


@pytest.mark.parametrize("more", [{}, {"serve": "vllm serve x --port 8000", "setup": ("module load a",), "gpus": "1"}])
def test_slurm_scripts_are_good_shell_and_ask_what_was_meant(more: dict[str, object], tmp_path: Path) -> None:
    scripts = slurm_scripts(Submission(parts=64, parallel=16, **more), RUN, tmp_path / "a b")  # type: ignore[arg-type]
    for text in scripts.values():
        subprocess.run(["bash", "-n", "-c", text], check=True)
    array = scripts["array.sh"]
    assert "#SBATCH --array=0-63%16" in array and "--signal=B:USR1@120" in array
    line = next(line for line in array.splitlines() if "--shard" in line)
    words = shlex.split(line.partition(" & ")[0])
    assert words[words.index("run") + 1] == "it's mine.jsonl" and words[words.index("--rate") + 1] == "2"
    assert ("serve.sh" in scripts) == bool(more) == ("--same-model" in words)


def test_the_manifest_is_a_job_by_the_schema_of_kubernetes() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    text = kubernetes_manifest(Submission(parts=64, gpus="1", memory="8G", cpus=2), RUN, Path("/shared/My_Run"))
    manifest = yaml.safe_load(text)
    validate.validate(manifest, "1.30", strict=True)
    spec = manifest["spec"]
    assert (spec["completionMode"], spec["completions"], spec["podReplacementPolicy"]) == ("Indexed", 64, "Failed")
    command = spec["template"]["spec"]["containers"][0]["command"]
    assert command[:3] == ["snellen", "run", "it's mine.jsonl"] and "env/64" in command


def test_a_folder_that_pods_do_not_share_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("runs/mine", "/elsewhere/run", "/shared2/run"):
        with pytest.raises(UsageError, match="--mount /shared"):
            kubernetes_manifest(Submission(parts=4), RUN, Path(folder))
    given = ["submit", "k8s", "--parts", "2", "my.jsonl", "--model", "blind/first", "-o", "/shared/run"]
    for wrong, named in ((["--serve", "x"], "Service"), (["--until-ci", "3"], "--until-ci")):
        assert run_command([*given, *wrong]) == 2
        assert named in capsys.readouterr().err


def test_what_no_scheduler_can_do_is_refused() -> None:
    for wrong in (Submission(parts=5_000), Submission(parts=4, parallel=5), Submission(parts=1, setup=("a\nb",))):
        with pytest.raises(UsageError):
            check(wrong)


def test_wrong_words_of_the_run_are_refused_before_anything_is_written(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_folder / "my.jsonl").write_text('{"id": "1", "question": "a?", "answer": "b"}')
    given = ["submit", "slurm", "--parts", "2", "my.jsonl", "--model", "blind/first"]
    wrong = [["--modl", "x"], [], ["-o", "out", "--shard", "0/2"], ["-o", "out", "--again"]]
    wrong += [
        ["-o", "out", *more] for more in (["--until-ci", "3"], ["--api-key=k"], ["--model", "nobody/x"], ["no.jsonl"])
    ]
    for more in wrong:
        assert run_command([*given, *more]) == 2, more
        assert len(capsys.readouterr().err.strip().splitlines()) == 1, more
    assert not (own_folder / "out").exists()
    assert run_command([*given, "-o", "out"]) == 0
    assert (own_folder / "out" / "submit" / "array.sh").exists()
    assert run_command(["show", "out"]) == 3
    assert "no part has begun" in capsys.readouterr().err
