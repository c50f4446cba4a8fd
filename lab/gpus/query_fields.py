"""The fields of --query-gpu of driver 580: where in the report each stands, and its unit. Pure.

Names, aliases and their order: `nvidia-smi --help-query-gpu` of a host (tests/data/h200/nvidia-smi-help-query.txt). Units as in
recorded CSV headers (tests/data/corpus/nvsmi-csv). A field is (path of XML tags in the report, unit); the path is N/A where no
board of the catalogue has a value, and None where smi_query makes the value.
"""

from lab.gpus.entry import NA

Field = tuple[str | None, str]


def _table() -> dict[str, Field]:
    found: dict[str, Field] = {}
    for line in _TEXT.strip().splitlines():
        name, source, *unit = line.split()
        found[name] = ({"-": NA, "*": None}.get(source, source), unit[0] if unit else "")
    return found


_TEXT = """
timestamp *
driver_version *
vgpu_driver_capability.heterogenous_multivGPU -
count *
name product_name
serial serial
uuid uuid
pci.bus_id pci/pci_bus_id
pci.domain pci/pci_domain
pci.bus pci/pci_bus
pci.device pci/pci_device
pci.baseClass pci/pci_base_class
pci.subClass pci/pci_sub_class
pci.device_id pci/pci_device_id
pci.sub_device_id pci/pci_sub_system_id
vgpu_device_capability.fractional_multiVgpu -
vgpu_device_capability.heterogeneous_timeSlice_profile -
vgpu_device_capability.heterogeneous_timeSlice_sizes -
vgpu_device_capability.homogeneous_placements -
vgpu_device_capability.mig_timeSlicing -
vgpu_device_capability.mig_timeSlicing_mode -
pcie.link.gen.current pci/pci_gpu_link_info/pcie_gen/current_link_gen
pcie.link.gen.gpucurrent pci/pci_gpu_link_info/pcie_gen/device_current_link_gen
pcie.link.gen.max pci/pci_gpu_link_info/pcie_gen/max_link_gen
pcie.link.gen.gpumax pci/pci_gpu_link_info/pcie_gen/max_device_link_gen
pcie.link.gen.hostmax pci/pci_gpu_link_info/pcie_gen/max_host_link_gen
pcie.link.width.current pci/pci_gpu_link_info/link_widths/current_link_width
pcie.link.width.max pci/pci_gpu_link_info/link_widths/max_link_width
index *
display_mode display_mode
display_attached display_attached
display_active display_active
persistence_mode persistence_mode
addressing_mode addressing_mode
accounting.mode accounting_mode
accounting.buffer_size accounting_mode_buffer_size
driver_model.current driver_model/current_dm
driver_model.pending driver_model/pending_dm
vbios_version vbios_version
inforom.img inforom_version/img_version
inforom.oem inforom_version/oem_object
inforom.ecc inforom_version/ecc_object
inforom.pwr inforom_version/pwr_object
inforom.checksum_validation *
gpu_recovery_action gpu_recovery_action
gom.current gpu_operation_mode/current_gom
gom.pending gpu_operation_mode/pending_gom
fan.speed fan_speed %
pstate performance_state
clocks_event_reasons.supported *
clocks_event_reasons.active *
clocks_event_reasons.gpu_idle clocks_event_reasons/clocks_event_reason_gpu_idle
clocks_event_reasons.applications_clocks_setting clocks_event_reasons/clocks_event_reason_applications_clocks_setting
clocks_event_reasons.sw_power_cap clocks_event_reasons/clocks_event_reason_sw_power_cap
clocks_event_reasons.hw_slowdown clocks_event_reasons/clocks_event_reason_hw_slowdown
clocks_event_reasons.hw_thermal_slowdown clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown
clocks_event_reasons.hw_power_brake_slowdown clocks_event_reasons/clocks_event_reason_hw_power_brake_slowdown
clocks_event_reasons.sw_thermal_slowdown clocks_event_reasons/clocks_event_reason_sw_thermal_slowdown
clocks_event_reasons.sync_boost clocks_event_reasons/clocks_event_reason_sync_boost
clocks_event_reasons_counters.sw_power_cap clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap us
clocks_event_reasons_counters.sync_boost clocks_event_reasons_counters/clocks_event_reasons_counters_sync_boost us
clocks_event_reasons_counters.sw_thermal_slowdown clocks_event_reasons_counters/clocks_event_reasons_counters_sw_therm_slowdown us
clocks_event_reasons_counters.hw_thermal_slowdown clocks_event_reasons_counters/clocks_event_reasons_counters_hw_therm_slowdown us
clocks_event_reasons_counters.hw_power_brake_slowdown clocks_event_reasons_counters/clocks_event_reasons_counters_hw_power_brake us
memory.total fb_memory_usage/total MiB
memory.reserved fb_memory_usage/reserved MiB
memory.used fb_memory_usage/used MiB
memory.free fb_memory_usage/free MiB
compute_mode compute_mode
compute_cap *
utilization.gpu utilization/gpu_util %
utilization.memory utilization/memory_util %
utilization.encoder utilization/encoder_util %
utilization.decoder utilization/decoder_util %
utilization.jpeg utilization/jpeg_util %
utilization.ofa utilization/ofa_util %
encoder.stats.sessionCount encoder_stats/session_count
encoder.stats.averageFps encoder_stats/average_fps
encoder.stats.averageLatency encoder_stats/average_latency
dramEncryption.mode.current dram_encryption_mode/current_dram_encryption
dramEncryption.mode.pending dram_encryption_mode/pending_dram_encryption
ecc.mode.current ecc_mode/current_ecc
ecc.mode.pending ecc_mode/pending_ecc
ecc.errors.uncorrected.volatile.sram.parity ecc_errors/volatile/sram_uncorrectable_parity
ecc.errors.uncorrected.volatile.sram.secded ecc_errors/volatile/sram_uncorrectable_secded
ecc.errors.uncorrected.aggregate.sram.parity ecc_errors/aggregate/sram_uncorrectable_parity
ecc.errors.uncorrected.aggregate.sram.secded ecc_errors/aggregate/sram_uncorrectable_secded
ecc.errors.uncorrected.aggregate.sram.thresholdExceeded ecc_errors/aggregate/sram_threshold_exceeded
ecc.errors.uncorrected.aggregate.sram.l2 ecc_errors/aggregate_uncorrectable_sram_sources/sram_l2
ecc.errors.uncorrected.aggregate.sram.sm ecc_errors/aggregate_uncorrectable_sram_sources/sram_sm
ecc.errors.uncorrected.aggregate.sram.mcu ecc_errors/aggregate_uncorrectable_sram_sources/sram_microcontroller
ecc.errors.uncorrected.aggregate.sram.pcie ecc_errors/aggregate_uncorrectable_sram_sources/sram_pcie
ecc.errors.uncorrected.aggregate.sram.other ecc_errors/aggregate_uncorrectable_sram_sources/sram_other
retired_pages.single_bit_ecc.count retired_pages/multiple_single_bit_retirement/retired_count
retired_pages.double_bit.count retired_pages/double_bit_retirement/retired_count
retired_pages.pending retired_pages/pending_retirement
remapped_rows.correctable remapped_rows/remapped_row_corr
remapped_rows.correctable_inactive remapped_rows/remapped_row_corr_inactive
remapped_rows.uncorrectable remapped_rows/remapped_row_unc
remapped_rows.uncorrectable_inactive remapped_rows/remapped_row_unc_inactive
remapped_rows.pending remapped_rows/remapped_row_pending
remapped_rows.failure remapped_rows/remapped_row_failure
temperature.gpu temperature/gpu_temp
temperature.gpu.tlimit temperature/gpu_temp_tlimit
temperature.memory temperature/memory_temp
power.management *
power.draw gpu_power_readings/average_power_draw W
power.draw.average gpu_power_readings/average_power_draw W
power.draw.instant gpu_power_readings/instant_power_draw W
power.limit gpu_power_readings/requested_power_limit W
enforced.power.limit gpu_power_readings/current_power_limit W
power.default_limit gpu_power_readings/default_power_limit W
power.min_limit gpu_power_readings/min_power_limit W
power.max_limit gpu_power_readings/max_power_limit W
module.power.draw.average module_power_readings/average_power_draw W
module.power.draw.instant module_power_readings/instant_power_draw W
module.power.limit module_power_readings/requested_power_limit W
module.enforced.power.limit module_power_readings/current_power_limit W
module.power.default_limit module_power_readings/default_power_limit W
module.power.min_limit module_power_readings/min_power_limit W
module.power.max_limit module_power_readings/max_power_limit W
power_smoothing.delayed_power_smoothing_supported -
power_smoothing.primary_power_floor - W
power_smoothing.secondary_power_floor - W
power_smoothing.min_primary_floor_activation_offset - W
power_smoothing.min_primary_floor_activation_point - W
power_smoothing.window_multiplier - ms
power_smoothing.curr_profile.secondary_power_floor - W
power_smoothing.curr_profile.primary_floor_act_window_multiplier -
power_smoothing.curr_profile.primary_floor_tar_window_multiplier -
power_smoothing.curr_profile.primary_floor_act_offset - W
power_smoothing.admin_override.secondary_power_floor - W
power_smoothing.admin_override.primary_floor_act_window_multiplier -
power_smoothing.admin_override.primary_floor_tar_window_multiplier -
power_smoothing.admin_override.primary_floor_act_offset - W
clocks.current.graphics clocks/graphics_clock MHz
clocks.current.sm clocks/sm_clock MHz
clocks.current.memory clocks/mem_clock MHz
clocks.current.video clocks/video_clock MHz
clocks.applications.graphics applications_clocks/graphics_clock MHz
clocks.applications.memory applications_clocks/mem_clock MHz
clocks.default_applications.graphics default_applications_clocks/graphics_clock MHz
clocks.default_applications.memory default_applications_clocks/mem_clock MHz
clocks.max.graphics max_clocks/graphics_clock MHz
clocks.max.sm max_clocks/sm_clock MHz
clocks.max.memory max_clocks/mem_clock MHz
mig.mode.current mig_mode/current_mig
mig.mode.pending mig_mode/pending_mig
gsp.mode.current *
gsp.mode.default *
c2c.mode c2c_mode
protected_memory.total cc_protected_memory_usage/total MiB
protected_memory.used cc_protected_memory_usage/used MiB
protected_memory.free cc_protected_memory_usage/free MiB
fabric.state fabric/state
fabric.status fabric/status
fabric.cliqueId fabric/cliqueId
fabric.clusterUuid fabric/clusterUuid
hostname -
"""
FIELDS: dict[str, Field] = _table()
for _when in ("volatile", "aggregate"):
    for _kind, _dram in (("corrected", "dram_correctable"), ("uncorrected", "dram_uncorrectable")):
        _stem = f"ecc.errors.{_kind}.{_when}"
        FIELDS |= {f"{_stem}.{name}": (f"ecc_errors/{_when}/{_dram}", "") for name in ("device_memory", "dram")}
        FIELDS |= {f"{_stem}.{name}": (NA, "") for name in ("register_file", "l1_cache", "l2_cache", "texture_memory", "cbu")}
        FIELDS |= {f"{_stem}.{name}": (None, "") for name in ("sram", "total")}
