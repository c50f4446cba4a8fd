"""Nodes for these tests."""

from tests.nodes.fixtures import site

__all__ = ["site"]
