"""Logs: one JSON line each on stdout, with the fields that a record carries (run, step, attempt …)."""

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "temporal_log",
    "color_message",
}
# Loggers that repeat that Temporal's server is unavailable.
_REPEATING = ("temporalio", "temper_gpu.temporal.polling")
# Messages are compared by their beginnings: addresses, counts and tokens come later.
_SAME_CHARACTERS, _MAX_MESSAGES = 40, 256
_LEVELS = {"WARNING": "warn", "CRITICAL": "fatal"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "level": _LEVELS.get(record.levelname, record.levelname.lower()),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "name": record.name,
            "msg": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


class Occasionally(logging.Filter):
    """Passes each message about Temporal's server once in `every_s`."""

    def __init__(self, every_s: float) -> None:
        super().__init__()
        self._every_s = every_s
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(_REPEATING):
            return True
        key = record.getMessage()[:_SAME_CHARACTERS]
        if record.created - self._last.get(key, float("-inf")) < self._every_s:
            return False
        if len(self._last) > _MAX_MESSAGES:
            self._last.clear()
        self._last[key] = record.created
        return True


def configure_logs() -> None:
    """Logs everything from INFO on, for the whole process."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    handler.addFilter(Occasionally(30))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    for noisy in ("httpx", "filelock", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # The activities log their failures themselves, with run and step.
    logging.getLogger("temporalio.activity").setLevel(logging.ERROR)
