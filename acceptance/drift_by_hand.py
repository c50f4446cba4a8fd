"""What is changed by hand on a node is found by `drift` (exit 2), told apart from a change in Git, and healed."""

from __future__ import annotations

import sys

from acceptance.claims import Claims, fresh_lab, say
from tests.e2e import truth
from tests.e2e.site import Site


def main() -> int:
    claims = Claims("drift by hand is found and healed")
    with fresh_lab() as (lab, folder):
        site = Site.reference(lab, folder)
        site.ok("apply")
        gpu02, gpu03 = lab.nodes["gpu02"], lab.nodes["gpu03"]
        quiet = site.run("drift")
        claims.check("no drift right after an apply", quiet.code == 0 and quiet.verdict.startswith("drift: 0"), quiet.verdict)
        gpu02.run("dnf -y -q --disableplugin=versionlock downgrade numactl-2.0.18-2.el9; echo by hand > /etc/motd")
        gpu03.run("hostnamectl set-hostname evil; chmod 0600 /etc/profile.d/site.sh; rpm -e htop")
        site.replace("tmux: 3.2a-4.el9", "tmux: 3.2a-5.el9")
        say("reconcile drift, after hands on gpu02 and gpu03 and a commit that moves tmux")
        found = site.run("drift")
        print(found.stdout)
        claims.check("drift exits with 2", found.code == 2, f"exit {found.code}")
        plan = site.run("plan", "--json")
        drifted = {n: {k for k, why in plan.reasons(n).items() if why == "drift"} for n in ("gpu01", "gpu02", "gpu03")}
        claims.check(
            "on gpu02 just what was touched", drifted["gpu02"] == {"Package/numactl", "File//etc/motd"}, sorted(drifted["gpu02"])
        )
        wanted = {"Hostname/gpu03", "File//etc/profile.d/site.sh", "Package/htop"}
        claims.check("on gpu03 just what was touched", drifted["gpu03"] == wanted, sorted(drifted["gpu03"]))
        claims.check("on gpu01 none", not drifted["gpu01"])
        git = {n: {k for k, why in plan.reasons(n).items() if why == "git-change"} for n in drifted}
        claims.check("the commit is a git change on all three", all(git[n] == {"Package/tmux"} for n in git), git["gpu01"])
        say("reconcile apply")
        healed = site.run("apply")
        print(healed.stdout.splitlines()[-4:], healed.stderr, sep="\n")
        claims.check("apply exits with 0", healed.code == 0, f"exit {healed.code}")
        claims.check("rpm says numactl 2.0.19 again", truth.rpm(gpu02, "numactl") == "2.0.19-3.el9", truth.rpm(gpu02, "numactl"))
        claims.check("rpm says htop again", truth.rpm(gpu03, "htop") is not None, truth.rpm(gpu03, "htop"))
        claims.check("the host name is right again", gpu03.run("cat /etc/hostname").stdout.strip() == "gpu03")
        claims.check("the mode is right again", truth.stat(gpu03, "/etc/profile.d/site.sh").startswith("644 "))
        again = site.run("drift")
        claims.check("drift exits with 0 afterwards", again.code == 0, again.verdict)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
