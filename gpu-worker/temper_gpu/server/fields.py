"""Members of a request's body, read strictly: what has another type or range is refused with the rule."""

import json
import math
from typing import Any

from temper_gpu.failures import TemperError


def require(condition: bool, message: str) -> None:
    if not condition:
        raise TemperError("BadConfig", message)


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def is_integer(value: Any) -> bool:
    """Excludes booleans, because True is an integer in Python."""
    return isinstance(value, int) and not isinstance(value, bool)


def first_not_none(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def flag(body: dict[str, Any], name: str, default: bool = False) -> bool:
    value = first_not_none(body.get(name), default)
    if not isinstance(value, bool):
        raise TemperError("BadConfig", f"{name} must be true or false, got {shown(value)}; change it")
    return value


def integer(body: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = first_not_none(body.get(name), default)
    if not is_integer(value) or not least <= value <= most:
        raise TemperError(
            "BadConfig", f"{name} must be a whole number from {least} to {most}, got {shown(value)}; change it"
        )
    return value


def number(body: dict[str, Any], name: str, default: float, least: float, most: float) -> float:
    value = first_not_none(body.get(name), default)
    if not is_number(value) or not least <= value <= most:
        raise TemperError(
            "BadConfig", f"{name} must be a number from {least:g} to {most:g}, got {shown(value)}; change it"
        )
    return float(value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
