"""`reconcile env`: builds listed, gone back to and removed, over real node programs; and every call that cannot be carried out.

The builds are folders with a seal and a file: nothing here runs Python from them.
"""

from __future__ import annotations

import base64
import json
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import Garbled, Unreachable
from reconciler.model.lock import Lock, Pinned
from reconciler.node.fragments import builds
from reconciler.transport import program
from tests.cli.conftest import MANIFEST, Run
from tests.nodes.site import Site

STACK = """apiVersion: reconcile/v1
kind: Versions
metadata: {name: stack}
spec: {python: 3.11, environments: {t: {packages: {alpha: 1.0}, lock: t.txt}}}
"""
CLUSTER = MANIFEST + "  versions: stack\n  environments: [t]\n"
LOCK = Lock("sha256:0", "3.11", "x86_64-manylinux_2_34", {"alpha": Pinned("alpha", "1.0", ("0" * 64,))})
WANTED, OLD, OLDER, OLDEST = f"{LOCK.digest[:12]}-1", f"{'b' * 12}-1", f"{'c' * 12}-1", f"{'d' * 12}-1"
NODES = ("gpu01", "gpu02")
DOWN = Unreachable("ConnectTimedOut", host="10.0.0.2", port=22)


@dataclass
class Envs:
    """Two nodes with the same four builds, the wanted one linked, and a repository that declares the environment."""

    run: Run
    site: Site
    git: Callable[..., Path]

    def root(self, node: str) -> Path:
        return self.site.node(node) / "opt/ai/env"

    def build(self, node: str, name: str, made: float) -> Path:
        at = self.root(node) / "t.d" / name
        at.mkdir(parents=True)
        (at / "alpha.py").write_text("VERSION = 1\n")
        lock = LOCK.digest if name == WANTED else name[0] * 64
        seal = {"lock": lock, "python": "3.11", "made": made, "distributions": {}, "files": sorted(builds.files(str(at)))}
        (at / builds.SEAL).write_text(json.dumps(seal))
        return at

    def linked(self) -> list[str]:
        return [(self.root(node) / "t").readlink().name for node in NODES]

    def left(self, node: str) -> set[str]:
        return {p.name for p in (self.root(node) / "t.d").iterdir() if p.is_dir() and not p.name.endswith(builds.HOLDS)}

    def hold(self, node: str, build: str) -> None:
        at = self.root(node) / "t.d" / f"{build}{builds.HOLDS}"
        at.mkdir()
        (at / "job-7").write_text("")

    def error(self, *argv: str) -> str:
        """What is said of a call that ends with 1 and writes nothing on any node."""
        before = [self.site.records(node) for node in NODES]
        code, out, err = self.run(*argv)
        assert (code, out) == (1, ""), (code, out, err)
        assert [self.site.records(node) for node in NODES] == before
        return err.strip().removeprefix("error: ")


@pytest.fixture
def envs(run: Run, site: Site, git: Callable[..., Path]) -> Envs:
    found = Envs(run, site, git)
    git(site_yaml=CLUSTER, stack_yaml=STACK, t_txt=LOCK.text())
    for node in NODES:
        for made, name in enumerate((OLDEST, OLDER, OLD, WANTED), start=1):
            found.build(node, name, float(made))
        (found.root(node) / "t").symlink_to(f"t.d/{WANTED}")
    return found


def test_every_build_is_listed_with_its_state(envs: Envs) -> None:
    (envs.root("gpu02") / "t.d" / OLD / "alpha.py").write_text("by hand\n")
    (envs.root("gpu02") / "t.d" / OLDER / builds.SEAL).unlink()
    envs.hold("gpu02", OLDEST)
    code, out, _ = envs.run("env", "list", "@")
    rows = {tuple(line.split()[:3]): line for line in out.splitlines()[1:]}
    assert code == 0
    assert len(rows) == 8
    assert rows["gpu01", "t", WANTED].endswith("linked")
    assert rows["gpu02", "t", OLD].endswith("damaged (1 files)")
    assert rows["gpu02", "t", OLDER].endswith("half")
    assert rows["gpu02", "t", OLDEST].endswith("used by hold job-7")


def test_a_list_for_programs(envs: Envs) -> None:
    envs.hold("gpu02", OLDEST)
    code, out, _ = envs.run("env", "list", "@", "--json")
    found = json.loads(out)["nodes"]
    assert (code, found["gpu01"]["t"]["linked"]) == (0, WANTED)
    assert found["gpu02"]["t"]["builds"][OLDEST]["users"] == ["hold job-7"]
    assert found["gpu01"]["t"]["builds"][WANTED]["lock"] == LOCK.digest


