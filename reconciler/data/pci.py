"""Names of PCI devices: `pci.yaml` of this package."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources

import yaml


@functools.cache
def names() -> Mapping[str, str]:
    """Device id (four hexadecimal digits) of vendor 10de -> name."""
    text = (resources.files("reconciler.data") / "pci.yaml").read_text(encoding="utf-8")
    return {str(key): str(name) for key, name in yaml.safe_load(text)["devices"].items()}
