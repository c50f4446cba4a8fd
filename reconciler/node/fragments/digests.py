"""Files by digest: enough to see that two nodes differ, and nothing of what stands in them."""

import glob
import hashlib
import os
import stat
from typing import Any, Dict

from reconciler.node.files import group_name, user_name
from reconciler.node.work import CODES

LIMIT = 4 << 20


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`patterns` -> {path: {"mode", "owner", "group", "size", "sha256", "link"}}, or "error" in the place of the digest."""
    found: Dict[str, Any] = {}
    for pattern in arguments["patterns"]:
        for path in sorted(glob.glob(pattern)):
            found[path] = _file(path)
    return found


def _file(path: str) -> Dict[str, Any]:
    try:
        answer: Dict[str, Any] = {"link": os.readlink(path)} if os.path.islink(path) else {}
        info = os.stat(path)
    except OSError as e:
        return {"error": CODES.get(e.errno or 0, "io")}
    answer.update(mode=stat.S_IMODE(info.st_mode), owner=user_name(info.st_uid), group=group_name(info.st_gid), size=info.st_size)
    if not stat.S_ISREG(info.st_mode):
        return dict(answer, error="not-regular")
    if info.st_size > LIMIT:
        return dict(answer, error="too-large")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as f:
            return dict(answer, sha256=hashlib.sha256(f.read(LIMIT)).hexdigest())
    except OSError as e:
        return dict(answer, error=CODES.get(e.errno or 0, "io"))
