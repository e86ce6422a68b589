"""What a reply names on the way to its answer, or leaves open: none of it is chosen, and what is meant is read all the same."""

from __future__ import annotations

import pytest

from snellen.extract.choice import extract_choice

CASES: list[tuple[list[str], list[tuple[str, str | None]]]] = [
    (
        ["Point A", "Point B", "Point C", "Point D"],
        [
            ("The distance from A to B is 5, from B to C 7.", None),
            ("A lies to the left of B.", None),
            ("A and B lie inside the circle and D lies outside, so C is the one on it.", "C"),
            ("The line through A and C bisects the angle.", None),
        ],
    ),
    (
        ["Lake Superior", "Lake Michigan", "Lake Huron", "Lake Erie"],
        [
            ("This lake is superior in size to most others in Europe.", None),
            ("It's either Huron or Erie.", None),
            ("Not Huron, not Michigan: Erie.", "D"),
            ("Michigan is the only one that lies entirely in the US.", "B"),
            ("Superior and Huron are connected by a river.", None),
        ],
    ),
    (
        ["red", "blue", "green", "yellow"],
        [
            ("B (not sure)", "B"),
            ("B (or maybe C)", None),
            ("A (wrong)", None),
            ("B (my best guess)", "B"),
            ("C (the red one)", None),
            ("If the light is on, B would be right.", None),
            ("If it is day, then A; otherwise C.", None),
            ("If I had to choose, B.", "B"),
            ("La respuesta puede ser A o B.", None),
            ("Es la B o la D.", None),
            ("A resposta é A ou C.", None),
            ("Die Antwort ist die A oder die C.", None),
            ("No es la A ni la B, es la C.", "C"),
            ("No, wait. It's not A. It looks yellow, so D.", "D"),
            ("The answer is A. Wait, red is only in the background. The object is blue. So it's B.", "B"),
            ("The answer is A. Wait, B is right for the left one and C is right for the right one.", None),
            ("Option B is about the sky. The car in front is red.", None),
            ("I pick B. The background is red.", "B"),
            ("Compare it with option C. This car is red.", None),
            ("The leaf looks green in the shade, but the label says blue. B.", "B"),
            ("Some call this B. Others would say the wall is green.", None),
            ("The wall is green, hence C; the red spot is a reflection.", "C"),
        ],
    ),
    (
        ["Both are equal", "The left one", "The right one", "Neither"],
        [
            ("Both", "A"),
            ("Neither.", "D"),
        ],
    ),
    (
        ["Plan A", "Plan B", "Plan C", "Plan D"],
        [
            ("Compare A with B and then C with D.", None),
            ("B is the cheapest plan.", "B"),
            ("A costs 10 and B costs 20.", None),
        ],
    ),
    (
        ["Ann Lee", "Bob May", "Tim Fox", "Kim Roy"],
        [
            ("The photo was taken in May.", None),
        ],
    ),
    (
        ["bar chart", "line chart", "scatter plot", "pie chart"],
        [
            ("This is a scatter graph.", "C"),
            ("The graph shows sales over time.", None),
            ("I would plot a line through the bar tops.", None),
        ],
    ),
    (
        ["True", "False"],
        [
            ("Not necessarily true.", "B"),
            ("That's not true.", "B"),
        ],
    ),
    (
        ["the dog", "the cat", "the horse"],
        [
            (
                "The biggest animal here is the dog, bigger than the cat, although the horse looks larger in the background.",
                "A",
            ),
            ("The tall man is bigger than the cat, and smaller than the horse.", None),
            ("The man is holding a leash and looking at the cat and the dog.", None),
        ],
    ),
    (
        ["Reading a book", "Cooking", "Watching TV"],
        [
            ("He is either reading a book or watching TV.", None),
            ("She sits at the window and reading a book is what she does.", "A"),
            ("She is cooking and reading a book at the same time.", None),
        ],
    ),
    (
        ["oxygen", "nitrogen", "hydrogen", "helium"],
        [
            ("Hydrogen would pop. Hence argon.", None),
            ("Hydrogen would pop. Hence oxygen.", "A"),
        ],
    ),
    (
        ["3", "4", "5", "6"],
        [
            ("The answer is 4. So simple.", "B"),
        ],
    ),
    (
        ["Red", "Blue", "Green"],
        [
            ("The car is clearly blue. So that's it.", "B"),
        ],
    ),
    (
        ["cat", "dog", "horse", "cow"],
        [
            ("Not a cat. The dog is bigger.", "B"),
            ("The cat is smaller than the dog and the horse is larger than the cow.", None),
            ("The cat is bigger than usual, and the dog and the cow are behind it.", None),
            ("The dog is larger than the cat but smaller than the horse and the cow.", None),
        ],
    ),
    (
        ["Car A", "Car B", "Car C"],
        [
            ("Car A is faster than car B at the start. Later it is slower.", None),
            ("So car C is faster.", "C"),
            ("Car A is heavier. Car B is longer. Car C is faster.", None),
        ],
    ),
    (
        ["Paris", "London", "Rome", "Berlin"],
        [
            ("The train goes from Paris to London.", None),
            ("The landmark is in Paris and not in London.", "A"),
            ('It says "Roma", so it\'s Rome; Berlin and Paris are far away.', "C"),
            ("The letter B marks Paris.", "A"),
            ("The letter A points to a city on the Spree. This is Berlin.", "D"),
            ("The answer is the letter A.", "A"),
            ("Letter B is correct.", "B"),
            ("The letter B.", "B"),
        ],
    ),
    (
        ["10", "20", "30", "40"],
        [
            ("Point A has the value 10 and point B the value 20.", None),
            ("Point A has the value 10 and point B the value 20. The sum is 30.", "C"),
            ("Bar A shows 10. The largest bar shows 20.", "B"),
            ("Bar A shows 10. Bar B shows 20.", None),
        ],
    ),
    (
        ["Both A and B", "Only A", "Only B", "Neither"],
        [
            ("Both A and B are correct.", "A"),
            ("Neither A nor B is correct.", "D"),
            ("Only B holds.", "C"),
        ],
    ),
    (
        ["The first statement", "The second statement", "Both statements", "Neither statement"],
        [
            ("The second equation is twice the first one.", None),
            ("Only the second statement is right.", "B"),
        ],
    ),
    (
        ["Increase", "Decrease", "No change"],
        [
            ("The price will increase.", "A"),
            ("If demand rises, price would increase; if supply rises, it would decrease.", None),
            ("There's no change in price, neither an increase nor a decrease.", "C"),
            ("As temperature rises, the solubility of gases gets lower, i.e. it decreases.", "B"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("reply", "options", "letter"), [(reply, options, letter) for options, rows in CASES for reply, letter in rows]
)
def test_only_what_is_meant_is_chosen(reply: str, options: list[str], letter: str | None) -> None:
    assert extract_choice(reply, options).letter == letter


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("정답은 ②입니다.", "②"),
        ("①과 ③은 틀렸고 ④도 아니므로 ②가 맞습니다.", "②"),
        ("④", "④"),
        ("①와 ②는 틀렸다.", None),
    ],
)
def test_marks_in_circles(reply: str, mark: str | None) -> None:
    options = {"①": "증가", "②": "감소", "③": "일정", "④": "진동"}
    assert extract_choice(reply, options).letter == mark


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("The missing letter is K.", ["H", "K", "N", "V"], "B"),
        ("Option C (the letter N)", ["C", "D", "N", "O"], "C"),
        ("It's Tesla.", ["Thomas Edison", "Nikola Tesla", "Ștefan Odobleja", "Émile Berliner"], None),
        ("Makalu", ["Mount Everest", "Mount Makalu", "Mount Lhotse"], "B"),
        ("It's a pie graph.", ["Bar chart", "Pie chart", "Line chart"], "B"),
        ("Bu bir elmadır.", ["Elma", "Armut", "Kiraz"], "A"),
        ("She is standing at the sink and washing the dishes.", ["Washing the dishes", "Cooking"], "A"),
        ("The energy is $\\frac{mv^2}{4}$.", ["$mv^2$", "$\\frac{1}{2}mv^2$", "$\\frac{1}{4}mv^2$"], None),
        ("A和B不正确。", ["红", "蓝", "绿", "黄"], None),
        ("A와 B는 틀렸습니다.", ["빨강", "파랑", "초록", "노랑"], None),
        ("AとBは誤りです。", ["赤", "青", "緑", "黄"], None),
        ("A、B、D错误。", ["红", "蓝", "绿", "黄"], "C"),
        ("Fer et non cuivre.", ["Cuivre", "Fer", "Zinc"], "B"),
        ("È ferro e non rame.", ["Rame", "Ferro", "Zinco"], "B"),
    ],
)
def test_options_in_other_words(reply: str, options: list[str], letter: str | None) -> None:
    assert extract_choice(reply, options).letter == letter
