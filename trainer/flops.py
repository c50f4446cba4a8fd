"""Useful floating-point operations, as papers count them: what the model needs, not what a program recomputes."""

from __future__ import annotations

from dataclasses import dataclass

# dense bf16 matrix rate in TFLOP/s as the vendor's data sheets give it; a card that is not here has no known ceiling
CEILINGS = {
    "A100": 312.0,
    "A30": 165.0,
    "A40": 149.7,
    "L4": 121.0,
    "L40S": 362.0,
    "H100 80GB HBM3": 989.4,
    "H100 NVL": 835.0,
    "H100 PCIe": 756.0,
    "H200": 989.4,
    "B200": 2250.0,
}


@dataclass(frozen=True, slots=True)
class Work:
    """`parameters` without an untied input embedding, which only looks up; `attention`: heads x head size."""

    parameters: int
    layers: int
    attention: int
    lora: bool

    def a_token(self, length: int) -> float:
        """Operations a token at sequences of `length`: 6 a parameter (LoRA 4: its base has no weight gradients), attention half."""
        forward = 2.0 * length * self.attention * self.layers  # scores and values, causal: half of 4 x length x width
        passes = 2 if self.lora else 3
        return 2.0 * passes * self.parameters + passes * forward


def ceiling(card: str) -> float | None:
    """The card's bf16 rate in TFLOP/s; None where it is not known."""
    found = [name for name in CEILINGS if name in card]
    return CEILINGS[max(found, key=len)] if found else None
