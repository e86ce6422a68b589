"""An eye test of one's own: how long must the longer of four strokes be before the model sees it?"""

from snellen.sight.board import Board
from snellen.sight.choice_plates import QUADRANTS, ChoiceTest, ink_of
from snellen.sight.plate import Card

QUESTION = (
    "The picture shows four strokes. Which one is longest? Guess if you are not sure. Reply with one of {answers}."
)

CARD = Card(
    title="Stroke length",
    unit="share",
    hardest=0.01,  # one stroke is longer by 1 % …
    easiest=1.0,  # … to 100 %
    plate="strokes",
    answers=tuple(QUADRANTS),
    wordings=(QUESTION, "Look at the four strokes. " + QUESTION, "Compare lengths. " + QUESTION),
    pad_bytes=32768,
)


class Strokes(ChoiceTest):
    """Draws; asking, reading, chance and balance of answers come with `ChoiceTest`."""

    def show(self, level, answer, draw, bench):
        """Return the picture, its level as drawn, and what is stored of it; no answer: no target."""
        share, base = self.jittered(level, draw), draw.uniform(60, 110)
        board, ink = Board(*self.card.canvas), ink_of(draw)
        for name, (column, row) in QUADRANTS.items():
            length = base * (1 + share) if name == answer else base
            x, y = 60 + 336 * column + draw.uniform(0, 40), 168 + 336 * row + draw.uniform(-90, 90)
            board.stroke((x, y), (x + length, y), 5, ink)
        return board.png(self.card.pad_bytes), share, {}


def register(registry):
    """Called by `snellen exam --plugin examples/eye_test.py --tests strokes`."""
    registry.add("eye-test", "strokes", Strokes(CARD))
