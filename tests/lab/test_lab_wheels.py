"""The lab's wheels: what manifests/lab-trio locks is what the lab serves, byte for byte."""

import hashlib
from pathlib import Path

from lab.packages import wheels
from reconciler.model.lock import parse

LOCK = Path(__file__).parents[2] / "manifests/lab-trio/locks/lab/tools.txt"


def test_the_lock_of_the_labs_site_names_the_labs_wheels(tmp_path: Path) -> None:
    wheels.build(tmp_path / "wheels")
    lock, flaws = parse(LOCK.read_bytes())
    assert flaws == ()
    assert lock is not None
    for pinned in lock.pinned.values():
        content = (tmp_path / "wheels" / wheels.filename(pinned.name, pinned.version)).read_bytes()
        assert pinned.hashes == (hashlib.sha256(content).hexdigest(),)
