"""What the demo shows and checks: commands with their real output, and promises that hold or do not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended: exit status and what it said on stdout."""

    code: int
    out: str

    def first(self) -> str:
        """Its verdict: the first line."""
        return self.out.splitlines()[0] if self.out else ""


@dataclass
class Promises:
    """What was promised so far, and what of it did not hold."""

    kept: int = 0
    broken: list[str] = field(default_factory=list)

    def check(self, promise: str, holds: bool, found: object = "") -> None:
        """One promise, told at once; a broken one with what was found instead."""
        if holds:
            self.kept += 1
            print(f"  ok: {promise}", flush=True)
        else:
            self.broken.append(promise)
            print(f"  NOT AS PROMISED: {promise}: {found}", flush=True)


def heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


def shown(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> Done:
    """Run a command as a person would type it: echoed, its output as it comes, its exit status and time."""
    print(f"\n$ {' '.join(argv)}", flush=True)
    began = time.monotonic()
    words = (str(Path(sys.executable).with_name(argv[0])), *argv[1:]) if argv[0] == "reconcile" else argv
    process = subprocess.Popen(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    kept = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            kept.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    print(f"[exit {process.returncode}, {time.monotonic() - began:.1f} s]", flush=True)
    return Done(process.returncode, "".join(kept))


def environment(work: Path) -> dict[str, str]:
    """The caller's environment without its Git and without the controller's records: both are the demo's own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RECONCILE_"))}
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        git |= {f"GIT_{role}_NAME": "demo", f"GIT_{role}_EMAIL": "demo@localhost"}
    return {**own, **git, "RECONCILE_STATE_DIR": str(work / "state")}
