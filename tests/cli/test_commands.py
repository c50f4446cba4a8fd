"""Whole commands over real node programs: what they print, write and end with. The local transport stands in for ssh."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply import executor, journal
from reconciler.errors import Garbled, Unreachable
from tests.cli.conftest import MANIFEST, Run
from tests.nodes.site import Site


def test_plan_apply_and_nothing_left(run: Run, site: Site) -> None:
    code, out, _ = run("plan", "@")
    assert (code, out.splitlines()[0].partition(":")[0]) == (0, "2 changes on 2 nodes")
    assert run("plan", "@", "--detailed-exitcode")[0] == 2
    code, out, err = run("apply", "@")
    assert code == 0
    assert "2 changes on 2 nodes\n  gpu[01-02]  converged, 1 change" in out
    assert "gpu01: writing /etc/motd ok" in err
    code, out, _ = run("apply", "@")
    assert (code, out.splitlines()[-1]) == (0, "  gpu[01-02]  unchanged")
    assert run("plan", "@", "--detailed-exitcode")[0] == 0
    assert "2 nodes, all as planned" in run("status")[1]
    assert run("history")[1].startswith("1 apply\n")


def test_drift_is_told_from_what_is_pending(run: Run, site: Site, git: Callable[..., Path]) -> None:
    run("apply", "@")
    assert run("drift", "@")[:2] == (0, run("drift", "@")[1])
    (site.root / "gpu02/etc/motd").write_text("by hand\n")
    code, out, _ = run("drift", "@")
    assert (code, out.splitlines()[0]) == (2, "drift: 1 resource")
    assert "-by hand" in out
    git(motd="new\n")
    code, out, _ = run("drift", "@")
    assert (code, out.splitlines()[0]) == (0, "drift: 0 resources, 2 pending (Git changed; see `reconcile plan`)")
    found = json.loads(run("drift", "@", "--json")[1])
    assert (found["drift"], found["changes"]) == (0, 2)


def test_a_plan_as_a_comment(run: Run) -> None:
    code, out, _ = run("plan", "@", "--markdown", "--detailed-exitcode")
    assert code == 2
    assert out.startswith("<!-- reconcile plan lab -->\n### reconcile: 2 changes on 2 nodes\n")
    code, _, err = run("plan", "@", "--markdown", "--json")
    assert code == 1
    assert "--markdown and --json cannot be said together" in err


def test_apply_as_a_stream_of_events(run: Run) -> None:
    code, out, _ = run("apply", "@", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [e["event"] for e in events]
    assert (code, kinds[0], kinds[-1]) == (0, "observing", "finished")
    assert {"planned", "wave-started", "step-started", "step-finished", "node-finished"} <= set(kinds)
    assert {n: o["end"] for n, o in events[-1]["nodes"].items()} == {"gpu01": "converged", "gpu02": "converged"}


def test_a_saved_plan_once(run: Run, site: Site) -> None:
    assert run("plan", "@", "--out", "p.json")[0] == 0
    assert Path("p.json").stat().st_mode & 0o777 == 0o600
    code, out, _ = run("apply", "p.json")
    assert (code, out.splitlines()[-1]) == (0, "  gpu[01-02]  converged, 1 change")
    code, _, err = run("apply", "p.json")
    assert code == 5
    assert "was carried out already" in err
    name = json.loads(Path("p.json").read_text())["id"]
    lines = run("history", name)[1].splitlines()
    assert "node-finished" in [line.split()[1] for line in lines if "node=gpu01" in line]
    assert json.loads(run("history", name, "--json")[1])[0]["plan"] == name


def test_a_saved_plan_that_does_not_fit(run: Run, site: Site, git: Callable[..., Path]) -> None:
    run("plan", "@", "--out", "p.json")
    (site.root / "gpu01/etc/motd").write_text("by hand\n")
    code, _, err = run("apply", "p.json")
    assert code == 5
    assert "gpu01: File//etc/motd was absent, is now {" in err
    git(motd="new\n")
    code, _, err = run("apply", "p.json")
    assert code == 5
    assert "commit was" in err
    code, out, _ = run("apply", "p.json", "--json")
    assert (code, json.loads(out.splitlines()[-1])["error"]["reason"]) == (5, "Moved")


def test_an_interruption(run: Run, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "WAIT", 0.1)

    def before(name: str, op: str, fields: Mapping[str, Any]) -> None:
        if op == "begin" and name == "gpu01":
            os.kill(os.getpid(), signal.SIGINT)

    site.before = before
    former = signal.getsignal(signal.SIGINT)
    code, out, err = run("apply", "@")
    assert code == 130
    assert "no further step begins" in err
    assert "gpu02  interrupted" in out
    assert signal.getsignal(signal.SIGINT) is former
    records = journal.read(Path("controller/journal.jsonl"))
    assert records[-1]["type"] in ("apply-finished", "converged")
    site.before = None
    assert run("apply", "@")[0] == 0


def test_a_second_interruption_ends_at_once(run: Run, site: Site) -> None:
    def before(name: str, op: str, fields: Mapping[str, Any]) -> None:
        if op == "begin":
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
                site.slept.wait(0.2)

    site.before = before
    assert run("apply", "@")[0] == 130


def test_nodes_that_fail_in_their_own_ways(run: Run, site: Site) -> None:
    site.down["gpu02"] = Unreachable("ConnectTimedOut", host="10.0.0.2", port=22)
    code, out, _ = run("plan", "@", "--on", "gpu[01-02]")
    assert code == 4
    assert "gpu02: no answer from 10.0.0.2 port 22" in out
    assert run("apply", "@")[0] == 4
    assert "1 of 2 nodes not as declared" in run("status")[1]
    assert run("snapshot", "take", "@")[0] == 4
    site.down["gpu02"] = Garbled("NotJson", detail="ValueError")
    assert (run("plan", "@")[0], run("snapshot", "take", "@")[0]) == (3, 3)


def test_another_controller_on_the_same_folder(run: Run) -> None:
    run("plan", "@")
    with common_lock():
        code, _, err = run("apply", "@")
        assert (code, f"pid {os.getpid()}" in err) == (6, True)
        code, _, err = run("plan", "@")
        assert (code, "not noted in the status" in err) == (0, True)


def common_lock() -> Any:
    from reconciler.apply.statedir import StateDir

    return StateDir(Path("controller")).locked()


def test_snapshots_are_taken_listed_and_shown(run: Run, site: Site) -> None:
    code, out, _ = run("snapshot", "take", "@", "--message", "before the change")
    assert (code, out.startswith("recorded as ")) == (0, True)
    assert run("snapshot", "take", "@")[1] == "nothing changed since the last snapshot\n"
    run("apply", "@")
    listed = json.loads(run("snapshot", "list", "--json")[1])
    assert [e["message"].partition(" ")[0] for e in listed] == ["apply", "before"]
    assert run("snapshot", "list")[1].startswith("2 snapshots\n")
    shown = json.loads(run("snapshot", "show", "latest", "gpu01")[1])
    assert shown["lab/gpu01"]["resources"]["File//etc/motd"]["type"] == "file"
    old = json.loads(run("snapshot", "show", listed[1]["id"])[1])
    assert old["lab/gpu02"]["resources"]["File//etc/motd"] == {"absent": "NoSuchFile"}
    assert json.loads(run("snapshot", "take", "@", "--json")[1]) == {"commit": None, "failures": {}}


def test_a_lost_state_directory_is_rebuilt_from_the_nodes(run: Run, site: Site) -> None:
    run("apply", "@")
    assert run("state", "rebuild", "@")[0] == 1
    Path("controller/journal.jsonl").unlink()
    Path("controller/state.git").rename("mirror.git")
    code, out, _ = run("state", "rebuild", "@", "--mirror", "mirror.git")
    assert (code, out) == (0, "rebuilt from 2 nodes: 2 step records\n")
    assert run("snapshot", "list")[1].startswith("1 snapshot\n")
    assert run("history")[1].startswith("1 apply\n")
    (site.root / "gpu02/etc/motd").write_text("by hand\n")
    assert run("drift", "@")[0] == 2


REBUILDS: list[tuple[Exception | None, Any, int, str]] = [
    (Unreachable("NoRoute", host="10.0.0.2"), None, 4, "no route to 10.0.0.2"),
    (Garbled("NotJson"), None, 3, "its answer cannot be read"),
    (None, {"steps": [{}], "inventory": {}, "lease": None}, 3, "its answer has not the agreed form"),
]


@pytest.mark.parametrize(("down", "answer", "expected", "said"), REBUILDS)
def test_a_node_that_cannot_be_rebuilt_from(
    run: Run, site: Site, down: Exception | None, answer: Any, expected: int, said: str
) -> None:
    if down:
        site.down["gpu02"] = down
    site.before = lambda name, op, fields: answer if name == "gpu02" and op == "records" else None
    code, out, _ = run("state", "rebuild", "@")
    assert (code, out.splitlines()[0]) == (expected, "rebuilt from 1 node: 0 step records")
    assert said in out
    Path("controller/journal.jsonl").unlink()
    assert json.loads(run("state", "rebuild", "@", "--json")[1])["nodes"] == 1


@pytest.mark.parametrize("mirror", ["-x", "--upload-pack=touch x", "/nonexistent", "ext::sh -c id"])
def test_a_mirror_that_is_none(run: Run, mirror: str) -> None:
    code, _, err = run("state", "rebuild", "@", "--mirror", mirror)
    assert code == 1
    assert "internal error" not in err


def test_manifests_that_are_not_right_are_told_before_any_node_is_asked(run: Run, git: Callable[..., Path], site: Site) -> None:
    git(site_yaml=MANIFEST.replace("rollout", "rolout"))
    for argv in (("plan", "@"), ("apply", "@"), ("drift", "@"), ("snapshot", "take", "@"), ("state", "rebuild", "@")):
        code, out, err = run(*argv)
        assert (code, out) == (1, "")
        assert "site.yaml:9:3" in err
    assert site.channels == {}
    assert run("validate", "@")[0] == 1


def test_uncommitted_changes_are_told(run: Run, git: Callable[..., Path]) -> None:
    (git() / "motd").write_text("not committed\n")
    code, _, err = run("plan", "@")
    assert (code, "uncommitted changes are not part of this: motd" in err) == (0, True)
    code, out, err = run("plan", "@", "--worktree")
    assert (code, "uncommitted changes" in out, err) == (0, True, "")
