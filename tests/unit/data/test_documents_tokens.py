"""Visual tokens per family against measured figures, and text token counts."""

from __future__ import annotations

import pytest

from snellen.core.errors import UsageError
from snellen.data.visual_tokens import FAMILIES, ORDER, context_bin, count_tokens, visual_tokens

A4 = ((595, 842), (793, 1123), (992, 1403), (1653, 2339), (463, 655))


@pytest.mark.parametrize(
    "family, tokens",
    [
        ("qwen2.5-vl", (630, 1120, 1750, 4956, 391)),
        ("qwen3-vl", (494, 875, 1364, 3796, 280)),
        ("glm-4.1v", (630, 1120, 1750, 4956, 391)),
        ("internvl3.5", (1792,) * 5),
        ("kimi-vl", (682, 1092, 1092, 1053, 408)),
        ("gemma3", (256,) * 5),
    ],
)
def test_a4_pages_cost_what_was_measured_at_72_96_120_200_and_56_dpi(family: str, tokens: tuple[int, ...]) -> None:
    assert tuple(visual_tokens([size], family) for size in A4) == tokens


def test_caps_hold_for_huge_and_tiny_pictures() -> None:
    assert visual_tokens([(20_000, 20_000)], "qwen2.5-vl") <= 16_384
    assert visual_tokens([(8, 8)], "qwen2.5-vl") >= 4
    assert visual_tokens([(9_000, 9_000)], "glm-4.1v") <= 6_144
    assert visual_tokens([(5_000, 5_000)], "kimi-vl") <= 1_100
    assert all(function((1, 1)) >= 1 for function in FAMILIES.values())


def test_an_unknown_family_is_refused_with_a_near_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'qwen2"):
        visual_tokens([(1, 1)], "qwen2.5")


def test_text_tokens_by_characters_and_bad_names() -> None:
    assert count_tokens("a" * 42, "chars/4.2") == 10
    assert count_tokens("", "chars/4") == 0
    with pytest.raises(UsageError, match="write chars"):
        count_tokens("a", "chars/none")
    with pytest.raises(UsageError, match="tokenizer"):
        count_tokens("a", "/no/such/folder")


@pytest.mark.parametrize(
    "tokens, name",
    [(0, "<8k"), (7_999, "<8k"), (8_000, "8k-16k"), (63_999, "48k-64k"), (64_000, "64k-96k"), (10**6, "≥256k")],
)
def test_context_bins_are_half_open_and_go_on_above_64k(tokens: int, name: str) -> None:
    assert context_bin(tokens) == name
    assert name in ORDER
