"""Many small files and links at once: what /sys and /proc say of devices whose number is not known before."""

import glob
import os
from typing import Any, Dict

from reconciler.node.work import CODES


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`files` and `links` are patterns; `limit` is in bytes a file, of which the rest is not read.

    -> {"files": {path: text or {"error": code}}, "links": {path: target or {"error": code}}}. Files of /sys that answer with an
    error when they are read (speed of a cable that is out: EINVAL) are among them.
    """
    files: Dict[str, Any] = {}
    for pattern in arguments.get("files", []):
        for path in sorted(glob.glob(pattern)):
            files[path] = _text(path, arguments["limit"])
    links: Dict[str, Any] = {}
    for pattern in arguments.get("links", []):
        for path in sorted(glob.glob(pattern)):
            try:
                links[path] = os.readlink(path)
            except OSError as e:
                links[path] = {"error": CODES.get(e.errno or 0, "io")}
    return {"files": files, "links": links}


def _text(path: str, limit: int) -> Any:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(fd, limit).decode("utf-8", "replace")
        finally:
            os.close(fd)
    except OSError as e:
        return {"error": CODES.get(e.errno or 0, "io")}
