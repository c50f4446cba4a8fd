"""The command line: `torchrun -m trainer.train run.yaml`, and where things go from the data root and the run's name."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass
from pathlib import Path

from trainer.errors import Problem, Refused

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")


@dataclass(frozen=True, slots=True)
class Call:
    """What was typed. `commit` and `stack` are the launcher's: which commit asked for this run, and for which stack."""

    run: Path
    name: str
    data_root: Path
    dry_run: bool = False
    json: bool = False
    resume: Path | None = None
    world: int = 1
    card_gib: float | None = None
    keep_every: int = 0
    metrics_port: int = 0
    metrics_address: str = "127.0.0.1"
    patience: float = 300.0
    commit: str = ""
    stack: str = ""

    @property
    def checkpoints(self) -> Path:
        return self.data_root / "checkpoints" / self.name

    @property
    def logs(self) -> Path:
        return self.data_root / "logs" / "training" / self.name

    @property
    def stop_file(self) -> Path:
        return self.checkpoints / "stop"

    @property
    def cache(self) -> Path:
        return self.data_root / "cache" / "datasets"

    @property
    def tokens(self) -> Path:
        """Rows as tokens, made once for each content."""
        return self.data_root / "datasets" / "tokenized"

    def output(self, lora: bool) -> Path:
        """Where the trained model goes: an adapter, or a whole model."""
        return self.data_root / "models" / ("lora" if lora else "merged") / self.name


def parser() -> argparse.ArgumentParser:
    """The options, with what they are for."""
    found = argparse.ArgumentParser(
        prog="torchrun -m trainer.train", description="Fine-tune the model that RUN describes.", allow_abbrev=False
    )
    add = found.add_argument
    add("run", type=Path, metavar="RUN", help="run.yaml")
    add("--name", default="", help="name of the run (default: the file's name)")
    add("--data-root", type=Path, default=Path("/data"), help="datasets, models, checkpoints and logs are below (default /data)")
    add("--dry-run", action="store_true", help="print every value with its origin, parameters and memory a GPU; train nothing")
    add("--json", action="store_true", help="with --dry-run: as JSON")
    add("--resume_from_checkpoint", type=Path, dest="resume", metavar="PATH", help="another than the newest sealed one")
    add("--world", type=int, default=0, help="with --dry-run: GPUs of the run (default: torchrun's, or 1)")
    add("--card-gib", type=float, help="with --dry-run: memory of the card, where it is another than here")
    add("--keep-every", type=int, default=0, metavar="STEPS", help="keep each checkpoint whose step is a multiple, for good")
    add("--metrics-port", type=int, default=0, help="Prometheus: this port + local rank (default: none)")
    add("--metrics-address", default="127.0.0.1", help="address that it listens on (default 127.0.0.1)")
    add("--patience", type=float, default=300.0, metavar="SECONDS", help="how long to wait for missing ranks (default 300)")
    add("--commit", default="", help="the commit that asked for this run, for the model card")
    add("--stack", default="", help="the digest of the stack, for the model card")
    return found


def parse(argv: list[str]) -> Call:
    """The call. Raises Refused for a value that cannot be meant; argparse ends the process (2) for an unknown option."""
    given = vars(parser().parse_args(argv))
    given["name"] = given["name"] or given["run"].stem
    given["world"] = given["world"] or int(os.environ.get("WORLD_SIZE", "1"))
    problems = []
    if not _NAME.fullmatch(given["name"]):
        problems.append(Problem("--name", f"'{given['name']}' is not a name: lower-case letters, digits, '-' and '.'"))
    for option in ("world", "patience"):
        if given[option] <= 0:
            problems.append(Problem(f"--{option}", f"{given[option]} is not greater than 0"))
    if not 0 <= given["metrics_port"] < 65536:
        problems.append(Problem("--metrics-port", f"{given['metrics_port']} is no port: 0 (none) to 65535"))
    if given["json"] and not given["dry_run"]:
        problems.append(Problem("--json", "goes with --dry-run; a run's outcome is result.json"))
    if problems:
        raise Refused(problems)
    return Call(**given)
