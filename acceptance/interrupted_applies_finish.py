"""A cut link, a killed controller, a frozen lease holder: the next apply finishes, nothing runs twice, no late write lands."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from acceptance.claims import Claims, fresh_lab, say
from lab import Lab
from tests.e2e import truth
from tests.e2e.site import Site

SLOW = {"slow-install": "1.0-1.el9"}


def _slow_site(lab: Lab, folder: Path, name: str) -> Site:
    """A site whose one package takes about 8 seconds to install."""
    return Site.small(lab, folder / name, nodes=("gpu01",), packages=SLOW, files={"/etc/site-marker": f"written for {name}\n"})


def link_cut(claims: Claims, lab: Lab, folder: Path) -> None:
    say("the link of gpu01 is cut while its package transaction runs, and healed later")
    node = lab.nodes["gpu01"]
    site = _slow_site(lab, folder, "cut")
    running = site.start("apply")
    truth.slow_started(node)
    node.cut()
    cut = running.result()
    print(cut.stdout.splitlines()[-2:], cut.stderr, sep="\n")
    claims.check("apply exits with 4", cut.code == 4, f"exit {cut.code}")
    node.heal()
    node.wait_ready()
    finished = site.run("apply")
    print(finished.text)
    claims.check("after the link is healed the next apply ends with 0", finished.code == 0, f"exit {finished.code}")
    claims.check("the scriptlet ran once, from start to end", truth.slow_runs(node) == ["start", "end"], truth.slow_runs(node))
    claims.check("one dnf transaction in the node's history", len(truth.transactions(node)) == 1, truth.transactions(node))
    claims.check("the file that came after it is there", truth.text(node, "/etc/site-marker") == "written for cut\n")


def controller_killed(claims: Claims, lab: Lab, folder: Path) -> None:
    say("the controller is killed (SIGKILL) while dnf runs on gpu01")
    node = lab.nodes["gpu01"]
    truth.reset([node])
    site = _slow_site(lab, folder, "killed")
    running = site.start("apply")
    truth.slow_started(node)
    running.send(signal.SIGKILL)
    running.process.communicate()
    claims.check("it is gone without a word", running.process.returncode == -signal.SIGKILL)
    claims.check("its step still runs on the node", bool(truth.units(node)), truth.units(node))
    next_ = site.run("apply")
    print(next_.stderr)
    adopted = "taking over" in next_.stderr or "took over" in next_.stderr
    claims.check("the next apply takes the step over and ends with 0", next_.code == 0 and adopted, f"exit {next_.code}")
    claims.check("the scriptlet ran once, from start to end", truth.slow_runs(node) == ["start", "end"], truth.slow_runs(node))
    claims.check("one dnf transaction in the node's history", len(truth.transactions(node)) == 1, truth.transactions(node))
    titles = [record["title"] for record in truth.steps(node)]
    claims.check("one step record of a transaction", titles.count("package-transaction") == 1, titles)
    claims.check("no step unit is left", truth.units(node) == [])


def holder_frozen(claims: Claims, lab: Lab, folder: Path) -> None:
    say("the lease holder is frozen (SIGSTOP) in mid-apply, a second controller takes over, the first is thawed (SIGCONT)")
    node = lab.nodes["gpu01"]
    truth.reset([node])
    first = _slow_site(lab, folder, "frozen")
    first.environment["RECONCILE_LEASE_TTL"] = "3"
    running = first.start("apply")
    truth.slow_started(node)
    running.send(signal.SIGSTOP)
    second = first.other("second")
    early = second.run("apply")
    print(early.stderr)
    claims.check(
        "while the lease is live the second controller exits with 6 and writes nothing", early.code == 6, f"exit {early.code}"
    )
    truth.wait_in(node, "grep -q end /var/log/lab-slow.log", timeout=60)
    truth.wait_until(lambda: second.run("apply").code == 0, "the second controller's apply", timeout=60)
    mark = (second.repo / "files/0").read_text().replace("frozen", "second")
    (second.repo / "files/0").write_text(mark)
    second.commit("the second controller's content")
    second.ok("apply")
    running.send(signal.SIGCONT)
    late = running.result()
    print(late.stdout.splitlines()[-2:], late.stderr, sep="\n")
    claims.check("the thawed holder exits with 6", late.code == 6, f"exit {late.code}")
    claims.check("and says that its write was refused", "refused" in late.text and "another controller took over" in late.text)
    claims.check("the node has the second controller's file", truth.text(node, "/etc/site-marker") == mark, mark.strip())
    claims.check("the transaction ran once", len(truth.transactions(node)) == 1, truth.transactions(node))


def main() -> int:
    claims = Claims("interrupted applies finish, and nothing is repeated")
    with fresh_lab(1) as (lab, folder):
        for part in (link_cut, controller_killed, holder_frozen):
            part(claims, lab, folder)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
