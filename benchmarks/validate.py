"""How long `validate` takes for a large site: python benchmarks/validate.py [LINES]

Generates manifests of about LINES lines (default 10,000): nodes one by one, each with its address, profile and a
package of its own, and site-wide packages. Each run is a fresh process, so that imports count. Prints lines, seconds
(wall and CPU, best and worst of five) and the peak of resident memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 5
_NODE = """    gpu{n:05d}:
      address: 10.{a}.{b}.{c}
      profile: gpu
      packages:
        firmware-of-the-board: 1.{n}-1.el9
"""
_PROGRAM = """
import json, resource, sys, time
start = time.perf_counter()
from reconciler.source import validate_path
from reconciler.render.problems import problem_text
loaded = validate_path(sys.argv[1])
text = [problem_text(p) for p in loaded.problems]
usage = resource.getrusage(resource.RUSAGE_SELF)
wall, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
found = {"nodes": loaded.nodes, "problems": len(text)}
print(json.dumps({"wall": wall, "cpu": cpu, "rss": usage.ru_maxrss / 1024, **found}))
"""


def generate(root: Path, lines: int) -> int:
    """Write a site of about `lines` lines below `root`; the number of lines written."""
    nodes, packages = lines // 10, lines // 2 - 40
    blocks = [_NODE.format(n=n, a=n >> 16, b=n >> 8 & 255, c=n & 255) for n in range(1, nodes + 1)]
    head = "apiVersion: reconcile/v1\nkind: Cluster\nmetadata: {name: large}\nspec:\n  versions: stack\n"
    profile = "  profiles:\n    gpu:\n      packages: {tmux: present}\n"
    listed = "".join(f"    package-{n}: {n}.2.{n % 10}-1.el9\n" for n in range(packages))
    cluster = f"{head}{profile}  nodes:\n{''.join(blocks)}  packages:\n{listed}"
    pins = "".join(f"        pinned-{n}: 1.{n}\n" for n in range(32))
    versions = "apiVersion: reconcile/v1\nkind: Versions\nmetadata: {name: stack}\nspec:\n  os:\n    centos-stream-9:\n"
    (root / "cluster.yaml").write_text(cluster)
    (root / "versions.yaml").write_text(f"{versions}      packages:\n{pins}")
    keys = "".join(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255} ssh-ed25519 QUFBQQ==\n" for n in range(1, nodes + 1))
    (root / "known_hosts").write_text(keys)
    return sum((root / f).read_text().count("\n") for f in ("cluster.yaml", "versions.yaml"))


def main() -> int:
    """Generate, run, print."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        lines = generate(Path(folder), wanted)
        runs = [
            json.loads(subprocess.run([sys.executable, "-c", _PROGRAM, folder], check=True, capture_output=True).stdout)
            for _ in range(RUNS)
        ]
        wrong = Path(folder) / "cluster.yaml"
        wrong.write_text(wrong.read_text().replace("profile: gpu", "profil: gpu"))
        bad = json.loads(subprocess.run([sys.executable, "-c", _PROGRAM, folder], check=True, capture_output=True).stdout)
    wall, cpu = sorted(r["wall"] for r in runs), sorted(r["cpu"] for r in runs)
    print(f"lines {lines}, nodes {runs[0]['nodes']}, problems {runs[0]['problems']}")
    print(f"wall {wall[0]:.3f} to {wall[-1]:.3f} s (median {wall[RUNS // 2]:.3f}), CPU {cpu[0]:.3f} to {cpu[-1]:.3f} s")
    print(f"peak RSS {max(r['rss'] for r in runs):.0f} MB")
    print(f"with a mistake in every node: {bad['problems']} problems, wall {bad['wall']:.3f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
