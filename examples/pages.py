"""Long documents as pages, end to end: plant, render, degrade, ask the embedded readers, kill, resume, draw.

Run: python examples/pages.py [FOLDER]     (a few minutes on two cores; needs tesseract, the extras ocr and plots)
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

PERTURB = "blur:1-5,jpeg:3,rotation:2,rotation:4"
MC_FIELDS = {
    "subdirectory",
    "model",
    "total_questions",
    "correct",
    "accuracy",
    "context_length_analysis",
    "detailed_analysis",
    "results",
}
NIAH_FIELDS = {"model", "config", "total_questions", "correct", "accuracy", "errors", "instance_accuracies", "results"}
passed: list[bool] = []


def check(name: str, good: bool, figure: object = "") -> None:
    passed.append(good)
    print(f"{'PASS' if good else 'FAIL'}  {name} {figure}".rstrip(), flush=True)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from snellen.cli.main import main; main()", *map(str, arguments)]


def snellen(*arguments: object) -> int:
    return subprocess.run(command(*arguments), stdout=subprocess.DEVNULL, check=False).returncode


def stored(run: Path) -> int:
    try:
        with sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT COUNT(*) FROM predictions").fetchone()[0])
    except sqlite3.Error:
        return 0


def metrics(run: Path) -> dict[str, Any]:
    return json.loads((run / "results.json").read_text())["tasks"]["niah"]["metrics"]


def kill_after(arguments: list[str], run: Path, trials: int) -> int:
    """Start a run, kill it as soon as so many trials are stored, and return how many were."""
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while stored(run) < trials and process.poll() is None:
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
    return stored(run)


def needle_run(folder: Path) -> None:
    run = folder / "run-tesseract"
    arguments = command(
        "run", "niah", "-p", f"dataset.path={folder}/niah/data.json", "-p", f"dataset.image_root={folder}/niah",
        "--variant", "base", "--variant", "pages=dpi56", "--perturb", PERTURB,
        "--model", "reader/tesseract", "-o", run, "--quiet", "--no-cache",
    )  # fmt: skip
    before = kill_after(arguments, run, 60)
    again = subprocess.run(arguments, stdout=subprocess.DEVNULL, check=False).returncode
    found = metrics(run)
    planned = found["accuracy_micro"]["n"] + found["accuracy_micro"]["unscored"] + found["accuracy_micro"]["failed"]
    check(f"killed after {before} of {planned} trials, resumed and finished", again == 0 and 0 < before < planned)
    groups = json.loads((run / "results.json").read_text())["tasks"]["niah"]["groups"]["variant"]
    for variant, estimates in groups.items():
        estimate = estimates["accuracy"]
        print(
            f"      {variant:22} {estimate['value']:.2f}  "
            f"[{estimate['ci95'][0]:.2f}, {estimate['ci95'][1]:.2f}]  n={estimate['n']}"
        )
    blur = [found[f"accuracy_blur_{severity}"]["value"] for severity in range(6)]
    check(
        "accuracy falls as blur grows",
        blur[0] >= 0.9 and blur[5] <= 0.2 and all(b <= a + 0.1 for a, b in pairwise(blur)),
        blur,
    )
    critical = found["critical_severity_blur"]
    check(
        "critical severity of blur with its interval",
        critical["value"] is not None and critical["ci95"] is not None,
        (critical["value"], critical["ci95"]),
    )
    check(
        "plots drawn",
        snellen("docs", "plot", run, "-o", folder / "plots") == 0
        and (folder / "plots" / "niah-severity.png").is_file(),
    )


def script_files(folder: Path) -> None:
    output = folder / "results" / "niah.json"
    code = snellen("niah", "--data", folder / "niah/data.json", "--images", folder / "niah/clean/images", "-o", output,
                   "--model", "reader/tesseract", "--limit", 4, "--quiet")  # fmt: skip
    found = json.loads(output.read_text())
    check(
        "needle result file has the scripts' fields",
        code == 0 and set(found) >= NIAH_FIELDS,
        f"{found['correct']}/{found['total_questions']}",
    )
    records = [
        choice(instance, number)
        for number, instance in enumerate(json.loads((folder / "niah/data.json").read_text())[:4])
    ]
    (folder / "choice.json").write_text(json.dumps(records))
    code = snellen("mc", "--data-json", folder / "choice.json", "--images-dir", folder / "niah",
                   "--output", folder / "results", "--model", "reader/tesseract", "--quiet")  # fmt: skip
    files = sorted((folder / "results").glob("*_mc_eval.json"))
    good = code == 0 and len(files) == 2
    for file in files:
        content = json.loads(file.read_text())
        good = good and set(content) >= MC_FIELDS and content["total_questions"] == 4
        print(f"      {file.name}: {content['accuracy']} %")
    check("multiple-choice result files have the scripts' fields, one a variant", good)


def choice(instance: dict[str, Any], number: int) -> dict[str, Any]:
    """Turn a needle document into one multiple-choice question: the right value among three made of its digits."""
    value = instance["queries"][0]["answers"][0]
    wrong = [value[shift:] + value[:shift] for shift in (1, 2, 3)]
    options = [*wrong[: number % 4], value, *wrong[number % 4 :]]
    kept = {key: instance[key] for key in ("_id", "domain", "sub_domain", "difficulty", "length", "context")}
    question = {"question": instance["questions"][0], "answer": "ABCD"[number % 4]}
    return kept | question | {f"choice_{letter}": option for letter, option in zip("ABCD", options, strict=True)}


def second_reader(folder: Path) -> None:
    run = folder / "run-rapidocr"
    code = snellen("run", "niah", "-p", f"dataset.path={folder}/niah/data.json", "-p",
                   f"dataset.image_root={folder}/niah", "-p", "dataset.max_documents=2", "--variant", "base",
                   "--variant", "pages=dpi56", "--perturb", "blur:4", "--model", "reader", "-o", run,
                   "--quiet", "--no-cache")  # fmt: skip
    groups = json.loads((run / "results.json").read_text())["tasks"]["niah"]["groups"]["variant"]
    shown = {variant: round(estimates["accuracy"]["value"], 2) for variant, estimates in groups.items()}
    check("the other embedded reader (rapidocr) on the first two documents", code == 0 and shown["base"] >= 0.8, shown)


def main() -> int:
    started = time.monotonic()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/pages").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SNELLEN_CACHE_DIR", str(folder / "cache"))
    code = snellen("docs", "needle", "--lengths", "700,1.4k,2.8k", "--depths", 5, "--kinds", "kv-number,word",
                   "--repeats", 2, "--variant", "dpi56:dpi=56", "-o", folder / "niah")  # fmt: skip
    check("needles planted and rendered, clean and at 56 dpi", code == 0)
    needle_run(folder)
    script_files(folder)
    second_reader(folder)
    minutes = (time.monotonic() - started) / 60
    check("all of it within 15 minutes", minutes <= 15, f"{minutes:.1f} min; plots in {folder / 'plots'}")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
