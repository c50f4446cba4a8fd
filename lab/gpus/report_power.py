"""The part of a GPU's report about heat, power and clocks, and what slows it down. Pure."""

from lab.gpus.entry import NA, Entry, leaf, section, xml_only
from lab.gpus.view import Board

_REASONS = (  # label, end of the tag, reason of the state
    ("Idle", "gpu_idle", "idle"),
    ("Applications Clocks Setting", "applications_clocks_setting", "applications_clocks"),
    ("SW Power Cap", "sw_power_cap", "sw_power_cap"),
    ("HW Slowdown", "hw_slowdown", "hw_slowdown"),
    ("    HW Thermal Slowdown", "hw_thermal_slowdown", "hw_thermal_slowdown"),
    ("    HW Power Brake Slowdown", "hw_power_brake_slowdown", "hw_power_brake"),
    ("Sync Boost", "sync_boost", "sync_boost"),
    ("SW Thermal Slowdown", "sw_thermal_slowdown", "sw_thermal_slowdown"),
    ("Display Clock Setting", "display_clocks_setting", "display_clocks"),
)
_COUNTERS = (("SW Power Capping", "sw_power_cap"), ("Sync Boost", "sync_boost"), ("SW Thermal Slowdown", "sw_therm_slowdown"),
             ("HW Thermal Slowdown", "hw_therm_slowdown"), ("HW Power Braking", "hw_power_brake"))  # fmt: skip
_LIMITS = ("Current Power Limit", "Requested Power Limit", "Default Power Limit", "Min Power Limit", "Max Power Limit")


def throttling(board: Board) -> list[Entry]:
    def active(reason: str) -> str:
        return "Active" if reason in board.throttles else "Not Active"

    reasons = (leaf(label, f"clocks_event_reason_{tag}", active(name)) for label, tag, name in _REASONS)
    counters = (leaf(label, f"clocks_event_reasons_counters_{tag}", "0 us") for label, tag in _COUNTERS)
    return [
        section("Clocks Event Reasons", "clocks_event_reasons", *reasons),
        section("Clocks Event Reasons Counters", "clocks_event_reasons_counters", *counters),
    ]


def readings(board: Board) -> list[Entry]:
    power_state = xml_only("power_state", board.reading("pstate", board.gpu.pstate))
    module = [leaf(label, label.lower().replace(" ", "_"), NA) for label in _LIMITS]
    memory_draw = NA if board.gpu.memory_power_draw is None else f"{board.gpu.memory_power_draw:.2f} W"
    return [
        _temperature(board),
        section(None, "supported_gpu_target_temp", xml_only("gpu_target_temp_min", NA), xml_only("gpu_target_temp_max", NA)),
        _power(board, power_state),
        section("GPU Memory Power Readings ", "gpu_memory_power_readings",
                leaf("Average Power Draw", "average_power_draw", memory_draw),
                leaf("Instantaneous Power Draw", "instant_power_draw", NA)),
        section("Module Power Readings", "module_power_readings", power_state, leaf("Average Power Draw", "average_power_draw", NA),
                leaf("Instantaneous Power Draw", "instant_power_draw", NA), *module),
        leaf("Power Smoothing", "power_smoothing", NA),
        section("Workload Power Profiles", "power_profiles", leaf("Requested Profiles", "power_profile_requested_profiles", NA),
                leaf("Enforced Profiles", "power_profile_enforced_profiles", NA)),
    ]  # fmt: skip


def _temperature(board: Board) -> Entry:
    gpu, limits = board.gpu, board.product.limits
    margin = f"{int(limits[0]) - gpu.temperature} C" if limits[0].isdigit() else NA
    t_limit = "T.Limit " if limits[0].isdigit() else ""  # boards before Hopper name fixed temperatures
    tlimit_tag = "tlimit_" if t_limit else ""
    return section(
        "Temperature", "temperature",
        leaf("GPU Current Temp", "gpu_temp", board.reading("temperature", f"{gpu.temperature} C")),
        leaf("GPU T.Limit Temp", "gpu_temp_tlimit", margin),
        leaf(f"GPU Shutdown {t_limit}Temp", f"gpu_temp_max_{tlimit_tag}threshold", limits[1]),
        leaf(f"GPU Slowdown {t_limit}Temp", f"gpu_temp_slow_{tlimit_tag}threshold", limits[2]),
        leaf(f"GPU Max Operating {t_limit}Temp", f"gpu_temp_max_gpu_{tlimit_tag}threshold", limits[3]),
        leaf("GPU Target Temperature", "gpu_target_temperature", NA),
        leaf("Memory Current Temp", "memory_temp", board.reading("temperature", f"{gpu.memory_temperature} C")),
        leaf(f"Memory Max Operating {t_limit}Temp", f"gpu_temp_max_mem_{tlimit_tag}threshold", limits[4]),
    )  # fmt: skip


def _power(board: Board, power_state: Entry) -> Entry:
    default, low, high = board.product.power
    now = (board.gpu.power_limit, board.gpu.power_limit, default, low, high)
    draw = board.reading("power", f"{board.gpu.power_draw:.2f} W")
    return section(
        "GPU Power Readings", "gpu_power_readings", power_state, leaf("Average Power Draw", "average_power_draw", draw),
        leaf("Instantaneous Power Draw", "instant_power_draw", draw),
        *(leaf(label, label.lower().replace(" ", "_"), f"{watts:.2f} W") for label, watts in zip(_LIMITS, now, strict=True)),
    )  # fmt: skip


def clocks(board: Board) -> list[Entry]:
    product, now = board.product, board.gpu.clocks
    top, memory = f"{product.graphics_steps[0]} MHz", f"{product.max_memory_clock} MHz"

    def clock(mhz: int) -> str:
        return board.reading("clocks", f"{mhz} MHz")

    def pair(label: str, tag: str) -> Entry:
        return section(label, tag, leaf("Graphics", "graphics_clock", top), leaf("Memory", "mem_clock", memory))

    return [
        section("Clocks", "clocks", leaf("Graphics", "graphics_clock", clock(now.graphics)), leaf("SM", "sm_clock", clock(now.sm)),
                leaf("Memory", "mem_clock", clock(now.memory)), leaf("Video", "video_clock", clock(now.video))),
        pair("Applications Clocks", "applications_clocks"),
        pair("Default Applications Clocks", "default_applications_clocks"),
        section("Deferred Clocks", "deferred_clocks", leaf("Memory", "mem_clock", NA)),
        section("Max Clocks", "max_clocks", leaf("Graphics", "graphics_clock", top), leaf("SM", "sm_clock", top),
                leaf("Memory", "mem_clock", memory), leaf("Video", "video_clock", f"{product.max_video_clock} MHz")),
        section("Max Customer Boost Clocks", "max_customer_boost_clocks", leaf("Graphics", "graphics_clock", top)),
        section("Clock Policy", "clock_policy", leaf("Auto Boost", "auto_boost", NA),
                leaf("Auto Boost Default", "auto_boost_default", NA)),
    ]  # fmt: skip


def supported_clocks(board: Board) -> Entry:
    """The XML only: all graphics clocks with the memory at its highest, and again at its lowest."""
    high, low = board.product.graphics_steps
    steps = [xml_only("supported_graphics_clock", f"{mhz} MHz") for mhz in range(high, low - 1, -15)]
    memory = [section(None, "supported_mem_clock", xml_only("value", f"{mhz} MHz"), *steps) for mhz in board.product.memory_steps]
    return section(None, "supported_clocks", *memory)
