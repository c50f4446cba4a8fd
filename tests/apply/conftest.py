"""Nodes for these tests."""

from tests.nodes.fixtures import control, site

__all__ = ["control", "site"]
