"""What the controller remembers: status, history, snapshots, and all of it again after it was lost."""

from __future__ import annotations

import json
import shutil

from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import GPUS
from tests.e2e.truth import Nodes

PAIR = ("gpu01", "gpu02")


def test_status_and_history_tell_what_was_and_how_old_it_is(nodes: Nodes, small: Small) -> None:
    first, second = nodes.fresh(*PAIR)
    site = small(nodes=PAIR, files={"/etc/one": "one\n"})
    nothing = site.ok("status")
    assert nothing.stdout == "nothing is known yet: no plan and no apply was made from this state directory\n"
    assert site.ok("history").stdout == "nothing was applied yet\n"
    site.ok("plan")
    assert site.ok("status").verdict == "2 of 2 nodes not as declared"
    site.ok("apply")
    assert site.ok("status").verdict == "2 nodes, all as planned"
    site.declare(nodes=PAIR, files={"/etc/one": "two\n"}, per_node={"gpu02": {"packages": {"broken-pre": "present"}}})
    assert site.run("apply").code == 3
    told = site.ok("status").stdout
    assert told.splitlines()[0] == "1 of 2 nodes not as declared"
    assert any(line.startswith("gpu02") and "failed" in line and "ago" in line for line in told.splitlines())
    known = site.ok("status", "--json").json["nodes"]
    assert (known["gpu01"]["outcome"], known["gpu02"]["outcome"]) == ("converged", "failed")
    assert known["gpu01"]["commit"] == site.git("rev-parse", "HEAD")
    applies = site.ok("history", "--json").json
    assert [entry["exit"] for entry in applies] == [0, 3]
    last = site.ok("history", applies[-1]["plan"])
    assert "intent" in last.stdout
    assert "package-transaction" in last.stdout
    assert site.run("history", "no-such-plan").code == 1
    # status asks no node, and says so by the age alone
    for node in (first, second):
        node.inside("systemctl stop sshd.service")
    assert site.ok("status").verdict == "1 of 2 nodes not as declared"
    for node in (first, second):
        node.inside("systemctl start sshd.service")


def test_snapshots(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(packages={"numactl": "2.0.18-2.el9"}, files={"/etc/one": "one\n"})
    assert site.run("snapshot", "list").code == 1
    before = truth.fingerprint(node)
    assert site.ok("snapshot", "take", "--message", "before").stdout.startswith("recorded as ")
    assert truth.writes(before, truth.fingerprint(node)) == []
    assert site.ok("snapshot", "take").stdout == "nothing changed since the last snapshot\n"
    shown = site.ok("snapshot", "show", "latest", "gpu01").json["e2e/gpu01"]
    assert shown["resources"]["Package/numactl"] == {"absent": "NotInstalled"}
    site.ok("apply")
    node.run("dnf -y install htop")
    site.ok("snapshot", "take", "--message", "after")
    entries = site.ok("snapshot", "list", "--json").json
    assert entries[0]["message"] == "after"
    assert entries[-1]["message"] == "before"
    after = site.ok("snapshot", "show", entries[0]["id"], "gpu01").json["e2e/gpu01"]
    assert after["packages"]["rpm"]["htop"] == ["3.4.1-1.el9.x86_64"]
    assert after["locks"]["numactl"] == ["2.0.18-2.el9"]
    assert after["resources"]["File//etc/one"]["mode"] == "0644"
    assert site.run("snapshot", "show", "no-such-id").code == 1


def test_a_lost_state_directory_is_rebuilt_from_the_nodes(nodes: Nodes, small: Small) -> None:
    machines = nodes.fresh(*GPUS)
    site = small(nodes=GPUS, packages={"numactl": "2.0.18-2.el9"}, files={"/etc/one": "one\n", "/etc/two": "two\n"})
    site.ok("apply")
    assert site.run("state", "rebuild").code == 1, "there is a journal: nothing is lost"
    plans = {entry["plan"] for entry in site.ok("history", "--json").json}
    shutil.rmtree(site.state)
    machines[1].run("echo by hand > /etc/one; dnf -y --disableplugin=versionlock upgrade numactl")
    before = [truth.fingerprint(node) for node in machines]
    done = site.ok("state", "rebuild")
    assert done.stdout.startswith("rebuilt from 3 nodes: 12 step records")
    assert [truth.writes(then, truth.fingerprint(node)) for then, node in zip(before, machines, strict=True)] == [[], [], []]
    assert {entry["plan"] for entry in site.ok("history", "--json").json} == plans
    found = site.run("drift", "--json")
    assert found.code == 2
    assert found.reasons("gpu02") == {"File//etc/one": "drift", "Package/numactl": "drift"}
    assert found.reasons("gpu01") == {}
    site.declare(nodes=GPUS, packages={"numactl": "2.0.18-2.el9"}, files={"/etc/one": "one\n", "/etc/two": "new\n"})
    told = site.run("plan", "--json")
    assert told.reasons("gpu01") == {"File//etc/two": "git-change"}
    assert told.reasons("gpu02")["File//etc/one"] == "drift"
    site.ok("apply")
    assert truth.rpm(machines[1], "numactl") == "2.0.18-2.el9"
    assert [truth.text(node, "/etc/two") for node in machines] == ["new\n"] * 3


def test_a_rebuild_with_a_node_that_is_down_is_incomplete_and_says_so(nodes: Nodes, small: Small) -> None:
    _, second = nodes.fresh(*PAIR)
    site = small(nodes=PAIR, files={"/etc/one": "one\n"})
    site.ok("apply")
    shutil.rmtree(site.state)
    second.inside("systemctl stop sshd.service")
    try:
        done = site.run("state", "rebuild")
    finally:
        second.inside("systemctl start sshd.service")
    assert done.code == 4
    assert "rebuilt from 1 node" in done.stdout
    assert "gpu02: nothing listens on" in done.stdout


def test_damaged_records_are_refused_and_never_guessed(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(files={"/etc/one": "one\n"})
    site.ok("apply")
    journal = site.state / "journal.jsonl"
    whole = journal.read_text()
    journal.write_text(whole + '{"seq": 99, "cut o')  # a crash cut the last line short: it never counted
    assert "0 changes" in site.ok("apply").verdict
    lines = whole.splitlines()
    journal.write_text("\n".join([*lines[:2], "nonsense", *lines[3:]]) + "\n")
    done = site.run("apply")
    assert done.code == 1
    assert f"the journal {journal} is damaged at line 3: move it away and run `reconcile state rebuild`" in done.stderr
    journal.write_text(json.dumps({**json.loads(lines[0]), "version": 99}) + "\n")
    newer = site.run("status")
    assert newer.code == 1
    assert "was written by a newer version (99" in newer.stderr
    journal.rename(journal.with_name("away"))
    site.ok("state", "rebuild")
    node.run("echo by hand > /etc/one")
    assert site.run("drift", "--json").reasons("gpu01") == {"File//etc/one": "drift"}


def test_state_directories_do_not_mix(nodes: Nodes, small: Small) -> None:
    nodes.one()
    site = small(files={"/etc/one": "one\n"})
    site.ok("apply")
    assert site.other("other").ok("status").stdout.startswith("nothing is known yet")
