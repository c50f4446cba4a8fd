"""The four engines, and the proof that the one that was asked for is the one that runs.

An exit status proves nothing: Accelerate runs plain data parallelism without a word where FSDP does not apply. So each engine looks
at the model as it will be trained, on every rank, before the first step, and refuses to train where it is not what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trainer.device import Device
from trainer.errors import Problem, TrainerError
from trainer.resolve import Resolved
from trainer.spec import EngineSpec, RunConfig
from trainer.together import Together

OPTIMIZER = "optimizer.pt"  # as Transformers calls it, which reads it


@dataclass(frozen=True, slots=True)
class Proof:
    """What was seen of the model on all ranks. `held`: parameters that each rank holds of the `whole` trained ones."""

    engine: str
    world: int
    whole: int
    held: list[int]
    how: str
    evidence: dict[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        shares = "/".join(f"{held / self.whole:.1%}" for held in self.held)
        return f"{self.engine} on {self.world} ranks: {self.how}; of {self.whole:,} trained parameters each rank holds {shares}"


class Unproved(TrainerError):
    """The engine that was asked for is not what would run."""


class Engine:
    """Data parallelism, and what the others change. The trainer calls each of these once, in this order."""

    name = "ddp"
    reshards = True  # whether a checkpoint can be resumed at another world size
    placed = False  # whether the engine itself brings the model to the device

    def __init__(self, spec: EngineSpec, run: RunConfig, device: Device, together: Together) -> None:
        self.spec, self.run, self.device, self.together = spec, run, device, together

    def prepare(self, resolved: Resolved) -> dict[str, Any]:
        """Fields of the library's config that this engine needs; what has to be there before the model is loaded."""
        return {"ddp_find_unused_parameters": False}

    def attach(self, trainer: Any) -> None:
        """After the trainer has its accelerator."""

    def shard(self, model: Any) -> None:
        """Before the optimizer is made."""

    def clip(self, trainer: Any, model: Any, most: float) -> Any:
        """Clip gradients to a norm; the norm before, None where the engine leaves it to the library."""
        return None

    def prove(self, trainer: Any) -> Proof:
        """Look at the model on every rank. Raises Unproved on all of them."""
        from torch.nn.parallel import DistributedDataParallel

        trained = [p for p in trainer.model.parameters() if p.requires_grad]
        mine = {
            "wrapped": isinstance(trainer.model_wrapped, DistributedDataParallel),
            "whole": sum(p.numel() for p in trained),
            "sum": float(sum(p.detach().double().sum() for p in trained)),
        }
        seen = self.together.gather(mine)
        if self.together.world > 1 and not all(one["wrapped"] for one in seen):
            raise Unproved(
                Problem("engine", "ddp was asked for, but the model is not wrapped in DistributedDataParallel: not trained")
            )
        if len({(one["whole"], one["sum"]) for one in seen}) != 1:
            raise Unproved(Problem("engine", f"the ranks do not begin with the same parameters: {seen}"))
        how = "DistributedDataParallel, equal on all ranks" if self.together.world > 1 else "one rank, nothing to wrap"
        return Proof(self.name, self.together.world, mine["whole"], [one["whole"] for one in seen], how, {"sum": mine["sum"]})

    # -- checkpoints; None leaves it to the library

    def ahead(self, trainer: Any) -> bool:
        """Take the memory for copies beside training, on all ranks at once; False until the optimizer has what is copied."""
        if self.together.any(not trainer.optimizer.optimizer.state):
            return False
        trainer.parts.checkpoints.ahead(self.reserved(trainer), self.device.beside())
        return True

    def reserved(self, trainer: Any) -> list[Callable[[], Any]]:
        """What takes the memory, to be done beside training."""
        if not trainer.args.should_save:
            return []
        reserve = trainer.parts.checkpoints.reserve
        return [reserve("optimizer", trainer.optimizer.state_dict()), reserve("model", self.weights(trainer))]

    def save(self, trainer: Any, folder: Path) -> bool:
        """Write optimizer (and model shards); False leaves it to the library."""
        if trainer.args.should_save:
            import torch

            path = folder / OPTIMIZER
            trainer.parts.checkpoints.later("optimizer", trainer.optimizer.state_dict(), lambda state: torch.save(state, path))
        return True

    def restore(self, trainer: Any, folder: Path) -> bool:
        """Read what `save` wrote; False leaves it to the library."""
        return False

    def weights(self, trainer: Any) -> dict[str, Any] | None:
        """The trained parameters, or the whole model where all are trained, on rank 0; None leaves it to the library."""
        if self.run.method.type == "full":
            return dict(trainer.model.state_dict())
        return {name: p for name, p in trainer.model.named_parameters() if p.requires_grad}

    def resume_problem(self, saved: int) -> str:
        """Why a checkpoint of `saved` ranks cannot be resumed here; empty where it can."""
        return ""


def engine(run: RunConfig, device: Device, together: Together) -> Engine:
    """The engine of a run."""
    from trainer.engines_deepspeed import DeepSpeedEngine
    from trainer.engines_fsdp import FsdpEngine

    spec = run.engine_spec
    kinds: dict[str, type[Engine]] = {"ddp": Engine, "fsdp": FsdpEngine}
    return kinds.get(spec.type, DeepSpeedEngine)(spec, run, device, together)
