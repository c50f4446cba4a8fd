"""/etc/hosts of real nodes: names resolve, what others wrote stays byte for byte, and what is broken is held."""

from __future__ import annotations

import base64

from lab import Lab, LabNode
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.truth import Nodes

NODES = ("gpu01", "gpu02")
RESOURCE = "HostsEntries//etc/hosts"


def content(node: LabNode) -> bytes:
    return base64.b64decode(node.run("base64 /etc/hosts").stdout)


def put(node: LabNode, data: bytes) -> None:
    node.run("base64 -d > /etc/hosts", stdin=base64.b64encode(data).decode())


def block(lab: Lab, **more: str) -> bytes:
    named = {name: lab.nodes[name].address for name in NODES} | more
    lines = "".join(f"{address} {name}\n" for name, address in named.items())
    return f"# BEGIN reconcile\n{lines}# END reconcile\n".encode()


def test_every_node_resolves_every_name_and_a_second_apply_writes_nothing(lab: Lab, nodes: Nodes, small: Small) -> None:
    machines = nodes.fresh(*NODES)
    site = small(nodes=NODES, hosts={"nas01": "10.20.1.40"})
    before = {node.name: content(node) for node in machines}
    shown = site.ok("plan").stdout
    assert f"+ {RESOURCE}  git change" in shown
    assert "+10.20.1.40 nas01" in shown
    site.ok("apply", "--target", "HostsEntries")
    for node in machines:
        assert content(node) == before[node.name] + block(lab, nas01="10.20.1.40")
        for name in NODES:
            found = {line.split()[0] for line in node.run(f"getent ahostsv4 {name}").stdout.splitlines()}
            assert found == {lab.nodes[name].address}, f"{name} on {node.name}"
    site.ok("apply")
    after = {node.name: truth.fingerprint(node) for node in machines}
    assert "0 changes" in site.ok("apply").verdict
    for node in machines:
        assert truth.moved(after[node.name], truth.fingerprint(node)) == []


FOREIGN = {
    "gpu01": b"127.0.0.1 localhost\r\n10.9.9.9 other\r\n",
    "gpu02": b"127.0.0.1 localhost\n# not text \xff\xfe\x00\n\x0c\n@ gpu02.example.net gpu02",
    "gpu03": b"127.0.0.1 localhost\n+10.9.9.9 behind\n",
}


def test_what_others_wrote_stays_and_a_block_edited_by_hand_heals_in_its_place(lab: Lab, nodes: Nodes, small: Small) -> None:
    machines = {node.name: node for node in nodes.fresh(*FOREIGN)}
    site = small(nodes=tuple(FOREIGN), hosts={})
    ours = block(lab, gpu03=lab.nodes["gpu03"].address)
    spoilt = ours.replace(b" gpu02", b" gpu02 more").replace(b"# END", b"10.8.8.8 by-hand\n# END")
    for name, node in machines.items():
        put(node, FOREIGN[name].replace(b"@", node.address.encode()).replace(b"+", spoilt))
        node.run("chmod 640 /etc/hosts; chgrp adm /etc/hosts")
    site.ok("apply", "--target", "HostsEntries")
    found = {name: content(node) for name, node in machines.items()}
    assert found["gpu01"] == FOREIGN["gpu01"] + ours
    assert found["gpu02"] == FOREIGN["gpu02"].replace(b"@", machines["gpu02"].address.encode()) + b"\n" + ours
    assert found["gpu03"] == FOREIGN["gpu03"].replace(b"+", ours)
    assert {truth.stat(node, "/etc/hosts") for node in machines.values()} == {"640 root adm regular file"}
    machines["gpu03"].run("sed -i 's/^[0-9.]* gpu02$/10.1.1.1 gpu02/' /etc/hosts")
    drifted = site.run("drift", "--json")
    assert (drifted.reasons("gpu03")[RESOURCE], drifted.changes("gpu01").get(RESOURCE)) == ("drift", None)
    site.ok("apply", "--target", "HostsEntries")
    assert content(machines["gpu03"]) == found["gpu03"]


HELD = {
    "gpu01": (b"127.0.0.1 localhost\n# BEGIN reconcile\n10.9.9.9 foreign\n", "BlockDamaged", "line 2: # BEGIN reconcile"),
    "gpu02": (b"127.0.0.1 localhost\n127.0.1.1 gpu02\n", "HostsContradicted", "line 2: 127.0.1.1 gpu02"),
    "gpu03": (b"10.9.9.9 db GPU01 # old\n", "HostsContradicted", "line 1: 10.9.9.9 gpu01"),
}


def test_what_cannot_be_mended_without_loss_is_held_by_its_line(nodes: Nodes, small: Small) -> None:
    machines = {node.name: node for node in nodes.fresh(*HELD)}
    site = small(nodes=tuple(HELD), hosts={})
    for name, node in machines.items():
        put(node, HELD[name][0])
    done = site.run("plan", "--json")
    assert {name: done.reasons(name)[RESOURCE] for name in HELD} == {name: code for name, (_, code, _) in HELD.items()}
    applied = site.run("apply", "--target", "HostsEntries")
    assert applied.code == 2
    for name, node in machines.items():
        assert HELD[name][2] in applied.stdout
        assert content(node) == HELD[name][0]
