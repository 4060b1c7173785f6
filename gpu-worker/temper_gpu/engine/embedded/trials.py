"""Repeats the requests of a failed pass, each alone, because one of them may be the cause.

A request that fails again fails alone. Otherwise each of its retries would end the engine, and with it the worker. The
other requests get the same answers as before, because answers do not depend on the load.
"""

from collections import deque
from collections.abc import Callable, Collection

from temper_gpu.engine.embedded.requests import Sequence


class Trials:
    """Belongs to the engine's thread."""

    def __init__(self) -> None:
        self._suspects: deque[Sequence] = deque()
        self._tried: Sequence | None = None

    def __len__(self) -> int:
        return len(self._suspects)

    def after_failure(self, running: list[Sequence]) -> Sequence | None:
        """Returns the request that failed again alone. The rest become suspects and restart."""
        for sequence in running:
            sequence.begin_again()
        if running == [self._tried]:
            return self._tried
        self._suspects.extendleft(reversed(running))
        return None

    def admit(self, running: Collection[Sequence], take_slot: Callable[[Sequence], bool]) -> bool:
        """Whether suspects have priority over waiting requests. The next one is admitted once all slots are free."""
        if not running and self._suspects and take_slot(self._suspects[0]):
            self._tried = self._suspects.popleft()
            return True
        return bool(self._suspects) or self._tried in running

    def withdraw(self, suspect: Sequence) -> bool:
        """False if it is none."""
        if suspect not in self._suspects:
            return False
        self._suspects.remove(suspect)
        return True

    def drop(self, is_dropped: Callable[[Sequence], bool]) -> None:
        self._suspects = deque(sequence for sequence in self._suspects if not is_dropped(sequence))

    def clear(self) -> list[Sequence]:
        suspects = list(self._suspects)
        self._suspects.clear()
        return suspects
