"""What the lab needs on this machine; it installs what is missing with apt-get."""

import os
import shutil
from contextlib import AbstractContextManager

from lab.errors import LabError
from lab.shell import run, stage

_PROGRAMS = {  # program: Debian package
    "systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap", "mksquashfs": "squashfs-tools",
    "rpmbuild": "rpm", "createrepo_c": "createrepo-c", "nft": "nftables", "ip": "iproute2", "tc": "iproute2",
    "ssh": "openssh-client", "ssh-keygen": "openssh-client", "dpkg-deb": "dpkg", "dpkg-scanpackages": "dpkg-dev",
    "gcc": "gcc", "gpg": "gpg", "gpgconf": "gpgconf", "gpg-agent": "gpg-agent", "unshare": "util-linux",
    "mount": "mount", "fallocate": "util-linux",
}  # fmt: skip
_WITH = {"gcc": ("libc6-dev",)}


def ensure(lock: AbstractContextManager[None]) -> None:
    """Be root, and have every program; LabError says what is wrong. `lock` is held while something is installed."""
    if os.geteuid() != 0:
        raise LabError("the lab needs root: it makes namespaces, mounts and a bridge")
    if _missing():
        with lock:
            _install(_missing())  # another lab may have installed it meanwhile


def _missing() -> set[str]:
    return {package for program, package in _PROGRAMS.items() if shutil.which(program) is None}


def _install(missing: set[str]) -> None:
    if not missing:
        return
    names = sorted(missing.union(*(_WITH.get(package, ()) for package in missing)))
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with stage(f"install {' '.join(names)}"):
        run("apt-get", "update", "-q", env=env)
        run("apt-get", "install", "-y", "-q", "--no-install-recommends", *names, env=env)
