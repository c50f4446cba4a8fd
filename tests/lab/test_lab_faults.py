"""Every fault does what it says, and its undo undoes it: on real nodes."""

import time
from collections.abc import Callable, Iterator

import pytest

from lab import Lab, LabError, LabNode
from lab.shell import run as host


@pytest.fixture
def node(lab: Lab) -> Iterator[LabNode]:
    """gpu01, healthy before and after."""
    node = lab.nodes["gpu01"]
    yield node
    node.heal()
    node.fast()
    node.noloss()
    node.unfill()
    node.skew(0)
    node.wait_ready()
    node.run("systemctl reset-failed")


@pytest.fixture
def pings(lab: Lab, node: LabNode) -> Callable[[int], int]:
    """How many of so many pings from gpu02 are answered."""

    def count_of(count: int) -> int:
        text = lab.nodes["gpu02"].run(f"ping -q -c {count} -i 0.01 -W 1 {node.address}", check=False).stdout
        return int(text.split(" received")[0].rsplit(" ", 1)[1])

    return count_of


def test_cut_and_heal(node: LabNode, pings: Callable[[int], int]) -> None:
    boot = node.boot_id()
    node.cut()
    assert pings(1) == 0
    assert node.status()["link"] == "cut"
    assert node.inside("hostname").stdout == "gpu01\n"  # it lives on, unseen
    node.heal()
    node.wait_ready()
    assert node.boot_id() == boot


def test_cut_off_node_is_no_answer_not_a_leak(node: LabNode) -> None:
    node.cut()
    start = time.monotonic()
    with pytest.raises(LabError):
        node.run("true", timeout=30)
    assert time.monotonic() - start < 20


def test_slow(node: LabNode) -> None:
    def seconds() -> float:
        start = time.monotonic()
        node.run("cat > /dev/null", stdin="x" * 300_000)
        return time.monotonic() - start

    normal = seconds()
    node.slow("1mbit")
    assert seconds() > 1.5  # 2.4 Mbit, less what the bucket lets pass
    node.fast()
    assert seconds() < normal + 1


def test_loss(node: LabNode, pings: Callable[[int], int]) -> None:
    assert pings(5) == 5  # gpu02 knows the card of gpu01: what gets lost is pings
    node.loss(50)
    assert 10 < pings(100) < 90
    node.loss(100)
    assert pings(1) == 0
    node.noloss()
    assert pings(20) == 20


def test_full_disk(node: LabNode) -> None:
    node.fill()
    full = node.run("dd if=/dev/zero of=/root/big bs=1M count=4", check=False)
    assert "No space left on device" in full.stderr
    node.unfill()
    node.run("dd if=/dev/zero of=/root/big bs=1M count=4 && rm /root/big")


def test_skewed_clock(node: LabNode) -> None:
    def offset() -> float:
        return float(node.run("date +%s").stdout) - time.time()

    assert abs(offset()) < 5
    node.skew(-3600)
    end = time.monotonic() + 5
    while abs(offset() + 3600) > 5 and time.monotonic() < end:
        time.sleep(0.1)
    assert abs(offset() + 3600) < 5
    node.skew(0)
    end = time.monotonic() + 5
    while abs(offset()) > 5 and time.monotonic() < end:
        time.sleep(0.1)
    assert abs(offset()) < 5


def test_kernel_settings_are_the_nodes_own(node: LabNode, lab: Lab) -> None:
    before = host("sysctl", "-n", "vm.swappiness").stdout
    node.run("sysctl -w vm.swappiness=7 net.core.rmem_max=12345678")
    assert node.run("sysctl -n vm.swappiness net.core.rmem_max").stdout.split() == ["7", "12345678"]
    assert host("sysctl", "-n", "vm.swappiness").stdout == before
    assert lab.nodes["gpu02"].run("sysctl -n vm.swappiness").stdout == before
    node.run("sysctl -w vm.swappiness=60")


def test_hostname_is_set(node: LabNode) -> None:
    node.run("hostnamectl set-hostname other.example")
    assert node.run("hostname; cat /etc/hostname").stdout.split() == ["other.example"] * 2
    node.run("hostnamectl set-hostname gpu01")


def test_transient_units(node: LabNode) -> None:
    ready = "import socket, os; socket.socket(1, 2).sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])"
    node.run(f'systemd-run --unit=t1 -p Type=notify -p RemainAfterExit=yes /usr/bin/python3 -c "{ready}"')
    node.run("systemd-run --unit=t2 -p Type=exec -p RemainAfterExit=yes sh -c 'command -v python3 dnf systemctl'")
    node.run("systemd-run --unit=t3 -p Type=exec -p RemainAfterExit=yes sh -c 'exit 7'", check=False)
    for unit, state in (("t1", "active 0"), ("t2", "active 0"), ("t3", "failed 7")):
        show = f"systemctl show {unit} -p ActiveState -p ExecMainStatus --value"
        end = time.monotonic() + 5
        while " ".join(sorted(node.run(show).stdout.split(), reverse=True)) != state and time.monotonic() < end:
            time.sleep(0.05)
        assert " ".join(sorted(node.run(show).stdout.split(), reverse=True)) == state
    node.run("systemctl stop t1 t2; systemctl reset-failed")
