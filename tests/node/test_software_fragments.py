"""Fragments of software on this machine: a server, files, CUDA trees; against what other programs say."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from reconciler.facts import config_files, cuda, dcgm, holds, repositories
from reconciler.facts.formats import plain
from reconciler.facts.live import About, LiveFact
from reconciler.model.fact import Absent, Raw, Run, Unknown, Value
from reconciler.node.fragments import cuda as trees
from reconciler.node.fragments import digests, web
from tests.cases import DATA
from tests.node.test_fragments import asked

METRICS = (DATA / "corpus/dcgm-metrics/a800-mig-labels-xid.txt").read_bytes()


def parsed(fact: LiveFact, answer: Any) -> Any:
    return fact.parse((Raw(json.dumps(answer).encode(), status=0),))


@contextlib.contextmanager
def serving(answer: bytes, status: int = 200, pause: float = 0.0) -> Iterator[int]:
    """A web server on a port of this machine: `pause` seconds before each of its bytes after the head."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            with contextlib.suppress(OSError):  # the one who asked has left
                for byte in (answer[i : i + 1] for i in range(len(answer))) if pause else (answer,):
                    time.sleep(pause)
                    self.wfile.write(byte)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(port: int, **other: Any) -> Any:
    return web.look({**dcgm.ADDRESS, "port": port, "deadline": 2.0, **other})


def test_metrics_come_over_the_port() -> None:
    with serving(METRICS) as port:
        found = parsed(dcgm.FACT, get(port))
    assert isinstance(found, Value)
    assert found.value.gpu_count > 0


def test_a_port_at_which_nothing_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert parsed(dcgm.FACT, get(free.getsockname()[1])) == Absent("NothingListens")


def test_a_server_that_says_no() -> None:
    with serving(b"no", status=503) as port:
        assert parsed(dcgm.FACT, get(port)) == Unknown("HttpStatus", "503")


def test_a_server_that_never_answers_and_one_that_trickles() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        found = parsed(dcgm.FACT, get(silent.getsockname()[1], deadline=0.3))
        assert isinstance(found, Unknown)
        assert found.why == "DeadlinePassed"
        assert time.monotonic() - began < 2
    with serving(b"x" * 40, pause=0.05) as port:
        began = time.monotonic()
        found = parsed(dcgm.FACT, get(port, deadline=0.4))
        assert (found.why, time.monotonic() - began < 2) == ("DeadlinePassed", True)


def test_a_server_that_says_too_much() -> None:
    with serving(b"x" * 300_000) as port:
        assert parsed(dcgm.FACT, get(port, limit=100_000)).why == "OutputTooLarge"


def test_another_protocol() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                connection.recv(1000)

        thread = threading.Thread(target=greet)
        thread.start()
        found = parsed(dcgm.FACT, get(listener.getsockname()[1]))
        thread.join()
    assert isinstance(found, Unknown)
    assert found.why == "NotHttp"


