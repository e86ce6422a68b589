"""A run and another way to read its replies to one page: the results as stored, and as that profile reads them."""

from __future__ import annotations

from ...core.errors import UsageError
from ...core.markup import Child, Html, tag
from ...extract.profiles import PROFILES
from ..pages.tables import head, numbers, row, scrolled
from ..written import written, written_change
from .run_library import OpenRun
from .shell import link, shell


def known_profile(name: str) -> str:
    """Return the name of a profile, or refuse it with those that are known."""
    if name not in PROFILES:
        raise UsageError(f"no profile {name!r}; known: {', '.join(PROFILES)}")
    return name


def profile_choice(run: OpenRun, task: str) -> Html:
    """Return the form that reads a run's replies as another tool does."""
    options = [tag("option", name, value=name) for name in PROFILES]
    fields = (
        tag("input", type="hidden", name="task", value=task),
        tag("label", "read the replies as", tag("select", *options, name="profile")),
        tag("button", "Score again"),
    )
    return tag("form", *fields, method="get", action=f"/run/{run.key}/again", class_="filters")


def again_page(run: OpenRun, profile: str, *, may_write: bool) -> Html:
    """Return the results as stored and as another profile reads them, side by side."""
    before, after = run.results(), run.rescored(profile)
    parts: list[Child] = [
        tag("h1", f"{run.name} read as {profile}"),
        tag("p", "The stored replies, scored again. Nothing was asked, nothing was written.", class_="muted"),
    ]
    names = head("metric", (before["run"]["profile"], "n"), (profile, "n"), ("difference", "n"))
    for task, result in after["tasks"].items():
        old, new = before["tasks"].get(task, {}).get("metrics", {}), result["metrics"]
        rows = [row(name, *_pair(name, old.get(name), new.get(name))) for name in dict.fromkeys([*old, *new])]
        parts += [tag("h2", task), scrolled(f"Metrics of {task}", names, tag("tbody", *rows), class_="card scroll")]
    if may_write:
        fields = (
            tag("input", type="hidden", name="profile", value=profile),
            tag("button", f"Keep the scores of {profile} in this run"),
        )
        parts.append(tag("form", *fields, method="post", action=f"/run/{run.key}/again"))
    crumbs = [link("Runs", "/"), link(run.name, f"/run/{run.key}"), f"as {profile}"]
    return shell(f"{run.name} as {profile}", parts, crumbs=crumbs)


def _pair(name: str, old: dict[str, float] | None, new: dict[str, float] | None) -> list[Html]:
    shown = ["–" if one is None else written(name, one) for one in (old, new)]
    return numbers([*shown, written_change(name, old, new)])
