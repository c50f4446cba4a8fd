"""Which kernel GRUB starts next: from its environment block, its configuration and Boot Loader Specification entries.

Written after grub-core/normal/menu.c (a default that matches nothing is the first entry), the blscfg module of EL9 and Fedora
(order of its entries), and what grub-mkconfig of EL9 and Debian 12 writes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.facts import order, raw
from reconciler.model.fact import Fact, Unknown, Value

FOLDERS = ("/boot/grub2", "/boot/grub")
BLS = "/boot/loader/entries/"
SYSTEMD_BOOT = ("/boot/loader/loader.conf", "/boot/efi/loader/loader.conf", "/efi/loader/loader.conf")
FILES = (*(f"{folder}/{name}" for folder in FOLDERS for name in ("grub.cfg", "grubenv")), *SYSTEMD_BOOT)

_DEFAULT = re.compile(r"^\s*set default=(?:\"([^\"]*)\"|'([^']*)')\s*$", re.MULTILINE)
_COUNTED = re.compile(r"^\s*set default=1\s*$", re.MULTILINE)
_BLSCFG = re.compile(r"^\s*blscfg\b", re.MULTILINE)
_OPEN = re.compile(r"\s*(menuentry|submenu|function)\s+(.*)\{\s*$")
_TITLE = re.compile(r"(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|(\S+))")
_ID = re.compile(r"(?:--id[ =]|\$menuentry_id_option\s+)\s*(?:'([^']*)'|\"([^\"]*)\"|(\S+))")
_LINUX = re.compile(r"\s*linux(?:16|efi)?\s+(\S+)\s*(.*)$")
_IMAGE = re.compile(r"vmlinu[xz]-(\S+)$")


@dataclass(slots=True)
class _Item:
    """An entry of a menu, or a menu below it."""

    title: str
    id: str = ""
    image: str = ""
    options: str = ""
    menu: list[_Item] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What boots next. `release`: the kernel's, from the name of its image. `once`: for one boot only (grub-reboot).

    `chosen`: the default as GRUB has it, empty for the first entry. `options`: as written, with GRUB's variables in it.
    """

    title: str
    id: str
    release: Fact[str]
    options: str
    chosen: str
    once: bool


def environment(text: str) -> Fact[dict[str, str]]:
    """grubenv: `name=value` lines in a block that is filled up with `#`."""
    if not text.startswith("# GRUB Environment Block\n"):
        return Unknown("NotAGrubEnvironment", raw.clean(text[:400], 60))
    lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return Value({name: value for name, equals, value in lines if equals})


def bls(files: Mapping[str, str]) -> list[_Item]:
    """Entries by path, in the order of GRUB's blscfg: the highest name, version and release of the file names first."""
    found = []
    for path, text in files.items():
        fields = dict(line.strip().partition(" ")[::2] for line in text.splitlines() if line.strip() and line[:1] != "#")
        fields = {name: value.strip() for name, value in fields.items()}
        name = path.rpartition("/")[2].removesuffix(".conf")
        found.append(_Item(fields.get("title", name), name, fields.get("linux", ""), fields.get("options", "")))
    return sorted(found, key=functools.cmp_to_key(_newest_first))


def _newest_first(one: _Item, two: _Item) -> int:
    return _compare(two.id, one.id)


def _compare(one: str, two: str) -> int:
    """split_package_string of blscfg.c: NAME-VERSION-RELEASE, each compared as rpm does."""
    left, right = one.rsplit("-", 2), two.rsplit("-", 2)
    for a, b in zip(left, right, strict=False):
        if found := order.compare(a, b):
            return found
    return (len(left) > len(right)) - (len(left) < len(right))


def menu(text: str) -> list[_Item]:
    """The menu of a grub.cfg, with its submenus."""
    top: list[_Item] = []
    stack: list[_Item | None] = []
    for line in text.splitlines():
        if opened := _OPEN.match(line[:2000]):
            item = _item(opened[1], opened[2])
            if item:
                outer = next((i.menu for i in reversed(stack) if i and i.menu is not None), top)
                outer.append(item)
            stack.append(item)
        elif line.strip() == "}" and stack:
            stack.pop()
        elif stack and stack[-1] and not stack[-1].image and (found := _LINUX.match(line[:8000])):
            stack[-1].image, stack[-1].options = found[1], found[2]
    return top


