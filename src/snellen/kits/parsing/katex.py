"""Formulas in LaTeX in, what KaTeX draws of them out: MathML, and each glyph with its box. Needs KaTeX and Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path

from ...core.errors import EnvironmentProblem

FOLDERS = (
    "node_modules/katex/dist",
    "/usr/share/javascript/katex",
    "/usr/lib/node_modules/katex/dist",
    "/usr/local/lib/node_modules/katex/dist",
)
"""Where KaTeX is looked for, after the folder that SNELLEN_KATEX names."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_S = 120
_PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><style>
body { display: flex; justify-content: center; align-items: center; height: 100vh; margin: 0 }
#formula { padding: 0; font-size: 24px }
</style><style>%s</style><script>%s</script></head><body><div id="formula"></div><script>
const drawn = [], box = document.getElementById("formula");
for (const formula of %s) {
  try { katex.render(formula, box, { displayMode: true, throwOnError: true }); }
  catch (error) { drawn.push({ error: error.message }); box.innerHTML = ""; continue; }
  const glyphs = [];
  for (const span of document.querySelectorAll("span"))
    if (!span.children.length && /\\S/.test(span.textContent)) {
      const at = span.getBoundingClientRect();
      glyphs.push([span.textContent.trim(), at.x, at.y, at.width, at.height]);
    }
  const math = document.querySelector(".katex-mathml math");
  drawn.push({ mathml: math ? math.outerHTML : "", glyphs: glyphs });
}
document.body.innerHTML = "<pre id=drawn></pre>";
document.getElementById("drawn").textContent = JSON.stringify(drawn);
</script></body></html>"""


@dataclass(frozen=True)
class Glyph:
    """One character and where its middle stands."""

    text: str
    x: float
    y: float


@dataclass(frozen=True)
class Drawn:
    """What KaTeX draws of a formula; with an error it draws nothing."""

    mathml: str = ""
    glyphs: tuple[Glyph, ...] = ()
    error: str = ""


_known: dict[str, Drawn] = {}


def draw(formulas: Iterable[str]) -> dict[str, Drawn]:
    """Return what KaTeX draws of each formula; all that are new are drawn at once.

    Raises EnvironmentProblem where KaTeX or Chromium is missing, or Chromium does not answer.
    """
    wanted = list(dict.fromkeys(formulas))
    new = [formula for formula in wanted if formula not in _known]
    if new:
        _known.update(zip(new, map(_read, _run(new)), strict=True))
    return {formula: _known[formula] for formula in wanted}


def missing_reason() -> str | None:
    """Return why formulas cannot be drawn on this machine, or None if they can."""
    try:
        _programs()
    except EnvironmentProblem as problem:
        return str(problem)
    return None


@cache
def _programs() -> tuple[Path, str]:
    folders = [os.environ.get("SNELLEN_KATEX", ""), *FOLDERS]
    folder = next((Path(one) for one in folders if one and Path(one, "katex.min.js").is_file()), None)
    if folder is None:
        raise EnvironmentProblem(
            "formulas are compared by what KaTeX draws, and there is no KaTeX: apt install libjs-katex, npm install "
            "katex, or set SNELLEN_KATEX to the folder of katex.min.js"
        )
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise EnvironmentProblem("formulas are compared by what KaTeX draws, and there is no Chromium to draw them")
    return folder, browser


def _run(formulas: list[str]) -> list[dict[str, object]]:
    folder, browser = _programs()
    script = json.dumps(formulas).replace("</", "<\\/")
    style, code = ((folder / name).read_text("utf-8") for name in ("katex.min.css", "katex.min.js"))
    # the style stands in the page, where its fonts are not found: the original measures without them too
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch, "page.html")
        page.write_text(_PAGE % (style, code, script), "utf-8")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=800,400", "--dump-dom"]
        command += [f"--user-data-dir={scratch}/profile", page.as_uri()]
        try:
            done = subprocess.run(  # noqa: S603 - a browser, and a page that stands above
                command, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise EnvironmentProblem(f"Chromium did not draw {len(formulas)} formulas in {TIMEOUT_S} s") from None
    found = re.search(r'<pre id="drawn">(.*?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        raise EnvironmentProblem(f"Chromium drew no formulas: {done.stderr.strip()[-200:] or 'no output'}")
    drawn: list[dict[str, object]] = json.loads(unescape(found[1]))
    return drawn


def _read(drawn: dict[str, object]) -> Drawn:
    if "error" in drawn:
        return Drawn(error=str(drawn["error"]))
    glyphs = []
    for text, x, y, width, height in drawn["glyphs"]:  # type: ignore[attr-defined]
        if text != "\u200b":
            each = width / len(text)
            glyphs += [Glyph(letter, x + each * (n + 0.5), y + height / 2) for n, letter in enumerate(text)]
    return Drawn(str(drawn["mathml"]), tuple(glyphs))
