"""Wheels and source distributions of a few lines, made on the spot: what pip and uv take for the real thing."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

STAMP = (2026, 1, 1, 0, 0, 0)


def wheel(
    folder: Path, name: str, version: str = "1.0", requires: Sequence[str] = (), files: Mapping[str, str] | None = None
) -> str:
    """Write NAME-VERSION-py3-none-any.whl; its SHA-256. `files`: path -> text; default: one module that imports."""
    info = f"{name}-{version}.dist-info"
    content = dict(files if files is not None else {f"{name}.py": f"VERSION = {version!r}\n"})
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    content[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{path},{_record(text)},{len(text)}" for path, text in content.items()]
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    target = folder / f"{name}-{version}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in content.items():
            archive.writestr(zipfile.ZipInfo(path, STAMP), text)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def _record(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


_BACKEND = """
import os, zipfile
def build_wheel(where, config_settings=None, metadata_directory=None):
    name = "{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(where, name), "w") as archive:
        archive.writestr("{name}.py", "BUILT = %r" % os.urandom(8))
        archive.writestr("{name}-{version}.dist-info/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        archive.writestr("{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("{name}-{version}.dist-info/RECORD", "")
    return name
"""


def source(folder: Path, name: str, version: str = "1.0") -> None:
    """Write NAME-VERSION.tar.gz, whose every build gives another wheel; it builds with nothing but Python."""
    top = f"{name}-{version}"
    files = {
        "PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        f'[project]\nname = "{name}"\nversion = "{version}"\n',
        "backend.py": _BACKEND.replace("{name}", name).replace("{version}", version),
    }
    with tarfile.open(folder / f"{top}.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            about = tarfile.TarInfo(f"{top}/{path}")
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
