"""Look at one path, and replace one file atomically."""

import base64
import errno
import grp
import hashlib
import os
import pwd
import stat
import subprocess
from typing import Any, Dict, Optional

from reconciler.node import state

HASH_LIMIT = 64 << 20  # a managed file is at most 1 MiB: what is larger differs without being read


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def uid_of(owner: str) -> Optional[int]:
    try:
        return pwd.getpwnam(owner).pw_uid
    except KeyError:
        return None


def gid_of(group: str) -> Optional[int]:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def _type(mode: int) -> str:
    for test, word in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link")):
        if test(mode):
            return word
    return "special"


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def look(path: str, owner: str, group: str) -> Dict[str, Any]:
    """Type, mode, owner, group, size, sha256 of `path` (links not followed), and whether `owner` and `group` exist here."""
    if not os.path.isabs(path):
        raise OSError(errno.EINVAL, "not an absolute path")
    found: Dict[str, Any] = {"owner_exists": uid_of(owner) is not None, "group_exists": gid_of(group) is not None}
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    found["parent"] = "directory" if os.path.isdir(parent) else "not-a-directory"
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return dict(found, type="none")
    found.update(
        type=_type(info.st_mode),
        mode=stat.S_IMODE(info.st_mode),
        owner=user_name(info.st_uid),
        group=group_name(info.st_gid),
        size=info.st_size,
    )
    if found["type"] == "link":
        found["target"] = os.readlink(path)
    if found["type"] == "file":
        found["sha256"] = _sha256(path) if info.st_size <= HASH_LIMIT else ""
    return found


def write(path: str, content: str, mode: int, owner: str, group: str) -> Dict[str, Any]:
    """Replace `path` by a regular file with `content` (base64). Missing parent directories are made, root's, 0755.

    Refused with NoSuchUser, NoSuchGroup, IsDirectory, or Failed (with `errno`): the old file is then untouched. LabelFailed:
    the new file is there, under the SELinux type of its directory.
    """
    uid, gid = uid_of(owner), gid_of(group)
    if uid is None:
        raise state.Refused("NoSuchUser", user=owner)
    if gid is None:
        raise state.Refused("NoSuchGroup", group=group)
    if os.path.isdir(path) and not os.path.islink(path):
        raise state.Refused("IsDirectory", path=path)
    try:
        _replace(path, base64.b64decode(content, validate=True), mode, uid, gid)
    except OSError as e:
        raise state.Refused("Failed", path=path, errno=errno.errorcode.get(e.errno or 0, ""), detail=e.strerror or "")
    _restore_label(path)
    return {}


def exchange(path: str, content: str, expected: str) -> Dict[str, Any]:
    """Give a file other content (base64), its mode and owner kept; one that is not there is made, root's, 0644.

    `expected`: SHA-256 of the content that it has now, empty for none. Refused with FileMoved where that is not so: whoever wrote
    it meanwhile would lose what he wrote. IsDirectory, Failed and LabelFailed as in `write`.
    """
    mode, uid, gid, found = 0o644, 0, 0, ""
    try:
        if os.path.lexists(path):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise state.Refused("FileMoved", path=path)
            info, found = os.lstat(path), _sha256(path)
            mode, uid, gid = stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid
        if found != expected:
            raise state.Refused("FileMoved", path=path)
        _replace(path, base64.b64decode(content, validate=True), mode, uid, gid)
    except OSError as e:
        raise state.Refused("Failed", path=path, errno=errno.errorcode.get(e.errno or 0, ""), detail=e.strerror or "")
    _restore_label(path)
    return {}


def _temporary(name: str) -> str:
    """A hidden name beside `name`, always the same one, at most 255 bytes long. `~` is in no path that a manifest may have."""
    return ".%s.reconcile~" % (name if len(name) < 200 else hashlib.sha256(name.encode()).hexdigest())


def _replace(path: str, data: bytes, mode: int, uid: int, gid: int) -> None:
    directory = os.path.dirname(path)
    state.make_directories(directory, 0o755)
    temporary = os.path.join(directory, _temporary(os.path.basename(path)))
    if os.path.lexists(temporary):  # left by a write that was cut off
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as f:
            os.fchown(fd, uid, gid)
            os.fchmod(fd, mode)
            f.write(data)
            f.flush()
            os.fsync(fd)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    state.fsync_directory(directory)


def _restore_label(path: str) -> None:
    """A new file in a temporary name carries the directory's SELinux type: give it the one that policy wants."""
    if not os.path.exists("/sys/fs/selinux/enforce"):
        return
    argv = ("restorecon", "--", path)
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise state.Refused("LabelFailed", path=path, detail=str(e))
    if done.returncode:
        raise state.Refused("LabelFailed", path=path, detail=done.stdout.decode(errors="replace")[:500])
