"""Fine-tune the model that a run file describes, on any number of GPUs:

    torchrun --nproc-per-node 8 -m trainer.train run.yaml --name support --data-root /data
    python -m trainer.train run.yaml --dry-run

Exit status: 0 trained, or stopped when asked (result.json says which), 1 failed, 2 refused. The outcome is result.json.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from trainer import dry_run, output, prepare, result, run_file
from trainer.call import Call, parse
from trainer.device import Device, device, ranks
from trainer.errors import Problem, StorageFailed, TrainerError
from trainer.leave import leave


def main(argv: list[str]) -> int:
    """The exit status of a call; every problem is said on standard error, without a traceback."""
    began = time.time()
    call: Call | None = None
    try:
        call = parse(argv)
        return show(call) if call.dry_run else start(call, began)
    except TrainerError as error:
        if ranks().rank == 0:
            for problem in error.problems:
                print(problem, file=sys.stderr)
        return error.exit_code


def show(call: Call) -> int:
    """The dry run, said once; exit status 1 where it does not fit."""
    if ranks().rank:
        return 0
    here = device(0)
    quiet(here)
    from trainer.arguments import kind

    run, document = run_file.load(call.run)
    found = prepare.prepare(
        call, run, document, here, call.world, kind(run.objective.type), lambda: prepare.look_at_data(call, run)
    )
    data = dry_run.report(found, here.name)
    print(json.dumps(data, default=str) if call.json else dry_run.text(data))
    return 0 if found.fits is not False else 1


def start(call: Call, began: float) -> int:
    """Train, with this process' output in the logs of its rank."""
    mine = ranks()
    try:
        run_file.load(call.run)  # what is wrong with the file is said before anything heavy is imported
    except TrainerError as error:
        if mine.rank == 0:
            with contextlib.suppress(OSError):  # where nothing can be written, what is said has to do
                result.write(call.checkpoints, result.refused(error, began))
        raise
    try:
        output.begin(call.logs, mine.rank, os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    except OSError as error:
        raise StorageFailed(Problem(str(call.logs), f"logs cannot be written: {error.strerror}")) from error
    output.flight_recorder(call.logs)
    output.pinning()
    quiet(device(mine.local))
    from trainer.session import Session

    return Session(call, mine, began).run()


def quiet(here: Device) -> None:
    """Libraries fetch nothing, draw no progress bars, and are told of a CPU before they look for a GPU."""
    if here.kind == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    for name, value in (("HF_HUB_OFFLINE", "1"), ("TOKENIZERS_PARALLELISM", "false"), ("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")):
        os.environ.setdefault(name, value)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
