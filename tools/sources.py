"""The files that this repository is made of, and what is said against one of them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".cfg", ".txt", ".conf", ""}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is not as it should be, at a line of a file."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def files(root: Path = ROOT) -> list[Path]:
    """Every text file that Git has or would take, sorted."""
    argv = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    done = subprocess.run(argv, cwd=root, check=True, capture_output=True)
    names = {name for name in done.stdout.decode().split("\0") if name}
    found = (root / name for name in sorted(names))
    return [path for path in found if path.suffix in TEXT and path.is_file() and not path.is_symlink()]


def python(root: Path = ROOT) -> list[Path]:
    """Every Python module among them."""
    return [path for path in files(root) if path.suffix == ".py"]
