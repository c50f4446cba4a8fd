"""Addresses without what must not be kept: passwords and tokens."""

from __future__ import annotations

import re

# user:password@ and token@ behind any scheme; the host that follows shows that it is one
_LOGIN = re.compile(r"(?<=://)[^/\s@?#]*(?:@[^/\s@?#]*)*@(?=[^\s@/])")
_SECRET = re.compile(
    r"(?i)([?&;](?:[a-z0-9]+[_-])*(?:api|access|auth)?(?:token|key|password|passwd|secret|signature|sig|auth)=)[^&;#\s]+"
)
MARK = "REDACTED"


def redacted(text: str) -> str:
    """The text with each login in an address, and each secret in a query, as REDACTED. `git@` alone is no secret."""
    without = _LOGIN.sub(lambda found: found[0] if found[0] == "git@" else MARK + "@", text)
    return _SECRET.sub(lambda found: found[1] + MARK, without)
