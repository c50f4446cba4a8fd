"""Up, down, reset, reboot and power: on real nodes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lab import Lab, LabConfig, LabError
from lab.cli import main
from lab.shell import run as host


def test_every_node_is_itself(lab: Lab) -> None:
    seen: dict[str, set[str]] = {"machine": set(), "boot": set(), "key": set()}
    for name, node in lab.nodes.items():
        assert node.run("hostname").stdout.strip() == name
        assert node.run("systemctl is-system-running").stdout.strip() == "running"
        seen["machine"].add(node.run("cat /etc/machine-id").stdout)
        seen["boot"].add(node.boot_id())
        seen["key"].add(node.run("cat /etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[1])
    assert {name: len(values) for name, values in seen.items()} == {name: len(lab.nodes) for name in seen}


def test_faces(lab: Lab) -> None:
    centos, debian = lab.nodes["gpu01"], lab.nodes["deb01"]
    assert 'ID="centos"' in centos.run("cat /etc/os-release").stdout
    assert ".el9." in centos.run("uname -r").stdout
    assert centos.run("rpm -q bash glibc").returncode == 0
    assert centos.run("command -v apt-get dpkg", check=False).returncode != 0
    assert "ID=debian" in debian.run("cat /etc/os-release").stdout
    assert debian.run("command -v dnf rpm; ls /var/lib/rpm", check=False).stdout == ""


def test_second_up_changes_nothing(lab: Lab) -> None:
    boots = {name: node.boot_id() for name, node in lab.nodes.items()}
    lab.up(nodes=3, debian=1)
    assert {name: node.boot_id() for name, node in lab.nodes.items()} == boots


def test_users_and_sudo(lab: Lab) -> None:
    for node in (lab.nodes["gpu01"], lab.nodes["deb01"]):
        assert node.run("sudo -n id -un", user="ops").stdout.strip() == "root"
        refused = node.run("sudo -n id -un", user="nosudo", check=False)
        assert refused.returncode == 1
        assert "password is required" in refused.stderr


def test_unknown_host_key_is_refused(lab: Lab, tmp_path: Path) -> None:
    node = lab.nodes["gpu01"]
    argv = [word.replace(str(lab.known_hosts), str(tmp_path / "empty")) for word in node.ssh_argv()]
    done = host(*argv, "true", check=False)
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_reset_drops_the_disk_and_keeps_the_host_key(lab: Lab) -> None:
    node = lab.nodes["gpu02"]
    before = node.run("touch /root/mark; cat /etc/machine-id").stdout, node.boot_id()
    node.reset()
    node.wait_ready()
    assert node.run("test -e /root/mark", check=False).returncode == 1
    assert node.run("cat /etc/machine-id").stdout != before[0]
    assert node.boot_id() != before[1]


def test_reboot_keeps_the_disk(lab: Lab) -> None:
    node = lab.nodes["gpu02"]
    node.run("touch /root/kept")
    before = node.boot_id()
    node.reboot()
    node.wait_ready()
    assert node.boot_id() != before
    assert node.run("ls /root/kept").stdout == "/root/kept\n"
    assert len(node.run("journalctl --list-boots --no-pager").stdout.splitlines()) >= 3  # a heading and two boots
    clock = "python3 -c 'import time; print(time.clock_gettime(time.CLOCK_BOOTTIME))'"
    assert float(node.run(clock).stdout) < 60  # counts from this boot


def test_power_is_lost_and_restored(lab: Lab) -> None:
    node = lab.nodes["gpu03"]
    node.run("echo kept > /root/kept; sync")
    before = node.boot_id()
    node.poweroff()
    assert not node.powered
    with pytest.raises(LabError):
        node.run("true", timeout=20)
    node.poweron()
    node.wait_ready()
    assert node.run("cat /root/kept").stdout == "kept\n"
    assert node.boot_id() != before


def test_reboot_from_inside_changes_the_boot(lab: Lab) -> None:
    node = lab.nodes["gpu03"]
    before = node.boot_id()
    node.run("systemctl reboot", check=False)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done = node.run("cat /proc/sys/kernel/random/boot_id", check=False)
        if done.returncode == 0 and done.stdout.strip() != before:
            break
        time.sleep(0.1)
    node.wait_ready()
    assert node.boot_id() != before


def test_driver_is_loaded_by_a_reboot(lab: Lab) -> None:
    node = lab.nodes["gpu03"]
    node.run(nvidia_repository(lab))
    node.run("dnf -y install nvidia-open-580.95.05")
    assert node.run("nvidia-smi", check=False).returncode == 9
    node.reboot()
    node.wait_ready()
    assert "580.95.05" in node.run("cat /proc/driver/nvidia/version").stdout
    assert node.run("nvidia-smi --query-gpu=driver_version --format=csv,noheader").stdout.split() == ["580.95.05"] * 8
    node.reset()
    node.wait_ready()


def nvidia_repository(lab: Lab) -> str:
    """Shell text that configures NVIDIA's repository the way a site does."""
    url = f"{lab.config.url}/rpms/rhel9/x86_64"
    lines = ("[cuda-rhel9]", "name=cuda", f"baseurl={url}/", "gpgcheck=1", f"gpgkey={url}/D42D0685.pub")
    return f"printf '%s\\n' {' '.join(lines)} > /etc/yum.repos.d/cuda-rhel9.repo"


def test_status_says_what_is_there(lab: Lab) -> None:
    found = json.loads(json.dumps(lab.status()))
    assert found["up"] is True
    assert [node["name"] for node in found["nodes"]][:3] == ["gpu01", "gpu02", "gpu03"]
    assert all(node["power"] == "on" and node["link"] == "up" and node["ssh"] for node in found["nodes"])


