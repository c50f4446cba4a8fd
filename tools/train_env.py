"""The trainer's environment, made once for each content of its requirements and kept in a cache.

`python -m tools.train_env` prints its folder, building it where it is not there; `python -m tools.train_env lock` resolves
trainer/requirements.in anew and writes trainer/requirements.txt. pip's own configuration is respected: where it offers a CPU build
of torch, that is what is installed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab.images.digest import digest
from tools.sources import ROOT

WANTED, LOCK = ROOT / "trainer" / "requirements.in", ROOT / "trainer" / "requirements.txt"
READY = "READY"
ROOM = 4 * 2**30  # bytes that a build needs at most: 2 GB of packages, and as much again while they are unpacked
ENVIRONMENT = {"DS_BUILD_OPS": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}  # DeepSpeed compiles nothing while it is installed


class Failed(Exception):
    """No environment, and why."""


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of all environments: RECONCILE_TRAIN_CACHE, else below the user's cache."""
    said = environ.get("RECONCILE_TRAIN_CACHE")
    return Path(said) if said else Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reconcile-trainer"


def name(lock: str) -> str:
    """The name of the environment of a lock, for this Python."""
    pins = "\n".join(line for line in lock.splitlines() if line and not line.startswith("#"))
    return digest({"requirements": pins, "python": f"{sys.version_info.major}.{sys.version_info.minor}"})


def python(folder: Path) -> Path:
    return folder / "bin" / "python"


def ready(folder: Path) -> bool:
    """Whether a build was finished."""
    return (folder / READY).is_file()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One builder at a time; a second one waits, and then finds it built."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(*argv: str) -> None:
    done = subprocess.run(
        argv, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout[-3000:]}")


def install(folder: Path, requirements: Path) -> None:
    """A fresh environment with these requirements; torch is in the same call as what depends on it."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", str(folder))
    run(str(python(folder)), "-m", "pip", "install", "-q", "setuptools", "wheel")
    run(str(python(folder)), "-m", "pip", "install", "-q", "-r", str(requirements))
    run(str(python(folder)), "-m", "pip", "check")


def ensure(lock: Path = LOCK) -> Path:
    """The folder of the environment that the lock names, built where it is not there. Raises Failed."""
    folder = cache() / name(lock.read_text(encoding="utf-8"))
    if ready(folder):
        return folder
    with alone(folder):
        if not ready(folder):
            if (free := shutil.disk_usage(folder.parent).free) < ROOM:
                wanted = f"{free / 2**30:.1f} GiB free, {ROOM / 2**30:.0f} are needed"
                raise Failed(f"{folder.parent} has {wanted}: RECONCILE_TRAIN_CACHE names another folder")
            print(f"preparing the trainer's environment in {folder} ...", file=sys.stderr, flush=True)
            began = time.monotonic()
            install(folder, lock)
            (folder / READY).touch()
            print(f"prepared in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return folder


def frozen(listed: str) -> str:
    """pip's list as a lock: without what came with the environment, and torch without the build that pip found here."""
    kept = [
        line
        for line in listed.splitlines()
        if re.match(r"[A-Za-z0-9._-]+==", line) and not re.match(r"(pip|setuptools|wheel)==", line)
    ]
    pins = [re.sub(r"^(torch==[^+]+)\+.*", r"\1", line) for line in kept]
    return "\n".join(["# made by `python -m tools.train_env lock`: do not edit", *sorted(pins, key=str.lower)]) + "\n"


def lock() -> None:
    """Resolve what is wanted and write the lock."""
    with tempfile.TemporaryDirectory(prefix="reconcile-train-env-") as folder:
        install(Path(folder) / "env", WANTED)
        argv = (str(python(Path(folder) / "env")), "-m", "pip", "freeze")
        listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    LOCK.write_text(frozen(listed), encoding="utf-8")


def main(words: list[str]) -> int:
    """Print the folder, or write the lock."""
    try:
        if words == ["lock"]:
            lock()
        elif words:
            print("there is: python -m tools.train_env, python -m tools.train_env lock", file=sys.stderr)
            return 2
        else:
            print(ensure())
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
