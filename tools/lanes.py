"""The lanes of the tests: one after another, each timed, until the first red one; then the coverage of all.

`python -m tools.lanes fast train lab` is `make test`, `python -m tools.lanes deep acceptance` is `make test-deep`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from lab import Lab, LabConfig
from tools import train_env
from tools.sources import ROOT

MARKS = {
    "fast": "not lab and not deep and not train",
    "train": "train and not lab and not deep",
    "lab": "lab and not deep",
    "deep": "deep",
}
ACCEPTANCE, TRAIN = "acceptance", "train"
LANES = (*MARKS, ACCEPTANCE)
NEED_LAB = ("lab", "deep", ACCEPTANCE)  # a deep matrix or a promise may boot nodes
RED, INTERRUPTED = 1, 130
CRASHES = 4  # processes of tests that are replaced by one with the next number
WORKERS = min(4, os.cpu_count() or 1)
# each process boots a lab of its own; tests that share a fixture stay together, and those of one folder near each other
LABS = ("-n", str(WORKERS), "--dist", "loadgroup", "--no-loadscope-reorder")
SIDE_BY_SIDE = {"fast": ("-n", str(WORKERS), "--dist", "worksteal"), "lab": LABS, "deep": LABS} if WORKERS > 1 else {}


def missing_for_lab() -> str:
    """Why the lab cannot run on this machine; empty where it can."""
    release = Path("/etc/os-release")
    lines = release.read_text(encoding="utf-8").splitlines() if release.exists() else []
    if not {"ID=debian", 'VERSION_ID="12"'} <= set(lines):
        return "the lab runs on Debian 12 only, and this is something else"
    if os.geteuid() != 0:
        return "the lab needs root: it makes namespaces, mounts and a bridge"
    return ""


def say(text: str) -> None:
    print(text, flush=True)


def coverage(*argv: str) -> int:
    # thousands of processes import reconciler/: each would compile it anew where the caller's environment forbids keeping that
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen((sys.executable, "-m", "coverage", *argv), cwd=ROOT, env=kept) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()  # it was interrupted as well, and ends its own processes first
            raise


@contextmanager
def labs_as_before() -> Iterator[None]:
    """End the labs that processes of this lane left: one that crashed or was interrupted could not. Those that were up stay up."""
    first = LabConfig.from_environment()
    labs = [Lab(first), *(Lab(first.beside(number)) for number in range(1, WORKERS + CRASHES))]
    mine = [lab for lab in labs if not lab.config.state.exists()]
    try:
        yield
    finally:
        for lab in mine:
            lab.down()


def run_tests(lane: str, arguments: Sequence[str]) -> int:
    """pytest's exit status for one lane; a lane without any test is red (5) as well."""
    with labs_as_before() if lane in NEED_LAB else nullcontext():
        return coverage("run", "-m", "pytest", "-m", MARKS[lane], *SIDE_BY_SIDE.get(lane, ()), *arguments)


def run_trainer(arguments: Sequence[str]) -> int:
    """The same for the trainer's tests, in its own environment, which is made where it is not there yet."""
    try:
        python = train_env.python(train_env.ensure())
    except train_env.Failed as error:
        say(f"lane {TRAIN}: its environment cannot be made: {error}")
        return RED
    argv = (str(python), "-m", "pytest", "-m", MARKS[TRAIN], "--confcutdir=tests/trainer", "tests/trainer", *arguments)
    return subprocess.run(argv, cwd=ROOT, check=False).returncode


def promises() -> list[str]:
    """The scripts of acceptance/ that prove something; what they share has no main."""
    found = sorted((ROOT / ACCEPTANCE).glob("*.py"))
    return [path.stem for path in found if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]


def run_acceptance() -> int:
    """Every promise, one after another, with the last line that it prints: its verdict."""
    failed = 0
    for name in (names := promises()):
        began = time.monotonic()
        argv = (sys.executable, "-m", f"{ACCEPTANCE}.{name}")
        done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.rstrip().splitlines() or ["(it said nothing)"]
        if done.returncode:
            failed += 1
            say("\n".join(f"  | {line}" for line in lines[-40:]))
        say(f"{ACCEPTANCE}.{name}: exit {done.returncode}, {time.monotonic() - began:.1f} s: {lines[-1]}")
    return 0 if names and not failed else RED


def run_lane(lane: str, arguments: Sequence[str]) -> int:
    """One lane's exit status, with its wall time printed."""
    if lane in NEED_LAB and (why := missing_for_lab()):
        say(f"lane {lane}: cannot run here: {why}. `make test LANES=fast` asks for what runs anywhere.")
        return RED
    say(f"lane {lane} ...")
    began = time.monotonic()
    runs: dict[str, Callable[[], int]] = {ACCEPTANCE: run_acceptance, TRAIN: lambda: run_trainer(arguments)}
    status = runs.get(lane, lambda: run_tests(lane, arguments))()
    say(f"lane {lane}: {'passed' if status == 0 else f'RED (exit {status})'}, {time.monotonic() - began:.1f} s")
    return status


def report() -> None:
    """The share of reconciler/ that all lanes together ran, processes of their own included."""
    if coverage("combine", "--quiet") == 0:
        coverage("report", "--skip-covered", "--skip-empty", "--sort=cover")


def main(argv: Sequence[str]) -> int:
    """Run the lanes that are named, `fast train lab` by default; what follows `--` goes to pytest."""
    words = list(argv)
    at = words.index("--") if "--" in words else len(words)
    lanes, arguments = words[:at] or ["fast", "train", "lab"], words[at + 1 :]
    if wrong := [lane for lane in lanes if lane not in LANES]:
        say(f"no lane {', '.join(wrong)}; there are: {', '.join(LANES)}")
        return 2
    coverage("erase")
    try:
        status = next((found for lane in lanes if (found := run_lane(lane, arguments))), 0)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    report()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