def test_command_line(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "gpu01", "deb01", "--", "echo $(hostname)"]) == 0
    assert capsys.readouterr().out == "[gpu01] gpu01\n[deb01] deb01\n"
    assert main(["run", "gpu01", "--", "exit 7"]) == 7
    assert main(["run", "gpu99", "--", "true"]) == 2
    assert "did you mean gpu0" in capsys.readouterr().err
    assert main(["cut", "gpu01"]) == 0
    assert main(["status"]) == 0
    address = lab.nodes["gpu01"].address
    assert re.search(rf"^  gpu01 +{re.escape(address)} +el9 +power on +link cut +ssh no$", capsys.readouterr().out, re.MULTILINE)
    for words in (["heal", "gpu01"], ["slow", "gpu01", "1mbit"], ["slow", "gpu01", "off"], ["loss", "gpu01", "30"],
                  ["loss", "gpu01", "off"], ["fill", "gpu01", "on"], ["fill", "gpu01", "off"], ["skew", "gpu01", "9"],
                  ["skew", "gpu01", "0"], ["up", "--nodes", "3", "--debian", "1"]):  # fmt: skip
        assert main(words) == 0
    assert main(["loss", "gpu01", "lots"]) == 2
    assert main(["fill", "gpu01", "half"]) == 2
    lab.nodes["gpu01"].wait_ready()


def test_unknown_node_names_the_nearest(lab: Lab) -> None:
    with pytest.raises(LabError, match="did you mean gpu01"):
        lab.node("gpu1")


# ---- a second lab beside the first


def footprint(lab: LabConfig, builder: int) -> dict[str, list[str]]:
    """Everything of the host that this lab touches, or that all labs share. Others build images too: `builder` is our process."""
    mine = re.compile(rf"{lab.name}\b|{re.escape(lab.subnet)}\.|reconcile-lab-[a-z]+-{builder}-")
    sysctls = ("fs/inotify/max_user_instances", "net/ipv4/ip_forward")
    lines = {
        "links": host("ip", "-o", "link").stdout.splitlines(),
        "routes": host("ip", "route").stdout.splitlines(),
        "namespaces": host("ip", "netns", "list").stdout.splitlines(),
        "tables": host("nft", "list", "tables").stdout.splitlines(),
        "mounts": Path("/proc/self/mountinfo").read_text().splitlines(),
        "groups": [str(path) for path in Path("/sys/fs/cgroup").glob("*/reconcile-*")],
        "files": [str(path) for path in (*Path("/run").iterdir(), *Path("/dev/shm").iterdir())],
        "processes": host("ps", "-eo", "pid,args").stdout.splitlines(),
    }
    found = {what: [line for line in all_ if mine.search(line)] for what, all_ in lines.items()}
    return found | {"sysctls": [Path("/proc/sys", key).read_text() for key in sysctls]}


def settled_footprint(lab: LabConfig, builder: int, wanted: dict[str, list[str]]) -> dict[str, list[str]]:
    """The footprint, once the kernel has finished taking things away."""
    end = time.monotonic() + 10
    while (found := footprint(lab, builder)) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return found


@pytest.fixture
def second(lab: Lab) -> LabConfig:
    """Beside this lab, and beside those of other processes that run this test: a name and a subnet of this process alone."""
    beside = lab.config.beside(99)
    _, high, low = map(int, beside.subnet.split("."))
    return replace(beside, name=f"t{high:02x}{low:02x}")


def test_second_lab_comes_and_goes_without_a_trace(lab: Lab, second: LabConfig) -> None:
    boots = {name: node.boot_id() for name, node in lab.nodes.items()}
    before = footprint(second, os.getpid())
    assert [line for what, lines in before.items() if what != "sysctls" for line in lines] == []
    other = Lab(second)
    try:
        other.up(nodes=1, options={"gpu02": "mem=512M,disk=host"})
        assert other.nodes["gpu01"].address == f"{second.subnet}.11"
        assert f"{second.gateway}:8000" in other.nodes["gpu01"].run("cat /etc/yum.repos.d/lab.repo").stdout
        other.nodes["gpu02"].run("dnf -y install tmux")
        other.nodes["gpu02"].loss(50)
        assert all(footprint(second, os.getpid())[what] for what in before if what != "files")
        assert lab.nodes["gpu01"].run("true").returncode == 0
    finally:
        other.down()
    assert settled_footprint(second, os.getpid(), before) == before
    assert {name: node.boot_id() for name, node in lab.nodes.items()} == boots
    other.down()  # nothing to do is no error


@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGINT])
def test_down_after_an_up_that_was_killed_half_way(lab: Lab, second: LabConfig, signal_: signal.Signals) -> None:
    before = footprint(second, os.getpid())
    environment = {**os.environ, **second.environment}
    argv = [sys.executable, "-m", "lab", "up", "--nodes", "2"]
    with subprocess.Popen(argv, env=environment, stderr=subprocess.DEVNULL) as up:
        end = time.monotonic() + 60
        while not (second.state / "nodes" / "gpu01" / "seeded").exists() and time.monotonic() < end:
            time.sleep(0.005)
        up.send_signal(signal_)
        up.wait(30)
    other = Lab(second)
    assert second.state.exists()
    if signal_ is signal.SIGKILL:
        other.up(nodes=2)  # picks up where the first one ended
        assert other.nodes["gpu02"].run("hostname").stdout == "gpu02\n"
    other.down()
    assert settled_footprint(second, up.pid, before) == before
