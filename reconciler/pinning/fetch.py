"""From a lock to files: wheels downloaded with their hashes checked, sources built once and their wheel's hash recorded."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.errors import SourceError
from reconciler.model.lock import Lock, Pinned, canonical
from reconciler.pinning.tools import Origins, last_words, pip, run
from reconciler.pinning.wheelhouse import Wheelhouse, sha256

BATCH = 8  # distributions of one call to pip: what is whole stays, so this is what a cut costs at most
_NO_WHEEL = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)==")
_GLIBC = re.compile(r"(.+)-manylinux_2_(\d+)")


@dataclass(slots=True)
class Fetched:
    """What one environment's fetch came to: files that were new, and the lock with hashes of wheels that were built."""

    lock: Lock
    downloaded: list[str] = field(default_factory=list)
    built: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fills one wheelhouse for one environment, called `name` where something goes wrong."""

    name: str
    house: Wheelhouse
    origins: Origins

    def run(self, lock: Lock) -> Fetched:
        """Everything that the lock names. Raises SourceError; what arrived before stays, and the next call goes on from there."""
        done, sources = Fetched(lock), list[Pinned]()
        missing = [p for p in lock.pinned.values() if not self._there(p)]
        for lost in (p for p in missing if p.built):
            assert lost.built
            raise SourceError("BuiltElsewhere", environment=self.name, file=lost.built[0], path=str(self.house.root))
        for first in range(0, len(missing), BATCH):
            sources += self._download(lock, missing[first : first + BATCH], done)
        for source in sources:
            self._build(source, done)
        return done

    def _there(self, pinned: Pinned) -> bool:
        have = self.house.by_hash()
        return any(digest in have for digest in ((pinned.built[1],) if pinned.built else pinned.hashes))

    def _download(self, lock: Lock, batch: Iterable[Pinned], done: Fetched) -> list[Pinned]:
        """Wheels of these; the answer are those that have none for the lock's Python and platform."""
        left, sources = {p.name: p for p in batch}, list[Pinned]()
        while left:
            with self.house.parts() as folder:
                only = ("--only-binary=:all:", *_target(lock))
                ended = self._pip(("download", "-d", str(folder), *only), folder, left.values())
                if ended.returncode == 0:
                    done.downloaded += [self._take(file, left.values()) for file in sorted(folder.glob("*.whl"))]
                    return sources
            without = _NO_WHEEL.search(ended.stderr)
            name = canonical(without[1]) if without else ""
            if name not in left:
                raise SourceError("FetchFailed", environment=self.name, names=sorted(left), detail=last_words(ended))
            sources.append(left.pop(name))
        return sources

    def _pip(self, command: tuple[str, ...], folder: Path, pinned: Iterable[Pinned]) -> subprocess.CompletedProcess[str]:
        wanted = folder / "wanted.txt"
        wanted.write_text("".join(f"{line}\n" for p in pinned for line in p.lines() if not line.lstrip().startswith("#")))
        argv = [*pip(), *command, "--quiet", "--no-deps", "--require-hashes", "-r", str(wanted)]
        return run([*argv, *self.origins.arguments()], self.origins.environment())

    def _take(self, file: Path, pinned: Iterable[Pinned]) -> str:
        digest = sha256(file)  # asked of the file itself, whatever pip found
        if not any(digest in p.hashes for p in pinned):
            raise SourceError("HashDiffers", environment=self.name, file=file.name, found=digest)
        self.house.add(file)
        return file.name

    def _build(self, pinned: Pinned, done: Fetched) -> None:
        """One wheel from its source, isolated, by the Python that it is for; its hash goes into the lock."""
        python = shutil.which(f"python{done.lock.python}")
        if python is None:
            raise SourceError("NoInterpreter", environment=self.name, python=done.lock.python, name=pinned.name)
        with self.house.parts() as folder:
            ended = self._pip(("--python", python, "wheel", "-w", str(folder)), folder, [pinned])
            files = sorted(folder.glob("*.whl"))
            if ended.returncode or len(files) != 1:
                raise SourceError("BuildFailed", environment=self.name, name=pinned.name, detail=last_words(ended))
            digest = self.house.add(files[0])
        made = dataclasses.replace(pinned, hashes=(*pinned.hashes, digest), built=(files[0].name, digest))
        done.lock = dataclasses.replace(done.lock, pinned={**done.lock.pinned, pinned.name: made})
        done.built.append(files[0].name)


def _target(lock: Lock) -> Iterator[str]:
    """pip's words for the machines that the lock is for: it has to be told every older glibc by its name."""
    yield from ("--python-version", lock.python, "--implementation", "cp")
    for abi in (f"cp{lock.python.replace('.', '')}", "abi3", "none"):
        yield from ("--abi", abi)
    found = _GLIBC.fullmatch(lock.platform)
    machine, newest = (found[1], int(found[2])) if found else (lock.platform, 17)
    for tag in [f"manylinux_2_{minor}" for minor in range(newest, 4, -1)] + [
        "manylinux2014",
        "manylinux2010",
        "manylinux1",
        "linux",
    ]:
        yield from ("--platform", f"{tag}_{machine}")
