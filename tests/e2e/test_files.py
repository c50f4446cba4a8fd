"""Files of every legal name and content, and disks that have no room."""

from __future__ import annotations

import hashlib
import shlex

import pytest

from lab import LabNode
from tests.e2e import truth
from tests.e2e.conftest import Small
from tests.e2e.site import File
from tests.e2e.truth import Nodes

LONG = "n" * 255
HOSTILE: dict[str, str | bytes] = {
    "/etc/h/..data": "dots in front\n",
    "/etc/h/.hidden": "hidden\n",
    "/etc/h/a.b.c+d@e_f-g": "every allowed sign\n",
    "/etc/h/x@": "x\n",
    "/etc/h/x-": "x\n",
    "/etc/h/0": "x\n",
    "/etc/h/x.new": "x\n",
    "/etc/h/_": "x\n",
    "/etc/h/...": "three dots\n",
    "/etc/h/UPPER": "upper\n",
    "/etc/h/upper": "lower\n",
    f"/etc/h/{LONG}": "the longest name\n",
    "/etc/h/" + "/".join("d" * 20 for _ in range(40)): "deep\n",
    "/etc/h/.motd.reconcile": "named as a temporary file of ours would be\n",
    "/etc/h/motd": "beside it\n",
    "/etc/h/x.json": '{"op": "begin", "id": 1}\n',
    "/etc/h/empty": "",
    "/etc/h/one": "x",
    "/etc/h/no-newline": "no newline at the end",
    "/etc/h/crlf": "one\r\ntwo\r\n",
    "/etc/h/nul": b"\x00\x00\x00",
    "/etc/h/all-bytes": bytes(range(256)) * 4,
    "/etc/h/not-utf8": b"\xff\xfe\xfa latin \xe4\xf6\xfc\n",
    "/etc/h/unicode": "日本語 🚀 \u202e reversed \u2028 separator\n",
    "/etc/h/escape": "\x1b[2J\x1b]0;title\x07\n",
    "/etc/h/shell": "$(touch /etc/h/pwned1) `touch /etc/h/pwned2` ; touch /etc/h/pwned3\n",
    "/etc/h/template": "{{ 7 * 7 }} ${HOME} %n %s \\n\n",
    "/etc/h/yaml": "--- !!python/object/apply:os.system ['touch /etc/h/pwned4']\n",
    "/etc/h/blanks": "   \n\t\n",
    "/etc/h/lines": "\n" * 5000,
}


def content(said: str | bytes) -> bytes:
    return said.encode() if isinstance(said, str) else said


SUMS = {path: hashlib.sha256(content(said)).hexdigest() for path, said in HOSTILE.items()}


def sums(node: LabNode) -> dict[str, str]:
    """Each file below /etc/h and the digest of its content."""
    lines = node.run("find /etc/h -type f -exec sha256sum {} +").stdout.splitlines()
    return {path: digest for digest, path in (line.split(maxsplit=1) for line in lines)}


def sha(node: LabNode, path: str) -> str:
    return node.run(f"sha256sum < {shlex.quote(path)}").stdout.split()[0]


