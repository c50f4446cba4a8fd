"""CUDA toolkits of a node: the trees below /usr/local, and what the compiler of each says of itself."""

import glob
import os
from typing import Any, Dict

from reconciler.node.work import head, run_all

DEADLINE = 5.0
LIMIT = 64 << 10


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`patterns`: of trees; `files`: of settings that name them.

    -> {"names": {path: real path}, "trees": {real path: {"json", "txt": text or error, "nvcc": answer or null}},
    "files": {path: text or error}}. A name that leads nowhere has null as its real path.
    """
    names: Dict[str, Any] = {}
    for pattern in arguments["patterns"]:
        for path in sorted(glob.glob(pattern)):
            if os.path.isdir(path):
                names[path] = os.path.realpath(path)
            elif os.path.islink(path):
                names[path] = None
    trees = sorted({real for real in names.values() if real})
    compilers = [os.path.join(tree, "bin", "nvcc") for tree in trees]
    there = [path for path in compilers if os.path.lexists(path)]
    said = dict(zip(there, run_all([{"argv": [p, "--version"], "deadline": DEADLINE, "unprivileged": True} for p in there])))  # noqa: B905
    files = sorted(path for pattern in arguments["files"] for path in glob.glob(pattern))
    return {
        "names": names,
        "trees": {tree: _tree(tree, said.get(nvcc)) for tree, nvcc in zip(trees, compilers)},  # noqa: B905
        "files": {path: head(path, LIMIT) for path in files},
    }


def _tree(tree: str, answer: Any) -> Dict[str, Any]:
    if answer:
        answer = {
            "out": answer["out"].decode("utf-8", "replace"),
            "err": answer["err"].decode("utf-8", "replace")[-400:],
            "status": answer["status"],
            "error": answer["error"],
        }
    return {"json": head(tree + "/version.json", LIMIT), "txt": head(tree + "/version.txt", LIMIT), "nvcc": answer}
