"""`reconcile observe` of lab nodes and of a recorded H200 host: every fact answers, and what is unknown says why."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

from acceptance.claims import ROOT, Claims, fresh_lab, say
from lab import Lab
from lab.node import LabNode
from reconciler.facts.catalogue import LIVE
from reconciler.model.seen import is_unknown
from reconciler.render.headlines import headline
from reconciler.render.reasons import _SENTENCES
from tests.e2e.site import Site

DRIVER = "580.95.05"
RECORDED = ROOT / "snapshots" / "h200"
# what names one machine and must not be in a recording: UUIDs and serials that are not stand-ins
IDENTITIES = re.compile(r"GPU-(?!0{8}-0{4})[0-9a-f]{8}-|\b[01][0-9]{12}\b(?<!00000000000[0-9]{2})")


def with_driver(lab: Lab, node: LabNode) -> None:
    """As a site does it: NVIDIA's repository, the packages, a boot."""
    url = f"{lab.config.url}/rpms/rhel9/x86_64"
    lines = ("[cuda-rhel9]", "name=cuda", f"baseurl={url}/", "gpgcheck=1", f"gpgkey={url}/D42D0685.pub")
    node.run(f"printf '%s\\n' {' '.join(lines)} > /etc/yum.repos.d/cuda-rhel9.repo; dnf -y -q install nvidia-open-{DRIVER}")
    node.reboot()
    node.wait_ready()


def unknown(value: Any, path: str = "") -> list[tuple[str, str, str]]:
    """Every place below a plain value that is not known: path, code, what was said."""
    if is_unknown(value):
        return [(path, str(value["unknown"]), str(value.get("detail", "")))]
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in unknown(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for n, item in enumerate(value) for found in unknown(item, f"{path}[{n}]")]
    return []


def show_unknown(node: str, facts: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = [place for name, fact in facts.items() for place in unknown(fact["value"], name)]
    print(f"{node}: {len(found)} places of {len(facts)} facts are unknown")
    for path, code, said in found:
        print(f"  {path}: {code}: {_SENTENCES.get(code, '?')}" + (f" ({said})" if said else ""))
    return found


def check_nodes(claims: Claims, found: dict[str, Any]) -> None:
    names = {fact.name for fact in LIVE}
    for node, seen in found["nodes"].items():
        claims.check(f"{node} answers all {len(names)} facts", set(seen["facts"]) == names, sorted(names - set(seen["facts"])))
        places = show_unknown(node, seen["facts"])
        claims.check(f"{node}: every reason has its sentence", all(code in _SENTENCES for _, code, _ in places))


def observed_lab(claims: Claims) -> None:
    with fresh_lab() as (lab, folder):
        site = Site.reference(lab, folder)
        for name in ("gpu01", "gpu02"):
            with_driver(lab, lab.nodes[name])
        lab.nodes["gpu02"].gpus.set("gpus.5.lost=true", "gpus.1.rows.pending=true", "gpus.2.pcie.width=8", "gpus.3.xids=[79]")
        say("reconcile observe: gpu01 with a driver, gpu02 with faults, gpu03 without a driver")
        shown = site.run("observe", "--costs")
        print(shown.stdout, shown.stderr)
        claims.check("observe ends with 0", shown.code == 0, f"exit {shown.code}")
        found = site.run("observe", "--json").json
        check_nodes(claims, found)
        claims.check("ages are of this look", all(f["age"] < 60 for n in found["nodes"].values() for f in n["facts"].values()))
        faults(claims, found)
        say("reconcile observe --fast, and with gpu03 without power")
        lab.nodes["gpu03"].poweroff()
        began = time.time()
        later = site.run("observe", "--fast", "--json")
        kept = later.json["nodes"]
        claims.check("exit status 4 tells that a node was not seen", later.code == 4, list(later.json["failures"]))
        slow = [f.name for f in LIVE if f.slow]
        old = all(kept[n]["facts"][f]["taken"] < began for n in kept for f in slow)
        claims.check(f"{len(slow)} slow facts are shown as they were, and as old as they are", old, ", ".join(slow))
        claims.check("the node without power is shown as it was", kept["gpu03"]["facts"]["boot"]["taken"] < began)


def faults(claims: Claims, found: dict[str, Any]) -> None:
    """What was done to gpu02 is in its facts, and nothing of it in gpu01's."""
    well, hurt, bare = (found["nodes"][name]["facts"] for name in ("gpu01", "gpu02", "gpu03"))
    claims.check("gpu01 has 8 GPUs by nvidia-smi and on the bus", _counts(well) == (8, 8), _counts(well))
    claims.check("gpu02 has 7 by nvidia-smi and 8 on the bus", _counts(hurt) == (7, 8), _counts(hurt))
    lines = {name: headline("gpus", facts["gpus"]["value"]) for name, facts in (("well", well), ("hurt", hurt), ("bare", bare))}
    claims.check("the lost GPU is told on gpu02 alone", "lost" in lines["hurt"] and "lost" not in lines["well"], lines["hurt"])
    claims.check("so are the pending row remap and the narrow link", all(w in lines["hurt"] for w in ("remap pending", "narrower")))
    log = headline("kernel-log", hurt["kernel-log"]["value"])
    claims.check("Xid 79 is in gpu02's kernel log, with its meaning", "Xid 79 on" in log and "fallen off the bus" in log, log)
    claims.check("gpu03 has no driver and says so", bare["gpus"]["value"]["status"]["unknown"] == "DriverNotLoaded", lines["bare"])


def _counts(facts: dict[str, Any]) -> tuple[int, int]:
    """GPUs by nvidia-smi, and on the PCI bus."""
    return len(facts["gpus"]["value"]["smi"]["gpus"]), len(facts["pci-gpus"]["value"]["gpus"])


def recorded_host(claims: Claims) -> None:
    """The recording of a real H200 host, taken with `reconcile observe --local --record`."""
    from click.testing import CliRunner

    from reconciler.commands.observe import observe

    files = sorted(RECORDED.glob("*.json"))
    claims.check("a recording of an H200 host is in the repository", len(files) == 1, [f.name for f in files])
    if len(files) != 1:
        return
    name = files[0].stem
    say(f"reconcile observe --from snapshots/h200 ({name})")
    runner = CliRunner()
    asked = ["--local", "--from", str(RECORDED), "--environment", "/opt/torch/.venv"]
    print(runner.invoke(observe, asked, standalone_mode=False).output)
    done = runner.invoke(observe, [*asked, "--json"], standalone_mode=False)
    check_nodes(claims, json.loads(done.output))
    facts = json.loads(done.output)["nodes"][name]["facts"]
    models = {gpu["name"] for gpu in facts["gpus"]["value"]["smi"]["gpus"]}
    claims.check("its GPUs are H200s by nvidia-smi", models == {"NVIDIA H200"}, models)
    text = files[0].read_text()
    found = sorted({m.group(0) for m in IDENTITIES.finditer(text)})
    claims.check("nothing in the recording names that one machine", not found, found[:5])


def main() -> int:
    claims = Claims("facts of lab nodes (STAND-IN GPUs) and of a recorded H200 host (real)")
    observed_lab(claims)
    recorded_host(claims)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
