"""Pushes over ssh, as people make them: git, ssh and sshd are real, the controller is played by a socket."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller.protocol import Request
from tests import golden
from tests.push.conftest import Work
from tests.push.test_post_receive import ENDS, controller
from tests.push.test_pre_receive import BROKEN
from tests.transport import servers

CASES = ("good", "bad", "force-push", "unsigned in strict mode", "signed in strict mode", "deleted")


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Sshd]:
    """Where the repositories are: any account of this machine with the key."""
    servers.install(servers.SSHD, "openssh-server")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="reconcile-git-") as name:
        Path(name).chmod(0o755)
        with servers.sshd(Path(name), servers.keygen(Path(name) / "client")) as found:
            yield found


@pytest.fixture
def remote(work: Work, server: servers.Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    """The same repository, reached by ssh."""
    (tmp_path / "known").write_text(server.line() + "\n")
    options = ("-F", "none", "-i", str(server.client_key), "-o", f"UserKnownHostsFile={tmp_path / 'known'}", "-o", "BatchMode=yes")
    monkeypatch.setenv("GIT_SSH_COMMAND", shlex.join(("ssh", *options)))
    work.git("remote", "set-url", "origin", f"ssh://{getpass.getuser()}@127.0.0.1:{server.port}{work.bare}")
    work.git("config", "receive.denyDeleteCurrent", "ignore", at=work.bare)
    return work


def terminal(text: str) -> list[str]:
    """What the pusher saw, without git's own counting, and with nothing that is another each time."""
    lines = [line.rstrip() for line in text.replace("\r", "\n").splitlines()]
    shown = [line for line in lines if line.startswith(("remote:", " ! ", "error:"))]
    shown = [re.sub(r"'?ssh://\S+", "ORIGIN", re.sub(r"\b[0-9a-f]{12}\b", "0123456789ab", line)) for line in shown]
    return [re.sub(r"key SHA256:\S+|/tmp/\S+/", "", line) for line in shown]


def prepare(remote: Work, case: str, keys: Path) -> tuple[str, ...]:
    """Everything before the push, and the words of the push."""
    signed = ("--signed", "strict", "--allowed-signers", str(keys / "allowed"))
    assert remote.install(*(signed if "strict" in case else ())) == 0
    if "strict" in case:
        servers.keygen(keys / "alice")
        (keys / "allowed").write_text(f"alice@example.net {(keys / 'alice.pub').read_text()}")
        settings = {"gpg.format": "ssh", "user.signingkey": str(keys / "alice"), "commit.gpgsign": "true"}
        remote.config = settings if case.startswith("signed") else {}
        remote.git("commit", "--quiet", "--amend", "--no-edit")
    elif case != "good":
        assert remote.push().code == 0
    if case == "bad":
        remote.commit(site_yaml=BROKEN)
    if case == "force-push":
        remote.git("commit", "--quiet", "--amend", "--message", "other")
    return {"force-push": ("--force", "HEAD:main"), "deleted": (":main",)}.get(case, ("HEAD:main",))


@pytest.mark.parametrize("case", CASES)
def test_the_pushers_terminal(remote: Work, tmp_path: Path, case: str) -> None:
    (tmp_path / "keys").mkdir()
    (remote.tree / "known_hosts").write_text("10.0.0.1,10.0.0.2 ssh-ed25519 " + "A" * 68 + "\n")
    remote.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    if "strict" in case:
        (tmp_path / "keys" / "allowed").touch()
    words = prepare(remote, case, tmp_path / "keys")
    before = remote.main()
    with controller(remote.state, lambda request: iter(ENDS["applied"])) as asked:
        pushed = remote.push(*words)
    golden.check("push_over_ssh", case, terminal(pushed.terminal))
    taken = case in ("good", "signed in strict mode")
    assert (pushed.code == 0, len(asked)) == (taken, int(taken))
    assert remote.main() == (remote.git("rev-parse", "HEAD") if taken else before)


def test_no_golden_text_without_its_case() -> None:
    assert golden.cases("push_over_ssh") == set(CASES)


def test_ctrl_c_of_the_pusher_leaves_the_push_and_what_was_begun(remote: Work) -> None:
    assert remote.install() == 0
    began, gone, ended = threading.Event(), threading.Event(), threading.Event()

    def answer(request: Request) -> Iterator[Mapping[str, Any]]:
        yield ENDS["applied"][0]
        began.set()
        assert gone.wait(60)
        ended.set()

    with controller(remote.state, answer) as asked:
        # a shell's background job, which these tests may be, ignores the interrupt, and its children with it
        argv = ("env", "--default-signal=INT", "git", "push", "origin", "HEAD:main")
        process = subprocess.Popen(argv, cwd=remote.tree, env=remote.environment, stderr=subprocess.DEVNULL, start_new_session=True)
        assert began.wait(60)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) != 0
        gone.set()
        assert ended.wait(60)
    assert remote.main() == remote.git("rev-parse", "HEAD") == asked[0].fields["new"]
