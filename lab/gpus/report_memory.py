"""The part of a GPU's report about memory: MIG, what is used, ECC, retired pages, remapped rows. Pure."""

from lab.gpus.entry import NA, Entry, enabled, leaf, section, text_only, xml_only, yes
from lab.gpus.state import EccCounts, MigDevice
from lab.gpus.view import Board

_COUNTS = (  # label, tag, field
    ("SRAM Correctable", "sram_correctable", "sram_correctable"),
    ("SRAM Uncorrectable Parity", "sram_uncorrectable_parity", "sram_parity"),
    ("SRAM Uncorrectable SEC-DED", "sram_uncorrectable_secded", "sram_secded"),
    ("DRAM Correctable", "dram_correctable", "dram_correctable"),
    ("DRAM Uncorrectable", "dram_uncorrectable", "dram_uncorrectable"),
)
_SOURCES = (("SRAM L2", "sram_l2"), ("SRAM SM", "sram_sm"), ("SRAM Microcontroller", "sram_microcontroller"),
            ("SRAM PCIE", "sram_pcie"), ("SRAM Other", "sram_other"))  # fmt: skip


def mig_devices(board: Board) -> list[Entry]:
    """The text has one section a device, the XML one list; nothing in the text where there is none."""
    devices = [_mig(index, device) for index, device in enumerate(board.mig_devices)]
    if not devices:
        return [Entry(None, "mig_devices", "None", raw=True)]
    return [Entry(None, "mig_devices", children=tuple(devices)), *(Entry("MIG Device", None, children=d.children) for d in devices)]


def _mig(index: int, device: MigDevice) -> Entry:
    engines = (("Copy Engine", "copy_engine", 1), ("Encoder", "encoder", 0), ("Decoder", "decoder", 1), ("OFA", "ofa", 0),
               ("JPG", "jpg", 1))  # fmt: skip
    slices = device.multiprocessors // 14  # an A100 has 14 multiprocessors a slice
    total, used = device.memory_mib, device.used_mib
    counts = [leaf(f"{label} count", f"{tag}_count", str(each * max(slices, 1))) for label, tag, each in engines]
    return section(
        "MIG Device", "mig_device", leaf("Index", "index", str(index)),
        leaf("GPU Instance ID", "gpu_instance_id", str(device.gpu_instance)),
        leaf("Compute Instance ID", "compute_instance_id", str(device.compute_instance)),
        section("Device Attributes", "device_attributes",
                section("Shared", "shared",
                        leaf("Multiprocessor count", "multiprocessor_count", str(device.multiprocessors)), *counts)),
        section("ECC Errors", "ecc_error_count",
                section("Volatile", "volatile_count", leaf("SRAM Uncorrectable", "sram_uncorrectable", "0"))),
        section("Shared FB Memory Usage", "fb_memory_usage", leaf("Total", "total", f"{total} MiB"),
                leaf("Reserved", "reserved", "0 MiB"), leaf("Used", "used", f"{used} MiB"),
                leaf("Free", "free", f"{total - used + 1} MiB")),
        section("Shared BAR1 Memory", "bar1_memory_usage", leaf("Total", "total", f"{total} MiB"), leaf("Used", "used", "0 MiB"),
                leaf("Free", "free", f"{total} MiB")),
    )  # fmt: skip


def memory(board: Board) -> list[Entry]:
    product, gpu = board.product, board.gpu

    def percent(value: int) -> str:
        return NA if gpu.mig.current else board.reading("utilization", f"{value} %")

    stats = (("Active Sessions", "session_count"), ("Average FPS", "average_fps"), ("Average Latency", "average_latency"))
    engines = ("Encoder", "Decoder", "JPEG", "OFA")
    return [
        section("FB Memory Usage", "fb_memory_usage", leaf("Total", "total", f"{product.memory_total} MiB"),
                leaf("Reserved", "reserved", f"{product.memory_reserved} MiB"), leaf("Used", "used", f"{board.used_mib} MiB"),
                leaf("Free", "free", f"{board.free_mib} MiB")),
        section("BAR1 Memory Usage", "bar1_memory_usage", leaf("Total", "total", f"{product.bar1_total} MiB"),
                leaf("Used", "used", "1 MiB"), leaf("Free", "free", f"{product.bar1_total - 1} MiB")),
        section("Conf Compute Protected Memory Usage", "cc_protected_memory_usage", leaf("Total", "total", "0 MiB"),
                leaf("Used", "used", "0 MiB"), leaf("Free", "free", "0 MiB")),
        leaf("Compute Mode", "compute_mode", gpu.compute_mode),
        section("Utilization", "utilization", leaf("GPU", "gpu_util", percent(gpu.utilization)),
                leaf("Memory", "memory_util", percent(gpu.memory_utilization)),
                *(leaf(name, f"{name.lower()}_util", percent(0)) for name in engines)),
        section("Encoder Stats", "encoder_stats", *(leaf(label, tag, "0") for label, tag in stats)),
        section("FBC Stats", "fbc_stats", *(leaf(label, tag, "0") for label, tag in stats)),
        section("DRAM Encryption Mode", "dram_encryption_mode", leaf("Current", "current_dram_encryption", NA),
                leaf("Pending", "pending_dram_encryption", NA)),
    ]  # fmt: skip


