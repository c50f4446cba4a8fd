"""A build damaged under a running process is healed as a new build; the process goes on; the old build goes once nobody needs it.

The process is a Python that imports late: some of what it needs it imports only after the damage, and after the healing.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from acceptance.claims import Claims, lab_of_own, say
from acceptance.environments import PYTHON, ROOT, SITE_PACKAGES, WHEELS, User, builds, declare, digest, linked, lock
from lab import LabNode
from tests.e2e.site import Site

BETA = "beta.py"  # what is damaged; early and late are what the process imports before and after


def files(version: str) -> dict[str, dict[str, str]]:
    alpha = {f"alpha/{name}.py": f"VERSION = {version!r}\n" for name in ("__init__", "early", "late", "later")}
    return {"alpha": alpha, "beta": {BETA: f"VERSION = {version!r}\n"}}


def imported(user: User, module: str) -> str:
    """Where the process got a module from, and its version; or the error's own words."""
    found = f"__import__('importlib').import_module('{module}')"
    return user.ask(f"(lambda m: m.__file__ + ' ' + m.VERSION)({found})")


def damaged_and_healed(claims: Claims, node: LabNode, site: Site) -> tuple[User, str]:
    say("a process runs from the build; beta is replaced in it by hand, and a file of alpha removed")
    first = linked(node)
    place = f"{ROOT}/t.d/{first}/{SITE_PACKAGES}"
    user = User(node, f"{ROOT}/t.d/{first}/bin/python")
    pid = user.pid
    claims.check(
        "the process has what it imported early", imported(user, "alpha.early") == f"{place}/alpha/early.py 1.0", f"pid {pid}"
    )
    node.run(f"cd {place} && chmod u+w . alpha && echo 'VERSION = \"by hand\"' > {BETA} && rm alpha/later.py")
    found = site.run("drift")
    print(found.stdout)
    claims.check("drift tells the disk", "files: 2 differ" in found.stdout)
    claims.check("and what runs", f"users: pid {pid} -> stay on {first}" in found.stdout)
    harm = digest(node, first)
    healed = site.run("apply")
    print(healed.text)
    claims.check("healed as build 2", linked(node) == f"{first[:-1]}2", linked(node))
    claims.check("what starts now is as locked", node.run(f"{PYTHON} -c 'import beta; print(beta.VERSION)'").stdout == "1.0\n")
    claims.check("the damaged build is as it was found, file by file", digest(node, first) == harm, harm)
    say("the process after the healing")
    claims.check("it has its pid", user.pid == pid, pid)
    claims.check("it imports what was whole from its own build", imported(user, "alpha.late") == f"{place}/alpha/late.py 1.0")
    claims.check("what somebody damaged it gets as it is", imported(user, "beta") == f"{place}/beta.py by hand")
    told = imported(user, "alpha.later")
    claims.check("what somebody removed is told by name", "No module named" in told and "alpha.later" in told, told)
    return user, first


def collected(claims: Claims, node: LabNode, site: Site, house: Path, user: User, old: str) -> None:
    say("one build is kept; two more are made; env gc")
    pid = user.pid
    site.replace("keepEnvironments: 3", "keepEnvironments: 1")
    for version in ("2.0", "3.0"):
        lock(site, house, files(version), version)
        site.ok("apply")
    cleaned = site.ok("env", "gc", "t")
    print(site.ok("env", "list").stdout)
    claims.check(
        "the build of the process is there", sorted(builds(node)) == sorted({old, linked(node)}), (builds(node), cleaned.stdout)
    )
    claims.check("and the process lives", user.pid == pid, pid)
    user.end()
    cleaned = site.ok("env", "gc", "t")
    print(cleaned.stdout)
    claims.check(
        "once it has ended its build goes", builds(node) == [linked(node)] and f"removed {old}" in cleaned.stdout, builds(node)
    )


def main() -> int:
    claims = Claims("a damaged build is healed beside its users")
    with tempfile.TemporaryDirectory(prefix="reconcile-heals-") as place:
        house = Path(place)
        with lab_of_own({"gpu01": f"bind-ro={house}:{WHEELS}"}) as (lab, folder):
            node, site = lab.nodes["gpu01"], Site.small(lab, folder)
            lock(site, house, files("1.0"))
            declare(site, keepEnvironments=3)
            site.ok("apply")
            user, first = damaged_and_healed(claims, node, site)
            collected(claims, node, site, house, user, first)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
