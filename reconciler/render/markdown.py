"""A plan as a comment on a pull request: the verdict as its heading, the plan folded below."""

from __future__ import annotations

import re

from reconciler.model.plan import Plan
from reconciler.render import plan as render_plan
from reconciler.render.style import Style

MOST = 60_000  # characters; a comment on GitHub holds 65,536, on GitLab a million
_PLAIN = Style(False)


def plan(found: Plan) -> list[str]:
    """All lines. Text of manifests and nodes stands in one fenced block only, so that none of it is markup or mentions anybody.

    The first line does not show: by it, a comment that was made before is found again.
    """
    body = _cut("\n".join(render_plan.render(found, _PLAIN)))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", body)), 0)
    unfolded = " open" if len(body) < 3000 else ""
    return [
        f"<!-- reconcile plan {re.sub('[^a-z0-9.-]', '', found.cluster)} -->",
        f"### reconcile: {render_plan.verdict(found)}",
        "",
        f"<details{unfolded}><summary>plan</summary>",
        "",
        f"{fence}text",
        body,
        fence,
        "",
        "</details>",
    ]


def _cut(body: str) -> str:
    """Whole lines of at most MOST characters, and that there is more."""
    if len(body) <= MOST:
        return body
    return body[:MOST].rpartition("\n")[0] + "\n... cut here: `reconcile plan` shows all of it"
