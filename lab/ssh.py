"""The lab's ssh identity, the nodes' host keys, and commands over ssh with those keys checked."""

import socket
import subprocess
from pathlib import Path

from lab.config import LabConfig
from lab.errors import CommandError
from lab.shell import run


def ensure_key(path: Path, comment: str) -> str:
    """An ed25519 key pair at `path`, made where missing; returns the public key, `ssh-ed25519 KEY`."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path)
    return " ".join(path.with_name(f"{path.name}.pub").read_text().split()[:2])


def ssh_argv(config: LabConfig, address: str, user: str = "root") -> list[str]:
    """The ssh command line to a node; nothing of the caller's own ssh configuration takes part."""
    options = {
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": str(config.known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "BatchMode": "yes",
        "ConnectTimeout": "5",
        "LogLevel": "ERROR",
    }
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "none", "-i", str(config.identity), *flags, f"{user}@{address}"]


def ssh_run(argv: list[str], command: str, check: bool, timeout: float, stdin: str | None) -> subprocess.CompletedProcess[str]:
    """Run one shell command; raises CommandError where `check` and it failed, TimeoutExpired after `timeout` s."""
    done = subprocess.run(
        [*argv, command], input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
    )  # fmt: skip
    if check and done.returncode != 0:
        raise CommandError((argv[-1], command), done.returncode, done.stderr or done.stdout)
    return done


def answers(address: str, timeout: float = 1.0) -> bool:
    """Whether an ssh server greets there."""
    try:
        with socket.create_connection((address, 22), timeout) as connection:
            connection.settimeout(2 * timeout)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
