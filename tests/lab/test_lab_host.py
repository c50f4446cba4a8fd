"""What labs share on their host, and what a killed build leaves: without root."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import hostdeps, sysctls
from lab.errors import LabError
from lab.images import scratch, store
from lab.shell import run, wait_for


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc/sys of our own."""
    proc = tmp_path / "proc"
    for key, value in (("fs/inotify/max_user_instances", "128\n"), ("net/ipv4/ip_forward", "0\n")):
        (proc / key).parent.mkdir(parents=True)
        (proc / key).write_text(value)
    monkeypatch.setattr(sysctls, "_PROC", proc)
    return proc


def test_the_last_lab_restores_the_settings(proc: Path, tmp_path: Path) -> None:
    def live() -> list[int]:
        return [int((proc / key).read_text()) for key in ("fs/inotify/max_user_instances", "net/ipv4/ip_forward")]

    sysctls.acquire(tmp_path, "one")
    sysctls.acquire(tmp_path, "two")
    sysctls.acquire(tmp_path, "one")
    assert live() == [8192, 1]
    sysctls.release(tmp_path, "one")
    assert live() == [8192, 1]
    sysctls.release(tmp_path, "two")
    assert live() == [128, 0]
    sysctls.release(tmp_path, "two")
    assert not (tmp_path / "reconcile-lab-sysctls").exists()


def test_artefact_is_built_once_and_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(out: Path) -> None:
        built.append(out)
        out.write_text("x")

    def fail(out: Path) -> None:
        out.write_text("half")
        raise LabError("no")

    with pytest.raises(LabError):
        store.obtain(tmp_path, "thing", "0" * 16, fail)
    assert list(tmp_path.iterdir()) == []
    first = store.obtain(tmp_path, "thing", "0" * 16, build)
    assert store.obtain(tmp_path, "thing", "0" * 16, build) == first
    assert len(built) == 1


def test_used_artefacts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "run" / "reconcile-lab"
    state.mkdir(parents=True)
    monkeypatch.setattr(store, "_RUN", state.parent)
    monkeypatch.setattr(store, "KEEP", 3)
    store.note_use(state, [tmp_path / f"thing-{1:016}"])
    for number in range(6):
        path = tmp_path / f"thing-{number:016}"
        path.write_text("x")
        os.utime(path, (number, number))
    (tmp_path / "thing-other-0000000000000000").write_text("another name")
    store.obtain(tmp_path, "thing", "f" * 16, Path.touch)
    left = sorted(path.name for path in tmp_path.glob("thing*"))
    assert left == [*(f"thing-{n:016}" for n in (1, 4, 5)), f"thing-{'f' * 16}", "thing-other-0000000000000000"]


def test_sweep_removes_what_the_dead_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, memory = tmp_path / "cache", tmp_path / "shm"
    monkeypatch.setattr(scratch, "_parent", lambda: memory)
    for folder in (cache / ".rpms-os-ab.999999999", memory / "reconcile-lab-face-999999999-x", cache / "base-1"):
        folder.mkdir(parents=True)
    (cache / f".base-ab.sqfs.{os.getpid()}").touch()
    with scratch.scratch("rpm") as mine:
        scratch.sweep(cache)
        assert mine.exists()
    assert sorted(path.name for path in cache.iterdir()) == [f".base-ab.sqfs.{os.getpid()}", "base-1"]
    assert list(memory.iterdir()) == []


def test_host_commands_say_what_failed() -> None:
    with pytest.raises(LabError, match=r"`sh -c echo no >&2; exit 3` exited 3: no"):
        run("sh", "-c", "echo no >&2; exit 3")
    with pytest.raises(LabError, match="not installed"):
        run("no-such-program-here")
    with pytest.raises(LabError, match="the impossible: not after 0 s"):
        wait_for(lambda: False, "the impossible", 0.05)


def test_what_another_lab_installed_meanwhile_is_not_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()
    ran: list[tuple[object, ...]] = []

    @contextmanager
    def lock(meanwhile: set[str]) -> Iterator[None]:
        there.update(meanwhile)
        yield

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: name if name != "gcc" or name in there else None)
    monkeypatch.setattr(hostdeps, "run", lambda *argv, **_: ran.append(argv))
    hostdeps.ensure(lock(set()))
    assert ran[-1][-2:] == ("gcc", "libc6-dev")
    ran.clear()
    hostdeps.ensure(lock({"gcc"}))
    assert ran == []
