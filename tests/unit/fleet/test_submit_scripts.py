"""Scripts for schedulers: good shell, good YAML by Kubernetes' own schema, limits shared, wrong words refused."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from command_line import run_command
from snellen.core.errors import EnvironmentProblem, UsageError
from snellen.kits.arrays.scripts import (
    Submission,
    check,
    kubernetes_manifest,
    limit_s,
    share_limits,
    slurm_scripts,
    submit,
    submit_commands,
    write_scripts,
)

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


@pytest.mark.parametrize("name", ["a b", "50%", "it's #1", 'say "when"', "räume; $HOME"])
def test_a_folder_of_any_name_is_one_word_to_slurm(name: str, tmp_path: Path) -> None:
    for text in slurm_scripts(Submission(parts=2, serve="x"), RUN, tmp_path / name).values():
        directive = next(line for line in text.splitlines() if "--output=" in line).removeprefix("#SBATCH ")
        (word,) = shlex.split(directive)  # double quotes mean the same to Slurm, as `make slurm` shows
        assert word.startswith(f"--output={tmp_path}/{name.replace('%', '%%')}/submit/logs/")
        subprocess.run(["bash", "-n", "-c", text], check=True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("2:30", 150),
        ("1:00:00", 3600),
        ("1-12", 129600),
        ("0-0:5", 300),
        ("0-0:0:7", 7),
        ("UNLIMITED", None),
    ],
)
def test_a_time_limit_is_read_as_slurm_reads_it(text: str, seconds: int | None) -> None:
    assert limit_s(text) == seconds


def test_the_manifest_is_a_job_by_the_schema_of_kubernetes() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    text = kubernetes_manifest(Submission(parts=64, gpus="1", memory="8G", cpus=2), RUN, Path("/shared/My_Run"))
    manifest = yaml.safe_load(text)
    for version in ("1.29", "1.30", "1.37"):
        validate.validate(manifest, version, strict=True)
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
    for name in ("n" * 52, "a\nkind: Pod"):
        with pytest.raises(UsageError, match="-o /shared"):
            kubernetes_manifest(Submission(parts=1000), RUN, Path("/shared") / name)
    assert f"name: snellen-{'n' * 51}\n" in kubernetes_manifest(
        Submission(parts=1000), RUN, Path("/shared") / ("n" * 51)
    )


def test_rows_of_this_folder_are_refused_for_pods(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folder / "my.jsonl").write_text('{"id": "1", "question": "a?", "answer": "b"}')
    given = ["submit", "k8s", "--parts", "2", "--model", "blind/first", "-o", "/shared/run"]
    assert run_command([*given, "my.jsonl"]) == 2
    assert "/shared/my.jsonl" in capsys.readouterr().err
    assert run_command([*given, "/shared/my.jsonl"]) == 0


def test_what_no_scheduler_can_do_is_refused() -> None:
    for wrong in (Submission(parts=5_000), Submission(parts=4, parallel=5), Submission(parts=1, setup=("a\nb",))):
        with pytest.raises(UsageError):
            check(wrong)


SBATCH = """#!/bin/bash
echo "sbatch ${@##*/}" >> "$PLACE/asked"
[[ "$*" != *$REFUSED* ]] || { echo "sbatch: error: refused" >&2; exit 1; }
echo $(($(wc -l < "$PLACE/asked") + 40))
"""


@pytest.mark.parametrize(
    ("refused", "cancelled"), [("serve.sh", []), ("array.sh", ["41"]), ("merge.sh", ["41 42"]), ("none", [])]
)
def test_what_a_scheduler_takes_in_part_is_taken_back(
    refused: str, cancelled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", '#!/bin/bash\necho "scancel $*" >> "$PLACE/asked"\n')):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PLACE", str(tmp_path))
    monkeypatch.setenv("REFUSED", refused)
    scripts = slurm_scripts(Submission(parts=2, serve="vllm serve x"), RUN, tmp_path / "a b")
    write_scripts(tmp_path / "a b", scripts)
    commands = submit_commands(tmp_path / "a b", scripts)
    if refused == "none":
        assert submit(commands).split()[-1] == "42"
    else:
        with pytest.raises(EnvironmentProblem, match="sbatch: error: refused"):
            submit(commands)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.removeprefix("scancel ") for line in asked if line.startswith("scancel")] == cancelled


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
    served = [["--serve", "x"], ["--serve", "x", "--model", "openai/x", "--base-url", "http://127.0.0.1:9/v1"]]
    for more in (*served, ["--serve", "x", "--model", "hf/x"], ["--time", "2:00"], ["--time", "5", "--warn", "300"]):
        assert run_command([*given, "-o", "out", *more]) == 2, more
        assert len(capsys.readouterr().err.strip().splitlines()) == 1, more
    assert run_command([*given, "-o", "back\\slash"]) == 2
    assert "backslash" in capsys.readouterr().err
    assert not (own_folder / "out").exists()
    assert run_command([*given, "-o", "out"]) == 0
    assert (own_folder / "out" / "submit" / "array.sh").exists()
    assert run_command(["show", "out"]) == 3
    assert "no part has begun" in capsys.readouterr().err