@pytest.mark.parametrize(("why", "code"), [(DOWN, 4), (Garbled("NotJson"), 3)])
def test_a_list_without_a_node_that_does_not_answer(envs: Envs, why: Exception, code: int) -> None:
    envs.site.down["gpu02"] = why
    got, out, _ = envs.run("env", "list", "@")
    assert (got, "gpu02: " in out, out.count("gpu01")) == (code, True, 4)
    assert json.loads(envs.run("env", "list", "@", "--json")[1])["nodes"]["gpu02"] == {"failure": getattr(why, "reason", "")}


def test_a_list_of_what_cannot_be_read(envs: Envs) -> None:
    (envs.root("gpu02") / "t.d").rename(envs.root("gpu02") / "elsewhere")
    (envs.root("gpu02") / "t.d").write_text("a file\n")
    code, out, _ = envs.run("env", "list", "@")
    assert (code, "gpu02: t: " in out, "Not a directory" in out) == (3, True, True)
    assert json.loads(envs.run("env", "list", "@", "--json")[1])["nodes"]["gpu02"]["t"] == {"unknown": "FragmentFailed"}


def test_back_and_forth_on_all_nodes(envs: Envs) -> None:
    code, out, _ = envs.run("env", "rollback", "t", "@")
    assert (code, out.splitlines()[0], envs.linked()) == (0, "2 changes on 2 nodes", [OLD, OLD])
    held = envs.run("env", "list", "@")[1]
    assert f"gpu01: t: lock {LOCK.digest[:12]} is held back: rolled back by" in held
    code, out, _ = envs.run("env", "rollback", "t", "@", "--to", WANTED, "--json")
    assert (code, json.loads(out)["nodes"]["gpu01"]["end"], envs.linked()) == (0, "converged", [WANTED, WANTED])


def test_back_on_one_node(envs: Envs) -> None:
    assert envs.run("env", "rollback", "t", "@", "--on", "gpu02", "--to", OLDER)[0] == 0
    assert envs.linked() == [WANTED, OLDER]


def test_no_way_back(envs: Envs) -> None:
    said = envs.error("env", "rollback", "t", "@", "--to", f"{'e' * 12}-1")
    assert said == f"gpu01 has no whole build eeeeeeeeeeee-1 of t ({', '.join(sorted((OLD, OLDER, OLDEST, WANTED)))})"
    for name in (OLD, OLDER, OLDEST):
        (envs.root("gpu02") / "t.d" / name / builds.SEAL).unlink()
    assert envs.error("env", "rollback", "t", "@") == "gpu02 has no whole build of t that it could go back to"
    assert envs.linked() == [WANTED, WANTED]


def test_a_damaged_build_is_refused_by_the_node(envs: Envs) -> None:
    (envs.root("gpu02") / "t.d" / OLD / "alpha.py").write_text("by hand\n")
    code, out, _ = envs.run("env", "rollback", "t", "@")
    assert (code, f"build {OLD} is not as it was sealed" in out, envs.linked()) == (3, True, [OLD, WANTED])


def test_old_builds_go_but_no_held_one(envs: Envs) -> None:
    envs.hold("gpu02", OLDEST)
    code, out, _ = envs.run("env", "gc", "t", "@", "--keep", "2")
    assert code == 0
    assert (envs.left("gpu01"), envs.left("gpu02")) == ({WANTED, OLD}, {WANTED, OLD, OLDEST})
    assert f"gpu01: t: removed {OLDER}, {OLDEST}\ngpu02: t: removed {OLDER}\n" in out
    assert envs.linked() == [WANTED, WANTED]


def test_old_builds_go_as_the_manifest_says(envs: Envs) -> None:
    code, out, err = envs.run("env", "gc", "t", "@", "--json")
    assert (code, set(json.loads(out)["nodes"])) == (0, set(NODES))
    assert f"gpu01: t: removed {OLDEST}" in err
    assert envs.left("gpu01") == {WANTED, OLD, OLDER}
    assert "removed" not in envs.run("env", "gc", "t", "@")[1]


def test_a_used_build_stays(envs: Envs) -> None:
    with subprocess.Popen(("sh", "-c", "read x", f"{envs.root('gpu01')}/t.d/{OLDEST}/bin/python"), stdin=subprocess.PIPE):
        assert envs.run("env", "gc", "t", "@", "--keep", "1")[0] == 0
        assert (envs.left("gpu01"), envs.left("gpu02")) == ({WANTED, OLDEST}, {WANTED})


