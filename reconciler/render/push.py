"""What a pusher reads: the verdict first, then every problem; what the hooks of a repository are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from reconciler.model.problem import Problem
from reconciler.render import notes
from reconciler.render.problems import problem_text
from reconciler.render.reasons import sentence
from reconciler.render.style import Style
from reconciler.render.text import count, safe, table

if TYPE_CHECKING:  # post-receive makes no use of them, and has no time for them
    from reconciler.source.api import Loaded
    from reconciler.source.hooks import Hook

_STATES = {"absent": "absent", "current": "installed", "outdated": "installed, not as it should be", "foreign": "not ours"}
UNSEEN = "the push is accepted; the controller takes it up when it runs"
OMITTED = "the plan is too long to be shown here: `reconcile plan` shows it"
GOES_ON = "it goes on without this terminal"
NOTHING_LOCAL = "0 changes: nothing is declared that this node may do by itself"


def rewritten(before: str, commit: str) -> str:
    """Of a branch whose history was changed, to a node that pulls."""
    return (
        f"{safe(commit[:12])} does not go on from {safe(before[:12])}, which was taken: history was rewritten; "
        f"to take it all the same: --accept {safe(commit[:12])}"
    )


def not_taken(reason: str, data: Mapping[str, Any]) -> list[str]:
    """Why a node that pulls does not take the newest revision: a line, or one for each problem."""
    if reason == "NonFastForward":
        return [rewritten(str(data["accepted"]), str(data["commit"]))]
    problems = data.get("problems") or ()
    return [problem_text(Problem(**problem)) for problem in problems] or [sentence(reason, data)]


def kept(commit: str) -> str:
    return f"nothing of it is taken: {safe(commit[:12])} stays in force"


def refused(loaded: Loaded, branch: str, style: Style) -> list[str]:
    """Of a push that is not taken."""
    number = count(len(loaded.problems), "problem")
    out = [style(f"refused: {number}", "bold", "red") + f" in the push to {safe(branch)}; nothing was changed"]
    out += [problem_text(problem) for problem in loaded.problems]
    if loaded.unchecked:
        out.append(notes.unchecked(loaded.unchecked))
    return out


def accepted(loaded: Loaded, style: Style) -> list[str]:
    """Of a push that is taken, with what `validate` warns of."""
    return [notes.validated(0, loaded.documents, loaded.nodes, style), *map(notes.warning, loaded.warnings)]


def follow(identity: str) -> str:
    return f"{GOES_ON}: `reconcile status --follow {safe(identity)}`"


def hooks(found: Iterable[Hook]) -> list[str]:
    """A line for each hook."""
    return table([(hook.name, _STATES[hook.state], safe(hook.path)) for hook in found])


def installed(found: Iterable[Hook], ref: str) -> list[str]:
    """What `install` did, from what was there before."""
    did = {"absent": "installed", "outdated": "replaced by this installation's", "current": "there already"}
    rows = [(hook.name, did[hook.state], safe(hook.path)) for hook in found]
    return [f"watching {safe(ref)}", *table(rows)]


def uninstalled(found: Iterable[Hook]) -> list[str]:
    did = {"absent": "was not there", "foreign": "is not ours: left", "current": "removed", "outdated": "removed"}
    return table([(hook.name, did[hook.state], safe(hook.path)) for hook in found])


def chain(foreign: Iterable[Hook], lines: dict[str, str]) -> list[str]:
    """How hooks that are somebody else's can call ours as well: ours has to be the last, with the same input."""
    out = []
    for hook in foreign:
        called = lines[hook.name].removeprefix("exec ")
        out += [
            f"{safe(hook.path)} is not ours. To keep it and call ours too, rename it to {hook.name}.first and write in its place:",
            "  #!/bin/sh",
            "  input=$(cat)",
            '  printf \'%s\\n\' "$input" | "$0.first" "$@" || exit',
            f"  printf '%s\\n' \"$input\" | {called}",
        ]
    return out
