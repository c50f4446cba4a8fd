"""Who signed: real keys of SSH and OpenPGP, real signatures, by pushes and by the check that an apply makes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.errors import Usage
from reconciler.render.problems import problem_words
from reconciler.source.signatures import Keys, Mode, check, explained, judged, wanted
from tests.push.conftest import Work

SAID = [
    ("", "commit-signature-wrong", ""),
    ('Good "git" signature with ED25519 key SHA256:abc\nNo principal matched.\n', "commit-signer-unknown", "SHA256:abc"),
    ("Could not verify signature.\nSignature verification failed: incorrect signature\n", "commit-signature-wrong", ""),
    ('Good "git" signature with RSA key SHA256:a\n/k:1: key has expired: verify time 2 > 1\n', "commit-signer-expired", "SHA256:a"),
    ('Good "git" signature with RSA key SHA256:a\n/k:1: key is not yet valid: 1 < 2\n', "commit-signer-expired", "SHA256:a"),
    (
        "[GNUPG:] NEWSIG b@x\n[GNUPG:] ERRSIG 04CE 22 8 00 1796060568 9 94\n[GNUPG:] NO_PUBKEY 04CE\n",
        "commit-signer-unknown",
        "04CE",
    ),
    ("[GNUPG:] NEWSIG\n[GNUPG:] BADSIG 04CE A <a@x>\n", "commit-signature-wrong", "04CE"),
    ("[GNUPG:] EXPKEYSIG 04CE A <a@x>\n[GNUPG:] VALIDSIG 1\n", "commit-signer-expired", "04CE"),
    ("[GNUPG:] REVKEYSIG 04CE A <a@x>\n", "commit-signer-revoked", "04CE"),
]


@pytest.mark.parametrize(("said", "code", "key"), SAID, ids=range(len(SAID)))
def test_a_refusal_is_explained(said: str, code: str, key: str) -> None:
    assert explained(said) == (code, key)


@dataclass
class Signers:
    """Keys of two people, of whom the first may sign."""

    folder: Path

    def ssh(self, name: str) -> dict[str, str]:
        """Settings of git to sign with that key."""
        return {"gpg.format": "ssh", "user.signingkey": str(self.folder / name), "commit.gpgsign": "true"}

    @property
    def allowed(self) -> Path:
        return self.folder / "allowed"


@pytest.fixture
def signers(tmp_path: Path) -> Signers:
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("alice", "mallory"):
        subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)), check=True)
    key = (folder / "alice.pub").read_text()
    (folder / "allowed").write_text(f"alice@example.net {key}")
    (folder / "expired").write_text(f'alice@example.net valid-before="20200101" {key}')
    return Signers(folder)


def codes(work: Work, keys: Keys, mode: Mode = Mode.HEAD) -> list[str]:
    problems = judged(work.tree, mode, keys, None, work.git("rev-parse", "HEAD"))
    assert all(problem_words(problem) for problem in problems)
    return [problem.code for problem in problems]


def test_the_tip_in_every_way(work: Work, signers: Signers) -> None:
    keys = Keys(signers.allowed)
    assert codes(work, keys) == ["commit-not-signed"]
    work.config = signers.ssh("alice")
    good = work.commit()
    assert codes(work, keys) == []
    assert codes(work, Keys(signers.folder / "expired")) == ["commit-signer-expired"]
    assert codes(work, Keys(keyring=signers.folder)) == ["commit-signature-kind"]
    assert codes(work, keys, Mode.STRICT) == ["commit-not-signed"]
    assert codes(work, keys, Mode.NONE) == []
    work.config = signers.ssh("mallory")
    work.commit()
    assert codes(work, keys) == ["commit-signer-unknown"]
    text = work.git("cat-file", "commit", good) + "\n"
    (work.tree / "altered").write_text(text.replace("a change", "another change"))
    altered = work.git("hash-object", "-t", "commit", "-w", "altered")
    assert [p.code for p in check(work.tree, (altered,), Mode.HEAD, keys)] == ["commit-signature-wrong"]


def test_a_repository_cannot_name_another_program_or_other_keys(work: Work, signers: Signers) -> None:
    """Its configuration says a verifier that likes everything, and a file that lets mallory in."""
    liar = signers.folder / "liar"
    liar.write_text('#!/bin/sh\necho "Good \\"git\\" signature for m with ED25519 key SHA256:x"\n')
    liar.chmod(0o755)
    mallory = signers.folder / "everybody"
    mallory.write_text(f"* {(signers.folder / 'mallory.pub').read_text()}")
    work.config = signers.ssh("mallory")
    work.commit()
    for name in ("gpg.program", "gpg.ssh.program", "gpg.openpgp.program"):
        work.git("config", name, str(liar))
    work.git("config", "gpg.ssh.allowedSignersFile", str(mallory))
    work.git("config", "gpg.minTrustLevel", "never")
    assert codes(work, Keys(signers.allowed)) == ["commit-signer-unknown"]


def test_a_push_by_mode(work: Work, signers: Signers) -> None:
    assert work.install("--signed", "strict", "--allowed-signers", str(signers.allowed)) == 0
    pushed = work.push()
    assert pushed.code != 0
    assert pushed.remote[1].endswith(": is not signed ('the site'): git commit --amend -S")
    work.config = signers.ssh("alice")
    work.git("commit", "--quiet", "--amend", "--no-edit")
    assert work.push().code == 0
    work.config = {}
    work.commit("unsigned below")
    work.config = signers.ssh("alice")
    tip = work.commit("signed above")
    assert "1 problem in the push to main" in work.push().terminal
    assert work.install("--signed", "head", "--allowed-signers", str(signers.allowed)) == 0
    assert work.push().code == 0
    assert work.main() == tip


def test_commits_that_another_branch_brought_are_new_all_the_same(work: Work, signers: Signers) -> None:
    work.config = signers.ssh("alice")
    work.git("commit", "--quiet", "--amend", "--no-edit")
    assert work.install("--signed", "strict", "--allowed-signers", str(signers.allowed)) == 0
    assert work.push().code == 0
    work.config = {}
    work.commit("unsigned")
    assert work.push("HEAD:refs/heads/try").code == 0
    work.config = signers.ssh("alice")
    work.commit("signed")
    assert "is not signed ('unsigned')" in work.push().terminal


def test_more_commits_than_are_looked_at(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.source.signatures.MOST", 1)
    work.commit()
    found = wanted(work.tree, Mode.STRICT, None, work.git("rev-parse", "HEAD"))
    assert getattr(found, "code", "") == "commits-too-many"


@pytest.fixture
def gnupg(tmp_path: Path) -> Iterator[Path]:
    """A GnuPG home with the secret keys of alice and mallory, and below it one with alice's public key alone."""
    home = Path("/tmp") / f"gnupg-{os.getpid()}"  # an agent's socket has a short name
    (home / "allowed").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    gpg("--passphrase", "", "--quick-gen-key", "alice <alice@example.net>", "ed25519", "sign", "never", home=home)
    gpg("--passphrase", "", "--quick-gen-key", "mallory <mallory@example.net>", "ed25519", "sign", "never", home=home)
    gpg("--armor", "--output", str(tmp_path / "alice.asc"), "--export", "alice", home=home)
    gpg("--import", str(tmp_path / "alice.asc"), home=home / "allowed")
    yield home
    for agent in (home, home / "allowed"):
        subprocess.run(("gpgconf", "--homedir", str(agent), "--kill", "all"), check=True)
    subprocess.run(("rm", "-rf", str(home)), check=True)