def errors(board: Board) -> list[Entry]:
    ecc = board.gpu.ecc

    def count(value: int) -> str:
        return str(value) if ecc.current else NA

    def counts(of: EccCounts) -> list[Entry]:
        return [leaf(label, tag, count(getattr(of, name))) for label, tag, name in _COUNTS]

    found = {tag: 0 for _, tag in _SOURCES}
    found["sram_sm"] = ecc.aggregate.sram_parity + ecc.aggregate.sram_secded
    threshold = yes(ecc.sram_threshold_exceeded) if ecc.current else NA
    repair = (("Channel Repair Pending", "channel_repair_pending"), ("TPC Repair Pending", "tpc_repair_pending"),
              ("Unrepairable Memory", "unrepairable_memory"))  # fmt: skip
    return [
        section("ECC Mode", "ecc_mode", leaf("Current", "current_ecc", enabled(ecc.current)),
                leaf("Pending", "pending_ecc", enabled(ecc.pending))),
        section("ECC Errors", "ecc_errors", section("Volatile", "volatile", *counts(ecc.volatile)),
                section("Aggregate", "aggregate", *counts(ecc.aggregate),
                        leaf("SRAM Threshold Exceeded", "sram_threshold_exceeded", threshold)),
                section("Aggregate Uncorrectable SRAM Sources", "aggregate_uncorrectable_sram_sources",
                        *(leaf(label, tag, count(found[tag])) for label, tag in _SOURCES)),
                *(leaf(label, tag, "No") for label, tag in repair)),
        *_retired(),
        _rows(board),
    ]  # fmt: skip


def _retired() -> list[Entry]:
    """Boards with row remapping retire no pages."""
    lists = [section(None, tag, xml_only("retired_count", NA), xml_only("retired_pagelist", NA))
             for tag in ("multiple_single_bit_retirement", "double_bit_retirement")]  # fmt: skip
    labels = ("Single Bit ECC", "Double Bit ECC", "Pending Page Blacklist")
    return [
        Entry(None, "retired_pages", children=(*lists, xml_only("pending_blacklist", NA), xml_only("pending_retirement", NA))),
        Entry("Retired Pages", None, children=tuple(text_only(label, NA) for label in labels)),
    ]


def _rows(board: Board) -> Entry:
    rows = board.gpu.rows
    if board.gpu.mig.current:  # recorded so from an H100 with MIG on
        return leaf("Remapped Rows", "remapped_rows", NA)
    lost = min(rows.correctable + rows.uncorrectable, board.product.banks)
    low = lost if rows.failure else 0
    histogram = (("Max", board.product.banks - lost), ("High", lost - low), ("Partial", 0), ("Low", 0), ("None", low))
    tag = "row_remapper_histogram"
    return section(
        "Remapped Rows", "remapped_rows", leaf("Correctable Error", "remapped_row_corr", str(rows.correctable)),
        leaf("Inactive Correctable Error", "remapped_row_corr_inactive", "0"),
        leaf("Uncorrectable Error", "remapped_row_unc", str(rows.uncorrectable)),
        leaf("Inactive Uncorrectable Error", "remapped_row_unc_inactive", "0"),
        leaf("Pending", "remapped_row_pending", yes(rows.pending)),
        leaf("Remapping Failure Occurred", "remapped_row_failure", yes(rows.failure)),
        section("Bank Remap Availability Histogram", tag,
                *(leaf(label, f"{tag}_{label.lower()}", f"{value} bank(s)") for label, value in histogram)),
    )  # fmt: skip
