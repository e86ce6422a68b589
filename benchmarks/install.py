"""What a newcomer pays: size and number of packages of a core install, and the time of `snellen --help`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZE_BAR_MB, PACKAGES_BAR, HELP_BAR_MS = 250, 20, 150
ROOT = Path(__file__).resolve().parents[1]


def seconds(command: list[str]) -> float:
    """The best of several: noise only ever slows down."""
    times = []
    for _ in range(9):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times)


def report(name: str, value: float, bar: float, unit: str) -> bool:
    print(f"{'PASS' if value <= bar else 'FAIL'} {name}: {value:.0f} {unit} (bar {bar})")
    return value <= bar


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = f"{folder}/bin/python"
        install = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            python,
            "install",
            "-q",
            str(ROOT),
        ]
        subprocess.run(install, check=True, capture_output=True)
        site = next(Path(folder).glob("lib/python*/site-packages"))
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
        packages = len(list(site.glob("*.dist-info"))) - 1  # what it brings, besides itself
        help_ms = (seconds([f"{folder}/bin/snellen", "--help"]) - seconds([python, "-c", "pass"])) * 1000
    passed = [
        report("core install", size, SIZE_BAR_MB, "MB"),
        report("packages besides snellen itself", packages, PACKAGES_BAR, "packages"),
        report("snellen --help beyond `python -c pass`", help_ms, HELP_BAR_MS, "ms"),
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
