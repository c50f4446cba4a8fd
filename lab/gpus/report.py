"""All that `nvidia-smi -q` and `-q -x` say about one GPU, as one tree: both forms and the query fields come from it. Pure."""

from lab.gpus import report_memory, report_power
from lab.gpus.entry import NA, PROCESS_COLUMN, Entry, enabled, leaf, section, text_only, xml_only
from lab.gpus.state import Process
from lab.gpus.view import Board


def entries(board: Board) -> list[Entry]:
    """The whole report, in the order of driver 580."""
    return [
        *_identity(board),
        *_versions(board),
        _pci(board),
        leaf("Fan Speed", "fan_speed", board.reading("fan", NA if board.gpu.fan is None else f"{board.gpu.fan} %")),
        leaf("Performance State", "performance_state", board.reading("pstate", board.gpu.pstate)),
        *report_power.throttling(board),
        leaf("Sparse Operation Mode", "sparse_operation_mode", board.product.sparse),
        *report_memory.memory(board),
        *report_memory.errors(board),
        *report_power.readings(board),
        *report_power.clocks(board),
        _fabric(),
        *_processes(board),
        section("Capabilities", "capabilities", leaf("EGM", "egm", "disabled")),
    ]


def _identity(board: Board) -> list[Entry]:
    gpu, product = board.gpu, board.product
    return [
        leaf("Product Name", "product_name", product.name),
        leaf("Product Brand", "product_brand", product.brand),
        leaf("Product Architecture", "product_architecture", product.architecture),
        leaf("Display Mode", "display_mode", "Requested functionality has been deprecated"),
        leaf("Display Attached", "display_attached", "Yes"),
        leaf("Display Active", "display_active", "Disabled"),
        leaf("Persistence Mode", "persistence_mode", enabled(gpu.persistence)),
        leaf("Addressing Mode", "addressing_mode", "None"),
        section("MIG Mode", "mig_mode", leaf("Current", "current_mig", enabled(gpu.mig.current)),
                leaf("Pending", "pending_mig", enabled(gpu.mig.pending))),
        *report_memory.mig_devices(board),
        leaf("Accounting Mode", "accounting_mode", "Disabled"),
        leaf("Accounting Mode Buffer Size", "accounting_mode_buffer_size", "4000"),
        section("Driver Model", "driver_model", leaf("Current", "current_dm", NA), leaf("Pending", "pending_dm", NA)),
        leaf("Serial Number", "serial", gpu.serial),
        leaf("GPU UUID", "uuid", gpu.uuid),
        leaf("GPU PDI", "pdi", f"0x{gpu.uuid[4:].replace('-', '')[:16]}"),
        leaf("Minor Number", "minor_number", str(board.index)),
        leaf("VBIOS Version", "vbios_version", product.vbios),
        leaf("MultiGPU Board", "multigpu_board", "No"),
        leaf("Board ID", "board_id", f"0x{_board_id(gpu.bus):x}"),
        leaf("Board Part Number", "board_part_number", product.board_part),
        leaf("GPU Part Number", "gpu_part_number", product.gpu_part),
        leaf("FRU Part Number", "gpu_fru_part_number", NA),
    ]  # fmt: skip


def _board_id(bus: str) -> int:
    """NVML's board id is the PCI bus and device number, 0000:17:00.0 -> 0x1700."""
    _, number, device = bus.split(":")
    return int(number, 16) << 8 | int(device.split(".")[0], 16)


def _versions(board: Board) -> list[Entry]:
    product = board.product
    platform = {"Chassis Serial Number": NA, "Slot Number": NA, "Tray Index": NA, "Host ID": NA, "Peer Type": NA,
                "Module Id": product.module_id, "GPU Fabric GUID": NA}  # fmt: skip
    image, oem, ecc, power = product.inforom
    return [
        section("Platform Info", "platformInfo", *(leaf(k, k.lower().replace(" ", "_"), v) for k, v in platform.items())),
        section("Inforom Version", "inforom_version", leaf("Image Version", "img_version", image),
                leaf("OEM Object", "oem_object", oem), leaf("ECC Object", "ecc_object", ecc),
                leaf("Power Management Object", "pwr_object", power)),
        section("Inforom BBX Object Flush", "inforom_bbx_flush", leaf("Latest Timestamp", "latest_timestamp", NA),
                leaf("Latest Duration", "latest_duration", NA)),
        section("GPU Operation Mode", "gpu_operation_mode", leaf("Current", "current_gom", NA), leaf("Pending", "pending_gom", NA)),
        leaf("GPU C2C Mode", "c2c_mode", "Disabled"),
        section("GPU Virtualization Mode", "gpu_virtualization_mode",
                leaf("Virtualization Mode", "virtualization_mode", product.virtualization),
                leaf("Host VGPU Mode", "host_vgpu_mode", NA),
                leaf("vGPU Heterogeneous Mode", "vgpu_heterogeneous_mode", NA)),
        leaf("GPU Recovery Action", "gpu_recovery_action", board.recovery),
        leaf("GSP Firmware Version", "gsp_firmware_version", board.driver),
        section("IBMNPU", "ibmnpu", leaf("Relaxed Ordering Mode", "relaxed_ordering_mode", NA)),
    ]  # fmt: skip


