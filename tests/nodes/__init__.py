"""Nodes for fast tests: the real node program, each with folders of its own, and stand-ins for what this machine lacks."""
