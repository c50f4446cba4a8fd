"""Processes and progress: every command the lab runs on the host goes through here, as an argv tuple."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab.errors import CommandError, LabError


def run(
    *argv: str | Path,
    check: bool = True,
    stdin: str | None = None,
    timeout: float | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command with its output captured as text; raises CommandError where `check` and it failed."""
    words = tuple(str(word) for word in argv)
    try:
        done = subprocess.run(
            words, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True, text=True, errors="replace", timeout=timeout, cwd=cwd, env=env, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise LabError(f"`{words[0]}` is not installed on this machine") from error
    if check and done.returncode != 0:
        raise CommandError(words, done.returncode, done.stderr or done.stdout)
    return done


def wait_for(condition: Callable[[], bool], what: str, timeout: float, interval: float = 0.02) -> None:
    """Poll until `condition` holds; LabError after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise LabError(f"{what}: not after {timeout:.0f} s")
        time.sleep(interval)


def say(text: str) -> None:
    """One line for the person who waits."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def stage(what: str, quiet_below: float = 0.0) -> Iterator[None]:
    """Announce a stage that may take more than a second, and how long it took."""
    start = time.monotonic()
    if quiet_below <= 0:
        say(f"{what} ...")
    yield
    took = time.monotonic() - start
    if took >= max(quiet_below, 0.0):
        say(f"{what}: {took:.1f} s")
