"""Everything about the code that can be judged without running it; all checks run, then the exit status says.

`python -m tools.check [NAME ...]` runs those that are named, or all.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.sources import ROOT

# each is a program of this environment, or a module of ours
CHECKS: dict[str, tuple[str, ...]] = {
    "format": ("ruff", "format", "--check", "--quiet", "."),
    "lint": ("ruff", "check", "--quiet", "."),
    "types": ("mypy", "--no-error-summary"),
    "contracts": ("lint-imports", "--no-cache", "--no-logo"),
    "node-python": ("vermin", "--quiet", "--no-tips", "--violations", "--eval-annotations", "--target=3.6-", "reconciler/node"),
    "habits": ("python", "-m", "tools.habits"),
}


def run(name: str) -> int:
    """One check's exit status. It says nothing but its name and time where all is well."""
    began = time.monotonic()
    program, *arguments = CHECKS[name]
    argv = (str(Path(sys.executable).with_name(program)), *arguments)
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(done.stdout.rstrip(), flush=True)
    print(f"check {name}: {'RED' if done.returncode else 'ok'}, {time.monotonic() - began:.1f} s", flush=True)
    return done.returncode


def main(names: Sequence[str]) -> int:
    """Run them all, also after a red one; 1 when any was red, 2 for a name that is no check."""
    if wrong := [name for name in names if name not in CHECKS]:
        print(f"no check {', '.join(wrong)}; there are: {', '.join(CHECKS)}")
        return 2
    statuses = [run(name) for name in names or CHECKS]
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