def test_hostile_names_and_contents_arrive_byte_for_byte(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(files={path: File(said) for path, said in HOSTILE.items()})
    done = site.ok("apply")
    assert f"{len(HOSTILE)} changes on 1 node" in done.verdict
    assert "\x1b" not in done.text
    assert "\u202e" not in done.text
    assert sums(node) == SUMS
    assert node.run("find /etc/h -type f ! -perm 644 -o -type f ! -user root -o -type f ! -group root").stdout == ""
    assert node.run("find /etc/h -type f | wc -l").stdout.strip() == str(len(HOSTILE)), "nothing beside them"
    assert "0 changes" in site.ok("apply").verdict
    node.run('find /etc/h -type f -exec sh -c \'printf "\\033[31m spoilt $(x) \\342\\200\\256" > "$1"\' - {} \\;')
    found = site.run("drift")
    assert found.code == 2
    assert found.verdict == f"drift: {len(HOSTILE)} resources"
    assert "\x1b" not in found.text
    assert "\u202e" not in found.text
    site.ok("apply")
    assert sums(node) == SUMS


def test_sizes_modes_and_owners(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    big = bytes(i * i % 251 for i in range(1 << 20))
    site = small(
        files={
            "/srv/site/largest": File(big),
            "/etc/site/secret": File("hidden from others\n", mode="0600"),
            "/etc/site/tool": File("#!/bin/sh\n", mode="0755"),
            "/etc/site/special": File("x\n", mode="4755"),
            "/etc/site/none": File("x\n", mode="0000"),
            "/home/ops/theirs": File("x\n", mode="640", owner="ops", group="ops"),
            "/run/site": "in memory\n",
        }
    )
    shown = site.ok("plan")
    assert "hidden from others" not in shown.text
    site.ok("apply")
    assert sha(node, "/srv/site/largest") == hashlib.sha256(big).hexdigest()
    found = {
        path: truth.stat(node, path).split()[:3]
        for path in ("/etc/site/secret", "/etc/site/tool", "/etc/site/special", "/etc/site/none")
    }
    assert [found[path][0] for path in found] == ["600", "755", "4755", "0"]
    assert truth.stat(node, "/home/ops/theirs") == "640 ops ops regular file"
    assert "0 changes" in site.ok("apply").verdict
    node.run("echo spoilt-secret > /etc/site/secret")
    assert "spoilt-secret" not in site.run("drift").text
    assert "hidden from others" not in (site.state / "journal.jsonl").read_text()
    site.ok("apply")
    # links to the file, and open readers of it, keep the old one
    node.run("ln /etc/site/tool /root/second; echo spoilt > /etc/site/tool")
    site.ok("apply")
    assert (truth.text(node, "/etc/site/tool"), truth.text(node, "/root/second")) == ("#!/bin/sh\n", "spoilt\n")


def test_more_than_a_mebibyte_is_refused_before_any_node_is_asked(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(files={"/etc/large": File(b"x" * ((1 << 20) + 1))})
    done = site.run("apply")
    assert done.code == 1
    assert "1048576" in done.text or "1 MiB" in done.text
    assert truth.stat(node, "/etc/large") == "none"
    assert truth.lease(node) is None


def test_what_stands_in_the_way_is_held_and_left_alone(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    node.run("mkdir -p /etc/w/directory/full /etc/w/real; mkfifo /etc/w/fifo; echo x > /etc/w/file; ln -s real /etc/w/linked")
    site = small(
        files={
            "/etc/w/directory": "x\n",
            "/etc/w/fifo": "x\n",
            "/etc/w/file/below": "x\n",
            "/etc/w/user": File("x\n", owner="nobody-here"),
            "/etc/w/group": File("x\n", group="no-group-here"),
            "/etc/w/linked/through": "x\n",
            "/etc/w/good": "good\n",
        }
    )
    found = site.run("plan", "--json", "--detailed-exitcode")
    assert found.reasons("gpu01") == {
        "File//etc/w/directory": "NotAFile",
        "File//etc/w/fifo": "NotAFile",
        "File//etc/w/file/below": "ParentNotDirectory",
        "File//etc/w/user": "NoSuchUser",
        "File//etc/w/group": "NoSuchGroup",
        "File//etc/w/linked/through": "git-change",
        "File//etc/w/good": "git-change",
    }
    done = site.run("apply")
    assert done.code == 2
    for words in ("a directory stands there", "a special stands there", "no user nobody-here", "no group no-group-here"):
        assert words in done.stdout
    assert (truth.text(node, "/etc/w/good"), truth.text(node, "/etc/w/real/through")) == ("good\n", "x\n")
    assert truth.stat(node, "/etc/w/fifo").endswith("fifo")
    assert truth.text(node, "/etc/w/file") == "x\n"


def test_a_full_disk_keeps_the_old_file_and_is_healed_later(nodes: Nodes, small: Small) -> None:
    node = nodes.one()
    site = small(files={"/etc/full/big": File(b"old" * 1000)})
    site.ok("apply")
    site.declare(files={"/etc/full/big": File(b"new" * 200_000)})
    node.fill()
    done = site.run("apply")
    assert done.code == 3
    assert "No space left on device" in done.stdout
    assert sha(node, "/etc/full/big") == hashlib.sha256(b"old" * 1000).hexdigest()
    assert node.run("ls -A /etc/full").stdout == "big\n", "no temporary file stays"
    assert node.run("find /var/lib/reconcile -name '*.new'").stdout == ""
    assert site.run("plan").code == 0, "looking still works"
    node.unfill()
    site.ok("apply")
    assert sha(node, "/etc/full/big") == hashlib.sha256(b"new" * 200_000).hexdigest()
    assert "0 changes" in site.ok("apply").verdict


def test_a_disk_that_fills_up_while_a_file_is_written(nodes: Nodes, small: Small) -> None:
    """Room for our records and not for the file."""
    node = nodes.one()
    site = small(files={"/etc/full/big": "old\n"})
    site.ok("apply")
    site.declare(files={"/etc/full/big": File(b"new" * 300_000)})
    room = 256 << 10
    node.run(f"head -c {room} /dev/zero > /root/room; sync")
    node.fill()
    node.run("rm /root/room")
    done = site.run("apply")
    assert done.code == 3
    assert "No space left on device" in done.stdout
    assert "writing /etc/full/big failed" in done.stderr
    assert truth.text(node, "/etc/full/big") == "old\n"
    assert node.run("ls -A /etc/full").stdout == "big\n", "no temporary file stays"
    assert truth.steps(node)[-1]["state"] == "failed"
    node.unfill()
    site.ok("apply")
    assert truth.steps(node)[-1]["state"] == "done"


HOSTILE_YAML = {
    "owner": 'files: {/etc/x: {source: files/x, owner: ";touch /tmp/pwned"}}',
    "group": 'files: {/etc/x: {source: files/x, group: "$(touch /tmp/pwned)"}}',
    "mode": 'files: {/etc/x: {source: files/x, mode: "0644; touch /tmp/pwned"}}',
    "path": 'files: {"/etc/x; touch /tmp/pwned": {source: files/x}}',
    "path upwards": "files: {/etc/../tmp/pwned: {source: files/x}}",
    "source": 'files: {/etc/x: {source: "../../../etc/shadow"}}',
    "package": 'packages: {"tmux; touch /tmp/pwned": present}',
    "option as package": 'packages: {"--installroot=/tmp/pwned": present}',
    "version": 'packages: {tmux: "1.0 `touch /tmp/pwned`"}',
    "new line in a version": 'packages: {tmux: "1.0\\nrun\\ninstall telnet"}',
    "node name": 'nodes: {"gpu01; touch /tmp/pwned": {address: 127.0.0.1}}',
    "address": 'nodes: {gpu09: {address: "127.0.0.1 -oProxyCommand=touch /tmp/pwned"}}',
    "user": 'ssh: {user: "root -oProxyCommand=x"}',
    "jump host": 'ssh: {proxyJump: "-oProxyCommand=touch /tmp/pwned"}',
    "mirror": 'mirrors: {nvidia: "http://x/\\n[evil]\\nbaseurl=http://y"}',
}


@pytest.mark.parametrize("where", HOSTILE_YAML)
def test_hostile_words_are_refused_where_they_stand(nodes: Nodes, small: Small, where: str) -> None:
    site = small(files={"/etc/x": "x\n"})
    text = (site.repo / "site.yaml").read_text()
    key = HOSTILE_YAML[where].partition(":")[0]
    kept = "\n".join(_without(key, text))
    (site.repo / "site.yaml").write_text(f"{kept}\n  {HOSTILE_YAML[where]}\n")
    site.commit()
    node = nodes.lab.nodes["gpu01"]
    leases = truth.lease(node)
    for command in ("validate", "plan", "apply"):
        done = site.run(command)
        assert done.code == 1, done.text
        assert "site.yaml:" in done.text
    assert node.run("ls /tmp/pwned", check=False).returncode != 0
    assert truth.lease(node) == leases


def _without(key: str, text: str) -> list[str]:
    """The lines of a manifest less the block of one key of its spec."""
    out, inside = [], False
    for line in text.splitlines():
        if line.startswith("  ") and not line.startswith("   "):
            inside = line.startswith(f"  {key}:")
        if not inside:
            out.append(line)
    return out
