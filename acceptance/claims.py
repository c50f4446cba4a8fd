"""What the scripts share: claims with their evidence, a verdict line, a lab of their own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab import Lab
from lab.config import LabConfig

ROOT = Path(__file__).parent.parent
STAND_IN = "STAND-IN: lab nodes (systemd, sshd, dnf and rpm are real; packages, kernel and CentOS userland are not)"


class Claims:
    """Collects what was claimed and whether it held; `end` prints the verdict line and gives the exit status."""

    def __init__(self, title: str, stand_in: str = STAND_IN) -> None:
        self._title, self._stand_in = title, stand_in
        self._held: list[bool] = []

    def check(self, claim: str, held: bool, evidence: object = "") -> None:
        """One claim, printed at once with its evidence."""
        self._held.append(held)
        shown = f": {evidence}" if str(evidence) else ""
        print(f"{'ok    ' if held else 'FALSE '} {claim}{shown}", flush=True)

    def end(self) -> int:
        good = bool(self._held) and all(self._held)
        verdict = "ACCEPTED" if good else "REFUSED"
        print(
            f"{verdict} {self._title}: {sum(self._held)} of {len(self._held)} claims hold. {self._stand_in}".rstrip(". "),
            flush=True,
        )
        return 0 if good else 1


def say(text: str) -> None:
    """A heading between pieces of evidence."""
    print(f"\n== {text}", flush=True)


@contextlib.contextmanager
def fresh_lab(nodes: int = 3) -> Iterator[tuple[Lab, Path]]:
    """A lab of its own beside any other, and a folder; both are gone afterwards."""
    with lab_of_own({}, nodes) as found:
        yield found


def own_config() -> LabConfig:
    """Of the lab that acceptance scripts have to themselves, beside any other; its key is there once it is up."""
    os.environ.setdefault("RECONCILE_LAB_NAME", "accept")
    os.environ.setdefault("RECONCILE_LAB_SUBNET", "10.94.0")
    return LabConfig.from_environment()


@contextlib.contextmanager
def lab_of_own(options: Mapping[str, str], nodes: int = 0) -> Iterator[tuple[Lab, Path]]:
    """The same with nodes that have options (name -> `bind=/SOURCE:/TARGET`)."""
    lab = Lab(own_config())
    try:
        lab.up(nodes=nodes, options=options)
        with tempfile.TemporaryDirectory(prefix="reconcile-acceptance-") as folder:
            yield lab, Path(folder)
    finally:
        lab.down()


@contextlib.contextmanager
def fresh_clone() -> Iterator[Path]:
    """The committed tree as a stranger gets it: nothing that is not in Git is there."""
    with tempfile.TemporaryDirectory(prefix="reconcile-clone-") as folder:
        clone = Path(folder) / "reconcile"
        subprocess.run(("git", "clone", "--quiet", str(ROOT), str(clone)), check=True)
        head = subprocess.run(("git", "-C", str(clone), "rev-parse", "--short", "HEAD"), check=True, capture_output=True, text=True)
        print(f"fresh clone of {head.stdout.strip()}", flush=True)
        yield clone


def stream(argv: tuple[str, ...], cwd: Path) -> tuple[int, str]:
    """Run a command, show its output as it comes, and keep it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RECONCILE_", "VIRTUAL_ENV", "COVERAGE_"))}
    process = subprocess.Popen(
        argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    kept = []
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        kept.append(line)
    return process.wait(), "".join(kept)
