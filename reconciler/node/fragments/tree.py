"""Many small files and links at once: what /sys and /proc say of devices whose number is not known before."""

import glob
import os
from typing import Any, Dict

from reconciler.node.work import CODES, head


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`files` and `links` are patterns; `limit` is in bytes a file, of which the rest is not read.

    -> {"files": {path: text or {"error": code}}, "links": {path: target or {"error": code}}}. Files of /sys that answer with an
    error when they are read (speed of a cable that is out: EINVAL) are among them.
    """
    files: Dict[str, Any] = {}
    for pattern in arguments.get("files", []):
        for path in sorted(glob.glob(pattern)):
            files[path] = head(path, arguments["limit"])
    links: Dict[str, Any] = {}
    for pattern in arguments.get("links", []):
        for path in sorted(glob.glob(pattern)):
            try:
                links[path] = os.readlink(path)
            except OSError as e:
                links[path] = {"error": CODES.get(e.errno or 0, "io")}
    return {"files": files, "links": links}
