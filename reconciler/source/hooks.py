"""The hooks of a bare repository: installed, told apart from others', removed."""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import reconciler
from reconciler.errors import SourceError, Usage
from reconciler.source import gitcall

NAMES = ("pre-receive", "post-receive")
MARK = "# made by `reconcile hook install`; `reconcile hook uninstall` removes it"
_MOST = 1 << 16  # bytes of a hook that are read to see whose it is


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook. `state`: absent, current, outdated (ours, with other settings or of another installation), foreign."""

    name: str
    path: Path
    state: str


def bare_repository(path: str) -> Path:
    """The absolute path of a bare repository. Raises Usage (NoSuchPath, NotBare) or SourceError."""
    folder = Path(path).absolute()
    if not folder.is_dir():
        raise Usage("NoSuchPath", path=path)
    try:
        bare = gitcall.ask(folder, "rev-parse", "--is-bare-repository")
    except SourceError as e:
        raise Usage("NotBare", path=path, detail=e.data.get("detail") or e.reason) from None
    if bare != "true":
        raise Usage("NotBare", path=path, detail="it has a work tree")
    return Path(gitcall.ask(folder, "rev-parse", "--absolute-git-dir"))


def script(name: str, arguments: tuple[str, ...]) -> str:
    """The text of a hook: it calls this very installation with `arguments`, wherever git runs it from."""
    root = Path(reconciler.__file__).resolve().parent.parent
    installed = root == Path(sysconfig.get_path("purelib")).resolve()
    where = () if installed else ("env", f"PYTHONPATH={root}")
    # -P: the folder that git runs a hook in is not searched for modules
    return f"#!/bin/sh\n{MARK}\n{command((*where, sys.executable, '-P', '-m', 'reconciler', 'hook', name, *arguments))}\n"


def command(words: tuple[str, ...]) -> str:
    """One line of shell that becomes the process `words`."""
    return f"exec {shlex.join(words)}"


def look(repository: Path, texts: dict[str, str] | None = None) -> tuple[Hook, ...]:
    """Both hooks as they are; `texts`: what each would be now, None where only whose they are matters."""
    folder = Path(os.path.join(repository, gitcall.ask(repository, "rev-parse", "--git-path", "hooks")))  # noqa: PTH118 - may be absolute
    return tuple(_look(folder / name, (texts or {}).get(name)) for name in NAMES)


def _look(path: Path, wanted: str | None) -> Hook:
    if not os.path.lexists(path):
        return Hook(path.name, path, "absent")
    try:
        with path.open("rb") as file:
            text = file.read(_MOST)
    except OSError:  # a broken link, a folder, one that may not be read: not ours in any case
        return Hook(path.name, path, "foreign")
    if MARK.encode() not in text.splitlines()[1:2]:
        return Hook(path.name, path, "foreign")
    same = (wanted is None or text == wanted.encode()) and os.access(path, os.X_OK)
    return Hook(path.name, path, "current" if same else "outdated")


def install(repository: Path, texts: dict[str, str]) -> tuple[Hook, ...]:
    """Write both hooks, or neither where one is foreign; what they were before."""
    found = look(repository, texts)
    if all(hook.state != "foreign" for hook in found):
        for hook in found:
            if hook.state != "current":
                _write(hook.path, texts[hook.name])
    return found


def _write(path: Path, text: str) -> None:
    """A push that comes meanwhile runs the old hook or the new one."""
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o755)
    fresh.replace(path)


def uninstall(repository: Path) -> tuple[Hook, ...]:
    """Remove the hooks that are ours; what they were before."""
    found = look(repository)
    for hook in found:
        if hook.state in ("current", "outdated"):
            hook.path.unlink()
    return found
