"""What facts cost their node: a full look, the fast set, 200 MB of kernel log, 5,000 packages, and how fast parsers read."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from acceptance.claims import ROOT, Claims, fresh_lab, say
from acceptance.facts_of_lab_and_h200 import with_driver
from lab.node import LabNode
from reconciler.facts.catalogue import LIVE
from tests.e2e.site import Site

RUNS = 5
PACKAGES = 5000
LOG_BYTES = 200 << 20
DULL = "Nov 30 12:00:00 gpu03 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready, number %d\n"
XID = "Nov 30 12:00:01 gpu03 kernel: NVRM: Xid (PCI:0000:b1:00): 79, pid=1234, name=python3, GPU has fallen off the bus.\n"
PARSERS = ROOT / "benchmarks" / "results" / "parsers.md"


def looks(site: Site, node: str, *words: str) -> list[dict[str, Any]]:
    return [site.run("observe", node, "--json", *words).json["nodes"][node] for _ in range(RUNS)]


def spent(seen: dict[str, Any], names: set[str]) -> float:
    """Milliseconds of the node's processor: all parts of these facts, and the program itself."""
    return float(seen["spent"]["cpu_ms"] + sum(fact["cpu_ms"] for name, fact in seen["facts"].items() if name in names))


def small_look(claims: Claims, site: Site) -> None:
    say("reconcile observe gpu01 --costs (a driver is loaded, 8 stand-in GPUs)")
    print(site.run("observe", "gpu01", "--costs").stdout)
    walls = [seen["spent"]["ms"] for seen in looks(site, "gpu01")]
    median = statistics.median(walls)
    claims.check("a full look takes under 1.2 s on the node", median < 1200, f"median {median:.0f} ms of {sorted(walls)}")
    fast = {fact.name for fact in LIVE if not fact.slow}
    costs = sorted(spent(seen, fast) for seen in looks(site, "gpu01", "--fast"))
    median = statistics.median(costs)
    evidence = f"median {median:.1f} ms of {[round(c, 1) for c in costs]}, program start of each look included"
    claims.check(f"the fast set ({len(fast)} facts) takes under 50 ms of CPU", median < 50, evidence)


def many_packages(claims: Claims, site: Site, node: LabNode, folder: Path) -> None:
    say(f"{PACKAGES} packages in the rpm database of gpu03")
    spec = ["Name: many", "Version: 1", "Release: 1.el9", "Summary: x", "License: x", "BuildArch: noarch", "%description", "x"]
    for n in range(PACKAGES):
        spec += [
            f"%package -n many-{n}",
            "Summary: x",
            f"Version: {n % 90}.{n}",
            f"%description -n many-{n}",
            "x",
            f"%files -n many-{n}",
        ]
    (folder / "many.spec").write_text("\n".join(spec) + "\n")
    top = folder / "top"
    argv = ("rpmbuild", "--quiet", "--define", f"_topdir {top}", "-bb", str(folder / "many.spec"))
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    database = node.run("rpm --eval '%_dbpath'").stdout.strip()
    packages = sorted(str(p) for p in (top / "RPMS" / "noarch").glob("*.rpm"))
    target = node.disk.root / database.lstrip("/")
    rpm = ("rpm", "--dbpath", str(target), "-U", "--justdb", "--nodeps", "--noscripts", "--nosignature", *packages)
    subprocess.run(rpm, check=True, stderr=subprocess.DEVNULL)
    seen = site.run("observe", "gpu03", "--fact", "packages-rpm", "--json").json["nodes"]["gpu03"]
    fact = seen["facts"]["packages-rpm"]
    count = len(fact["value"]["packages"])
    claims.check(f"{count} packages are read within the deadline", count >= PACKAGES, f"{fact['ms']} ms, CPU {fact['cpu_ms']} ms")


def large_log(claims: Claims, site: Site, node: LabNode) -> None:
    say("200 MB of kernel log in /var/log/messages of gpu03, three Xids in it")
    block = "".join(DULL % n for n in range(10_000))
    path = node.disk.root / "var/log/messages"
    with path.open("w") as log:
        for n in range(LOG_BYTES // len(block) + 1):
            log.write(block + (XID if n % 70 == 0 else ""))
    size = path.stat().st_size
    seen = site.run("observe", "gpu03", "--fact", "kernel-log", "--json").json["nodes"]["gpu03"]["facts"]["kernel-log"]
    path.unlink()
    value = seen["value"]
    found = value.get("source") == "syslog" and bool(value.get("xids"))
    evidence = (
        f"{size >> 20} MB, {seen['ms']:.0f} ms, CPU {seen['cpu_ms']:.0f} ms, {seen['bytes']} bytes sent, xids {value.get('xids')}"
    )
    claims.check("a kernel log of 200 MB is read within the deadline", found, evidence)


def parsers(claims: Claims) -> None:
    say(f"benchmarks/results/{PARSERS.name} (python -m benchmarks.parsers)")
    text = PARSERS.read_text()
    print(text)
    rows = re.findall(r"^\| ([a-zA-Z-]+) \| \d+ \| (\d+) \|", text, re.MULTILINE)
    slow = {name: int(speed) for name, speed in rows if int(speed) < 20}
    claims.check("all 28 formats were measured", len(rows) == 28, len(rows))
    claims.check("each reads large inputs at 20 MB/s or more", not slow, slow)


def main() -> int:
    claims = Claims("costs of facts")
    with fresh_lab() as (lab, folder):
        site = Site.reference(lab, folder)
        with_driver(lab, lab.nodes["gpu01"])
        small_look(claims, site)
        many_packages(claims, site, lab.nodes["gpu03"], folder)
        large_log(claims, site, lab.nodes["gpu03"])
    parsers(claims)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
