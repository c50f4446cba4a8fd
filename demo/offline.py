"""`make demo-offline`: plans from recorded nodes. Needs no root, no network and no node; asks and changes nothing.

Every recording snapshots/NAME is planned against manifests/NAME.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def recorded() -> list[str]:
    """Names that have both manifests and a recording, the lab first: it is the smaller one."""
    names = [path.name for path in (ROOT / "snapshots").glob("*") if (ROOT / "manifests" / path.name).is_dir()]
    return sorted(names, key=lambda name: (name != "lab-trio", name))


def plan(name: str, state_dir: str) -> bool:
    """Show one plan as a person would ask for it; whether it is whole (0, or 2: something to do or held)."""
    argv = ("reconcile", "plan", f"manifests/{name}", "--from", f"snapshots/{name}", "--detailed-exitcode")
    print(f"$ {' '.join(argv)}", flush=True)
    began = time.monotonic()
    program = Path(sys.executable).with_name(argv[0])
    environment = {**os.environ, "RECONCILE_STATE_DIR": state_dir}
    done = subprocess.run((program, *argv[1:]), cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False)
    print(f"[exit {done.returncode}, {time.monotonic() - began:.1f} s]\n", flush=True)
    return done.returncode in (0, 2)


def main() -> int:
    names = recorded()
    with tempfile.TemporaryDirectory(prefix="reconcile-offline-") as state_dir:
        whole = [plan(name, state_dir) for name in names]
    if not names:
        print("demo-offline: there is no recording below snapshots/ yet")
        return 1
    print(f"demo-offline: {sum(whole)} of {len(names)} plans made from recordings. No node was asked, nothing was changed.")
    return 0 if all(whole) else 1


if __name__ == "__main__":
    sys.exit(main())
