"""One call of git with bounds: what it may print, how long it may take, and an environment that no repository can bend."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import SourceError

TIMEOUT = 60.0  # seconds of one call; the largest here walks the commits of one push
# what a pre-receive hook is told of the objects that are not in the repository yet (githooks(5), "quarantine")
QUARANTINE = ("GIT_QUARANTINE_PATH", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
NOTHING: Mapping[str, str] = {}
_CONFIGURATION = ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")  # where the caller keeps it
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", *_CONFIGURATION, *QUARANTINE)


@dataclass(frozen=True, slots=True)
class Said:
    """Exit status, stdout, and stderr as text."""

    status: int
    out: bytes
    err: str

    @property
    def first_error(self) -> str:
        """The line of stderr that says what is wrong; advice follows it."""
        return next((line for line in self.err.splitlines() if line.strip()), f"git ended with {self.status}")

    @property
    def text(self) -> str:
        """Of stdout."""
        return self.out.decode("utf-8", "replace")


def environment(repository: Path, more: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """Of a git that works on `repository`: nothing of the caller's but paths, language, configuration and a push's quarantine.

    Replaced objects (refs/replace) are not followed: anybody who may push a ref could otherwise exchange what is judged.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    if "GIT_DIR" in os.environ and Path(os.environ["GIT_DIR"]).resolve() == repository.resolve():
        kept["GIT_DIR"] = str(repository)  # as the hook was told; a directory that is named so is not checked for its owner
    return {**kept, "LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **more}


def call(repository: Path, *words: str, limit: int = 1 << 20, timeout: float = TIMEOUT, more: Mapping[str, str] = NOTHING) -> Said:
    """`git WORDS` in `repository`, whatever its exit status. `limit`: bytes of stdout that are taken; `more`: environment.

    Raises SourceError: GitSaysTooMuch, GitTooSlow, NoGit.
    """
    env = environment(repository, more)
    try:
        process = subprocess.Popen(
            ("git", *words), cwd=repository, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as e:
        raise SourceError("NoGit", path=str(repository), detail=e.strerror) from None
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise SourceError("GitTooSlow", command=words[0], age=timeout) from None
        except BaseException:
            process.kill()
            raise
    if len(out) > limit:
        raise SourceError("GitSaysTooMuch", command=words[0], limit=limit)
    return Said(process.returncode, out, err.decode("utf-8", "replace"))


def ask(repository: Path, *words: str, limit: int = 1 << 20) -> str:
    """What `git WORDS` answers, in one line or several. Raises SourceError: Unreadable with what git said, and those of `call`."""
    said = call(repository, *words, limit=limit)
    if said.status != 0:
        raise SourceError("Unreadable", path=str(repository), detail=said.first_error)
    return said.text.strip()
