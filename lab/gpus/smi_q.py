"""`nvidia-smi -q` and `-q -d SECTION`. Pure."""

from lab.gpus.entry import Entry
from lab.gpus.report import entries
from lab.gpus.view import View, cuda_of

# what -d takes, and the titles of the sections that it shows (nvidia-smi --help, driver 580)
SECTIONS: dict[str, tuple[str, ...]] = {
    "MEMORY": ("FB Memory Usage", "BAR1 Memory Usage", "Conf Compute Protected Memory Usage"),
    "UTILIZATION": ("Utilization",),
    "ECC": ("ECC Mode", "ECC Errors"),
    "TEMPERATURE": ("Temperature",),
    "POWER": ("GPU Power Readings", "GPU Memory Power Readings ", "Module Power Readings"),
    "CLOCK": ("Clocks", "Applications Clocks", "Default Applications Clocks", "Deferred Clocks", "Max Clocks",
              "Max Customer Boost Clocks"),
    "COMPUTE": ("Compute Mode",),
    "PIDS": ("Processes",),
    "PERFORMANCE": ("Performance State", "Clocks Event Reasons", "Clocks Event Reasons Counters", "Sparse Operation Mode"),
    "PAGE_RETIREMENT": ("Retired Pages",),
    "ROW_REMAPPER": ("Remapped Rows",),
}  # fmt: skip


def render(view: View, indices: tuple[int, ...], sections: tuple[str, ...] = ()) -> str:
    """The log of the GPUs of these numbers; `sections`: keys of SECTIONS, all of the report where empty."""
    titles = [title for name in sections for title in SECTIONS[name]]
    lines = [
        "", "==============NVSMI LOG==============", "", _line("Timestamp", view.now.strftime("%a %b %d %H:%M:%S %Y"), 0),
        _line("Driver Version", view.loaded, 0), _line("CUDA Version", cuda_of(view.library), 0), "",
        _line("Attached GPUs", str(len(view.state.gpus)), 0),
    ]  # fmt: skip
    for board in view.boards(indices):
        lines.append(f"GPU {board.bus}")
        for entry in entries(board):
            if not titles or entry.label in titles:
                lines += _lines(entry, 4)
        lines.append("")
    return "\n".join(lines) + "\n"


def _line(label: str, value: str, indent: int, column: int = 55) -> str:
    return f"{' ' * indent}{label}".ljust(column) + f": {value}"


def _lines(entry: Entry, indent: int) -> list[str]:
    if entry.label is None:
        return []
    if entry.children is None:
        return [_line(entry.label, entry.value, indent, entry.column)]
    below = [line for child in entry.children for line in _lines(child, indent + 4)]
    return [f"{' ' * indent}{entry.label}", *below]
