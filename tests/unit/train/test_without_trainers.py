"""A recipe is read, and its training refused by the name of the extra, where no trainer is installed."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
sys.modules.update(dict.fromkeys(("trl", "peft", "datasets", "torch"), None))
from snellen.core.errors import MissingExtra
from snellen.kits.train import rationale
try:
    rationale.import_trainers()
except MissingExtra as error:
    print(error)
"""


def test_training_without_trainers_names_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "snellen[train]" in done.stdout
