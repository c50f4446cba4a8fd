"""A fresh clone's `make test` and `.ci/run` pass: with counts, the time of each lane, and the coverage of reconciler/."""

from __future__ import annotations

import re
import sys
import time

from acceptance.claims import Claims, fresh_clone, say, stream

LONGEST = 90 * 60.0  # seconds that .ci/run may take


def main() -> int:
    claims = Claims("make test and .ci/run from a fresh clone")
    for argv in (("make", "test"), ("bash", ".ci/run")):
        with fresh_clone() as clone:
            say(" ".join(argv))
            began = time.monotonic()
            code, output = stream(argv, clone)
            seconds = time.monotonic() - began
        passed = sum(int(n) for n in re.findall(r"(\d+) passed", output))
        coverage = re.findall(r"TOTAL\b.*?(\d+)%", output)
        claims.check(f"{' '.join(argv)} ends with 0", code == 0, f"exit {code}, {seconds:.0f} s")
        claims.check(
            "tests ran, and none was skipped", passed > 0 and not re.search(r"[1-9]\d* skipped", output), f"{passed} passed"
        )
        claims.check("coverage of reconciler/ is told", bool(coverage), f"{coverage[-1] if coverage else '?'}%")
        claims.check("within the time", seconds < LONGEST, f"{seconds:.0f} s of {LONGEST:.0f} s")
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
