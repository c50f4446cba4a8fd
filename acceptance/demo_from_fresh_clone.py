"""A fresh clone's `make demo` makes three nodes alike, and a second apply makes 0 changes and 0 writes."""

from __future__ import annotations

import re
import sys

from acceptance.claims import Claims, fresh_clone, say, stream


def main() -> int:
    claims = Claims("demo from a fresh clone")
    with fresh_clone() as clone:
        say("make demo, on this machine as it is (cold: environment and lab made when they are not cached)")
        code, output = stream(("make", "demo"), clone)
        claims.check("make demo ends with 0", code == 0, f"exit {code}")
        claims.check("an apply changed three nodes", bool(re.search(r"^\d+ changes on 3 nodes$", output, re.MULTILINE)))
        claims.check("the second apply made 0 changes", bool(re.search(r"^0 changes$", output, re.MULTILINE)))
        claims.check("and 0 writes on the nodes", bool(re.search(r"\b0 (files )?(written|writes)\b", output)))
        claims.check("drift made by hand was found", bool(re.search(r"^drift: [1-9]\d* resources", output, re.MULTILINE)))
        claims.check("the demo's own verdict says STAND-IN", "STAND-IN" in output)
        say("make demo again (warm)")
        code, output = stream(("make", "demo"), clone)
        claims.check("make demo ends with 0 again", code == 0, f"exit {code}")
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
