"""A data centre on one Linux box: nodes with real systemd, sshd, dnf, rpm and apt, and faults on demand.

`python -m lab up --nodes 3 --debian 1`; from Python: `Lab.from_environment().up(nodes=3)`. Needs root on Debian 12.
"""

from lab.cluster import Lab
from lab.config import LabConfig
from lab.errors import LabError
from lab.node import LabNode
from lab.nodespec import NodeSpec

__all__ = ["Lab", "LabConfig", "LabError", "LabNode", "NodeSpec"]
