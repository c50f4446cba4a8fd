"""A plan as a comment: one block holds all that manifests and nodes say, whatever they say."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest
import yaml

from reconciler.model.desired import Revision
from reconciler.render import markdown
from tests import golden
from tests.plan.worlds import plan_of, state
from tests.render.test_pages import big_plan
from tools.sources import ROOT

PLANS = {"markdown": big_plan(), "markdown-nothing-to-do": plan_of(state(), {})}


@pytest.mark.parametrize("case", PLANS)
def test_a_comment(case: str) -> None:
    golden.check("render_markdown", case, markdown.plan(PLANS[case]))


@pytest.mark.parametrize("subject", ["```", "``` @everybody </details> ````` <img src=x>", "`", "<!-- -->"])
def test_nothing_leaves_its_block(subject: str) -> None:
    def outside(text: str) -> tuple[list[str], list[str]]:
        """The lines around the block, and those in it."""
        lines = markdown.plan(replace(plan_of(state(), {}), revision=Revision("1" * 40, text)))
        fence = next(line.removesuffix("text") for line in lines if line.endswith("`text"))
        begin, end = lines.index(f"{fence}text"), lines.index(fence)
        assert fence not in "\n".join(lines[begin + 1 : end])
        return [*lines[:begin], *lines[end + 1 :]], lines[begin + 1 : end]

    around, within = outside(subject)
    assert around == outside("a subject")[0]
    assert subject in "\n".join(within)


def test_the_recipes_are_yaml_whose_scripts_are_shell() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    github, gitlab = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)\n```", text, re.DOTALL))
    scripts = [github["jobs"]["plan"]["steps"][-1]["run"], "\n".join(gitlab["plan"]["script"])]
    for script in scripts:
        assert "reconcile plan --commit" in script
        subprocess.run(("sh", "-n", "-c", script), check=True)


def test_a_long_plan_is_cut_at_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MOST", 300)
    lines = "\n".join(markdown.plan(big_plan()))
    assert "\n... cut here: `reconcile plan` shows all of it\n```" in lines
    assert len(lines) < 600
