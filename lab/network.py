"""The lab's network: a bridge, a network namespace and a cable a node, address translation, cable faults."""

import json
from pathlib import Path

from lab.config import LabConfig
from lab.shell import run

# Below the bridge's own route: while a cable or the bridge is away, the lab's addresses must not leave the machine.
_UNREACHABLE_METRIC = "4278198272"


def exists(link: str) -> bool:
    return Path("/sys/class/net", link).exists()


def up(config: LabConfig) -> None:
    """Bridge, unreachable route and address translation; each only where missing."""
    if not exists(config.bridge):
        # an address of its own: a bridge takes the lowest of its ports' otherwise, and changes it with every node
        run("ip", "link", "add", config.bridge, "address", hardware_address(config.gateway), "type", "bridge")
    run("ip", "address", "replace", f"{config.gateway}/24", "dev", config.bridge)
    run("ip", "link", "set", config.bridge, "up")
    run("ip", "route", "replace", "unreachable", config.network, "metric", _UNREACHABLE_METRIC)
    if run("nft", "list", "table", "ip", config.nft_table, check=False).returncode != 0:
        run("nft", "-f", "-", stdin=_translation(config))


def _translation(config: LabConfig) -> str:
    return f"""table ip {config.nft_table} {{
  chain post {{
    type nat hook postrouting priority 100;
    ip saddr {config.network} ip daddr != {config.network} masquerade;
  }}
  chain mss {{
    type filter hook forward priority 0;
    iifname "{config.bridge}" tcp flags syn tcp option maxseg size set rt mtu;
  }}
}}
"""


def down(config: LabConfig) -> None:
    """Everything of this lab, found by name, also what a crash left half made."""
    for link in links(config):
        run("ip", "link", "delete", link, check=False)
    for space in namespaces(config):
        run("ip", "netns", "delete", space, check=False)
    if exists(config.bridge):
        run("ip", "link", "delete", config.bridge)
    run("ip", "route", "delete", "unreachable", config.network, "metric", _UNREACHABLE_METRIC, check=False)
    for family, table in tables(config):
        run("nft", "delete", "table", family, table, check=False)


def links(config: LabConfig) -> list[str]:
    """The host's ends of the cables of this lab."""
    prefix = config.link("")
    found = (path.name for path in Path("/sys/class/net").iterdir())
    return sorted(name for name in found if name.startswith(prefix) and name != config.bridge)


def namespaces(config: LabConfig) -> list[str]:
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.glob(f"{config.link('')}*")) if folder.exists() else []


def tables(config: LabConfig) -> list[tuple[str, str]]:
    """The packet filter tables of this lab, as (family, name)."""
    listed = run("nft", "-j", "list", "tables", check=False).stdout
    found = [entry["table"] for entry in json.loads(listed or '{"nftables": []}')["nftables"] if "table" in entry]
    own = config.nft_table
    return [(t["family"], t["name"]) for t in found if t["name"] == own or t["name"].startswith(f"{own}_")]


def plug(config: LabConfig, node: str, address: str) -> None:
    """The node's network namespace and its cable to the bridge."""
    link = config.link(node)
    if not Path("/run/netns", link).exists():
        run("ip", "netns", "add", link)
    if not exists(link):
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0",
            "address", hardware_address(address), "netns", link)  # fmt: skip
    run("ip", "-n", link, "address", "replace", f"{address}/24", "dev", "eth0")
    run("ip", "link", "set", link, "master", config.bridge, "up")
    run("ip", "-n", link, "link", "set", "lo", "up")
    run("ip", "-n", link, "link", "set", "eth0", "up")
    run("ip", "-n", link, "route", "replace", "default", "via", config.gateway)


def hardware_address(address: str) -> str:
    """The network card of an address: kept over resets, or peers would talk to the former card for seconds."""
    return "02:00:" + ":".join(f"{int(octet):02x}" for octet in address.split("."))


def unplug(config: LabConfig, node: str) -> None:
    """Remove cable and namespace, and with them every fault on them and every setting made inside."""
    loss(config, node, 0)
    link = config.link(node)
    if exists(link):
        run("ip", "link", "delete", link)
    run("ip", "netns", "delete", link, check=False)


def connect(config: LabConfig, node: str, connected: bool) -> None:
    run("ip", "link", "set", config.link(node), "up" if connected else "down")


def slow(config: LabConfig, node: str, rate: str | None) -> None:
    """Limit the bandwidth towards the node (tc's words, such as 1mbit); None is full speed."""
    link = config.link(node)
    if rate is None:
        run("tc", "qdisc", "delete", "dev", link, "root", check=False)
        return
    run("tc", "qdisc", "replace", "dev", link, "root", "tbf", "rate", rate, "burst", "16k", "latency", "400ms")


def loss(config: LabConfig, node: str, percent: int) -> None:
    """Drop this share of the packets towards the node; 0 is none."""
    table = f"{config.nft_table}_{node}"
    run("nft", "delete", "table", "bridge", table, check=False)
    if percent == 0:
        return
    rule = f'oifname "{config.link(node)}" numgen random mod 100 <= {percent - 1} drop;'
    chains = (f"  chain {hook} {{ type filter hook {hook} priority 0; {rule} }}\n" for hook in ("forward", "output"))
    run("nft", "-f", "-", stdin=f"table bridge {table} {{\n{''.join(chains)}}}\n")
