"""Checkpoints on a disk: which are whole, which is the newest, which may go. No torch: what is inside is the engines'.

ROOT/checkpoint-STEP/           named only when everything in it is on the disk
ROOT/checkpoint-STEP/seal.json  size and SHA-256 of each file, what the run was, and the digest of all that
ROOT/latest                     -> the newest sealed one
ROOT/.checkpoint-STEP.saving    one that is being written; left behind by a run that was killed
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer import durable

SEAL, LATEST = "seal.json", "latest"
FORMAT = 1
_NAME = re.compile(r"checkpoint-(\d+)")
_LEFT = re.compile(r"\.checkpoint-(\d+)\.(saving|deleting)")


@dataclass(frozen=True, slots=True)
class Sealed:
    """A checkpoint whose seal is whole: `about` is what the trainer wrote of the run, `files` path -> (bytes, digest)."""

    path: Path
    step: int
    about: Mapping[str, Any]
    files: Mapping[str, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The checkpoint to go on from, if any, and a sentence for each newer one that was passed over."""

    found: Sealed | None
    skipped: tuple[str, ...]


def aside(root: Path, step: int) -> Path:
    """Where a checkpoint is written before it has its name."""
    return root / f".checkpoint-{step}.saving"


def named(root: Path, step: int) -> Path:
    return root / f"checkpoint-{step}"


def contents(folder: Path) -> list[str]:
    """Every file below a folder but the seal, sorted."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(name for name in found if name != SEAL)


def settle(folder: Path, names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Wait until these files are on the disk, let everybody read them, and give size and digest of each."""
    paths = {name: folder / name for name in names}
    for path in paths.values():
        path.chmod(0o644)  # safetensors writes 0600, which the user of a server cannot read
        durable.sync(path)
    digests = durable.file_digests(list(paths.values()))
    return {name: (path.stat().st_size, digest) for (name, path), digest in zip(paths.items(), digests, strict=True)}


def seal(folder: Path, step: int, about: Mapping[str, Any], files: Mapping[str, tuple[int, str]]) -> None:
    """Write the seal of a folder whose files are all settled, and let everybody enter it."""
    for path in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
        path.chmod(0o755)
        durable.sync(path)
    data = {"format": FORMAT, "step": step, "about": dict(about), "files": {name: list(files[name]) for name in sorted(files)}}
    durable.write(folder / SEAL, durable.sealed(data))
    (folder / SEAL).chmod(0o644)


def name(root: Path, step: int) -> Path:
    """Give a sealed folder its name and let `latest` lead to it. One of that name that is damaged is put out of the way."""
    target = named(root, step)
    if target.exists():
        target.rename(root / f"{target.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    aside(root, step).rename(target)
    durable.sync(root)
    durable.link(root / LATEST, target.name)
    return target


def read_seal(folder: Path) -> Sealed | str:
    """The seal, or why it does not hold."""
    try:
        text = (folder / SEAL).read_text(encoding="utf-8")
    except FileNotFoundError:
        return "it has no seal: its saving was cut off"
    except (OSError, UnicodeDecodeError) as error:
        return f"its seal cannot be read ({error})"
    data = durable.unsealed(text)
    if data is None:
        return "its seal is torn or was altered"
    if data.get("format") != FORMAT:
        return f"its format is {data.get('format')}, this trainer reads {FORMAT}"
    files = {name: (int(size), str(digest)) for name, (size, digest) in data["files"].items()}
    return Sealed(folder, int(data["step"]), data["about"], files)


def faults(found: Sealed) -> list[str]:
    """What differs from the seal: files that are missing or foreign, and those that are not what was sealed."""
    there = set(contents(found.path))
    wrong = [f"{name} is missing" for name in sorted(set(found.files) - there)]
    wrong += [f"{name} is not in the seal" for name in sorted(there - set(found.files))]
    both = sorted(set(found.files) & there)
    sizes = {name: (found.path / name).stat().st_size for name in both}
    wrong += [f"{name} has {sizes[name]} bytes, not {found.files[name][0]}" for name in both if sizes[name] != found.files[name][0]]
    whole = [name for name in both if sizes[name] == found.files[name][0]]
    digests = zip(whole, durable.file_digests([found.path / name for name in whole]), strict=True)
    return wrong + [f"{name} was altered" for name, digest in digests if digest != found.files[name][1]]


def steps(root: Path) -> list[int]:
    """The steps of everything that is named as a checkpoint, newest first."""
    found = (_NAME.fullmatch(path.name) for path in root.iterdir()) if root.is_dir() else ()
    return sorted((int(match[1]) for match in found if match), reverse=True)


def left_behind(root: Path) -> list[tuple[Path, int]]:
    """Folders of a saving or a deletion that was cut off, with their step."""
    found = ((path, _LEFT.fullmatch(path.name)) for path in root.iterdir()) if root.is_dir() else ()
    return sorted((path, int(match[1])) for path, match in found if match)


def newest(root: Path) -> Choice:
    """The newest checkpoint that is whole to the last bit, and why each newer one is not used."""
    skipped = [f"checkpoint-{step} was being saved when an earlier run ended: not used" for _, step in left_behind(root)]
    for step in steps(root):
        sealed = read_seal(named(root, step))
        wrong = [sealed] if isinstance(sealed, str) else faults(sealed)
        if isinstance(sealed, Sealed) and not wrong:
            newer = [text for text in skipped if int(re.findall(r"\d+", text)[0]) > step]
            return Choice(sealed, tuple(newer))
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        skipped.append(f"checkpoint-{step} is skipped: {'; '.join(wrong[:3])}{more}")
    return Choice(None, tuple(skipped))


def expendable(there: Sequence[int], last: int, best: int | None, every: int) -> list[int]:
    """Steps that may go: all but the `last` newest, the best one, and each `every`-th step (0: none)."""
    kept = set(sorted(there, reverse=True)[:last])
    return [step for step in sorted(there) if step not in kept and step != best and not (every and step % every == 0)]


def prune(root: Path, last: int, best: int | None = None, every: int = 0) -> list[int]:
    """Delete what `expendable` says among the sealed; one without a seal is left for a person to look at."""
    there = [step for step in steps(root) if isinstance(read_seal(named(root, step)), Sealed)]
    gone = expendable(there, last, best, every)
    for step in gone:
        doomed = root / f".checkpoint-{step}.deleting"  # a half-deleted one must never look torn
        named(root, step).rename(doomed)
        remove(doomed)
    return gone


def remove(folder: Path) -> None:
    """Delete a folder with all that is in it; one that is not there is fine."""
    if folder.exists():
        shutil.rmtree(folder)


def sweep(root: Path) -> list[Path]:
    """Remove what a killed run left behind."""
    gone = [path for path, _ in left_behind(root)]
    for path in gone:
        remove(path)
    return gone
