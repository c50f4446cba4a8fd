"""nvidia-smi: its command line, and which form answers it. Pure."""

from dataclasses import dataclass, replace

from lab.gpus import smi_links, smi_q, smi_query, smi_table, smi_xml
from lab.gpus.codec import with_gpu
from lab.gpus.reset import after_reset
from lab.gpus.smi_messages import BAD_ARGUMENTS, LOST, NO_DEVICES, NOT_ROOT, Answer, bad_field, before_any_answer, in_use, lost
from lab.gpus.view import Board, View, cuda_of, nvml_of

_FLAGS = {"-L": "list", "--list-gpus": "list", "-q": "query", "--query": "query", "-x": "xml", "--xml-format": "xml",
          "-r": "reset", "--gpu-reset": "reset", "--version": "version"}  # fmt: skip
_VALUED = {"-i": "id", "--id": "id", "-d": "display", "--display": "display", "-pm": "persistence",
           "--persistence-mode": "persistence", "--query-gpu": "query-gpu", "--query-compute-apps": "query-apps",
           "--format": "format"}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """One command line: flags and valued options by their long names; `words`: what is no option."""

    flags: frozenset[str]
    values: dict[str, str]
    words: tuple[str, ...]


def parse(argv: list[str]) -> Request | None:
    """None for what the stand-in does not know: the tool then refuses it as well."""
    flags: set[str] = set()
    values: dict[str, str] = {}
    words: list[str] = []
    rest = list(argv)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in _FLAGS and not equals:
            flags.add(_FLAGS[name])
        elif name in _VALUED and (equals or rest):
            values[_VALUED[name]] = value if equals else rest.pop(0)
        elif name.startswith("-") and not (words and words[0] in ("topo", "nvlink")):
            return None
        else:
            words.append(name)
    return Request(frozenset(flags), values, tuple(words))


def answer(argv: list[str], view: View, root: bool = True) -> Answer:
    """What the call prints and how it ends."""
    request = parse(argv)
    if request is None:
        return BAD_ARGUMENTS
    names = _fields(request)
    if names and (wrong := smi_query.unknown_field(names, "query-apps" in request.values)):
        return bad_field(wrong)
    if "version" in request.flags and view.library:
        return Answer(_version(view))
    if said := before_any_answer(view):
        return said
    chosen = _chosen(view, request.values.get("id", ""))
    if chosen is None:
        return NO_DEVICES
    return _about(request, view, chosen, root)


def _version(view: View) -> str:
    loaded = view.loaded or "N/A"
    return (f"NVIDIA-SMI version  : {view.library}\nNVML version        : {nvml_of(view.library)}\n"
            f"DRIVER version      : {loaded}\nCUDA Version        : {cuda_of(view.library)}\n")  # fmt: skip


def _fields(request: Request) -> list[str]:
    asked = request.values.get("query-gpu") or request.values.get("query-apps") or ""
    return [name.strip() for name in asked.split(",") if name.strip()]


def _chosen(view: View, wanted: str) -> list[Board] | None:
    """The GPUs that -i names by number, UUID, serial or bus id; None where one is not there."""
    boards = view.boards()
    found = []
    for name in filter(None, wanted.split(",")):
        ours = [b for b in boards if name.lower() in (str(b.index), b.gpu.uuid.lower(), b.gpu.serial, b.bus.lower(), b.gpu.bus)]
        if not ours:
            return None
        found += ours
    return found or boards


def _about(request: Request, view: View, chosen: list[Board], root: bool) -> Answer:
    if request.words[:1] == ("topo",):
        return _topo(request, view)
    if "reset" in request.flags or "persistence" in request.values:
        return _change(request, view, chosen) if root else NOT_ROOT
    alive = tuple(board.index for board in chosen if not board.gpu.lost)
    status = 0 if len(alive) == len(chosen) else LOST
    if "list" in request.flags:
        return Answer("".join(map(_listed, chosen)), status)
    if names := _fields(request):
        return _csv(request, view, chosen, names, status)
    complaints = "".join(lost(board) for board in chosen if board.gpu.lost)
    if not alive:
        return Answer(complaints + NO_DEVICES.out, NO_DEVICES.status)
    body = _body(request, view, alive)
    return BAD_ARGUMENTS if body is None else Answer(complaints + body, status)


def _body(request: Request, view: View, alive: tuple[int, ...]) -> str | None:
    if request.words[:1] == ("nvlink",):
        return smi_links.nvlink_status(view, alive) if {"-s", "--status"} & set(request.words) else None
    if request.words:
        return None
    sections = tuple(name.strip().upper() for name in request.values.get("display", "").split(",") if name.strip())
    if any(name not in smi_q.SECTIONS for name in sections):
        return None
    if {"query", "xml"} <= request.flags:
        return smi_xml.render(view, alive)
    return smi_q.render(view, alive, sections) if "query" in request.flags else smi_table.render(view, alive)


def _listed(board: Board) -> str:
    if board.gpu.lost:
        return lost(board)
    devices = "".join(f"  MIG {d.profile:<11} Device {at:>2}: (UUID: {d.uuid})\n" for at, d in enumerate(board.mig_devices))
    return f"GPU {board.index}: {board.product.name} (UUID: {board.gpu.uuid})\n{devices}"


def _csv(request: Request, view: View, chosen: list[Board], names: list[str], status: int) -> Answer:
    options = set(request.values.get("format", "").replace(" ", "").split(","))
    if "csv" not in options or options - {"csv", "noheader", "nounits"}:
        return BAD_ARGUMENTS
    apps, units = "query-apps" in request.values, "nounits" not in options
    lines = [] if "noheader" in options else [smi_query.header(names, units, apps)]
    for board in chosen:
        if board.gpu.lost:
            lines.append(lost(board).rstrip("\n"))
        elif apps:
            lines += smi_query.app_rows(view, board, names, units)
        else:
            lines.append(smi_query.row(view, board, names, units))
    return Answer("".join(f"{line}\n" for line in lines), status)


def _topo(request: Request, view: View) -> Answer:
    _, *words = request.words
    if words in (["-m"], ["--matrix"]):
        return Answer(smi_links.topology(view.state))
    if len(words) == 2 and words[0] in ("-p2p", "--p2pstatus") and words[1] in smi_links.P2P:
        return Answer(smi_links.peers(view.state, words[1]))
    return BAD_ARGUMENTS


def _change(request: Request, view: View, chosen: list[Board]) -> Answer:
    if any(board.gpu.lost for board in chosen):
        return Answer("".join(lost(board) for board in chosen if board.gpu.lost), LOST)
    state, lines = view.state, []
    if "reset" in request.flags:
        if busy := [board for board in chosen if board.gpu.processes]:
            return in_use(busy)
        for board in chosen:
            state = with_gpu(state, board.index, after_reset(view.state.gpus[board.index]))
            lines.append(f"GPU {board.bus} was successfully reset.\n")
        return Answer("".join(lines), 0, state)
    wanted = request.values["persistence"].upper() in ("1", "ENABLED")
    for board in chosen:
        word = "Enabled" if wanted else "Disabled"
        already = board.gpu.persistence == wanted
        lines.append(f"Persistence mode is already {word} for GPU {board.bus}.\n" if already
                     else f"{word} persistence mode for GPU {board.bus}.\n")  # fmt: skip
        state = with_gpu(state, board.index, replace(state.gpus[board.index], persistence=wanted))
    return Answer("".join(lines) + "All done.\n", 0, state)
