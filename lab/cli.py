"""The command line: `python -m lab COMMAND`. Data goes to stdout, progress and errors to stderr."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from lab.cluster import Lab, each
from lab.errors import LabError, UsageError
from lab.gpus.codec import to_json
from lab.node import LabNode
from lab.nodespec import NodeSpec, parse_option
from lab.shell import say, stage

_FAULTS: dict[str, str] = {
    "poweroff": "pull the plug; the disk stays",
    "poweron": "power again, and wait until it is ready",
    "reboot": "Ctrl-Alt-Del, and wait until it is ready",
    "cut": "pull the network cable",
    "heal": "plug the cable in again",
    "reset": "a new empty disk and a new boot; the host key stays",
}
_VALUED: dict[str, str] = {
    "slow": "bandwidth towards the node, such as 1mbit; off",
    "loss": "percent of packets lost towards the node; off",
    "fill": "on: no free block on the disk; off",
    "skew": "seconds the wall clock is wrong; 0",
}


def parser() -> argparse.ArgumentParser:
    """The argument parser. Pure."""
    top = argparse.ArgumentParser(prog="python -m lab", description="A data centre on one Linux box.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="boot what is missing, and wait until it is ready")
    up.add_argument("--nodes", type=int, default=3, help="CentOS-faced nodes gpu01 .. (default 3)")
    up.add_argument("--debian", type=int, default=0, help="Debian nodes deb01 .. (default 0)")
    up.add_argument("--node", action="append", default=[], type=_option, metavar="NAME:mem=6G,disk=host",
                    help="options of one node: mem, size, disk (tmpfs, host), bind, bind-ro")  # fmt: skip
    commands.add_parser("down", help="end everything and leave nothing")
    status = commands.add_parser("status", help="what is there")
    status.add_argument("--json", action="store_true")
    run = commands.add_parser("run", help="run [NODE...] -- CMD: a shell command on nodes (all by default)")
    run.add_argument("nodes", nargs="*", metavar="NODE")
    gpu = commands.add_parser("gpu", help="the stand-in for a node's GPUs: show its state, or change it")
    gpu.add_argument("nodes", nargs="+", metavar="NODE")
    gpu.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="such as gpus.5.lost=true; more than once")
    gpu.add_argument("--heal", action="store_true", help="all well again")
    for name, text in _FAULTS.items():
        commands.add_parser(name, help=text).add_argument("nodes", nargs="+", metavar="NODE")
    for name, text in _VALUED.items():
        fault = commands.add_parser(name, help=text)
        fault.add_argument("nodes", nargs="+", metavar="NODE")
        fault.add_argument("value", metavar="VALUE", help=text)
    return top


def _option(text: str) -> NodeSpec:
    try:
        return parse_option(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def split_command(argv: Sequence[str]) -> tuple[list[str], str]:
    """What is before the first `--`, and the command after it."""
    words = list(argv)
    if "--" not in words:
        return words, ""
    at = words.index("--")
    return words[:at], " ".join(words[at + 1 :])


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 0, 1 error, 2 usage, 3 lab not up, 130 interrupted, `run`: the highest one."""
    before, remote = split_command(sys.argv[1:] if argv is None else argv)
    arguments = parser().parse_args(before)
    try:
        return _dispatch(Lab.from_environment(), arguments, remote)
    except LabError as error:
        say(f"lab: {error}")
        return error.exit_code
    except subprocess.TimeoutExpired as error:
        say(f"lab: no answer after {error.timeout:.0f} s")
        return 1
    except KeyboardInterrupt:
        return 130


def _dispatch(lab: Lab, arguments: argparse.Namespace, remote: str) -> int:
    command: str = arguments.command
    if command == "up":
        options: dict[str, NodeSpec | str] = {spec.name: spec for spec in arguments.node}
        lab.up(arguments.nodes, arguments.debian, options)
    elif command == "down":
        with stage(f"down {lab.config.name}", quiet_below=1.0):
            lab.down()
    elif command == "status":
        _status(lab, arguments.json)
    elif command == "run":
        return _run(lab, arguments.nodes, remote)
    elif command == "gpu":
        _gpu([lab.node(name) for name in arguments.nodes], arguments.set, arguments.heal)
    else:
        nodes = [lab.node(name) for name in arguments.nodes]
        action = _action(command, getattr(arguments, "value", ""))
        with stage(f"{command} {' '.join(arguments.nodes)}", quiet_below=1.0):
            each(nodes, action)
    return 0


def _gpu(nodes: list[LabNode], settings: list[str], heal: bool) -> None:
    if heal:
        each(nodes, lambda node: node.gpus.heal())
    if settings:
        each(nodes, lambda node: node.gpus.set(*settings))
    if not (heal or settings):
        for node in nodes:
            sys.stdout.write(to_json(node.gpus.state()))


def _action(command: str, value: str) -> Callable[[LabNode], object]:
    """What one fault command does to a node."""
    off = value in ("off", "0")
    actions: dict[str, Callable[[LabNode], object]] = {
        "poweroff": LabNode.poweroff,
        "poweron": _then_ready(LabNode.poweron),
        "reboot": _then_ready(LabNode.reboot),
        "reset": _then_ready(LabNode.reset),
        "cut": LabNode.cut,
        "heal": LabNode.heal,
        "slow": LabNode.fast if off else lambda node: node.slow(value),
        "loss": LabNode.noloss if off else lambda node: node.loss(_number(value, 0, 100)),
        "fill": LabNode.unfill if off else LabNode.fill,
        "skew": lambda node: node.skew(0 if off else _number(value, -(10**9), 10**9)),
    }
    if command == "fill" and value not in ("on", "off"):
        raise UsageError(f"fill NODE... {value!r}: on or off is expected")
    return actions[command]


def _then_ready(action: Callable[[LabNode], object]) -> Callable[[LabNode], object]:
    def both(node: LabNode) -> None:
        action(node)
        node.wait_ready()

    return both


def _number(text: str, low: int, high: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = high + 1
    if not low <= value <= high:
        raise UsageError(f"{text!r}: a whole number from {low} to {high}, or off, is expected")
    return value


def _run(lab: Lab, names: list[str], remote: str) -> int:
    if not remote:
        raise UsageError("run [NODE...] -- CMD: the command is missing")
    nodes = [lab.node(name) for name in names] or list(lab.nodes.values())
    if not nodes:
        lab.node("")
    worst = 0
    with ThreadPoolExecutor(max_workers=32) as pool:
        for node, done in zip(nodes, pool.map(lambda n: n.run(remote, check=False, timeout=3600), nodes), strict=True):
            for stream, text in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
                stream.writelines(f"[{node.name}] {line}\n" for line in text.splitlines())
            worst = max(worst, done.returncode)
    return worst


def _status(lab: Lab, as_json: bool) -> None:
    found = lab.status()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print(f"lab {found['name']}: {'up' if found['up'] else 'down'}, {found['network']}, packages {found['packages']}")
    print("  GPUs and network cards of the nodes are stand-ins: there are none on this machine")
    for node in found["nodes"]:
        words = [f"{node[key]:{width}}" for key, width in (("name", 6), ("address", 12), ("face", 7))]
        print(" ", *words, f"power {node['power']:4} link {node['link']:4} ssh {'yes' if node['ssh'] else 'no'}")
