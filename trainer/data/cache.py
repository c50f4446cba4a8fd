"""Tokenised data, kept: made once for each content of the data, tokenizer, chat template and settings.

ROOT/NAME/            NAME is the digest of the key; named only when everything in it is on the disk
ROOT/NAME/seal.json   the key, and size and SHA-256 of each file
ROOT/.NAME.making     one that is being made; left behind by a process that was killed, and made anew
ROOT/.NAME.lock       one maker at a time: a second process waits, and then finds it made
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer import checkpoint, durable
from trainer.checkpoint import SEAL
from trainer.errors import Problem, Refused

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Key:
    """All that the tokens depend on. `settings`: what the maker of the tokens was told, with the side; a JSON value."""

    data: str  # digest of the rows, of both sides, and how they were split
    tokenizer: str
    template: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]  # of the libraries that make the tokens

    @property
    def name(self) -> str:
        return durable.digest_of({"format": FORMAT, **dataclasses.asdict(self)})[:32]


class CacheDamaged(Refused):
    """A kept set that is not what was written: every file that differs, and what to do. Nothing is trained on it."""

    verdict = "storage"


def tokenizer_digest(tokenizer: Any) -> str:
    """Of a fast tokenizer with its vocabulary, rules and special tokens, without the chat template."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    for name in ("truncation", "padding"):  # of its last call: every call says its own
        rules.pop(name, None)
    return durable.digest_of([rules, tokenizer.special_tokens_map])


def found(root: Path, key: Key) -> Path | None:
    """The folder of this key where it is there; every file of it is read. Raises CacheDamaged: one was altered, lost or added."""
    folder = root / key.name
    if not folder.exists():
        return None
    if wrong := faults(folder, key):
        problems = [Problem(str(folder), what) for what in wrong]
        raise CacheDamaged([*problems, Problem(str(folder), "nothing is trained on it: remove the folder, and it is made anew")])
    return folder


def kept(root: Path, key: Key, make: Callable[[Path], None]) -> Path:
    """The folder of this key. Where it is not there, `make` fills an empty folder, which is then sealed and named.

    Raises CacheDamaged; what `make` raises leaves no folder behind.
    """
    folder = root / key.name
    with _alone(root, key.name):
        if found(root, key):
            return folder
        aside = root / f".{key.name}.making"
        shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed: nobody else can be here
        aside.mkdir()
        try:
            make(aside)
            _seal(aside, key)
            aside.rename(folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        durable.sync(root)
    return folder


@contextmanager
def _alone(root: Path, name: str) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _seal(folder: Path, key: Key) -> None:
    files = checkpoint.settle(folder, checkpoint.contents(folder))
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        durable.sync(path)
    durable.write(folder / SEAL, durable.sealed({"format": FORMAT, "key": dataclasses.asdict(key), "files": files}))


def faults(folder: Path, key: Key) -> list[str]:
    """What differs from the seal; every file is read."""
    try:
        data = durable.unsealed((folder / SEAL).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as e:
        return [f"its seal cannot be read: {e}"]
    if data is None or data.get("key") != dataclasses.asdict(key):
        return ["its seal was altered"]
    there, sealed = set(checkpoint.contents(folder)), data["files"]
    wrong = [f"{name} is missing" for name in sorted(set(sealed) - there)]
    wrong += [f"{name} was added" for name in sorted(there - set(sealed))]
    both = sorted(there & set(sealed))
    digests = zip(both, durable.file_digests([folder / name for name in both]), strict=True)
    return wrong + [f"{name} was altered" for name, digest in digests if [(folder / name).stat().st_size, digest] != sealed[name]]
