"""The base image: a minimal Debian root with systemd, sshd, python3, dnf and rpm, as one squashfs."""

from pathlib import Path

from lab.errors import LabError
from lab.images.digest import digest
from lab.images.scratch import scratch
from lab.images.store import obtain
from lab.shell import run

SUITE = "bookworm"
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "python3", "python3-venv", "python3-pip",
    "python3-gpg", "gpg", "gpg-agent", "iproute2", "iputils-ping", "procps", "psmisc", "kmod", "ca-certificates",
    "curl", "dnf", "rpm", "dnf-plugins-core", "pciutils", "hostname", "sudo", "netcat-openbsd", "less", "tzdata",
    "rsync", "ethtool", "nftables", "libnss-myhostname",
)  # fmt: skip
_OPTIONS = (
    "--variant=minbase", "--quiet",
    '--aptopt=Acquire::Languages "none"', '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=force-unsafe-io",
)  # fmt: skip


def base_image(cache: Path) -> Path:
    """The cached base image; it is built from the machine's own apt sources where it is missing (about a minute)."""
    key = digest({"suite": SUITE, "packages": ",".join(PACKAGES), "options": "\n".join(_OPTIONS)})
    return obtain(cache, "base", key, _build, ".sqfs")


def _build(out: Path) -> None:
    with scratch("base") as folder:
        root = folder / "root"
        run("mmdebstrap", *_OPTIONS, f"--include={','.join(PACKAGES)}", SUITE, root, *_apt_sources())
        for identity in ("etc/machine-id", "etc/hostname", "etc/resolv.conf", "var/lib/dbus/machine-id"):
            (root / identity).unlink(missing_ok=True)
        for key in root.glob("etc/ssh/ssh_host_*"):
            key.unlink()
        squash(root, out)


def squash(tree: Path, out: Path) -> None:
    """One folder as one squashfs file, with its extended attributes."""
    run("mksquashfs", tree, out, "-noappend", "-quiet", "-no-progress", "-comp", "zstd", "-Xcompression-level", "6")


def _apt_sources() -> list[Path]:
    """The machine's own Debian sources: a mirror's name is nobody else's business."""
    parts = Path("/etc/apt/sources.list.d")
    found = [Path("/etc/apt/sources.list"), *sorted(parts.glob("*.list")), *sorted(parts.glob("*.sources"))]
    sources = [path for path in found if path.is_file() and SUITE in path.read_text()]
    if not sources:
        raise LabError(f"no apt source of {SUITE} in /etc/apt: the lab's base image is built from the machine's own")
    return sources
