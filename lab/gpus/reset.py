"""What a reset or a reboot does to a GPU. Pure."""

from dataclasses import replace

from lab.gpus.state import EccCounts, Gpu, NodeState


def after_reset(gpu: Gpu) -> Gpu:
    """Pending modes and row remaps take effect, volatile counters begin again. A lost or failed GPU stays so."""
    devices = gpu.mig.devices if gpu.mig.pending and gpu.mig.current else ()
    return replace(
        gpu,
        requires_reset=False,
        unreadable=(),
        rows=replace(gpu.rows, pending=False),
        ecc=replace(gpu.ecc, current=gpu.ecc.pending, volatile=EccCounts()),
        mig=replace(gpu.mig, current=gpu.mig.pending, devices=devices),
        pcie=replace(gpu.pcie, replays=0),
    )


def after_boot(state: NodeState) -> NodeState:
    """All GPUs reset, no process of the former boot. The kernel log is a new one: `xids` begin again."""
    gpus = tuple(replace(after_reset(gpu), processes=(), xids=()) for gpu in state.gpus)
    return replace(state, gpus=gpus)
