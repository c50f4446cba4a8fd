"""dnf and apt on real nodes: what the product relies on, and how they fail."""

from collections.abc import Iterator

import pytest

from lab import Lab, LabNode
from lab.packages import debs


@pytest.fixture(scope="module")
def centos(lab: Lab) -> Iterator[LabNode]:
    """gpu02 on a new disk, with NVIDIA's repository configured (checked signatures); a new disk afterwards."""
    node = lab.nodes["gpu02"]
    _fresh(node)
    url = f"{lab.config.url}/rpms/rhel9/x86_64"
    lines = ("[cuda-rhel9]", "name=cuda", f"baseurl={url}/", "gpgcheck=1", f"gpgkey={url}/D42D0685.pub")
    node.run(f"printf '%s\\n' {' '.join(lines)} > /etc/yum.repos.d/cuda-rhel9.repo")
    yield node
    _fresh(node)


@pytest.fixture(scope="module")
def debian(lab: Lab) -> Iterator[LabNode]:
    """deb01 on a new disk, its lists read; a new disk afterwards."""
    node = lab.nodes["deb01"]
    _fresh(node)
    node.run("apt-get update")
    yield node
    _fresh(node)


def _fresh(node: LabNode) -> None:
    node.reset()
    node.wait_ready()


def dnf(node: LabNode, words: str) -> tuple[int, str]:
    done = node.run(f"dnf -y {words}", check=False)
    return done.returncode, done.stdout + done.stderr


def rpm(node: LabNode, name: str) -> str:
    return node.run(f"rpm -q --qf '%{{VERSION}}-%{{RELEASE}}' {name}", check=False).stdout


def apt(node: LabNode, words: str) -> tuple[int, str]:
    done = node.run(f"DEBIAN_FRONTEND=noninteractive apt-get -y {words}", check=False)
    return done.returncode, done.stdout + done.stderr


def deb(node: LabNode, name: str) -> str:
    shown = node.run(f"dpkg-query -W -f '${{db:Status-Abbrev}} ${{Version}}' {name}", check=False).stdout
    return " ".join(shown.split())


# ---- dnf


def test_dnf_install_moves_up_and_down(centos: LabNode) -> None:
    for version in ("2.0.19-1.el9", "2.0.19-3.el9", "2.0.18-2.el9", "2.0.19-3.el9"):
        assert dnf(centos, f"install numactl-{version}.x86_64")[0] == 0
        assert rpm(centos, "numactl") == version


def test_dnf_one_transaction_installs_downgrades_and_removes(centos: LabNode) -> None:
    dnf(centos, "install numactl-2.0.19-3.el9 tmux")
    script = "install telnet-0.17-84.el9\\ninstall numactl-2.0.18-2.el9\\nremove tmux\\nrun\\n"
    centos.run(f"printf '{script}' > /tmp/script")
    assert dnf(centos, "shell /tmp/script")[0] == 0
    assert (rpm(centos, "telnet"), rpm(centos, "numactl")) == ("0.17-84.el9", "2.0.18-2.el9")
    assert "not installed" in rpm(centos, "tmux")
    undo = centos.run("dnf history list --reverse | tail -1").stdout
    assert undo.split("|")[3].strip() == "D, E, I"


def test_dnf_shell_hides_every_failure(centos: LabNode) -> None:
    """Its exit status says nothing: who uses it has to ask again."""
    for line in ("install nosuchpackage", "install needs-missing", "install broken-pre"):
        centos.run(f"printf '{line}\\nrun\\n' > /tmp/script")
        assert dnf(centos, "shell /tmp/script")[0] == 0


def test_dnf_upgrade_and_remove(centos: LabNode) -> None:
    dnf(centos, "install htop-3.3.0")
    assert dnf(centos, "upgrade htop")[0] == 0
    assert rpm(centos, "htop") == "3.4.1-1.el9"
    assert dnf(centos, "remove htop")[0] == 0
    assert "not installed" in rpm(centos, "htop")


