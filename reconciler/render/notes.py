"""Single lines that commands say beside their result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.observed import Failure
from reconciler.model.problem import Problem
from reconciler.render.problems import problem_text
from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import count, safe

INTERRUPTED = "interrupted: no further step begins (once more ends at once; steps that run go on)"
NOT_NOTED = "note: another reconcile is at work; this plan is not noted in the status"
SHOWN = 3


def uncommitted(files: Sequence[str]) -> str:
    """That a commit is read, and what of the work tree is not in it."""
    more = " ..." if len(files) > SHOWN else ""
    return f"note: uncommitted changes are not part of this: {', '.join(map(safe, files[:SHOWN]))}{more}"


def unpinned(problem: Problem) -> str:
    return f"note: {problem_text(problem)}"


def host_list(hosts: str) -> str:
    return f"'{safe(hosts)}' is not a host list: gpu01, gpu[01-08] or gpu[01-04,07]"


def saved_plan_options(given: Sequence[str]) -> str:
    return f"a saved plan says its own {', '.join(given)}"


def saved_as(path: str) -> str:
    return f"saved as {safe(path)}: `reconcile apply {safe(path)}` carries out exactly this, once"


def drift(drifted: int, held: int, pending: int, style: Style) -> str:
    """The verdict of `drift`."""
    also = f", {held} held" if held else ""
    also += f", {pending} pending (Git changed; see `reconcile plan`)" if pending else ""
    return style(f"drift: {count(drifted, 'resource')}", "bold", "red" if drifted else "green") + also


def validated(problems: int, documents: Mapping[str, int], nodes: int, style: Style) -> str:
    """The verdict of `validate`."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in documents.items()) or "no document"
    verdict = count(problems, "problem") if problems else "valid"
    return style(verdict, "bold", "red" if problems else "green") + f": {kinds}, {count(nodes, 'node')}"


def warning(problem: Problem) -> str:
    return f"{problem_text(problem)} (warning)"


def unchecked(documents: Sequence[str]) -> str:
    return f"not checked until what they rest on is right: {', '.join(map(safe, documents))}"


def recorded(commit: str | None) -> str:
    return f"recorded as {commit[:8]}" if commit else "nothing changed since the last snapshot"


def rebuilt(nodes: int, steps: int) -> str:
    return f"rebuilt from {count(nodes, 'node')}: {count(steps, 'step record')}"


def failures(found: Mapping[str, Failure]) -> list[str]:
    """One line for each node that could not be asked."""
    return [f"  {safe(name)}: {sentence(why.reason, why.data)}" for name, why in found.items()]