def test_digests_are_those_of_sha256sum_and_hold_no_content(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("secret words\n")
    (tmp_path / "a.conf").chmod(0o640)
    (tmp_path / "b.conf").symlink_to("a.conf")
    (tmp_path / "c.conf").symlink_to("nowhere")
    (tmp_path / "d.conf").mkdir()
    answer = digests.look({"patterns": [f"{tmp_path}/*.conf", "/etc/fstab"]})
    assert "secret" not in json.dumps(answer)
    found = plain(parsed(config_files.FACT, answer))
    said = subprocess.check_output(("sha256sum", tmp_path / "a.conf"), text=True).split()[0]
    digest = hashlib.sha256(b"secret words\n").hexdigest()
    assert said == digest == found[f"{tmp_path}/a.conf"]["sha256"] == found[f"{tmp_path}/b.conf"]["sha256"]
    assert (found[f"{tmp_path}/a.conf"]["mode"], found[f"{tmp_path}/b.conf"]["link"]) == ("0640", "a.conf")
    assert found[f"{tmp_path}/c.conf"]["sha256"] == {"absent": "DanglingLink"}
    assert found[f"{tmp_path}/d.conf"]["sha256"] == {"unknown": "NotARegularFile", "detail": ""}


def test_settings_of_this_machine_are_those_of_stat() -> None:
    (answer,) = asked(*config_files.FACT.parts(About()))  # type: ignore[arg-type]
    found = plain(config_files.FACT.parse((answer,)))
    assert "/etc/fstab" in found or not Path("/etc/fstab").exists()
    for path, one in found.items():
        said = subprocess.check_output(("stat", "-L", "-c", "%a %U %G", path), text=True).split()
        assert said == [f"{int(one['mode'], 8):o}", one["owner"], one["group"]]


def compiler(tree: Path, text: str) -> None:
    (tree / "bin").mkdir(parents=True)
    (tree / "bin/nvcc").write_text(f"#!/bin/sh\n{text}\n")
    (tree / "bin/nvcc").chmod(0o755)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that all users may read, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_cuda_trees_and_their_compilers(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "DEADLINE", 1.0)
    said = (DATA / "corpus/nvcc/128.txt").read_text()
    compiler(shared / "cuda-12.8", f"cat <<'E'\n{said}\nE")
    (shared / "cuda-12.8/version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "12.8.1"}}')
    compiler(shared / "cuda-9.0", "exec sleep 60")
    (shared / "cuda-11.0").mkdir()
    (shared / "alternatives").symlink_to("cuda-12.8")
    (shared / "cuda").symlink_to("alternatives")
    (shared / "cuda-13.0").symlink_to("nowhere")
    for path in shared.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o055)
    began = time.monotonic()
    answer = trees.look({"patterns": [f"{shared}/cuda", f"{shared}/cuda-*"], "files": []})
    assert time.monotonic() - began < 10
    found = plain(cuda.FACT.parse((Raw(json.dumps(answer).encode(), status=0), Raw(b"nvcc=\n", status=0))))
    assert found["names"] == {
        f"{shared}/cuda": f"{shared}/cuda-12.8",
        f"{shared}/cuda-11.0": f"{shared}/cuda-11.0",
        f"{shared}/cuda-12.8": f"{shared}/cuda-12.8",
        f"{shared}/cuda-13.0": {"absent": "DanglingLink"},
        f"{shared}/cuda-9.0": f"{shared}/cuda-9.0",
    }
    assert {name.rpartition("-")[2]: tree["nvcc"] for name, tree in found["trees"].items() if not name.endswith("12.8")} == {
        "11.0": {"absent": "NotInstalled"},
        "9.0": {"unknown": "DeadlinePassed", "detail": ""},
    }
    whole = found["trees"][f"{shared}/cuda-12.8"]
    assert (whole["version"], whole["nvcc"]["release"]) == ("12.8.1", "12.8")


def test_the_login_shell_ends_with_0_whatever_it_finds() -> None:
    """With another status it would be asked a second time, as root."""
    shell = cuda.FACT.parts(About())[1]
    assert isinstance(shell, Run)
    for found in ("/usr/bin", "/nowhere"):
        argv = (shell.argv[0], "-c", *shell.argv[2:])  # no profile, which sets the PATH anew
        assert subprocess.run(argv, env={"PATH": found}, check=False, capture_output=True, executable="/bin/bash").returncode == 0


def test_repositories_and_holds_of_this_machine() -> None:
    """apt's own list of what it takes, and apt-mark's."""
    (answer,) = asked(*repositories.FACT.parts(About()))  # type: ignore[arg-type]
    found = repositories.FACT.parse((answer,))
    assert isinstance(found, Value)
    said = subprocess.check_output(("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)"), text=True)
    wanted = {tuple(line.split()) for line in said.splitlines()}
    sources = found.value.apt
    assert isinstance(sources, Value)
    ours = {(uri.rstrip("/"), suite) for s in sources.value if s.enabled for uri in s.uris for suite in s.suites}
    assert ours == {(site.rstrip("/"), suite) for site, suite in wanted}
    held = holds.FACT.parse(asked(*holds.FACT.parts(About())))  # type: ignore[arg-type]
    assert isinstance(held, Value)
    assert held.value.held == Value(tuple(subprocess.check_output(("apt-mark", "showhold"), text=True).split()))