def test_dnf_versionlock(centos: LabNode) -> None:
    dnf(centos, "install numactl-2.0.18-2.el9")
    dnf(centos, "versionlock add numactl")
    locks = centos.run("cat /etc/dnf/plugins/versionlock.list").stdout.splitlines()
    assert locks[-1] == "numactl-0:2.0.18-2.el9.*"
    dnf(centos, "upgrade")
    assert rpm(centos, "numactl") == "2.0.18-2.el9"
    code, text = dnf(centos, "install numactl-2.0.19-3.el9")
    assert (code, "filtered out by exclude filtering" in text) == (1, True)
    centos.run("echo 'numactl-0:2.0.19-1.el9.*' > /etc/dnf/plugins/versionlock.list")  # by hand
    dnf(centos, "upgrade")
    assert rpm(centos, "numactl") == "2.0.19-1.el9"
    centos.run(": > /etc/dnf/plugins/versionlock.list")


@pytest.mark.parametrize(
    ("words", "code", "text", "installed"),
    [
        ("install broken-pre", 1, "Error in PREIN scriptlet in rpm package broken-pre", False),
        ("install broken-post", 0, "Error in POSTIN scriptlet in rpm package broken-post", True),
        ("install nosuchpackage", 1, "Unable to find a match: nosuchpackage", False),
        ("install needs-missing", 1, "nothing provides libnothere.so.9 needed by needs-missing", False),
    ],
)
def test_dnf_fails(centos: LabNode, words: str, code: int, text: str, installed: bool) -> None:
    found = dnf(centos, words)
    assert found[0] == code
    assert text in found[1]
    assert ("not installed" not in rpm(centos, words.split()[1])) is installed


def test_signed_packages_and_driver_sets(centos: LabNode) -> None:
    assert dnf(centos, "install nvidia-driver-cuda-580.82.07 kmod-nvidia-open-dkms-580.82.07")[0] == 0
    assert centos.run("rpm -qa 'gpg-pubkey*'").stdout.startswith("gpg-pubkey-")
    assert centos.run("rpm -q --qf '%{EPOCH}' nvidia-driver-cuda").stdout == "3"
    assert dnf(centos, "install nvidia-driver-cuda-580.95.05 nvidia-driver-cuda-libs-580.82.07")[0] == 1
    assert dnf(centos, "install nvidia-driver-cuda-580.95.05")[0] == 0
    versions = centos.run("rpm -qa --qf '%{VERSION} %{NAME}\\n' | grep nvidia | cut -d' ' -f1 | sort -u").stdout
    assert versions == "580.95.05\n"
    assert "580.95.05" in centos.run("cat /var/log/lab-scriptlets.log").stdout


def test_unsigned_or_foreign_packages_are_refused(centos: LabNode) -> None:
    centos.run("sed 's/^gpgkey=.*//; s/cuda-rhel9/nokey/' /etc/yum.repos.d/cuda-rhel9.repo > /etc/yum.repos.d/z.repo")
    centos.run("rpm -qa 'gpg-pubkey*' | xargs -r rpm -e")  # dnf may have taken it for a test before
    code, text = dnf(centos, "--repo nokey install libnccl")
    assert (code, "Public key for libnccl" in text) == (1, True)
    centos.run("rm /etc/yum.repos.d/z.repo")


def test_config_file_of_the_user_is_kept(centos: LabNode) -> None:
    dnf(centos, "install config-file-1.0")
    centos.run("echo mine > /etc/config-file.conf")
    dnf(centos, "upgrade config-file")
    assert centos.run("cat /etc/config-file.conf /etc/config-file.conf.rpmnew").stdout == "mine\nfrom=1.1\n"


def test_chronyd_starts(centos: LabNode, lab: Lab) -> None:
    dnf(centos, "install chrony")
    centos.run("systemctl enable --now chronyd")
    assert centos.run("systemctl is-active chronyd").stdout == "active\n"
    centos.run("chronyc waitsync 20 0.5 0 0.5")  # the lab's time server answers
    assert f"server {lab.config.gateway} iburst" in centos.run("cat /etc/chrony.conf").stdout


def test_slow_install_outlives_its_session(centos: LabNode) -> None:
    centos.run("echo 1 > /etc/lab/slow-seconds")
    centos.run("systemd-run --unit=slow -p Type=exec -p RemainAfterExit=yes dnf -y install slow-install")
    waits = "until grep -q end /var/log/lab-slow.log; do sleep 0.1; done; cat /var/log/lab-slow.log"
    assert [line.split()[0] for line in centos.run(waits, timeout=30).stdout.splitlines()] == ["start", "end"]


