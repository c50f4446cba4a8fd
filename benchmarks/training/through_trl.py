"""Steps taken by TRL's SFTTrainer, with its defaults and as our trainer sets it up; the model is that of the plain loop."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen2Config, TrainerCallback
from trl import SFTConfig, SFTTrainer

from benchmarks.baselines.plain import RANK
from benchmarks.baselines.shapes import SHAPES, Shape
from benchmarks.training.cases import FREE, TRL, Measurement
from benchmarks.training.profiled import summary
from benchmarks.training.timing import Watch
from trainer import speed
from trainer.loss import FusedLossTrainer

PROFILED = 2  # steps, after those that are timed
SHORTEST, LONGEST = 16, 2  # of packed sequences: a sixteenth and a half of the row


def measure(wanted: Measurement, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The figures of one loop, and for ours the profile of two more steps on a GPU. `keep` gets the figures before that."""
    shape = SHAPES[wanted.model]
    clock = Clock(wanted, shape)
    rows = list(sequences(wanted, shape))
    data = Dataset.from_dict({"input_ids": rows})
    clock.length = sum(len(row) ** 2 for row in rows) / sum(len(row) for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        trainer = (with_defaults if wanted.loop == TRL else as_ours)(wanted, shape, data, Path(folder))
        filled = sum(map(len, rows)) / (len(trainer.train_dataset) * wanted.length)  # below 1 where packing left gaps
        clock.tokens = round(wanted.batch * wanted.length * filled)
        trainer.add_callback(clock)
        trainer.train()
    clock.figures["losses"] = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    found = {**clock.figures, "resolved": getattr(trainer, "resolved", {})}
    keep(found)
    return {**found, "profile": summary(clock.recording, RANK, PROFILED, 14)} if clock.recording else found


def sequences(wanted: Measurement, shape: Shape) -> Iterator[list[int]]:
    """Random tokens: whole rows, or for packing sequences of many lengths that come to as many; never the same twice."""
    chance = torch.Generator().manual_seed(0)
    left = (sum(wanted.steps) + FREE + PROFILED + 2) * wanted.batch * wanted.length
    while left > 0:
        length = wanted.length
        if wanted.packed:
            length = int(torch.randint(wanted.length // SHORTEST, wanted.length // LONGEST, (1,), generator=chance))
        yield torch.randint(3, shape.vocab_size, (length,), generator=chance).tolist()
        left -= length


def base(shape: Shape, device: str) -> Any:
    """The plain loop's model before any adapter; in fp32 where there is no GPU."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    with torch.device(device):
        return AutoModelForCausalLM.from_config(Qwen2Config(**shape.config()), dtype=dtype, attn_implementation="sdpa")


def adapters() -> LoraConfig:
    return LoraConfig(r=RANK, target_modules="all-linear", task_type="CAUSAL_LM")


def tokenizer() -> Any:
    """SFTTrainer wants one, though all rows are tokens already."""
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2}, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def common(wanted: Measurement, folder: Path) -> dict[str, Any]:
    """What the work is; nothing of how it is done."""
    return {
        "output_dir": str(folder),
        "per_device_train_batch_size": wanted.batch,
        "max_length": wanted.length,
        "max_steps": sum(wanted.steps) + FREE + (PROFILED + 1 if wanted.profile else 0),
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": wanted.device == "cpu",
        "packing": wanted.packed,
    }


def with_defaults(wanted: Measurement, shape: Shape, data: Dataset, folder: Path) -> Any:
    """SFTTrainer as its documentation has it, from a model in bf16."""
    lora = adapters() if wanted.method == "lora" else None
    arguments = SFTConfig(**common(wanted, folder))
    return SFTTrainer(base(shape, wanted.device), arguments, train_dataset=data, processing_class=tokenizer(), peft_config=lora)


def as_ours(wanted: Measurement, shape: Shape, data: Dataset, folder: Path) -> Any:
    """SFTTrainer as `trainer.speed` chooses."""
    model = base(shape, wanted.device)
    if wanted.method == "lora":
        model = get_peft_model(model, adapters())
    compiled = wanted.device == "cuda"
    shape_of_a_batch = {"batch": wanted.batch, "max_length": wanted.length}
    fast = speed.arguments(wanted.device, packing=wanted.packed, compile_layers=compiled, **shape_of_a_batch)
    arguments = SFTConfig(**{**common(wanted, folder), **fast})
    trainer = FusedLossTrainer(model, arguments, train_dataset=data, processing_class=tokenizer())
    done = speed.apply(trainer, method=wanted.method, engine="ddp", device=wanted.device, compile_layers=compiled)
    trainer.resolved = done.resolved()
    return trainer


class Clock(TrainerCallback):  # type: ignore[misc]
    """Laps at the end of each step; after the last one that counts, the figures, and then a profile where one is wanted."""

    def __init__(self, wanted: Measurement, shape: Shape) -> None:
        self._wanted, self._shape = wanted, shape
        self._watch: Watch | None = None
        self.recording: Any = None
        self.tokens = wanted.batch * wanted.length  # of a step, without padding
        self.length = float(wanted.length)  # mean over tokens of the length of their sequence
        self.figures: dict[str, Any] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._watch = Watch(self._wanted.device)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        wanted, last = self._wanted, sum(self._wanted.steps)
        assert self._watch is not None
        if state.global_step <= last:
            self._watch.lap()
        if state.global_step == last + FREE:
            self._watch.lap()
            flops = self._shape.useful_flops(wanted.method, int(self.length))
            self.figures = self._watch.figures(wanted.steps[0], self.tokens, flops, FREE)
        if wanted.profile and wanted.device == "cuda":
            self._profiled(state.global_step - last - FREE)

    def _profiled(self, step: int) -> None:
        from torch.profiler import ProfilerActivity, profile

        if step == 0:
            torch.cuda.synchronize()
            self.recording = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)
            self.recording.__enter__()
        elif step == PROFILED:
            torch.cuda.synchronize()
            self.recording.__exit__(None, None, None)
