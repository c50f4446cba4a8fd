"""One node of the lab: its life, its faults, and commands on it."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from lab import cgroups, network
from lab.config import LabConfig
from lab.disk import Disk
from lab.errors import CommandError, LabError, NotUpError
from lab.gpus.codec import to_json
from lab.gpus.defaults import default_state
from lab.images.faces import USERS
from lab.nodespec import NodeSpec, size_bytes
from lab.panel import GpuPanel
from lab.shell import run, wait_for
from lab.ssh import answers, ensure_key, ssh_argv, ssh_run
from lab.supervisor import nspawn_argv

# what a login as root would have; nothing of the host's reaches the node
_INSIDE = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
SOURCES = Path(__file__).parent.parent  # where `python -m lab...` works


class LabNode:
    """One machine. Everything on it goes over ssh as root with its host key checked, `inside` alone does not."""

    def __init__(self, config: LabConfig, spec: NodeSpec) -> None:
        self._config, self.spec = config, spec
        self.name = spec.name
        self.address = f"{config.subnet}.{spec.host_number}"
        self.folder = config.state / "nodes" / spec.name
        self.disk = Disk(self.folder, spec, config.cache / "disks" / config.name / spec.name)
        self._group = f"{config.cgroup}/{spec.name}"

    def __repr__(self) -> str:
        return f"LabNode({self.name}, {self.address})"

    @classmethod
    def load(cls, config: LabConfig, folder: Path) -> "LabNode":
        return cls(config, NodeSpec.from_json((folder / "spec.json").read_text()))

    # ---- life

    def start(self) -> None:
        """Make what is missing of disk, cable and groups, and turn the power on; no-op where it is on."""
        if self.powered:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "spec.json").write_text(self.spec.to_json())
        seeded = self.folder / "seeded"
        if not (self.disk.exists and seeded.exists()):
            layers = self._config.state / "layers"
            self.disk.create([layers / self.spec.face, layers / "base"])
            self._seed()
            seeded.touch()
        network.plug(self._config, self.name, self.address)
        cgroups.create(self._group, size_bytes(self.spec.mem))
        self._supervise()

    def _supervise(self) -> None:
        binds = [f"--bind={pair}" for pair in self.spec.bind] + [f"--bind-ro={pair}" for pair in self.spec.bind_ro]
        link = self._config.link(self.name)
        command = nspawn_argv(link, self.name, self.disk.root, link, tuple(binds))
        spawn(self.folder / "supervisor", "lab.supervisor", self._group, *command)

    def _seed(self) -> None:
        """What a node has of its own on a new disk: identity, host key, access, repositories."""
        write, state = self.disk.write, self._config.state
        key = state / "hostkeys" / self.name
        ensure_key(key, self.name)
        write("/etc/hostname", f"{self.name}\n")
        write("/etc/machine-id", f"{uuid.uuid4().hex}\n", 0o444)
        write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
        write("/etc/resolv.conf", _nameservers())
        write("/etc/ssh/ssh_host_ed25519_key", key.read_text(), 0o600)
        write("/etc/ssh/ssh_host_ed25519_key.pub", key.with_name(f"{key.name}.pub").read_text())
        public = self._config.identity.with_name("id_ed25519.pub").read_text()
        for home in ("/root", *(f"/home/{user}" for user in USERS)):
            write(f"{home}/.ssh/authorized_keys", public, 0o600)
        write("/etc/lab/gpus.json", to_json(default_state(self.name)))
        url = self._config.url
        if self.spec.face == "el9":
            repo = f"[lab]\nname=CentOS Stream 9 (lab)\nbaseurl={url}/rpms/os/x86_64/\nenabled=1\ngpgcheck=0\n"
            write("/etc/yum.repos.d/lab.repo", repo)
        else:
            write("/etc/apt/sources.list.d/lab.list", f"deb [trusted=yes] {url}/debs ./\n")

    def stop(self) -> None:
        """End every process of the node at once; its disk stays."""
        cgroups.kill(self._group)
        (self.folder / "supervisor.pid").unlink(missing_ok=True)

    def destroy(self) -> None:
        """End the node and drop its disk, its cable and all faults on them."""
        self.stop()
        self.disk.destroy()
        network.unplug(self._config, self.name)
        cgroups.remove(self._group)
        shutil.rmtree(self.folder, ignore_errors=True)

    def reset(self) -> None:
        """A new empty disk, no faults, a new boot; the host key stays. Does not wait: see wait_ready."""
        self.destroy()
        self.start()

    def wait_ready(self, timeout: float = 90.0) -> None:
        """Wait until ssh answers and systemd has settled (running, or degraded by a failed unit)."""
        end = time.monotonic() + timeout
        state = "no ssh server"
        while time.monotonic() < end:
            if not self.powered:
                raise NotUpError(f"{self.name} is powered off{self._last_words()}")
            if answers(self.address, 1.0):
                state = self._settled(end)
                if state in ("running", "degraded"):
                    return
            time.sleep(0.05)
        raise LabError(f"{self.name} is not ready after {timeout:.0f} s ({state}){self._last_words()}")

    def _settled(self, end: float) -> str:
        """The state in which systemd ends its boot, or why that cannot be said."""
        left = max(1.0, end - time.monotonic())
        try:
            done = self.inside("systemctl is-system-running --wait", check=False, timeout=left)
        except subprocess.TimeoutExpired:
            return "systemd does not settle"
        except NotUpError:
            return "it went off again"
        return done.stdout.strip() or done.stderr.strip()

    def _last_words(self) -> str:
        log = self.folder / "supervisor.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "".join(f"\n  console: {line}" for line in lines[-5:])

    @property
    def gpus(self) -> GpuPanel:
        """The GPUs that the node seems to have, and their faults."""
        return GpuPanel(self)

    # ---- looking

    @property
    def powered(self) -> bool:
        return bool(cgroups.pids(self._group))

    @property
    def cabled(self) -> bool:
        flags = Path("/sys/class/net", self._config.link(self.name), "flags")
        return flags.exists() and bool(int(flags.read_text(), 16) & 1)

    def status(self) -> dict[str, object]:
        """What is there, as plain values for JSON."""
        powered = self.powered
        return {
            "name": self.name,
            "address": self.address,
            "face": self.spec.face,
            "gpus": "stand-in",
            "mem": self.spec.mem,
            "disk": self.spec.disk,
            "power": "on" if powered else "off",
            "link": "up" if self.cabled else "cut",
            "ssh": powered and self.cabled and answers(self.address, 0.5),
        }

    def run(
        self, command: str, check: bool = True, timeout: float = 60, user: str = "root", stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the node over ssh; raises CommandError where `check` and it failed."""
        return ssh_run(self.ssh_argv(user), command, check, timeout, stdin)

    def ssh_argv(self, user: str = "root") -> list[str]:
        return ssh_argv(self._config, self.address, user)

    def inside(self, command: str, check: bool = True, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a shell command through the node's namespaces, without its network: for nodes that are cut off."""
        leader = cgroups.leader(self._group)
        if leader is None:
            raise NotUpError(f"{self.name} is powered off")
        argv = ("nsenter", f"--target={leader}", "--all", "--root", "--wd=/", "/bin/sh", "-c", command)
        return run(*argv, check=check, timeout=timeout, env=_INSIDE)

    def boot_id(self) -> str:
        return self.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()

    # ---- faults, and the undo of each

    def poweroff(self) -> None:
        """Pull the plug: the cable goes dark, every process is gone, the disk stays."""
        network.connect(self._config, self.name, False)
        self.stop()

    def poweron(self) -> None:
        """Power again, over the same disk. Does not wait: see wait_ready."""
        self.start()

    def reboot(self, timeout: float = 90.0) -> None:
        """Ctrl-Alt-Del; returns when the next boot has begun."""
        before = cgroups.leader(self._group)
        if before is None:
            raise NotUpError(f"{self.name} is powered off")
        os.kill(before, signal.SIGINT)
        wait_for(lambda: cgroups.leader(self._group) not in (None, before), f"reboot of {self.name}", timeout)

    def cut(self) -> None:
        """Pull the network cable."""
        network.connect(self._config, self.name, False)

    def heal(self) -> None:
        network.connect(self._config, self.name, True)

    def slow(self, rate: str) -> None:
        """Limit the bandwidth towards the node, such as 1mbit."""
        network.slow(self._config, self.name, rate)

    def fast(self) -> None:
        network.slow(self._config, self.name, None)

    def loss(self, percent: int) -> None:
        """Drop a share of the packets towards the node."""
        network.loss(self._config, self.name, percent)

    def noloss(self) -> None:
        network.loss(self._config, self.name, 0)

    def fill(self) -> None:
        """Leave no free block on the disk."""
        self.disk.fill()

    def unfill(self) -> None:
        self.disk.unfill()

    def skew(self, seconds: int) -> None:
        """Set the wall clock this far off; 0 is right again."""
        if not self.disk.exists:
            raise NotUpError(f"{self.name} has no disk: the lab is not up")
        self.disk.write("/etc/lab/clock-skew-s", f"{seconds}\n")


def spawn(stem: Path, module: str, group: str, *words: str) -> None:
    """Start `python -m module` detached, in a control group; returns when it is there. Writes stem.pid and stem.log."""
    pid_file = stem.with_name(f"{stem.name}.pid")
    pid_file.unlink(missing_ok=True)
    log = stem.with_name(f"{stem.name}.log").open("ab")
    argv = ["setsid", "--fork", sys.executable, "-ES", "-m", module, str(pid_file), group, *words]
    with log:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=SOURCES, check=False)
    if done.returncode != 0:
        raise CommandError(tuple(argv), done.returncode, "see the log beside its pid file")
    wait_for(pid_file.exists, f"start of {module}", timeout=20.0, interval=0.01)


def _nameservers() -> str:
    lines = Path("/etc/resolv.conf").read_text().splitlines() if Path("/etc/resolv.conf").exists() else []
    return "".join(f"{line}\n" for line in lines if line.startswith("nameserver ") and " 127." not in line)
