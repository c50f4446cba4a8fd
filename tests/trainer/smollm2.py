"""SmolLM2-135M-Instruct from its package, as a model that Transformers loads; and what it answers.

`python -m tests.trainer.smollm2 make GGUF FOLDER`, `python -m tests.trainer.smollm2 ask FOLDER QUESTION...`: answers as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def make(gguf: Path, folder: Path) -> None:
    """4-bit values from the file, written out as fp32 weights."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    stored = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    del stored.config.quantization_config
    fresh = AutoModelForCausalLM.from_config(stored.config)
    fresh.load_state_dict(stored.state_dict())
    fresh.save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name).save_pretrained(folder)


def ask(folder: Path, questions: list[str]) -> list[str]:
    """Its likeliest answer to each, 24 tokens at most."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, words = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    found = []
    for question in questions:
        given = words.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        with torch.no_grad():
            answer = model.generate(**given, max_new_tokens=24, do_sample=False)
        found.append(words.decode(answer[0, given["input_ids"].shape[1] :], skip_special_tokens=True).strip())
    return found


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        print(json.dumps(ask(Path(sys.argv[2]), sys.argv[3:])))
