"""The figures that were promised: gated on CPU, bytes and memory; wall times are of this machine, which also plays the nodes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from acceptance.claims import ROOT, Claims, say


def main() -> int:
    claims = Claims("speed and memory")
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "figures.json"
        say("python -m benchmarks.cluster")
        subprocess.run((sys.executable, "-m", "benchmarks.cluster", "--json", str(kept)), cwd=ROOT, check=True)
        found = json.loads(kept.read_text())
    say("python benchmarks/validate.py 10000")
    told = subprocess.run((sys.executable, "benchmarks/validate.py", "10000"), cwd=ROOT, check=True, capture_output=True, text=True)
    print(told.stdout)
    by = {(f["what"], f["nodes"]): f for f in found["figures"]}
    added = found["help"]["help"] - found["help"]["bare"]
    claims.check("--help adds under 0.25 s to a bare interpreter", added < 0.25, f"{added:.3f} s")
    for what in ("plan, everything to do", "plan, nothing to do"):
        claims.check(f"3 nodes, cold: {what} under 3 s", by[what, 3]["wall"] < 3, f"{by[what, 3]['wall']:.2f} s")
    no_op = by["apply, nothing to do", 3]
    claims.check("3 nodes: no-op apply under 4 s", no_op["wall"] < 4, f"{no_op['wall']:.2f} s")
    most = max(f["rss"] for f in found["figures"])
    claims.check("controller under 150 MB", most < 150, f"{most:.0f} MB")
    for what in ("plan, nothing to do", "apply, nothing to do"):
        large, small = by[what, 32], by[what, 3]
        slope = (large["cpu"] - small["cpu"]) / 29 * 1000
        whole = large["cpu"] / 32 * 1000
        evidence = f"{whole:.1f} ms with start and imports shared out, {slope:.1f} ms for a further node"
        claims.check(f"32 nodes: {what}: at most 40 ms controller CPU a node", whole <= 40, evidence)
        claims.check(f"32 nodes: {what}: at most 30 KB received a node", large["received"] <= 30, f"{large['received']:.1f} KB")
    cpu = float(re.findall(r"CPU [\d.]+ to ([\d.]+) s", told.stdout)[0])
    wall = re.findall(r"wall [\d.]+ to [\d.]+ s", told.stdout)[0]
    claims.check("validate of 10,000 lines under 1 s of CPU", cpu < 1, f"{cpu:.2f} s, the slowest of five; {wall}")
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
