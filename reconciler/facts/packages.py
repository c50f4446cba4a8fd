"""Installed packages as rpm and dpkg list them, and what keeps them at a version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw
from reconciler.model.desired import PackageManager
from reconciler.model.fact import Absent, Fact, Facts, Probe, Raw, Read, Run, Unknown, Value
from reconciler.model.version import Version

# EPOCHNUM is 0 where there is no epoch; root's rpm rewrites rpmdb.sqlite-shm and -wal at every look, nobody's does not
_QUERY = ("rpm", "-qa", "--qf", r"%{NAME}\t%{EPOCHNUM}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n")
RPM = Probe("packages-rpm", (Run(_QUERY, unprivileged=True),))
DEB = Probe("packages-deb", (Run(("dpkg-query", "-W", "-f", r"${db:Status-Abbrev}\t${Package}\t${Version}\t${Architecture}\n")),))
LOCK_FILE = "/etc/dnf/plugins/versionlock.list"
LOCK = Probe("versionlock", (Read(LOCK_FILE), Read("/etc/dnf/plugins/versionlock.conf", limit=64 << 10)))

# rpm leaves out the entries that it cannot read, says so, and ends with 0: what it lists then is not everything
_COMPLAINT = re.compile(rb"^error: ", re.MULTILINE)
_SETTING = re.compile(r"^\s*(?P<name>enabled|locklist)\s*[=:]\s*(?P<value>.*?)\s*$")
_LOCK_LINE = re.compile(
    r"^(?P<name>[^\s!#]\S*)-(?P<epoch>[0-9]+):(?P<version>[^-]+)-(?P<release>[^-]+?)(?:\.(?:\*|noarch|x86_64|aarch64|i686))?$"
)


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed package. `held`: dpkg's hold. `whole` is False for a package that dpkg left half installed."""

    name: str
    version: Version
    arch: str
    held: bool = False
    whole: bool = True


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def parse_rpm(text: Fact[str]) -> Fact[dict[str, tuple[Installed, ...]]]:
    """rpm -qa: several entries of one name are kept (kernels, multilib). An empty answer is Unknown: rpm itself is a package."""
    if not isinstance(text, Value):
        return text
    found: dict[str, tuple[Installed, ...]] = {}
    for line in text.value.splitlines():
        fields = line.split("\t")
        if len(fields) != 5 or not all(fields) or not is_number(fields[1]):
            return Unknown("UnreadableLine", raw.clean(line, 120))
        name, epoch, version, release, arch = fields
        if name != "gpg-pubkey":
            found[name] = (*found.get(name, ()), Installed(name, Version(epoch, version, release), arch))
    return Value(found) if found else Unknown("EmptyDatabase")


def parse_deb(text: Fact[str]) -> Fact[dict[str, tuple[Installed, ...]]]:
    """dpkg-query -W: removed packages whose configuration stays (`rc`) are not installed."""
    if not isinstance(text, Value):
        return text
    found: dict[str, tuple[Installed, ...]] = {}
    for line in text.value.splitlines():
        fields = line.split("\t")
        if len(fields) != 4 or len(fields[0].strip()) < 2 or not fields[1]:
            return Unknown("UnreadableLine", raw.clean(line, 120))
        state, name, version, arch = fields
        if state[1] in "nc" or not version:
            continue
        whole = state[1] == "i" and state[2:].strip() == ""
        package = Installed(name, Version.parse(version), arch, held=state[0] == "h", whole=whole)
        found[name] = (*found.get(name, ()), package)
    return Value(found) if found else Unknown("EmptyDatabase")


def rpm_text(answer: Raw | None) -> Fact[str]:
    """What rpm listed; Unknown(DatabaseDamaged) where it also complained."""
    if answer and answer.status == 0 and _COMPLAINT.search(answer.err):
        return Unknown("DatabaseDamaged", raw.clean(answer.err.decode("utf-8", "replace")))
    return raw.command_text(answer)


def installed(facts: Facts, manager: PackageManager) -> Fact[dict[str, tuple[Installed, ...]]]:
    """Everything that is installed, by name."""
    return facts.once(_rpms if manager == "dnf" else _debs)


def _rpms(facts: Facts) -> Fact[dict[str, tuple[Installed, ...]]]:
    return parse_rpm(rpm_text(raw.part(facts, RPM.key)))


def _debs(facts: Facts) -> Fact[dict[str, tuple[Installed, ...]]]:
    return parse_deb(raw.command_text(raw.part(facts, DEB.key)))


def parse_locks(text: Fact[str]) -> Fact[dict[str, tuple[Version, ...]]]:
    """versionlock.list: NAME-EPOCH:VERSION-RELEASE.ARCH a line, `!` excludes, `#` comments; what else stands there is not ours."""
    if isinstance(text, Absent):
        return Value({})
    if not isinstance(text, Value):
        return text
    locks: dict[str, tuple[Version, ...]] = {}
    for line in text.value.splitlines():
        if found := _LOCK_LINE.match(line.strip()):
            version = Version(found["epoch"], found["version"], found["release"])
            locks[found["name"]] = (*locks.get(found["name"], ()), version)
    return Value(locks)


def parse_plugin(text: Fact[str]) -> Fact[str]:
    """The plugin's versionlock.conf: the file whose locks dnf honours. Unknown where that is none, or not the one we write."""
    if isinstance(text, Absent):
        return Unknown("NoVersionlockPlugin")
    if not isinstance(text, Value):
        return text
    settings = {found["name"]: found["value"] for line in text.value.splitlines() if (found := _SETTING.match(line))}
    if settings.get("enabled", "1").lower() in ("0", "no", "false", "off"):
        return Unknown("VersionlockDisabled")
    chosen = settings.get("locklist", LOCK_FILE)
    return Value(chosen) if chosen == LOCK_FILE else Unknown("VersionlockElsewhere", raw.clean(chosen, 120))


def locks(facts: Facts) -> Fact[dict[str, tuple[Version, ...]]]:
    """dnf's version locks by name; Unknown where nothing would honour them."""
    return facts.once(_locks)


def _locks(facts: Facts) -> Fact[dict[str, tuple[Version, ...]]]:
    plugin = parse_plugin(raw.file_text(raw.part(facts, LOCK.key, 1)))
    if not isinstance(plugin, Value):
        return plugin
    return parse_locks(raw.file_text(raw.part(facts, LOCK.key, 0)))


def lock_lines(facts: Facts) -> tuple[str, ...]:
    """The lines of the lock file as they are; none where there is no such file. Bytes that are no UTF-8 stay as surrogates."""
    found = raw.part(facts, LOCK.key, 0)
    return lines_of(found.out) if found and not found.error else ()


def lines_of(content: bytes) -> tuple[str, ...]:
    return tuple(content.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")) if content else ()


def lock_file(lines: tuple[str, ...]) -> bytes:
    """The lock file with these lines: what `lock_lines` gives, byte for byte."""
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def lock_name(line: str) -> str | None:
    """The package that a line of the lock file keeps; None for comments, exclusions and what we cannot read."""
    found = _LOCK_LINE.match(line.strip())
    return found["name"] if found else None
