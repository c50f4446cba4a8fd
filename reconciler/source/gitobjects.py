"""Objects of one repository, from a `git cat-file --batch` that is kept open: one process for all of a load."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from reconciler.source import gitcall


class ObjectUnreadable(Exception):
    """The repository lacks what its commit names, or git cannot look: a fault of the repository, and none of the manifests."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object: its hash, its type (commit, tree, blob, tag) and its bytes."""

    name: str
    type: str
    content: bytes


class Objects:
    """Begun at the first question. Has to be closed."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._process: subprocess.Popen[bytes] | None = None

    def find(self, name: str) -> Found | None:
        """The object that `name` stands for (a hash, or HEAD^{commit}), without line breaks; None: there is none.

        Raises ObjectUnreadable with git's own words.
        """
        process = self._process = self._process or self._begun()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(name.encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise ObjectUnreadable(self._last_words(process)) from None
        header = process.stdout.readline().decode(errors="replace").split()
        if not header:
            raise ObjectUnreadable(self._last_words(process))
        if len(header) != 3 or not header[2].isdigit():  # `NAME missing`, `NAME ambiguous`
            return None
        size = int(header[2])
        content = process.stdout.read(size + 1)  # a line break ends it
        if len(content) != size + 1:
            raise ObjectUnreadable(self._last_words(process))
        return Found(header[0], header[1], content[:-1])

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process:
            process.kill()
            process.communicate()

    def _begun(self) -> subprocess.Popen[bytes]:
        env, pipe = gitcall.environment(self._repository), subprocess.PIPE
        try:
            argv = ("git", "cat-file", "--batch")
            return subprocess.Popen(argv, cwd=self._repository, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as e:
            raise ObjectUnreadable(f"git: {e.strerror}") from None

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        self._process = None
        _, said = process.communicate()
        return gitcall.Said(process.returncode, b"", said.decode(errors="replace")).first_error


def summary(commit: bytes) -> str:
    """The first line of a commit's message, in the encoding that it names."""
    head, _, message = commit.partition(b"\n\n")
    named = next((line[9:] for line in head.split(b"\n") if line.startswith(b"encoding ")), b"utf-8")
    first = message.lstrip(b"\n").partition(b"\n")[0]
    try:
        return first.decode(named.decode("ascii"), "replace")
    except (LookupError, UnicodeDecodeError):  # an encoding that nobody knows
        return first.decode("utf-8", "replace")
