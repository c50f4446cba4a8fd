"""`make demo-offline`: plans from recorded nodes. Needs no root, no network and no node; asks and changes nothing.

Every recording snapshots/NAME is planned against manifests/NAME.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LACKING = ("NotRecorded", "NotAsked", "DistributionUnknown")


def recorded() -> list[str]:
    """Names that have both manifests and a recording, the lab first: it is the smaller one."""
    names = [path.name for path in (ROOT / "snapshots").glob("*") if (ROOT / "manifests" / path.name).is_dir()]
    return sorted(names, key=lambda name: (name != "lab-trio", name))


def plan(name: str, env: Mapping[str, str]) -> bool:
    """Show one plan as a person would ask for it; whether it could be made from the recording alone."""
    argv = ("reconcile", "plan", f"manifests/{name}", "--from", f"snapshots/{name}")
    print(f"$ {' '.join(argv)}", flush=True)
    began = time.monotonic()
    code = call(argv, env).returncode
    print(f"[exit {code}, {time.monotonic() - began:.1f} s]\n", flush=True)
    if code != 0:
        return False
    missing = gaps(json.loads(call((*argv, "--json"), env, stdout=subprocess.PIPE).stdout))
    if missing:
        print(f"the recording does not fit any more: {', '.join(missing)}\n")
    return not missing


def call(argv: tuple[str, ...], env: Mapping[str, str], stdout: int | None = None) -> subprocess.CompletedProcess[bytes]:
    program = str(Path(sys.executable).with_name(argv[0]))
    return subprocess.run((program, *argv[1:]), cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=stdout, check=False)


def gaps(found: Mapping[str, Any]) -> list[str]:
    """Resources that are held only because the recording lacks an answer, as NODE RESOURCE."""
    return [
        f"{node} {change['resource']}"
        for node, planned in found["nodes"].items()
        for change in planned["changes"]
        if change["hold"] and (change["hold"]["code"] in LACKING or "record" in str(change["hold"]["data"]))
    ]


def main() -> int:
    names = recorded()
    with tempfile.TemporaryDirectory(prefix="reconcile-offline-") as state_dir:
        env = {**os.environ, "RECONCILE_STATE_DIR": state_dir}
        whole = [plan(name, env) for name in names]
    if not names:
        print("demo-offline: there is no recording below snapshots/ yet")
        return 1
    print(f"demo-offline: {sum(whole)} of {len(names)} plans made from recordings. No node was asked, nothing was changed.")
    if lab := [name for name in names if name.startswith("lab-")]:
        print(f"STAND-IN: {', '.join(lab)} was recorded from the lab's nodes")
    return 0 if all(whole) else 1


if __name__ == "__main__":
    sys.exit(main())
