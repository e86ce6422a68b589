"""A likelihood trial to AISBench's fields: `ppl_list` with a label and its mean negative log-likelihood each."""

from __future__ import annotations

from typing import Any

from ...core.types import Prediction, Request
from ...scoring.scorers.option_likelihood import IMPOSSIBLE, choose, option_values

WHOLE = "prompt-mean"


def perplexity_fields(request: Request, prediction: Prediction) -> dict[str, Any]:
    """Return `ppl_list` and the label of its smallest entry; nothing where nothing was scored.

    As there, the figure is the mean over all tokens of prompt and answer, not its exponential, and the first of equals
    wins. An impossible label has none. Where only the answers were scored, the figure is that of the run's reduction.
    """
    if prediction.loglikelihoods is None:
        return {}
    whole = (WHOLE,) if prediction.detail.get("prompt_logprobs") else ()
    values = option_values(request, prediction, *whole)
    labels = request.marks if len(request.marks) == len(values) else request.shown or request.choices
    best = choose(values).likeliest
    figures = [-value if value > IMPOSSIBLE else None for value in values]
    listed = [{"label": label, "ppl": figure} for label, figure in zip(labels, figures, strict=True)]
    return {"prediction": labels[best[0]] if best else None, "ppl_list": listed}
