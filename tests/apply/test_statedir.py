"""The controller's folder: one writer, and an identity that stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.apply.statedir import StateDir, write_atomically
from reconciler.errors import LockHeld, StateDamaged

HOLD = """
import sys
from pathlib import Path
from reconciler.apply.statedir import StateDir
with StateDir(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_the_pid_of_the_first(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLD, str(tmp_path / "s")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(LockHeld) as refused, StateDir(tmp_path / "s").locked():
            pass
        assert (refused.value.reason, refused.value.data["pid"], refused.value.exit_code) == ("StateDirLocked", str(other.pid), 6)
        other.kill()
    with StateDir(tmp_path / "s").locked():  # a lock dies with its process
        assert (tmp_path / "s/lock").read_text() == str(os.getpid())


def test_a_lock_is_given_back_also_after_an_error(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    with pytest.raises(ZeroDivisionError), state.locked():
        raise ZeroDivisionError
    with state.locked(), pytest.raises(LockHeld), state.locked():
        pass


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateDamaged, match="StateDirUnusable"), StateDir(tmp_path / "file").locked():
        pass


def test_a_controller_keeps_its_identity(tmp_path: Path) -> None:
    first = StateDir(tmp_path / "a").holder()
    assert len(first) == 32
    assert StateDir(tmp_path / "a").holder() == first
    assert StateDir(tmp_path / "b").holder() != first
    assert (tmp_path / "a/holder").stat().st_mode & 0o777 == 0o600


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "sub/file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]
