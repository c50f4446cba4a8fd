"""cuDNN, NCCL and the CUDA runtime: every copy that a node has, and which the dynamic loader gives to torch."""

import glob
import json
import os
import re
from typing import Any, Dict, Optional

from reconciler.node.work import run_all, run_apart

DEADLINE = 10.0
_LIBRARY = re.compile(r"^\s*(lib(?:nccl|cudnn|cudart)\.so[.\d]*) \(([^)]*)\) => (/.*)$")
# torch's older wheels carry copies with a hash in their names
_LOADED = re.compile(r"^\s*(lib(?:nccl|cudnn|cudart)(?:-[0-9a-f]+)?\.so[.\d]*) => (not found|/.*?)(?: \(0x[0-9a-f]+\))?$")
_SITES = (
    "{0}/lib*/python3*/site-packages",
    "{0}/local/lib*/python3*/site-packages",
    "{0}/local/lib*/python3*/dist-packages",
    "{0}/lib/python3/dist-packages",
)
# functions of nccl.h, cudnn.h and cuda_runtime_api.h that need no GPU; cuDNN opens its parts when it is asked
VERSIONS = """import ctypes,json,sys
def ask(p):
    try:
        l=ctypes.CDLL(p)
        if 'libcudnn' in p.rsplit('/',1)[1]:
            l.cudnnGetVersion.restype=ctypes.c_size_t
            return int(l.cudnnGetVersion())
        v=ctypes.c_int(0)
        f=l.ncclGetVersion if 'libnccl' in p.rsplit('/',1)[1] else l.cudaRuntimeGetVersion
        return v.value if f(ctypes.byref(v))==0 else {'error':'refused'}
    except (OSError,AttributeError) as e: return {'error':'load','said':str(e)[:200]}
told={p:ask(p) for p in sys.argv[1:]}
maps=[m.split(None,5)[-1].strip() for m in open('/proc/self/maps') if 'libcudnn' in m]
print(json.dumps({'told':told,'mapped':sorted(set(maps))}))"""


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`patterns`: of environments; `prefixes`: of system interpreters; `library_path`: the LD_LIBRARY_PATH of a job.

    -> {"system": [[name, path, real path]], "ldconfig": error or "", "environments": {real path: {...}}}: see _environment.
    """
    (cache,) = run_all([{"argv": ["ldconfig", "-p"], "deadline": DEADLINE, "unprivileged": True}])
    matches = (_LIBRARY.match(line) for line in cache["out"].decode("utf-8", "replace").split("\n"))
    system = [[m.group(1), m.group(3), os.path.realpath(m.group(3))] for m in matches if m]
    targets = {os.path.realpath(p): p for pattern in arguments["patterns"] for p in sorted(glob.glob(pattern)) if os.path.isdir(p)}
    targets.update((os.path.realpath(p), p) for p in arguments["prefixes"])
    return {
        "system": system,
        "ldconfig": cache["error"] or ("" if cache["status"] == 0 else "failed"),
        "environments": {target: _environment(target, arguments["library_path"]) for target in sorted(targets)},
    }


def _environment(target: str, library_path: str) -> Dict[str, Any]:
    """`wheels`: metadata directories; `copies`: library files; `torch`: its directory; `loaded`: what the loader says."""
    sites = sorted({os.path.realpath(site) for form in _SITES for site in glob.glob(form.format(glob.escape(target)))})
    answer: Dict[str, Any] = {"wheels": [], "copies": [], "torch": None, "loaded": None}
    for site in map(glob.escape, sites):
        for kind in ("nccl", "cudnn", "cuda_runtime"):
            answer["wheels"] += sorted(glob.glob(site + "/nvidia_%s*.dist-info" % kind))
        for kind in ("nccl", "cudnn", "cudart"):
            for form in ("/nvidia/*/lib/lib%s.so*", "/torch/lib/lib%s.so*", "/torch/lib/lib%s-*.so*"):
                answer["copies"] += sorted(glob.glob(site + form % kind))
    for kind in ("nccl", "cudnn", "cudart"):  # conda's
        answer["copies"] += sorted(glob.glob(glob.escape(target) + "/lib/lib%s.so*" % kind)) if target != "/usr" else []
    torches = [site + "/torch" for site in sites if os.path.isdir(site + "/torch/lib")]
    if torches:
        answer["torch"] = torches[0]
        answer["cuda"] = os.path.exists(torches[0] + "/lib/libtorch_cuda.so")
        if answer["cuda"]:
            answer["loaded"] = _loaded(target, torches[0] + "/lib", library_path)
    return answer


def _loaded(target: str, directory: str, library_path: str) -> Dict[str, Any]:
    """What the loader itself says that it would map for this Python and torch's libraries, in the order of `import torch`.

    Nothing of theirs runs for that. `asked`: what the libraries that it named say of themselves, in a process of their own, and the
    parts of cuDNN that came with it.
    """
    python = _python(target)
    if python is None:
        return {"error": "missing"}
    preload = ":".join(directory + "/" + name for name in ("libtorch_global_deps.so", "libtorch_cuda.so"))
    setting = ["LD_LIBRARY_PATH=" + library_path] if library_path else []
    trace = ["env"] + setting + ["LD_TRACE_LOADED_OBJECTS=1", "LD_PRELOAD=" + preload, python]
    (said,) = run_apart([trace], [target], DEADLINE)
    found: Dict[str, Any] = {}
    for match in map(_LOADED.match, said["out"].decode("utf-8", "replace").split("\n")):
        if match:
            found[match.group(1)] = None if match.group(2) == "not found" else os.path.realpath(match.group(2))
    answer = {
        "found": found,
        "status": said["status"],
        "error": said["error"],
        "err": said["err"].decode("utf-8", "replace")[-400:],
    }
    real = sorted(path for path in found.values() if path)
    if real:
        ask = ["env"] + setting + [python, "-ISBc", VERSIONS] + real
        (told,) = run_apart([ask], [target], DEADLINE)
        answer["asked"] = _json(told["out"])
    return answer


def _python(target: str) -> Optional[str]:
    for name in ("python", "python3"):
        path = os.path.join(target, "bin", name)
        if os.path.exists(path):
            return path
    return None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode())
    except ValueError:
        return None