@pytest.mark.parametrize("command", ["rollback", "gc"])
def test_calls_that_cannot_be_meant(envs: Envs, command: str) -> None:
    assert envs.error("env", command, "train", "@") == "no selected node has an environment train (t)"
    assert envs.error("env", command, "t", "@", "--on", "gpu09").startswith("no node of cluster lab is named 'gpu09'")
    assert envs.error("env", command, "t", "@", "--commit", "0" * 40)


@pytest.mark.parametrize("argv", [("gc", "t", "@", "--keep", "0"), ("gc", "@", "--keep", "x"), ("rollback",), ("rolback", "t")])
def test_words_that_are_no_call(envs: Envs, argv: tuple[str, ...]) -> None:
    code, out, err = envs.run("env", *argv)
    assert (code, out, "Traceback" in err) == (1, "", False)
    assert ("--keep" in err) or ("NAME" in err) or ("Did you mean 'rollback'?" in err)


@pytest.mark.parametrize("command", ["rollback", "gc"])
def test_all_nodes_or_none(envs: Envs, command: str) -> None:
    envs.site.down["gpu02"] = DOWN
    said = envs.error("env", command, "t", "@")
    assert said == "what gpu02 has of t could not be read: no answer from 10.0.0.2 port 22"
    assert envs.linked() == [WANTED, WANTED]
    assert envs.run("env", command, "t", "@", "--on", "gpu01")[0] == 0


SHARED = CLUSTER + "  environmentLocation: {type: shared, builder: gpu01}\n"


@pytest.fixture
def mount(envs: Envs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What these nodes say is mounted at their /opt/ai/env, in place of this machine's mounts."""
    envs.git(site_yaml=SHARED)
    places = tmp_path / "mountinfo"
    sent = program.fragment

    def moved(name: str) -> str:
        text = zlib.decompress(base64.b64decode(sent(name))).decode()
        text = text.replace('MOUNTS = "/proc/self/mountinfo"', f"MOUNTS = {str(places)!r}")
        return base64.b64encode(zlib.compress(text.encode())).decode()

    monkeypatch.setattr(program, "fragment", moved)

    def said(*nodes: str) -> None:
        lines = (f"36 35 0:9 / {envs.root(node)} rw - nfs4 server:/env rw\n" for node in nodes)
        places.write_text("".join(lines))

    said(*NODES)
    return said


def test_a_shared_environment_is_gone_back_to_by_its_builder_alone(envs: Envs, mount: Callable[..., None]) -> None:
    said = envs.error("env", "rollback", "t", "@", "--on", "gpu02")
    assert said == "t is shared: gpu01 builds it for all and moves its link; say --on gpu01"
    assert envs.run("env", "rollback", "t", "@")[0] == 0
    assert envs.linked() == [OLD, WANTED]  # two folders stand for one mount: only the builder's is written


def test_what_another_node_uses_of_a_shared_environment_stays(envs: Envs, mount: Callable[..., None]) -> None:
    with subprocess.Popen(("sh", "-c", "read x", f"{envs.root('gpu02')}/t.d/{OLDEST}/bin/python"), stdin=subprocess.PIPE):
        for select in ((), ("--on", "gpu01")):
            assert envs.run("env", "gc", "t", "@", "--keep", "1", *select)[0] == 0
            assert envs.left("gpu01") == {WANTED, OLDEST}


SILENT: dict[str, tuple[Any, str]] = {
    "down": (lambda envs, mount: envs.site.down.update(gpu02=DOWN), "no answer from 10.0.0.2 port 22"),
    "no-mount": (lambda envs, mount: mount("gpu01"), "environments are shared, and nothing is mounted at /opt/ai/env on this node"),
}


@pytest.mark.parametrize("how", SILENT)
def test_nothing_goes_while_a_node_that_shares_it_cannot_say_what_it_uses(envs: Envs, mount: Callable[..., None], how: str) -> None:
    spoil, why = SILENT[how]
    spoil(envs, mount)
    said = envs.error("env", "gc", "t", "@", "--keep", "1", "--on", "gpu01")
    assert said.startswith(f"gpu02 sees the builds of t too, and cannot say which it uses ({why}")
    assert len(envs.left("gpu01")) == 4


def test_a_builder_without_its_mount(envs: Envs, mount: Callable[..., None]) -> None:
    mount("gpu02")
    for command in ("rollback", "gc"):
        said = envs.error("env", command, "t", "@")
        assert said.startswith("what gpu01 has of t could not be read: environments are shared, and nothing is mounted")
    code, out, _ = envs.run("env", "list", "@")
    assert (code, "gpu01: t: environments are shared, and nothing is mounted at /opt/ai/env" in out) == (3, True)