def _item(kind: str, rest: str) -> _Item | None:
    title = _TITLE.match(rest)
    if kind == "function" or not title:
        return None
    named = _ID.search(rest)
    return _Item(_first(title), _first(named) if named else "", menu=[] if kind == "submenu" else None)


def _first(found: re.Match[str]) -> str:
    return next((group for group in found.groups() if group is not None), "")


def pick(items: Sequence[_Item], wanted: str) -> Fact[_Item]:
    """The entry that a default names: `0`, a title, an id, `1>2` for one of a submenu. The first where there is no such entry."""
    own, _, deeper = wanted.partition(">")
    if not items:
        return Unknown("NoBootEntries")
    number = int(own) if own.isdecimal() and len(own) < 6 else -1
    found = items[number] if 0 <= number < len(items) else next((i for i in items if own and own in (i.id, i.title)), items[0])
    if found.menu is None:
        return Value(found)
    return pick(found.menu, deeper) if deeper else Unknown("SubmenuChosen", raw.clean(found.title, 80))


def _chosen(config: str, variables: Mapping[str, str]) -> Fact[tuple[str, bool]]:
    """The default and whether it is for one boot only."""
    if variables.get("next_entry") and "next_entry" in config:
        return Value((variables["next_entry"], True))
    if _COUNTED.search(config) and "boot_counter" in variables and variables.get("boot_success") == "0":
        return Unknown("BootCounting", variables["boot_counter"][:20])
    defaults = [double or single for double, single in _DEFAULT.findall(config)]
    defaults = list(dict.fromkeys(text for text in defaults if text not in ("${next_entry}", "${prev_saved_entry}")))
    if len(defaults) > 1:
        return Unknown("Several", raw.clean(", ".join(defaults), 80))
    found = defaults[0] if defaults else ""
    return Value((variables.get("saved_entry", "") if found == "${saved_entry}" else found, False))


def boots_next(files: Mapping[str, Fact[str]]) -> Fact[Entry]:
    """From those of FILES and of the entries below BLS that are there, by path.

    Unknown(NoBootLoader) where there is no configuration: a container, or /boot is not mounted.
    """
    config = next((files[f"{folder}/grub.cfg"] for folder in FOLDERS if f"{folder}/grub.cfg" in files), None)
    if config is None:
        return Unknown("OtherBootLoader" if any(path in files for path in SYSTEMD_BOOT) else "NoBootLoader")
    block = next((files[f"{folder}/grubenv"] for folder in FOLDERS if f"{folder}/grubenv" in files), None)
    variables = environment(block.value) if isinstance(block, Value) else block if isinstance(block, Unknown) else Value({})
    if not isinstance(config, Value) or not isinstance(variables, Value):
        return next((found for found in (config, variables) if isinstance(found, Unknown)), Unknown("NotReadable", "grub.cfg"))
    chosen = _chosen(config.value, variables.value)
    if not isinstance(chosen, Value):
        return chosen
    items = _items(config.value, files)
    found = pick(items.value, chosen.value[0]) if isinstance(items, Value) else items
    if not isinstance(found, Value):
        return found
    item, image = found.value, _IMAGE.search(found.value.image)
    release: Fact[str] = Value(image[1]) if image else Unknown("NoKernelImage", raw.clean(item.image, 80))
    return Value(Entry(item.title, item.id, release, item.options, *chosen.value))


def _items(config: str, files: Mapping[str, Fact[str]]) -> Fact[list[_Item]]:
    """What the configuration shows; with blscfg in it, the entries come first, as EL9 writes it."""
    own = menu(config)
    if not _BLSCFG.search(config):
        return Value(own)
    entries = {path: text for path, text in files.items() if path.startswith(BLS)}
    texts = {path: text.value for path, text in entries.items() if isinstance(text, Value)}
    if len(texts) < len(entries):
        return Unknown("NotReadable", next(path for path in entries if path not in texts))
    return Value([*bls(texts), *own])
