"""The Debian repositories: `debs` (the system's own names, and packages that misbehave) and `debs/nvidia`."""

from lab.packages.debspec import Deb, logged, on

ORDINARY = (
    ("tmux", "3.3a-2"), ("tmux", "3.3a-3"),
    ("numactl", "2.0.14-3"), ("numactl", "2.0.16-1"), ("numactl", "2.0.18-1"),
    ("htop", "3.2.1-1"), ("htop", "3.2.2-2"),
    ("telnet", "0.17+2.4-2"), ("telnet", "0.17+2.4-2+deb12u1"),
)  # fmt: skip
DRIVERS = ("580.82.07", "580.95.05")
DRIVER_VERSION = "/usr/share/nvidia/driver-version"
_STANDIN = "/usr/lib/lab-gpus"
_LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
# twice: about 8 s a transaction; and held as long as a test wants
_SLOW = "while [ -e /etc/lab/slow-held ]; do sleep 0.05; done\nsleep $(cat /etc/lab/slow-seconds 2>/dev/null || echo 4)"
_CHRONYD = """[Unit]
Description=chrony, an NTP client/server
After=network.target
[Service]
Type=simple
ExecStart=/usr/sbin/chronyd -x -d -u root -f /etc/chrony/chrony.conf
Restart=on-failure
RuntimeDirectory=chrony
RuntimeDirectoryMode=0750
[Install]
WantedBy=multi-user.target
Alias=chronyd.service
"""


def misbehaving() -> list[Deb]:
    """Packages for the tests of failure."""
    fails = "echo 'the maintainer script says no' >&2; exit 1"
    debs = [
        Deb("broken-preinst", "1.0-1", "all", scripts={"preinst": fails}),
        Deb("broken-postinst", "1.0-1", "all", scripts={"postinst": fails}),
        Deb("needs-missing", "1.0-1", "all", depends="libnothere9"),
    ]
    for version in ("1.0-1", "1.0-2"):
        start = f'echo "start {version} $$ $(date +%s)" >> /var/log/lab-slow.log\n{_SLOW}\nexit 0'
        end = f'{_SLOW}\necho "end {version} $$ $(date +%s)" >> /var/log/lab-slow.log\n{logged("slow-install")}'
        debs.append(Deb("slow-install", version, "all", scripts={"preinst": start, "postinst": on("configure", end)}))
    for version in ("1.0-1", "1.1-1"):
        path = "/etc/config-file.conf"
        debs.append(Deb("config-file", version, "all", files={path: f"from={version}\n"}, conffiles=(path,)))
    return debs


def chrony(server: str, chrony_tree: str) -> Deb:
    """Debian's real chronyd (unpacked below `chrony_tree`), with a configuration that names the lab's server."""
    conf = f"server {server} iburst\ndriftfile /var/lib/chrony/chrony.drift\nmakestep 1 3\nrtcsync\n"
    unit = "systemctl daemon-reload; systemctl enable --now chrony >/dev/null 2>&1 || :"
    return Deb(
        "chrony", "4.3-2+deb12u1",
        files={
            "/etc/chrony/chrony.conf": conf,
            "/lib/systemd/system/chrony.service": _CHRONYD,
            "/var/lib/chrony/README": "state of chronyd\n",
        },
        conffiles=("/etc/chrony/chrony.conf",),
        copies={f"/usr/{name}": f"{chrony_tree}/usr/{name}" for name in ("sbin/chronyd", "bin/chronyc")},
        scripts={"postinst": on("configure", f"{unit}\n{logged('chrony')}")},
    )  # fmt: skip


def debs(server: str, chrony_tree: str) -> list[Deb]:
    """The system's own repository; `server` is the time server that chrony.conf names."""
    return [*(Deb(*entry) for entry in ORDINARY), *misbehaving(), chrony(server, chrony_tree)]


def nvidia() -> list[Deb]:
    """NVIDIA's Debian names; the driver packages require each other at exactly one version."""
    found = []
    for version in DRIVERS:
        full = f"{version}-1"

        def deb(name: str, *depends: str, full: str = full, **more: dict[str, str]) -> Deb:
            exact = ", ".join(f"{other} (= {full})" for other in depends)
            return Deb(name, full, depends=exact, **more)  # type: ignore[arg-type]

        built = f"{_STANDIN}/lab-gpus install {version}"
        loaded = on("configure", f"{built}\n{logged(f'nvidia-kernel-open-dkms {version} (loaded at the next boot)')}")
        found += [
            deb("nvidia-open", "nvidia-driver-cuda", "nvidia-kernel-open-dkms"),
            deb("nvidia-driver-cuda", "libcuda1", "nvidia-persistenced",
                scripts=_link(f"{_STANDIN}/nvidia-smi", "/usr/bin/nvidia-smi")),
            deb("nvidia-kernel-open-dkms", files={DRIVER_VERSION: f"{version}\n"},
                scripts={"postinst": loaded, "prerm": on("remove", f"{_STANDIN}/lab-gpus remove")}),
            deb("libcuda1", "libnvidia-ml1"),
            deb("libnvidia-ml1", files={f"{_LIBRARY}.{version}": "stand-in of the lab\n"},
                scripts=_link(f"libnvidia-ml.so.{version}", f"{_LIBRARY}.1")),
            deb("nvidia-persistenced"),
        ]  # fmt: skip
    return found


def _link(target: str, path: str) -> dict[str, str]:
    """Maintainer scripts that keep a symbolic link: a Deb here carries plain files only."""
    return {"postinst": on("configure", f"ln -sfn {target} {path}"), "prerm": on("remove", f"rm -f {path}")}
