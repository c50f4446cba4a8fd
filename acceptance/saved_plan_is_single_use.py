"""A saved plan is refused when a node changed since, naming the field; and it can be used only once."""

from __future__ import annotations

import sys

from acceptance.claims import Claims, fresh_lab, say
from tests.e2e import truth
from tests.e2e.site import Site


def main() -> int:
    claims = Claims("a saved plan fits or is refused, and is used once")
    with fresh_lab() as (lab, folder):
        site = Site.reference(lab, folder)
        file = str(folder / "plan.json")
        gpu02 = lab.nodes["gpu02"]
        site.ok("plan", "--out", file)
        say("a node is changed by hand after the plan: chmod 0600 /etc/motd on gpu02")
        gpu02.run("chmod 0600 /etc/motd")
        before = truth.fingerprint(gpu02)
        refused = site.run("apply", file)
        print(refused.stderr)
        claims.check("apply exits with 5", refused.code == 5, f"exit {refused.code}")
        named = "gpu02" in refused.stderr and "File//etc/motd" in refused.stderr and "mode" in refused.stderr
        claims.check(
            "the field that moved is named, before and now", named and "0644" in refused.stderr and "0600" in refused.stderr
        )
        after = truth.fingerprint(gpu02)
        # dnf, asked what the repositories offer, refreshes the reader's index of rpm's database: told, and not a write of ours
        indexed = sorted(set(truth.moved(before, after)) - set(truth.writes(before, after)))
        claims.check("nothing was written", not truth.writes(before, after) and truth.steps(gpu02) == [], f"but for {indexed}")
        say("a new plan, used once")
        site.ok("plan", "--out", file)
        used = site.run("apply", file)
        claims.check("it is carried out", used.code == 0, used.stdout.splitlines()[-2] if used.stdout else used.stderr)
        say("used again")
        again = site.run("apply", file)
        print(again.stderr)
        claims.check("the second use exits with 5 and says why", again.code == 5 and "carried out already" in again.stderr)
        say("a plan made before a commit")
        gpu02.run("chmod 0600 /etc/motd")
        site.ok("plan", "--out", file)
        site.replace("htop: present", "htop: absent")
        old = site.run("apply", file)
        print(old.stderr)
        claims.check("it is refused, naming the commit", old.code == 5 and "commit" in old.stderr)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
