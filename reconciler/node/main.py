"""The loop: a JSON line in, a JSON line out. End of input ends the program; what it started lives on in its unit."""

import base64
import json
import os
import platform
import resource
import time
import zlib
from typing import Any, Callable, Dict, List, Optional

from reconciler.node import fragments, lease, probe, runner, state, steps

PROTOCOL = 1
HELLO = "RECONCILE-NODE"
REQUEST_LIMIT = 16 << 20
ANSWER_LIMIT = 4 << 20  # what a controller takes in one line
PLAIN_LIMIT = 512  # longer answers are compressed: 163 KB of facts become 23

Answer = Optional[Dict[str, Any]]


def _send(message: Dict[str, Any]) -> None:
    line = json.dumps(message, separators=(",", ":"))
    if len(line) > PLAIN_LIMIT:
        packed = base64.b64encode(zlib.compress(line.encode(), 6)).decode()
        line = json.dumps({"id": message["id"], "z": packed})
    if len(line) > ANSWER_LIMIT:  # the one request fails, and not the channel
        refusal = {"size": len(line), "limit": ANSWER_LIMIT}
        line = json.dumps({"id": message["id"], "refused": "AnswerTooLong", "data": refusal})
    data = (line + "\n").encode()
    while data:
        data = data[os.write(1, data) :]


def _refuse(number: Any, error: Exception) -> None:
    if isinstance(error, state.Refused):
        _send({"id": number, "refused": error.code, "data": error.data})
    else:
        _send({"id": number, "refused": "Failed", "data": {"detail": "%s: %s" % (type(error).__name__, error)}})


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
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
        fragments.take(request.get("fragments", {}))
        answer: Dict[str, Any] = {"facts": probe.probe(request["facts"])}
        after = resource.getrusage(resource.RUSAGE_SELF)
        own = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        # of the program itself: what each part's process used stands in its answer
        answer["spent"] = {"ms": round((time.monotonic() - began) * 1000, 1), "cpu": round(own * 1000, 1)}
        if request.get("records"):  # one round trip for what is there and what is known of it
            answer["records"] = self._records({})
        return answer

    def _wait(self, request: Dict[str, Any]) -> Answer:
        """The step's record at once where it is over: the end of a runner that is gone would never be seen on its FIFO."""
        waiter = steps.Waiter(request["id"], request["token"], request["step"], request["seconds"])
        try:
            seen = waiter.ready()
        except state.Refused:
            waiter.close()
            raise
        if seen is None:
            self.waiters.append(waiter)
        return seen

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
        except Exception as e:  # noqa: BLE001  (any: a program that ended would take the other requests with it)
            _refuse(number, e)

    def look_at(self, waiters: List[steps.Waiter]) -> None:
        for waiter in waiters:
            try:
                seen = waiter.ready()
            except Exception as e:  # noqa: BLE001  (as above)
                waiter.close()
                self.waiters.remove(waiter)
                _refuse(waiter.request, e)
                continue
            if seen is None:
                waiter.open()
            else:
                self.waiters.remove(waiter)
                _send({"id": waiter.request, "ok": seen})

    def serve(self) -> int:
        pieces: List[bytes] = []  # of a line that has not ended; joined once, since a request may be of megabytes
        size = 0
        while True:
            over, request = steps.wait_any(self.waiters, 0)
            self.look_at(over)
            if not request:
                continue
            block = os.read(0, 1 << 16)
            if not block:
                return 0
            pieces.append(block)
            size += len(block)
            if b"\n" in block:
                *lines, rest = b"".join(pieces).split(b"\n")
                for line in lines:
                    self.handle(line)
                pieces, size = [rest], len(rest)
            if size > REQUEST_LIMIT:
                return 1


def main(source: bytes, argv: List[str]) -> int:
    """`source` is this program, compressed; argv `step TOKEN NUMBER` is how a unit calls it, `fragment TOKEN NUMBER INDEX`
    how a step does, none how a controller does."""
    # whatever the login has: what packages and parents of files get must not depend on it; our own records say their mode
    os.umask(0o022)
    if argv[:1] == ["step"]:
        return runner.main(int(argv[1]), int(argv[2]))
    if argv[:1] == ["fragment"]:
        return runner.fragment(int(argv[1]), int(argv[2]), int(argv[3]))
    print(HELLO, json.dumps(hello()), flush=True)
    return Program(source).serve()