def test_repoquery_leaves_the_nodes_caches_alone(centos: LabNode) -> None:
    options = "--showduplicates --setopt=cachedir=/run/x --setopt=reposdir=/etc/yum.repos.d"
    form = "%{name} %{epoch} %{version} %{release} %{arch}"
    command = f"dnf -q --disableplugin='*' repoquery {options} --qf '{form}' numactl nvidia-driver"
    centos.run("touch /run/before; sleep 0.05")
    found = centos.run(command).stdout.splitlines()
    assert "numactl 0 2.0.18 2.el9 x86_64" in found
    assert "nvidia-driver 3 580.126.20 1.el9 x86_64" in found
    written = centos.run("find /etc /usr /var/lib /var/cache -xdev -newer /run/before -type f").stdout.split()
    assert [path for path in written if not path.endswith(("rpmdb.sqlite-shm", ".rpm.lock"))] == []


# ---- apt


def test_apt_moves_up_and_down(debian: LabNode) -> None:
    for version in ("2.0.16-1", "2.0.18-1"):
        assert apt(debian, f"install numactl={version}")[0] == 0
        assert deb(debian, "numactl") == f"ii {version}"
    assert apt(debian, "install numactl=2.0.14-3")[0] == 100
    assert apt(debian, "--allow-downgrades install numactl=2.0.14-3 tmux=3.3a-2")[0] == 0
    assert (deb(debian, "numactl"), deb(debian, "tmux")) == ("ii 2.0.14-3", "ii 3.3a-2")
    assert apt(debian, "--allow-downgrades install numactl=2.0.16-1 tmux- htop=3.2.1-1")[0] == 0
    assert (deb(debian, "numactl"), deb(debian, "htop")) == ("ii 2.0.16-1", "ii 3.2.1-1")
    assert not deb(debian, "tmux").startswith("ii")


def test_apt_hold(debian: LabNode) -> None:
    apt(debian, "--allow-downgrades install numactl=2.0.16-1")
    debian.run("apt-mark hold numactl")
    assert debian.run("apt-mark showhold").stdout == "numactl\n"
    apt(debian, "upgrade")
    assert deb(debian, "numactl") == "hi 2.0.16-1"
    assert apt(debian, "install numactl=2.0.18-1")[0] == 100
    assert apt(debian, "--allow-change-held-packages install numactl=2.0.18-1")[0] == 0
    assert debian.run("apt-mark showhold").stdout == ""  # the hold is lost on the way


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("install nosuchpackage", "Unable to locate package nosuchpackage"),
        ("install needs-missing", "Depends: libnothere9 but it is not installable"),
        ("install numactl=9.9", "Version '9.9' for 'numactl' was not found"),
        ("install broken-preinst", "Sub-process /usr/bin/dpkg returned an error code (1)"),
        ("install broken-postinst", "Sub-process /usr/bin/dpkg returned an error code (1)"),
    ],
)
def test_apt_fails(debian: LabNode, words: str, text: str) -> None:
    code, found = apt(debian, words)
    assert code == 100
    assert text in found
    name = words.split()[1]
    assert deb(debian, name).startswith("iF") is (name == "broken-postinst")
    if name.startswith("broken"):
        debian.run(f"dpkg --purge --force-all {name}")


def test_apt_second_repository(debian: LabNode, lab: Lab) -> None:
    source = f"deb [trusted=yes] {lab.config.url}/debs/nvidia ./"
    debian.run(f"echo '{source}' > /etc/apt/sources.list.d/nvidia.list; apt-get update")
    assert apt(debian, "install nvidia-open=580.82.07-1")[0] == 100  # the newest of its needs is not the exact one
    names = {need.name for need in debs.nvidia()}
    assert apt(debian, f"install {' '.join(f'{name}=580.82.07-1' for name in names)}")[0] == 0
    assert debian.run("cat /usr/share/nvidia/driver-version").stdout == "580.82.07\n"
