"""The node program as one compressed text, and the one line that starts it over any channel."""

from __future__ import annotations

import base64
import zlib
from importlib import resources

from reconciler.transport.once import once

MODULES = (
    "state",
    "units",
    "files",
    "lease",
    "restarts",
    "steps",
    "work",
    "available",
    "fragments",
    "probe",
    "watch",
    "runner",
    "main",
)

# Every module is registered under its own name, so that imports read the same here and on the node.
_HEAD = """import sys, types, zlib
def _load(name, text):
    module = types.ModuleType(name)
    module.__file__ = name
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    exec(compile(text, name, "exec"), module.__dict__)
_load("reconciler", "")
_load("reconciler.node", "")
"""

# The unit runs the stored text as a script; over a channel the text is exec'ed with `argv` empty.
_TAIL = """
if __name__ == "__main__":
    sys.exit(sys.modules["reconciler.node.main"].main(globals().get("_packed", b""), sys.argv[1:]))
"""

# `python3 -` would read its input to the end and could never take a request: read N bytes of program, then serve.
BOOTSTRAP = (
    "import sys,zlib;i=sys.stdin.buffer.raw;n=int(b''.join(iter(lambda:i.read(1)or sys.exit(1),b'\\n')));p=b'';\n"
    "while len(p)<n:\n"
    " b=i.read(n-len(p));p+=b or sys.exit(1)\n"
    "_packed=p;exec(compile(zlib.decompress(p),'reconcile-node','exec'))"
)


@once
def packed() -> bytes:
    """The program, zlib-compressed: about 10 KB, made once a process."""
    package = resources.files("reconciler.node")
    parts = [_HEAD]
    for module in MODULES:
        file = package / module / "__init__.py" if module == "fragments" else package / f"{module}.py"
        text = file.read_text(encoding="utf-8")
        parts.append(f"_load({f'reconciler.node.{module}'!r}, {text!r})\n")
    return zlib.compress("".join([*parts, _TAIL]).encode(), 9)


@once
def fragment(name: str) -> str:
    """A part of the program that travels with the probe that needs it: zlib, base64."""
    text = (resources.files("reconciler.node") / "fragments" / f"{name}.py").read_bytes()
    return base64.b64encode(zlib.compress(text, 9)).decode()


def argv(python: str = "python3") -> tuple[str, ...]:
    """What to run on the node. -I: nothing of the caller's environment; -S: no site packages; -s: no user's."""
    return (python, "-ISsc", BOOTSTRAP)


def preamble() -> bytes:
    """What to send first: the length, then the program."""
    return str(len(packed())).encode() + b"\n" + packed()
