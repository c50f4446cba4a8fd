"""The lab's Python packages: wheels of a few lines (STAND-IN for a site's wheelhouse), served as a listing at /wheels/.

The same bytes wherever they are made, since locks in manifests/lab-trio name them by hash.
"""

import base64
import hashlib
import zipfile
from pathlib import Path

_STAMP = (2026, 1, 1, 0, 0, 0)
# (name, version) -> what it needs
WHEELS: dict[tuple[str, str], tuple[str, ...]] = {
    ("site-tools", "1.0"): ("site-text>=1",),
    ("site-tools", "1.1"): ("site-text>=1",),
    ("site-tools", "2.0"): ("site-text>=1",),
    ("site-text", "1.0"): (),
}


def build(out: Path) -> None:
    """Write every wheel into a new folder."""
    out.mkdir()
    for (name, version), needs in WHEELS.items():
        _wheel(out / filename(name, version), name, version, needs)


def filename(name: str, version: str) -> str:
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def _wheel(target: Path, name: str, version: str, needs: tuple[str, ...]) -> None:
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {need}" for need in needs)]
    content = {
        f"{module}/__init__.py": f"VERSION = {version!r}\n",
        f"{module}/late.py": f"VERSION = {version!r}  # imported when it is needed first\n",
        f"{info}/METADATA": "\n".join(["Metadata-Version: 2.1", *metadata, ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},{_hash(text)},{len(text)}" for path, text in content.items()]
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(target, "w") as archive:  # stored, not compressed: zlib's output is another with each version
        for path, text in content.items():
            archive.writestr(zipfile.ZipInfo(path, _STAMP), text)


def _hash(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
