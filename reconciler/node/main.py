"""The loop: a JSON line in, a JSON line out. End of input ends the program; what it started lives on in its unit."""

import base64
import json
import os
import platform
import zlib
from typing import Any, Callable, Dict, List, Optional

from reconciler.node import lease, probe, runner, state, steps

PROTOCOL = 1
HELLO = "RECONCILE-NODE"
REQUEST_LIMIT = 16 << 20
PLAIN_LIMIT = 512  # longer answers are compressed: 163 KB of facts become 23

Answer = Optional[Dict[str, Any]]


def _send(message: Dict[str, Any]) -> None:
    line = json.dumps(message, separators=(",", ":"))
    if len(line) > PLAIN_LIMIT:
        packed = base64.b64encode(zlib.compress(line.encode(), 6)).decode()
        line = json.dumps({"id": message["id"], "z": packed})
    data = (line + "\n").encode()
    while data:
        data = data[os.write(1, data) :]


def hello() -> Dict[str, Any]:
    return {
        "protocol": PROTOCOL,
        "boot_id": state.boot_id(),
        "hostname": platform.node(),
        "python": platform.python_version(),
        "uid": os.geteuid(),
    }


class Program:
    """The requests that are understood, and the waits that are open."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.waiters: List[steps.Waiter] = []
        self.operations: Dict[str, Callable[[Dict[str, Any]], Answer]] = {
            "probe": self._probe,
            "lease": lambda r: lease.grant(r["holder"], r["plan"], r["ttl"]),
            "renew": lambda r: lease.renew(r["token"]),
            "release": lambda r: lease.release(r["token"]),
            "begin": lambda r: steps.begin(r, self.source),
            "wait": self._wait,
            "settle": lambda r: steps.settle(r["token"], r["steps"]),
            "records": self._records,
        }

    def _probe(self, request: Dict[str, Any]) -> Answer:
        answer: Dict[str, Any] = {"facts": probe.probe(request["facts"])}
        if request.get("records"):  # one round trip for what is there and what is known of it
            answer["records"] = self._records({})
        return answer

    def _wait(self, request: Dict[str, Any]) -> Answer:
        self.waiters.append(steps.Waiter(request["id"], request["token"], request["step"], request["seconds"]))
        return None

    def _records(self, request: Dict[str, Any]) -> Answer:
        found = steps.every() if request.get("all") else steps.pending()
        return {"steps": found, "inventory": steps.inventory(), "lease": lease.current()}

    def handle(self, line: bytes) -> None:
        """Carry out one request. Whatever goes wrong in it is its answer, and the next request is served."""
        number = None
        try:
            request = json.loads(line.decode())
            number = request["id"]
            answer = self.operations[request["op"]](request)
            if answer is not None:
                _send({"id": number, "ok": answer})
        except state.Refused as refusal:
            _send({"id": number, "refused": refusal.code, "data": refusal.data})
        except (KeyError, TypeError, ValueError, OSError) as e:
            _send({"id": number, "refused": "Failed", "data": {"detail": "%s: %s" % (type(e).__name__, e)}})

    def look_at(self, waiters: List[steps.Waiter]) -> None:
        for waiter in waiters:
            try:
                seen = waiter.ready()
            except state.Refused as refusal:
                self.waiters.remove(waiter)
                _send({"id": waiter.request, "refused": refusal.code, "data": refusal.data})
                continue
            if seen is None:
                waiter.open()
            else:
                self.waiters.remove(waiter)
                _send({"id": waiter.request, "ok": seen})

    def serve(self) -> int:
        buffer = b""
        while True:
            over, request = steps.wait_any(self.waiters, 0)
            self.look_at(over)
            if not request:
                continue
            block = os.read(0, 1 << 16)
            if not block:
                return 0
            buffer += block
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                self.handle(line)
            if len(buffer) > REQUEST_LIMIT:
                return 1


def main(source: bytes, argv: List[str]) -> int:
    """`source` is this program, compressed; argv `step TOKEN NUMBER` is how a unit calls it, none how a controller does."""
    # whatever the login has: what packages and parents of files get must not depend on it; our own records say their mode
    os.umask(0o022)
    if argv[:1] == ["step"]:
        return runner.main(int(argv[1]), int(argv[2]))
    print(HELLO, json.dumps(hello()), flush=True)
    return Program(source).serve()
