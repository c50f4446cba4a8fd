"""Pushes over real ssh: a good one is on the nodes before it ends; a bad, a rewritten and an unsigned one change nothing.

Prints each pusher's terminal. The speed lines are medians of several pushes: to the first step on a node and to the plan in the
terminal, less what the same push takes to a repository without hooks.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from acceptance.claims import Claims, fresh_lab, say
from lab import Lab
from tests.e2e import truth
from tests.e2e.origin import Origin, Pushed, controlled, origin, server
from tests.e2e.site import Site

THREE = ("gpu01", "gpu02", "gpu03")
MOTD = "/etc/motd"
PUSHES = 5
FIRST_ACTION, PLAN = 1.0, 3.0  # seconds: the figures


def motds(lab: Lab) -> set[str]:
    return {truth.text(lab.nodes[name], MOTD) for name in THREE}


def shown(title: str, pushed: Pushed) -> Pushed:
    say(f"{title} (exit {pushed.code}, {pushed.seconds:.1f} s)")
    print(pushed.terminal, end="")
    return pushed


def good(claims: Claims, lab: Lab, found: Origin) -> None:
    for content in ("one\n", "two\n"):
        found.site.declare(nodes=THREE, files={MOTD: content})
        pushed = shown("a good push", found.push())
        claims.check("it is taken", pushed.code == 0)
        claims.check("its terminal shows that it is valid", "remote: valid: 1 Cluster, 3 nodes" in pushed.terminal)
        claims.check("... the plan", "remote: 3 changes on 3 nodes: e2e at " in pushed.terminal)
        claims.check("... and how each node ended", pushed.terminal.count("converged, 1 change") >= 1)
        claims.check("what it declares is on the nodes when it ends", motds(lab) == {content}, motds(lab))


def refused(claims: Claims, lab: Lab, found: Origin) -> None:
    site, before = found.site, found.site.git("rev-parse", "HEAD")
    site.replace("files:", "fles:")
    pushed = shown("a push of a broken manifest", found.push())
    claims.check("refused", pushed.code != 0 and "pre-receive hook declined" in pushed.terminal)
    told = "did you mean 'files'?" in pushed.terminal and "site.yaml:" in pushed.terminal
    claims.check("with file, line, column and the nearest name", told)
    site.git("reset", "--quiet", "--hard", "HEAD~2")
    site.declare(nodes=THREE, files={MOTD: "rewritten\n"})
    pushed = shown("a force-push of rewritten history", found.push("--force", "origin", "HEAD:main"))
    claims.check("refused", pushed.code != 0 and "not a fast-forward" in pushed.terminal)
    pushed = shown("the branch deleted", found.push("origin", ":main"))
    claims.check("refused", pushed.code != 0)
    head = site.git(f"--git-dir={found.bare}", "rev-parse", "refs/heads/main")
    claims.check("the branch is where it was", head == before, head[:12])
    claims.check("and the nodes as they were", motds(lab) == {"two\n"}, motds(lab))
    site.git("reset", "--quiet", "--hard", before)


def _key(folder: Path, name: str) -> Path:
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)), check=True)
    return folder / name


def signed(site: Site, key: Path) -> None:
    """The newest commit, signed."""
    site.git("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}", "commit", "--quiet", "--amend", "--no-edit", "--gpg-sign")


def strict(claims: Claims, lab: Lab, found: Origin, folder: Path) -> None:
    site, key, stranger = found.site, _key(folder, "alice"), _key(folder, "mallory")
    signers = folder / "signers"
    signers.write_text("alice@example.net " + key.with_suffix(".pub").read_text())
    site.ok("hook", "install", str(found.bare), "--signed", "strict", "--allowed-signers", str(signers))
    with controlled(site, str(found.bare), "--interval", "1s", "--signed", "strict", "--allowed-signers", str(signers)):
        before = motds(lab)
        site.declare(nodes=THREE, files={MOTD: "unsigned\n"})
        pushed = shown("strict: an unsigned push", found.push())
        claims.check("refused", pushed.code != 0 and "not signed" in pushed.terminal)
        signed(site, stranger)
        pushed = shown("strict: signed by somebody who may not", found.push())
        claims.check("refused", pushed.code != 0)
        site.declare(nodes=THREE, files={MOTD: "signed on top\n"})
        signed(site, key)
        pushed = shown("strict: a signed commit on top of that", found.push())
        claims.check("refused, for the commit below", pushed.code != 0)
        claims.check("the nodes as they were", motds(lab) == before, motds(lab))
        site.git("reset", "--quiet", "--hard", "HEAD~2")
        site.declare(nodes=THREE, files={MOTD: "signed\n"})
        signed(site, key)
        pushed = shown("strict: every commit signed by alice", found.push())
        claims.check("taken and applied", pushed.code == 0 and motds(lab) == {"signed\n"}, motds(lab))
        # past the hook, as an administrator of the Git host could: the controller asks for the signature again
        site.declare(nodes=THREE, files={MOTD: "smuggled\n"})
        site.git("push", "--quiet", str(found.bare), "HEAD:refs/heads/smuggled")
        site.git(f"--git-dir={found.bare}", "update-ref", "refs/heads/main", "refs/heads/smuggled")
        waited = site.run("wait", "--for", "Stalled", "--timeout", "60s")
        say("an unsigned commit put into the repository past the hook")
        print(site.run("status").stdout)
        claims.check("the controller refuses it", waited.code == 0 and "not signed as asked" in site.run("status").stdout)
        claims.check("and the nodes keep the last good one", motds(lab) == {"signed\n"}, motds(lab))


def first_step(site: Site, since: float) -> float:
    """Seconds from `since` (Unix) to the first step on a node that the controller tells of."""
    events = [json.loads(line) for line in site.ok("events", "--json").stdout.splitlines()]
    return min(float(e["time"]) for e in events if e["event"] == "step-started" and e["time"] > since) - since


def speed(claims: Claims, found: Origin) -> None:
    say(f"{PUSHES} pushes, each first to a repository without hooks")
    site, plain = found.site, found.bare.with_name("plain.git")
    site.git("init", "--quiet", "--bare", "--initial-branch=main", str(plain))
    site.git("remote", "add", "plain", found.url.replace(str(found.bare), str(plain)))
    steps, plans = [], []
    for number in range(PUSHES):
        site.declare(nodes=THREE, files={MOTD: f"push {number}\n"})
        bare = found.push("plain", "HEAD:main").seconds
        began, pushed = time.time(), found.push()
        assert pushed.code == 0, pushed.terminal
        steps.append(first_step(site, began) - bare)
        plans.append(pushed.at("3 changes on 3 nodes") - bare)
        beyond = f"plan {plans[-1]:.2f} s, first step {steps[-1]:.2f} s, end {pushed.seconds - bare:.2f} s"
        print(f"push alone {bare:.2f} s; beyond it: {beyond}", flush=True)
    step, plan = statistics.median(steps), statistics.median(plans)
    claims.check(f"first step on a node within {FIRST_ACTION:g} s beyond the push itself", step < FIRST_ACTION, f"{step:.2f} s")
    claims.check(f"plan in the terminal within {PLAN:g} s", plan < PLAN, f"{plan:.2f} s")


def main() -> int:
    claims = Claims("pushes over ssh: taken, refused, applied")
    with fresh_lab() as (lab, folder), server(folder / "ssh") as sshd:
        site = Site.small(lab, folder, nodes=THREE, files={MOTD: "one\n"})
        found = origin(site, folder, sshd)
        with controlled(site, str(found.bare), "--interval", "10m"):
            good(claims, lab, found)
            refused(claims, lab, found)
            speed(claims, found)
        strict(claims, lab, found, folder)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
