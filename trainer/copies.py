"""Copies of values on the CPU, so that training may go on while they are written; the buffers are used again for the next ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

log = logging.getLogger("trainer")


def tensors(value: Any) -> Iterator[Any]:
    """Every tensor in a nested value."""
    if hasattr(value, "element_size"):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)


def size(value: Any) -> int:
    """Bytes of all tensors in it."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(value))


def available() -> int:
    """Bytes that the node's memory has for whoever asks, as the kernel estimates it."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return int(found["MemAvailable"].split()[0]) * 1024


def roomy(value: Any, ranks: int = 1) -> bool:
    """Whether memory has room for copies that so many processes of this node are about to make."""
    return size(value) * ranks < available() / 2


class Copies:
    """`of` copies a nested value; what it gave before is overwritten by the next call with the same `name`."""

    def __init__(self) -> None:
        self._buffers: dict[str, Any] = {}

    def of(self, value: Any, name: str) -> Any:
        """The same value with every tensor copied to the CPU; what shared memory shares it still."""
        copied = self._of(value, name, {})
        if any(tensor.is_cuda for tensor in tensors(value)):
            import torch

            torch.cuda.synchronize()
        return copied

    def _of(self, value: Any, name: str, seen: dict[tuple[Any, ...], Any]) -> Any:
        if hasattr(value, "element_size"):
            key = (value.data_ptr(), value.shape, value.stride(), value.dtype)
            if key not in seen:
                seen[key] = self._copy(value.detach(), name)
            return seen[key]
        if isinstance(value, Mapping):
            return {key: self._of(part, f"{name}/{key}", seen) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._of(part, f"{name}/{number}", seen) for number, part in enumerate(value))
        return value

    def _copy(self, tensor: Any, name: str) -> Any:
        import torch

        buffer = self._buffers.get(name)
        if buffer is None or (buffer.shape, buffer.dtype) != (tensor.shape, tensor.dtype):
            # pinned memory is what a GPU copies to at its full rate, beside what else it does
            buffer = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=tensor.is_cuda)
            self._buffers[name] = buffer
        buffer.copy_(tensor, non_blocking=True)
        return buffer


class Ahead(threading.Thread):
    """Copies that are made beside training for their memory alone: to take and to pin it takes longer than to copy.

    What fails here is met again when a checkpoint is saved, and counts there.
    """

    def __init__(self, actions: Sequence[Callable[[], Any]], beside: AbstractContextManager[Any]) -> None:
        super().__init__(name="ahead", daemon=True)
        self.actions, self.beside = actions, beside

    def run(self) -> None:
        """Each action, until one fails."""
        try:
            with self.beside:
                for action in self.actions:
                    action()
        except (OSError, RuntimeError) as error:
            log.warning("memory for copies of checkpoints could not be taken beforehand: %s", error)
        finally:
            self.actions = ()
