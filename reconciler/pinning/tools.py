"""uv and pip as programs of this machine, and where pip's own configuration says that packages come from."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.errors import Usage

TAIL = 1500  # characters of what a program said last that a person is shown
_LINE = re.compile(r"(?P<where>:env:|[a-z]+)\.(?P<key>[a-z-]+)=(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class Origins:
    """Where packages come from. `index` None: the tools' own default; `bare`: no index at all, only `links`."""

    index: str | None = None
    extra: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    bare: bool = False
    certificates: str | None = None

    def arguments(self) -> tuple[str, ...]:
        """As arguments that uv and pip both understand."""
        found = ["--no-index"] if self.bare else []
        if self.index and not self.bare:
            found += ["--index-url", self.index]
        for option, values in (("--extra-index-url", () if self.bare else self.extra), ("--find-links", self.links)):
            found += [word for value in values for word in (option, value)]
        return tuple(found)

    def environment(self) -> dict[str, str]:
        """This process's, without what would add to the arguments, and with the certificates that pip is told of."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
        told = {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_PYTHON_DOWNLOADS": "never"}
        more = {"SSL_CERT_FILE": self.certificates, "PIP_CERT": self.certificates} if self.certificates else {}
        return {**kept, **told, **more, "LC_ALL": "C.UTF-8"}


def uv() -> str:
    """The program: beside this interpreter, or on PATH. Raises Usage."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise Usage("NoUv")
    return found


def interpreter(series: str) -> str:
    """The Python that uv shall work with: that of the series, else the one that runs this, which uv does not look for itself."""
    return shutil.which(f"python{series}") or sys.executable


def pip() -> tuple[str, ...]:
    """How pip is called: this interpreter's, or that on PATH. Raises Usage."""
    for argv in ((sys.executable, "-m", "pip"), ("pip3",), ("pip",)):
        if shutil.which(argv[0]) and _answers(argv):
            return argv
    raise Usage("NoPip")


def _answers(argv: tuple[str, ...]) -> bool:
    return subprocess.run((*argv, "--version"), capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0


def run(argv: Sequence[str], environment: Mapping[str, str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One call to its end, whatever its exit status is."""
    return subprocess.run(argv, env=environment, input=stdin, capture_output=True, text=True, errors="replace", check=False)


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The end of what a program said."""
    return (done.stderr.strip() or done.stdout.strip())[-TAIL:]


def configured() -> Origins:
    """What `pip config list` says. Raises Usage where it cannot be read."""
    argv = pip()
    done = subprocess.run((*argv, "config", "list"), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Usage("PipConfigUnreadable", detail=last_words(done))
    return parse_configuration(done.stdout)


def parse_configuration(text: str) -> Origins:
    """Lines `global.index-url='https://...'`; what the environment (`:env:`) says wins, as it does for pip."""
    found: dict[str, str] = {}
    # the environment's last; before it download's own settings win over those for all commands
    for where, key, value in sorted(_settings(text), key=lambda setting: _RANKS.get(setting[0], 1)):
        if where in _RANKS:
            found[key] = value
    return Origins(
        index=found.get("index-url"),
        extra=tuple(found.get("extra-index-url", "").split()),
        links=tuple(found.get("find-links", "").split()),
        constraints=tuple(found.get("constraint", "").split()),
        bare=found.get("no-index", "").lower() in ("1", "true", "yes", "on"),
        certificates=found.get("cert"),
    )


_RANKS = {"global": 0, "download": 2, ":env:": 3}


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    for line in text.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            try:
                value = ast.literal_eval(match["value"])
            except (ValueError, SyntaxError):
                continue  # pip writes each value as Python does: this line is none of its own
            yield match["where"], match["key"], str(value)
