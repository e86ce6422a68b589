"""Planning and running 100,000 samples with two images each may grow resident memory by 150 MB over 1,000 samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import PIL.Image

from snellen.kits.mock.process import mock_process

BAR_MB = 150
CHILD = """
import resource, sys
from pathlib import Path
from snellen.api.run import run_settings
from snellen.api.settings import RunSettings
result = run_settings(RunSettings(tasks=(sys.argv[1],), model="openai/mock", base_url=sys.argv[2], max_workers=128, output_dir=Path(sys.argv[3])), None)
assert result.results["status"]["complete"]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak_mb(folder: Path, base_url: str, samples: int) -> float:
    data = folder / f"{samples}.jsonl"
    with data.open("w") as file:
        for number in range(samples):
            row = {
                "id": number,
                "images": [f"{number % 50}.png", f"{number % 49}.png"],
                "question": f"Which thing is number {number}?",
            }
            file.write(
                json.dumps({**row, "options": ["one", "two", "three", "four"], "answer": "A", "topic": number % 7})
                + "\n"
            )
    command = [sys.executable, "-c", CHILD, str(data), base_url, str(folder / f"run{samples}")]
    environment = {**os.environ, "SNELLEN_CACHE_DIR": str(folder / "cache")}
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def main() -> int:
    with tempfile.TemporaryDirectory() as name, mock_process(["--trivial"]) as server:
        folder = Path(name)
        for number in range(50):
            PIL.Image.new("RGB", (64, 64), (number, 0, 0)).save(folder / f"{number}.png")
        small, large = peak_mb(folder, server.base_url, 1_000), peak_mb(folder, server.base_url, 100_000)
    growth = large - small
    print(f"1,000 samples: {small:.0f} MB; 100,000 samples: {large:.0f} MB")
    print(f"{'PASS' if growth <= BAR_MB else 'FAIL'} growth of resident memory: {growth:.0f} MB (bar {BAR_MB})")
    return 0 if growth <= BAR_MB else 1


if __name__ == "__main__":
    sys.exit(main())
