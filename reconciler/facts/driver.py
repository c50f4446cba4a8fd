"""The NVIDIA driver of a running node, layer by layer: on disk for each kernel, loaded, libraries, daemons."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.facts import driver_version, given, pci_gpus, raw
from reconciler.facts.driver_version import DriverVersion
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Unknown, Value

_VERSION = re.compile(r"\d{2,4}(?:\.\d{1,4}){1,2}")
_LIBRARY = re.compile(r"lib[\w-]{1,40}\.so\.(\d{2,4}(?:\.\d{1,4}){1,2})\Z")
_FABRIC = re.compile(r"\b[Vv]ersion(?: is)? ?:? ?(\d{2,4}(?:\.\d{1,4}){1,2})\b")
_FIELD = re.compile(r"^(version|license):[ \t]{1,16}([^\n]{1,80})$", re.MULTILINE)
# MODULE_LICENSE of the two kinds of module that NVIDIA builds
_FLAVOURS = {"Dual MIT/GPL": "open", "NVIDIA": "proprietary"}


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A module file. `listed`: modprobe knows it, by modules.dep. `flavour`: open or proprietary, by its license."""

    path: str
    listed: Fact[bool]
    version: Fact[str]
    flavour: Fact[str]


@dataclass(frozen=True, slots=True)
class Library:
    """A library of the driver; its version stands in the name of the real file."""

    name: str
    path: str
    version: Fact[str]