def _pci(board: Board) -> Entry:
    gpu, product = board.gpu, board.product
    domain, bus, device = board.bus.split(".")[0].split(":")
    gen, top, link = str(gpu.pcie.gen), str(product.pcie_gen), gpu.pcie
    return section(
        "PCI", "pci",
        Entry("Bus", "pci_bus", f"0x{bus}", xml=bus),
        Entry("Device", "pci_device", f"0x{device}", xml=device),
        Entry("Domain", "pci_domain", f"0x{domain[4:]}", xml=domain[4:]),
        Entry("Base Classcode", "pci_base_class", "0x3", xml="3"),
        Entry("Sub Classcode", "pci_sub_class", "0x2", xml="2"),
        Entry("Device Id", "pci_device_id", f"0x{product.device_id}", xml=product.device_id),
        leaf("Bus Id", "pci_bus_id", board.bus),
        Entry("Sub System Id", "pci_sub_system_id", f"0x{product.subsystem_id}", xml=product.subsystem_id),
        section("GPU Link Info", "pci_gpu_link_info",
                section("PCIe Generation", "pcie_gen", leaf("Max", "max_link_gen", top), leaf("Current", "current_link_gen", gen),
                        leaf("Device Current", "device_current_link_gen", gen), leaf("Device Max", "max_device_link_gen", top),
                        leaf("Host Max", "max_host_link_gen", NA)),
                section("Link Width", "link_widths", leaf("Max", "max_link_width", "16x"),
                        leaf("Current", "current_link_width", f"{link.width}x"))),
        section("Bridge Chip", "pci_bridge_chip", leaf("Type", "bridge_chip_type", NA), leaf("Firmware", "bridge_chip_fw", NA)),
        leaf("Replays Since Reset", "replay_counter", str(link.replays)),
        leaf("Replay Number Rollovers", "replay_rollover_counter", "0"),
        leaf("Tx Throughput", "tx_util", f"{link.tx_kib} KB/s"),
        leaf("Rx Throughput", "rx_util", f"{link.rx_kib} KB/s"),
        leaf("Atomic Caps Outbound", "atomic_caps_outbound", NA),
        leaf("Atomic Caps Inbound", "atomic_caps_inbound", NA),
    )  # fmt: skip


def _fabric() -> Entry:
    """No board of the catalogue sits in an NVSwitch fabric."""
    health = ("Summary", "Bandwidth", "Route Recovery in progress", "Route Unhealthy", "Access Timeout Recovery",
              "Incorrect Configuration", "Partition Assigned")  # fmt: skip
    return section(
        "Fabric", "fabric", leaf("State", "state", NA), leaf("Status", "status", NA), leaf("CliqueId", "cliqueId", NA),
        leaf("ClusterUUID", "clusterUuid", NA),
        section("Health", "health", *(leaf(name, name.lower().replace(" ", "_"), NA) for name in health)),
    )  # fmt: skip


def _processes(board: Board) -> list[Entry]:
    listed = tuple(_process_xml(process) for process in board.gpu.processes)
    told = tuple(line for process in board.gpu.processes for line in _process_text(process))
    return [
        report_power.supported_clocks(board),
        section(None, "processes", *listed),
        section(None, "accounted_processes"),
        Entry("Processes", None, children=told) if told else text_only("Processes", "None"),
    ]


def _process_xml(process: Process) -> Entry:
    return section(
        None, "process_info", xml_only("gpu_instance_id", NA), xml_only("compute_instance_id", NA),
        xml_only("pid", str(process.pid)), xml_only("type", process.kind), xml_only("process_name", process.name),
        xml_only("used_memory", f"{process.memory_mib} MiB"),
    )  # fmt: skip


def _process_text(process: Process) -> tuple[Entry, ...]:
    lines = {"GPU instance ID": NA, "Compute instance ID": NA, "Process ID": str(process.pid), "    Type": process.kind,
             "    Name": process.name, "    Used GPU Memory": f"{process.memory_mib} MiB"}  # fmt: skip
    return tuple(text_only(label, value, PROCESS_COLUMN) for label, value in lines.items())
