"""Look, never touch: commands and fragments side by side, each with a deadline of its own; files read straight."""

import base64
import json
import os
import stat
import time
from typing import Any, Dict, List

from reconciler.node import available, files, fragments
from reconciler.node.work import CODES, run_all

TOGETHER = 3.0  # seconds for all quick fragments: each of them takes milliseconds


def read(path: str, limit: int) -> Dict[str, Any]:
    """The bytes of a regular file; anything else is an error code. /proc files say size 0, so the limit counts what is read."""
    began, used = time.monotonic(), time.process_time()
    answer: Dict[str, Any] = {"out": b"", "err": b"", "status": None, "error": ""}
    try:
        answer.update(_regular(path, limit))
    except (OSError, ValueError) as e:
        answer.update(_unreadable(e))
    if len(answer["out"]) > limit:
        answer.update(out=b"", error="too-large")
    answer["ms"] = round((time.monotonic() - began) * 1000, 1)
    answer["cpu"] = round((time.process_time() - used) * 1000, 1)
    return answer


def _regular(path: str, limit: int) -> Dict[str, Any]:
    # before it is opened: opening some devices is an act (a watchdog starts, a tape rewinds)
    if not stat.S_ISREG(os.stat(path).st_mode):
        return {"error": "not-regular"}
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as f:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return {"error": "not-regular"}
        return {"out": f.read(limit + 1)}


def _unreadable(error: Exception) -> Dict[str, Any]:
    if isinstance(error, OSError):
        return {"error": CODES.get(error.errno or 0, "io"), "err": (error.strerror or "").encode()}
    return {"error": "io", "err": str(error).encode("utf-8", "replace")}


def look(part: Dict[str, Any]) -> Dict[str, Any]:
    answer: Dict[str, Any] = {"out": b"", "err": b"", "status": None, "error": "", "ms": 0.0}
    try:
        answer["out"] = json.dumps(files.look(part["path"], part["owner"], part["group"]), sort_keys=True).encode()
    except (OSError, ValueError) as e:
        answer.update(_unreadable(e))
    return answer


def probe(wanted: Dict[str, List[Dict[str, Any]]]) -> Dict[str, List[Dict[str, Any]]]:
    """All parts of all facts: {key: [part]} -> {key: [answer]}, `out` and `err` as text or, where that is not UTF-8, base64."""
    places = [(key, i, part) for key, parts in wanted.items() for i, part in enumerate(parts)]
    apart = [(key, i, part) for key, i, part in places if part["do"] == "run" or (part["do"] == "ask" and not part.get("quick"))]
    quick = [(key, i, part) for key, i, part in places if part["do"] == "ask" and part.get("quick")]
    done: Dict[Any, Dict[str, Any]] = {}
    shared = [{"function": lambda: _together(quick), "deadline": TOGETHER}] if len(quick) > 1 else []
    answers = run_all(shared + [_job(part) for _, _, part in apart])
    done.update(((key, i), answer) for (key, i, _), answer in zip(apart, answers[len(shared) :]))  # noqa: B905  (no strict= before 3.10)
    done.update(_parted(quick, answers[0] if shared else {}))
    for key, i, part in apart:
        # what nobody cannot do is no answer: ask again as who we are
        answer = done[(key, i)]
        if part.get("unprivileged") and answer["status"] != 0 and answer["error"] not in ("deadline", "missing", "too-large"):
            done[(key, i)] = run_all([{"argv": part["argv"], "deadline": part["deadline"]}])[0]
    found: Dict[str, List[Dict[str, Any]]] = {key: [] for key in wanted}
    for key, i, part in places:
        found[key].append(_texts(done[(key, i)] if (key, i) in done else _other(part)))
    return found


def _together(places: List[Any]) -> List[Any]:
    """In the shared process: each part's answer, or how it failed; milliseconds waited and of the processor, one after another."""
    answers: List[Any] = []
    for _, _, part in places:
        began, used = time.monotonic(), time.process_time()
        try:
            answer: Dict[str, Any] = {"status": 0, "out": json.dumps(_job(part)["function"](), sort_keys=True)}
        except Exception as e:  # noqa: BLE001  (any: it is that part's answer, and the others have theirs)
            answer = {"status": 1, "err": "%s: %s" % (type(e).__name__, e)}
        spent = {"ms": time.monotonic() - began, "cpu": time.process_time() - used}
        answers.append(dict(answer, **{name: round(seconds * 1000, 1) for name, seconds in spent.items()}))
    return answers


def _parted(places: List[Any], shared: Dict[str, Any]) -> Dict[Any, Dict[str, Any]]:
    """The answers of the parts that shared a process; of all of them alone where it hung, died or was not there."""
    if not shared or shared["status"] != 0 or shared["error"]:
        answers = run_all([_job(part) for _, _, part in places])
    else:
        answers = [
            dict(a, out=a.get("out", "").encode(), err=a.get("err", "").encode(), error="")
            for a in json.loads(shared["out"].decode())
        ]
    return {(key, i): answer for (key, i, _), answer in zip(places, answers)}  # noqa: B905


def _job(part: Dict[str, Any]) -> Dict[str, Any]:
    if part["do"] == "run":
        return part
    name, arguments = part["fragment"], part["arguments"]
    return {"function": lambda: fragments.look(name, arguments), "deadline": part["deadline"]}


def _other(part: Dict[str, Any]) -> Dict[str, Any]:
    if part["do"] == "read":
        return read(part["path"], part["limit"])
    if part["do"] == "stat":
        return look(part)
    return available.ask(part, run_all)


def _texts(answer: Dict[str, Any]) -> Dict[str, Any]:
    for name in ("out", "err"):
        data = answer.pop(name)
        if data:
            try:
                answer[name] = data.decode("utf-8")
            except UnicodeDecodeError:
                answer[name + "64"] = base64.b64encode(data).decode()
    return {k: v for k, v in answer.items() if v not in ("", None)}
