"""The base system's own RPM repository (`rpms/os`): CentOS Stream 9 names, and packages that misbehave on purpose."""

from lab.packages.rpmspec import Rpm, logged

KERNEL = "5.14.0-611.el9.x86_64"
# Installed in the image, so that /bin/sh and Requires resolve and rpm -q answers; the files stay Debian's.
PREINSTALLED = (
    ("glibc", "2.34", "231.el9"), ("systemd", "252", "55.el9"), ("openssh-server", "8.7p1", "47.el9"),
    ("python3", "3.9.23", "2.el9"), ("dnf", "4.14.0", "31.el9"), ("dnf-plugins-core", "4.3.0", "24.el9"),
    ("python3-dnf-plugin-versionlock", "4.3.0", "24.el9"), ("rpm", "4.16.1.3", "39.el9"),
    ("kernel-core", "5.14.0", "611.el9"), ("sudo", "1.9.5p2", "13.el9"), ("rsync", "3.2.5", "3.el9"),
    ("iproute", "6.14.0", "2.el9"),
)  # fmt: skip
# Optional packages of the base system: at least two versions each, so that up and down can both be asked for.
ORDINARY = (
    ("tmux", "3.2a", "4.el9"), ("tmux", "3.2a", "5.el9"),
    ("numactl", "2.0.18", "2.el9"), ("numactl", "2.0.19", "1.el9"), ("numactl", "2.0.19", "3.el9"),
    ("htop", "3.3.0", "1.el9"), ("htop", "3.4.1", "1.el9"),
    ("telnet", "0.17", "84.el9"), ("telnet", "0.17", "85.el9"),
    ("kernel", "5.14.0", "1.el9"), ("kernel", "5.14.0", "2.el9"),
    ("lustre-client", "2.16.0", "1.el9"), ("lustre-client", "2.16.1", "1.el9"),
    ("doca-ofed-userspace", "3.2.2", "1.el9"), ("doca-ofed-userspace", "3.2.3", "1.el9"),
)  # fmt: skip
# twice: about 8 s a transaction; and held as long as a test wants
_SLOW = "while [ -e /etc/lab/slow-held ]; do sleep 0.05; done\nsleep $(cat /etc/lab/slow-seconds 2>/dev/null || echo 4)"
_CHRONYD = """[Unit]
Description=NTP client/server
After=network.target
[Service]
Type=simple
ExecStart=/usr/sbin/chronyd -x -d -u root -f /etc/chrony.conf
Restart=on-failure
RuntimeDirectory=chrony
RuntimeDirectoryMode=0750
[Install]
WantedBy=multi-user.target
"""


def preinstalled() -> list[Rpm]:
    """What the image's rpm database holds from the start."""
    release = Rpm(
        "centos-stream-release", "9.0", "26.el9", "noarch",
        provides=("system-release = 9", "redhat-release", "system-release(releasever) = 9"),
        files={"/etc/centos-release": "CentOS Stream release 9\n"},
        links={"/etc/redhat-release": "centos-release", "/etc/system-release": "centos-release"},
    )  # fmt: skip
    bash = Rpm("bash", "5.1.8", "9.el9", provides=("/bin/sh", "/bin/bash", "/usr/bin/sh"))
    return [release, bash, *(Rpm(*entry) for entry in PREINSTALLED)]


def misbehaving() -> list[Rpm]:
    """Packages for the tests of failure."""
    fails = "echo 'the scriptlet says no' >&2; exit 1"
    rpms = [
        Rpm("broken-pre", "1.0", "1.el9", "noarch", scriptlets={"pre": fails}),
        Rpm("broken-post", "1.0", "1.el9", "noarch", scriptlets={"post": fails}),
        Rpm("broken-upgrade", "1.0", "1.el9", "noarch"),
        Rpm("broken-upgrade", "1.1", "1.el9", "noarch", scriptlets={"pre": fails}),
        Rpm("needs-missing", "1.0", "1.el9", "noarch", requires=("libnothere.so.9",)),
    ]
    for release in ("1.el9", "2.el9"):
        start = f'echo "start 1.0-{release} $$ $(date +%s)" >> /var/log/lab-slow.log\n{_SLOW}'
        end = f'{_SLOW}\necho "end 1.0-{release} $$ $(date +%s)" >> /var/log/lab-slow.log'
        scriptlets = {"pre": start, "post": f"{end}\n{logged(f'slow-install 1.0-{release}')}"}
        rpms.append(Rpm("slow-install", "1.0", release, "noarch", scriptlets=scriptlets))
    for version in ("1.0", "1.1"):
        path = "/etc/config-file.conf"
        rpms.append(Rpm("config-file", version, "1.el9", "noarch", files={path: f"from={version}\n"}, config=(path,)))
    return rpms


def chrony(server: str, tree: str) -> Rpm:
    """Debian's real chronyd (unpacked below `tree`), packed the CentOS way."""
    conf = f"server {server} iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n"
    return Rpm(
        "chrony", "4.3", "1.el9",
        files={
            "/etc/chrony.conf": conf,
            "/usr/lib/systemd/system/chronyd.service": _CHRONYD,
            "/usr/lib/systemd/ntp-units.d/50-chronyd.list": "chronyd.service\n",
            "/var/lib/chrony/README": "state of chronyd\n",
        },
        config=("/etc/chrony.conf",),
        copies={f"/usr/{name}": f"{tree}/usr/{name}" for name in ("sbin/chronyd", "bin/chronyc")},
        scriptlets={"post": f"systemctl daemon-reload >/dev/null 2>&1 || :\n{logged('chrony 4.3')}"},
    )  # fmt: skip


def rpms(server: str, chrony_tree: str) -> list[Rpm]:
    """The whole repository; `server` is the time server that chrony.conf names."""
    ordinary = [Rpm(*entry) for entry in ORDINARY]
    return [*preinstalled(), *ordinary, *misbehaving(), chrony(server, chrony_tree)]
