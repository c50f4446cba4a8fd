"""Threads that run one at a time: which of them goes on is chosen by the test, so that every interleaving can be repeated."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

LOCAL = threading.local()
TO_UNWIND = 1000  # turns that a cut thread may take until it is gone


class Cut(BaseException):
    """Ends what runs, as a lost process or a lost power does: no code may handle it, and nothing after it has an effect."""


class Turn:
    """A function in a thread of its own that runs only between `resume` and its next `pause`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._cut: Cut | None = None
        self.over, self.value = False, None
        self.error: BaseException | None = None

    def _run(self) -> None:
        self._go.acquire()
        LOCAL.turn = self
        try:
            self.value = self._work()
        except BaseException as e:  # noqa: BLE001  (whoever resumes it decides)
            self.error = e
        self.over = True
        self._back.release()

    def resume(self) -> None:
        """Let it go on until it pauses or ends."""
        if not self._thread.ident:
            self._thread.start()
        self._go.release()
        self._back.acquire()

    def pause(self) -> None:
        """Called from inside: give the turn back. Raises Cut where it was cut meanwhile."""
        self._back.release()
        self._go.acquire()
        if self._cut:
            raise self._cut

    def cut(self, why: Cut) -> None:
        """End it where it stands."""
        self._cut = why
        for _ in range(TO_UNWIND):
            if self.over:
                return
            self.resume()
        raise AssertionError("a thread that was cut goes on")


def pause() -> None:
    """Give the turn back where there is somebody to give it to."""
    turn: Turn | None = getattr(LOCAL, "turn", None)
    if turn:
        turn.pause()


class Choices:
    """Numbers that follow from a seed; seed 0 always chooses the first."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed) if seed else None

    def below(self, limit: int) -> int:
        return self._random.randrange(limit) if self._random else 0


class Asked(Future[Any]):
    """A future whose work waits for its turn."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self.turn = Turn(work)

    def resume(self) -> None:
        self.turn.resume()
        if self.turn.over:
            if self.turn.error:
                self.set_exception(self.turn.error)
            else:
                self.set_result(self.turn.value)


class Workers:
    """What the pool uses in place of ThreadPoolExecutor."""

    def __init__(self, workers: int, thread_name_prefix: str = "") -> None:
        self.workers = workers

    def submit(self, work: Callable[[Any], Any], name: Any) -> Asked:
        return Asked(lambda: work(name))

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        """Nothing is left: `wait_for` let all of them end."""


def wait_for(futures: Iterable[Asked], choices: Choices) -> None:
    """What the pool uses in place of `concurrent.futures.wait`: all side by side, turn by turn, to their ends."""
    left = list(futures)
    while left:
        chosen = left[choices.below(len(left))]
        chosen.resume()
        if chosen.turn.over:
            left.remove(chosen)
