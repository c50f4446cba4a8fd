"""`nvidia-smi -q -x`. Pure."""

from lab.gpus.entry import Entry
from lab.gpus.report import entries
from lab.gpus.view import View, cuda_of

_HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n<nvidia_smi_log>\n'


def render(view: View, indices: tuple[int, ...]) -> str:
    """The document of driver 580 for the GPUs of these numbers."""
    top = {"timestamp": view.now.strftime("%a %b %d %H:%M:%S %Y"), "driver_version": view.loaded,
           "cuda_version": cuda_of(view.library), "attached_gpus": str(len(view.state.gpus))}  # fmt: skip
    lines = [f"\t<{tag}>{escape(value)}</{tag}>" for tag, value in top.items()]
    for board in view.boards(indices):
        lines.append(f'\t<gpu id="{board.bus}">')
        for entry in entries(board):
            lines += _lines(entry, 2)
        lines += ["\t</gpu>", ""]
    return _HEAD + "\n".join(lines) + "\n</nvidia_smi_log>\n"


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lines(entry: Entry, depth: int) -> list[str]:
    if entry.tag is None:
        return []
    tabs = "\t" * depth
    value = escape(entry.value if entry.xml is None else entry.xml)
    if entry.raw:
        return [f"{tabs}<{entry.tag}>", f"{tabs}\t{value}", f"{tabs}</{entry.tag}>"]
    if entry.children is None:
        return [f"{tabs}<{entry.tag}>{value}</{entry.tag}>"]
    below = [line for child in entry.children for line in _lines(child, depth + 1)]
    return [f"{tabs}<{entry.tag}>", *below, f"{tabs}</{entry.tag}>"]
