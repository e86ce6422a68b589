"""A model of one's own, two ways. No weights: it looks at the colour that fills most of the picture.

snellen run examples/colours/questions.jsonl --plugin examples/my_model.py --model plugin/Colour_Interface
snellen run examples/colours/questions.jsonl --plugin examples/my_model.py \\
    --model plugin/Colour_Interface --infer-method likelihood
snellen run examples/colours/questions.jsonl --plugin examples/my_model.py --model plugin/name_colour
"""

import re

COLOURS = {"red": (210, 40, 40), "green": (40, 160, 60), "blue": (40, 70, 200), "orange": (250, 140, 20)}


class Colour_Interface:
    """The interface of ReForm-style evaluations, as one would write it for any model, without a word of Snellen."""

    def __init__(self, model_config=None, device=None, half=False, inference_method="generation"):
        self.colours = COLOURS

    def look(self, image):
        """Return the known colour nearest to the pixels that are neither white nor black."""
        pixels = [p for _, p in sorted(image.getcolors(2**20), reverse=True) if 60 < sum(p) < 700]
        return min(
            self.colours, key=lambda name: sum((a - b) ** 2 for a, b in zip(self.colours[name], pixels[0], strict=True))
        )

    def raw_batch_generate(self, image, prompt, temperature=1, max_new_tokens=30):
        """Answer each question with the mark of the option that names the colour seen."""
        outputs = []
        for picture, text in zip(image, prompt, strict=True):
            seen = self.look(picture)
            found = re.search(rf"\(?([A-Z])[).] {seen}", text)
            outputs.append(f"({found.group(1)}) {seen}" if found else seen)
        return outputs

    def raw_batch_predict(self, image, prompt, candidates):
        """Return for each question the index of the likeliest candidate."""
        return [
            max(range(len(options)), key=lambda i: options[i] == self.look(picture))
            for picture, options in zip(image, candidates, strict=True)
        ]


def name_colour(image, prompt):
    """A plain function is a model too."""
    return Colour_Interface().raw_batch_generate([image], [prompt])[0]
