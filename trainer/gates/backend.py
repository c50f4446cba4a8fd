"""What a gate's ranks compute on and talk through: the GPU of each and NCCL, or a CPU and gloo in their place."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Any

from trainer.gates.group import Group
from trainer.gates.outcome import CPU, Failed, Problem


def device_of(group: Group, cpu: bool) -> Any:
    """The torch device of this rank, which becomes its current one: a CPU only where that was asked for (`cpu`).

    Raises Failed, on all ranks, where one has no GPU of its own.
    """
    import torch

    def own() -> str:
        if cpu:
            return "cpu"
        if not torch.cuda.is_available():
            raise Failed(Problem("GpuMissing", "torch sees no GPU; --cpu lets CPUs take their place, and the result say so"))
        count = torch.cuda.device_count()
        if group.place.local >= count:
            raise Failed(
                Problem("NoGpuForRank", f"local rank {group.place.local} has no GPU: {socket.gethostname()} shows {count}")
            )
        torch.cuda.set_device(group.place.local)
        return f"cuda:{group.place.local}"

    kinds = group.all_do("taking a GPU", own, "GpuUnusable")
    return torch.device(kinds[group.rank])


def identity(group: Group, device: Any) -> dict[str, Any]:
    """Host, process and GPU of this rank; on a CPU a name for what stands for the GPU."""
    import torch

    found = {"rank": group.rank, "host": socket.gethostname(), "pid": os.getpid(), "local_rank": group.place.local}
    if device.type == "cpu":
        return {**found, "gpu": "CPU", "uuid": f"cpu-{socket.gethostname()}-{group.place.local}"}
    about = torch.cuda.get_device_properties(device)
    return {**found, "gpu": about.name, "uuid": str(about.uuid)}


def connect(group: Group, device: Any) -> None:
    """Make torch's process group over all ranks, once all are known to be there."""
    import torch.distributed as dist

    limit = timedelta(seconds=2 * group.patience + 60)  # the gate itself finds out first, and says who is late
    kind = "nccl" if device.type == "cuda" else "gloo"
    more = {"device_id": device} if device.type == "cuda" else {}
    dist.init_process_group(kind, store=group.store("collectives"), rank=group.rank, world_size=group.world, timeout=limit, **more)


def stand_in(device: Any) -> str:
    """What has to be said of a result that no GPU gave."""
    return "" if device.type == "cuda" else CPU


def wait(device: Any) -> None:
    """Until the device has done all of its work."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
