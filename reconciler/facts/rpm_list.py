"""Saved lists of RPM packages: `rpm -qa`, `rpm -q --last`, our own query, `dnf list`, `dnf info`, `rpm -qi`, and JSON lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.facts import raw, scalars, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_X86 = ("x86_64", "x86_64_v2", "i386", "i486", "i586", "i686", "athlon", "ia64")
_ARCHES = frozenset((*_X86, "noarch", "aarch64", "armv7hl", "ppc", "ppc64", "ppc64le", "s390", "s390x", "riscv64", "src", "nosrc"))
_ARCH: dict[str, Fact[str]] = {name: Value(name) for name in _ARCHES}
# the common line: NAME-VERSION-RELEASE.ARCH is split from the right, where no part but the name holds a dash
_COMMON = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+~^-]*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_PART = re.compile(r"(?:([0-9]{1,9}|\(none\)):)?([A-Za-z0-9._+~^]+)")
_HEADING = re.compile(r"^(?:Last metadata expiration check|Loaded plugins|Updating Subscription|Repositories loaded)")
# dnf's own sections: what stands in the others can be installed, and is not; an extra package is installed without a repository
_SECTION = re.compile(r"^(?:(Installed|Extra)|Available|Upgraded|Updated|Obsoleting|Recent(?:ly Added)?|Autoremove) [Pp]ackages$")
_UPGRADES = re.compile(r"^Available [Uu]pgrades$|^Recently [Aa]dded [Pp]ackages$")
_NOT_INSTALLED = re.compile(r"^package (\S+) is not installed$")
_FIELD = re.compile(r"^([A-Z][A-Za-z ]{0,30}?) *: (.*)$")
_NONE = ("(none)", "", None)
_NOT_SHOWN, _NOT_IN_NAME, _NO_EPOCH = Unknown("NotShown"), Absent("NotInName"), Absent("NoEpoch")
# the kernel module or the stack's top package, by vendor: NVIDIA, RPM Fusion and ELRepo, CIQ, Azure Linux, SUSE
_DRIVER = re.compile(r"(?:nvidia.*kmod|kmod.*nvidia|nvidia.*-kmp-|cuda-open|nvidia-driver$|nvidia.*-dkms)")


class Listed(NamedTuple):
    """One package as a list shows it. Absent(NoEpoch): the form shows epochs and there is none; Unknown(NotShown): it shows none.

    `full`: version-release, without epoch. `for_kernel`: the kernel that stands in a precompiled module's name.
    """

    name: str
    epoch: Fact[int]
    version: str
    release: str
    full: str
    arch: Fact[str]
    repository: Fact[str]
    for_kernel: Fact[str]


@dataclass(frozen=True, slots=True)
class PackageList:
    """`versions`: version-release by name, in the list's order. `keys`: gpg-pubkey entries, which are no packages.

    `offered`: what dnf lists under another heading than installed packages; no other field counts it.

    `complete` is False where rpm complained or a line could not be read: a package that is not listed may be installed.
    `driver`: the one version of all NVIDIA driver packages.
    """

    packages: tuple[Listed, ...]
    versions: dict[str, tuple[str, ...]]
    keys: tuple[Listed, ...]
    offered: tuple[Listed, ...]
    missing: tuple[str, ...]
    errors: tuple[str, ...]
    unread: tuple[Unknown, ...]
    complete: bool
    driver: Fact[str]


@dataclass(slots=True)
class _Found:
    packages: list[Listed] = field(default_factory=list)
    offered: list[Listed] = field(default_factory=list)
    installed: bool = True
    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    unread: list[Unknown] = field(default_factory=list)
    block: dict[str, str] = field(default_factory=dict)

    def add(self, package: Listed) -> None:
        (self.packages if self.installed else self.offered).append(package)


def _listed(name: str, epoch: Fact[int], version: str, release: str, arch: Fact[str], repository: Fact[str]) -> Listed | None:
    if not (_NAME.fullmatch(name) and _PART.fullmatch(version) and _PART.fullmatch(release)):
        return None
    return Listed(name, epoch, version, release, f"{version}-{release}", arch, repository, _built_for(name, version))


def _built_for(name: str, version: str) -> Fact[str]:
    """kmod-nvidia-open-580.105.08-6.12.0-124.20.1: the kernel stands behind the version."""
    kernel = name.partition(f"-{version}-")[2] if version in name else ""
    return Value(kernel) if kernel else _NOT_IN_NAME


def _common(line: str) -> Listed | None:
    """NAME-VERSION-RELEASE[.ARCH] and nothing else."""
    front, _, arch = line.rpartition(".")
    built = _ARCH.get(arch, _NOT_SHOWN)
    rest, _, release = (line if built is _NOT_SHOWN else front).rpartition("-")
    name, _, version = rest.rpartition("-")
    if not (name and version and release and _COMMON.fullmatch(line)) or "~" in name or "^" in name:
        return None
    kernel = _built_for(name, version) if version in name else _NOT_IN_NAME
    return Listed(name, _NOT_SHOWN, version, release, f"{version}-{release}", built, _NOT_SHOWN, kernel)


def _split_arch(word: str) -> tuple[str, Fact[str]]:
    front, dot, arch = word.rpartition(".")
    return (front, _ARCH[arch]) if dot and arch in _ARCHES else (word, _NOT_SHOWN)


def _epoch(shown: str | None, without: Fact[int]) -> Fact[int]:
    """The number before the colon, which our own and other queries print as `(none)` where there is none."""
    return without if not shown else _NO_EPOCH if shown == "(none)" else Value(int(shown))


def _nevra(word: str) -> Listed | None:
    """NAME-[EPOCH:]VERSION-RELEASE[.ARCH], split from the right: names hold digits, dashes, whole versions."""
    front, arch = _split_arch(word)
    parts = front.rsplit("-", 2)
    shown = _PART.fullmatch(parts[1]) if len(parts) == 3 else None
    if not shown:
        return None
    return _listed(parts[0], _epoch(shown[1], _NOT_SHOWN), shown[2], parts[2], arch, _NOT_SHOWN)


def _columns(words: list[str]) -> Listed | None:
    """`dnf list`: NAME.ARCH, [EPOCH:]VERSION-RELEASE, repository."""
    name, arch = _split_arch(words[0])
    full, dash, release = words[1].rpartition("-")
    shown = _PART.fullmatch(full)
    if not dash or not shown or not isinstance(arch, Value):
        return None
    return _listed(name, _epoch(shown[1], _NO_EPOCH), shown[2], release, arch, Value(words[2]) if words[2] else _NOT_SHOWN)


def _named(fields: dict[str, object]) -> Listed | None:
    """Fields by name: a JSON line, a block of `dnf info`, our own query."""
    name, version, release = (fields.get(key) for key in ("name", "version", "release"))
    epoch, arch, repository = (fields.get(key) for key in ("epoch", "arch", "repository"))
    if not isinstance(name, str) or not isinstance(version, str) or not isinstance(release, str):
        return None
    found: Fact[int] = Absent("NoEpoch")
    if epoch not in _NONE:
        shown = str(epoch)
        found = (
            Value(int(shown))
            if shown.isascii() and shown.isdigit() and len(shown) < 10
            else Unknown("NotANumber", raw.clean(shown, 80))
        )
    built: Fact[str] = Absent("NoArch") if arch in _NONE else Value(arch) if isinstance(arch, str) else _NOT_SHOWN
    origin: Fact[str] = Value(str(repository)) if repository else Unknown("NotShown")
    return _listed(name, found, version, release, built, origin)


def _json(line: str) -> Listed | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return _named(fields) if isinstance(fields, dict) else None


def _row(line: str) -> Listed | None:
    """One line of any form that shows a package a line."""
    if line.startswith("{"):
        return _json(line)
    if line.count("\t") == 4:
        return _named(dict(zip(("name", "epoch", "version", "release", "arch"), line.split("\t"), strict=True)))
    words = line.split(None, 6)
    if len(words) == 3 and not line.startswith(" "):
        return _columns([f"{words[0]}.{words[2]}", words[1], ""]) if words[2] in _ARCHES else _columns(words)
    # `rpm -q --last` puts a date behind, in the words of the locale: it holds a time
    return _nevra(words[0]) if len(words) == 1 or any(":" in word for word in words[3:]) else None


def _end_block(found: _Found) -> None:
    """A block of `dnf info` is over."""
    if not found.block:
        return
    fields: dict[str, object] = {key.lower(): value for key, value in found.block.items()}
    fields["arch"] = found.block.get("Architecture", found.block.get("Arch", _NOT_SHOWN))
    package = _named(fields)
    if package:
        found.add(package)
    else:
        found.unread.append(Unknown("IncompletePackage", raw.clean(found.block.get("Name", ""), 120)))
    found.block = {}


def _take(found: _Found, line: str) -> None:
    """One line into what was found so far."""
    if line.endswith(("ackages", "pgrades")) and (section := _SECTION.match(line) or _UPGRADES.match(line)):
        _end_block(found)
        found.installed = bool(section.lastindex)
        return
    if line.startswith(("error:", "warning: rpmdb", "rpmdb:")):
        found.errors.append(raw.clean(line[:1000]))
    elif line.endswith("installed") and (absent := _NOT_INSTALLED.match(line)):
        found.missing.append(absent[1])
    elif ":" in line and (told := _FIELD.match(line)) and (told[1] == "Name" or found.block):
        if told[1] == "Name":
            _end_block(found)
        found.block.setdefault(told[1], told[2].strip())
    elif found.block or _HEADING.match(line):
        pass  # a description's lines
    elif package := _row(line):
        found.add(package)
    else:
        found.unread.append(Unknown("UnreadableLine", raw.clean(line[:400], 120)))


def _unwrapped(lines: list[str]) -> list[str]:
    """dnf breaks a line behind a name that is too wide: version and repository follow, indented."""
    whole: list[str] = []
    for line in lines:
        if whole and line[:1] == " " and len(line.split(None, 2)) == 2 and " " not in whole[-1]:
            whole[-1] += line
        elif line.strip():
            whole.append(line.rstrip())
    return whole


def _driver(packages: list[Listed]) -> Fact[str]:
    """SUSE and others put the kernel behind the driver's version: 580.105.08_k6.18.5_1."""
    drivers = (p for p in packages if ("nvidia" in p.name or "cuda" in p.name) and _DRIVER.match(p.name[:200]))
    found = {p.version.partition("_k")[0] for p in drivers}
    if len(found) > 1:
        return Unknown("SeveralVersions", ", ".join(sorted(found)[:8]))
    return Value(found.pop()) if found else Absent("NoDriverPackage")


def parse(said: str) -> Fact[PackageList]:
    """Unknown where nothing is listed: rpm itself is a package, and a damaged database lists none. Several of a name stay."""
    found = _Found()
    lines, cut = scalars.ended(text.clean(said))
    for line in _unwrapped(lines):
        if not found.block and (common := _common(line)):
            found.add(common)
        else:
            _take(found, line)
    _end_block(found)
    found.unread += cut
    if not found.packages and not found.missing and not found.offered:
        if found.errors:
            return Unknown("DatabaseDamaged", found.errors[0])
        return found.unread[0] if found.unread else Unknown("EmptyDatabase")
    packages = [p for p in found.packages if p.name != "gpg-pubkey"]
    versions: dict[str, list[str]] = {}
    for package in packages:
        versions.setdefault(package.name, []).append(package.full)
    return Value(
        PackageList(
            packages=tuple(packages),
            versions={name: tuple(full) for name, full in versions.items()},
            keys=tuple(p for p in found.packages if p.name == "gpg-pubkey"),
            offered=tuple(found.offered),
            missing=tuple(found.missing),
            errors=tuple(found.errors),
            unread=tuple(found.unread),
            complete=not (found.errors or found.unread),
            driver=_driver(packages),
        )
    )
