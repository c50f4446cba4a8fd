"""Kernels of a node: which runs, which boots next, all that are installed, and which of them have an nvidia module."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from reconciler.facts import answers, boot_loader, raw
from reconciler.facts.live import LiveFact
from reconciler.model.fact import Absent, Ask, Fact, Raw, Read, Unknown, Value

_NOT_THERE = Absent("NoSuchFile")
_DEFAULT = re.compile(r"^[ \t]*GRUB_DEFAULT=[\"']?([^\"'\n]{1,200})[\"']?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Installed:
    """A folder of /lib/modules. `image`: there is a kernel to boot for it. `headers`: modules can be built for it.

    `modules`: nvidia.ko by path below it, each with its version, Unknown(Compressed) where that would need unpacking.
    `listed`: modules.dep names one, which is where modprobe looks; Absent(NoModuleList) where depmod never ran.
    """

    image: Fact[bool]
    headers: Fact[bool]
    listed: Fact[bool]
    modules: Fact[dict[str, Fact[str]]]


@dataclass(frozen=True, slots=True)
class Next:
    """What boots next. `driver`: whether that kernel has an nvidia module on the disk which modprobe finds."""

    entry: Fact[boot_loader.Entry]
    driver: Fact[bool]


@dataclass(frozen=True, slots=True)
class Kernel:
    """`setting`: GRUB_DEFAULT of /etc/default/grub, which counts when the configuration is written anew."""

    running: Fact[str]
    architecture: Fact[str]
    command_line: Fact[str]
    next: Next
    setting: Fact[str]
    installed: Fact[dict[str, Installed]]


def _bool(said: Any, none: Fact[bool]) -> Fact[bool]:
    if said is None:
        return none
    return Value(said) if isinstance(said, bool) else Unknown("WrongShape", raw.clean(repr(said)[:200], 60))


def _installed(said: Any) -> Installed:
    kernel = answers.mapping(said)
    modules = kernel.get("modules")
    return Installed(
        image=_bool(kernel.get("image"), Unknown("WrongShape", "image")),
        headers=_bool(kernel.get("headers"), Unknown("NotSaid")),
        listed=_bool(kernel.get("listed"), Absent("NoModuleList")),
        modules=Value({path: _version(path, version) for path, version in modules.items()})
        if isinstance(modules, dict)
        else Unknown("WrongShape", "modules"),
    )


def _version(path: str, said: Any) -> Fact[str]:
    if said is None:
        return Unknown("NotSaid" if path.endswith(".ko") else "Compressed")
    return answers.text(said)


def installed(answer: Fact[Any]) -> Fact[dict[str, Installed]]:
    found = answers.members(answer, "kernels")
    if not isinstance(found, Value):
        return found
    if set(found.value) == {"error"}:
        return answers.error(found.value)
    return Value({release: _installed(said) for release, said in found.value.items()})


def _driver(entry: Fact[boot_loader.Entry], kernels: Fact[dict[str, Installed]]) -> Fact[bool]:
    release = entry.value.release if isinstance(entry, Value) else entry
    if not isinstance(release, Value):
        return release
    if not isinstance(kernels, Value):
        return kernels
    kernel = kernels.value.get(release.value)
    if kernel is None:
        return Value(False)  # no folder of modules at all
    if isinstance(kernel.modules, Value) and not kernel.modules.value:
        return kernel.listed if isinstance(kernel.listed, Value) else Value(False)
    return kernel.listed


def _files(answer: Fact[Any], raws: tuple[Raw, ...]) -> Fact[dict[str, Fact[str]]]:
    """What there is of a boot loader, by path: fixed files and entries."""
    entries = answers.members(answer, "entries")
    if not isinstance(entries, Value):
        return entries
    found = {path: said for path, part in zip(boot_loader.FILES, raws, strict=True) if (said := raw.file_text(part)) != _NOT_THERE}
    return Value(
        found | {path: Value(said) if isinstance(said, str) else answers.error(said) for path, said in entries.value.items()}
    )


def _setting(text: Fact[str]) -> Fact[str]:
    if not isinstance(text, Value):
        return text
    found = _DEFAULT.findall(text.value)
    return Value(found[-1]) if found else Absent("NotSet")


def parse(raws: tuple[Raw, ...]) -> Fact[Kernel]:
    kernels, command_line, setting, *loader = raws
    answer = raw.fragment(kernels)
    files = _files(answer, tuple(loader))
    said = answers.mapping(answer.value) if isinstance(answer, Value) else {}
    found = installed(answer)
    entry = boot_loader.boots_next(files.value) if isinstance(files, Value) else files
    line = raw.file_text(command_line)
    return Value(
        Kernel(
            running=answers.text(said.get("running"), "NotSaid") if isinstance(answer, Value) else answer,
            architecture=answers.text(said.get("machine"), "NotSaid") if isinstance(answer, Value) else answer,
            command_line=answers.text(line.value) if isinstance(line, Value) else line,
            next=Next(entry, _driver(entry, found)),
            setting=_setting(raw.file_text(setting)),
            installed=found,
        )
    )


FACT = LiveFact(
    "kernel",
    lambda about: (
        Ask("kernels", json.dumps({"root": "/"}), quick=True),
        Read("/proc/cmdline", 1 << 16),
        Read("/etc/default/grub", 1 << 16),
        *(Read(path, 1 << 18) for path in boot_loader.FILES),
    ),
    parse,
)
