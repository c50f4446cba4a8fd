"""What the model declares, and what a node has to look like then: worked out here, apart from the product."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from reconciler.model.desired import (
    DesiredNode,
    DesiredState,
    GpuDriverSpec,
    PackageSpec,
    Resource,
    ResourceId,
    Revision,
    Rollout,
    SshAccess,
)
from tests.nodes.cluster import AT, desired
from tests.simulated import gpu
from tests.simulated.acts import FILES, GPU_NODES, NODES, NOT_OFFERED, PACKAGES
from tests.simulated.machine import LOCKS, Machine

FIRST = {"/etc/motd": "one\n", "alpha": "1-1", "max": "2"}
PROFILES = {"a": "gpu", "b": "gpu", "c": "cpu"}


@dataclass
class Manifest:
    """Every revision, the last one in force. A revision: resource or rollout field -> its value."""

    revisions: list[dict[str, str]] = field(default_factory=lambda: [dict(FIRST)])

    @property
    def now(self) -> dict[str, str]:
        return self.revisions[-1]

    def edit(self, what: str, value: str | None) -> None:
        news = {k: v for k, v in self.now.items() if k != what}
        self.revisions.append(news if value is None else {**news, what: value})

    def rollback(self, back: int) -> None:
        self.revisions.append(self.revisions[max(0, len(self.revisions) - 1 - back)])

    def desired(self) -> DesiredState:
        """As the source would have read it at the last commit."""
        found = self.now
        files = {path: found[path] for path in FILES if path in found}
        base = desired(NODES, files)
        packages = tuple(_package(name, found[name]) for name in PACKAGES if name in found)
        nodes = {
            name: DesiredNode(
                name, SshAccess(name), (*node.resources, *packages, *self._driver(name)), profile=PROFILES[name], manager="dnf"
            )
            for name, node in base.nodes.items()
        }
        digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
        rollout = Rollout(found.get("canary"), found.get("max", "1"))
        return DesiredState("lab", Revision(f"{len(self.revisions):040x}"), digest, nodes, rollout)

    def _driver(self, node: str) -> tuple[Resource, ...]:
        version = self.now.get("driver")
        if version is None or node not in GPU_NODES:
            return ()
        members = tuple(PackageSpec(name, "exact", version) for name in gpu.PACKAGES)
        spec = GpuDriverSpec(version, members, gpu.stream_of(version), gpu.GPUS)
        return (Resource(ResourceId("GpuDriver", "nvidia"), spec, AT),)

    def driver_unmet(self, machine: Machine) -> list[str]:
        """Layers of the declared driver that are not as declared."""
        version = self.now.get("driver")
        if version is None or machine.name not in GPU_NODES:
            return []
        locks = (machine.text(LOCKS) or "").splitlines()
        layers = {
            "stream": machine.text(gpu.STREAM_FILE) == gpu.enabled(version),
            "packages": all(machine.packages.get(name) == f"{version}-1" for name in gpu.PACKAGES),
            "locks": all(f"{name}-0:{version}-1.*" in locks for name in gpu.PACKAGES),
            "module": machine.gpu.module == version,
            "loaded": machine.gpu.loaded == version,
        }
        return [name for name, met in layers.items() if not met]

    def driver_holds(self, machine: Machine) -> set[str]:
        """Why the driver may be left as it is now, each true on this node."""
        unmet = set(self.driver_unmet(machine))
        found = set()
        if machine.gpu.user and unmet & {"packages", "module", "loaded"}:
            found.add("GpuInUse")
        if "module" in unmet and "packages" not in unmet:
            found.add("NoModuleForNextKernel")
        if "loaded" in unmet and machine.gpu.failed == self.now["driver"]:
            found.add("DriverDidNotLoad")
        return found

    def unmet(self, machine: Machine) -> list[str]:
        """What on a node is not as declared."""
        found = self.now
        wrong = [p for p in FILES if p in found and machine.text(p) != found[p]]
        wrong += [
            p for p in FILES if p in found and machine.place(p).is_file() and machine.place(p).stat().st_mode & 0o7777 != 0o644
        ]
        for path in ("/etc/hostname", "/proc/sys/kernel/hostname"):
            if machine.text(path) != f"{machine.name}\n":
                wrong.append(path)
        wrong += [f"driver {layer}" for layer in self.driver_unmet(machine)]
        return wrong + [name for name in PACKAGES if not self._package_met(machine, name)]

    def unexcused(self, machine: Machine) -> list[str]:
        """The same without a driver that is held for a reason."""
        return [what for what in self.unmet(machine) if not what.startswith("driver ") or not self.driver_holds(machine)]

    def _package_met(self, machine: Machine, name: str) -> bool:
        wanted, installed = self.now.get(name), machine.packages.get(name)
        if wanted in (None, NOT_OFFERED):
            return True
        if wanted in ("present", "absent"):
            return (installed is not None) == (wanted == "present")
        locks = (machine.text(LOCKS) or "").splitlines()
        return installed == wanted and [line for line in locks if line.startswith(f"{name}-")] == [f"{name}-0:{wanted}.*"]

    def held(self, machine: Machine) -> bool:
        """Whether something is declared that cannot be had."""
        missing = any(self.now.get(n) == NOT_OFFERED and machine.packages.get(n) != NOT_OFFERED for n in PACKAGES)
        return missing or bool(self.driver_holds(machine))

    def undeclared(self, machine: Machine) -> dict[str, str | None]:
        """What the manifest does not speak of: it is nobody's to touch."""
        files = {str(f): f.read_text() for f in (machine.folder / "etc").rglob("*") if f.is_file() and not f.name.endswith("~")}
        ours = {str(machine.place(p)) for p in (*self.now, "/etc/hostname", LOCKS)}
        ours |= {str(machine.place(gpu.STREAM_FILE))} if "driver" in self.now else set()
        declared = {*self.now, *(gpu.PACKAGES if "driver" in self.now else ())}
        packages = {name: version for name, version in machine.packages.items() if name not in declared}
        return {**{k: v for k, v in files.items() if k not in ours}, **packages}


def _package(name: str, ensure: str) -> Resource:
    spec = PackageSpec(name, ensure) if ensure in ("present", "absent") else PackageSpec(name, "exact", ensure)  # type: ignore[arg-type]
    return Resource(ResourceId("Package", name), spec, AT)
