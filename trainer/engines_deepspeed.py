"""DeepSpeed's ZeRO, stages 2 and 3, through Transformers; and what it needs to run on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.engines import Engine, Proof, Unproved
from trainer.errors import Problem
from trainer.resolve import Resolved
from trainer.spec import DeepSpeed

CONVERT = (
    "each rank's part of the optimizer is a file of its own: resume on {saved} ranks, or convert it first "
    "(`python -m deepspeed.checkpoint.ds_to_universal --input_folder CHECKPOINT --output_folder OUT` keeps the optimizer, "
    "`zero_to_fp32.py` in the checkpoint gives the weights alone)"
)


class DeepSpeedEngine(Engine):
    """Gradients and optimizer sharded (stage 2), parameters as well (stage 3)."""

    reshards = False
    placed = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        assert isinstance(self.spec, DeepSpeed)
        self.name = self.spec.type
        self.stage = self.spec.stage

    def prepare(self, resolved: Resolved) -> dict[str, Any]:
        if self.device.kind == "cpu":
            self._on_cpu()
        return {"deepspeed": self._config(resolved)}

    def _on_cpu(self) -> None:
        import deepspeed
        from deepspeed import ops

        # its shared-memory collective is compiled at the first use, for minutes; gloo does the same
        ops.__compatible_ops__["deepspeed_shm_comm"] = False
        deepspeed.init_distributed(dist_backend="gloo")

    def _config(self, resolved: Resolved) -> dict[str, Any]:
        assert isinstance(self.spec, DeepSpeed)
        zero: dict[str, Any] = {"stage": self.stage, "overlap_comm": self.device.kind == "cuda", "contiguous_gradients": True}
        if self.spec.offload_optimizer != "none":
            zero["offload_optimizer"] = {"device": self.spec.offload_optimizer}
        if self.stage == 3:
            zero["stage3_gather_16bit_weights_on_model_save"] = True
            if self.spec.offload_param != "none":
                zero["offload_param"] = {"device": self.spec.offload_param}
        return {
            "zero_optimization": zero,
            # PyTorch's AdamW, as with the other engines, and not one that is compiled on the node
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "bf16": {"enabled": bool(resolved.arguments["bf16"])},
            "fp16": {"enabled": bool(resolved.arguments["fp16"])},
            "gradient_clipping": "auto",
            "gradient_accumulation_steps": "auto",
            "train_batch_size": "auto",
            "train_micro_batch_size_per_gpu": "auto",
        }

    def prove(self, trainer: Any) -> Proof:
        from deepspeed.runtime.engine import DeepSpeedEngine as Wrapped

        wrapped = trainer.model_wrapped
        mine: dict[str, Any] = {"wrapped": isinstance(wrapped, Wrapped), "stage": 0, "whole": 0, "held": 0, "parameters": 0}
        if mine["wrapped"]:
            mine["stage"] = wrapped.zero_optimization_stage()
            mine |= self._stage_3(trainer) if self.stage == 3 else self._stage_2(trainer)
        seen = self.together.gather(mine)
        if not all(one["wrapped"] and one["stage"] == self.stage for one in seen):
            raise Unproved(Problem("engine", f"{self.name} was asked for, but this is what runs: {seen}: not trained"))
        held, whole = [one["held"] for one in seen], mine["whole"]
        padding = self.together.world * max(mine["parameters"], 1) * 4  # each piece is rounded up, so that all are alike
        if not whole <= sum(held) <= whole + padding or max(held) > whole / self.together.world + padding:
            raise Unproved(Problem("engine", f"the parts of all ranks do not make up the model: {seen}"))
        how = "every parameter partitioned" if self.stage == 3 else "fp32 values and optimizer partitioned"
        return Proof(self.name, self.together.world, whole, held, f"DeepSpeedEngine of stage {self.stage}, {how}")

    def _stage_3(self, trainer: Any) -> dict[str, int]:
        trained = [p for p in trainer.model.parameters() if p.requires_grad]
        parts = [p.ds_tensor.numel() for p in trained if hasattr(p, "ds_tensor") and p.ds_tensor is not None]
        if len(parts) != len(trained):
            return {"whole": sum(p.numel() for p in trained), "held": -1, "parameters": len(trained)}
        return {"whole": sum(p.ds_numel for p in trained), "held": sum(parts), "parameters": len(trained)}

    def _stage_2(self, trainer: Any) -> dict[str, int]:
        trained = [p for p in trainer.model.parameters() if p.requires_grad]
        groups = trainer.model_wrapped.optimizer.single_partition_of_fp32_groups
        return {"whole": sum(p.numel() for p in trained), "held": sum(g.numel() for g in groups), "parameters": len(trained)}

    # -- checkpoints: each rank's part is written by the library, while training waits

    def ahead(self, trainer: Any) -> bool:
        return True

    def save(self, trainer: Any, folder: Path) -> bool:
        return False

    def weights(self, trainer: Any) -> dict[str, Any] | None:
        return None

    def resume_problem(self, saved: int) -> str:
        if saved == self.together.world:
            return ""
        return f"it was saved by {saved} ranks of {self.name}, here are {self.together.world}: {CONVERT.format(saved=saved)}"
