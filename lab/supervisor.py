"""One node's power supply, a process of its own: keeps systemd-nspawn running, and starts it again on a reboot.

Started as `python -m lab.supervisor PIDFILE CGROUP COMMAND...`; ends when the node powers itself off.
"""

import os
import subprocess
import sys
from pathlib import Path

from lab import cgroups

REBOOT = 133  # systemd-nspawn's exit status when the node asked for a reboot
_ENVIRONMENT = {
    "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",  # or a network namespace that is given by path cannot be configured
    "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1",
    "SYSTEMD_NSPAWN_LOCK": "0",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
_CAPABILITIES = "CAP_NET_ADMIN,CAP_SYSLOG,CAP_SYS_RESOURCE,CAP_IPC_LOCK"


def nspawn_argv(machine: str, hostname: str, root: Path, netns: str, binds: tuple[str, ...]) -> list[str]:
    """The systemd-nspawn command of one node. Pure."""
    return [
        "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", f"--machine={machine}",
        f"--hostname={hostname}", f"--directory={root}", f"--network-namespace-path=/run/netns/{netns}",
        f"--capability={_CAPABILITIES}", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
        "--console=read-only", "--kill-signal=SIGRTMIN+3", *binds,
    ]  # fmt: skip


def main(argv: list[str]) -> int:
    pid_file, group, *command = argv
    cgroups.join(group, Path(pid_file))
    while True:
        uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
        # each boot counts CLOCK_BOOTTIME from zero, as a machine does
        boot = ["unshare", "--time", f"--boottime=-{uptime}", *command]
        status = subprocess.run(boot, stdin=subprocess.DEVNULL, env=_ENVIRONMENT, check=False).returncode
        print(f"supervisor: systemd-nspawn exited {status}", flush=True)
        if status != REBOOT:
            return status


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
