"""Detects that this process was suspended (SIGSTOP, a suspended host). Temporal gives its work to another worker, so a
process that continues would repeat it."""

import threading
import time
from collections import deque
from collections.abc import Callable

from temper_gpu.contract import KEPT_STANDSTILLS, PULSE_MS

BEAT_S = PULSE_MS / 1000


class Pulse:
    """Gaps between beats, by the wall clock, which includes the time of a suspended host. A clock that is set looks
    like a gap too, and costs one retry. A gap that ends in the future is from a clock that was corrected since."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._last = clock()
        self._gaps: deque[tuple[float, float]] = deque(maxlen=KEPT_STANDSTILLS)

    def beat(self) -> None:
        now = self._clock()
        if now - self._last > 2 * BEAT_S:
            self._gaps.append((now, now - self._last))
        self._last = now

    def longest_gap_s(self, within_s: float) -> float:
        """The longest suspension that ended within the last `within_s`, the present one included."""
        now = self._clock()
        lengths = (length for ended, length in tuple(self._gaps) if now - within_s < ended <= now)
        return max(now - self._last, *lengths, 0.0)


def start_pulse() -> Pulse:
    """Beats in its own thread until the process ends."""
    pulse = Pulse()

    def beat_forever() -> None:
        while True:
            time.sleep(BEAT_S)
            pulse.beat()

    threading.Thread(target=beat_forever, name="pulse", daemon=True).start()
    return pulse
