"""A model that trains in seconds on a CPU, with a tokenizer made on the spot, and data of each format. All by seed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}{{ eos_token }}"
    "{% endgeneration %}{% else %}{{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
WORDS = ["red", "green", "blue", "one", "two", "three", "cat", "dog", "bird", "sky", "sea", "land", *"红绿蓝一二三猫狗鸟"]
SPECIAL = ["<pad>", "<eos>", "<unk>", "<|system|>", "<|user|>", "<|assistant|>"]


def tokenizer() -> Any:
    """Byte-level BPE, as Qwen2 has it: Transformers rebuilds the tokenizer of a model type, so it has to be of its kind."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learn = trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    raw.train_from_iterator([" ".join(WORDS)] * 50, learn)
    made = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
    made.chat_template = TEMPLATE
    return made


def model(folder: Path, kind: str = "qwen2", seed: int = 0, **changes: Any) -> Path:
    """A random decoder of hidden size 64 and 2 layers, with its tokenizer, as Transformers saves it."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    words = tokenizer()
    shape: dict[str, Any] = {
        "vocab_size": len(words),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "pad_token_id": words.pad_token_id,
        "eos_token_id": words.eos_token_id,
        "bos_token_id": None,
        **changes,
    }
    torch.manual_seed(seed)
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **shape))
    made.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def sentence(draw: random.Random, least: int = 2, most: int = 8) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def row(kind: str, draw: random.Random) -> dict[str, Any]:
    """One row; the answer repeats the question, so that there is something to learn."""
    asked = sentence(draw)
    if kind == "instruction":
        return {"instruction": "repeat", "input": asked, "output": asked}
    if kind == "messages":
        return {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": asked}]}
    return {"prompt": asked, "chosen": asked, "rejected": sentence(draw)}


def data(path: Path, kind: str = "instruction", rows: int = 96, seed: int = 0) -> Path:
    """A JSONL file of `rows` rows."""
    draw = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row(kind, draw), ensure_ascii=False) + "\n" for _ in range(rows)), encoding="utf-8")
    return path


def run_file(path: Path, **values: Any) -> Path:
    """A run file; values are written as JSON, which is YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in values.items()), encoding="utf-8")
    return path


def logged(logs: Path) -> list[tuple[int, str]]:
    """(step, loss as hex) of everything that all attempts logged; a line that a kill cut off is left out."""
    found = []
    for line in (logs / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "loss_hex" in entry:
            found.append((entry["step"], entry["loss_hex"]))
    return found


def losses(logs: Path) -> dict[int, str]:
    """Each step's loss as hex, as the last attempt at the step logged it."""
    return dict(logged(logs))


def everything(root: Path) -> Path:
    """A data root with the model, and a dataset of each format."""
    if not (root / "models/base/tiny/config.json").exists():
        model(root / "models/base/tiny")
    for kind in ("instruction", "messages", "preference"):
        data(root / f"datasets/{kind}.jsonl", kind)
    return root


if __name__ == "__main__":
    import sys

    everything(Path(sys.argv[1]))