def gpg(*words: str, home: Path) -> None:
    subprocess.run(("gpg", "--batch", "--quiet", "--homedir", str(home), *words), check=True, capture_output=True)


def test_openpgp(work: Work, gnupg: Path, signers: Signers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNUPGHOME", str(gnupg))
    keys = Keys(keyring=gnupg / "allowed")
    work.config = {"commit.gpgsign": "true", "user.signingkey": "alice@example.net"}
    work.commit()
    assert codes(work, keys) == []
    assert codes(work, Keys(signers.allowed)) == ["commit-signature-kind"]
    assert codes(work, Keys(signers.allowed, gnupg / "allowed")) == []
    work.config["user.signingkey"] = "mallory@example.net"
    work.commit()
    assert codes(work, keys) == ["commit-signer-unknown"]


@pytest.mark.parametrize(("keys", "reason"), [(Keys(), "NoSignerKeys"), (Keys(Path("/nowhere")), "SignersUnreadable")])
def test_keys_that_nobody_could_use_are_refused(keys: Keys, reason: str) -> None:
    with pytest.raises(Usage, match=reason):
        keys.checked()


def test_keys_that_went_away_refuse_every_push(work: Work, signers: Signers) -> None:
    assert work.install("--signed", "head", "--allowed-signers", str(signers.allowed)) == 0
    signers.allowed.unlink()
    work.config = signers.ssh("alice")
    work.commit()
    pushed = work.push()
    assert pushed.code != 0
    assert any("cannot be read: the commits' signatures could not be checked" in line for line in pushed.remote)
