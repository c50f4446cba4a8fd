"""Builds Debian packages and indexes them as a flat repository (Packages and Release, unsigned)."""

import gzip
import hashlib
import shutil
from pathlib import Path

from lab.images.scratch import scratch
from lab.packages.debspec import Deb, tree
from lab.shell import run


def build_repository(debs: list[Deb], out: Path, label: str) -> None:
    """Build every package into `out` and write its index."""
    out.mkdir(parents=True)
    with scratch("deb") as folder:
        for number, deb in enumerate(debs):
            _build(deb, folder / str(number), out)
    packages = run("dpkg-scanpackages", "--multiversion", ".", cwd=out).stdout.encode()
    indexes = {"Packages": packages, "Packages.gz": gzip.compress(packages, mtime=0)}
    for name, data in indexes.items():
        (out / name).write_bytes(data)
    (out / "Release").write_text(release(label, indexes))


def release(label: str, indexes: dict[str, bytes]) -> str:
    """The Release file over some indexes. Pure."""
    sums = "".join(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n" for name, data in indexes.items())
    head = {
        "Origin": label, "Label": label, "Suite": "stable", "Codename": "bookworm", "Architectures": "amd64 all",
        "Date": "Sat, 01 Nov 2025 00:00:00 UTC",  # apt warns without one
    }  # fmt: skip
    return "".join(f"{key}: {value}\n" for key, value in head.items()) + f"SHA256:\n{sums}"


def _build(deb: Deb, folder: Path, out: Path) -> None:
    for name, (text, mode) in tree(deb).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
    for target, source in deb.copies.items():
        path = folder / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
    run("dpkg-deb", "--build", "--root-owner-group", "-Zgzip", "-z1", folder, out / deb.filename)
