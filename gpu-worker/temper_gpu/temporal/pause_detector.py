"""Detects that this process was suspended (SIGSTOP, a suspended host). Temporal gives its work to another worker, so a
process that continues would repeat it."""

import threading
import time
from collections import deque
from collections.abc import Callable

from temper_gpu.contract import KEPT_PAUSES, PAUSE_CHECK_MS

CHECK_S = PAUSE_CHECK_MS / 1000


class PauseDetector:
    """Gaps between checks, by the wall clock, which includes the time of a suspended host. A clock that is set looks
    like a gap too, and costs one retry. A gap that ends in the future is from a clock that was corrected since."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._last = clock()
        self._pauses: deque[tuple[float, float]] = deque(maxlen=KEPT_PAUSES)

    def check(self) -> None:
        now = self._clock()
        if now - self._last > 2 * CHECK_S:
            self._pauses.append((now, now - self._last))
        self._last = now

    def longest_pause_s(self, within_s: float) -> float:
        """The longest suspension that ended within the last `within_s`, the present one included."""
        now = self._clock()
        lengths = (length for ended, length in tuple(self._pauses) if now - within_s < ended <= now)
        return max(now - self._last, *lengths, 0.0)


def start_pause_detector() -> PauseDetector:
    """Checks in its own thread until the process ends."""
    pauses = PauseDetector()

    def check_forever() -> None:
        while True:
            time.sleep(CHECK_S)
            pauses.check()

    threading.Thread(target=check_forever, name="pause-detector", daemon=True).start()
    return pauses
