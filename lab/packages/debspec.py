"""One Debian package as a value, and the files that dpkg-deb builds it from. Pure."""

from dataclasses import dataclass, field

LOG = "/var/log/lab-scriptlets.log"


@dataclass(frozen=True)
class Deb:
    """A tiny package: real name, version and relations; its payload is a marker file and `files`.

    `files` maps a path to its text; `conffiles` names those of them that dpkg treats as configuration. `copies` maps a
    path to an absolute path on the building machine. `scripts` maps preinst, postinst, prerm or postrm to shell text.
    """

    name: str
    version: str
    arch: str = "amd64"
    depends: str = ""
    provides: str = ""
    files: dict[str, str] = field(default_factory=dict)
    conffiles: tuple[str, ...] = ()
    copies: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        """The usual file name: without the epoch."""
        return f"{self.name}_{self.version.rpartition(':')[2]}_{self.arch}.deb"


def tree(deb: Deb) -> dict[str, tuple[str, int]]:
    """Path below the package's folder -> text and mode."""
    control = {
        "Package": deb.name, "Version": deb.version, "Architecture": deb.arch,
        "Maintainer": "reconcile lab <lab@localhost>",
        "Depends": deb.depends, "Provides": deb.provides, "Section": "misc", "Priority": "optional",
        "Description": f"Stand-in for {deb.name}: real name and version, no real content",
    }  # fmt: skip
    found = {"DEBIAN/control": ("".join(f"{key}: {value}\n" for key, value in control.items() if value), 0o644)}
    if deb.conffiles:
        found["DEBIAN/conffiles"] = ("".join(f"{path}\n" for path in deb.conffiles), 0o644)
    for name, text in deb.scripts.items():
        found[f"DEBIAN/{name}"] = (f"#!/bin/sh\n{text.rstrip()}\n", 0o755)
    found[f"usr/share/labpkg/{deb.name}"] = (f"{deb.name} {deb.version}\n", 0o644)
    for path, text in deb.files.items():
        found[path.lstrip("/")] = (text, 0o644)
    return found


def on(action: str, text: str) -> str:
    """Shell text that runs only for one action of the maintainer script, such as `configure`."""
    return f'if [ "$1" = {action} ]; then\n{text}\nfi\nexit 0'


def logged(what: str) -> str:
    """The line which records that a maintainer script did its work."""
    return f"echo '{what}' >> {LOG}"
