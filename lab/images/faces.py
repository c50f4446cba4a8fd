"""The two faces of a node, each a thin layer over the base image: CentOS Stream 9's, and plain Debian."""

import shutil
from collections.abc import Callable
from pathlib import Path

from lab.images import base, boot_loader
from lab.images.digest import digest, sources
from lab.images.scratch import scratch
from lab.images.store import obtain
from lab.nodespec import Face
from lab.packages import el9_os
from lab.shell import run

_LAB = Path(__file__).parent.parent
_ROOTFS = _LAB / "rootfs"
_MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
    "e2scrub_reap.service", "systemd-pstore.service", "getty@tty1.service", "console-getty.service",
    "systemd-networkd-wait-online.service", "systemd-update-utmp-runlevel.service", "dnf-makecache.timer",
)  # fmt: skip
USERS = ("ops", "nosudo")  # both take the lab's key; only ops may use sudo
_RPM_ONLY = ("dnf", "rpm", "dnf-plugins-core")
_APT = ("etc/apt", "var/lib/apt", "var/cache/apt", "var/lib/dpkg", "etc/debian_version", "etc/dpkg")


def face_image(cache: Path, face: Face, image: Path, rpm_os: Path) -> Path:
    """The cached layer of one face over the base `image`; `rpm_os` is the built repository of the base system."""
    key = digest({
        "base": image.name,
        "rpms": rpm_os.name if face == "el9" else "",
        **sources([Path(__file__), Path(__file__).with_name("boot_loader.py")]),
        **sources([_ROOTFS / "preload.c", _ROOTFS / "common", _ROOTFS / face, _LAB / "gpus", _LAB / "errors.py"]),
    })  # fmt: skip
    finish: Callable[[Path], None] = (lambda root: _centos(root, rpm_os)) if face == "el9" else _debian
    return obtain(cache, f"face-{face}", key, lambda out: _build(face, image, out, finish), ".sqfs")


def _build(face: Face, image: Path, out: Path, finish: Callable[[Path], None]) -> None:
    with scratch("face") as temporary:
        lower, upper, work, root = (temporary / name for name in ("lower", "upper", "work", "root"))
        for folder in (lower, upper, work, root):
            folder.mkdir(mode=0o755)
        run("mount", "-o", "loop,ro", image, lower)
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", root)
        _common(root)
        finish(root)
        _kernel(root)
        run("umount", root)
        base.squash(upper, out)


def _copy(tree: Path, root: Path) -> None:
    for source in sorted(tree.rglob("*")):
        if source.is_file():
            target = root / source.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copyfile(source, target)
            target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


def _common(root: Path) -> None:
    _copy(_ROOTFS / "common", root)
    (root / "etc/sudoers.d/ops").chmod(0o440)
    (root / "etc/lab").mkdir(exist_ok=True)
    (root / "etc/machine-id").write_text("")
    units = root / "etc/systemd/system"
    for unit in _MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    (units / "default.target").unlink(missing_ok=True)
    (units / "default.target").symlink_to("/usr/lib/systemd/system/multi-user.target")
    wants = units / "sysinit.target.wants"
    wants.mkdir(exist_ok=True)
    for unit in ("lab-facts.service", "lab-kmsg.service"):
        (wants / unit).symlink_to(f"/usr/lib/systemd/system/{unit}")
    for user in USERS:
        run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", user)
    for home in ("root", *(f"home/{user}" for user in USERS)):
        (root / home / ".ssh").mkdir(mode=0o700, exist_ok=True)
    for user in USERS:
        run("chroot", root, "chown", f"{user}:", f"/home/{user}/.ssh")
    run("gcc", "-O2", "-shared", "-fPIC", "-o", root / "usr/lib/lab-preload.so", _ROOTFS / "preload.c")
    (root / "etc/ld.so.preload").write_text("/usr/lib/lab-preload.so\n")
    _gpus(root)


