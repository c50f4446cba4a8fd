"""Shared by all tests."""

import sys
from pathlib import Path

# `lab` is a package of this repository that no installation carries: plain `pytest` has to find it as well
sys.path.insert(0, str(Path(__file__).parent.parent))

pytest_plugins = ["tests.labfixture"]
