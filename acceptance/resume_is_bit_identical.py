"""No step is lost, and none comes out otherwise: runs that are killed go on to the same bits, in each engine.

Each run is killed five times, at steps chosen by seed; then every loss that any attempt logged, as hex, and the digest of the
trained weights have to be those of the run that nobody touched. Torn and altered checkpoints are passed over; another number of
ranks goes on where that is sound, and is refused with the reason where not.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acceptance.claims import Claims, say
from tests.trainer import tiny
from tests.trainer.launch import Done, Site, site
from tools import train_env
from trainer import checkpoint
from trainer.durable import file_digest

ENGINES = ("ddp", "fsdp", "deepspeed-zero2", "deepspeed-zero3")
STAND_IN = "STAND-IN: one or two ranks on one CPU, gloo instead of NCCL"
STEPS, SAVE, KILLS, SEED = 30, 4, 5, 20261130
LORA = {"type": "lora", "lora_dropout": 0.05}
NEAR = 1e-4  # of a loss, where another number of ranks adds up in another order


def weights(here: Site, name: str) -> str:
    """Digest of what was trained."""
    found = [p for kind in ("lora", "merged") for p in (here.root / "models" / kind / name).glob("*.safetensors")]
    return " ".join(file_digest(path) for path in sorted(found))


def file(here: Site, name: str, engine: str, **more: Any) -> Path:
    method = more.pop("method", LORA if engine in ("ddp", "deepspeed-zero2") else "full")
    return here.run_file(name, engine=engine, method=method, max_steps=STEPS, save_steps=SAVE, save_total_limit=20, **more)


def killed(claims: Claims, here: Site, engine: str) -> None:
    """Five kills against no kill."""
    whole = here.train(file(here, f"{engine}-whole", engine))
    claims.check(
        f"{engine}: runs uninterrupted", whole.status == 0, f"{len(whole.losses)} steps" if not whole.status else whole.text[-800:]
    )
    name = f"{engine}-killed"
    run = file(here, name, engine)
    at = sorted(random.Random(f"{SEED}/{engine}").sample(range(2, STEPS - 3), KILLS))
    fates = [here.until(run, lambda step=step: here.logged(name) >= step) for step in at]  # type: ignore[misc]
    claims.check(f"{engine}: killed by SIGKILL at steps {at}", not any(fates), next(filter(None, fates), ""))
    done = here.train(run)
    logged = tiny.logged(here.logs(name))
    again = len(logged) - len(dict(logged))
    wrong = [step for step, loss in logged if whole.losses.get(step) != loss]
    claims.check(
        f"{engine}: every loss of all attempts is the same bits",
        done.status == 0 and not wrong and set(done.losses) == set(whole.losses) and again > 0,
        f"{len(logged)} losses of {KILLS + 1} attempts, {again} of them done again, last {logged[-1][1]}"
        if not wrong
        else f"differ at {wrong}",
    )
    same = weights(here, f"{engine}-whole") == weights(here, name)
    claims.check(f"{engine}: the trained weights are the same bits", same and bool(weights(here, name)), weights(here, name)[:16])


def same_bits(claims: Claims, here: Site, claim: str, done: Done, whole: dict[int, str]) -> None:
    """Every loss of all attempts, and all steps."""
    logged = tiny.logged(here.logs(done.name))
    wrong = [step for step, loss in logged if whole.get(step) != loss]
    held = done.status == 0 and not wrong and set(done.losses) == set(whole)
    claims.check(claim, held, f"{len(logged)} losses of {len(whole)} steps" if held else f"differ at {wrong}: {done.text[-500:]}")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def damaged(claims: Claims, here: Site) -> None:
    """The newest checkpoint torn or altered; a run killed while it saves."""
    name, engine = "ddp-damaged", "ddp"
    run = file(here, name, engine)
    root = here.checkpoints(name)
    here.until(run, (root / "checkpoint-16").exists)
    flip(root / "checkpoint-16" / "optimizer.pt")
    (root / "checkpoint-12" / "seal.json").write_text((root / "checkpoint-12" / "seal.json").read_text()[:200])
    saving = root / ".checkpoint-20.saving"
    cut = here.until(run, saving.exists)
    told = (here.logs(name) / "train.log").read_text()
    claims.check(
        "altered and torn checkpoints are passed over, and said",
        "checkpoint-16 is skipped: optimizer.pt was altered" in told
        and "checkpoint-12 is skipped: its seal is torn or was altered" in told
        and "resumes at step 8" in told,
        "checkpoint-16 (a bit), checkpoint-12 (its seal): resumed at 8",
    )
    left = saving.exists() and not (root / "checkpoint-20").exists()
    done = here.train(run)
    told = done.log
    claims.check(
        "killed while checkpoint-20 is saved: goes on at 16 and says so",
        left
        and not cut
        and "checkpoint-20 was being saved when an earlier run ended: not used" in told
        and "resumes at step 16" in told,
        cut or f"left behind: {saving.name}: {left}",
    )
    whole = tiny.losses(here.logs("ddp-whole"))
    same_bits(claims, here, "and still comes to the same bits", done, whole)


def full_disk(claims: Claims, here: Site) -> None:
    """A file system that has room for two checkpoints, and later for all."""
    name = "ddp-full-disk"
    run = file(here, name, "ddp")
    root = here.checkpoints(name)
    root.mkdir(parents=True)
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(root)), check=True)
    try:
        done = here.train(run)
        found, told = done.result, done.log
        choice = checkpoint.newest(root)
        claims.check(
            "a full disk is said, and ends the run the second time",
            (found["status"], found["verdict"]) == ("failed", "storage") and "training goes on, the next save is tried" in told,
            found["problems"][0][-150:] if found["problems"] else found["status"],
        )
        sound = choice.found is not None and not choice.skipped and not list(root.glob(".checkpoint-*"))
        claims.check("nothing half-written is left", sound, f"newest is {choice.found.path.name if choice.found else None}")
        subprocess.run(("mount", "-o", "remount,size=64m", str(root)), check=True)
        done = here.train(run)
        same_bits(claims, here, "with room it goes on to the same bits", done, tiny.losses(here.logs("ddp-whole")))
    finally:
        subprocess.run(("umount", str(root)), check=True)


def other_world(claims: Claims, here: Site) -> None:
    """Two ranks to one and one to two; the same rows a step (of 96 rows, so that no epoch has to be filled up for two ranks)."""
    for engine in ("ddp", "fsdp"):
        plain = here.train(file(here, f"{engine}-plain", engine, method="full", validation_split=0))
        for before, after in ((2, 1), (1, 2)):
            name = f"{engine}-{before}-to-{after}"
            run = file(here, name, engine, method="full", validation_split=0)
            here.until(run, lambda name=name: here.logged(name) >= 10, before, how="file")  # type: ignore[misc]
            stopped = here.logged(name)
            done = here.train(run, after)
            pairs = [(float.fromhex(done.losses[s]), float.fromhex(plain.losses[s])) for s in plain.losses if s in done.losses]
            off = max((abs(a - b) / abs(b) for a, b in pairs), default=9.0)
            held = done.status == 0 and len(pairs) == STEPS and off < NEAR
            evidence = f"stopped after step {stopped}, largest difference of a loss {off:.1e}" if held else done.text[-800:]
            claims.check(f"{engine}: {before} ranks to {after}", held, evidence)


def refused(claims: Claims, here: Site) -> None:
    """What would not be sound."""
    run = here.run_file("zero2-refused", engine="deepspeed-zero2", max_steps=2)
    here.train(run)
    done = here.train(run, 1)
    why = " ".join(done.result["problems"])
    claims.check(
        "deepspeed-zero2: 2 ranks to 1 is refused, with the conversion",
        done.result["status"] == "refused" and "ds_to_universal" in why and "saved by 2 ranks" in why,
        why[:150],
    )
    other = here.run_file("ddp-whole", engine="ddp", method=LORA, max_steps=STEPS, save_steps=SAVE, learning_rate=0.002)
    done = here.train(other)
    why = " ".join(done.result["problems"])
    claims.check(
        "a checkpoint of another run is refused", done.result["status"] == "refused" and "learning_rate 0.001" in why, why[:150]
    )


def main(engines: Sequence[str]) -> int:
    """All engines, or those that are named."""
    began = time.monotonic()
    claims = Claims("resume is bit-identical", STAND_IN)
    with tempfile.TemporaryDirectory(prefix="reconcile-resume-") as folder:
        here = site(Path(folder), train_env.python(train_env.ensure()))
        for engine in engines or ENGINES:
            say(engine)
            killed(claims, here, engine)
        say("damaged")
        damaged(claims, here)
        full_disk(claims, here)
        say("another number of ranks")
        other_world(claims, here)
        refused(claims, here)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    return claims.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
