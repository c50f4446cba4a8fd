"""Why a run failed, as a word that a launcher decides by: what may help when it is started again, and what will not."""

from __future__ import annotations

import errno


def verdict(error: BaseException) -> str:
    """network, out-of-memory, storage or code, by what was raised; by its type where there is one, else by what it says."""
    names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    if "OutOfMemoryError" in names or "CUDA out of memory" in text:
        return "out-of-memory"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE):
        return "storage"
    if names & {"DistBackendError", "DistNetworkError", "DistStoreError"} or any(
        word in text for word in ("NCCL", "gloo", "Connection closed by peer")
    ):
        return "network"
    return "code"
