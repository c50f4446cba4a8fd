"""FSDP by PyTorch's own fully_shard, the same on GPU and CPU: Accelerate's does not apply on a CPU, and says nothing.

Each decoder layer is a unit and the rest is one. Checkpoints are PyTorch's distributed ones, which any number of ranks can read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.engines import Engine, Proof, Unproved
from trainer.errors import Problem
from trainer.resolve import Resolved
from trainer.spec import Fsdp
from trainer.together import Together

SHARDS = "shards"  # folder of the distributed checkpoint
WRITERS = 4  # files that a rank writes at a time


class FsdpEngine(Engine):
    """Parameters, gradients and optimizer sharded over all ranks."""

    name = "fsdp"
    placed = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._width: str | None = None
        self._on_cpu: Any = None

    def prepare(self, resolved: Resolved) -> dict[str, Any]:
        self._width = "bfloat16" if resolved.arguments["bf16"] else "float16" if resolved.arguments["fp16"] else None
        return {}

    def attach(self, trainer: Any) -> None:
        # Accelerate would wrap the sharded model in DDP. It is left the data loader, the optimizer and the collectives
        trainer.accelerator.prepare_model = self._prepared

    def _prepared(self, model: Any, device_placement: bool | None = None, evaluation_mode: bool = False) -> Any:
        from torch.distributed.fsdp import FSDPModule

        if not isinstance(model, FSDPModule):  # a reference model, which only looks
            self.shard(model)
        return model.eval() if evaluation_mode else model

    def shard(self, model: Any) -> None:
        import torch
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

        assert isinstance(self.spec, Fsdp)
        width = getattr(torch, self._width) if self._width else None
        self._on_cpu = init_device_mesh("cpu", (self.together.world,))
        # offloading needs gradients to be reduced on the GPU, and the optimizer to run on the CPU
        offload = CPUOffloadPolicy() if self.spec.cpu_offload and self.device.kind == "cuda" else OffloadPolicy()
        common: dict[str, Any] = {
            "mesh": init_device_mesh(self.device.kind, (self.together.world,)),
            "mp_policy": MixedPrecisionPolicy(param_dtype=width, reduce_dtype=torch.float32 if width else None),
            "offload_policy": offload,
        }
        for layer in decoder_layers(model):  # each is widened only when its turn has come: the whole model may not fit so
            _widen(layer)
            fully_shard(layer, reshard_after_forward=self.spec.reshard_after_forward, **common)
        _widen(model)
        fully_shard(model, **common)

    def clip(self, trainer: Any, model: Any, most: float) -> Any:
        import torch
        from torch.distributed.tensor import DTensor

        norm = torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], most)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    def prove(self, trainer: Any) -> Proof:
        from torch.distributed.fsdp import FSDPModule
        from torch.distributed.tensor import DTensor, Shard

        named = [(name, p) for name, p in trainer.model.named_parameters() if p.requires_grad]
        plain = [name for name, p in named if not isinstance(p, DTensor) or not all(isinstance(x, Shard) for x in p.placements)]
        mine = {
            "units": sum(isinstance(module, FSDPModule) for module in trainer.model.modules()),
            "plain": plain,
            "whole": sum(p.numel() for _, p in named),
            "held": sum(p.to_local().numel() if isinstance(p, DTensor) else p.numel() for _, p in named),
        }
        seen = self.together.gather(mine)
        if wrong := [name for one in seen for name in one["plain"]]:
            what = (
                f"fsdp was asked for, but {len(wrong)} trained parameters are not sharded ({', '.join(wrong[:3])} ...): not trained"
            )
            raise Unproved(Problem("engine", what))
        if sum(one["held"] for one in seen) != mine["whole"] or not all(one["units"] > 1 for one in seen):
            raise Unproved(Problem("engine", f"the shards of all ranks do not make up the model: {seen}"))
        how = f"fully_shard in {mine['units']} units, every trained parameter a DTensor"
        return Proof(self.name, self.together.world, mine["whole"], [one["held"] for one in seen], how, {"units": mine["units"]})

    # -- checkpoints

    def reserved(self, trainer: Any) -> list[Callable[[], Any]]:
        return [trainer.parts.checkpoints.reserve("shards", _held(self._state(trainer)), by_all=True)]

    def save(self, trainer: Any, folder: Path) -> bool:
        checkpoints, state = trainer.parts.checkpoints, self._state(trainer)

        def write(held: Any) -> None:
            self._write(_sharded(held, state, self._on_cpu), folder / SHARDS, checkpoints.beside)

        checkpoints.later("shards", _held(state), write, by_all=True)
        return True

    def _write(self, state: Any, folder: Path, beside: Together) -> None:
        """By all ranks, which agree by a group that nothing else uses meanwhile."""
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.api import CheckpointException

        # files are brought to the disk when they are settled
        writer = dcp.FileSystemWriter(folder, thread_count=WRITERS, sync_files=False)
        try:
            dcp.save(state, storage_writer=writer, process_group=beside.group)
        except CheckpointException as error:  # no ordinary exception
            rank, (fault, _) = next(iter(error.failures.items()))
            raise OSError(f"rank {rank}: {fault}") from error

    def restore(self, trainer: Any, folder: Path) -> bool:
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import StateDictOptions, set_state_dict

        state = self._state(trainer)
        dcp.load(state, checkpoint_id=folder / SHARDS)
        set_state_dict(
            trainer.model,
            trainer.optimizer.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
            options=StateDictOptions(strict=False),  # frozen parameters are not in it
        )
        return True

    def _state(self, trainer: Any) -> dict[str, Any]:
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

        options = StateDictOptions(ignore_frozen_params=True)
        model, optimizer = get_state_dict(trainer.model, trainer.optimizer.optimizer, options=options)
        return {"model": model, "optimizer": optimizer}

    def weights(self, trainer: Any) -> dict[str, Any] | None:
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

        options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=self.run.method.type == "lora")
        return dict(get_model_state_dict(trainer.model, options=options))


def _widen(module: Any) -> None:
    """Trained values become master values in fp32; what is computed with has the width of the policy."""
    import torch

    for parameter in module.parameters():
        if parameter.requires_grad and parameter.dtype != torch.float32:
            parameter.data = parameter.data.float()


def _held(state: Any) -> Any:
    """The same nested value with each shard as the tensor that this rank holds of it."""
    if hasattr(state, "to_local"):
        return state.detach().to_local()
    return {name: _held(part) for name, part in state.items()} if isinstance(state, dict) else state


def _sharded(held: Any, state: Any, on_cpu: Any) -> Any:
    """What `_held` gave of `state`, or a copy of it, as shards again; `on_cpu` is the mesh of all ranks' copies."""
    from torch.distributed.tensor import DTensor

    if isinstance(state, DTensor):
        mesh = state.device_mesh if held.device.type == state.device_mesh.device_type else on_cpu
        return DTensor.from_local(held, mesh, state.placements, run_check=False, shape=state.shape, stride=state.stride())
    return {name: _sharded(part, state[name], on_cpu) for name, part in held.items()} if isinstance(state, dict) else held


def decoder_layers(model: Any) -> list[Any]:
    """The layers that a model says must stay whole. Raises Unproved where it names none."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    names = set(getattr(base, "_no_split_modules", None) or ())
    found = [module for module in base.modules() if type(module).__name__ in names]
    if not found:
        raise Unproved(Problem("engine", f"{type(base).__name__} does not say which layers it is made of: fsdp cannot shard it"))
    return found
