"""One RPM as a value, and the spec file that builds it. Pure."""

from dataclasses import dataclass, field

LOG = "/var/log/lab-scriptlets.log"


@dataclass(frozen=True)
class Rpm:
    """A tiny package: real name, version and relations; its payload is a marker file and `files`.

    `files` maps a path to its text; `config` names those of them that are %config(noreplace); `copies` maps a path to
    an absolute path on the building machine. `scriptlets` maps pre, post, preun or postun to shell text.
    """

    name: str
    version: str
    release: str
    arch: str = "x86_64"
    epoch: int = 0
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    config: tuple[str, ...] = ()
    copies: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    scriptlets: dict[str, str] = field(default_factory=dict)

    @property
    def nevra(self) -> str:
        epoch = f"{self.epoch}:" if self.epoch else ""
        return f"{self.name}-{epoch}{self.version}-{self.release}.{self.arch}"

    @property
    def filename(self) -> str:
        return f"{self.name}-{self.version}-{self.release}.{self.arch}.rpm"


def logged(what: str) -> str:
    """The scriptlet line which records that a scriptlet did its work."""
    return f"echo '{what}' >> {LOG}"


def render(rpm: Rpm) -> str:
    """The spec file of one package."""
    marker = f"/usr/share/labpkg/{rpm.name}-{rpm.version}-{rpm.release}"
    files = {marker: f"{rpm.nevra}\n", **rpm.files}
    lines = [
        f"Name: {rpm.name}",
        *([f"Epoch: {rpm.epoch}"] if rpm.epoch else []),
        f"Version: {rpm.version}",
        f"Release: {rpm.release}",
        f"Summary: Stand-in for {rpm.name}",
        "License: none",
        f"BuildArch: {rpm.arch}",
        "AutoReqProv: no",
        "Vendor: reconcile lab",
        *(f"Requires: {name}" for name in rpm.requires),
        *(f"Provides: {name}" for name in rpm.provides),
        "%description",
        f"Stand-in for {rpm.name}: real name and version, no real content.",
        "%install",
    ]
    for path, text in files.items():
        lines += [f"mkdir -p $(dirname %{{buildroot}}{path})", f"cat > %{{buildroot}}{path} <<'END-OF-FILE'"]
        lines += [*text.rstrip("\n").split("\n"), "END-OF-FILE"]
    for path, source in rpm.copies.items():
        lines += [f"mkdir -p $(dirname %{{buildroot}}{path})", f"cp {source} %{{buildroot}}{path}"]
    for path, target in rpm.links.items():
        lines += [f"mkdir -p $(dirname %{{buildroot}}{path})", f"ln -s {target} %{{buildroot}}{path}"]
    for name, text in rpm.scriptlets.items():
        lines += [f"%{name}", text.rstrip("\n")]
    lines.append("%files")
    lines += [f"%config(noreplace) {path}" if path in rpm.config else path for path in files]
    lines += [*rpm.copies, *rpm.links]
    return "\n".join(lines) + "\n"
