"""`nvidia-smi --query-gpu` and `--query-compute-apps` as CSV. Pure."""

from collections.abc import Sequence

from lab.gpus.entry import NA, Entry
from lab.gpus.query_fields import ALIASES, FIELDS, HEX_PREFIX
from lab.gpus.report import entries
from lab.gpus.view import REQUIRES_RESET, UNKNOWN_ERROR, Board, View

_BRACKETED = (NA, UNKNOWN_ERROR, REQUIRES_RESET, "Requested functionality has been deprecated")
_APPS = {"timestamp": "", "gpu_name": "", "gpu_bus_id": "", "gpu_serial": "", "gpu_uuid": "", "pid": "", "process_name": "",
         "used_gpu_memory": "MiB"}  # fmt: skip
_APP_ALIASES = {"name": "process_name", "used_memory": "used_gpu_memory"}


def unknown_field(names: Sequence[str], apps: bool = False) -> str:
    """The first name that is no field; empty where all are."""
    known = {**_APPS, **_APP_ALIASES} if apps else {**FIELDS, **ALIASES}
    return next((name for name in names if name not in known), "")


def header(names: Sequence[str], units: bool, apps: bool = False) -> str:
    """The first line; an alias is shown by its first name."""
    told = []
    for asked in names:
        name = (_APP_ALIASES if apps else ALIASES).get(asked, asked)
        unit = _APPS[name] if apps else FIELDS[name][1]
        told.append(f"{name} [{unit}]" if unit and units else name)
    return ", ".join(told)


def row(view: View, board: Board, names: Sequence[str], units: bool) -> str:
    """One GPU's line."""
    values = _flat(entries(board))
    return ", ".join(_cell(view, board, values, ALIASES.get(name, name), units) for name in names)


def app_rows(view: View, board: Board, names: Sequence[str], units: bool) -> list[str]:
    """One line a compute process on this GPU."""
    rows = []
    for process in board.gpu.processes:
        if "C" not in process.kind:
            continue
        cells = {"timestamp": _stamp(view), "gpu_name": board.product.name, "gpu_bus_id": board.bus, "gpu_serial": board.gpu.serial,
                 "gpu_uuid": board.gpu.uuid, "pid": str(process.pid), "process_name": process.name,
                 "used_gpu_memory": f"{process.memory_mib}{' MiB' if units else ''}"}  # fmt: skip
        rows.append(", ".join(cells[_APP_ALIASES.get(name, name)] for name in names))
    return rows


def _flat(tree: list[Entry], above: str = "") -> dict[str, str]:
    """Every value of the report by its path of XML tags."""
    found: dict[str, str] = {}
    for entry in tree:
        if entry.tag is None:
            continue
        path = f"{above}{entry.tag}"
        if entry.children is None:
            found.setdefault(path, entry.value if entry.xml is None else entry.xml)
        else:
            found.update({k: v for k, v in _flat(list(entry.children), f"{path}/").items() if k not in found})
    return found


def _cell(view: View, board: Board, values: dict[str, str], name: str, units: bool) -> str:
    source, unit = FIELDS[name]
    value = _special(view, board, values, name) if source is None else values.get(source, NA)
    if source is not None and source in values:
        value = _without_unit(value, HEX_PREFIX.get(name, ""))
    if value in _BRACKETED and not name.startswith("fabric."):
        return f"[{value}]"
    return f"{value} {unit}" if unit and units and value not in _BRACKETED else value


def _without_unit(value: str, prefix: str) -> str:
    number, space, unit = value.partition(" ")
    if space and unit in ("MiB", "%", "W", "MHz", "us", "C", "bank(s)"):
        value = number
    return f"{prefix}{value}".removesuffix("x") if value[:-1].isdigit() or prefix else value


def _stamp(view: View) -> str:
    return view.now.strftime("%Y/%m/%d %H:%M:%S.") + f"{view.now.microsecond // 1000:03}"


def _special(view: View, board: Board, values: dict[str, str], name: str) -> str:
    """What the report does not say, or says in parts."""
    if name.startswith("ecc.errors."):
        return _ecc_sum(values, name)
    direct = {
        "timestamp": _stamp(view), "driver_version": view.loaded, "count": str(len(view.state.gpus)), "index": str(board.index),
        "compute_cap": board.product.compute_capability, "clocks_event_reasons.supported": "0x00000000000001FF",
        "clocks_event_reasons.active": f"0x{board.throttle_mask:016X}", "inforom.checksum_validation": "valid",
        "gsp.mode.current": "Enabled", "gsp.mode.default": "Enabled",
        "power.management": "Requested functionality has been deprecated",
    }  # fmt: skip
    return direct[name]


def _ecc_sum(values: dict[str, str], name: str) -> str:
    """Sums: all of a kind (total), and what lies in SRAM."""
    _, _, kind, when, _, *_ = [*name.split("."), ""]
    parts = {"corrected": ("sram_correctable", "dram_correctable"),
             "uncorrected": ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")}[kind]  # fmt: skip
    wanted = [part for part in parts if name.endswith(".total") or part.startswith("sram")]
    counts = [values[f"ecc_errors/{when}/{part}"] for part in wanted]
    return str(sum(map(int, counts))) if all(count.isdigit() for count in counts) else NA
