"""A fresh clone's demo makes a stack converge: driver, restart, environment, unit; finds, holds and heals what is spoilt by hand.

The driver is installed, the nodes restart and load it. A downgrade by hand is told in every layer, held while a process uses a GPU,
and healed; so is a `pip install` into an environment, as a new build under a running process.
"""

from __future__ import annotations

import sys

from acceptance.claims import Claims, fresh_clone, say, stream

KEPT = {
    "driver installed on three nodes, which were restarted": "ok: every node was restarted, one after the other",
    "and loaded, by nvidia-smi": "ok: nvidia-smi on every node: driver 580.95.05",
    "environment built and switched to, by its Python": "ok: python on every node: site-tools 1.0",
    "unit up, by systemd": "ok: systemd on every node: site-watch.service is active",
    "a downgrade by hand is found: packages": "ok: it says: packages 580.82.07-1.el9 -> 580.95.05",
    "... the module on disk": "ok: it says: module on disk 580.82.07 -> 580.95.05",
    "... and the loaded one": "ok: it says: loaded 580.95.05",
    "a process on a GPU is named": "(unit train.service) uses GPU 3",
    "and holds the change": "ok: nothing was changed under the process",
    "healed once it ended, without a restart": "ok: healed without a restart",
    "pip install by hand is found: the lock": "ok: it says the lock:",
    "... what is on the disk": "ok: it says what is on the disk:",
    "... and what runs": "ok: it says what runs:",
    "healed as a new build": "and what starts now has 1.0",
    "under a running process that went on": "went on with what it had imported",
    "back to the environment of before": "== back to the environment of before",
}


def main() -> int:
    claims = Claims("the stack converges in the demo")
    with fresh_clone() as clone:
        say("make demo")
        code, output = stream(("make", "demo"), clone)
        claims.check("make demo ends with 0: all of its promises held", code == 0, f"exit {code}")
        for claim, line in KEPT.items():
            claims.check(claim, any(line in said and "NOT AS PROMISED" not in said for said in output.splitlines()))
        claims.check("the demo's own verdict says STAND-IN", "STAND-IN" in output.splitlines()[-1])
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
