"""What no formatter and no linter looks for: sizes, swallowed errors, skipped tests, marks of unfinished work.

`python -m tools.habits` prints what is wrong as FILE:LINE: WHAT and exits 1 when there is anything.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.sources import ROOT, Finding, files, python

MODULE_LINES = 300
FUNCTION_LINES = 40

# FILE or FILE:FUNCTION or FILE:WHAT -> why it may be so. The only exceptions there are.
EXEMPT: dict[str, str] = {}

_BROAD = {"Exception", "BaseException"}
_SKIPS = {"skip", "skipif", "skipIf", "skipUnless", "importorskip", "xfail"}
_UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")


def sizes(name: str, text: str, tree: ast.Module) -> Iterator[Finding]:
    """A module or function that is longer than it may be. Decorators do not count, a docstring does."""
    lines = len(text.splitlines())
    if lines > MODULE_LINES and name not in EXEMPT:
        yield Finding(name, 1, f"{lines} lines; a module has {MODULE_LINES} at most")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES and f"{name}:{node.name}" not in EXEMPT:
                yield Finding(name, node.lineno, f"{node.name} has {length} lines; a function has {FUNCTION_LINES} at most")


def swallowed(name: str, tree: ast.Module) -> Iterator[Finding]:
    """Every error caught and nothing done about it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and all(map(_is_nothing, node.body)):
            yield Finding(name, node.lineno, "catches every error and does nothing about it")
        if isinstance(node, ast.Call) and _called(node) == "suppress" and any(map(_is_broad, node.args)):
            yield Finding(name, node.lineno, "suppresses every error")


def _is_broad(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(map(_is_broad, kind.elts))
    return kind is None or (isinstance(kind, ast.Name) and kind.id in _BROAD)


def _is_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass | ast.Continue) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def skips(name: str, tree: ast.Module) -> Iterator[Finding]:
    """A test that can be passed over: pytest.skip, pytest.mark.xfail, unittest's."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr not in _SKIPS or f"{name}:{node.attr}" in EXEMPT:
            continue
        if _root(node) in ("pytest", "unittest"):
            yield Finding(name, node.lineno, f"{node.attr}: a test runs, or it is not there")


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def unfinished(name: str, text: str) -> Iterator[Finding]:
    """A mark of work that somebody meant to do."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _UNFINISHED.search(line):
            yield Finding(name, number, f"{found[0]}: do it, or say in the documentation that it is missing")


def findings(root: Path = ROOT) -> list[Finding]:
    """Everything that is wrong in the repository at `root`."""
    found: list[Finding] = []
    for path in files(root):
        found += unfinished(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    for path in python(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        tree = ast.parse(text, name)
        found += [*sizes(name, text, tree), *swallowed(name, tree), *skips(name, tree)]
    return sorted(found)


def main(found: Iterable[Finding]) -> int:
    """Print them; the exit status."""
    told = list(found)
    for finding in told:
        print(finding)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(findings()))
