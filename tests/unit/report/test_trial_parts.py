"""The parts of trial pages: regions on pictures, differences of texts, bars and colours, steps, chats, galleries."""

from __future__ import annotations

import html
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi import call
from made_runs import make_run, make_task
from snellen.core.types import Form, Image, Prediction, Request, Sample, TrialKey, Turn
from snellen.report.pages.gallery import Shown
from snellen.report.viewer.same_sample import line_difference, reply_difference, word_difference
from snellen.report.viewer.stage import answer_boxes, boxes_of
from snellen.report.viewer.trial_page import likelihood_bars, token_colours

pytest.importorskip("starlette", reason="the extra `view` is not installed")
from snellen.api.view import make_viewer
from snellen.report.viewer.guard import cookie_name

KEY = TrialKey("t", "s")
PICTURE = Image("p.png", width=200, height=100)


def shown(
    reply: str = "", *, meta: Any = None, tags: Any = None, form: Form = Form.OPEN, answers: tuple[str, ...] = ()
) -> Any:
    sample = Sample("s", "t", form, "?", answers=answers, meta=meta or {}, tags=tags or {})
    return SimpleNamespace(sample=sample, prediction=Prediction(KEY, text=reply))


@pytest.mark.parametrize("cell", ["[20, 10, 100, 50]", "20,10,100,50", "0.1, 0.1, 0.5, 0.5", "[0.1, 0.1, 0.5, 0.5]"])
def test_a_column_called_box_is_drawn(cell: str) -> None:
    assert list(boxes_of(shown(tags={"box": cell}), 0, PICTURE)) == [(0.1, 0.1, 0.5, 0.5)]


@pytest.mark.parametrize("cell", ["left", "[1, 2]", "{", "1,2,3,x", 7, None, True])
def test_what_is_no_box_draws_nothing(cell: Any) -> None:
    assert list(boxes_of(shown(tags={"box": cell}), 0, PICTURE)) == []


def test_the_region_of_a_reply_is_drawn_beside_the_one_of_the_data() -> None:
    meta = {"box": [20, 10, 100, 50]}
    assert list(answer_boxes(shown("It is at [40, 20, 120, 60].", meta=meta), 0, PICTURE)) == [(0.2, 0.2, 0.6, 0.6)]
    assert list(answer_boxes(shown("at (0.1, 0.2, 0.3, 0.4)", meta=meta), 0, PICTURE)) == [(0.1, 0.2, 0.3, 0.4)]
    assert list(answer_boxes(shown("[400, 20, 900, 60]", meta=meta), 0, PICTURE)) == [], "no scale is guessed"
    assert list(answer_boxes(shown("[40, 20, 120, 60]"), 0, PICTURE)) == [], "no region was asked for"


def test_a_read_page_is_compared_line_by_line() -> None:
    told = "".join(
        map(
            str,
            reply_difference(shown("One line\nThe cat sat\nmore", form=Form.OCR, answers=("One line\nThe dog sat",))),
        )
    )
    assert '<div class="same">One line</div>' in told
    assert "The <del>dog</del><ins>cat</ins> sat" in told
    assert "<ins>more</ins>" in told
    assert list(reply_difference(shown("red", answers=("blue",)))) == [], "a word is no text"
    assert "Too long" in "".join(map(str, reply_difference(shown("a " * 30_000, form=Form.OCR, answers=("b",)))))
    assert "more than 400 lines" in line_difference("a\n" * 500, "b")


@given(st.text(alphabet="ab <>&\n\té ", max_size=60), st.text(alphabet="ab <>&\n\té ", max_size=60))
@settings(max_examples=150, deadline=None)
def test_a_difference_holds_both_texts_and_no_markup_of_theirs(before: str, after: str) -> None:
    made = word_difference(before, after)
    first = html.unescape(re.sub(r"<ins>.*?</ins>|</?del>", "", made, flags=re.S))
    second = html.unescape(re.sub(r"<del>.*?</del>|</?ins>", "", made, flags=re.S))
    assert (first, second) == (before, after)
    assert set(re.findall(r"<[^>]*>", made)) <= {"<del>", "</del>", "<ins>", "</ins>"}


def test_likelihoods_are_bars_and_their_tokens_squares() -> None:
    request = Request(KEY, (Turn("user", "?"),), choices=("red", "blue"))
    detail = {"token_logprobs": [[-0.1, -0.2], [-4.0]]}
    prediction = Prediction(KEY, loglikelihoods=(-0.3, -4.0), detail=detail)
    made = likelihood_bars(Shown(Sample("s", "t", Form.CHOICE, "?"), request, prediction, []))
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height="12"', made)]
    assert widths[0] == 200
    assert 0 < widths[1] < 6
    assert made.count("<i ") == 3
    assert "-0.3000" in made


