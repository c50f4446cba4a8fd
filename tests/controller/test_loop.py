"""The loop over real node programs and a real repository: what it does by itself, and what it waits for a person to say."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from typing import Any

import pytest

from reconciler.controller.conditions import Status
from reconciler.errors import LockHeld
from tests.controller.site import World, manifest, turn, until


def test_a_commit_reaches_the_nodes_and_a_second_look_writes_nothing(world: World) -> None:
    with world.running() as process:
        world.wait("Ready")
        assert world.motd("gpu01") == world.motd("gpu02") == "one\n"
        steps = len(world.records("intent"))
        world.ask("wake")
        second = world.commit({"motd": "two\n"})
        until(lambda: world.motd("gpu02") == "two\n")
        world.wait("Ready")
        assert len(world.records("intent")) == steps + 2
        assert [r["commit"] for r in world.records("revision-taken")][-1] == second
        until(lambda: [r["state"] for r in world.records("revision") if r["commit"] == second][-1:] == ["applied"])
        ready = process.loop.board.subjects()["node/gpu01"]
        assert ready.generation == ready.conditions["Ready"].observed_generation == 2


def test_broken_manifests_change_nothing_and_drift_is_still_healed(world: World) -> None:
    with world.running(drift_interval=1.0) as process:
        world.wait("Ready")
        good = world.records("revision-taken")[-1]["commit"]
        bad = world.commit({"site.yaml": manifest(spec="  tier: x\n")})
        world.wait("Stalled")
        status, reason = world.condition(process, "cluster", "Stalled")
        assert (status, reason) == (Status.TRUE, "ManifestsWrong")
        assert [r["commit"] for r in world.records("revision-taken")] == [good]
        assert [(r["commit"], r["reason"]) for r in world.records("revision-refused")] == [(bad, "ManifestsWrong")]
        (world.site.node("gpu01") / "etc/motd").write_text("by hand\n")
        until(lambda: world.motd("gpu01") == "one\n", "healing")
        _, ended = world.ask("push", repository=str(world.repo), ref="refs/heads/main", old=good, new=bad)
        assert (ended["exit"], ended["reason"]) == (1, "ManifestsWrong")
        assert ended["data"]["problems"][0]["file"] == "site.yaml"
        world.commit({"site.yaml": manifest(), "motd": "two\n"})
        world.wait("Stalled=False")
        until(lambda: world.motd("gpu01") == "two\n")


REFUSED = {
    "rewritten history": ("NonFastForward", {"motd": "new\n"}, True),
    "nothing declared": ("EmptiedState", {"site.yaml": "# nothing\n"}, False),
}


@pytest.mark.parametrize(("reason", "files", "amend"), REFUSED.values(), ids=REFUSED)
def test_what_a_person_has_to_mean_waits_until_it_is_said(world: World, reason: str, files: dict[str, str], amend: bool) -> None:
    with world.running() as process:
        world.wait("Ready")
        commit = world.commit(files, amend=amend)
        world.wait("Stalled")
        assert world.condition(process, "cluster", "Stalled") == (Status.TRUE, reason)
        assert world.ask("approve", plan="0" * 12)[1]["reason"] == "NothingToApprove"
        assert world.records("revision-taken")[-1]["commit"] != commit
        assert world.ask("approve", plan=commit[:10])[1]["reason"] == "RevisionApproved"
        world.wait("Stalled=False")
        until(lambda: world.records("revision-taken")[-1]["commit"] == commit)
        assert world.records("revision-approved")[0]["by"]
        until(lambda: process.loop.running[-1].commit == commit and process.loop.running[-1].exit == 0)
    expected = "new\n" if amend else "one\n"  # a node that is no longer declared is left as it is
    assert world.motd("gpu01") == expected


def test_a_branch_that_goes_and_a_repository_that_goes_change_nothing(world: World) -> None:
    with world.running(drift_interval=1.0) as process:
        world.wait("Ready")
        world.git("checkout", "--quiet", "--detach")
        world.git("branch", "-D", "main")
        world.wait("Stalled")
        assert world.condition(process, "cluster", "Stalled") == (Status.TRUE, "RefGone")
        world.git("branch", "main")
        world.wait("Stalled=False")
        shutil.move(world.repo, world.folder / "away")
        until(lambda: world.condition(process, "cluster", "Reconciling") == (Status.TRUE, "Retrying"))
        assert world.condition(process, "cluster", "Stalled")[0] is Status.FALSE
        (world.site.node("gpu01") / "etc/motd").write_text("by hand\n")
        until(lambda: world.motd("gpu01") == "one\n", "healing")
        shutil.move(world.folder / "away", world.repo)
        until(lambda: world.condition(process, "cluster", "Reconciling")[0] is Status.FALSE)


def test_a_url_is_mirrored_and_a_server_that_is_gone_changes_nothing(world: World) -> None:
    url = f"file://{world.repo}"
    with world.running(repository=url) as process:
        world.wait("Ready")
        second = world.commit({"motd": "two\n"})
        until(lambda: world.motd("gpu02") == "two\n")
        shutil.move(world.repo, world.folder / "away")
        until(lambda: world.condition(process, "cluster", "Reconciling")[1] == "Retrying")
    with world.running(repository=url) as process:  # restarted while the server is gone
        until(lambda: bool(process.loop.running) and process.loop.running[-1].commit == second)
        shutil.move(world.folder / "away", world.repo)
        world.commit({"motd": "three\n"}, amend=True)
        world.ask("wake")
        world.wait("Stalled")
        assert world.condition(process, "cluster", "Stalled") == (Status.TRUE, "NonFastForward")
    assert world.motd("gpu02") == "two\n"


def test_an_empty_repository_is_waited_for(world: World) -> None:
    bare = world.folder / "bare.git"
    subprocess.run(("git", "init", "--quiet", "--bare", "-b", "main", str(bare)), check=True)
    with world.running(repository=str(bare)) as process:
        until(lambda: "cluster" in process.loop.board.subjects())
        assert world.condition(process, "cluster", "Reconciling") == (Status.TRUE, "Retrying")
        world.git("push", "--quiet", str(bare), "main")
        world.wait("Ready")


def test_observe_writes_nothing_and_says_what_differs(world: World) -> None:
    world.commit({"site.yaml": manifest(spec="  policy: {default: observe}\n")})
    with world.running() as process:
        until(lambda: [r["state"] for r in world.records("revision")][-1:] == ["held"])
        assert world.condition(process, "node/gpu01", "Ready") == (Status.FALSE, "PolicyObserve")
        assert world.records("lease") == []
        assert not (world.site.node("gpu01") / "etc/motd").exists()


def test_a_plan_that_needs_approval_waits_and_exactly_that_is_carried_out(world: World) -> None:
    world.commit({"site.yaml": manifest(rollout=", approve: [File]")})
    with world.running() as process:
        world.wait("Stalled", "gpu01", "gpu02")
        assert world.condition(process, "node/gpu01", "Ready") == (Status.FALSE, "WaitingForApproval")
        first = world.ask("status")[1]["data"]["approval"]
        assert (first["nodes"], first["by"]) == (["gpu01", "gpu02"], "")
        events, ended = world.ask("waiting")
        assert (ended["reason"], events[0]["plan"]["id"]) == ("Waiting", first["plan"])
        turn(process)  # lets the same plan wait
        assert world.ask("status")[1]["data"]["approval"]["plan"] == first["plan"]
        (world.site.node("gpu01") / "etc/motd").write_text("by hand\n")
        assert world.ask("approve", plan=first["plan"])[1]["reason"] == "Approved"
        until(lambda: bool(world.records("approval-stale")), "the refusal of a stale plan")
        until(lambda: (world.ask("status")[1]["data"]["approval"] or first)["plan"] != first["plan"])
        assert world.motd("gpu01") == "by hand\n"
        assert world.ask("approve", plan=first["plan"])[1]["reason"] == "NothingToApprove"
        second = world.ask("status")[1]["data"]["approval"]["plan"]
        assert world.ask("approve", plan=second)[1]["exit"] == 0
        world.wait("Ready")
        assert world.motd("gpu01") == world.motd("gpu02") == "one\n"
        assert [r["plan"] for r in world.records("apply-started") if r["saved"]] == [second]


def test_a_suspended_node_is_left_alone_never_green_and_comes_back_by_itself(world: World) -> None:
    with world.running() as process:
        world.wait("Ready")
        assert world.ask("suspend", scope=["gpu09"], reason="x", until=time.time() + 60)[1]["reason"] == "NotSuspended"
        assert world.ask("suspend", scope=["gpu01"], reason=" ", until=time.time() + 60)[1]["reason"] == "NotSuspended"
        assert world.ask("suspend", scope=["gpu01"], reason="x", until=time.time() - 1)[1]["reason"] == "NotSuspended"
        world.ask("suspend", scope=["gpu01"], reason="a disk is changed", until=time.time() + 3600)
        world.wait("Suspended", "gpu01")
        assert world.condition(process, "node/gpu01", "Ready") == (Status.FALSE, "NodeSuspended")
        world.commit({"motd": "two\n"})
        until(lambda: world.motd("gpu02") == "two\n")
        world.wait("Ready", "gpu02")
        assert world.motd("gpu01") == "one\n"
        world.ask("resume", scope=["gpu01"])
        world.wait("Ready")
        assert world.motd("gpu01") == "two\n"
        world.ask("suspend", reason="soon over", until=time.time() + 1.5)
        world.wait("Suspended", "gpu01", "gpu02")
        world.wait("Ready")
        assert len(world.records("resumed")) == 1


def test_what_somebody_else_keeps_changing_back_is_left_alone(world: World) -> None:
    with world.running() as process:
        world.wait("Ready")
        for _ in range(3):
            (world.site.node("gpu01") / "etc/motd").write_text("by hand\n")
            turn(process)
            assert world.motd("gpu01") == "one\n"
        (world.site.node("gpu01") / "etc/motd").write_text("by hand\n")
        turn(process)
        world.wait("Stalled", "gpu01")
        stalled = process.loop.board.subjects()["node/gpu01"].conditions["Stalled"]
        assert stalled.reason == "Flapping"
        assert stalled.data["times"] == 3
        assert stalled.data["before"] != stalled.data["after"]
        assert world.condition(process, "node/gpu01", "Drifted") == (Status.TRUE, "NodeMoved")
        assert world.motd("gpu01") == "by hand\n"
        world.ask("resume", scope=["gpu01"])
        world.wait("Ready")
        assert world.motd("gpu01") == "one\n"


def test_a_newer_commit_pre_empts_between_two_steps(world: World) -> None:
    for name in ("gpu01", "gpu02"):
        (world.site.node(name) / "etc/hostname").write_text("other\n")
        (world.site.node(name) / "slow").touch()
    with world.running() as process:
        until(lambda: bool(world.site.commands("gpu01")), "the first step")
        newest = world.commit({"motd": "two\n"})
        until(lambda: process.loop.turns is not None and bool(process.loop._stop), "the wish to stop")
        (world.site.node("gpu01") / "slow").unlink()
        (world.site.node("gpu02") / "slow").unlink()
        world.wait("Ready")
        until(lambda: process.loop.running[-1].commit == newest and process.loop.running[-1].exit == 0)
        assert world.motd("gpu01") == "two\n"
        assert [r["state"] for r in world.records("revision") if r["commit"] != newest] == ["pending", "superseded"]
        assert len(world.site.commands("gpu01")) == 1  # no step was cut, none was done twice


def test_another_controller_means_no_action_anywhere(world: World) -> None:
    with world.running():
        world.wait("Ready")
    world.site.change_lease("gpu02", holder="somebody-else", token=99)
    before = world.site.lease("gpu02")
    boot = before.get("boot_id")
    assert boot is not None
    with world.running() as process:
        world.commit({"motd": "two\n"})
        world.wait("Stalled")
        assert world.condition(process, "cluster", "Stalled") == (Status.TRUE, "OtherController")
        assert world.motd("gpu01") == world.motd("gpu02") == "one\n"
        with pytest.raises(LockHeld, match="StateDirLocked"), world.running():
            raise AssertionError("two at once")


def test_channels_are_kept_and_opened_again_when_they_died(world: World) -> None:
    with world.running() as process:
        world.wait("Ready")
        kept = world.site.channels["gpu02"]
        world.site.channels["gpu01"].close()
        turn(process)
        assert world.site.channels["gpu02"] is kept
        world.commit({"site.yaml": manifest(nodes=("gpu01",))})
        until(lambda: "node/gpu02" not in process.loop.board.subjects())
        assert set(process.loop.turns.pool._channels) == {"gpu01"}


def test_a_hundred_pushes_come_to_few_turns_and_every_pusher_hears_of_it(world: World) -> None:
    with world.running(interval=60.0) as process:
        world.wait("Ready")
        ends: list[Any] = []

        def push(old: str, new: str) -> None:
            ends.append(world.ask("push", repository=str(world.repo), ref="refs/heads/main", old=old, new=new)[1])

        before, threads = world.git("rev-parse", "HEAD"), []
        for number in range(50):
            after = world.commit({"motd": f"{number}\n"})
            threads.append(threading.Thread(target=push, args=(before, after)))
            threads[-1].start()
            before = after
        for thread in threads:
            thread.join(60)
        assert len(ends) == 50
        assert [ended for ended in ends if ended["reason"] not in ("", "Preempted")] == []
        world.wait("Ready")
        until(lambda: world.motd("gpu02") == "49\n")
        assert len(process.loop.running) < 40


def test_a_pusher_that_leaves_stops_nothing_and_may_come_back(world: World) -> None:
    from reconciler.controller import protocol

    with world.running() as process:
        world.wait("Ready")
        (world.site.node("gpu01") / "slow").touch()
        (world.site.node("gpu01") / "etc/hostname").write_text("other\n")
        new = world.commit({"motd": "two\n"})
        about = {"repository": str(world.repo), "ref": "refs/heads/main", "old": "0" * 40, "new": new}
        messages = protocol.ask(world.socket, {"op": "push", **about})
        assert next(messages)["event"]["commit"] == new
        messages.close()  # type: ignore[attr-defined]
        ended = world.ask("push", **about, detach_s=0.1)[1]
        assert (ended["exit"], ended["reason"]) == (0, "Detached")
        (world.site.node("gpu01") / "slow").unlink()
        events, ended = world.ask("follow", id=ended["data"]["id"])
        assert (ended["exit"], events[-1]["event"]) == (0, "turn-ended")
        assert world.motd("gpu01") == "two\n"
        assert world.ask("follow", id="nothing")[1]["reason"] == "NoSuchTurn"
        assert process.loop.running[-1].exit == 0