@dataclass(frozen=True, slots=True)
class Daemon:
    """`unit`: the unit file, Absent(NoUnit). `pids`: what runs in it now; none is a daemon that does not run."""

    unit: Fact[str]
    pids: Fact[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Driver:
    """`state`: no-hardware, not-on-disk, not-loaded; or, of a loaded one, the first that holds: version-mismatch (libraries of
    another version: nothing that starts now works), reboot-pending (another version on the disk for this kernel), loaded.

    `gpus`, `switches`: on the PCI bus. `kernels`: by release, Absent(NotOnDisk) for one that would boot without a driver.
    `on_disk`: the version for the running kernel. `userspace`: of all libraries, Unknown(Several) where they differ.
    `fabric_manager` has work only where there are switches.
    """

    state: Fact[str]
    gpus: Fact[int]
    switches: Fact[int]
    running_kernel: Fact[str]
    kernels: Fact[Mapping[str, Fact[OnDisk]]]
    on_disk: Fact[str]
    loaded: Fact[DriverVersion]
    loaded_version: Fact[str]
    libraries: tuple[Library, ...]
    userspace: Fact[str]
    fabric_manager: Daemon
    fabric_manager_version: Fact[str]
    persistence_daemon: Daemon


def parse(raws: tuple[Raw, ...]) -> Fact[Driver]:
    """A value even where nothing is there, with its state; Unknown where the node did not answer."""
    said, bus = raw.fragment(raws[0]), pci_gpus.inventory(raws[1])
    if not isinstance(said, Value):
        return said
    answer = said.value if isinstance(said.value, Mapping) else {}
    running, kernels, loaded = given.text(answer, "running"), _kernels(answer), _loaded(answer)
    libraries = _libraries(answer)
    gpus, module, version = pci_gpus.count(bus), _of_running(running, kernels), _loaded_version(answer, loaded)
    on_disk = module.value.version if isinstance(module, Value) else module
    userspace = _userspace(libraries)
    units = given.mapping(answer, "units")
    return Value(
        Driver(
            state=_loaded_state(on_disk, version, userspace) if isinstance(version, Value) else _state(gpus, module, version),
            gpus=gpus,
            switches=Value(len(bus.value.switches)) if isinstance(bus, Value) else bus,
            running_kernel=running,
            kernels=kernels,
            on_disk=on_disk,
            loaded=loaded,
            loaded_version=version,
            libraries=libraries if isinstance(libraries, tuple) else (),
            userspace=userspace,
            fabric_manager=_daemon(units, "nvidia-fabricmanager.service"),
            fabric_manager_version=_fabric_manager(answer),
            persistence_daemon=_daemon(units, "nvidia-persistenced.service"),
        )
    )


def _loaded_state(on_disk: Fact[str], loaded: Value[str], userspace: Fact[str]) -> Fact[str]:
    """A version that is not known differs from nothing: its own field says so."""
    if isinstance(userspace, Value) and userspace != loaded:
        return Value("version-mismatch")
    return Value("reboot-pending") if isinstance(on_disk, Value) and on_disk != loaded else Value("loaded")


def _state(gpus: Fact[int], module: Fact[OnDisk], loaded: Fact[str]) -> Fact[str]:
    if isinstance(loaded, Unknown):
        return loaded
    if not isinstance(gpus, Value):
        return gpus
    if not gpus.value:
        return Value("no-hardware")
    if isinstance(module, Unknown):
        return module
    return Value("not-loaded" if isinstance(module, Value) else "not-on-disk")


def _kernels(answer: Mapping[str, Any]) -> Fact[Mapping[str, Fact[OnDisk]]]:
    releases = answer.get("kernels")
    if not isinstance(releases, Mapping) or isinstance(releases.get("error"), str):
        return _never(given.text(answer, "kernels", "NoModulesFolder"))
    return Value({raw.clean(release, 80): _kernel(releases, release) for release in releases})


def _never(fact: Fact[Any]) -> Absent | Unknown:
    """Of an answer that is no text: why."""
    return given.WRONG if isinstance(fact, Value) else fact


def _kernel(releases: Mapping[str, Any], release: str) -> Fact[OnDisk]:
    item = releases[release]
    if not isinstance(item, Mapping) or "error" in item:
        return _never(given.text(releases, release, "NotOnDisk"))
    path = given.text(item, "path")
    if not isinstance(path, Value):
        return path
    info = given.text(item, "info")
    compressed = isinstance(info, Unknown) and not path.value.endswith(".ko")
    why: Fact[str] = Unknown("CompressedModule") if compressed else info
    fields = {name: value.strip() for name, value in _FIELD.findall(info.value)} if isinstance(info, Value) else {}
    return Value(
        OnDisk(
            path=raw.clean(path.value),
            listed=given.flag(item, "listed"),
            version=_version(fields.get("version")) if isinstance(info, Value) else why,
            flavour=_flavour(fields.get("license")) if isinstance(info, Value) else why,
        )
    )


def _version(text: str | None) -> Fact[str]:
    if text is None:
        return Unknown("Missing", "version")
    return Value(text) if _VERSION.fullmatch(text) else Unknown("UnreadableCell", raw.clean(text, 80))


def _flavour(license_text: str | None) -> Fact[str]:
    if license_text is None:
        return Unknown("Missing", "license")
    known = _FLAVOURS.get(license_text)
    return Value(known) if known else Unknown("UnexpectedWord", raw.clean(license_text, 80))


def _of_running(running: Fact[str], kernels: Fact[Mapping[str, Fact[OnDisk]]]) -> Fact[OnDisk]:
    if not isinstance(running, Value):
        return running
    if not isinstance(kernels, Value):
        return kernels
    return kernels.value.get(running.value, Absent("NotOnDisk"))


def _loaded(answer: Mapping[str, Any]) -> Fact[DriverVersion]:
    text = answer.get("loaded")
    if isinstance(text, str):
        return driver_version.parse(text)
    return _never(given.text(answer, "loaded", "NotLoaded"))


def _loaded_version(answer: Mapping[str, Any], loaded: Fact[DriverVersion]) -> Fact[str]:
    """By /proc, else by /sys/module, which is there also while it loads. Unknown where the two differ."""
    module = given.text(answer, "module", "NotLoaded")
    by_sys = _version(module.value) if isinstance(module, Value) else module
    if not isinstance(loaded, Value):
        return by_sys if isinstance(by_sys, Value) else loaded
    by_proc = loaded.value.version
    if isinstance(by_proc, Value) and isinstance(by_sys, Value) and by_proc != by_sys:
        return Unknown("Repeated", f"{by_proc.value} {by_sys.value}")
    return by_proc


def _libraries(answer: Mapping[str, Any]) -> tuple[Library, ...] | Unknown:
    items = given.objects(answer, "libraries")
    if not isinstance(items, Value):
        return items if isinstance(items, Unknown) else given.WRONG
    found = []
    for item in items.value:
        texts = [given.text(item, key) for key in ("name", "path", "real")]
        name, path, real = (raw.clean(text.value, 200) if isinstance(text, Value) else "?" for text in texts)
        version = _LIBRARY.match(real)
        found.append(Library(name, path, Value(version[1]) if version else Unknown("NoVersionInName", real)))
    return tuple(found)


def _userspace(libraries: tuple[Library, ...] | Unknown) -> Fact[str]:
    if isinstance(libraries, Unknown):
        return libraries
    if not libraries:
        return Absent("NotInstalled")
    versions = {library.version for library in libraries}
    if len(versions) == 1:
        return versions.pop()
    return Unknown("Several", ", ".join(sorted(v.value if isinstance(v, Value) else "?" for v in versions)))


def _daemon(units: Mapping[str, Any], name: str) -> Daemon:
    about = given.mapping(units, name)
    if not about:
        return Daemon(Unknown("Missing", name), Unknown("Missing", name))
    pids = about.get("pids")
    known = isinstance(pids, list) and all(type(pid) is int for pid in pids)
    path = about.get("file")
    return Daemon(
        unit=Absent("NoUnit") if path == "" else Value(raw.clean(path)) if isinstance(path, str) else given.WRONG,
        pids=Value(tuple(pids or ())) if known else _never(given.text(about, "pids", "NoCgroups")),
    )


def _fabric_manager(answer: Mapping[str, Any]) -> Fact[str]:
    """Asked only where the driver of NVSwitches is loaded."""
    if "fabric_manager" not in answer:
        return Absent("NoSwitches")
    item = given.mapping(answer, "fabric_manager")
    if "error" in item:
        return _never(given.text(answer, "fabric_manager", "NotInstalled"))
    text = given.text(item, "out")
    if not isinstance(text, Value):
        return text
    if item.get("status") != 0:
        return Unknown("CommandFailed", raw.clean(text.value))
    found = _FABRIC.search(text.value)
    return Value(found[1]) if found else Unknown("NoVersionLine", raw.clean(text.value, 120))


def stable(value: Any) -> Any:
    """Everything but numbers of processes: whether the daemons run."""
    daemons = {
        name: {"unit": value[name]["unit"], "runs": bool(value[name]["pids"]) if isinstance(value[name]["pids"], list) else "?"}
        for name in ("fabric_manager", "persistence_daemon")
    }
    return {**value, **daemons}


def _ask(*, modinfo: bool) -> Ask:
    return Ask("driver", json.dumps({"modinfo": modinfo}), 20.0 if modinfo else 10.0, quick=not modinfo)


FACT = LiveFact("driver", lambda about: (_ask(modinfo=False), pci_gpus.ASK), parse, stable)
# the same with modinfo, which unpacks compressed modules: their versions are known only here
MODULES = LiveFact("driver-modules", lambda about: (_ask(modinfo=True), pci_gpus.ASK), parse, stable, slow=True)
