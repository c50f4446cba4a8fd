"""Who signed the commits: checked when they are pushed, and again before they are applied.

git verifies, with programs and keys that this module names: the configuration of a repository cannot change either.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from reconciler.errors import SourceError, Usage
from reconciler.model.problem import Datum, Problem
from reconciler.source import gitcall

MOST = 1000  # new commits of one push that are looked at; each takes two calls of git
_COMMIT = 1 << 20  # bytes of one commit object
_NOTHING = re.compile(r"0+")


class Mode(StrEnum):
    """Which commits have to be signed: none, the one that becomes the tip (`head`), every new one (`strict`)."""

    NONE = "none"
    HEAD = "head"
    STRICT = "strict"


@dataclass(frozen=True, slots=True)
class Keys:
    """Who may sign. `signers`: an allowed-signers file of SSH (ssh-keygen(1)); `keyring`: a GnuPG home, all keys of which count."""

    signers: Path | None = None
    keyring: Path | None = None

    @classmethod
    def named(cls, signers: str | None, keyring: str | None) -> Keys:
        """By the paths that were said, None or empty where nothing was."""
        return cls(Path(signers) if signers else None, Path(keyring) if keyring else None)

    def checked(self) -> Keys:
        """Itself, absolute. Raises Usage (NoSignerKeys, SignersUnreadable) where nobody could ever sign."""
        if self.signers is None and self.keyring is None:
            raise Usage("NoSignerKeys")
        for path, readable in ((self.signers, os.R_OK), (self.keyring, os.R_OK | os.X_OK)):
            if path is not None and not os.access(path, readable):
                raise Usage("SignersUnreadable", path=str(path))
        return Keys(*(path.absolute() if path else None for path in (self.signers, self.keyring)))


def wanted(repository: Path, mode: Mode, old: str | None, new: str) -> tuple[str, ...] | Problem:
    """The commits that `mode` wants signed when a branch moves from `old` (None or zeros: it was not there) to `new`, newest first.

    Only the branch itself says what is new: commits that other branches hold already were never checked. Raises SourceError.
    """
    if mode is Mode.NONE:
        return ()
    if mode is Mode.HEAD:
        return (new,)
    without = () if old is None or _NOTHING.fullmatch(old) else (f"^{old}",)
    listed = gitcall.ask(repository, "rev-list", f"--max-count={MOST + 1}", new, *without).split()
    if len(listed) > MOST:
        return Problem(_short(new), 0, 0, "commits-too-many", data={"limit": MOST})
    return tuple(listed)


def check(repository: Path, commits: tuple[str, ...], mode: Mode, keys: Keys) -> tuple[Problem, ...]:
    """A problem for each of `commits` that nobody of `keys` signed; mode none wants nothing. Raises SourceError.

    Problems: commit-not-signed, commit-signature-wrong, commit-signer-unknown, commit-signer-expired, commit-signer-revoked,
    commit-signature-kind. The file of a problem is the commit's short hash.
    """
    if mode is Mode.NONE:
        return ()
    found = (_judge(repository, commit, keys) for commit in commits)
    return tuple(problem for problem in found if problem)


def _short(commit: str) -> str:
    return commit[:12]


def _judge(repository: Path, commit: str, keys: Keys) -> Problem | None:
    text = gitcall.ask(repository, "cat-file", "commit", commit, limit=_COMMIT)
    headers, _, message = text.partition("\n\n")
    summary = message.strip().partition("\n")[0][:60]
    kind = _kind(headers)
    if kind is None:
        return _problem(commit, "commit-not-signed", summary)
    if (kind == "SSH" and keys.signers is None) or (kind == "OpenPGP" and keys.keyring is None) or kind == "X.509":
        allowed = tuple(name for name, path in (("SSH", keys.signers), ("OpenPGP", keys.keyring)) if path)
        return _problem(commit, "commit-signature-kind", summary, found=kind, allowed=allowed)
    said = gitcall.call(repository, *_programs(keys), "verify-commit", "--raw", commit, more=_home(keys))
    if said.status == 0:
        return None
    code, key = explained(said.err)
    return _problem(commit, code, summary, key=key)


def _problem(commit: str, code: str, summary: str, **data: Datum) -> Problem:
    return Problem(_short(commit), 0, 0, code, data={"summary": summary, **data})


def _kind(headers: str) -> str | None:
    """SSH, OpenPGP or X.509, from the signature's first line; None: there is no signature."""
    begin = re.search(r"^gpgsig(?:-sha256)? -----BEGIN ([A-Z ]+)-----", headers, re.MULTILINE)
    if begin is None:
        return None
    return {"SSH SIGNATURE": "SSH", "PGP SIGNATURE": "OpenPGP", "PGP MESSAGE": "OpenPGP"}.get(begin[1], "X.509")


def _programs(keys: Keys) -> tuple[str, ...]:
    """Options of git before its command: absolute programs, no signer but ours. Later ones win over the repository's own."""
    settings = {
        "gpg.program": shutil.which("gpg") or "gpg",
        "gpg.openpgp.program": shutil.which("gpg") or "gpg",
        "gpg.x509.program": "/bin/false",
        "gpg.ssh.program": shutil.which("ssh-keygen") or "ssh-keygen",
        "gpg.ssh.allowedSignersFile": str(keys.signers or "/dev/null"),
        "gpg.minTrustLevel": "undefined",  # whose key is in the keyring counts; the web of trust does not
    }
    return tuple(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))


def _home(keys: Keys) -> dict[str, str]:
    return {"GNUPGHOME": str(keys.keyring)} if keys.keyring else {"GNUPGHOME": "/nonexistent"}


_WRONG, _UNKNOWN = "commit-signature-wrong", "commit-signer-unknown"
# of what `verify-commit --raw` says, the first line that fits: GnuPG's status lines (doc/DETAILS), then ssh-keygen's
_SAID = (
    (re.compile(r"^\[GNUPG:\] BADSIG (\S+)", re.M), _WRONG),
    (re.compile(r"^\[GNUPG:\] EXP(?:KEY)?SIG (\S+)", re.M), "commit-signer-expired"),
    (re.compile(r"^\[GNUPG:\] REVKEYSIG (\S+)", re.M), "commit-signer-revoked"),
    (re.compile(r"^\[GNUPG:\] (?:NO_PUBKEY|ERRSIG) (\S+)", re.M), _UNKNOWN),
    (re.compile(r"key (?:has expired|is not yet valid)()", re.M), "commit-signer-expired"),
    (re.compile(r"^Good \"git\" signature with \S+ key (\S+)", re.M), _UNKNOWN),
    (re.compile(r"incorrect signature()", re.M), _WRONG),
)


def explained(said: str) -> tuple[str, str]:
    """What a refusal of `git verify-commit --raw` means: the problem's code, and the key that it names."""
    for pattern, code in _SAID:
        if found := pattern.search(said):
            ssh = re.search(r"key (SHA256:\S+)", said)
            return code, found[1] or (ssh[1] if ssh else "")
    return _WRONG, ""


def judged(repository: Path, mode: Mode, keys: Keys, old: str | None, new: str) -> tuple[Problem, ...]:
    """What stands against moving from `old` to `new`: `wanted` and `check` in one, with git's own failures as a problem."""
    try:
        commits = wanted(repository, mode, old, new)
        return (commits,) if isinstance(commits, Problem) else check(repository, commits, mode, keys)
    except SourceError as e:
        return (Problem(_short(new), 0, 0, "git-unreadable", data={"detail": str(e.data.get("detail") or e.reason)}),)
