"""The controller under its worst day: killed in the middle of an apply, two at once, no Git server, 100 pushes, pushers who leave.

What is on the nodes is asked of the nodes themselves. A step that ran on by itself is taken over and not repeated.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from acceptance.claims import Claims, fresh_lab, say
from lab import Lab
from lab.shell import wait_for
from tests.e2e import truth
from tests.e2e.origin import Origin, controlled, ended, origin, server, started
from tests.e2e.site import Site

TWO = ("gpu01", "gpu02")
MOTD = "/etc/motd"
SLOW = {"slow-install": "present"}  # its scriptlets take seconds
PUSHES = 100
DETACH = 60.0  # seconds after which a pusher is let go
STARTS = ("start-unit", "restart-unit")
OFTEN = ("--interval", "1s")


def motds(lab: Lab) -> set[str]:
    return {truth.text(lab.nodes[name], MOTD) for name in TWO}


def slow_unit(seconds: int) -> dict[str, Any]:
    """A unit that takes this long to start: time to leave, to push and to kill."""
    content = f"[Service]\nTimeoutStartSec=200\nExecStartPre=/bin/sleep {seconds}\nExecStart=/bin/sleep infinity\n"
    return {"slow.service": {"content": content, "state": "started"}}


def declare(site: Site, motd: str, seconds: int) -> str:
    return site.declare(nodes=TWO, files={MOTD: f"{motd}\n"}, packages=SLOW, units=slow_unit(seconds))


def last(site: Site) -> int:
    return int(site.journal()[-1]["seq"])


def begun(site: Site, after: int, *titles: str) -> None:
    """Wait until the journal says that a step with one of these titles was begun after that record."""

    def found() -> bool:
        return any(r["type"] == "intent" and r["title"] in titles and r["seq"] > after for r in site.journal())

    wait_for(found, f"the intent of {titles[0]}", 90, 0.05)


def ready(site: Site, span: str = "150s") -> bool:
    return site.run("wait", "--for", "Ready", "--timeout", span).code == 0


def killed(claims: Claims, lab: Lab, found: Origin) -> None:
    say("kill -9 in the middle of an apply")
    site = found.site
    site.git("push", "--quiet", str(found.bare), "HEAD:main")
    first = started(site, str(found.bare), *OFTEN)
    begun(site, 0, "package-transaction")
    first.send(signal.SIGKILL)
    first.process.communicate(timeout=10)
    with controlled(site, str(found.bare), *OFTEN):
        claims.check("started again, it comes to Ready", ready(site))
        print(site.run("status").stdout)
        done = {name: truth.transactions(lab.nodes[name]) for name in TWO}
        claims.check("the package was installed once on each node", all(one == ["Install"] for one in done.values()), done)
        claims.check("the file is there", motds(lab) == {"one\n"}, motds(lab))
        leases = [truth.lease(lab.nodes[name]) for name in TWO]
        claims.check("no lease is left", all(one and one["holder"] == "" for one in leases))


def two_controllers(claims: Claims, lab: Lab, found: Origin) -> None:
    say("a second controller: with the same records, and with others")
    site, repository = found.site, str(found.bare)
    with controlled(site, repository, *OFTEN):
        again = site.start("controller", "--repository", repository).result()
        print(again.stderr, end="")
        claims.check("with the same records it does not start: exit 6", again.code == 6, again.code)
        ready(site)
        before = last(site)
        declare(site, "two", 8)
        with found.start():
            begun(site, before, *STARTS)
            other = site.other("other")
            with controlled(other, repository, *OFTEN):
                stalled = other.run("wait", "--for", "Stalled", "--timeout", "60s").code
                print(other.run("status").stdout)
                claims.check("with others it meets the first one's lease: Stalled", stalled == 0)
                claims.check("it wrote nothing", not any(r["type"] == "intent" for r in other.journal()))
                claims.check("the first one goes on to Ready", ready(site))
                claims.check("then the other finds all as declared", ready(other))
                claims.check("and still wrote nothing", not any(r["type"] == "intent" for r in other.journal()))
        claims.check("what Git says is on the nodes", motds(lab) == {"two\n"}, motds(lab))


def no_git(claims: Claims, lab: Lab, found: Origin, ssh: Path) -> None:
    say("the Git server goes away and comes back")
    site = found.site
    with server(ssh) as sshd:
        found = origin(site, found.bare.parent, sshd)
        running = started(site, found.url, *OFTEN, "--drift-interval", "2s", **found.environment)
        claims.check("it follows a repository by ssh", ready(site), found.url)
    waited = site.run("wait", "--for", "Reconciling", "--timeout", "60s").code
    status = site.run("status").stdout
    print(status)
    claims.check("without it: Reconciling, and it says why", waited == 0 and "cannot be read" in status)
    lab.nodes["gpu01"].run("echo by hand > /etc/motd")
    wait_for(lambda: motds(lab) == {"two\n"}, "the healing of drift", 60, 0.2)
    claims.check("drift is healed meanwhile as the last good revision declares", motds(lab) == {"two\n"})
    with server(ssh) as sshd:
        found = origin(site, found.bare.parent, sshd)
        declare(site, "back", 0)
        claims.check("the server is back: a push is taken", found.push().code == 0)
        wait_for(lambda: motds(lab) == {"back\n"}, "the new revision on the nodes", 120, 0.2)
        claims.check("and is on the nodes without anybody restarting anything", running.process.poll() is None, motds(lab))
        claims.check("it ends in good order", ended(running) == 0)


def taken_up_to(found: Origin, commit: str) -> None:
    """Wait until the branch is at this commit."""
    head = f"--git-dir={found.bare}", "rev-parse", "--verify", "--quiet", "refs/heads/main"
    wait_for(lambda: found.site.git(*head) == commit, "a push to be taken", 60, 0.02)


def many_pushes(claims: Claims, lab: Lab, found: Origin) -> None:
    say(f"{PUSHES} pushes, each begun as soon as the one before is taken")
    site = found.site
    with controlled(site, str(found.bare), "--interval", "10m"):
        ready(site)
        before, began, pushers = last(site), time.monotonic(), []
        for number in range(PUSHES):
            wanted = declare(site, f"push {number}", 1 + number % 2)  # each restarts the unit: slower to apply than to push
            pushers.append(found.start())
            taken_up_to(found, wanted)
        taken = time.monotonic() - began
        codes = {pusher.communicate(timeout=120) and pusher.returncode for pusher in pushers}
        over = time.monotonic() - began
        claims.check("all are taken", codes == {0}, f"{PUSHES} in {taken:.0f} s, the last pusher let go after {over:.0f} s")
        claims.check("Ready", ready(site))
        claims.check("the newest is on the nodes", motds(lab) == {f"push {PUSHES - 1}\n"}, motds(lab))
        applies = sum(1 for r in site.journal() if r["type"] == "apply-started" and r["seq"] > before)
        claims.check("they came to fewer applies", 0 < applies < PUSHES, f"{applies} applies")


def leaving(claims: Claims, lab: Lab, found: Origin) -> None:
    say("a pusher presses Ctrl-C; another push comes during its apply")
    site = found.site
    with controlled(site, str(found.bare), "--interval", "10m"):
        ready(site)
        before = last(site)
        declare(site, "left alone", 9)
        pusher = found.start()
        begun(site, before, *STARTS)
        began = time.monotonic()
        os.killpg(pusher.pid, signal.SIGINT)
        print(pusher.communicate(timeout=20)[1])
        claims.check("the terminal is free at once", time.monotonic() - began < 5, f"exit {pusher.returncode}")
        claims.check("the apply goes on to its end", ready(site) and motds(lab) == {"left alone\n"}, motds(lab))
        before = last(site)
        declare(site, "pre-empted", 10)
        with found.start():
            begun(site, before, *STARTS)
            declare(site, "newer", 1)
            pushed = found.push()
            print(pushed.terminal)
            newest = motds(lab) == {"newer\n"}
            claims.check("a push during an apply: the newer revision is on the nodes when it ends", newest, motds(lab))
        states = [r["state"] for r in site.journal() if r["type"] == "revision" and r["seq"] > before]
        claims.check("the older one is superseded", "superseded" in states, states)


def detached(claims: Claims, lab: Lab, found: Origin) -> None:
    say("an apply of more than a minute: the pusher is let go")
    site = found.site
    with controlled(site, str(found.bare), "--interval", "10m"):
        ready(site)
        declare(site, "slow", 75)
        pushed = found.push()
        print(pushed.terminal)
        claims.check("after 60 s, with 0", pushed.code == 0 and DETACH <= pushed.seconds < DETACH + 10, f"{pushed.seconds:.1f} s")
        claims.check("it says how to go on watching", "reconcile status --follow " in pushed.terminal)
        turn = pushed.terminal.partition("reconcile status --follow ")[2].split("`")[0].split()[0]
        followed = site.run("status", "--follow", turn)
        print(followed.text)
        claims.check("which shows the apply to its end", followed.code == 0 and "converged" in followed.text)
        claims.check("what was pushed is on the nodes", motds(lab) == {"slow\n"}, motds(lab))


def main() -> int:
    claims = Claims("the controller survives")
    with fresh_lab(2) as (lab, folder):
        site = Site.small(lab, folder, nodes=TWO, files={MOTD: "one\n"}, packages=SLOW)
        with server(folder / "ssh") as sshd:
            found = origin(site, folder, sshd)
            killed(claims, lab, found)
            two_controllers(claims, lab, found)
        no_git(claims, lab, found, folder / "ssh")
        with server(folder / "ssh") as sshd:
            found = origin(site, folder, sshd)
            many_pushes(claims, lab, found)
            leaving(claims, lab, found)
            detached(claims, lab, found)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