def test_tokens_are_coloured_where_a_model_gave_them() -> None:
    logprobs = [{"token": "A<", "logprob": -0.01}, {"token": " b", "logprob": -3.0}]
    made = str(token_colours(Prediction(KEY, text="A< b", detail={"logprobs": logprobs})))
    assert 'class="token p0"' in made and 'class="token p4"' in made
    assert "A&lt;" in made
    for other in ([], "text", [1, 2], [{"token": "a"}], [{"token": 1, "logprob": 2}], None):
        assert token_colours(Prediction(KEY, text="x", detail={"logprobs": other})) is None


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "one", count=60, task=make_task(repeats=2))
    return make_viewer([folder], "key")


class TestPages:
    def read(self, app: Any, path: str) -> str:
        run = call(app, "/state", headers={"cookie": f"{cookie_name('key')}=key"}).text.partition(":")[0]
        answer = call(app, path.replace("RUN", run), headers={"cookie": f"{cookie_name('key')}=key"})
        assert answer.status == 200
        return str(answer.text)

    def test_steps_of_a_group_lead_through_it(self, app: Any) -> None:
        page = self.read(app, "/run/RUN/trial?task=shapes&sample=shape-00005")
        steps = re.search(r'<nav class="steps".*?</nav>', page, re.S)
        assert steps is not None
        assert re.findall(r">(shape-\d+)</a>", steps[0]) == [f"shape-0000{n}" for n in (4, 5, 6, 7)]
        assert steps[0].count('aria-current="step"') == 1

    def test_a_gallery_shows_200_pictures_that_wait_to_be_seen(self, app: Any) -> None:
        page = self.read(app, "/run/RUN/trials?view=gallery")
        assert page.count('loading="lazy"') == 120
        assert "120 of 120 trials" in page
        way = html.unescape(re.findall(r'<li><a href="([^"]*)"', page)[0])
        assert "view=gallery" in way, "one comes back to the gallery"
        assert "view=gallery" in self.read(app, way), "next and the breadcrumb too"

    def test_columns_are_chosen_and_rows_are_dense(self, app: Any) -> None:
        page = self.read(app, "/run/RUN/trials?columns=reply&columns=outcome&dense=1")
        heads = re.findall(r'<th scope="col" class="(?:n )?h-([\w-]+)"', page)
        assert heads == ["outcome", "trial", "reply"]
        assert "trials dense" in page
        assert len(re.findall(r'class="(?:n )?h-', self.read(app, "/run/RUN/trials"))) == 10

    def test_trials_are_grouped_by_any_tag_with_a_chart(self, app: Any) -> None:
        page = self.read(app, "/run/RUN/trials?by=shape&outcome=wrong")
        chart = re.search(r'class="scroll card bygroup".*?</table>', page, re.S)
        assert chart is not None
        assert re.findall(r'scope="row"><a href="[^"]*">(\w+)<', chart[0]) == ["bar", "circle", "square", "triangle"]
        counts = [
            int(n) + int(lost)
            for n, lost in re.findall(
                r'<td class="n">(\d+)</td><td class="n">\d+</td><td class="n">(\d+)</td></tr>', chart[0]
            )
        ]
        assert sum(counts) == 120, "all outcomes, or every group would be all wrong"
        assert "group=shape%3Dbar" in chart[0]
        by_group = self.read(app, "/run/RUN/trials?by=group")
        assert "doc-14" in by_group
        assert "bygroup" not in self.read(app, "/run/RUN/trials?by=nonsense")

    def test_the_table_of_mistakes_is_set_as_every_other_table(self, app: Any) -> None:
        table = self.read(app, "/run/RUN").partition("Why is it wrong?")[2].partition("</table>")[0]
        heads = re.findall(r'<th scope="col"(?: class="(\w+)")?>(\w+)', table.partition("</thead>")[0])
        assert heads == [("", "group"), ("n", "trials"), ("n", "share"), ("", "when")]
        assert len(re.findall(r'<td class="n">', table)) == 2 * table.count('<th scope="row">') > 0

    def test_the_run_page_says_how_it_was_asked(self, app: Any) -> None:
        page = self.read(app, "/run/RUN")
        for words in ("How it was asked", "The first prompt as it was sent", "All settings that change results"):
            assert words in page
        assert "What is taken for what" in page and "Does it favour a position?" in page
        assert page.index("accuracy by") < page.index("How long a reply takes"), "latency never stands first"
