"""The lab's time server, a stand-in that tells the host's time: chronyd in the nodes has something to agree with.

`python -m lab.ntpd PIDFILE CGROUP ADDRESS`
"""

import socket
import struct
import sys
import time
from pathlib import Path

from lab import cgroups

_EPOCH = 2_208_988_800  # seconds from 1900 to 1970
_PACKET = struct.Struct("!BBbb II4s QQQQ")


def stamp(seconds: float) -> int:
    """A Unix time as an NTP timestamp: 32 bits of seconds, 32 bits of fraction."""
    return int((seconds + _EPOCH) * 2**32)


def reply(request: bytes, received: float, now: float) -> bytes | None:
    """The answer (RFC 5905, mode 4, stratum 2) to a client's packet; None where it is no client's packet. Pure."""
    if len(request) < _PACKET.size or request[0] & 7 != 3:
        return None
    version, sent = request[0] & 0x38, _PACKET.unpack_from(request)[-1]
    head = (version | 4, 2, request[2] if request[2] < 128 else 6, -20, 0, 1 << 10, b"\x7f\0\0\1")
    return _PACKET.pack(*head, stamp(now - 1), sent, stamp(received), stamp(now))


def main(argv: list[str]) -> int:
    pid_file, group, address = argv
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 123))
        cgroups.join(group, Path(pid_file))
        while True:
            request, client = server.recvfrom(512)
            received = time.time()
            answer = reply(request, received, time.time())
            if answer is not None:
                server.sendto(answer, client)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
