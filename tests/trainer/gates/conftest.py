"""These tests need torch itself: the lane `train` has it, and the other lanes do not look into this folder."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
