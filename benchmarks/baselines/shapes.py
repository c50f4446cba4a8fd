"""The models that are trained in benchmarks: shapes of published ones with random weights, and the useful work of a token in each.

Shapes are those of Qwen2.5-1.5B and Qwen2.5-7B as their `config.json` has them. Useful work counts what the mathematics needs,
not what a loop does: recomputed activations, padding and casts count as nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """A Qwen2 decoder; the fields have the names of its configuration."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int
    tie_word_embeddings: bool
    max_position_embeddings: int = 131072
    rms_norm_eps: float = 1e-6

    @property
    def parameters(self) -> int:
        """All weights, the embedding once where it is tied to the head."""
        wide, narrow = self.hidden_size, self.hidden_size // self.num_attention_heads * self.num_key_value_heads
        attention = 2 * wide * wide + 2 * wide * narrow + wide + 2 * narrow  # o has no bias; q, k and v have
        layer = attention + 3 * wide * self.intermediate_size + 2 * wide
        embeddings = self.vocab_size * wide * (1 if self.tie_word_embeddings else 2)
        return self.num_hidden_layers * layer + wide + embeddings

    def attention_flops(self, length: int) -> int:
        """Scores and weighted sum of one token's forward pass in FLOP, causal: on average half the sequence is looked at."""
        return 2 * length * self.hidden_size * self.num_hidden_layers

    def useful_flops(self, method: str, length: int) -> int:
        """FLOP a token and step: full 6 a weight, attention three times; LoRA, without the weights' gradients, 4 and twice."""
        times = {"lora": 2, "full": 3}[method]
        return times * (2 * self.parameters + self.attention_flops(length))

    def config(self) -> dict[str, Any]:
        """Arguments of `transformers.Qwen2Config`."""
        return {**asdict(self), "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0}}


SHAPES = {
    "1.5b": Shape(1536, 8960, 28, 12, 2, 151936, tie_word_embeddings=True),
    "7.6b": Shape(3584, 18944, 28, 28, 4, 152064, tie_word_embeddings=False),
    "tiny": Shape(64, 128, 2, 4, 2, 512, tie_word_embeddings=True, max_position_embeddings=512),
}
