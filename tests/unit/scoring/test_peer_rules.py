"""The readers of other harnesses, misreadings included: cases computed by hand from the rules as their sources state them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snellen.core.errors import UsageError
from snellen.core.types import Form
from snellen.kits.bridges.peer_readers import (
    PEER_READERS,
    PeerVerdict,
    peer_protocol,
    peer_reader,
    read_answer_line,
    read_last_answer,
)
from snellen.kits.bridges.text_rules import (
    peer_anls,
    peer_contains,
    peer_equal,
    peer_relaxed,
    peer_vqa,
    vlmevalkit_mmmu_open,
)
from snellen.kits.bridges.toolkit_rules import (
    can_infer,
    can_infer_after_answer,
    infer_from_text,
    infer_letter,
    lmms_yes_no,
    lmms_yes_no_of_mme,
    read_first_character,
    read_first_letter,
    read_letter_or_dotted,
    read_letter_unpunctuated,
    read_mcq,
    read_mmbench_static,
    read_mmmu,
    read_mmmu_official,
    read_raw_letter,
    read_vstar,
    vlmevalkit_yes_no,
)
from snellen.scoring.protocols.peer_scores import draw_letter

PETS = {"A": "a cat", "B": "a dog", "C": "a horse", "D": "a cow"}


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("The answer is (B).", "B"),
        ("It cannot be B", "B"),
        ("B, since everything about the animal in the picture says so", None),
        ("A dog is what I see", None),
        ("A or B", None),
        ("Z", "Z"),
        ("Cannot determine the answer", "Z"),
        ("Failed to obtain answer via API.", None),
        ("Failed to obtain answer: KeyError C", "C"),
        ("the answer is **C** because it is tall and brown and A is not", "C"),
        ("The answer is because of its four long legs and its tail", "B"),
        ("the answer is d, as one can see from the horns on its head", "D"),
        ("b", None),
        ("", None),
    ],
)
def test_vlmevalkit_takes_a_lone_letter_among_the_last_four_words(reply: str, letter: str | None) -> None:
    assert infer_letter(reply, PETS) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [("a dog", "B"), ("It is a dog, not a cat", None), ("not a dog", "B"), ("I see a dog. " * 10, None), ("", None)],
)
def test_vlmevalkit_takes_the_only_text_contained_in_a_short_reply(reply: str, letter: str | None) -> None:
    assert infer_from_text(reply, PETS) == letter


def test_vlmevalkit_reads_nan_for_an_empty_cell_and_may_find_an_option_in_it() -> None:
    assert can_infer("nan", {"A": "an", "B": "the"}) == "A"


@pytest.mark.parametrize(
    ("reply", "said"), [("Yes.", "Yes"), ("no", "No"), ("yes and no", None), ("I do not know", None), ("Nope", None)]
)
def test_vlmevalkit_reads_yes_or_no_where_just_one_occurs(reply: str, said: str | None) -> None:
    assert vlmevalkit_yes_no(reply) == said


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("(A) is wrong, so (B)", "B"),
        ("(B), not (A)", "A"),
        ("the meaning of ETA is unclear", "A"),
        ("B.", "B"),
        ("C.\nreason", "C"),
        ("I think that this animal is a dog", "B"),
        ("a dog", None),
        ("", None),
        ("Answer: D", "D"),
    ],
)
def test_the_mmmu_reader_takes_the_last_letter_of_its_first_shape(reply: str, letter: str | None) -> None:
    assert read_mmmu(reply, PETS) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("A. a cat? No: the answer is B", "A"),
        ("The answer is B, not D", "D"),
        ("Clearly (C).", "C"),
        ("the correct option is D because A is small", "A"),
        ("It is a Dog", "D"),
        ("nothing", None),
        ("", None),
    ],
)
def test_the_newer_lmms_reader_weighs_shapes_and_takes_the_last(reply: str, letter: str | None) -> None:
    assert read_mcq(reply, PETS) == letter


def test_first_letter_readers_take_the_letter_a_sentence_opens_with() -> None:
    assert read_first_letter("The answer is B", PETS) == "T"
    assert read_first_letter("(b) a dog", PETS) == "B"
    assert read_first_character("answer: B", PETS) == "A"
    assert read_letter_or_dotted("B. a dog", PETS) == "B"
    assert read_letter_or_dotted("The answer is B", PETS) is None
    assert read_letter_or_dotted("b", PETS) == "B"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("D. pink", None),
        ("Answer: D. pink", None),
        ("答案是B", None),
        ("so B it is", "B"),
        ("(A) or (B)", "B"),
        ("B", "B"),
    ],
)
def test_mmmus_own_reader_wants_a_space_on_both_sides(reply: str, letter: str | None) -> None:
    assert read_mmmu_official(reply, PETS) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Based on the picture, D", "B"),
        ("The answer is D", "D"),
        ("Option: C", "C"),
        ("It is (c).", "C"),
        ("just d]", "D"),
        ("is it a ?", "A"),
        ("no", None),
        ("see it", None),
    ],
)
def test_vstar_takes_the_letter_by_the_first_of_five_shapes(reply: str, letter: str | None) -> None:
    assert read_vstar(reply, PETS) == letter


def test_ai2d_is_read_without_its_punctuation() -> None:
    assert [read_letter_unpunctuated(reply, PETS) for reply in ("(b)", "**C**", "B. a dog", "( B )", "It is B")] == [
        "B", "C", "B", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "letter"),
    [("A dog is B", "B"), ("a dog", "B"), ("B) a cat", "B"), ("It is E", "E"), ("It is A cat or C", "A")],
)
def test_mmbench_static_takes_a_lone_word_or_text_before_the_ranked_reader(reply: str, letter: str | None) -> None:
    assert read_mmbench_static(reply, PETS) == letter


def test_mmmu_pro_is_read_after_its_answer_line_or_only_as_the_bare_letter() -> None:
    assert can_infer_after_answer("A is wrong.\nAnswer: B", PETS) == "B"
    assert can_infer_after_answer("Answer: B or C", PETS) is None
    assert can_infer_after_answer("It is (C).", PETS) == "C"
    assert read_raw_letter("B", PETS) == "B"
    assert read_raw_letter("B.", PETS) is None


def test_yes_and_no_of_pope_and_mme() -> None:
    assert lmms_yes_no("Yes") == "Yes"
    assert lmms_yes_no("Yes.") is None
    assert lmms_yes_no_of_mme("Yes, there is.") == "Yes"
    assert lmms_yes_no_of_mme("I see no") is None
    assert lmms_yes_no_of_mme("Not sure") == "No"


def test_inspect_reads_only_what_follows_the_word_answer() -> None:
    assert read_answer_line("I think B.\nANSWER: C", PETS) == "C"
    assert read_answer_line("The answer is B", PETS) is None
    assert read_answer_line("ANSWER: B and C", PETS) is None


def test_a_reader_is_found_by_name_and_an_unknown_one_refused_with_those_there_are() -> None:
    assert peer_reader("vlmevalkit").read("B", PETS) == "B"
    assert peer_reader("lmms-mmmu").unread == "random"
    assert peer_reader("flageval").read("The answer is B", PETS) == "B"
    assert peer_reader("aisbench").read("", PETS) is None
    with pytest.raises(UsageError, match="vlmevalkit"):
        peer_reader("vlmeval")


@given(st.text(max_size=60), st.sampled_from(sorted(PEER_READERS)))
def test_every_reader_takes_any_text_and_says_the_same_twice(reply: str, name: str) -> None:
    read = peer_reader(name).read
    assert read(reply, PETS) == read(reply, PETS)


@given(st.text(max_size=20))
def test_a_drawn_letter_is_offered_and_does_not_change(sample: str) -> None:
    assert draw_letter("ABCD", sample) in "ABCD"
    assert draw_letter("ABCD", sample) == draw_letter("ABCD", sample)


def test_evalscope_takes_the_last_answer_with_a_label_else_the_last_capital() -> None:
    assert read_last_answer("ANSWER: A\nNo. ANSWER: B, not C", PETS) == "B"
    assert read_last_answer("ANSWER: [LETTER]\nI see a Dog", PETS) == "D"
    assert read_last_answer("ANSWER: (C)", PETS) == "C"
    assert read_last_answer("ANSWER: A, B", PETS) is None
    assert read_last_answer("It must be the first, I think", PETS) is None
    assert read_last_answer("Because it barks", PETS) == "B"


def test_peers_keep_half_and_divide_by_the_unfolded_length_in_anls() -> None:
    assert peer_anls("ab", ["ax"]) == 0.5
    assert peer_anls("a" + " " * 8 + "b", ["a b"]) == 1.0
    assert peer_anls("The total is 42", ["42"]) == 0.0


def test_peers_relaxed_accuracy_knows_no_thousands_and_compares_zero_as_text() -> None:
    assert peer_relaxed("1,000", ["1000"]) == 0.0
    assert peer_relaxed("0.0", ["0"]) == 0.0
    assert peer_relaxed("50%", ["0.5"]) == 1.0
    assert peer_relaxed("2020", ["2000"]) == 1.0
    assert peer_relaxed("Red", ["red"]) == 1.0


def test_the_other_text_rules_of_peers() -> None:
    assert peer_contains("The sign says\nSTOP here", ["stop"]) == 1.0
    assert peer_equal("Yes.", ["yes"]) == 1.0
    assert peer_equal("It is yes", ["yes"]) == 0.0
    assert peer_vqa("two", ["2"] * 10) == 1.0
    assert vlmevalkit_mmmu_open("It is 24.5", ["24.5"]) == 1.0
    assert vlmevalkit_mmmu_open("B", ["24.5"]) == 0.0


def test_a_protocol_judges_by_form_and_says_nothing_where_no_rule_is_known() -> None:
    protocol = peer_protocol("lmms-mmmu", "vlmevalkit", "")
    assert protocol.judge(Form.CHOICE, "(B)", PETS, ("a dog",), "1") == PeerVerdict(1.0, "B")
    assert protocol.judge(Form.YESNO, "Yes.", {}, ("yes",), "1") == PeerVerdict(1.0, "Yes")
    assert protocol.judge(Form.OPEN, "x", {}, ("x",), "1") is None
    drawn = protocol.judge(Form.CHOICE, "hm", PETS, ("a dog",), "1")
    assert drawn is not None
    assert drawn.drawn
    assert drawn.read == draw_letter("ABCD", "1")
    with pytest.raises(UsageError, match="peer-anls"):
        peer_protocol("", "", "anls")
