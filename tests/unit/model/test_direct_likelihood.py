"""Log-likelihoods of architectures with habits of their own, against the library alone on the same words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from extras import needs

needs("torch", "transformers")

import direct_likelihood
from tiny_checkpoints import NEEDS_TORCHVISION, checkpoint
from torchvision_shim import has_torchvision

TOLERANCE = 1e-4
ROUTES = {"git": "rows", "paligemma": "tree", "gemma3": "rows", "qwen2vl": "tree", "qwen25vl": "tree"}
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # PaliGemma's processor under numpy 2


@pytest.mark.parametrize("kind", ["git", "paligemma", "gemma3"])
def test_the_room_equals_the_library(kind):
    ours, detail = direct_likelihood.by_the_room(str(checkpoint(kind)))
    assert ours == pytest.approx(direct_likelihood.by_the_library(str(checkpoint(kind))), abs=TOLERANCE, rel=0)
    assert detail["route"] == ROUTES[kind], "a faster way than from scratch was found right"


@pytest.mark.parametrize("kind", NEEDS_TORCHVISION)
@pytest.mark.skipif(not has_torchvision(), reason="the processors of Qwen-VL need torchvision")
def test_the_room_equals_the_library_in_a_process_with_torchvision(kind):
    """A process of its own: the names of torchvision's operators have to be there before anything imports it."""
    child = [sys.executable, str(Path(direct_likelihood.__file__)), kind]
    done = subprocess.run(child, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["room"] == pytest.approx(found["library"], abs=TOLERANCE, rel=0)
    assert found["route"] == ROUTES[kind]
