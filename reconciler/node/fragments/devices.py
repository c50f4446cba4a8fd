"""Devices as /sys shows them: one folder each, of which the wanted files and links are read."""

import errno
import glob
import os
from typing import Any, Dict


def look(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """`groups`: {name: {"at": pattern of folders, "files", "links": [path below], "tables": [table]}}; `limit` in bytes a file.

    -> {name: {folder: {path below: text | {"error": name of the errno}}}}, a link as its target. What is not there is left out:
    each kind of device has other files. A table is {"files": [path with %d], "empty": text, "gap": N}: rows 0, 1 ... are read,
    those left out of which the first file is empty or unreadable, until it is N times in a row. A GID table has hundreds of rows,
    nearly all of them empty.
    """
    return {
        name: {folder: _device(folder, group, arguments["limit"]) for folder in sorted(glob.glob(group["at"]))}
        for name, group in arguments["groups"].items()
    }


def _device(folder: str, group: Dict[str, Any], limit: int) -> Dict[str, Any]:
    try:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return {}  # it was taken out meanwhile
    try:
        found = {path: _file(at, path, limit) for path in group.get("files", [])}
        found.update({path: _link(at, path) for path in group.get("links", [])})
        for table in group.get("tables", []):
            _table(at, table, limit, found)
    finally:
        os.close(at)
    return {path: said for path, said in found.items() if said != {"error": "ENOENT"}}


def _table(at: int, table: Dict[str, Any], limit: int, found: Dict[str, Any]) -> None:
    row = empty = 0
    while empty < table["gap"]:
        first = _file(at, table["files"][0] % row, limit)
        if not isinstance(first, str) or first.strip() == table["empty"]:
            empty += 1
        else:
            empty = 0
            found[table["files"][0] % row] = first
            found.update({path % row: _file(at, path % row, limit) for path in table["files"][1:]})
        row += 1


def _file(at: int, path: str, limit: int) -> Any:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
        try:
            return os.read(fd, limit).decode("utf-8", "replace")
        finally:
            os.close(fd)
    except OSError as e:
        return _error(e)


def _link(at: int, path: str) -> Any:
    try:
        return os.readlink(path, dir_fd=at)
    except OSError as e:
        return _error(e)


def _error(e: OSError) -> Dict[str, str]:
    code = errno.errorcode.get(e.errno or 0, "EIO")
    return {"error": "ENOENT" if code == "ENOTDIR" else code}
