"""The NVIDIA kernel module that is loaded: /proc/driver/nvidia/version."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reconciler.facts import raw, text
from reconciler.model.fact import Absent, Fact, Unknown, Value

_LINE = re.compile(
    r"NVRM version:[ \t]{1,8}NVIDIA (?:UNIX|Linux)(?P<open> Open)?(?: (?P<arch>\w{1,12}))? Kernel Module(?: for (?P<for>\w{1,12}))?"
    r"[ \t]{1,8}(?P<version>[0-9]{2,4}(?:\.[0-9]{1,4}){1,2})(?P<end>\s|\.?\Z)(?P<rest>[^\n]{0,300})"
)
_DATE = re.compile(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} (?:[A-Z]{2,5} )?[0-9]{4}\b")
_GCC = re.compile(r"GCC version:[ \t]{0,8}([^\n]{1,300})")
# ENOENT as glibc says it in the locales that people send text from
_NO_FILE = (
    "No such file or directory",
    "Datei oder Verzeichnis nicht gefunden",
    "Aucun fichier ou dossier de ce",
    "No existe el fichero o el directorio",
    "No existe el archivo o el directorio",
    "Нет такого файла или каталога",
    "没有那个文件或目录",
    "そのようなファイルやディレクトリはありません",
)


@dataclass(frozen=True, slots=True)
class DriverVersion:
    """The loaded module. `flavour`: open or proprietary. `compiler`: what built it. `built`: as printed; some have none."""

    version: Fact[str]
    flavour: Fact[str]
    arch: Fact[str]
    built: Fact[str]
    compiler: Fact[str]


def parse(output: str) -> Fact[DriverVersion]:
    """Absent(NotLoaded) where the file is not there, for the module makes it. A version that ends the text may be cut: Unknown."""
    whole, last = text.ended(output)
    content = whole + last
    found = _LINE.search(content)
    if not found:
        if any(words in content[:2000] for words in _NO_FILE):
            return Absent("NotLoaded")
        return Unknown("NoVersionLine", raw.clean(content[:1000]))
    arch = found["arch"] or found["for"]
    built, compiler = _DATE.search(found["rest"]), _GCC.search(whole)
    cut = not found["end"].isspace()
    return Value(
        DriverVersion(
            version=Unknown("MayBeCut", found["version"]) if cut else Value(found["version"]),
            flavour=Value("open" if found["open"] else "proprietary"),
            arch=Value(arch) if arch else Unknown("NotSaid"),
            built=Value(built[0]) if built else Unknown("NotSaid"),
            compiler=Value(compiler[1].strip()) if compiler and compiler[1].strip() else Unknown("Missing"),
        )
    )
