"""Visual tokens of tiled families against the code that their users run."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from snellen.data.visual_tokens import FAMILIES

SIZES = [(draw.randint(20, 4000), draw.randint(20, 4000)) for draw in [random.Random(4)] for _ in range(400)]
SIZES += [(384, 384), (672, 672), (336, 336), (1241, 1754), (1754, 1241), (2048, 512), (3584, 896)]


@pytest.mark.parametrize(
    ("family", "longest", "tile", "each"), [("smolvlm", 1536, 384, 81), ("smolvlm-256m", 2048, 512, 64)]
)
def test_smolvlm_counts_the_squares_that_transformers_cuts(family: str, longest: int, tile: int, each: int) -> None:
    code = pytest.importorskip("transformers.models.idefics3.image_processing_pil_idefics3")
    own = SimpleNamespace(
        do_image_splitting=True, max_image_size={"longest_edge": tile}, size={"longest_edge": longest}
    )
    for width, height in SIZES:
        cut, _, _ = code.Idefics3ImageProcessorPil.get_number_of_image_patches(own, height, width)
        assert FAMILIES[family]((width, height)) == each * cut, (width, height)


def test_llava_next_counts_what_transformers_counts() -> None:
    code = pytest.importorskip("transformers.models.llava_next.processing_llava_next")
    grids = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
    own = SimpleNamespace(image_processor=SimpleNamespace(image_grid_pinpoints=grids), patch_size=14)
    own.num_additional_image_tokens = 0
    processor = code.LlavaNextProcessor
    own._get_unpadded_features = lambda *sizes: processor._get_unpadded_features(own, *sizes)
    for width, height in SIZES:
        counted = processor._get_number_of_features(own, height, width, 336, 336)
        assert FAMILIES["llava-next"]((width, height)) == counted, (width, height)
