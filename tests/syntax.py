"""The product's sources as syntax trees: read and parsed once in a process, for all tests that look through them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "reconciler"


@cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    """Each module below reconciler/ by its path there, sorted."""
    return tuple((path.relative_to(SOURCES), ast.parse(path.read_text())) for path in sorted(SOURCES.rglob("*.py")))


@cache
def calls() -> tuple[tuple[Path, ast.Call], ...]:
    """Every call that is written there, with its module."""
    return tuple((path, node) for path, tree in trees() for node in ast.walk(tree) if isinstance(node, ast.Call))