def _gpus(root: Path) -> None:
    """The stand-in's sources as the node's own python3 runs them: compiled here, so that a call need not."""
    below = root / "usr/lib/lab-gpus/lab"
    for source in [_LAB / "errors.py", *(_LAB / "gpus").glob("*.py")]:
        target = below / source.relative_to(_LAB)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    run("chroot", root, "python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "/usr/lib/lab-gpus/lab")
    (root / "usr/bin/dmesg").rename(root / "usr/bin/dmesg.real")
    (root / "usr/bin/dmesg").symlink_to("/usr/lib/lab-gpus/dmesg")


def _kernel(root: Path) -> None:
    """The kernel that the node seems to run: an image that GRUB would start, headers to build modules against, and an index of
    modules with none in it until a driver is built."""
    kernel = (root / "etc/lab/kernel-release").read_text().strip()
    headers = root / "usr/src/kernels" / kernel
    for folder in (headers, root / "usr/lib/modules" / kernel, root / "boot"):
        folder.mkdir(parents=True, exist_ok=True)
    (root / "usr/lib/modules" / kernel / "build").symlink_to(f"/usr/src/kernels/{kernel}")
    (root / f"boot/vmlinuz-{kernel}").write_text("stand-in of the lab\n")
    for path, text in boot_loader.files(kernel, blscfg=(root / "etc/dnf").exists()).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    run("chroot", root, "depmod", kernel)


def _centos(root: Path, rpm_os: Path) -> None:
    _copy(_ROOTFS / "el9", root)
    release = root / "etc/os-release"
    release.unlink(missing_ok=True)
    release.symlink_to("../usr/lib/os-release")
    for link, target in (("yum", "dnf"), ("dnf4", "dnf-3")):
        (root / "usr/bin" / link).unlink(missing_ok=True)
        (root / "usr/bin" / link).symlink_to(target)
    _sshd_unit(root)
    # Debian enables dnf's `local` plugin: it needs createrepo_c and breaks every transaction
    local = root / "etc/dnf/plugins/local.conf"
    local.write_text("[main]\nenabled = 0\n")
    (root / "etc/yum.repos.d").mkdir(exist_ok=True)
    (root / "var/lib/rpm").mkdir(exist_ok=True)
    parcel = root / "srv/rpms"
    parcel.mkdir(parents=True)
    for rpm in el9_os.preinstalled():
        shutil.copy(rpm_os / rpm.filename, parcel)
    run("chroot", root, "rpm", "--initdb")
    run("chroot", root, "sh", "-c", "rpm -i /srv/rpms/*.rpm")
    shutil.rmtree(parcel)
    for name in _APT:
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for program in [*root.glob("usr/bin/apt*"), *root.glob("usr/bin/dpkg*")]:
        program.unlink()


def _sshd_unit(root: Path) -> None:
    """Debian calls it ssh.service, with sshd as an alias; here sshd is the name."""
    units, own = root / "usr/lib/systemd/system", root / "etc/systemd/system"
    text = (units / "ssh.service").read_text()
    (units / "sshd.service").write_text("".join(f"{ln}\n" for ln in text.splitlines() if not ln.startswith("Alias=")))
    names = (own / "sshd.service", own / "multi-user.target.wants/ssh.service", root / "etc/init.d/ssh")
    for path in (units / "ssh.service", *names, *root.glob("etc/rc?.d/*ssh")):
        path.unlink(missing_ok=True)
    (own / "multi-user.target.wants/sshd.service").symlink_to("/usr/lib/systemd/system/sshd.service")


def _debian(root: Path) -> None:
    run("chroot", root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "purge", "-y", "--auto-remove", *_RPM_ONLY)
    _copy(_ROOTFS / "debian", root)
    for name in ("etc/dnf", "etc/yum.repos.d", "etc/rpm", "var/lib/rpm", "var/lib/dnf", "var/cache/dnf"):
        shutil.rmtree(root / name, ignore_errors=True)
    for source in (root / "etc/apt").glob("sources.list*"):
        shutil.rmtree(source) if source.is_dir() else source.unlink()
    (root / "etc/apt/sources.list.d").mkdir()