for _level in ("max", "high", "partial", "low", "none"):
    _path = f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{_level}"
    FIELDS[f"remapped_rows.histogram.{_level}"] = (_path, "")
for _name in ("summary", "bandwidth", "route_recovery_in_progress", "route_unhealthy", "access_timeout_recovery",
              "incorrect_configuration", "partition_assigned"):  # fmt: skip
    FIELDS[f"fabric.health.{_name}"] = (f"fabric/health/{_name}", "")
for _name in ("chassis_serial_number", "slot_number", "tray_index", "host_id", "peer_type", "module_id", "gpu_fabric_guid"):
    FIELDS[f"platform.{_name}"] = (f"platformInfo/{_name}", "")
# the report's XML leaves out what the CSV puts before a hexadecimal number
HEX_PREFIX = {f"pci.{name}": "0x" for name in ("domain", "bus", "device", "baseClass", "subClass", "device_id", "sub_device_id")}

_ALIASES = """
gpu_name=name gpu_serial=serial gpu_uuid=uuid gpu_bus_id=pci.bus_id inforom.image=inforom.img inforom.power=inforom.pwr
gpu_operation_mode.current=gom.current gpu_operation_mode.pending=gom.pending
retired_pages.sbe=retired_pages.single_bit_ecc.count retired_pages.dbe=retired_pages.double_bit.count
remapped_rows.sbe=remapped_rows.correctable remapped_rows.dbe=remapped_rows.uncorrectable
gpu.power.draw.average=power.draw.average gpu.power.draw.instant=power.draw.instant gpu.power.requested_limit=power.limit
gpu.power.current_limit=enforced.power.limit gpu.power.default_limit=power.default_limit gpu.power.min_limit=power.min_limit
gpu.power.max_limit=power.max_limit module.power.requested_limit=module.power.limit
module.power.current_limit=module.enforced.power.limit clocks.gr=clocks.current.graphics clocks.sm=clocks.current.sm
clocks.mem=clocks.current.memory clocks.video=clocks.current.video clocks.applications.gr=clocks.applications.graphics
clocks.applications.mem=clocks.applications.memory clocks.default_applications.gr=clocks.default_applications.graphics
clocks.default_applications.mem=clocks.default_applications.memory clocks.max.gr=clocks.max.graphics
clocks.max.mem=clocks.max.memory
"""
ALIASES: dict[str, str] = dict(pair.split("=") for pair in _ALIASES.split())
ALIASES |= {name.replace("event", "throttle", 1): name for name in FIELDS if name.startswith("clocks_event_reasons.")}
