"""Names as this node resolves them: by its own nsswitch.conf, as every program here does."""

import _socket  # socket itself costs a millisecond of imports
import threading
import time
from typing import Any, Dict


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`names`: a list; `seconds`: how long to wait for all of them, side by side.

    -> {name: [address] | {"error": "none" | "again" | "deadline" | text}}, addresses in the order of the resolver.
    """
    found: Dict[str, Any] = {}
    names = list(arguments["names"])
    threads = [threading.Thread(target=_work, args=(names[i::32], found), daemon=True) for i in range(min(32, len(names)))]
    for thread in threads:
        thread.start()
    until = time.monotonic() + arguments["seconds"]
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return {name: found.get(name, {"error": "deadline"}) for name in names}


def _work(names: Any, found: Dict[str, Any]) -> None:
    for name in names:
        found[name] = _one(name)


def _one(name: str) -> Any:
    try:
        rows = _socket.getaddrinfo(name, None, 0, _socket.SOCK_STREAM)
    except _socket.gaierror as e:
        if e.errno in (_socket.EAI_NONAME, getattr(_socket, "EAI_NODATA", _socket.EAI_NONAME)):
            return {"error": "none"}
        return {"error": "again" if e.errno == _socket.EAI_AGAIN else str(e.strerror)}
    except (OSError, ValueError) as e:  # a name that no encoding of host names takes
        return {"error": str(e)}
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
