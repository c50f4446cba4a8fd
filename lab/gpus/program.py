"""The programs of a node: nvidia-smi, and lab-gpus, by which the lab and packages speak to the stand-in. Runs on the node."""

import os
import sys
import time

from lab.errors import UsageError
from lab.gpus import kernel_log, onnode, smi
from lab.gpus.view import View


def nvidia_smi(argv: list[str]) -> int:
    """One call; all output goes to standard output, as with the real tool."""
    seen = onnode.view()
    if seen.state.hang_s:
        time.sleep(seen.state.hang_s)
    root = os.geteuid() == 0
    said = smi.answer(argv, seen, root)
    if root and _refused_by_driver(seen):
        onnode.log([kernel_log.mismatch("nvidia-smi", os.getpid(), seen.library, seen.loaded)])
    if said.state is not None:
        onnode.save(said.state)
    sys.stdout.write(said.out)
    return said.status


def _refused_by_driver(seen: View) -> bool:
    return bool(seen.loaded and seen.library) and seen.loaded != seen.library and seen.state.driver_fault != "not-loaded"


def lab_gpus(argv: list[str]) -> int:
    """boot | follow | set PATH=VALUE... | install VERSION | remove. Exit status 2: not understood."""
    from lab.gpus import boot
    from lab.gpus.codec import assign, parse_setting

    try:
        if argv == ["boot"]:
            boot.boot()
        elif argv == ["follow"]:
            onnode.follow()
        elif argv[:1] == ["set"] and len(argv) > 1:
            state = onnode.state()
            for setting in argv[1:]:
                state = assign(state, *parse_setting(setting))
            onnode.save(state)
        elif argv[:1] == ["install"] and len(argv) == 2:
            boot.install_module(argv[1])
        elif argv == ["remove"]:
            boot.remove_module()
        else:
            raise UsageError(str(lab_gpus.__doc__))
    except UsageError as error:
        print(f"lab-gpus: {error}", file=sys.stderr)
        return 2
    return 0
