"""What comes from outside to a whole controller: commits that nobody signed, keys that come later, webhooks."""

from __future__ import annotations

import http.client
import socket
import subprocess
from pathlib import Path

import pytest

from reconciler.controller.conditions import Status
from reconciler.errors import Usage
from tests.controller.site import World, until
from tests.transport.servers import free_port

SECRET = "a secret of the tests"


def sign(world: World, key: Path) -> None:
    """From now on every commit of the world is signed."""
    for name, value in {"gpg.format": "ssh", "user.signingkey": str(key), "alias.signed": "commit -S --amend --no-edit -q"}.items():
        world.git("config", name, value)


def test_what_is_not_signed_is_not_taken_until_its_key_is_allowed(world: World, tmp_path: Path) -> None:
    key, allowed = tmp_path / "key", tmp_path / "allowed"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)), check=True)
    allowed.write_text("")
    with world.running(signed="head", allowed_signers=str(allowed)) as process:
        world.wait("Stalled")
        assert world.condition(process, "cluster", "Stalled") == (Status.TRUE, "NotSigned")
        assert world.records("revision-taken") == []
        sign(world, key)
        world.git("signed")
        tip = world.git("rev-parse", "HEAD")
        until(lambda: [r["commit"] for r in world.records("revision-refused")][-1:] == [tip])
        allowed.write_text(f"t@t {(tmp_path / 'key.pub').read_text()}")
        world.wait("Ready")
        assert [r["commit"] for r in world.records("revision-taken")] == [tip]
        world.commit({"motd": "unsigned\n"})
        world.wait("Stalled")
        assert world.motd("gpu01") == "one\n"


def test_a_controller_that_nobody_could_sign_for_does_not_start(world: World) -> None:
    with pytest.raises(Usage, match="SignersUnreadable"), world.running(signed="strict", allowed_signers="/nowhere"):
        pass


def post(port: int, token: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/", body="{}", headers={"X-Gitlab-Token": token})
    return connection.getresponse().status


def test_a_webhook_wakes(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    port = free_port()
    with world.running(interval=600.0, webhook=f"127.0.0.1:{port}", webhook_secret=str(secret)):
        world.wait("Ready")
        world.commit({"motd": "two\n"})
        assert post(port, "another secret for it") == 403
        assert world.motd("gpu01") == "one\n"
        assert post(port, SECRET) == 204
        until(lambda: world.motd("gpu01") == "two\n")
    with socket.socket() as gone:
        assert gone.connect_ex(("127.0.0.1", port)) != 0
