"""Settings of the controller: they guard the repository, so they cannot come from it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reconciler.apply.lease import TTL
from reconciler.errors import Usage


@dataclass(frozen=True, slots=True)
class Config:
    """`state_dir`: the controller's records. `lease_ttl`: seconds without a renewal until others may take over."""

    state_dir: Path
    lease_ttl: float = TTL


def load(state_dir: str | None) -> Config:
    """From the option, else RECONCILE_STATE_DIR, else a place by user; RECONCILE_LEASE_TTL in seconds. Raises Usage."""
    chosen = state_dir or os.environ.get("RECONCILE_STATE_DIR")
    if not chosen:
        base = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
        chosen = "/var/lib/reconcile-controller" if os.geteuid() == 0 else str(Path(base) / "reconcile")
    ttl = os.environ.get("RECONCILE_LEASE_TTL", "")
    try:
        seconds = float(ttl) if ttl else TTL
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 3600:
        raise Usage("WrongSetting", name="RECONCILE_LEASE_TTL", value=ttl, allowed="1 to 3600 seconds")
    return Config(Path(chosen).absolute(), seconds)
