"""One document of a server on this node."""

import _socket  # socket and http.client cost 10 ms of imports: only where something listens
import errno
import time
from typing import Any, Dict

CODES = {errno.ECONNREFUSED: "refused", errno.ETIMEDOUT: "deadline", errno.EHOSTUNREACH: "unreachable"}


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`host`, `port`, `path`, `deadline` in seconds for all of it, `limit` in bytes.

    -> {"status": 200, "text": ...} or {"error": refused, deadline, too-large, not-http or io, "said": ...}.
    """
    until = time.monotonic() + arguments["deadline"]
    plain = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    plain.settimeout(arguments["deadline"])
    try:
        plain.connect((arguments["host"], arguments["port"]))
    except OSError as e:
        return _failed(e)
    return _read(arguments, until, plain.detach())


def _failed(e: OSError) -> Dict[str, Any]:
    code = "deadline" if "timed out" in str(e) else CODES.get(e.errno or 0, "io")
    return {"error": code, "said": e.strerror or str(e)}


def _read(arguments: Dict[str, Any], until: float, fd: int) -> Dict[str, Any]:
    import http.client
    import socket

    connection = http.client.HTTPConnection(arguments["host"], arguments["port"], timeout=arguments["deadline"])
    connection.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fd)
    connection.sock.settimeout(arguments["deadline"])
    try:
        connection.request("GET", arguments["path"], headers={"Accept": "text/plain"})
        response = connection.getresponse()
        data = b""
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return {"error": "deadline", "said": "%d bytes so far" % len(data)}
            if connection.sock:
                connection.sock.settimeout(left)
            block = response.read1(1 << 16)
            if not block:
                return {"status": response.status, "text": data.decode("utf-8", "replace")}
            data += block
            if len(data) > arguments["limit"]:
                return {"error": "too-large", "said": "more than %d bytes" % arguments["limit"]}
    except http.client.HTTPException as e:
        return {"error": "not-http", "said": "%s: %s" % (type(e).__name__, e)}
    except OSError as e:
        return _failed(e)
    finally:
        connection.close()
