"""The peers' own Python environment, made from `requirements.txt` where it is missing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from reconciler.pinning.tools import uv

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
SERIES = ("3.13", "3.14", "3.12")  # ansible-core 2.21 needs 3.12 on the controller; the first that is here


@dataclass(frozen=True)
class Peers:
    """Where the peers are installed."""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    @property
    def mitogen(self) -> Path:
        """The folder of Mitogen's strategies, as Ansible wants it."""
        (found,) = self.folder.glob("lib/python3.*/site-packages/ansible_mitogen/plugins/strategy")
        return found

    def versions(self) -> dict[str, str]:
        """Of what is measured and what it runs on."""
        code = (
            "import json, platform; from importlib.metadata import version;"
            "print(json.dumps({'python': platform.python_version(),"
            " **{n: version(n) for n in ('ansible-core', 'mitogen', 'pyinfra', 'paramiko')}}))"
        )
        told = subprocess.run((self.program("python"), "-c", code), check=True, capture_output=True, text=True).stdout
        found: dict[str, str] = json.loads(told)
        return found


def peers() -> Peers:
    """The environment of these requirements, made where it is missing. Raises CalledProcessError: its output says why."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = Peers(cache / "reconcile-benchmarks" / f"peers-{wanted}")
    if not (found.folder / "whole").exists():
        print(f"installing the peers into {found.folder}", file=sys.stderr, flush=True)
        subprocess.run((uv(), "venv", "--quiet", "--clear", "--seed", "--python", _python(), str(found.folder)), check=True)
        pip = (found.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run((*pip, "--requirement", str(REQUIREMENTS)), check=True)
        (found.folder / "whole").touch()  # last: an installation that was cut off begins anew
    return found


def _python() -> str:
    """An interpreter of this machine that answers, from PATH or pyenv; else what uv then fetches."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for series in SERIES:
        for found in (shutil.which(f"python{series}"), *map(str, sorted(pyenv.glob(f"{series}.*/bin/python")))):
            # pyenv's shims are found for versions that are not switched on, and fail
            if found and subprocess.run((found, "-c", ""), capture_output=True, check=False).returncode == 0:
                return found
    return SERIES[0]
