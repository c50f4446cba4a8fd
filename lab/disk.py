"""A node's disk: an overlay over the read-only image layers; its upper part is a tmpfs or a host folder."""

import os
import shutil
from pathlib import Path

from lab.errors import NotUpError, UsageError
from lab.nodespec import NodeSpec
from lab.shell import run, wait_for


def mounted(path: Path) -> bool:
    return str(path) in mounts_below(path)


def mounts_below(path: Path) -> list[str]:
    """Mount points at and below a path, the innermost first."""
    found = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [m for m in reversed(found) if m == str(path) or m.startswith(f"{path}/")]


def unmount_below(path: Path) -> None:
    """Unmount everything at and below a path; waits for the last user of each to end."""

    def gone() -> bool:
        left = mounts_below(path)
        for mount in left:
            run("umount", mount, check=False)
        return not left

    wait_for(gone, f"unmounting of {path}", timeout=20.0, interval=0.05)


def mount_layer(image: Path, at: Path) -> Path:
    """Mount one read-only image layer."""
    at.mkdir(parents=True, exist_ok=True)
    if not mounted(at):
        run("mount", "-o", "loop,ro", image, at)
    return at


class Disk:
    """The disk of one node, in its folder of the state directory. `root` is what the node sees as /."""

    def __init__(self, folder: Path, spec: NodeSpec, host_folder: Path) -> None:
        self.folder, self.spec, self._host_folder = folder, spec, host_folder
        self.root = folder / "root"
        self._store = folder / "disk"

    @property
    def exists(self) -> bool:
        return mounted(self.root)

    def create(self, layers: list[Path]) -> None:
        """An empty disk over `layers`, the topmost first; what a crash left half made goes first."""
        self.destroy()
        for path in (self.root, self._store):
            path.mkdir(parents=True, exist_ok=True)
        if self.spec.disk == "host":
            shutil.rmtree(self._host_folder, ignore_errors=True)
            self._host_folder.mkdir(parents=True)
            run("mount", "--bind", self._host_folder, self._store)
        else:
            run("mount", "-t", "tmpfs", "-o", f"size={self.spec.size},mode=755", "tmpfs", self._store)
        upper, work = self._store / "upper", self._store / "work"
        upper.mkdir(mode=0o755)
        work.mkdir()
        lower = ":".join(map(str, layers))
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", self.root)

    def destroy(self) -> None:
        unmount_below(self.folder)
        shutil.rmtree(self._host_folder, ignore_errors=True)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file of the node, written from outside; its owner is that of its folder."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        owner = target.parent.stat()
        target.unlink(missing_ok=True)
        target.write_text(text)
        target.chmod(mode)
        os.chown(target, owner.st_uid, owner.st_gid)

    def read(self, path: str) -> str:
        """A file of the node, read from outside."""
        if not self.exists:
            raise NotUpError(f"{self.spec.name} has no disk: the lab is not up")
        return (self.root / path.lstrip("/")).read_text()

    def fill(self) -> None:
        """Leave no free block."""
        if self.spec.disk == "host":
            raise UsageError(f"{self.spec.name} has disk=host: filling it would fill this machine's disk")
        now = os.statvfs(self._store)
        self._resize(str((now.f_blocks - now.f_bfree) * now.f_frsize))

    def unfill(self) -> None:
        if self.spec.disk == "tmpfs":
            self._resize(self.spec.size)

    def _resize(self, size: str) -> None:
        # shrinking the tmpfs to what is used costs no memory, unlike a file that fills it
        if not self.exists:
            raise NotUpError(f"{self.spec.name} has no disk: the lab is not up")
        run("mount", "-o", f"remount,size={size}", self._store)
