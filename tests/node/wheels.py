"""Small wheels and projects, made without an index or a build tool: a wheel is a zip file with three files of metadata."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

# an in-tree backend (PEP 517 and 660) that writes such a wheel itself
BACKEND = """
import pathlib, sys
sys.path.insert(0, {here!r})
from wheels import wheel

def build_wheel(directory, settings=None, metadata=None):
    return wheel(pathlib.Path(directory), {name!r}, {version!r}).name

def build_editable(directory, settings=None, metadata=None):
    here = str(pathlib.Path.cwd())
    return wheel(pathlib.Path(directory), {name!r}, {version!r}, {{"__editable__.{name}.pth": here + "\\n"}}).name
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def wheel(directory: Path, name: str, version: str, files: dict[str, str] | None = None) -> Path:
    """NAME-VERSION-py3-none-any.whl in `directory`."""
    info = f"{name}-{version}.dist-info"
    content = {
        **(files or {f"{name}.py": ""}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not-this\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in content.items()]
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    target = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in content.items():
            archive.writestr(path, text)
    return target


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def project(directory: Path, name: str, version: str) -> Path:
    """A directory that pip can build and install, editable too."""
    directory.mkdir(parents=True)
    (directory / "pyproject.toml").write_text(PYPROJECT)
    (directory / "backend.py").write_text(BACKEND.format(here=str(Path(__file__).parent), name=name, version=version))
    return directory
