"""A fresh clone passes `.ci/run`, and so `make check` and `make test`: with counts, the time of each lane, and the coverage."""

from __future__ import annotations

import re
import sys
import time

from acceptance.claims import Claims, fresh_clone, say, stream

LONGEST = 90 * 60.0  # seconds that .ci/run may take
LONGEST_TEST = 25 * 60.0  # and make test in it


def main() -> int:
    claims = Claims("make test and .ci/run from a fresh clone")
    with fresh_clone() as clone:
        say("bash .ci/run")
        began = time.monotonic()
        code, output = stream(("bash", ".ci/run"), clone)
        seconds = time.monotonic() - began
    claims.check(".ci/run ends with 0, within its time", code == 0 and seconds < LONGEST, f"exit {code}, {seconds:.0f} s")
    stages = dict(re.findall(r"^ci: (make \w+): exit 0, (\d+) s$", output, re.MULTILINE))
    test = float(stages.get("make test", "inf"))
    claims.check("make check passed in it", "make check" in stages, f"{stages.get('make check')} s")
    claims.check("make test passed in it, within its time", test < LONGEST_TEST, f"{test:.0f} s of {LONGEST_TEST:.0f} s")
    lanes = dict(re.findall(r"^lane (\w+): passed, ([\d.]+) s$", output, re.MULTILINE))
    claims.check("both lanes passed", {"fast", "lab"} <= lanes.keys(), lanes)
    passed = [int(n) for n in re.findall(r"(\d+) passed", output)]
    claims.check(
        "tests ran, and none was skipped", min(passed, default=0) > 0 and not re.search(r"[1-9]\d* skipped", output), passed
    )
    coverage = re.findall(r"TOTAL\b.*?(\d+)%", output)
    claims.check("coverage of reconciler/ is told", bool(coverage), f"{coverage[-1] if coverage else '?'}%")
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
