"""Cards of models: picture formulas at known figures, prices of a day, a table of others, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run_command
from snellen.core.errors import ConfigError, DataError, UsageError
from snellen.core.types import Failure, FailureKind, Prediction, TrialKey, Usage
from snellen.data.catalog import Catalog
from snellen.data.visual_tokens import visual_tokens
from snellen.model.served.model_card import (
    KINDS,
    PictureTokens,
    find_model_card,
    provider_addresses,
    read_litellm_table,
    read_model_card,
    table_path,
)
from snellen.model.served.prices import Bill, Prices, Tokens, money

KEY = TrialKey("t", "s")
OPENAI = "https://api.openai.com/v1"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNELLEN_CONFIG_DIR", str(tmp_path / "config"))


def card_formula(model: str, address: str = OPENAI) -> PictureTokens:
    card = find_model_card(model, address).card
    assert card is not None
    assert card.pictures is not None
    return card.pictures


class TestFormulas:
    """Figures that were published or measured."""

    @pytest.mark.parametrize(
        ("model", "size", "tokens"),
        [
            ("gpt-4o", (1024, 1024), 765),
            ("gpt-4o", (2048, 4096), 1105),
            ("gpt-4o", (128, 64), 85 + 170),
            ("gpt-4o-mini", (128, 64), 2833 + 5667),
            ("o3", (128, 64), 75 + 150),
            ("gpt-5", (1024, 1024), 70 + 4 * 140),
            ("gpt-4.1-mini", (1800, 2400), 2353),  # 1,452 patches by 1.62
        ],
    )
    def test_openai(self, model: str, size: tuple[int, int], tokens: int) -> None:
        assert card_formula(f"openai/{model}").count(size) == tokens

    def test_anthropic(self) -> None:
        formula = card_formula("anthropic/claude-sonnet-4-6", "https://api.anthropic.com/v1")
        assert formula.count((1092, 1092)) == pytest.approx(1590, rel=0.05)
        assert formula.count((8000, 8000)) == pytest.approx(1560, rel=0.05)

    def test_gemini(self) -> None:
        formula = card_formula("gemini/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta")
        assert formula.count((384, 384)) == 258
        assert formula.count((960, 540)) == 258 * 6

    @pytest.mark.parametrize(
        ("family", "model", "address"),
        [
            ("claude", "anthropic/claude-sonnet-4-6", "https://api.anthropic.com/v1"),
            ("claude-5", "anthropic/claude-opus-5", "https://api.anthropic.com/v1"),
            ("gpt-4o", "openai/gpt-4o", OPENAI),
            ("gpt-5", "openai/gpt-5", OPENAI),
            ("gpt-4.1-mini", "openai/gpt-4.1-mini", OPENAI),
            ("gemini-2.5", "gemini/gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta"),
            ("gemini-3", "gemini/gemini-3.5-flash", "https://generativelanguage.googleapis.com/v1beta"),
        ],
    )
    def test_a_page_costs_the_same_by_family_and_by_card(self, family: str, model: str, address: str) -> None:
        formula = card_formula(model, address)
        for size in ((100, 90), (595, 842), (1240, 1754), (1654, 2339), (3584, 3584), (4000, 300)):
            assert visual_tokens([size], family) == formula.count(size)

    def test_pages_for_claude_stay_under_its_cap(self) -> None:
        assert max(visual_tokens([size], "claude") for size in ((1240, 1754), (1654, 2339), (3584, 3584))) <= 1_600

    @given(st.sampled_from(sorted(set(KINDS) - {"family"})), st.tuples(st.integers(1, 20_000), st.integers(1, 20_000)))
    def test_every_picture_has_a_finite_count(self, kind: str, size: tuple[int, int]) -> None:
        formula = PictureTokens(kind, base=1, tile=10, max_side=1568, max_pixels=1_150_000, cap=1536)
        assert 0 < formula.count(size) < 2_000_000

    @given(st.tuples(st.integers(1, 20_000), st.integers(1, 20_000)))
    def test_patches_keep_their_cap(self, size: tuple[int, int]) -> None:
        if max(size) <= 100 * min(size):  # of thinner ones a whole patch is counted on the short side
            assert PictureTokens("patches").count(size) <= 1536


class TestCards:
    """What is shipped and what is found."""

    def test_every_card_can_be_read_and_says_when_its_prices_were_seen(self) -> None:
        addresses = provider_addresses()
        cards = [read_model_card(key, table) for key, table in Catalog().cards("models") if "model" in table]
        for model in {card.model for card in cards}:
            provider = model.partition("/")[0]
            found = find_model_card(model, addresses[provider])
            assert found.card is not None, model
            prices = found.card.prices
            if prices is not None and model != "openai/mock":
                assert prices.as_of, model
                assert prices.mark in {"seen", "from memory"}, model
                assert found.card.base_url == addresses[provider], model

    def test_a_dated_name_is_the_model_and_nothing_else_is(self) -> None:
        assert find_model_card("openai/gpt-4o-2024-08-06", OPENAI).card is not None
        for other in ("openai/gpt-4o-audio", "openai/gpt-4", "azure/gpt-4o", "openai/gpt-4o-mini-2"):
            assert find_model_card(other, OPENAI).card is None, other

    def test_elsewhere_a_name_may_be_anything(self) -> None:
        found = find_model_card("openai/gpt-4o", "http://localhost:8000/v1")
        assert found.card is None
        assert "is of https://api.openai.com/v1" in found.where

    def test_a_card_that_prices_one_side_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="output_per_million"):
            read_model_card("half", {"model": "openai/half", "prices": {"input_per_million": 1.0}})

    def test_an_unknown_formula_is_refused_by_name(self) -> None:
        with pytest.raises(ConfigError, match="none of flat, tiles"):
            read_model_card("odd", {"model": "openai/odd", "pictures": {"kind": "cubes"}})

    def test_own_cards_win(self, tmp_path: Path) -> None:
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "mine.toml").write_text(
            'model = "openai/gpt-4o"\n[prices]\ninput_per_million = 7.0\noutput_per_million = 8.0\n'
        )
        card = find_model_card("openai/gpt-4o", "http://localhost", [tmp_path]).card
        assert card is not None
        assert card.prices == Prices(7.0, 8.0)


def write_table(path: Path) -> Path:
    entries = {
        "sample_spec": {"mode": "one of …", "input_cost_per_token": 0},
        "gpt-4o": {
            "litellm_provider": "openai",
            "mode": "chat",
            "input_cost_per_token": 3e-06,
            "output_cost_per_token": 1.2e-05,
            "cache_read_input_token_cost": 1.5e-06,
            "max_input_tokens": 128000,
            "max_output_tokens": 16384,
        },
        "gemini/gemini-3.1-pro-preview": {
            "litellm_provider": "gemini",
            "mode": "chat",
            "input_cost_per_token": 2e-06,
            "output_cost_per_token": 1.2e-05,
            "input_cost_per_token_above_200k_tokens": 4e-06,
        },
        "dashscope/qwen-x": {
            "litellm_provider": "dashscope",
            "mode": "chat",
            "tiered_pricing": [
                {"range": [0, 32000.0], "input_cost_per_token": 2e-07, "output_cost_per_token": 1.6e-06},
                {"range": [32000.0, 128000.0], "input_cost_per_token": 3e-07, "output_cost_per_token": 2.4e-06},
            ],
        },
        "half": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 3e-06},
        "dall-e-3": {"litellm_provider": "openai", "mode": "image_generation"},
        "foreign": {
            "litellm_provider": "nobody",
            "mode": "chat",
            "input_cost_per_token": 1,
            "output_cost_per_token": 1,
        },
    }
    path.write_text(json.dumps(entries))
    return path


class TestTable:
    """`snellen models update FILE`."""

    def test_only_what_is_sure_is_taken(self, tmp_path: Path) -> None:
        table, left_out = read_litellm_table(write_table(tmp_path / "t.json"), "2026-08-08")
        assert sorted(table.models) == ["dashscope/qwen-x", "gemini/gemini-3.1-pro-preview", "openai/gpt-4o"]
        assert left_out == {"not a chat model": 2, "without both prices": 1, "of a provider without a card": 1}
        prices = {name: card.prices for name, card in table.models.items()}
        seen = {"as_of": "2026-08-08", "mark": "seen", "source": "LiteLLM's table"}
        assert prices["openai/gpt-4o"] == Prices(3.0, 12.0, "USD", 1.5, **seen)
        assert prices["gemini/gemini-3.1-pro-preview"] == Prices(2.0, 12.0, "USD", None, 200_000, **seen)
        assert prices["dashscope/qwen-x"] == Prices(0.2, 1.6, "USD", None, 32_000, **seen)

    def test_the_command_writes_the_own_folder_and_wins_over_the_shipped_card(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run_command(["models", "show", "openai/gpt-4o"]) == 0
        assert "2.5 in, 10 out, 1.25 cached USD; prices of 2026-08-08, seen" in capsys.readouterr().out
        file = write_table(tmp_path / "t.json")
        assert run_command(["models", "update", file, "--as-of", "2026-09-01"]) == 0
        assert "3 models with prices of 2026-09-01" in capsys.readouterr().out
        assert table_path().parent == tmp_path / "config"
        assert run_command(["models", "show", "openai/gpt-4o"]) == 0
        told = capsys.readouterr().out
        assert "3 in, 12 out, 1.5 cached USD; prices of 2026-09-01" in told
        assert "765 tokens for 1024 x 1024 px, by tiles" in told, "the formula stays that of the card"
        assert run_command(["models", "show", "openai/gpt-4o", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["context"] == 128000

    @pytest.mark.parametrize("body", ["", "[]", "{}", '{"a": 1}', "\x00"])
    def test_no_table_is_refused_in_one_line(self, tmp_path: Path, body: str) -> None:
        (tmp_path / "t.json").write_text(body)
        with pytest.raises(DataError, match=r"t\.json"):
            read_litellm_table(tmp_path / "t.json")

    def test_odd_days_and_damaged_tables(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="2026-08-08"):
            read_litellm_table(write_table(tmp_path / "t.json"), "yesterday")
        table_path().parent.mkdir()
        table_path().write_text("{")
        with pytest.raises(ConfigError, match="models update"):
            find_model_card("openai/gpt-4o", OPENAI)

    def test_a_name_nobody_knows(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_command(["models", "show", "openai/gpt-4p"]) == 2
        assert "did you mean" in capsys.readouterr().err

    def test_the_list_is_still_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_command(["models", "--json"]) == 0
        assert "openrouter" in json.loads(capsys.readouterr().out)


class TestBill:
    """Tokens to money."""

    def test_cached_tokens_have_their_price(self) -> None:
        prices = Prices(10.0, 20.0, "USD", 1.0)
        assert prices.cost(Tokens(1_000_000, 400_000, 500_000)) == pytest.approx(6.0 + 0.4 + 10.0)
        assert Prices(10.0, 20.0).cost(Tokens(1_000_000, 400_000, 0)) == 10.0

    def test_what_is_not_known_is_counted_and_never_free(self) -> None:
        bill = Bill(Prices(1.0, 1.0, up_to_tokens=1000))
        assert bill.add(Prediction(KEY, text="x")) is None
        assert bill.add(Prediction(KEY, text="x", usage=Usage(2000, 1))) is None
        assert bill.add(Prediction(KEY, text="x", usage=Usage(1000, None))) is None
        assert bill.add(Prediction(KEY, text="x", usage=Usage(1000, 0))) == pytest.approx(0.001)
        assert bill.add(Prediction(KEY, failure=Failure(FailureKind.RATE, "no"))) == 0.0
        assert (bill.unpriced, bill.replies, bill.paid) == (3, 4, pytest.approx(0.001))

    def test_replies_of_our_cache_are_worth_and_not_paid(self) -> None:
        bill = Bill(Prices(1.0, 1.0))
        bill.add(Prediction(KEY, text="x", usage=Usage(10, 10), cached=True))
        assert (bill.paid, bill.worth) == (0.0, pytest.approx(20e-6))

    @given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7)), max_size=50))
    def test_the_order_of_replies_changes_nothing(self, counts: list[tuple[int, int, int]]) -> None:
        bills = Bill(Prices(0.1, 0.7, "", 0.03)), Bill(Prices(0.1, 0.7, "", 0.03))
        for bill, order in zip(bills, (counts, counts[::-1]), strict=True):
            for given_tokens, out, cached in order:
                usage = Usage(given_tokens, out, cached_tokens=min(cached, given_tokens))
                bill.add(Prediction(KEY, text="x", usage=usage))
        assert bills[0].paid == bills[1].paid

    @pytest.mark.parametrize(
        ("value", "text"), [(0, "0.00"), (1234.5, "1,234.50"), (0.0123, "0.0123"), (0.00000123, "0.00000123")]
    )
    def test_money(self, value: float, text: str) -> None:
        assert money(value, "USD") == f"{text} USD"
        assert money(value) == text
