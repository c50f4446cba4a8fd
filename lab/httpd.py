"""The lab's package server: serves folders of the cache below fixed names, on the bridge's address only.

`python -m lab.httpd PIDFILE CGROUP ADDRESS PORT NAME=FOLDER...`; requests are logged to stdout, one line each.
"""

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath

from lab import cgroups


class Handler(SimpleHTTPRequestHandler):
    """Maps /NAME/... to a folder; NAME may have several parts, the longest wins."""

    protocol_version = "HTTP/1.1"

    def __init__(self, roots: dict[str, str], *args: object) -> None:
        self._roots = roots
        super().__init__(*args)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        clean = path.partition("?")[0].partition("#")[0].lstrip("/")
        for name in sorted(self._roots, key=len, reverse=True):
            if clean == name or clean.startswith(f"{name}/"):
                self.directory = self._roots[name]
                return super().translate_path(str(PurePosixPath("/", clean[len(name) :].lstrip("/"))))
        return "/nonexistent"

    def log_message(self, format: str, *args: object) -> None:
        print(self.client_address[0], format % args, flush=True)


def main(argv: list[str]) -> int:
    pid_file, group, address, port, *pairs = argv
    roots = dict(pair.split("=", 1) for pair in pairs)
    server = ThreadingHTTPServer((address, int(port)), partial(Handler, roots))
    cgroups.join(group, Path(pid_file))
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
