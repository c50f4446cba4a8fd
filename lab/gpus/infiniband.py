"""Network cards as files below /sys/class/infiniband. Pure. Names: Documentation/ABI/stable/sysfs-class-infiniband."""

from lab.gpus.state import Nic, NodeState


def files(state: NodeState) -> dict[str, bytes]:
    """Path below /sys/class/infiniband -> content."""
    return {f"{nic.name}/{path}": f"{text}\n".encode() for nic in state.nics for path, text in _nic(nic).items()}


def links(state: NodeState) -> dict[str, str]:
    """Path below /sys/class/infiniband -> target: the PCI device."""
    return {f"{nic.name}/device": f"../../../bus/pci/devices/{nic.bus}" for nic in state.nics}


def _nic(nic: Nic) -> dict[str, str]:
    infiniband = nic.link_layer == "InfiniBand"
    port = {
        "state": nic.state, "phys_state": nic.physical_state, "rate": nic.rate, "link_layer": nic.link_layer,
        "lid": f"0x{nic.lid if infiniband else 0:x}", "sm_lid": f"0x{nic.sm_lid if infiniband else 0:x}", "lid_mask_count": "0",
        "sm_sl": "0", "cap_mask": "0xa651e848" if infiniband else "0x00010000", "gids/0": f"fe80:0000:0000:0000:{nic.port_guid}",
        "pkeys/0": "0xffff",
    }  # fmt: skip
    port |= {f"counters/{name}": str(value) for name, value in nic.counters.items()}
    card = {"node_type": "1: CA", "node_guid": nic.node_guid, "sys_image_guid": nic.node_guid, "fw_ver": nic.firmware,
            "board_id": nic.board_id, "hca_type": "MT4123", "hw_rev": "0", "node_desc": f"{nic.name} HCA"}  # fmt: skip
    return card | {f"ports/1/{name}": text for name, text in port.items()}
