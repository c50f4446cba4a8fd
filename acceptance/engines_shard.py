"""Every engine does what its name says: lora and full, three kinds of data, two ranks, each with the proof of its sharding.

An exit status proves nothing here: Accelerate runs plain data parallelism where FSDP does not apply. So each run has to say what
was seen of its model on every rank, and all engines have to come to the losses of plain data parallelism.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from acceptance.claims import Claims
from tests.trainer.launch import DATA, Done, Site, site
from tools import train_env

ENGINES = ("ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3")
STAND_IN = "STAND-IN: two ranks on one CPU, gloo instead of NCCL"
SHARE = {"ddp": 1.0, "fsdp": 0.5, "deepspeed-zero2": 0.5, "deepspeed-zero3": 0.5}
SEEN = {
    "ddp": "DistributedDataParallel",
    "fsdp": "every trained parameter a DTensor",
    "deepspeed-zero2": "DeepSpeedEngine of stage 2",
    "deepspeed-zero3": "DeepSpeedEngine of stage 3",
}
NEAR = 2e-3  # of the loss: the engines add up in another order


def values(done: Done) -> list[float]:
    return [float.fromhex(text) for _, text in sorted(done.losses.items())]


def judge(claims: Claims, engine: str, done: Done, plain: list[float]) -> None:
    """One run of one engine against plain data parallelism."""
    if done.status or done.result["status"] != "succeeded":
        claims.check(f"{done.name} trains", False, done.text[-1500:])
        return
    proof, losses = done.result["proof"], values(done)
    held = [part / proof["whole"] for part in proof["held"]]
    proved = proof["engine"] == engine and proof["world"] == 2 and SEEN[engine] in proof["how"]
    shared = all(abs(share - SHARE[engine]) < 0.03 for share in held)
    alike = len(losses) == len(plain) and all(abs(a - b) <= NEAR * abs(b) for a, b in zip(losses, plain, strict=True))
    shares = " and ".join(f"{share:.1%}" for share in held)
    evidence = f"{proof['how']}; ranks hold {shares} of {proof['whole']:,}; loss {losses[0]:.4f} to {losses[-1]:.4f}"
    claims.check(f"{done.name:<35}", proved and shared and alike, evidence)


def compare(claims: Claims, here: Site, data: str, method: str) -> None:
    """All engines on the same rows."""
    plain: list[float] = []
    for engine in ENGINES:
        done = here.train(here.run_file(f"{engine}-{method}-{data}", data, engine=engine, method=method))
        plain = plain or (values(done) if not done.status else [])
        judge(claims, engine, done, plain)


def main() -> int:
    began = time.monotonic()
    claims = Claims("engines shard", STAND_IN)
    with tempfile.TemporaryDirectory(prefix="reconcile-engines-") as folder:
        here = site(Path(folder), train_env.python(train_env.ensure()))
        for data in DATA:
            for method in ("lora", "full"):
                compare(claims, here, data, method)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main())
